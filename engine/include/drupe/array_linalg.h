/* Linear algebra on arrays, and who computes it.
 *
 * It is work of the arrays' queue like any other. What cannot be computed fails that work with
 * DRUPE_E_LINALG: a matrix that is singular, or not positive definite, or an iteration that does not
 * converge.
 *
 * Threads: as in drupe/array.h. */
#ifndef DRUPE_ARRAY_LINALG_H
#define DRUPE_ARRAY_LINALG_H

#include "drupe/array.h"

/* Each takes stacks of matrices a[..., m, n]. Element types are those of the operands unless it says
 * otherwise: float32, float64, complex64 or complex128. */
typedef enum drupe_linear_op {
    DRUPE_LINEAR_SOLVE,    /* a[n][n], b[n][k] -> x[n][k] */
    DRUPE_LINEAR_INV,      /* a[n][n] -> x[n][n] */
    DRUPE_LINEAR_DET,      /* a[n][n] -> one number */
    DRUPE_LINEAR_SLOGDET,  /* a[n][n] -> sign, real logarithm of the absolute value */
    DRUPE_LINEAR_CHOLESKY, /* a[n][n] -> l[n][n], or u with UPPER */
    DRUPE_LINEAR_QR,       /* a[m][n] -> q[m][p], r[p][n]; p = min(m, n), m with FULL. VALUES: r alone */
    DRUPE_LINEAR_SVD,      /* a[m][n] -> u[m][p], real s[min(m, n)], vh[q][n]; p = q = min(m, n), m and n with
                              FULL. VALUES: s alone */
    DRUPE_LINEAR_EIGH,     /* a[n][n] -> real w[n], v[n][n]. VALUES: w alone. UPPER: that triangle is read */
    DRUPE_LINEAR_EIG,      /* a[n][n] -> complex w[n], v[n][n]. VALUES: w alone */
    DRUPE_LINEAR_LSTSQ,    /* a[m][n], b[m][k] -> x[n][k], real squares[k], int64 rank, real s[min(m, n)] */
    DRUPE_LINEAR_COUNT
} drupe_linear_op;

enum { DRUPE_LINEAR_UPPER = 1, DRUPE_LINEAR_FULL = 2, DRUPE_LINEAR_VALUES = 4 };

/* "solve" and so on; NULL for a number that is none. */
DRUPE_API const char *drupe_array_linear_name(drupe_linear_op op);

#define DRUPE_LINEAR_RESULTS 4

/* Compute `op` of `in` (as many as it takes, of one type, queue and stack) into `out`, which must be empty;
 * *count says how many there are. `cutoff` is for LSTSQ: singular values below it times the largest count as
 * 0; a negative one stands for the type's precision. DRUPE_E_UNAVAILABLE when no library computes it. */
DRUPE_API drupe_status drupe_array_linear(drupe_linear_op op, unsigned flags, double cutoff,
                                          const drupe_array *const *in, drupe_array out[DRUPE_LINEAR_RESULTS],
                                          int *count) DRUPE_MUST_CHECK;

/* Who serves an operation where the host can address the memory; texts are static. */
typedef struct drupe_provider_row {
    const char *operation; /* "matmul", "solve", ... */
    drupe_dtype dtype;
    const char *provider; /* "OpenBLAS of NumPy", "Drupe", ...; NULL: nobody */
    const char *library;  /* a file, or "" */
} drupe_provider_row;
/* Row `index`, or false behind the last one. Opens the libraries. */
DRUPE_API bool drupe_array_provider(size_t index, drupe_provider_row *row);

/* A library with BLAS and LAPACK to try before the system's, and what people call it; both are copied. The
 * first four count, and none after the first use. */
DRUPE_API void drupe_array_provider_suggest(const char *path, const char *name);

#endif
