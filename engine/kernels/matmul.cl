/* out[m][n] = sum over k of a[m][k] b[k][n] in one type: what serves integers, bool, and devices without a
 * BLAS. MULTIPLY(r, x, y) is r + x * y in the type's sense.
 *
 * A chunk of (row, block of WIDTH columns) tasks per work-item; matmul_gpu.cl is the form for GPUs. */
#ifndef __OPENCL_VERSION__
#define WIDTH 64
static void CAT(NAME, _task)(TC *out, const TC *a, const TC *b, const drupe_matmul_params *p, i64 width)
{
    TC r[WIDTH] = {0};
    for (i64 l = 0; l < p->k; l++) {
        const TC x = LOAD(a[l * p->a_column]);
        const TC *row = b + l * p->b_row;
        if (width == WIDTH) {
            for (i64 j = 0; j < WIDTH; j++) r[j] = (TC)(MULTIPLY(r[j], x, LOAD(row[j])));
        } else {
            for (i64 j = 0; j < width; j++) r[j] = (TC)(MULTIPLY(r[j], x, LOAD(row[j])));
        }
    }
    for (i64 j = 0; j < width; j++) out[j] = r[j];
}
static void NAME(size_t begin, size_t end, size_t size, const void *const *args)
{
    TC *out = *(TC *const *)args[0];
    const TC *a = *(const TC *const *)args[1], *b = *(const TC *const *)args[2];
    const drupe_matmul_params *p = args[3];
    BOUNDS_ARG(args, 4)
    const i64 blocks = (p->n + WIDTH - 1) / WIDTH, tasks = blocks * p->m;
    const i64 until = share(tasks, (i64)end, (i64)size);
    for (i64 t = share(tasks, (i64)begin, (i64)size); t < until; t++) {
        const i64 row = t / blocks, j = t % blocks * WIDTH, width = min((i64)WIDTH, p->n - j);
        const int good = INSIDE(0, row * p->n + j, 1, width) & INSIDE(1, row * p->a_row, p->a_column, p->k) &
                         INSIDE(2, j, p->b_row, p->k) & INSIDE(2, j + width - 1, p->b_row, p->k);
        if (!good) continue;
        CAT(NAME, _task)(out + row * p->n + j, a + row * p->a_row, b + j, p, width);
    }
}
#undef WIDTH

#else
#define WIDTH 64
KERNEL NAME(GLOBAL TC *out, GLOBAL const TC *a, GLOBAL const TC *b, const drupe_matmul_params p BOUNDS)
{
    const i64 blocks = (p.n + WIDTH - 1) / WIDTH, tasks = blocks * p.m, items = get_global_size(0);
    const i64 part = (tasks + items - 1) / items, from = get_global_id(0) * part, until = min(from + part, tasks);
    for (i64 t = from; t < until; t++) {
        const i64 row = t / blocks, j = t % blocks * WIDTH, width = min((i64)WIDTH, p.n - j);
        TC r[WIDTH];
        for (int i = 0; i < WIDTH; i++) r[i] = (TC)(0);
        for (i64 l = 0; l < p.k; l++) {
            const TC x = LOAD(GET(1, a, row * p.a_row + l * p.a_column));
            const i64 y = l * p.b_row + j;
            INDEPENDENT
            for (i64 i = 0; i < width; i++) r[i] = (TC)(MULTIPLY(r[i], x, LOAD(GET(2, b, y + i))));
        }
        for (i64 i = 0; i < width; i++) PUT(0, out, row * p.n + j + i, r[i])
    }
}
#endif
