/* Runs the loops of reduce.cl over shares of the work; see host_block.h. Included behind host_run.h. */

typedef struct reduce_kernel {
    void (*row)(i64 n, const void *in, void *carry); /* fold n elements into one carried result */
    /* Element by element into n results: of rows that are `pitch` elements apart. */
    void (*columns)(i64 n, i64 rows, const void *in, i64 pitch, void *results);
    void (*start)(i64 n, void *carry, int wide);
    void (*finish)(const void *carry, void *out);
    int compute;
    int final; /* the result, of bool, that no other element changes; -1: there is none */
} reduce_kernel;

/* Long enough to amortise folding the lanes, short enough that a block is still in the first cache when it is
 * looked through a second time. */
#define ROW_BYTES  32768
#define LANE_STEPS 16
/* Of columns that are run through together: results of a row that stay in a cache, and elements of four rows.
 */
#define COLUMN_CHUNK 4096
#define COLUMN_PIECE 1024

static i64 reduce_base(const drupe_reduce_params *p, i64 output, int ndim)
{
    i64 base = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        base += output % p->shape[d] * p->strides[d];
        output /= p->shape[d];
    }
    return base;
}

/* n elements in the compute type: where they are, or in `buffer` (n <= BLOCK then). */
static const void *reduce_fetch(const reduce_kernel *k, int dtype, const char *from, i64 stride, i64 n,
                                block *buffer, block *raw)
{
    const i64 width = SIZES[dtype];
    if (SAME(dtype, k->compute)) {
        if (stride == 1) return from;
        strided_copy(buffer->bytes, 1, from, stride, n, width);
        return buffer->bytes;
    }
    if (stride != 1) {
        strided_copy(raw->bytes, 1, from, stride, n, width);
        from = raw->bytes;
    }
    CASTS[dtype][k->compute](n, buffer->bytes, from);
    return buffer->bytes;
}

/* Whether the only result of a launch is known, so that its other work-items may stop: they all see the same
 * parameters, of which this member is theirs. */
static int reduce_is_known(const reduce_kernel *k, const drupe_reduce_params *p)
{
    return k->final >= 0 && p->outputs == 1 && __atomic_load_n(&p->known, __ATOMIC_RELAXED);
}

static int reduce_is_final(const reduce_kernel *k, const drupe_reduce_params *p, const void *carry)
{
    if (k->final < 0 || *(const uint8_t *)carry != k->final) return 0;
    if (p->outputs == 1) __atomic_store_n((drupe_i32 *)&p->known, 1, __ATOMIC_RELAXED);
    return 1;
}

static void reduce_run_rows(const reduce_kernel *k, size_t begin, size_t end, size_t size,
                            const void *const *args)
{
    char *out = *(char *const *)args[0];
    const char *in = *(const char *const *)args[1];
    const drupe_reduce_params *p = args[2];
    const i64 tasks = p->outputs * p->splits, per = (p->extent + p->splits - 1) / p->splits;
    const i64 until = share(tasks, (i64)end, (i64)size), width = SIZES[p->in_dtype];
    const i64 most = SAME(p->in_dtype, k->compute) && p->stride == 1 ? ROW_BYTES / width : BLOCK;
    BOUNDS_ARG(args, 3)
    block buffer, raw;
    for (i64 t = share(tasks, (i64)begin, (i64)size); t < until; t++) {
        const i64 base = reduce_base(p, t / p->splits, p->ndim);
        const char *row = in + base * width;
        const i64 from = t % p->splits * per, to = min(p->extent, from + per);
        _Alignas(16) drupe_u64 carry[4], value[2];
        k->start(1, carry, 1);
        for (i64 at = from, n; at < to && !reduce_is_known(k, p); at += n) {
            n = min(most, to - at);
            if (!INSIDE(1, base + at * p->stride, p->stride, n)) continue;
            k->row(n, reduce_fetch(k, p->in_dtype, row + at * p->stride * width, p->stride, n, &buffer, &raw),
                   carry);
            if (reduce_is_final(k, p, carry)) break;
        }
        k->finish(carry, value);
        if (!INSIDE(0, t, 1, 1)) continue;
        CASTS[k->compute][p->out_dtype](1, out + t * SIZES[p->out_dtype], value);
    }
}

/* Rows [from, to) of n columns, the first of which is element `base`, into results of the compute type. */
static void reduce_columns(const reduce_kernel *k, const drupe_reduce_params *p, const char *in, i64 base,
                           i64 from, i64 to, i64 n, void *results, drupe_kernel_bounds *bounds)
{
    const i64 width = SIZES[p->in_dtype], step = p->strides[p->ndim - 1];
    block buffer, raw;
    (void)bounds;
    k->start(n, results, 0);
    if (!DRUPE_CHECKED && step == 1 && SAME(p->in_dtype, k->compute)) {
        k->columns(n, to - from, in + (base + from * p->stride) * width, p->stride, results);
        return;
    }
    for (i64 i = from; i < to; i++) {
        const i64 first = base + i * p->stride;
        for (i64 at = 0, m; at < n; at += m) {
            m = min((i64)BLOCK, n - at);
            if (!INSIDE(1, first + at * step, step, m)) continue;
            const void *row =
                reduce_fetch(k, p->in_dtype, in + (first + at * step) * width, step, m, &buffer, &raw);
            k->columns(m, 1, row, 0, (char *)results + at * SIZES[k->compute]);
        }
    }
}

static void reduce_run_columns(const reduce_kernel *k, size_t begin, size_t end, size_t size,
                               const void *const *args)
{
    char *out = *(char *const *)args[0];
    const char *in = *(const char *const *)args[1];
    const drupe_reduce_params *p = args[2];
    const int last = p->ndim - 1, direct = k->compute != 0 && SAME(p->out_dtype, k->compute);
    const i64 inner = p->shape[last], most = direct ? COLUMN_CHUNK : BLOCK,
              blocks = (inner + most - 1) / most;
    const i64 rows = p->outputs / inner, tasks = blocks * rows * p->splits;
    const i64 per = (p->extent + p->splits - 1) / p->splits, width = SIZES[p->out_dtype];
    const i64 until = share(tasks, (i64)end, (i64)size);
#if DRUPE_CHECKED
    BOUNDS_ARG(args, 3)
#else
    drupe_kernel_bounds *bounds = 0;
#endif
    block results;
    for (i64 t = share(tasks, (i64)begin, (i64)size); t < until; t++) {
        const i64 first = t % blocks * most, row = t / blocks % rows, split = t / blocks / rows;
        const i64 n = min(most, inner - first), to = min(p->extent, (split + 1) * per);
        const i64 base = reduce_base(p, row, last) + first * p->strides[last];
        const i64 output = split * p->outputs + row * inner + first;
        char *where = out + output * width;
        if (!INSIDE(0, output, 1, n)) continue;
        reduce_columns(k, p, in, base, split * per, to, n, direct ? where : results.bytes, bounds);
        if (!direct) CASTS[k->compute][p->out_dtype](n, where, results.bytes);
    }
}
