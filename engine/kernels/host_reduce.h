/* Runs the loops of reduce.cl over shares of the work; see host_block.h. Included behind host_run.h. */

typedef struct reduce_kernel {
    void (*row)(i64 n, const void *in, void *carry);    /* fold n elements into one carried result */
    void (*column)(i64 n, const void *in, void *carry); /* element by element into n results */
    void (*start)(i64 n, void *carry, int wide);
    void (*finish)(const void *carry, void *out);
    int compute;
} reduce_kernel;

/* Long enough to amortise folding the lanes, short enough that rounding errors stay those of short sums. */
#define ROW_BLOCK 4096

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

static void reduce_run_rows(const reduce_kernel *k, size_t begin, size_t end, size_t size,
                            const void *const *args)
{
    char *out = *(char *const *)args[0];
    const char *in = *(const char *const *)args[1];
    const drupe_reduce_params *p = args[2];
    const i64 tasks = p->outputs * p->splits, per = (p->extent + p->splits - 1) / p->splits;
    const i64 until = share(tasks, (i64)end, (i64)size), width = SIZES[p->in_dtype];
    const i64 most = SAME(p->in_dtype, k->compute) && p->stride == 1 ? ROW_BLOCK : BLOCK;
    BOUNDS_ARG(args, 3)
    block buffer, raw;
    for (i64 t = share(tasks, (i64)begin, (i64)size); t < until; t++) {
        const i64 base = reduce_base(p, t / p->splits, p->ndim);
        const char *row = in + base * width;
        const i64 from = t % p->splits * per, to = min(p->extent, from + per);
        _Alignas(16) drupe_u64 carry[2], value[2];
        k->start(1, carry, 1);
        for (i64 at = from, n; at < to; at += n) {
            n = min(most, to - at);
            if (!INSIDE(1, base + at * p->stride, p->stride, n)) continue;
            k->row(n, reduce_fetch(k, p->in_dtype, row + at * p->stride * width, p->stride, n, &buffer, &raw),
                   carry);
        }
        k->finish(carry, value);
        if (!INSIDE(0, t, 1, 1)) continue;
        CASTS[k->compute][p->out_dtype](1, out + t * SIZES[p->out_dtype], value);
    }
}

static void reduce_run_columns(const reduce_kernel *k, size_t begin, size_t end, size_t size,
                               const void *const *args)
{
    char *out = *(char *const *)args[0];
    const char *in = *(const char *const *)args[1];
    const drupe_reduce_params *p = args[2];
    const int last = p->ndim - 1;
    const i64 inner = p->shape[last], step = p->strides[last], blocks = (inner + BLOCK - 1) / BLOCK;
    const i64 rows = p->outputs / inner, tasks = blocks * rows * p->splits;
    const i64 per = (p->extent + p->splits - 1) / p->splits, width = SIZES[p->in_dtype];
    const i64 until = share(tasks, (i64)end, (i64)size);
    BOUNDS_ARG(args, 3)
    block buffer, raw, results;
    for (i64 t = share(tasks, (i64)begin, (i64)size); t < until; t++) {
        const i64 first = t % blocks * BLOCK, row = t / blocks % rows, split = t / blocks / rows;
        const i64 n = min((i64)BLOCK, inner - first), to = min(p->extent, (split + 1) * per);
        const i64 base = reduce_base(p, row, last) + first * step;
        const i64 output = split * p->outputs + row * inner + first;
        const char *from = in + base * width;
        k->start(n, results.bytes, 0);
        for (i64 i = split * per; i < to; i++) {
            if (!INSIDE(1, base + i * p->stride, step, n)) continue;
            k->column(n, reduce_fetch(k, p->in_dtype, from + i * p->stride * width, step, n, &buffer, &raw),
                      results.bytes);
        }
        if (!INSIDE(0, output, 1, n)) continue;
        CASTS[k->compute][p->out_dtype](n, out + output * SIZES[p->out_dtype], results.bytes);
    }
}
