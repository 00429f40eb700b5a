/* Runs the loops of the shape files over shares of the work; see host_block.h. */
#include "kernels/host_block.h"
/* The casts between all element types, CASTS[from][to], and SIZES and BITS. */
#include "generated/host_casts.inc"

/* --- Element-wise --------------------------------------------------------------------------------------- */

/* Whether elements of one type are such of the other as they are. */
#define SAME(a, b) (BITS[a] == BITS[b])

typedef struct map_kernel {
    void (*loop)(i64 n, void *out, const void *const *in);
    int moves; /* it computes nothing: a copy */
    int arity, result, compute[DRUPE_KERNEL_INPUTS];
} map_kernel;

#include "kernels/host_tile.h"

static void map_operand(operand *o, const drupe_map_head *p, const void *pointer, int index)
{
    o->base = *(char *const *)pointer;
    o->dtype = p->dtypes[index];
    o->size = SIZES[o->dtype];
    o->ndim = p->ndim;
    if (p->ndim) {
        const drupe_map_params *full = (const drupe_map_params *)p;
        o->shape = full->shape;
        o->strides = full->strides[index];
    }
}

#if DRUPE_CHECKED
static void map_bound(operand *o, drupe_kernel_bounds *bounds, int index)
{
    o->bounds = bounds;
    o->index = index;
}
#else
#define map_bound(o, bounds, index) (void)(o)
#endif

/* Elements [at, at + n) in the compute type: where they are, or in `buffer`. */
static const void *map_fetch(const operand *o, int compute, i64 at, i64 n, block *buffer, block *raw)
{
    const char *where = operand_neighbours(o, at, n);
    const int same = SAME(o->dtype, compute);
    if (where && same) return where;
    if (!where) {
        char *to = same ? buffer->bytes : raw->bytes;
        operand_move(o, at, n, to, 0);
        if (same) return to;
        where = to;
    }
    CASTS[o->dtype][compute](n, buffer->bytes, where);
    return buffer->bytes;
}

static void map_store(const operand *o, int result, i64 at, i64 n, const block *values, block *raw)
{
    char *where = operand_neighbours(o, at, n);
    if (where) {
        CASTS[result][o->dtype](n, where, values->bytes);
    } else if (SAME(o->dtype, result)) {
        operand_move(o, at, n, (char *)values->bytes, 1);
    } else {
        CASTS[result][o->dtype](n, raw->bytes, values->bytes);
        operand_move(o, at, n, raw->bytes, 1);
    }
}

/* Whether every operand is contiguous and of the type it is computed in: no blocks needed. */
static int map_is_plain(const map_kernel *k, const drupe_map_head *p)
{
    if (p->ndim || p->constants || !SAME(p->dtypes[0], k->result)) return 0;
    for (int i = 0; i < k->arity; i++)
        if (!SAME(p->dtypes[i + 1], k->compute[i])) return 0;
    return 1;
}

/* How many elements to handle at once: whole rows and parts of rows where that keeps operands with contiguous
 * rows out of the buffers. */
static i64 map_block(const drupe_map_head *p, i64 at, i64 until)
{
    i64 n = min((i64)BLOCK, until - at);
    if (p->ndim) {
        const i64 length = ((const drupe_map_params *)p)->shape[p->ndim - 1];
        if (length >= BLOCK / 4) n = min(n, length - at % length);
    }
    return n;
}

/* Elements of a tile: more where they are only moved, and then whole cache lines even of the small ones. */
static i64 map_tile(const map_kernel *k, const drupe_map_head *p)
{
    const int only_moved = k->moves && SAME(p->dtypes[0], k->result) && SAME(p->dtypes[1], k->compute[0]);
    return only_moved ? (i64)sizeof(block) / SIZES[p->dtypes[0]] : BLOCK;
}

static int map_tiling(tiling *t, const map_kernel *k, const drupe_map_head *head)
{
    const drupe_map_params *p = (const drupe_map_params *)head;
    if (head->ndim < 2) return 0;
    tiling_begin(t, head->n, head->ndim, p->shape);
    for (int i = 0; i < k->arity; i++)
        if (!(head->constants >> i & 1)) tiling_look(t, p->strides[i + 1]);
    return tiling_cut(t, map_tile(k, head));
}

/* Block by block, or tile by tile. Not part of map_run(), which would have to make room for the blocks first.
 */
static __attribute__((noinline)) void map_run_blocks(const map_kernel *k, size_t begin, size_t end,
                                                     size_t size, const void *const *args)
{
    const drupe_map_head *p = args[1 + k->arity];
    i64 at = share(p->n, (i64)begin, (i64)size);
    const i64 until = share(p->n, (i64)end, (i64)size);
    BOUNDS_ARG(args, 2 + k->arity)
    operand out, in[DRUPE_KERNEL_INPUTS];
    const void *sources[DRUPE_KERNEL_INPUTS];
    block buffers[DRUPE_KERNEL_INPUTS], result, raw;
    map_operand(&out, p, args[0], 0);
    map_bound(&out, bounds, 0);
    for (int i = 0; i < k->arity; i++) {
        if (p->constants >> i & 1)
            strided_copy(buffers[i].bytes, 1, p->value[i], 0, min((i64)BLOCK, p->n), SIZES[k->compute[i]]);
        else
            map_operand(&in[i], p, args[1 + i], i + 1);
        map_bound(&in[i], bounds, i + 1);
    }
    tiling tiles;
    if (!DRUPE_CHECKED && map_tiling(&tiles, k, p)) {
        const i64 count = tiling_count(&tiles);
        tiles_run(&tiles, k, share(count, (i64)begin, (i64)size), share(count, (i64)end, (i64)size), &out, in,
                  p->constants, buffers);
        return;
    }
    for (i64 n; at < until; at += n) {
        n = map_block(p, at, until);
        for (int i = 0; i < k->arity; i++)
            sources[i] = p->constants >> i & 1 ? buffers[i].bytes
                                               : map_fetch(&in[i], k->compute[i], at, n, &buffers[i], &raw);
        void *direct = SAME(out.dtype, k->result) ? operand_neighbours(&out, at, n) : NULL;
        k->loop(n, direct ? direct : result.bytes, sources);
        if (!direct) map_store(&out, k->result, at, n, &result, &raw);
    }
}

static void map_run(const map_kernel *k, size_t begin, size_t end, size_t size, const void *const *args)
{
    const drupe_map_head *p = args[1 + k->arity];
    if (!map_is_plain(k, p)) {
        map_run_blocks(k, begin, end, size, args);
        return;
    }
    const i64 at = share(p->n, (i64)begin, (i64)size), n = share(p->n, (i64)end, (i64)size) - at;
    BOUNDS_ARG(args, 2 + k->arity)
    if (n <= 0 || !INSIDE(0, at, 1, n)) return;
    const void *sources[DRUPE_KERNEL_INPUTS];
    int good = 1;
    for (int i = 0; i < k->arity; i++) {
        good &= INSIDE(i + 1, at, 1, n);
        sources[i] = *(const char *const *)args[1 + i] + at * SIZES[p->dtypes[i + 1]];
    }
    if (good) k->loop(n, *(char *const *)args[0] + at * SIZES[p->dtypes[0]], sources);
}

/* The kernel `name` of a loop, with the types of its result and of its inputs. */
#define MAP_KERNEL(name, loop, moves, arity, result, ...)                                                    \
    static const map_kernel CAT(name, _kernel) = {loop, moves, arity, result, {__VA_ARGS__}};                \
    static void name(size_t begin, size_t end, size_t size, const void *const *args)                         \
    {                                                                                                        \
        map_run(&CAT(name, _kernel), begin, end, size, args);                                                \
    }

/* Elements of the widest vector. */
#define WHOLE_LANES(type) ((i64)(64 / sizeof(type)))
#define WHOLE_BYTES       128 /* of so many complex numbers */

/* A loop over functions of libm, which come in several widths that differ in their last bits. So the elements
 * behind the last whole vector are one, too, and an element has the same result wherever it stands. */
static void map_whole(void (*loop)(i64 n, void *out, const void *const *in), i64 n, void *out,
                      const void *const *in, int arity, i64 in_size, i64 out_size, i64 lanes)
{
    _Alignas(64) char values[DRUPE_KERNEL_INPUTS][WHOLE_BYTES], results[WHOLE_BYTES];
    const void *sources[DRUPE_KERNEL_INPUTS];
    const i64 rest = n % lanes, whole = n - rest;
    if (whole) loop(whole, out, in);
    if (rest <= 0) return;
    for (int i = 0; i < arity; i++) {
        const char *from = (const char *)in[i] + whole * in_size;
        for (i64 l = 0; l < lanes; l++)
            memcpy(values[i] + l * in_size, from + (l < rest ? l * in_size : 0), (size_t)in_size);
        sources[i] = values[i];
    }
    loop(lanes, results, sources);
    memcpy((char *)out + whole * out_size, results, (size_t)(rest * out_size));
}

/* --- Sequences ------------------------------------------------------------------------------------------ */

typedef void (*sequence_loop)(i64 begin, i64 n, const void *start, const void *step, void *out);

static void sequence_run(sequence_loop loop, int compute, size_t begin, size_t end, size_t size,
                         const void *const *args)
{
    const drupe_sequence_params *p = args[1];
    const i64 width = SIZES[p->dtype], until = share(p->n, (i64)end, (i64)size);
    char *out = *(char *const *)args[0];
    BOUNDS_ARG(args, 2)
    block values, raw;
    i64 n;
    for (i64 at = share(p->n, (i64)begin, (i64)size); at < until; at += n) {
        n = min((i64)BLOCK, until - at);
        loop(at, n, p->start, p->step, values.bytes);
        CASTS[compute][p->dtype](n, raw.bytes, values.bytes);
        if (INSIDE(0, at * p->stride, p->stride, n))
            strided_copy(out + at * p->stride * width, p->stride, raw.bytes, 1, n, width);
    }
}
