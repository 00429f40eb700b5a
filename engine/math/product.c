/* A stack of matrices is one loop over its matrices; several processors share it when they are small. Large
 * ones are given to BLAS one by one, which has threads of its own, or cut into bands of rows for our own
 * loops.
 *
 * Where all matrices of a stack are multiplied by the same one and lie one behind the other, they are one
 * matrix with more rows. */
#include "math/product.h"
#include "base/parallel.h"
#include "math/blas.h"
#include <stdlib.h>
#include <string.h>

/* Up to so many multiplications BLAS works on one thread, and the matrices of a stack are shared out. */
#define SMALL_WORK 262144.0
/* What a part of a loop should have to do at least, in multiplications. */
#define PART_WORK 65536.0
/* Matrices as small as this cost BLAS more than the loops. */
#define TINY 6

static const size_t sizes[DRUPE_PRODUCT_TYPES] = {1, 1, 2, 4, 8, 4, 8, 8, 16};

typedef struct run {
    drupe_product p;
    drupe_blas_type blas; /* NONE: our own loops */
    drupe_matrix a, b;    /* of the first pair, for BLAS */
    drupe_product_loop *loop;
    size_t count;        /* of matrices */
    size_t parts, bands; /* of the loop over matrices, or over the rows of each */
} run;

drupe_blas_type drupe_product_blas(drupe_product_type type)
{
    return type < DRUPE_PRODUCT_FLOAT ? DRUPE_BLAS_NONE : (drupe_blas_type)(type - DRUPE_PRODUCT_FLOAT);
}

static bool as_matrix(const drupe_product_operand *operand, size_t rows, size_t columns, drupe_matrix *matrix)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        const size_t inner = transposed ? rows : columns, outer = transposed ? columns : rows;
        const ptrdiff_t step = transposed ? operand->row : operand->column;
        const ptrdiff_t ld = transposed ? operand->column : operand->row;
        if (inner > 1 && step != 1) continue;
        if (outer > 1 && ld < (ptrdiff_t)inner) continue;
        *matrix = (drupe_matrix){operand->data, outer > 1 ? (size_t)ld : inner, transposed};
        return true;
    }
    return false;
}

bool drupe_product_addressable(const drupe_product_operand *operand, size_t rows, size_t columns)
{
    drupe_matrix matrix;
    return as_matrix(operand, rows, columns, &matrix);
}

static drupe_product_loop *loop_of(drupe_product_type type)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
        return drupe_product_avx512[type];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return drupe_product_avx2[type];
#endif
    return drupe_product_baseline[type];
}

/* The rows of the stack's last axis are more rows of one matrix. */
static void stack_join(drupe_product *p)
{
    while (p->ndim > 0) {
        const int last = p->ndim - 1;
        const bool alone = p->shape[last] == 1;
        if (!alone && p->m == 1) p->a.row = p->a.stack[last]; /* a row on its own is as far from the next */
        const bool follows = p->a.stack[last] == (ptrdiff_t)p->m * p->a.row && p->b.stack[last] == 0;
        if (!alone && !follows) return;
        if (!alone) p->m *= p->shape[last];
        p->ndim--;
    }
}

static void operands_at(const drupe_product *p, size_t index, const char **a, const char **b)
{
    ptrdiff_t at_a = 0, at_b = 0;
    for (int d = p->ndim - 1; d >= 0; d--) {
        const ptrdiff_t i = (ptrdiff_t)(index % p->shape[d]);
        index /= p->shape[d];
        at_a += i * p->a.stack[d];
        at_b += i * p->b.stack[d];
    }
    *a = (const char *)p->a.data + at_a * (ptrdiff_t)sizes[p->type];
    *b = (const char *)p->b.data + at_b * (ptrdiff_t)sizes[p->type];
}

/* Rows `begin` to `end` of matrix `index`. */
static void one(const run *r, size_t index, size_t begin, size_t end)
{
    const drupe_product *p = &r->p;
    const char *a, *b;
    operands_at(p, index, &a, &b);
    char *out = (char *)p->out + (index * p->m + begin) * p->n * sizes[p->type];
    if (r->blas != DRUPE_BLAS_NONE) {
        drupe_matrix left = r->a, right = r->b;
        left.data = a;
        right.data = b;
        drupe_blas_matmul(r->blas, p->m, p->n, p->k, left, right, out);
        return;
    }
    a += (ptrdiff_t)begin * p->a.row * (ptrdiff_t)sizes[p->type];
    const drupe_product_tile tile = {end - begin, p->n,     p->k,        a,   b,   p->a.row,
                                     p->a.column, p->b.row, p->b.column, out, p->n};
    r->loop(&tile);
}

static void part_matrices(size_t i, void *user)
{
    const run *r = user;
    const size_t end = drupe_parallel_begin(r->count, i + 1, r->parts);
    for (size_t at = drupe_parallel_begin(r->count, i, r->parts); at < end; at++) one(r, at, 0, r->p.m);
}

static void part_rows(size_t i, void *user)
{
    const run *r = user;
    const size_t band = i % r->bands;
    one(r, i / r->bands, drupe_parallel_begin(r->p.m, band, r->bands),
        drupe_parallel_begin(r->p.m, band + 1, r->bands));
}

static size_t grain_of(double work)
{
    const double grain = PART_WORK / work;
    return grain < 1 ? 1 : (size_t)grain;
}

void drupe_product_run(const drupe_product *product)
{
    run r = {.p = *product, .count = 1};
    drupe_product *p = &r.p;
    stack_join(p);
    for (int d = 0; d < p->ndim; d++) r.count *= p->shape[d];
    const double work = (double)p->m * (double)p->n * (double)p->k;
    const size_t largest = p->m > p->n ? (p->m > p->k ? p->m : p->k) : p->n > p->k ? p->n : p->k;
    const bool tiny = r.count > 1 && p->n <= TINY && p->m <= TINY && p->k <= TINY;
    r.blas = tiny ? DRUPE_BLAS_NONE : drupe_product_blas(p->type);
    if (!drupe_blas_takes(r.blas, largest) || !as_matrix(&p->a, p->m, p->k, &r.a) ||
        !as_matrix(&p->b, p->k, p->n, &r.b) || !drupe_blas_takes(r.blas, r.a.ld > r.b.ld ? r.a.ld : r.b.ld))
        r.blas = DRUPE_BLAS_NONE;
    r.loop = loop_of(p->type);
    if (r.blas != DRUPE_BLAS_NONE && work > SMALL_WORK) {
        for (size_t i = 0; i < r.count; i++) one(&r, i, 0, p->m);
        return;
    }
    if (r.count > 1 && (r.blas != DRUPE_BLAS_NONE || r.count >= drupe_parallel_width())) {
        r.parts = drupe_parallel_parts(r.count, grain_of(work));
        drupe_parallel(r.parts, part_matrices, &r);
        return;
    }
    r.bands = r.blas != DRUPE_BLAS_NONE ? 1 : drupe_parallel_parts(p->m, grain_of(work / (double)p->m));
    drupe_parallel(r.count * r.bands, part_rows, &r);
}
