/* Running sums or products along the middle axis of [outer][n][inner], chunk by chunk.
 *
 * SUMS 1   out[outer][chunks][inner] = what each chunk comes to
 * SUMS 0   the elements, beginning with what `before` says of the chunks in front, summed up themselves
 *
 * COLUMN 0: inner is 1, and a group works on a chunk of EACH elements to a work-item. COLUMN 1: a work-item. */
#define EACH 8
#define COMBINE(r, value)                                                                                    \
    {                                                                                                        \
        const TC b = value;                                                                                  \
        r = (TC)(OP(r, b));                                                                                  \
    }
#define VALUE(i) LOAD0(READ(1, in, i))

#if COLUMN
KERNEL NAME(GLOBAL TO *out, GLOBAL const TI0 *in, GLOBAL const TC *before, const drupe_scan_params p)
{
    const i64 tasks = p.outer * p.chunks * p.inner;
    for (i64 t = get_global_id(0); t < tasks; t += get_global_size(0)) {
        const i64 block = t / p.inner, column = t - block * p.inner, o = block / p.chunks, c = block - o * p.chunks;
        const i64 end = min(p.n, (c + 1) * p.chunk);
        TC r = IDENTITY;
#if SUMS
        for (i64 i = c * p.chunk; i < end; i++) COMBINE(r, VALUE((o * p.n + i) * p.inner + column))
        WRITE(0, out, t, STORE(r));
#else
        const i64 to = o * (p.n + p.initial) * p.inner + column;
        if (c > 0) r = before[t - p.inner];
        if (c == 0 && p.initial) WRITE(0, out, to, STORE(r));
        for (i64 i = c * p.chunk; i < end; i++) {
            COMBINE(r, VALUE((o * p.n + i) * p.inner + column))
            WRITE(0, out, to + (i + p.initial) * p.inner, STORE(r));
        }
#endif
    }
}
#else
KERNEL NAME(GLOBAL TO *out, GLOBAL const TI0 *in, GLOBAL const TC *before, const drupe_scan_params p)
{
    LOCAL TC sums[GROUP];
    const int id = get_local_id(0), size = get_local_size(0);
    for (i64 t = get_group_id(0); t < p.outer * p.chunks; t += get_num_groups(0)) {
        const i64 o = t / p.chunks, c = t - o * p.chunks, from = c * p.chunk + id * EACH;
        const i64 row = o * p.n;
        TC own[EACH], r = IDENTITY;
        UNROLL
        for (int k = 0; k < EACH; k++) own[k] = from + k < p.n ? VALUE(row + from + k) : IDENTITY;
        UNROLL
        for (int k = 0; k < EACH; k++) COMBINE(r, own[k])
        sums[id] = r;
        barrier(CLK_LOCAL_MEM_FENCE);
#if SUMS
        for (int reach = 1; reach < size; reach *= 2) { /* neighbours fold, so that the order stays */
            if (id % (2 * reach) == 0) COMBINE(sums[id], sums[id + reach])
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (id == 0) WRITE(0, out, t, STORE(sums[0]));
#else
        for (int reach = 1; reach < size; reach *= 2) {
            TC other = IDENTITY;
            if (id >= reach) other = sums[id - reach];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (id >= reach) {
                COMBINE(other, sums[id])
                sums[id] = other;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const i64 to = o * (p.n + p.initial) + p.initial;
        r = IDENTITY;
        if (c > 0) r = before[t - 1];
        if (c == 0 && id == 0 && p.initial) WRITE(0, out, to - 1, STORE(r));
        if (id > 0) COMBINE(r, sums[id - 1])
        for (int k = 0; k < EACH && from + k < p.n; k++) {
            COMBINE(r, own[k])
            WRITE(0, out, to + from + k, STORE(r));
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif
