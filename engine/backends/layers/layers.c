/* Tables with layers.
 *
 * A table is made once for each backend and list of layers, and lives as long as the process: a backend may
 * be closed and loaded again any number of times, with other layers each time. */
#include "drupe/layers.h"
#include "backends/layers/fault_layer.h"
#include "backends/layers/layers_room.h"
#include "base/base.h"
#include <stdlib.h>
#include <string.h>

#define DEEPEST 8

/* A table for one backend whose outermost layer is `layer`. */
typedef struct layered {
    drupe_backend table; /* first: a table's address is the address of this */
    const drupe_backend *below;
    const drupe_layer *layer;
    struct layered *next; /* all that were made */
} layered;

/* The list has one line for each entry of the vtable. */
#define ONE(...) +1
_Static_assert(offsetof(drupe_backend, likely) +
                       (0 DRUPE_ENTRIES_SLOT(ONE) DRUPE_ENTRIES_OBJECT(ONE)) * sizeof(void (*)(void)) ==
                   sizeof(drupe_backend),
               "an entry of backend.h is missing in backends/layers/entries.h");
#undef ONE

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static layered *made;
static const drupe_layer *chosen[DEEPEST]; /* the outermost first */
static size_t nchosen;
static bool decided; /* `chosen` was set; else the environment is asked */
static _Atomic(const drupe_backend *) tops[DRUPE_LAYER_SLOTS];

/* --- Choosing ------------------------------------------------------------------------------------------- */

static const drupe_layer *find(const char *name, size_t size)
{
    for (size_t i = 0; drupe_layers[i]; i++) {
        if (strlen(drupe_layers[i]->name) == size && memcmp(drupe_layers[i]->name, name, size) == 0)
            return drupe_layers[i];
    }
    return NULL;
}

static drupe_status refuse(const char *name, size_t size)
{
    drupe_text known = {0};
    for (size_t i = 0; drupe_layers[i]; i++)
        drupe_text_printf(&known, "%s'%s'", i ? ", " : "", drupe_layers[i]->name);
    drupe_error_set(DRUPE_E_INVALID, "There is no layer '%.*s' (DRUPE_LAYERS); there are %s.", (int)size,
                    name, drupe_text_get(&known));
    drupe_text_clear(&known);
    return DRUPE_E_INVALID;
}

static drupe_status parse(const char *names, const drupe_layer **layers, size_t *count)
{
    *count = 0;
    for (const char *at = names; *at;) {
        size_t size = strcspn(at, ", ");
        const drupe_layer *layer = find(at, size);
        if (size && !layer) return refuse(at, size);
        if (size && *count == DEEPEST)
            return drupe_error_set(DRUPE_E_INVALID, "DRUPE_LAYERS names more than %d layers.", DEEPEST);
        bool known = false; /* a layer stands in a table once */
        for (size_t i = 0; i < *count; i++) known = known || layers[i] == layer;
        if (size && !known) layers[(*count)++] = layer;
        at += size;
        if (*at) at++;
    }
    return DRUPE_OK;
}

drupe_status drupe_layers_choose(const char *names)
{
    const drupe_layer *layers[DEEPEST];
    size_t count = 0;
    if (names) DRUPE_TRY(parse(names, layers, &count));
    pthread_mutex_lock(&lock);
    decided = names != NULL;
    nchosen = count;
    if (count) memcpy(chosen, layers, count * sizeof *layers);
    pthread_mutex_unlock(&lock);
    return DRUPE_OK;
}

/* --- Making --------------------------------------------------------------------------------------------- */

static layered *find_made(const drupe_backend *below, const drupe_layer *layer)
{
    for (layered *one = made; one; one = one->next) {
        if (one->below == below && one->layer == layer) return one;
    }
    return NULL;
}

static const drupe_backend *wrap(const drupe_backend *below, const drupe_layer *layer, size_t slot)
{
    layered *one = find_made(below, layer);
    if (one) return &one->table;
    one = calloc(1, sizeof *one);
    if (!one) return NULL;
    one->table = *below;
    one->below = below;
    one->layer = layer;
    layer->wrap(&one->table, below, slot);
    one->next = made;
    made = one;
    return &one->table;
}

drupe_status drupe_layers_check(void)
{
    const char *names = getenv("DRUPE_LAYERS");
    const drupe_layer *layers[DEEPEST];
    size_t count;
    pthread_mutex_lock(&lock);
    const bool asked = !decided;
    pthread_mutex_unlock(&lock);
    if (names && asked) DRUPE_TRY(parse(names, layers, &count));
    return drupe_fault_check();
}

static drupe_status apply(const drupe_backend *base, size_t slot, const drupe_backend **backend)
{
    const char *names = getenv("DRUPE_LAYERS");
    *backend = base;
    if (!decided) {
        nchosen = 0;
        if (names) DRUPE_TRY(parse(names, chosen, &nchosen));
    }
    for (size_t i = nchosen; i-- > 0;) {
        *backend = wrap(*backend, chosen[i], slot);
        if (!*backend) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the table of a layer.");
    }
    return DRUPE_OK;
}

drupe_status drupe_layers_apply(const drupe_backend *base, size_t slot, const drupe_backend **backend)
{
    if (slot >= DRUPE_LAYER_SLOTS)
        return drupe_error_set(DRUPE_E_INTERNAL, "Layers know %d backends only.", DRUPE_LAYER_SLOTS);
    pthread_mutex_lock(&lock);
    drupe_status status = apply(base, slot, backend);
    if (status == DRUPE_OK) atomic_store(&tops[slot], *backend);
    pthread_mutex_unlock(&lock);
    return status;
}

/* --- Calling on ----------------------------------------------------------------------------------------- */

const drupe_backend *drupe_layer_below(const drupe_backend *top, const drupe_layer *layer)
{
    const layered *one = (const layered *)(const void *)top;
    while (one->layer != layer) one = (const layered *)(const void *)one->below;
    return one->below;
}

const drupe_backend *drupe_layer_below_slot(size_t slot, const drupe_layer *layer)
{
    return drupe_layer_below(atomic_load(&tops[slot]), layer);
}
