/* Libraries by dlopen, so that the engine needs none to build or to start.
 *
 * OpenBLAS chooses its routines by the processor's model when it is loaded. Old ones take their slowest for a
 * model newer than themselves: six times slower, measured with 0.3.21 on a processor of 2023. Only an
 * environment variable tells them otherwise, and a library must not set one: other threads may be reading the
 * environment. So the products of such a library are left to the loops of math/product.h, which are faster,
 * and its name says what helps. */
#include "math/provider.h"
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SUGGESTIONS 4
#define ADVICE      "install NumPy from PyPI, or the package libopenblas0"

typedef struct candidate {
    char *path, *name;
} candidate;

typedef struct library {
    drupe_routine_fn functions[DRUPE_ROUTINE_COUNT][DRUPE_BLAS_TYPES];
    char *(*core)(void); /* of OpenBLAS; else NULL */
} library;

static const char *const names[DRUPE_ROUTINE_COUNT][2] = {
#define NAMES(id, real, complex) {real, complex},
    DRUPE_ROUTINES(NAMES)
#undef NAMES
};

static const drupe_provider ours = {"Drupe", "", false};

static struct {
    pthread_mutex_t lock;
    bool opened;
    candidate suggested[SUGGESTIONS];
    size_t count;
    drupe_routine_fn functions[DRUPE_ROUTINE_COUNT][DRUPE_BLAS_TYPES];
    drupe_provider providers[2]; /* of BLAS and of LAPACK; without a name: nobody */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whether `core`, as OpenBLAS calls what it has chosen, leaves out what this processor can do. */
static bool core_is_old(const char *core)
{
#if defined(__x86_64__)
    static const char *const old[] = {"Generic", "Katmai",      "Coppermine",  "Northwood",  "Prescott",
                                      "Banias",  "Core2",       "Penryn",      "Dunnington", "Nehalem",
                                      "Atom",    "Athlon",      "Opteron",     "Nano",       "Barcelona",
                                      "Bobcat",  "Sandybridge", "Opteron_SSE3"};
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
    for (size_t i = 0; i < DRUPE_COUNT_OF(old); i++)
        if (strcasecmp(core, old[i]) == 0) return true;
#else
    (void)core;
#endif
    return false;
}

/* Take BLAS (part 0) or LAPACK (part 1) from a library, unless another one serves it already. The library's
 * name says how it names its functions: scipy_dgemm_64_, dgemm_64_ or dgemm_. One that is slow on this
 * processor serves LAPACK by the name `slow`; NULL: it is taken as it is. `path` is copied. */
static void part_take(int part, const char *path, const char *name, const char *slow)
{
    enum { MOST = DRUPE_ROUTINE_COUNT * DRUPE_BLAS_TYPES };
    if (table.providers[part].name) return;
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *prefix = strstr(file, "scipy_") ? "scipy_" : "", *suffix = strstr(file, "64_") ? "64_" : "";
    const size_t first = part ? DRUPE_ROUTINE_LAPACK : 0;
    const size_t end = part ? DRUPE_ROUTINE_COUNT : DRUPE_ROUTINE_LAPACK;
    char texts[MOST][32];
    drupe_dl_symbol symbols[MOST + 1];
    library found;
    size_t count = 0;
    for (size_t r = first; r < end; r++)
        for (size_t t = 0; t < DRUPE_BLAS_TYPES; t++, count++) {
            snprintf(texts[count], sizeof texts[count], "%s%c%s_%s", prefix, "sdcz"[t],
                     names[r][drupe_blas_complex((drupe_blas_type)t)], suffix);
            symbols[count] =
                (drupe_dl_symbol){texts[count], (r * DRUPE_BLAS_TYPES + t) * sizeof(drupe_routine_fn), false};
        }
    symbols[count++] = (drupe_dl_symbol){"openblas_get_corename", offsetof(library, core), true};
    const char *const paths[] = {path, NULL};
    void *handle;
    if (drupe_dl_open(paths, ADVICE, symbols, count, &found, &handle) != DRUPE_OK) return;
    const bool old = slow && found.core && core_is_old(found.core());
    if (old && part == 0) return;
    char *own = strdup(path);
    if (!own) return;
    memcpy(table.functions[first], found.functions[first], (end - first) * sizeof found.functions[0]);
    table.providers[part] = (drupe_provider){old ? slow : name, own, !suffix[0]};
}

static void library_take(const char *path, const char *name)
{
    for (int part = 0; part < 2; part++) part_take(part, path, name, NULL);
}

static void system_take(void)
{
    static const char slow[] =
        "OpenBLAS of the system, slow on this processor (set OPENBLAS_CORETYPE=Haswell)";
    for (int part = 0; part < 2; part++) part_take(part, "libopenblas.so.0", "OpenBLAS of the system", slow);
    part_take(0, "libblas.so.3", "BLAS of the system", slow);
    part_take(1, "liblapack.so.3", "LAPACK of the system", slow);
}

static void all_take(void)
{
    const char *wanted = getenv("DRUPE_BLAS");
    if (wanted && wanted[0] && strcmp(wanted, "none") != 0) {
        library_take(wanted, "the library of DRUPE_BLAS");
    } else if (!wanted || !wanted[0]) {
        for (size_t i = 0; i < table.count; i++)
            library_take(table.suggested[i].path, table.suggested[i].name);
        system_take();
    }
    if (table.providers[1].name) return;
    table.providers[1] = ours;
    for (int r = DRUPE_ROUTINE_LAPACK; r < DRUPE_ROUTINE_COUNT; r++)
        for (int t = 0; t < DRUPE_BLAS_TYPES; t++)
            table.functions[r][t] = drupe_own_routine((drupe_routine)r, (drupe_blas_type)t);
}

static void open_once(void)
{
    pthread_mutex_lock(&table.lock);
    table.opened = true;
    pthread_mutex_unlock(&table.lock);
    all_take();
}

drupe_routine_fn drupe_routine_get(drupe_routine routine, drupe_blas_type type,
                                   const drupe_provider **provider)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    const drupe_routine_fn fn = table.functions[routine][type];
    if (provider) *provider = fn ? &table.providers[routine >= DRUPE_ROUTINE_LAPACK] : NULL;
    return fn;
}

void drupe_provider_suggest(const char *path, const char *name)
{
    pthread_mutex_lock(&table.lock);
    if (!table.opened && table.count < SUGGESTIONS) {
        candidate *next = &table.suggested[table.count];
        next->path = strdup(path);
        next->name = strdup(name);
        if (next->path && next->name) {
            table.count++;
        } else {
            free(next->path);
            free(next->name);
        }
    }
    pthread_mutex_unlock(&table.lock);
}

bool drupe_provider_opened(void)
{
    pthread_mutex_lock(&table.lock);
    const bool opened = table.opened;
    pthread_mutex_unlock(&table.lock);
    return opened;
}
