/* What the `host` backend and the kernels room share. */
#ifndef DRUPE_BACKEND_BUILTIN_H
#define DRUPE_BACKEND_BUILTIN_H

#include <stddef.h>
#include <stdint.h>

/* A built-in kernel in CPU form. Work-items [begin, end) of `size`, each of which handles one contiguous
 * chunk; `args[i]` points to argument i as it was submitted (for a POINTER argument, to the pointer). */
typedef void (*drupe_builtin_fn)(size_t begin, size_t end, size_t size, const void *const *args);

typedef struct drupe_builtin {
    const char *name;
    uint32_t nargs;
    drupe_builtin_fn fn;
} drupe_builtin;

/* The kernel of that name in the best variant for this processor, or NULL. Implemented by engine/kernels. */
const drupe_builtin *drupe_builtin_find(const char *name);
/* "baseline", "avx2", "avx512", "sve" ...: the variant in use, for device info and tests. */
const char *drupe_builtin_variant(void);

#endif
