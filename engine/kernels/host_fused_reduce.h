/* Fused kernels that end in a reduction: tasks, parts and their order are those of reduce_run_rows() and
 * reduce_run_columns() (host_reduce.h), and elements are computed when they are wanted. Included by
 * host_fused.h. */

/* Of the values of a part: ROW_BYTES of a row, or four rows of COLUMN_PIECE columns. */
#define FUSED_CHUNK ROW_BYTES

typedef struct fused_reducer {
    fused_run *run;
    const reduce_kernel *k;
    const drupe_reduce_params *p;
    const char *stored; /* where all values are stored, one after the other; NULL: they are not */
    int may_stop;       /* no step stores anything */
    i64 width;          /* of a value */
    block buffer, raw;
    _Alignas(64) char chunk[FUSED_CHUNK];
} fused_reducer;

/* The values of elements [at, at + n): where they are stored, or in the chunk from value `to` on. */
static const char *fused_values(fused_reducer *r, i64 at, i64 n, i64 to)
{
    char *values = r->chunk + to * r->width;
    fused_elements(r->run, at, at + n, values);
    return r->stored ? r->stored + at * r->width : values;
}

static void fused_reduce_rows(fused_reducer *r, size_t begin, size_t end, size_t size)
{
    const reduce_kernel *k = r->k;
    const drupe_reduce_params *p = r->p;
    const i64 tasks = p->outputs * p->splits, per = (p->extent + p->splits - 1) / p->splits;
    const i64 until = share(tasks, (i64)end, (i64)size);
    const i64 most = SAME(p->in_dtype, k->compute) ? ROW_BYTES / r->width : BLOCK;
    for (i64 t = share(tasks, (i64)begin, (i64)size); t < until; t++) {
        const i64 base = reduce_base(p, t / p->splits, p->ndim);
        const i64 from = t % p->splits * per, to = min(p->extent, from + per);
        _Alignas(16) drupe_u64 carry[4], value[2];
        k->start(1, carry, 1);
        for (i64 at = from, n; at < to && !(r->may_stop && reduce_is_known(k, p)); at += n) {
            n = min(most, to - at);
            const char *values = fused_values(r, base + at, n, 0);
            k->row(n, reduce_fetch(k, p->in_dtype, values, 1, n, &r->buffer, &r->raw), carry);
            if (reduce_is_final(k, p, carry) && r->may_stop) break;
        }
        k->finish(carry, value);
        CASTS[k->compute][p->out_dtype](1, r->run->f->reduction.out + t * SIZES[p->out_dtype], value);
    }
}

/* Rows of n values, `pitch` values apart, into n results. */
static void fused_fold(fused_reducer *r, i64 n, i64 rows, const char *values, i64 pitch, char *results)
{
    if (SAME(r->p->in_dtype, r->k->compute)) {
        r->k->columns(n, rows, values, pitch, results);
        return;
    }
    for (i64 i = 0; i < rows; i++) {
        const char *from = values + i * pitch * r->width;
        const void *row = reduce_fetch(r->k, r->p->in_dtype, from, 1, n, &r->buffer, &r->raw);
        r->k->columns(n, 1, row, 0, results);
    }
}

/* Rows [from, to) of n columns that are neighbours. The kernel takes four rows together, and looks for NaN in
 * pieces of COLUMN_PIECE columns of these: so must this. */
static void fused_columns(fused_reducer *r, i64 base, i64 from, i64 to, i64 n, char *results)
{
    const i64 pitch = r->p->stride, width = SIZES[r->k->compute];
    const i64 piece = SAME(r->p->in_dtype, r->k->compute) && r->width <= 8 ? COLUMN_PIECE : BLOCK;
    const int whole = n == pitch && n <= piece; /* the rows are neighbours, too */
    const i64 most = whole ? FUSED_CHUNK / r->width / n / 4 * 4 : 4;
    for (i64 i = from, rows; i < to; i += rows) {
        rows = min(most, to - i);
        for (i64 at = 0, m; at < n; at += m) {
            const i64 first = base + i * pitch + at;
            m = min(piece, n - at);
            const char *values = fused_values(r, first, whole ? rows * n : m, 0);
            for (i64 l = 1; l < rows && !whole; l++) fused_values(r, first + l * pitch, m, l * m);
            fused_fold(r, m, rows, values, r->stored ? pitch : m, results + at * width);
        }
    }
}

/* Short rows that lie one after the other, as columns. */
static void fused_short_rows(fused_reducer *r, i64 base, i64 n, char *results)
{
    const drupe_reduce_params *p = r->p;
    const i64 length = p->extent, fit = FUSED_CHUNK / (length * r->width), most = min(fit, (i64)BLOCK);
    for (i64 at = 0, m; at < n; at += m) {
        m = min(most, n - at);
        const char *values = fused_values(r, base + at * length, m * length, 0);
        for (i64 i = 0; i < length; i++) {
            const void *row =
                reduce_fetch(r->k, p->in_dtype, values + i * r->width, length, m, &r->buffer, &r->raw);
            r->k->columns(m, 1, row, 0, results + at * SIZES[r->k->compute]);
        }
    }
}

static void fused_reduce_columns(fused_reducer *r, size_t begin, size_t end, size_t size)
{
    const reduce_kernel *k = r->k;
    const drupe_reduce_params *p = r->p;
    const int last = p->ndim - 1, direct = k->compute != 0 && SAME(p->out_dtype, k->compute);
    const i64 inner = p->shape[last], most = direct ? COLUMN_CHUNK : BLOCK,
              blocks = (inner + most - 1) / most;
    const i64 rows = p->outputs / inner, tasks = blocks * rows * p->splits;
    const i64 per = (p->extent + p->splits - 1) / p->splits;
    const i64 until = share(tasks, (i64)end, (i64)size);
    block results;
    for (i64 t = share(tasks, (i64)begin, (i64)size); t < until; t++) {
        const i64 first = t % blocks * most, row = t / blocks % rows, split = t / blocks / rows;
        const i64 n = min(most, inner - first), to = min(p->extent, (split + 1) * per);
        const i64 base = reduce_base(p, row, last) + first * p->strides[last];
        char *where =
            r->run->f->reduction.out + (split * p->outputs + row * inner + first) * SIZES[p->out_dtype];
        char *into = direct ? where : results.bytes;
        k->start(n, into, 0);
        if (p->strides[last] == 1)
            fused_columns(r, base, split * per, to, n, into);
        else
            fused_short_rows(r, base, n, into);
        if (!direct) CASTS[k->compute][p->out_dtype](n, where, results.bytes);
    }
}

static void fused_reduce(fused_run *run, size_t begin, size_t end, size_t size)
{
    const drupe_fused_reduction *of = &run->f->reduction;
    const int store = run->f->steps[of->step].store;
    fused_reducer r;
    r.run = run;
    r.k = FUSED_REDUCTIONS[of->op][of->compute];
    r.p = &of->params;
    r.width = SIZES[of->params.in_dtype];
    r.stored = store >= 0 && run->f->ndim == 0 ? run->f->operands[store].base : NULL;
    r.may_stop = 1;
    for (int i = 0; i < run->f->nsteps; i++) r.may_stop &= run->f->steps[i].store < 0;
    if (of->column)
        fused_reduce_columns(&r, begin, end, size);
    else
        fused_reduce_rows(&r, begin, end, size);
}
