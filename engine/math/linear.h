/* Linear algebra on stacks of matrices in row-major order, by the LAPACK that math/provider.h has found. */
#ifndef DRUPE_MATH_LINEAR_H
#define DRUPE_MATH_LINEAR_H

#include "drupe/array_linalg.h"
#include "math/provider.h"

typedef struct drupe_linear {
    drupe_linear_op op;
    unsigned flags;
    drupe_blas_type type; /* of the inputs */
    size_t count;         /* matrices in the stack */
    size_t m, n, k;       /* rows and columns of `a`, columns of `b` */
    double cutoff;        /* of LSTSQ */
} drupe_linear;

/* One result: its dimensions behind those of the stack, and its element type. */
typedef enum drupe_linear_element {
    DRUPE_LINEAR_SAME,
    DRUPE_LINEAR_REAL,
    DRUPE_LINEAR_COMPLEX,
    DRUPE_LINEAR_INT64
} drupe_linear_element;
typedef struct drupe_linear_result {
    int ndim;
    size_t shape[2];
    drupe_linear_element element;
} drupe_linear_result;
/* Static: "solve" and so on. */
const char *drupe_linear_name(drupe_linear_op op);
/* What an operation gives; returns how many results. */
int drupe_linear_results(const drupe_linear *linear, drupe_linear_result results[DRUPE_LINEAR_RESULTS]);
/* 1 or 2. */
int drupe_linear_inputs(drupe_linear_op op);
/* The provider, or NULL with the error DRUPE_E_UNAVAILABLE, which says what to install. */
const drupe_provider *drupe_linear_provider(drupe_linear_op op, drupe_blas_type type);

/* Whether the provider's integers can count dimensions and work memory; DRUPE_E_UNSUPPORTED says what has
 * larger ones. There is a provider. */
drupe_status drupe_linear_check(const drupe_linear *linear) DRUPE_MUST_CHECK;

/* Compute it: `pointers` are the inputs, then the results, all C-contiguous; `linear` points to a
 * drupe_linear. DRUPE_E_LINALG when a matrix is singular, not positive definite, or an iteration does not
 * converge. drupe_linear_check() was content. */
drupe_status drupe_linear_run(void *const *pointers, const void *linear);

/* --- For the operations of linear_factor.c and linear_spectrum.c -----------------------------------------
 */

/* Memory of one thread, which grows and is kept from one matrix to the next. */
#define DRUPE_LINEAR_SLOTS 8
typedef struct drupe_linear_scratch {
    void *slots[DRUPE_LINEAR_SLOTS];
    size_t sizes[DRUPE_LINEAR_SLOTS];
} drupe_linear_scratch;

typedef enum drupe_linear_outcome {
    LINEAR_GOOD,
    LINEAR_NO_MEMORY,
    LINEAR_SINGULAR,
    LINEAR_NOT_POSITIVE,
    LINEAR_NOT_FINITE,
    LINEAR_NO_CONVERGENCE,
    LINEAR_REFUSED /* an argument: a defect of ours */
} drupe_linear_outcome;

typedef struct drupe_linear_one {
    const drupe_linear *linear;
    drupe_linear_scratch *scratch;
    const void *a, *b;
    void *out[DRUPE_LINEAR_RESULTS];
} drupe_linear_one;
typedef drupe_linear_outcome drupe_linear_fn(const drupe_linear_one *one);

drupe_linear_fn drupe_linear_solve, drupe_linear_inv, drupe_linear_det, drupe_linear_slogdet,
    drupe_linear_cholesky, drupe_linear_qr;
drupe_linear_fn drupe_linear_svd, drupe_linear_eigh, drupe_linear_eig, drupe_linear_lstsq;

/* Memory for `bytes`, aligned for any type, or NULL. It stays with the slot. */
void *drupe_linear_slot(drupe_linear_scratch *scratch, int slot, size_t bytes);
/* to[j][i] = from[i][j] of a matrix of `rows` times `columns` elements of `size` bytes. */
void drupe_linear_transpose(const void *from, size_t rows, size_t columns, size_t size, void *to);
/* The size that a routine asks for in the first element of its work memory. */
drupe_fint drupe_linear_wanted(drupe_blas_type type, const void *work);

#endif
