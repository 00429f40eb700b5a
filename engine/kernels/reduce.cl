/* Reductions: OP(a, b) combines, IDENTITY starts; drupe_reduce_params says which elements belong together.
 *
 *   row      the reduced axis is run through per output; STRIDED 0: its elements are neighbours
 *   column   the outputs of the last kept axis are run through per reduced index
 *
 * A chunk of outputs or splits per work-item, LANES accumulators; reduce_gpu.cl has the form for GPUs.
 *
 * C99: the loops over blocks in the compute type; host_reduce.h does the rest. TW carries the result from
 * block to block. Where PLAIN(a, b) is defined, it does the same as OP in fewer instructions unless b is NaN, and
 * TMASK is an integer as wide as TC. RAW is what counts of a stored element while LANES of them are combined; LOAD
 * makes a value of it. */
#ifndef __OPENCL_VERSION__
#define LANES (LANE_BYTES / (i64)sizeof(TC))
#ifdef PLAIN
#define LANE_OP PLAIN
/* Looked for by itself, while the elements are in the first cache: within one loop, that costs more. */
static int CAT(NAME, _odd)(i64 n, const TC *in)
{
    TMASK odd[LANES] = {0}, any = 0;
    i64 i = 0;
    for (; i + LANES <= n; i += LANES)
        for (i64 l = 0; l < LANES; l++) odd[l] |= in[i + l] != in[i + l];
    for (; i < n; i++) any |= in[i] != in[i];
    for (i64 l = 0; l < LANES; l++) any |= odd[l];
    return any != 0;
}
#else
#define LANE_OP OP
#endif
static TC CAT(NAME, _few)(i64 n, const TC *in)
{
    TC result = IDENTITY;
    for (i64 i = 0; i < n; i++) result = (TC)(OP(result, LOAD(in[i])));
    return result;
}
/* Each lane adds up few elements before they go to its total, so that rounding errors stay small. */
static TC CAT(NAME, _block)(i64 n, const TC *in)
{
    TC lanes[LANES], totals[LANES];
    i64 i = 0;
    if (n < 16) return CAT(NAME, _few)(n, in); /* for which starting and folding the lanes would be most of it */
#ifdef PLAIN
    if (CAT(NAME, _odd)(n, in)) return CAT(NAME, _few)(n, in);
#endif
    for (i64 l = 0; l < LANES; l++) totals[l] = IDENTITY;
    while (i + LANES <= n) {
        const i64 stop = min(n, i + LANE_STEPS * LANES);
        for (i64 l = 0; l < LANES; l++) lanes[l] = RAW(in[i + l]);
        for (i += LANES; i + LANES <= stop; i += LANES)
            for (i64 l = 0; l < LANES; l++) lanes[l] = (TC)(LANE_OP(lanes[l], RAW(in[i + l])));
        for (i64 l = 0; l < LANES; l++) totals[l] = (TC)(LANE_OP(totals[l], lanes[l]));
    }
    for (i64 l = 0; i + l < n; l++) totals[l] = (TC)(LANE_OP(totals[l], RAW(in[i + l])));
    for (i64 fold = LANES / 2; fold; fold /= 2)
        for (i64 l = 0; l < fold; l++) totals[l] = (TC)(LANE_OP(totals[l], totals[l + fold]));
    return LOAD(totals[0]);
}
static void CAT(NAME, _row)(i64 n, const void *in, void *carry)
{
    TW *result = carry;
    *result = (TW)(OP(*result, (TW)CAT(NAME, _block)(n, in)));
}
/* One row more. */
static void CAT(NAME, _column)(i64 n, const TC *in, TC *result)
{
    INDEPENDENT
    for (i64 i = 0; i < n; i++) result[i] = (TC)(OP(result[i], RAW(in[i])));
}
/* Four rows more, so that the results are loaded and stored once for all of them. */
static void CAT(NAME, _quad)(i64 n, const TC *in, i64 pitch, TC *result)
{
    const TC *r0 = in, *r1 = in + pitch, *r2 = r1 + pitch, *r3 = r2 + pitch;
#ifdef PLAIN
    if (CAT(NAME, _odd)(n, r0) | CAT(NAME, _odd)(n, r1) | CAT(NAME, _odd)(n, r2) | CAT(NAME, _odd)(n, r3)) {
        for (i64 r = 0; r < 4; r++) CAT(NAME, _column)(n, in + r * pitch, result);
        return;
    }
#endif
    INDEPENDENT
    for (i64 i = 0; i < n; i++) {
        const TC a = (TC)(LANE_OP(RAW(r0[i]), RAW(r1[i]))), b = (TC)(LANE_OP(RAW(r2[i]), RAW(r3[i])));
        const TC c = (TC)(LANE_OP(a, b));
        result[i] = (TC)(LANE_OP(result[i], c));
    }
}
static void CAT(NAME, _columns)(i64 n, i64 rows, const void *in_, i64 pitch, void *result_)
{
    const TC *in = in_;
    TC *result = result_;
    for (; rows >= 4; rows -= 4, in += 4 * pitch)
        for (i64 i = 0; i < n; i += COLUMN_PIECE)
            CAT(NAME, _quad)(min(n - i, (i64)COLUMN_PIECE), in + i, pitch, result + i);
    for (; rows > 0; rows--, in += pitch) CAT(NAME, _column)(n, in, result);
}
static void CAT(NAME, _start)(i64 n, void *carry, int wide)
{
    for (i64 i = 0; i < n; i++) {
        if (wide)
            ((TW *)carry)[i] = IDENTITY;
        else
            ((TC *)carry)[i] = IDENTITY;
    }
}
static void CAT(NAME, _finish)(const void *carry, void *out)
{
    *(TC *)out = (TC) * (const TW *)carry;
}
static const reduce_kernel CAT(NAME, _kernel) = {
    CAT(NAME, _row), CAT(NAME, _columns), CAT(NAME, _start), CAT(NAME, _finish), TC_ID, FINAL,
};
static void CAT(NAME, _by_row)(size_t begin, size_t end, size_t size, const void *const *args)
{
    reduce_run_rows(&CAT(NAME, _kernel), begin, end, size, args);
}
static void CAT(NAME, _by_column)(size_t begin, size_t end, size_t size, const void *const *args)
{
    reduce_run_columns(&CAT(NAME, _kernel), begin, end, size, args);
}
#undef LANES
#undef LANE_OP

#else
#define LANES 16
#define WIDTH 64
/* Offset of output o in the kept dimensions before `ndim`. */
static inline i64 reduce_base(const drupe_reduce_params *p, i64 o, int ndim)
{
    i64 base = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        base += o % p->shape[d] * p->strides[d];
        o /= p->shape[d];
    }
    return base;
}

#if COLUMN
KERNEL NAME(GLOBAL TO *out, GLOBAL const TI0 *in, const drupe_reduce_params p BOUNDS)
{
    const int last = p.ndim - 1;
    const i64 per = (p.extent + p.splits - 1) / p.splits;
    const i64 inner = p.shape[last], step = p.strides[last], blocks = (inner + WIDTH - 1) / WIDTH;
    const i64 rows = p.outputs / inner, tasks = blocks * rows * p.splits, items = get_global_size(0);
    const i64 share = (tasks + items - 1) / items, from = get_global_id(0) * share;
    for (i64 t = from; t < min(from + share, tasks); t++) {
        const i64 j = t % blocks * WIDTH, row = t / blocks % rows, s = t / blocks / rows;
        const i64 width = min((i64)WIDTH, inner - j), to = min(p.extent, (s + 1) * per);
        const i64 base = reduce_base(&p, row, last) + j * step;
        TC r[WIDTH];
        for (int k = 0; k < WIDTH; k++) r[k] = IDENTITY;
        for (i64 i = s * per; i < to; i++) {
            INDEPENDENT
            for (i64 k = 0; k < width; k++) {
                const TC b = LOAD0(GET(1, in, base + i * p.stride + k * step));
                r[k] = (TC)(OP(r[k], b));
            }
        }
        const i64 to_out = s * p.outputs + row * inner + j;
        for (i64 k = 0; k < width; k++) PUT(0, out, to_out + k, STORE(r[k]))
    }
}

#else
#if STRIDED
#define AT(i) LOAD0(GET(1, in, base + (i)*p.stride))
#else
#define AT(i) LOAD0(GET(1, in, base + (i)))
#endif
KERNEL NAME(GLOBAL TO *out, GLOBAL const TI0 *in, const drupe_reduce_params p BOUNDS)
{
    const i64 per = (p.extent + p.splits - 1) / p.splits, tasks = p.outputs * p.splits;
    const i64 items = get_global_size(0), share = (tasks + items - 1) / items;
    const i64 from = get_global_id(0) * share, until = min(from + share, tasks);
    for (i64 t = from; t < until; t++) {
        const i64 s = t % p.splits, to = min(p.extent, (s + 1) * per);
        const i64 base = reduce_base(&p, t / p.splits, p.ndim);
        TW result = IDENTITY;
        i64 i = s * per;
        while (i < to) {
            TC lanes[LANES];
            const i64 stop = min(i + 4096, to);
            UNROLL
            for (int l = 0; l < LANES; l++) lanes[l] = IDENTITY;
            for (; i + LANES <= stop; i += LANES) {
                UNROLL
                for (int l = 0; l < LANES; l++) {
                    const TC b = AT(i + l);
                    lanes[l] = (TC)(OP(lanes[l], b));
                }
            }
            UNROLL
            for (int l = 1; l < LANES; l++) lanes[0] = (TC)(OP(lanes[0], lanes[l]));
            for (; i < stop; i++) {
                const TC b = AT(i);
                lanes[0] = (TC)(OP(lanes[0], b));
            }
            const TW block = lanes[0];
            result = (TW)(OP(result, block));
        }
        PUT(0, out, t, STORE((TC)result))
    }
}
#undef AT
#endif
#endif
