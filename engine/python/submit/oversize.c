/* What a launch reaches is the kernel's affair: one may well use fewer elements than it has work-items. So it
 * is only told, once for each site, and only where somebody reads it. Ranges of several dimensions are taken
 * by their longest side, since kernels over all pairs have as many work-items as there are pairs. */
#include "drupe/check.h"
#include "drupe_link.h"
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/submit/py_submit_room.h"

#define TIMES 4u    /* the elements of the largest array: */
#define MORE  1024u /* so many work-items more are far more; a range is often rounded up */
#define TOLD  64u

/* Sites that were told of, the latest ones; under the GIL. */
static struct {
    uint32_t sites[TOLD];
    size_t next;
} told;

static size_t scalar_bytes(const drupe_py_launch *launch, size_t index)
{
    bool typed = launch->kernel->typed && index < launch->kernel->nparams;
    size_t size = typed ? drupe_py_scalar_size(launch->kernel->params[index].scalar) : 0;
    return size > 0 ? size : 1;
}

/* The elements of the largest array or memory among the arguments; false without any. */
static bool largest(const drupe_py_state *state, const drupe_py_launch *launch, size_t *elements)
{
    bool found = false;
    *elements = 0;
    for (size_t i = 0; i < launch->nargs; i++) {
        PyObject *object = launch->args[i];
        size_t size;
        if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array))
            size = (size_t)drupe_py_array_of(object)->size;
        else if (drupe_py_is_memory(state, object))
            size = ((drupe_py_memory *)object)->nbytes / scalar_bytes(launch, i);
        else
            continue;
        found = true;
        if (size > *elements) *elements = size;
    }
    return found;
}

static bool tell_first(uint32_t site)
{
    for (size_t i = 0; i < TOLD; i++)
        if (told.sites[i] == site) return false;
    told.sites[told.next++ % TOLD] = site;
    return true;
}

static void tell(const drupe_py_launch *launch, size_t items, size_t elements, uint32_t site)
{
    char text[512], json[1200], location[160];
    drupe_py_strbuf line = {text, sizeof text, 0}, message = {json, sizeof json, 0};
    void *cell = drupe_py_link->cell_retain();
    uint32_t number = DRUPE_LINK_HAS(drupe_py_link, cell_number) ? drupe_py_link->cell_number(cell) : 0;
    bool known = drupe_py_site_text(site, number, location, sizeof location) > 0;
    drupe_py_strbuf_add(
        &line,
        "%s%s%.*s%s: %zu work-items, and the largest array has %zu element%s. Work-items that access memory "
        "beyond it may crash this process; run the launch inside `with drupe.checked():` to find them.\n",
        drupe_kernel_name(launch->kernel->kernel), known ? " (" : "", 100, known ? location : "",
        known ? ")" : "", items, elements, elements == 1 ? "" : "s");
    drupe_py_strbuf_add(&message, "{\"name\": \"stderr\", \"text\": \"");
    drupe_py_strbuf_add_json(&message, text);
    drupe_py_strbuf_add(&message, "\"}");
    if (cell) (void)drupe_py_link->publish(cell, "stream", json, message.used);
    drupe_py_link->cell_release(cell);
}

void drupe_py_oversize_look(const drupe_py_state *state, const drupe_py_launch *launch,
                            const drupe_range *range, uint32_t site)
{
    size_t elements, items = 0;
    if (!drupe_py_link) return;
    for (uint32_t i = 0; i < range->dims; i++)
        if (range->global[i] > items) items = range->global[i];
    if (items < MORE || !largest(state, launch, &elements)) return;
    if (items / TIMES < elements || items - elements < MORE) return;
    if (!drupe_check_active() && tell_first(site)) tell(launch, items, elements, site);
}
