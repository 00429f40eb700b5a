/* Which of the precompiled variants this processor runs.
 *
 * The kernels are one generated file, compiled once per instruction set. The environment variable
 * DRUPE_HOST_VARIANT names a variant to use instead of the best one; a name that is unknown or that the
 * processor lacks is ignored, since running it would be an illegal instruction. */
#include "backends/builtin.h"
#include "drupe/check.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(variant)                                                                                     \
    extern const drupe_builtin drupe_builtins_##variant[];                                                   \
    extern const size_t drupe_builtin_count_##variant

typedef struct builtin_variant {
    const char *name;
    const drupe_builtin *kernels; /* sorted by name */
    const size_t *count;
    int (*supported)(void); /* NULL: by every processor */
} builtin_variant;

DECLARE(baseline);
DECLARE(checked);

#if defined(__x86_64__)
DECLARE(avx2);
DECLARE(avx512);

/* What -march=x86-64-v3 and -v4 let the compiler use. */
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

/* Best first. */
static const builtin_variant variants[] = {
#if defined(__x86_64__)
    {"avx512", drupe_builtins_avx512, &drupe_builtin_count_avx512, has_avx512},
    {"avx2", drupe_builtins_avx2, &drupe_builtin_count_avx2, has_avx2},
#endif
    {"baseline", drupe_builtins_baseline, &drupe_builtin_count_baseline, NULL},
};

static pthread_once_t chosen_once = PTHREAD_ONCE_INIT;
static const builtin_variant *chosen;

static void choose(void)
{
    const char *wanted = getenv("DRUPE_HOST_VARIANT");
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        if (variants[i].supported && !variants[i].supported()) continue;
        if (!chosen) chosen = &variants[i];
        if (wanted && strcmp(wanted, variants[i].name) == 0) chosen = &variants[i];
    }
}

const char *drupe_builtin_variant(void)
{
    pthread_once(&chosen_once, choose);
    return chosen->name;
}

static int compare_name(const void *name, const void *kernel)
{
    return strcmp(name, ((const drupe_builtin *)kernel)->name);
}

static const drupe_builtin *find_checked(const char *name, size_t length)
{
    char plain[64];
    if (length >= sizeof plain) return NULL;
    memcpy(plain, name, length);
    plain[length] = '\0';
    return bsearch(plain, drupe_builtins_checked, drupe_builtin_count_checked, sizeof(drupe_builtin),
                   compare_name);
}

const drupe_builtin *drupe_builtin_find(const char *name)
{
    const char *checked = strstr(name, DRUPE_BUILTIN_CHECKED);
    if (checked) return find_checked(name, (size_t)(checked - name));
    pthread_once(&chosen_once, choose);
    return bsearch(name, chosen->kernels, *chosen->count, sizeof(drupe_builtin), compare_name);
}
