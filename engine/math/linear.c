/* The loop over the matrices of a stack. Small ones are shared out among processors; large ones are computed
 * one by one, since the library has threads of its own. */
#include "math/linear.h"
#include "base/base.h"
#include "base/parallel.h"
#include "math/scratch.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 64    /* rows, up to which libraries work on one thread */
#define GRAIN 20000 /* multiplications that a part should have */

typedef struct row {
    const char *name;
    int inputs;
    drupe_linear_fn *fn;
    drupe_routine routine; /* the one that decides who serves it */
} row;

static const row rows[DRUPE_LINEAR_COUNT] = {
    [DRUPE_LINEAR_SOLVE] = {"solve", 2, drupe_linear_solve, DRUPE_ROUTINE_GETRS},
    [DRUPE_LINEAR_INV] = {"inv", 1, drupe_linear_inv, DRUPE_ROUTINE_GETRI},
    [DRUPE_LINEAR_DET] = {"det", 1, drupe_linear_det, DRUPE_ROUTINE_GETRF},
    [DRUPE_LINEAR_SLOGDET] = {"slogdet", 1, drupe_linear_slogdet, DRUPE_ROUTINE_GETRF},
    [DRUPE_LINEAR_CHOLESKY] = {"cholesky", 1, drupe_linear_cholesky, DRUPE_ROUTINE_POTRF},
    [DRUPE_LINEAR_QR] = {"qr", 1, drupe_linear_qr, DRUPE_ROUTINE_GEQRF},
    [DRUPE_LINEAR_SVD] = {"svd", 1, drupe_linear_svd, DRUPE_ROUTINE_GESDD},
    [DRUPE_LINEAR_EIGH] = {"eigh", 1, drupe_linear_eigh, DRUPE_ROUTINE_SYEVD},
    [DRUPE_LINEAR_EIG] = {"eig", 1, drupe_linear_eig, DRUPE_ROUTINE_GEEV},
    [DRUPE_LINEAR_LSTSQ] = {"lstsq", 2, drupe_linear_lstsq, DRUPE_ROUTINE_GELSD},
};

const char *drupe_linear_name(drupe_linear_op op)
{
    return rows[op].name;
}

int drupe_linear_inputs(drupe_linear_op op)
{
    return rows[op].inputs;
}

const drupe_provider *drupe_linear_provider(drupe_linear_op op, drupe_blas_type type)
{
    const drupe_provider *provider;
    if (!drupe_routine_get(rows[op].routine, type, &provider)) {
        const char *set = getenv("DRUPE_BLAS");
        (void)drupe_error_set(
            DRUPE_E_UNAVAILABLE,
            "%s needs LAPACK, and no library with it was found%s%s%s: install NumPy from PyPI, "
            "which contains one, or the package libopenblas0",
            rows[op].name, set ? " (DRUPE_BLAS is " : "", set ? set : "", set ? ")" : "");
    }
    return provider;
}

/* The largest number that LAPACK computes of the dimensions, and more where its documents say less than its
 * sources; blocks have up to 128 columns. */
static double largest_count(const drupe_linear *l)
{
    const double m = (double)l->m, n = (double)l->n, k = (double)l->k;
    const double least = m < n ? m : n, most = m > n ? m : n, square = least * least;
    const bool vectors = !(l->flags & DRUPE_LINEAR_VALUES);
    const double rest = 256 * least + most + k;
    switch (l->op) {
    case DRUPE_LINEAR_SVD: return rest + vectors * square * (drupe_blas_complex(l->type) ? 9 : 4);
    case DRUPE_LINEAR_EIGH: return rest + vectors * 2 * square;
    case DRUPE_LINEAR_LSTSQ: return rest + square + least * k + 100 * k;
    default: return rest;
    }
}

drupe_status drupe_linear_check(const drupe_linear *l)
{
    const drupe_provider *provider = drupe_linear_provider(l->op, l->type);
    if (!provider) return DRUPE_E_UNAVAILABLE;
    if (!provider->narrow || largest_count(l) <= INT_MAX) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNSUPPORTED,
                           "%s of %zu by %zu needs work memory of more elements than the 32-bit integers of "
                           "%s can count: install NumPy from PyPI, whose OpenBLAS has 64-bit integers",
                           rows[l->op].name, l->m, l->n, provider->path);
}

static int vector(drupe_linear_result *result, size_t length, drupe_linear_element element)
{
    *result = (drupe_linear_result){1, {length, 1}, element};
    return 1;
}

static int matrix(drupe_linear_result *result, size_t m, size_t n, drupe_linear_element element)
{
    *result = (drupe_linear_result){2, {m, n}, element};
    return 1;
}

static int number(drupe_linear_result *result, drupe_linear_element element)
{
    *result = (drupe_linear_result){0, {1, 1}, element};
    return 1;
}

int drupe_linear_results(const drupe_linear *l, drupe_linear_result results[DRUPE_LINEAR_RESULTS])
{
    const size_t m = l->m, n = l->n, least = m < n ? m : n;
    const bool full = l->flags & DRUPE_LINEAR_FULL, values = l->flags & DRUPE_LINEAR_VALUES;
    int count = 0;
    switch (l->op) {
    case DRUPE_LINEAR_SOLVE: return matrix(results, n, l->k, DRUPE_LINEAR_SAME);
    case DRUPE_LINEAR_INV:
    case DRUPE_LINEAR_CHOLESKY: return matrix(results, n, n, DRUPE_LINEAR_SAME);
    case DRUPE_LINEAR_DET: return number(results, DRUPE_LINEAR_SAME);
    case DRUPE_LINEAR_SLOGDET:
        count += number(results, DRUPE_LINEAR_SAME);
        return count + number(results + count, DRUPE_LINEAR_REAL);
    case DRUPE_LINEAR_QR:
        if (!values) count += matrix(results, m, full ? m : least, DRUPE_LINEAR_SAME);
        return count + matrix(results + count, full ? m : least, n, DRUPE_LINEAR_SAME);
    case DRUPE_LINEAR_SVD:
        if (values) return vector(results, least, DRUPE_LINEAR_REAL);
        count += matrix(results, m, full ? m : least, DRUPE_LINEAR_SAME);
        count += vector(results + count, least, DRUPE_LINEAR_REAL);
        return count + matrix(results + count, full ? n : least, n, DRUPE_LINEAR_SAME);
    case DRUPE_LINEAR_EIGH:
        count += vector(results, n, DRUPE_LINEAR_REAL);
        return values ? count : count + matrix(results + count, n, n, DRUPE_LINEAR_SAME);
    case DRUPE_LINEAR_EIG:
        count += vector(results, n, DRUPE_LINEAR_COMPLEX);
        return values ? count : count + matrix(results + count, n, n, DRUPE_LINEAR_COMPLEX);
    case DRUPE_LINEAR_LSTSQ:
        count += matrix(results, n, l->k, DRUPE_LINEAR_SAME);
        count += vector(results + count, l->k, DRUPE_LINEAR_REAL);
        count += number(results + count, DRUPE_LINEAR_INT64);
        return count + vector(results + count, least, DRUPE_LINEAR_REAL);
    case DRUPE_LINEAR_COUNT: break;
    }
    return 0;
}

/* --- Memory --------------------------------------------------------------------------------------------- */

void *drupe_linear_slot(drupe_linear_scratch *scratch, int slot, size_t bytes)
{
    if (bytes > scratch->sizes[slot] || !scratch->slots[slot]) {
        drupe_scratch_release(scratch->slots[slot], scratch->sizes[slot]);
        scratch->slots[slot] = drupe_scratch_get(bytes);
        scratch->sizes[slot] = scratch->slots[slot] ? bytes : 0;
    }
    return scratch->slots[slot];
}

#define EDGE 8

/* A block has a function of its own, with few variables: in one with the loops over blocks gcc kept the
 * counters in memory, and the copy took four times as long. */
#define TRANSPOSE(NAME, ELEMENT)                                                                             \
    static __attribute__((noinline)) void NAME##_block(const ELEMENT *from, size_t columns, ELEMENT *to,     \
                                                       size_t rows_of, size_t height, size_t width)          \
    {                                                                                                        \
        for (size_t c = 0; c < width; c++, from++, to += rows_of) {                                          \
            const ELEMENT *next = from;                                                                      \
            for (size_t r = 0; r < height; r++, next += columns) to[r] = *next;                              \
        }                                                                                                    \
    }                                                                                                        \
    static void NAME(const ELEMENT *from, size_t rows_of, size_t columns, ELEMENT *to)                       \
    {                                                                                                        \
        for (size_t i = 0; i < rows_of; i += EDGE)                                                           \
            for (size_t j = 0; j < columns; j += EDGE)                                                       \
                NAME##_block(from + i * columns + j, columns, to + j * rows_of + i, rows_of,                 \
                             rows_of - i < EDGE ? rows_of - i : EDGE,                                        \
                             columns - j < EDGE ? columns - j : EDGE);                                       \
    }

typedef struct sixteen {
    double parts[2];
} sixteen;

TRANSPOSE(transpose4, float)
TRANSPOSE(transpose8, double)
TRANSPOSE(transpose16, sixteen)

void drupe_linear_transpose(const void *from, size_t rows_of, size_t columns, size_t size, void *to)
{
    if (rows_of <= 1 || columns <= 1)
        memcpy(to, from, rows_of * columns * size);
    else if (size == 4)
        transpose4(from, rows_of, columns, to);
    else if (size == 8)
        transpose8(from, rows_of, columns, to);
    else
        transpose16(from, rows_of, columns, to);
}

drupe_fint drupe_linear_wanted(drupe_blas_type type, const void *work)
{
    if (drupe_blas_real_size(type) == 8) return (drupe_fint) * (const double *)work;
    /* A float may have been rounded down where it has no digits for units. */
    const float wanted = *(const float *)work;
    return (drupe_fint)(wanted < 0x1p24f ? wanted : wanted * (1 + 0x1p-23f));
}

/* The memory of the last large matrix is kept for the next one: to get it anew costs as much as a tenth of a
 * linear system with 1,000 unknowns, since the system clears it. */
#define KEPT_MOST ((size_t)64 << 20)

static struct {
    pthread_mutex_t lock;
    drupe_linear_scratch scratch;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static drupe_linear_scratch scratch_take(void)
{
    drupe_linear_scratch scratch = {{NULL}, {0}};
    if (pthread_mutex_trylock(&kept.lock) != 0) return scratch;
    const drupe_linear_scratch none = scratch;
    scratch = kept.scratch;
    kept.scratch = none;
    pthread_mutex_unlock(&kept.lock);
    return scratch;
}

/* Keeps it, or what was there is dropped in its place. */
static void scratch_give(drupe_linear_scratch scratch)
{
    size_t bytes = 0;
    for (int i = 0; i < DRUPE_LINEAR_SLOTS; i++) bytes += scratch.sizes[i];
    if (bytes <= KEPT_MOST && pthread_mutex_trylock(&kept.lock) == 0) {
        const drupe_linear_scratch before = kept.scratch;
        kept.scratch = scratch;
        scratch = before;
        pthread_mutex_unlock(&kept.lock);
    }
    for (int i = 0; i < DRUPE_LINEAR_SLOTS; i++) drupe_scratch_release(scratch.slots[i], scratch.sizes[i]);
}

/* --- The stack ------------------------------------------------------------------------------------------ */

typedef struct loop {
    const drupe_linear *linear;
    void *const *pointers;
    size_t parts, steps[2 + DRUPE_LINEAR_RESULTS]; /* bytes from one matrix to the next */
    int inputs, results;
    _Atomic(int) outcome;
    _Atomic(size_t) matrix; /* of the first failure that was found */
} loop;

static size_t element_size(drupe_blas_type type, drupe_linear_element element)
{
    switch (element) {
    case DRUPE_LINEAR_SAME: break;
    case DRUPE_LINEAR_REAL: return drupe_blas_real_size(type);
    case DRUPE_LINEAR_COMPLEX: return 2 * drupe_blas_real_size(type);
    case DRUPE_LINEAR_INT64: return sizeof(int64_t);
    }
    return drupe_blas_size(type);
}

static void loop_describe(loop *l, void *const *pointers, const drupe_linear *linear)
{
    drupe_linear_result results[DRUPE_LINEAR_RESULTS];
    const size_t size = drupe_blas_size(linear->type);
    l->linear = linear;
    l->pointers = pointers;
    l->inputs = drupe_linear_inputs(linear->op);
    l->results = drupe_linear_results(linear, results);
    l->steps[0] = linear->m * linear->n * size;
    if (l->inputs == 2) l->steps[1] = linear->m * linear->k * size;
    for (int i = 0; i < l->results; i++)
        l->steps[l->inputs + i] =
            results[i].shape[0] * results[i].shape[1] * element_size(linear->type, results[i].element);
}

static void part_run(size_t part, void *user)
{
    loop *l = user;
    drupe_linear_scratch scratch = scratch_take();
    const size_t end = drupe_parallel_begin(l->linear->count, part + 1, l->parts);
    for (size_t i = drupe_parallel_begin(l->linear->count, part, l->parts); i < end; i++) {
        drupe_linear_one one = {
            l->linear, &scratch, (const char *)l->pointers[0] + i * l->steps[0], NULL, {NULL}};
        if (l->inputs == 2) one.b = (const char *)l->pointers[1] + i * l->steps[1];
        for (int r = 0; r < l->results; r++)
            one.out[r] = (char *)l->pointers[l->inputs + r] + i * l->steps[l->inputs + r];
        int good = LINEAR_GOOD;
        const drupe_linear_outcome outcome = rows[l->linear->op].fn(&one);
        if (outcome == LINEAR_GOOD) continue;
        if (atomic_compare_exchange_strong(&l->outcome, &good, (int)outcome)) atomic_store(&l->matrix, i);
        break;
    }
    scratch_give(scratch);
}

static drupe_status outcome_status(const loop *l)
{
    static const char *const reasons[] = {
        [LINEAR_SINGULAR] = "is singular",
        [LINEAR_NOT_POSITIVE] = "is not positive definite",
        [LINEAR_NOT_FINITE] = "has elements that are infinite or NaN",
        [LINEAR_NO_CONVERGENCE] = "does not let the iteration converge; look for NaN and infinite elements",
        [LINEAR_REFUSED] = "was refused by LAPACK"};
    const int outcome = atomic_load(&l->outcome);
    char which[64] = "the matrix";
    if (outcome == LINEAR_GOOD) return DRUPE_OK;
    if (outcome == LINEAR_NO_MEMORY)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for %s of matrices of %zu by %zu.",
                               drupe_linear_name(l->linear->op), l->linear->m, l->linear->n);
    if (l->linear->count > 1)
        snprintf(which, sizeof which, "matrix %zu of the %zu", (size_t)atomic_load(&l->matrix),
                 l->linear->count);
    return drupe_error_set(outcome == LINEAR_REFUSED ? DRUPE_E_INTERNAL : DRUPE_E_LINALG, "%s: %s %s.",
                           drupe_linear_name(l->linear->op), which, reasons[outcome]);
}

drupe_status drupe_linear_run(void *const *pointers, const void *params)
{
    const drupe_linear *linear = params;
    loop l = {0};
    const size_t edge = linear->m > linear->n ? linear->m : linear->n;
    const double work = (double)edge * (double)edge * (double)edge + 100;
    loop_describe(&l, pointers, linear);
    const double grain = GRAIN / work;
    l.parts = edge > SMALL ? 1 : drupe_parallel_parts(linear->count, grain < 1 ? 1 : (size_t)grain);
    drupe_parallel(l.parts, part_run, &l);
    return outcome_status(&l);
}
