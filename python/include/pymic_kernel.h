/* For kernels that were written for pyMIC: compile them with -I and what drupe.get_include() gives.
 *
 *     #include <pymic_kernel.h>
 *     PYMIC_KERNEL void twice(const int64_t *n, double *x)
 *     {
 *         for (int64_t i = 0; i < *n; i++) x[i] *= 2;
 *     }
 *
 * A kernel gets pointers only, to numbers too, and NULL for None. */
#ifndef PYMIC_KERNEL_H
#define PYMIC_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PYMIC_KERNEL extern "C" __attribute__((visibility("default")))
#else
#define PYMIC_KERNEL __attribute__((visibility("default")))
#endif

#endif
