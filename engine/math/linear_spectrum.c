/* Singular values, eigenvalues, least squares.
 *
 * Real and complex routines differ in a few arguments, so each is called at two places. */
#include "math/linear.h"
#include <math.h>
#include <string.h>

typedef void gesdd_real_fn(const char *jobz, const drupe_fint *m, const drupe_fint *n, void *a,
                           const drupe_fint *lda, void *s, void *u, const drupe_fint *ldu, void *vt,
                           const drupe_fint *ldvt, void *work, const drupe_fint *lwork, void *iwork,
                           drupe_fint *info, size_t ljobz);
typedef void gesdd_complex_fn(const char *jobz, const drupe_fint *m, const drupe_fint *n, void *a,
                              const drupe_fint *lda, void *s, void *u, const drupe_fint *ldu, void *vt,
                              const drupe_fint *ldvt, void *work, const drupe_fint *lwork, void *rwork,
                              void *iwork, drupe_fint *info, size_t ljobz);
typedef void syevd_fn(const char *jobz, const char *uplo, const drupe_fint *n, void *a, const drupe_fint *lda,
                      void *w, void *work, const drupe_fint *lwork, void *iwork, const drupe_fint *liwork,
                      drupe_fint *info, size_t ljobz, size_t luplo);
typedef void heevd_fn(const char *jobz, const char *uplo, const drupe_fint *n, void *a, const drupe_fint *lda,
                      void *w, void *work, const drupe_fint *lwork, void *rwork, const drupe_fint *lrwork,
                      void *iwork, const drupe_fint *liwork, drupe_fint *info, size_t ljobz, size_t luplo);
typedef void geev_real_fn(const char *jobvl, const char *jobvr, const drupe_fint *n, void *a,
                          const drupe_fint *lda, void *wr, void *wi, void *vl, const drupe_fint *ldvl,
                          void *vr, const drupe_fint *ldvr, void *work, const drupe_fint *lwork,
                          drupe_fint *info, size_t ljobvl, size_t ljobvr);
typedef void geev_complex_fn(const char *jobvl, const char *jobvr, const drupe_fint *n, void *a,
                             const drupe_fint *lda, void *w, void *vl, const drupe_fint *ldvl, void *vr,
                             const drupe_fint *ldvr, void *work, const drupe_fint *lwork, void *rwork,
                             drupe_fint *info, size_t ljobvl, size_t ljobvr);
typedef void gelsd_real_fn(const drupe_fint *m, const drupe_fint *n, const drupe_fint *nrhs, void *a,
                           const drupe_fint *lda, void *b, const drupe_fint *ldb, void *s, const void *rcond,
                           drupe_fint *rank, void *work, const drupe_fint *lwork, void *iwork,
                           drupe_fint *info);
typedef void gelsd_complex_fn(const drupe_fint *m, const drupe_fint *n, const drupe_fint *nrhs, void *a,
                              const drupe_fint *lda, void *b, const drupe_fint *ldb, void *s,
                              const void *rcond, drupe_fint *rank, void *work, const drupe_fint *lwork,
                              void *rwork, void *iwork, drupe_fint *info);

enum { SLOT_A, SLOT_WORK, SLOT_RWORK, SLOT_IWORK, SLOT_LEFT, SLOT_RIGHT, SLOT_VALUES };

static void *slot(const drupe_linear_one *one, int number, size_t bytes)
{
    return drupe_linear_slot(one->scratch, number, bytes);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Whether all `n` numbers, real and imaginary parts alike, are finite. */
static bool finite_all(drupe_blas_type type, const void *a, size_t n)
{
    if (drupe_blas_complex(type)) n *= 2;
    if (drupe_blas_real_size(type) == 4) {
        for (size_t i = 0; i < n; i++)
            if (!isfinite(((const float *)a)[i])) return false;
    } else {
        for (size_t i = 0; i < n; i++)
            if (!isfinite(((const double *)a)[i])) return false;
    }
    return true;
}

/* The matrix in its slot, in column-major order. */
static void *a_take(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type);
    void *a = slot(one, SLOT_A, l->m * l->n * size);
    if (a) drupe_linear_transpose(one->a, l->m, l->n, size, a);
    return a;
}

/* --- Singular values ------------------------------------------------------------------------------------ */

typedef struct svd_call {
    const char *job;
    drupe_fint m, n, p, q; /* columns of u, rows of vh */
    void *a, *s, *u, *vh, *rwork, *iwork;
} svd_call;

static drupe_fint gesdd(drupe_blas_type type, const svd_call *c, void *work, drupe_fint lwork)
{
    const drupe_routine_fn fn = drupe_routine_get(DRUPE_ROUTINE_GESDD, type, NULL);
    const drupe_fint least = 1, *ldvh = c->q ? &c->q : &least;
    drupe_fint told = 0;
    if (drupe_blas_complex(type))
        ((gesdd_complex_fn *)fn)(c->job, &c->m, &c->n, c->a, &c->m, c->s, c->u, &c->m, c->vh, ldvh, work,
                                 &lwork, c->rwork, c->iwork, &told, 1);
    else
        ((gesdd_real_fn *)fn)(c->job, &c->m, &c->n, c->a, &c->m, c->s, c->u, &c->m, c->vh, ldvh, work, &lwork,
                              c->iwork, &told, 1);
    return told;
}

/* Without singular values u and vh are orthogonal for the asking. */
static void identity(const drupe_linear *l, void *out, size_t n)
{
    const size_t size = drupe_blas_size(l->type), real = drupe_blas_real_size(l->type);
    memset(out, 0, n * n * size);
    for (size_t i = 0; i < n; i++) {
        char *at = (char *)out + i * (n + 1) * size;
        if (real == 4)
            *(float *)at = 1;
        else
            *(double *)at = 1;
    }
}

drupe_linear_outcome drupe_linear_svd(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const size_t m = l->m, n = l->n, least = smaller(m, n), most = m > n ? m : n,
                 size = drupe_blas_size(l->type);
    const bool full = l->flags & DRUPE_LINEAR_FULL, values = l->flags & DRUPE_LINEAR_VALUES;
    const size_t p = values ? 0 : full ? m : least, q = values ? 0 : full ? n : least;
    double first[2] = {0};
    const drupe_provider *provider;
    (void)drupe_routine_get(DRUPE_ROUTINE_GESDD, l->type, &provider);
    if (least == 0) {
        if (p) identity(l, one->out[0], p);
        if (q) identity(l, one->out[2], q);
        return LINEAR_GOOD;
    }
    svd_call c = {values ? "N"
                  : full ? "A"
                         : "S",
                  (drupe_fint)m,
                  (drupe_fint)n,
                  (drupe_fint)p,
                  (drupe_fint)q,
                  a_take(one),
                  one->out[values ? 0 : 1],
                  slot(one, SLOT_LEFT, m * p * size),
                  slot(one, SLOT_RIGHT, q * n * size),
                  NULL,
                  slot(one, SLOT_IWORK, 8 * least * sizeof(drupe_fint))};
    if (drupe_blas_complex(l->type)) {
        const size_t long_one = 5 * least * least + 7 * least;
        const size_t other = 2 * most * least + 2 * least * least + least;
        c.rwork =
            slot(one, SLOT_RWORK, (long_one > other ? long_one : other) * drupe_blas_real_size(l->type));
    }
    if (!c.a || !c.u || !c.vh || !c.iwork || (drupe_blas_complex(l->type) && !c.rwork))
        return LINEAR_NO_MEMORY;
    (void)gesdd(l->type, &c, first, -1);
    const drupe_fint length = drupe_linear_wanted(l->type, first);
    void *work = slot(one, SLOT_WORK, (size_t)length * size);
    if (!work) return LINEAR_NO_MEMORY;
    const drupe_fint told = gesdd(l->type, &c, work, length);
    const int64_t info = drupe_provider_int(provider, &told, 0);
    if (!values) {
        drupe_linear_transpose(c.u, p, m, size, one->out[0]);
        drupe_linear_transpose(c.vh, n, q, size, one->out[2]);
    }
    /* Newer ones refuse NaN as an argument. */
    return info ? LINEAR_NO_CONVERGENCE : LINEAR_GOOD;
}

/* --- Eigenvalues of Hermitian matrices ------------------------------------------------------------------ */

typedef struct eigh_work {
    void *work, *rwork, *iwork;
    drupe_fint lwork, lrwork, liwork;
} eigh_work;

static drupe_fint eigh_call(const drupe_linear *l, void *a, void *w, const eigh_work *space)
{
    const drupe_routine_fn fn = drupe_routine_get(DRUPE_ROUTINE_SYEVD, l->type, NULL);
    const char *job = l->flags & DRUPE_LINEAR_VALUES ? "N" : "V";
    const char *half = l->flags & DRUPE_LINEAR_UPPER ? "U" : "L";
    const drupe_fint n = (drupe_fint)l->n;
    drupe_fint told = 0;
    if (drupe_blas_complex(l->type))
        ((heevd_fn *)fn)(job, half, &n, a, &n, w, space->work, &space->lwork, space->rwork, &space->lrwork,
                         space->iwork, &space->liwork, &told, 1, 1);
    else
        ((syevd_fn *)fn)(job, half, &n, a, &n, w, space->work, &space->lwork, space->iwork, &space->liwork,
                         &told, 1, 1);
    return told;
}

drupe_linear_outcome drupe_linear_eigh(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type), real = drupe_blas_real_size(l->type);
    const drupe_provider *provider;
    double first[2] = {0}, first_real = 0;
    drupe_fint first_int = 0;
    if (l->n == 0) return LINEAR_GOOD;
    (void)drupe_routine_get(DRUPE_ROUTINE_SYEVD, l->type, &provider);
    void *a = a_take(one);
    if (!a) return LINEAR_NO_MEMORY;
    eigh_work space = {first, &first_real, &first_int, -1, -1, -1};
    (void)eigh_call(l, a, one->out[0], &space);
    space.lwork = drupe_linear_wanted(l->type, first);
    space.liwork = drupe_provider_int(provider, &first_int, 0);
    space.lrwork = drupe_linear_wanted(real == 4 ? DRUPE_BLAS_FLOAT : DRUPE_BLAS_DOUBLE, &first_real);
    space.work = slot(one, SLOT_WORK, (size_t)space.lwork * size);
    space.rwork = slot(one, SLOT_RWORK, (size_t)space.lrwork * real);
    space.iwork = slot(one, SLOT_IWORK, (size_t)space.liwork * sizeof(drupe_fint));
    if (!space.work || !space.rwork || !space.iwork) return LINEAR_NO_MEMORY;
    const drupe_fint told = eigh_call(l, a, one->out[0], &space);
    if (!(l->flags & DRUPE_LINEAR_VALUES)) drupe_linear_transpose(a, l->n, l->n, size, one->out[1]);
    const int64_t info = drupe_provider_int(provider, &told, 0);
    return info > 0 ? LINEAR_NO_CONVERGENCE : info < 0 ? LINEAR_REFUSED : LINEAR_GOOD;
}

/* --- Eigenvalues of other matrices ---------------------------------------------------------------------- */

typedef struct eig_call {
    void *a, *w, *imaginary, *v, *rwork; /* a real routine gives two arrays of values */
} eig_call;

static drupe_fint geev(const drupe_linear *l, const eig_call *c, void *work, drupe_fint lwork)
{
    const drupe_routine_fn fn = drupe_routine_get(DRUPE_ROUTINE_GEEV, l->type, NULL);
    const char *job = l->flags & DRUPE_LINEAR_VALUES ? "N" : "V";
    const drupe_fint n = (drupe_fint)l->n;
    drupe_fint told = 0;
    if (drupe_blas_complex(l->type))
        ((geev_complex_fn *)fn)("N", job, &n, c->a, &n, c->w, c->v, &n, c->v, &n, work, &lwork, c->rwork,
                                &told, 1, 1);
    else
        ((geev_real_fn *)fn)("N", job, &n, c->a, &n, c->w, c->imaginary, c->v, &n, c->v, &n, work, &lwork,
                             &told, 1, 1);
    return told;
}

/* A pair of conjugate values has one column with the real and one with the imaginary parts of the vector of
 * the value whose imaginary part is positive. */
#define PAIRS(NAME, REAL)                                                                                    \
    static void NAME(size_t n, const REAL *real, const REAL *imaginary, const REAL *vectors, REAL *w,        \
                     REAL *v)                                                                                \
    {                                                                                                        \
        for (size_t j = 0; j < n; j++) {                                                                     \
            w[2 * j] = real[j];                                                                              \
            w[2 * j + 1] = imaginary[j];                                                                     \
        }                                                                                                    \
        for (size_t j = 0; v && j < n; j++) {                                                                \
            const bool first = imaginary[j] > 0 && j + 1 < n, second = imaginary[j] < 0 && j > 0;            \
            const REAL *a = vectors + (second ? j - 1 : j) * n, *b = a + n;                                  \
            for (size_t i = 0; i < n; i++) {                                                                 \
                v[2 * (i * n + j)] = a[i];                                                                   \
                v[2 * (i * n + j) + 1] = first ? b[i] : second ? -b[i] : 0;                                  \
            }                                                                                                \
        }                                                                                                    \
    }

PAIRS(pairs_float, float)
PAIRS(pairs_double, double)

static void eig_store(const drupe_linear_one *one, const eig_call *c)
{
    const drupe_linear *l = one->linear;
    void *v = l->flags & DRUPE_LINEAR_VALUES ? NULL : one->out[1];
    if (l->type == DRUPE_BLAS_FLOAT)
        pairs_float(l->n, c->w, c->imaginary, c->v, one->out[0], v);
    else if (l->type == DRUPE_BLAS_DOUBLE)
        pairs_double(l->n, c->w, c->imaginary, c->v, one->out[0], v);
    else if (v)
        drupe_linear_transpose(c->v, l->n, l->n, drupe_blas_size(l->type), v);
}

drupe_linear_outcome drupe_linear_eig(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type), real = drupe_blas_real_size(l->type), n = l->n;
    const bool is_complex = drupe_blas_complex(l->type);
    const drupe_provider *provider;
    double first[2] = {0};
    if (n == 0) return LINEAR_GOOD;
    if (!finite_all(l->type, one->a, n * n)) return LINEAR_NOT_FINITE;
    (void)drupe_routine_get(DRUPE_ROUTINE_GEEV, l->type, &provider);
    void *values = slot(one, SLOT_VALUES, 2 * n * size);
    eig_call c = {a_take(one), is_complex ? one->out[0] : values, (char *)values + n * size,
                  slot(one, SLOT_LEFT, n * n * size), slot(one, SLOT_RWORK, 2 * n * real)};
    if (!c.a || !values || !c.v || !c.rwork) return LINEAR_NO_MEMORY;
    (void)geev(l, &c, first, -1);
    const drupe_fint length = drupe_linear_wanted(l->type, first);
    void *work = slot(one, SLOT_WORK, (size_t)length * size);
    if (!work) return LINEAR_NO_MEMORY;
    const drupe_fint told = geev(l, &c, work, length);
    const int64_t info = drupe_provider_int(provider, &told, 0);
    if (info) return info > 0 ? LINEAR_NO_CONVERGENCE : LINEAR_REFUSED;
    eig_store(one, &c);
    return LINEAR_GOOD;
}

/* --- Least squares -------------------------------------------------------------------------------------- */

typedef struct lstsq_call {
    drupe_fint m, n, k, ldb;
    void *a, *b, *s, *rwork, *iwork;
    drupe_fint rank;
} lstsq_call;

static drupe_fint gelsd(const drupe_linear *l, lstsq_call *c, void *work, drupe_fint lwork)
{
    const drupe_routine_fn fn = drupe_routine_get(DRUPE_ROUTINE_GELSD, l->type, NULL);
    const float narrow = (float)l->cutoff;
    const void *cutoff =
        drupe_blas_real_size(l->type) == 4 ? (const void *)&narrow : (const void *)&l->cutoff;
    drupe_fint told = 0;
    c->rank = 0;
    if (drupe_blas_complex(l->type))
        ((gelsd_complex_fn *)fn)(&c->m, &c->n, &c->k, c->a, &c->m, c->b, &c->ldb, c->s, cutoff, &c->rank,
                                 work, &lwork, c->rwork, c->iwork, &told);
    else
        ((gelsd_real_fn *)fn)(&c->m, &c->n, &c->k, c->a, &c->m, c->b, &c->ldb, c->s, cutoff, &c->rank, work,
                              &lwork, c->iwork, &told);
    return told;
}

static double square_at(drupe_blas_type type, const void *b, size_t at)
{
    const size_t parts = drupe_blas_complex(type) ? 2 : 1;
    double sum = 0;
    for (size_t p = at * parts; p < (at + 1) * parts; p++) {
        const double x =
            drupe_blas_real_size(type) == 4 ? (double)((const float *)b)[p] : ((const double *)b)[p];
        sum += x * x;
    }
    return sum;
}

static void residual_store(const drupe_linear *l, void *out, size_t j, double sum)
{
    if (drupe_blas_real_size(l->type) == 4)
        ((float *)out)[j] = (float)sum;
    else
        ((double *)out)[j] = sum;
}

/* Without rows or without unknowns: x is 0, and all of b is left over. */
static void lstsq_store_nothing(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    memset(one->out[0], 0, l->n * l->k * drupe_blas_size(l->type));
    for (size_t j = 0; j < l->k; j++) {
        double sum = 0;
        for (size_t i = 0; i < l->m; i++) sum += square_at(l->type, one->b, i * l->k + j);
        residual_store(l, one->out[1], j, sum);
    }
}

/* x[n][k], and of each column what is left over. */
static void lstsq_store(const drupe_linear_one *one, const lstsq_call *c)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type), ldb = (size_t)c->ldb;
    for (size_t j = 0; j < l->k; j++) {
        double sum = 0;
        for (size_t i = 0; i < l->n; i++)
            memcpy((char *)one->out[0] + (i * l->k + j) * size, (const char *)c->b + (j * ldb + i) * size,
                   size);
        for (size_t i = l->n; i < l->m; i++) sum += square_at(l->type, c->b, j * ldb + i);
        residual_store(l, one->out[1], j, sum);
    }
}

drupe_linear_outcome drupe_linear_lstsq(const drupe_linear_one *one)
{
    const drupe_linear *l = one->linear;
    const size_t size = drupe_blas_size(l->type), rows = l->m > l->n ? l->m : l->n;
    const drupe_provider *provider;
    double first[2] = {0}, first_real = 0;
    drupe_fint first_int = 0;
    memset(one->out[2], 0, sizeof(int64_t));
    if (smaller(l->m, l->n) == 0) {
        lstsq_store_nothing(one);
        return LINEAR_GOOD;
    }
    (void)drupe_routine_get(DRUPE_ROUTINE_GELSD, l->type, &provider);
    /* LAPACK takes one column at least; rank and singular values are wanted without any, too. */
    const size_t k = l->k ? l->k : 1;
    lstsq_call c = {(drupe_fint)l->m, (drupe_fint)l->n,
                    (drupe_fint)k,    (drupe_fint)rows,
                    a_take(one),      slot(one, SLOT_LEFT, rows * k * size),
                    one->out[3],      &first_real,
                    &first_int,       0};
    if (!c.a || !c.b) return LINEAR_NO_MEMORY;
    if (l->k == 0) memset(c.b, 0, rows * size);
    for (size_t j = 0; j < l->k; j++)
        for (size_t i = 0; i < rows; i++) {
            char *to = (char *)c.b + (j * rows + i) * size;
            if (i < l->m)
                memcpy(to, (const char *)one->b + (i * l->k + j) * size, size);
            else
                memset(to, 0, size);
        }
    (void)gelsd(l, &c, first, -1);
    const drupe_fint length = drupe_linear_wanted(l->type, first);
    void *work = slot(one, SLOT_WORK, (size_t)length * size);
    c.iwork =
        slot(one, SLOT_IWORK, (size_t)(drupe_provider_int(provider, &first_int, 0) + 1) * sizeof(drupe_fint));
    c.rwork = slot(one, SLOT_RWORK, (size_t)drupe_linear_wanted(l->type, &first_real) * sizeof(double));
    if (!work || !c.iwork || !c.rwork) return LINEAR_NO_MEMORY;
    const drupe_fint told = gelsd(l, &c, work, length);
    const int64_t info = drupe_provider_int(provider, &told, 0),
                  rank = drupe_provider_int(provider, &c.rank, 0);
    memcpy(one->out[2], &rank, sizeof rank);
    lstsq_store(one, &c);
    return info ? LINEAR_NO_CONVERGENCE : LINEAR_GOOD;
}
