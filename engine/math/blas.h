/* A BLAS of the host, found at run time: OpenBLAS, else whatever provides the reference interface.
 *
 * Row-major, real. Functions may be called from any thread. */
#ifndef DRUPE_MATH_BLAS_H
#define DRUPE_MATH_BLAS_H

#include "drupe/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct drupe_blas drupe_blas;

/* The library, opened on first use, or NULL when the machine has none. It stays open. The environment
 * variable DRUPE_BLAS=none pretends that there is none. */
const drupe_blas *drupe_blas_get(void);

/* One matrix in memory: element (i, j) at data[i * ld + j], or at data[j * ld + i] when transposed. */
typedef struct drupe_matrix {
    const void *data;
    size_t ld; /* at least the length of what is contiguous, and at least 1 */
    bool transposed;
} drupe_matrix;

/* out[m][n] = a[m][k] b[k][n] in float64 if `wide`, else float32; `out` is contiguous. No dimension may be 0
 * or exceed INT_MAX. Products with a vector (n or m of 1) take the matrix-vector routine. */
void drupe_blas_matmul(const drupe_blas *blas, bool wide, size_t m, size_t n, size_t k, drupe_matrix a,
                       drupe_matrix b, void *out);

#endif
