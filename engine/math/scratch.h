/* Memory of the host for the length of one loop. */
#ifndef DRUPE_MATH_SCRATCH_H
#define DRUPE_MATH_SCRATCH_H

#include <stddef.h>

/* Undefined contents, aligned for any type; NULL when there is no memory. Large ones ask for large pages,
 * since scattering over small ones misses the processor's table of them. */
void *drupe_scratch_get(size_t bytes);
/* The same number of bytes; NULL is allowed. */
void drupe_scratch_release(void *scratch, size_t bytes);

#endif
