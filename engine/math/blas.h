/* Products of matrices in row-major order by the BLAS that math/provider.h has found. Any thread. */
#ifndef DRUPE_MATH_BLAS_H
#define DRUPE_MATH_BLAS_H

#include "math/provider.h"

/* One matrix in memory: element (i, j) at data[i * ld + j], or at data[j * ld + i] when transposed. */
typedef struct drupe_matrix {
    const void *data;
    size_t ld; /* at least the length of what is contiguous, and at least 1 */
    bool transposed;
} drupe_matrix;

/* Whether there is a BLAS, and it takes sizes such as the largest of a product's. */
bool drupe_blas_takes(drupe_blas_type type, size_t largest);

/* out[m][n] = a[m][k] b[k][n]; `out` is contiguous. No dimension may be 0, and drupe_blas_takes() them.
 * Products with a vector (n or m of 1) take the matrix-vector routine, and those of a matrix with its own
 * transpose one that computes half of the result, which is symmetric. */
void drupe_blas_matmul(drupe_blas_type type, size_t m, size_t n, size_t k, drupe_matrix a, drupe_matrix b,
                       void *out);

#endif
