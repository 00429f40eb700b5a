/* See argreduce.h. Rows that lie side by side are compared together. A block of few columns and many rows is
 * cut along the axis; of the places that the parts find the first of the best remains. */
#include "math/argreduce.h"
#include "base/base.h"
#include "base/parallel.h"
#include "math/clones.h"
#include <stdlib.h>

#define ARG_BYTES   16384 /* of a block: it stays in the first cache while it is looked through twice */
#define ARG_ROWS    256   /* short rows that are compared together */
#define ARG_SHORT   16    /* elements of a row that is short */
#define ARG_COLUMNS 256   /* columns that are compared together: the best of them stay in the first cache */
#define ARG_GRAIN   16384 /* elements that are worth another thread */

/* What one call of a loop works on. */
typedef struct arg_range {
    const drupe_argreduce *work;
    size_t first, last; /* rows, or columns of a block */
    size_t block, begin, end;
    int64_t *out; /* of the block's column 0 */
} arg_range;

#define PAIR_ORDER(name, type)                                                                               \
    DRUPE_CLONE_PART bool name##_nan(type a)                                                                 \
    {                                                                                                        \
        return a.re != a.re || a.im != a.im;                                                                 \
    }                                                                                                        \
    DRUPE_CLONE_PART bool name##_less(type a, type b)                                                        \
    {                                                                                                        \
        return !name##_nan(a) && !name##_nan(b) && (a.re < b.re || (a.re == b.re && a.im < b.im));           \
    }
PAIR_ORDER(c64, drupe_pair32)
PAIR_ORDER(c128, drupe_pair64)

#define HALF_LESS(a, b) (drupe_half_float(a) < drupe_half_float(b))
#define HALF_NAN(a)     (((a)&0x7fff) > 0x7c00)

/* What a comparison of two elements is as wide as, so that both fit into vectors. */
typedef uint8_t u8_mask, i8_mask;
typedef uint16_t u16_mask, i16_mask;
typedef uint32_t u32_mask, i32_mask, f32_mask;
typedef uint64_t u64_mask, i64_mask, f64_mask;

#define T       uint8_t
#define LANES   256
#define NAME(x) u8_##x
#include "math/argreduce_loop.inc"
#define T       int8_t
#define LANES   256
#define NAME(x) i8_##x
#include "math/argreduce_loop.inc"
#define T       uint16_t
#define LANES   128
#define NAME(x) u16_##x
#include "math/argreduce_loop.inc"
#define T       int16_t
#define LANES   128
#define NAME(x) i16_##x
#include "math/argreduce_loop.inc"
#define T       uint32_t
#define LANES   64
#define NAME(x) u32_##x
#include "math/argreduce_loop.inc"
#define T       int32_t
#define LANES   64
#define NAME(x) i32_##x
#include "math/argreduce_loop.inc"
#define T       uint64_t
#define LANES   32
#define NAME(x) u64_##x
#include "math/argreduce_loop.inc"
#define T       int64_t
#define LANES   32
#define NAME(x) i64_##x
#include "math/argreduce_loop.inc"
#define T       uint16_t
#define LESS    HALF_LESS
#define NAN_OF  HALF_NAN
#define LANES   0
#define NAME(x) f16_##x
#include "math/argreduce_loop.inc"
#define T       float
#define LANES   64
#define NAME(x) f32_##x
#include "math/argreduce_loop.inc"
#define T       double
#define LANES   32
#define NAME(x) f64_##x
#include "math/argreduce_loop.inc"
#define T       drupe_pair32
#define LESS    c64_less
#define NAN_OF  c64_nan
#define LANES   0
#define NAME(x) c64_##x
#include "math/argreduce_loop.inc"
#define T       drupe_pair64
#define LESS    c128_less
#define NAN_OF  c128_nan
#define LANES   0
#define NAME(x) c128_##x
#include "math/argreduce_loop.inc"

typedef struct arg_functions {
    void (*rows)(const arg_range *);
    void (*columns)(const arg_range *);
    int64_t (*better)(const drupe_argreduce *, size_t block, size_t c, int64_t a, int64_t b);
    int64_t (*part)(const drupe_argreduce *, size_t row, size_t begin, size_t end);
} arg_functions;

#define FUNCTIONS(x)                                                                                         \
    {                                                                                                        \
        x##_rows, x##_columns, x##_better, x##_part                                                          \
    }
static const arg_functions functions[DRUPE_ELEMENT_COUNT] = {
    FUNCTIONS(u8),  FUNCTIONS(i8),  FUNCTIONS(u8),  FUNCTIONS(i16),  FUNCTIONS(u16),
    FUNCTIONS(i32), FUNCTIONS(u32), FUNCTIONS(i64), FUNCTIONS(u64),  FUNCTIONS(f16),
    FUNCTIONS(f32), FUNCTIONS(f64), FUNCTIONS(c64), FUNCTIONS(c128),
};

typedef struct arg_parts {
    const drupe_argreduce *work;
    const arg_functions *f;
    size_t parts; /* of the rows, of a block's columns, or of a block along the axis */
    int64_t *found;
} arg_parts;

static void rows_part(size_t i, void *user)
{
    const arg_parts *p = user;
    const arg_range range = {.work = p->work,
                             .first = drupe_parallel_begin(p->work->outer, i, p->parts),
                             .last = drupe_parallel_begin(p->work->outer, i + 1, p->parts)};
    p->f->rows(&range);
}

/* Blocks [begin, end) as a whole. */
static void blocks_part(size_t i, void *user)
{
    const arg_parts *p = user;
    const drupe_argreduce *w = p->work;
    const size_t end = drupe_parallel_begin(w->outer, i + 1, p->parts);
    for (size_t block = drupe_parallel_begin(w->outer, i, p->parts); block < end; block++) {
        const arg_range range = {
            .work = w, .last = w->inner, .block = block, .end = w->n, .out = w->out + block * w->inner};
        p->f->columns(&range);
    }
}

static void columns_part(size_t i, void *user)
{
    const arg_parts *p = user;
    const drupe_argreduce *w = p->work;
    const size_t block = i / p->parts, band = i % p->parts;
    const arg_range range = {.work = w,
                             .first = drupe_parallel_begin(w->inner, band, p->parts),
                             .last = drupe_parallel_begin(w->inner, band + 1, p->parts),
                             .block = block,
                             .end = w->n,
                             .out = w->out + block * w->inner};
    p->f->columns(&range);
}

static void along_part(size_t i, void *user)
{
    const arg_parts *p = user;
    const drupe_argreduce *w = p->work;
    const size_t block = i / p->parts, part = i % p->parts;
    arg_range range = {.work = w, .last = w->inner, .block = block, .out = p->found + i * w->inner};
    range.begin = drupe_parallel_begin(w->n, part, p->parts);
    range.end = drupe_parallel_begin(w->n, part + 1, p->parts);
    if (w->inner == 1)
        *range.out = p->f->part(w, block, range.begin, range.end);
    else
        p->f->columns(&range);
}

/* Cut each block along the axis. */
static drupe_status along(arg_parts *p)
{
    const drupe_argreduce *w = p->work;
    p->found = malloc(w->outer * p->parts * w->inner * sizeof *p->found);
    if (!p->found) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for argmax.");
    drupe_parallel(w->outer * p->parts, along_part, p);
    for (size_t block = 0; block < w->outer; block++)
        for (size_t c = 0; c < w->inner; c++) {
            const int64_t *found = p->found + block * p->parts * w->inner + c;
            int64_t best = *found;
            for (size_t i = 1; i < p->parts; i++) best = p->f->better(w, block, c, best, found[i * w->inner]);
            w->out[block * w->inner + c] = best;
        }
    free(p->found);
    return DRUPE_OK;
}

drupe_status drupe_argreduce_run(const drupe_argreduce *work)
{
    arg_parts p = {.work = work, .f = &functions[work->type]};
    const size_t threads = drupe_parallel_parts(work->outer * work->n * work->inner, ARG_GRAIN);
    p.parts = threads;
    if (work->outer >= threads) {
        drupe_parallel(p.parts, work->inner == 1 ? rows_part : blocks_part, &p);
        return DRUPE_OK;
    }
    if (work->n >= 64 * threads && work->inner <= 4 * ARG_COLUMNS) return along(&p);
    if (p.parts > work->inner) p.parts = work->inner;
    drupe_parallel(work->outer * p.parts, columns_part, &p);
    return DRUPE_OK;
}
