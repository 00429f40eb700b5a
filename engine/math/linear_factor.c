/* Linear systems and factorisations without iteration: LU, Cholesky, QR.
 *
 * Matrices are transposed into work memory, in the column-major order of LAPACK, so that results are those
 * that NumPy has of the same library. */
#include "math/linear.h"
#include <float.h>
#include <math.h>
#include <string.h>

typedef void getrf_fn(const drupe_fint *m, const drupe_fint *n, void *a, const drupe_fint *lda, void *pivots,
                      drupe_fint *info);
typedef void getrs_fn(const char *trans, const drupe_fint *n, const drupe_fint *nrhs, const void *a,
                      const drupe_fint *lda, const void *pivots, void *b, const drupe_fint *ldb,
                      drupe_fint *info, size_t ltrans);
typedef void getri_fn(const drupe_fint *n, void *a, const drupe_fint *lda, const void *pivots, void *work,
                      const drupe_fint *lwork, drupe_fint *info);
typedef void potrf_fn(const char *uplo, const drupe_fint *n, void *a, const drupe_fint *lda, drupe_fint *info,
                      size_t luplo);
typedef void geqrf_fn(const drupe_fint *m, const drupe_fint *n, void *a, const drupe_fint *lda, void *tau,
                      void *work, const drupe_fint *lwork, drupe_fint *info);
typedef void orgqr_fn(const drupe_fint *m, const drupe_fint *n, const drupe_fint *k, void *a,
                      const drupe_fint *lda, const void *tau, void *work, const drupe_fint *lwork,
                      drupe_fint *info);

enum { SLOT_A, SLOT_B, SLOT_PIVOTS, SLOT_WORK, SLOT_TAU };

static void *slot(const drupe_linear_one *one, int number, size_t bytes)
{
    return drupe_linear_slot(one->scratch, number, bytes);
}

/* The LU factors of a matrix, in a slot as their pivots are. */
typedef struct factors {
    void *a, *pivots;
    int64_t info; /* as LAPACK says */
    const drupe_provider *provider;
} factors;

static drupe_linear_outcome factor(const drupe_linear_one *one, factors *f)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type);
    const drupe_fint n = (drupe_fint)l->n;
    drupe_fint told = 0;
    getrf_fn *getrf = (getrf_fn *)drupe_routine_get(DRUPE_ROUTINE_GETRF, l->type, &f->provider);
    f->info = 0;
    f->a = slot(one, SLOT_A, l->n * l->n * size);
    f->pivots = slot(one, SLOT_PIVOTS, l->n * sizeof(drupe_fint));
    if (!f->a || !f->pivots) return LINEAR_NO_MEMORY;
    if (l->n == 0) return LINEAR_GOOD;
    drupe_linear_transpose(one->a, l->n, l->n, size, f->a);
    getrf(&n, &n, f->a, &n, f->pivots, &told);
    f->info = drupe_provider_int(f->provider, &told, 0);
    return f->info < 0 ? LINEAR_REFUSED : LINEAR_GOOD;
}

drupe_linear_outcome drupe_linear_solve(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type);
    const drupe_fint n = (drupe_fint)l->n, k = (drupe_fint)l->k;
    drupe_fint told = 0;
    factors f;
    if (l->n == 0) return LINEAR_GOOD;
    const drupe_linear_outcome outcome = factor(one, &f);
    if (outcome != LINEAR_GOOD) return outcome;
    if (f.info > 0) return LINEAR_SINGULAR;
    if (l->k == 0) return LINEAR_GOOD;
    void *b = l->k == 1 ? one->out[0] : slot(one, SLOT_B, l->n * l->k * size);
    if (!b) return LINEAR_NO_MEMORY;
    drupe_linear_transpose(one->b, l->n, l->k, size, b);
    getrs_fn *getrs = (getrs_fn *)drupe_routine_get(DRUPE_ROUTINE_GETRS, l->type, NULL);
    getrs("N", &n, &k, f.a, &n, f.pivots, b, &n, &told, 1);
    if (l->k > 1) drupe_linear_transpose(b, l->k, l->n, size, one->out[0]);
    return drupe_provider_int(f.provider, &told, 0) ? LINEAR_REFUSED : LINEAR_GOOD;
}

drupe_linear_outcome drupe_linear_inv(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const drupe_fint n = (drupe_fint)l->n, query = -1;
    double first[2] = {0};
    drupe_fint told = 0;
    factors f;
    if (l->n == 0) return LINEAR_GOOD;
    const drupe_linear_outcome outcome = factor(one, &f);
    if (outcome != LINEAR_GOOD) return outcome;
    if (f.info > 0) return LINEAR_SINGULAR;
    getri_fn *getri = (getri_fn *)drupe_routine_get(DRUPE_ROUTINE_GETRI, l->type, NULL);
    getri(&n, f.a, &n, f.pivots, first, &query, &told);
    const drupe_fint length = drupe_linear_wanted(l->type, first);
    void *work = slot(one, SLOT_WORK, (size_t)length * drupe_blas_size(l->type));
    if (!work) return LINEAR_NO_MEMORY;
    told = 0;
    getri(&n, f.a, &n, f.pivots, work, &length, &told);
    drupe_linear_transpose(f.a, l->n, l->n, drupe_blas_size(l->type), one->out[0]);
    const int64_t info = drupe_provider_int(f.provider, &told, 0);
    return info > 0 ? LINEAR_SINGULAR : info < 0 ? LINEAR_REFUSED : LINEAR_GOOD;
}

/* --- Determinants --------------------------------------------------------------------------------------- */

/* A real or complex number, parts[1] being 0 for a real one. */
typedef struct pair {
    double parts[2];
} pair;

static pair diagonal(drupe_blas_type type, const void *a, size_t n, size_t i)
{
    const size_t at = i * (n + 1);
    switch (type) {
    case DRUPE_BLAS_FLOAT: return (pair){{((const float *)a)[at], 0}};
    case DRUPE_BLAS_DOUBLE: return (pair){{((const double *)a)[at], 0}};
    case DRUPE_BLAS_CFLOAT: return (pair){{((const float *)a)[2 * at], ((const float *)a)[2 * at + 1]}};
    default: return (pair){{((const double *)a)[2 * at], ((const double *)a)[2 * at + 1]}};
    }
}

static void store(drupe_blas_type type, void *out, pair x)
{
    const int parts = drupe_blas_complex(type) ? 2 : 1;
    for (int i = 0; i < parts; i++) {
        if (drupe_blas_real_size(type) == 4)
            ((float *)out)[i] = (float)x.parts[i];
        else
            ((double *)out)[i] = x.parts[i];
    }
}

static pair times(pair x, pair y)
{
    return (pair){{x.parts[0] * y.parts[0] - x.parts[1] * y.parts[1],
                   x.parts[0] * y.parts[1] + x.parts[1] * y.parts[0]}};
}

static pair times_real(drupe_blas_type type, pair x, pair y)
{
    return drupe_blas_complex(type) ? times(x, y) : (pair){{x.parts[0] * y.parts[0], 0}};
}

/* What the diagonal's product begins with: 0 for a singular matrix, -1 if the rows were exchanged an odd
 * number of times, else 1. */
static pair first_factor(const factors *f, size_t n)
{
    bool odd = false;
    for (size_t i = 0; i < n; i++) odd ^= drupe_provider_int(f->provider, f->pivots, i) != (int64_t)i + 1;
    return (pair){{f->info > 0 ? 0 : odd ? -1 : 1, 0}};
}

/* The product is kept near 1, with its exponent apart, so that it overflows only at the end. */
drupe_linear_outcome drupe_linear_det(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    factors f;
    const drupe_linear_outcome outcome = factor(one, &f);
    if (outcome != LINEAR_GOOD) return outcome;
    pair product = first_factor(&f, l->n);
    int64_t exponent = 0;
    for (size_t i = 0; f.info == 0 && i < l->n; i++) {
        product = times_real(l->type, product, diagonal(l->type, f.a, l->n, i));
        const double largest = fmax(fabs(product.parts[0]), fabs(product.parts[1]));
        if (!isfinite(largest) || largest == 0) continue;
        int power;
        frexp(largest, &power);
        for (int p = 0; p < 2; p++) product.parts[p] = ldexp(product.parts[p], -power);
        exponent += power;
    }
    const int64_t most = 10000;
    exponent = exponent > most ? most : exponent < -most ? -most : exponent;
    for (int p = 0; p < 2; p++) product.parts[p] = ldexp(product.parts[p], (int)exponent);
    store(l->type, one->out[0], product);
    return LINEAR_GOOD;
}

drupe_linear_outcome drupe_linear_slogdet(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    factors f;
    const drupe_linear_outcome outcome = factor(one, &f);
    if (outcome != LINEAR_GOOD) return outcome;
    pair sign = first_factor(&f, l->n), logarithm = {{f.info > 0 ? -INFINITY : 0, 0}};
    for (size_t i = 0; f.info == 0 && i < l->n; i++) {
        const pair x = diagonal(l->type, f.a, l->n, i);
        const double size = hypot(x.parts[0], x.parts[1]);
        sign = times_real(l->type, sign, (pair){{x.parts[0] / size, x.parts[1] / size}});
        logarithm.parts[0] += log(size);
    }
    store(l->type, one->out[0], sign);
    store(drupe_blas_real_size(l->type) == 4 ? DRUPE_BLAS_FLOAT : DRUPE_BLAS_DOUBLE, one->out[1], logarithm);
    return LINEAR_GOOD;
}

/* --- Cholesky ------------------------------------------------------------------------------------------- */

/* In place without a transposition: what is lower in row-major order is upper in column-major order, and the
 * conjugation that a transposition lacks falls on both factors. */
drupe_linear_outcome drupe_linear_cholesky(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type), n = l->n;
    const bool upper = l->flags & DRUPE_LINEAR_UPPER;
    const drupe_fint order = (drupe_fint)n;
    const drupe_provider *provider;
    potrf_fn *potrf = (potrf_fn *)drupe_routine_get(DRUPE_ROUTINE_POTRF, l->type, &provider);
    drupe_fint told = 0;
    char *out = one->out[0];
    if (n == 0) return LINEAR_GOOD;
    memcpy(out, one->a, n * n * size);
    potrf(upper ? "L" : "U", &order, out, &order, &told, 1);
    const int64_t info = drupe_provider_int(provider, &told, 0);
    for (size_t i = 0; i < n; i++) {
        if (upper)
            memset(out + i * n * size, 0, i * size);
        else
            memset(out + (i * n + i + 1) * size, 0, (n - i - 1) * size);
    }
    return info > 0 ? LINEAR_NOT_POSITIVE : info < 0 ? LINEAR_REFUSED : LINEAR_GOOD;
}

/* --- QR ------------------------------------------------------------------------------------------------- */

/* r[rows][n] from the upper triangle of the factored matrix. */
static void r_take(const drupe_linear *l, const char *a, size_t rows, char *out)
{
    const size_t size = drupe_blas_size(l->type);
    memset(out, 0, rows * l->n * size);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = i; j < l->n; j++)
            memcpy(out + (i * l->n + j) * size, a + (j * l->m + i) * size, size);
}

static drupe_linear_outcome q_make(const drupe_linear_one *one, void *a, const void *tau, size_t columns,
                                   const drupe_provider *provider)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type), least = l->m < l->n ? l->m : l->n;
    const drupe_fint m = (drupe_fint)l->m, n = (drupe_fint)columns, k = (drupe_fint)least, query = -1;
    double first[2] = {0};
    drupe_fint told = 0;
    orgqr_fn *orgqr = (orgqr_fn *)drupe_routine_get(DRUPE_ROUTINE_ORGQR, l->type, NULL);
    if (columns > l->n) {
        void *more = slot(one, SLOT_B, l->m * columns * size);
        if (!more) return LINEAR_NO_MEMORY;
        memcpy(more, a, l->m * l->n * size);
        a = more;
    }
    if (columns == 0) return LINEAR_GOOD;
    orgqr(&m, &n, &k, a, &m, tau, first, &query, &told);
    const drupe_fint length = drupe_linear_wanted(l->type, first);
    void *work = slot(one, SLOT_WORK, (size_t)length * size);
    if (!work) return LINEAR_NO_MEMORY;
    told = 0;
    orgqr(&m, &n, &k, a, &m, tau, work, &length, &told);
    drupe_linear_transpose(a, columns, l->m, size, one->out[0]);
    return drupe_provider_int(provider, &told, 0) ? LINEAR_REFUSED : LINEAR_GOOD;
}

drupe_linear_outcome drupe_linear_qr(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type), least = l->m < l->n ? l->m : l->n;
    const bool full = l->flags & DRUPE_LINEAR_FULL, values = l->flags & DRUPE_LINEAR_VALUES;
    const drupe_fint m = (drupe_fint)l->m, n = (drupe_fint)l->n, query = -1;
    const drupe_provider *provider;
    double first[2] = {0};
    drupe_fint told = 0;
    geqrf_fn *geqrf = (geqrf_fn *)drupe_routine_get(DRUPE_ROUTINE_GEQRF, l->type, &provider);
    void *a = slot(one, SLOT_A, l->m * l->n * size), *tau = slot(one, SLOT_TAU, least * size);
    if (!a || !tau) return LINEAR_NO_MEMORY;
    if (least > 0) {
        drupe_linear_transpose(one->a, l->m, l->n, size, a);
        geqrf(&m, &n, a, &m, tau, first, &query, &told);
        const drupe_fint length = drupe_linear_wanted(l->type, first);
        void *work = slot(one, SLOT_WORK, (size_t)length * size);
        if (!work) return LINEAR_NO_MEMORY;
        told = 0;
        geqrf(&m, &n, a, &m, tau, work, &length, &told);
        if (drupe_provider_int(provider, &told, 0)) return LINEAR_REFUSED;
    }
    const size_t rows = full ? l->m : least;
    char *r = one->out[values ? 0 : 1];
    memset(r, 0, rows * l->n * size);
    if (least > 0) r_take(l, a, least, r);
    return values || l->m == 0 ? LINEAR_GOOD : q_make(one, a, tau, rows, provider);
}
