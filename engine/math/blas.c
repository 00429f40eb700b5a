/* A matrix in row-major order is its transpose in column-major order; so the routines compute the transpose
 * of the product, with the operands exchanged. */
#include "math/blas.h"
#include <limits.h>
#include <string.h>

typedef void gemm_fn(const char *ta, const char *tb, const drupe_fint *m, const drupe_fint *n,
                     const drupe_fint *k, const void *alpha, const void *a, const drupe_fint *lda,
                     const void *b, const drupe_fint *ldb, const void *beta, void *c, const drupe_fint *ldc,
                     size_t lta, size_t ltb);
typedef void gemv_fn(const char *t, const drupe_fint *m, const drupe_fint *n, const void *alpha,
                     const void *a, const drupe_fint *lda, const void *x, const drupe_fint *incx,
                     const void *beta, void *y, const drupe_fint *incy, size_t lt);

typedef void syrk_fn(const char *uplo, const char *t, const drupe_fint *n, const drupe_fint *k,
                     const void *alpha, const void *a, const drupe_fint *lda, const void *beta, void *c,
                     const drupe_fint *ldc, size_t lu, size_t lt);

typedef union number {
    float f[2];
    double d[2];
} number;

static number number_of(drupe_blas_type type, double value)
{
    number result = {.d = {value, 0}};
    if (drupe_blas_real_size(type) == 4) result = (number){.f = {(float)value, 0}};
    return result;
}

bool drupe_blas_takes(drupe_blas_type type, size_t largest)
{
    const drupe_provider *provider;
    if (type == DRUPE_BLAS_NONE || !drupe_routine_get(DRUPE_ROUTINE_GEMM, type, &provider)) return false;
    return largest <= (provider->narrow ? (size_t)INT_MAX : (size_t)INT64_MAX);
}

/* out = matrix times vector; `rows` and `columns` are those of the product, the vector's elements lie
 * `stride` apart. */
static void times_vector(drupe_blas_type type, size_t rows, size_t columns, drupe_matrix a,
                         const void *vector, size_t stride, void *out)
{
    gemv_fn *gemv = (gemv_fn *)drupe_routine_get(DRUPE_ROUTINE_GEMV, type, NULL);
    const number one = number_of(type, 1), zero = number_of(type, 0);
    const drupe_fint m = (drupe_fint)(a.transposed ? rows : columns), step = 1;
    const drupe_fint n = (drupe_fint)(a.transposed ? columns : rows);
    const drupe_fint ld = (drupe_fint)a.ld, apart = (drupe_fint)stride;
    gemv(a.transposed ? "N" : "T", &m, &n, &one, a.data, &ld, vector, &apart, &zero, out, &step, 1);
}

/* Square tiles, since one side of the copy goes down columns. */
#define MIRROR_TILE 32

/* The upper triangle of a symmetric matrix from its lower one, in row-major order. */
static void mirror(char *out, size_t n, size_t size)
{
    for (size_t top = 0; top < n; top += MIRROR_TILE)
        for (size_t left = top; left < n; left += MIRROR_TILE)
            for (size_t i = top; i < n && i < top + MIRROR_TILE; i++)
                for (size_t j = left > i ? left : i + 1; j < n && j < left + MIRROR_TILE; j++)
                    memcpy(out + (i * n + j) * size, out + (j * n + i) * size, size);
}

/* out = a times its transpose. The upper triangle in column-major order is the lower one in row-major order.
 */
static void times_itself(drupe_blas_type type, size_t m, size_t k, drupe_matrix a, void *out)
{
    syrk_fn *syrk = (syrk_fn *)drupe_routine_get(DRUPE_ROUTINE_SYRK, type, NULL);
    const number one = number_of(type, 1), zero = number_of(type, 0);
    const drupe_fint n = (drupe_fint)m, inner = (drupe_fint)k, ld = (drupe_fint)a.ld;
    syrk("U", a.transposed ? "N" : "T", &n, &inner, &one, a.data, &ld, &zero, out, &n, 1, 1);
    mirror(out, m, drupe_blas_size(type));
}

void drupe_blas_matmul(drupe_blas_type type, size_t m, size_t n, size_t k, drupe_matrix a, drupe_matrix b,
                       void *out)
{
    if (n == 1) {
        times_vector(type, m, k, a, b.data, b.transposed ? 1 : b.ld, out);
        return;
    }
    if (m == 1) {
        b.transposed = !b.transposed;
        times_vector(type, n, k, b, a.data, a.transposed ? a.ld : 1, out);
        return;
    }
    if (m == n && a.data == b.data && a.ld == b.ld && a.transposed != b.transposed) {
        times_itself(type, m, k, a, out);
        return;
    }
    gemm_fn *gemm = (gemm_fn *)drupe_routine_get(DRUPE_ROUTINE_GEMM, type, NULL);
    const number one = number_of(type, 1), zero = number_of(type, 0);
    const drupe_fint rows = (drupe_fint)n, columns = (drupe_fint)m, inner = (drupe_fint)k;
    const drupe_fint lda = (drupe_fint)a.ld, ldb = (drupe_fint)b.ld;
    gemm(b.transposed ? "T" : "N", a.transposed ? "T" : "N", &rows, &columns, &inner, &one, b.data, &ldb,
         a.data, &lda, &zero, out, &rows, 1, 1);
}
