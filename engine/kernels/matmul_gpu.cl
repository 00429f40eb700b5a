/* Matrix products in the form for GPUs: out[c][s] = a[s] b[s] over steps c * chunk to (c + 1) * chunk of k, in one
 * type. MULTIPLY(r, x, y) is r + x * y in the type's sense.
 *
 *   EACH > 0   a group of SIDE x SIDE work-items computes a tile of as many times EACH elements down and across,
 *              each work-item EACH x EACH of them in registers, RUN neighbours at a time. What the next DEEP steps
 *              need is loaded while those in local memory are multiplied.
 *   EACH == 0  b is a vector: `team` work-items to a row, side by side along whichever way has the neighbours
 *
 * Rows and columns past the end read the last one again and are not written. */
#if KIND_FLOAT
#define ADD_PRODUCT(r, x, y) r = mad(x, y, r)
#define ADD(r, x)            r = r + x
#elif KIND_COMPLEX
#define ADD_PRODUCT(r, x, y)                                                                                 \
    r = (TC)(mad((x).s0, (y).s0, mad(-(x).s1, (y).s1, (r).s0)),                                              \
             mad((x).s0, (y).s1, mad((x).s1, (y).s0, (r).s1)))
#define ADD(r, x) r = r + x
#else
#define ADD_PRODUCT(r, x, y) r = (TC)(MULTIPLY(r, x, y))
#if KIND_INT || KIND_UINT
#define ADD(r, x) r = T(add)(r, x)
#else
#define ADD(r, x) r = r | x
#endif
#endif

#if EACH
#define LINES    (SIDE * EACH)
#define PITCH    (LINES + 4) /* keeps what neighbours store apart in local memory, and vectors aligned */
#define LOADS    (LINES * DEEP / GROUP)
#define PLACE(i) (((i) / RUN * SIDE) * RUN + (i) % RUN) /* of an item's line i in the tile, beside its own RUN */
#define ALIGNED  __attribute__((aligned(16)))
/* Which elements of a tile a work-item loads: `from` in memory, `to` in local memory, `step` along k. */
#define PLAN(from, to, step, along, left_over, stride, stride_k)                                             \
    OFFSET from[LOADS];                                                                                      \
    int to[LOADS], step[LOADS];                                                                              \
    UNROLL                                                                                                   \
    for (int i = 0; i < LOADS; i++) {                                                                        \
        const int e = id + i * GROUP, line = along ? e / DEEP : e % LINES;                                   \
        step[i] = along ? e % DEEP : e / LINES;                                                              \
        from[i] = (OFFSET)(min((i64)line, left_over) * stride + step[i] * stride_k);                         \
        to[i] = step[i] * PITCH + line;                                                                      \
    }
#define FETCH(next, at, from, step, room)                                                                    \
    if (room >= DEEP) {                                                                                      \
        UNROLL                                                                                               \
        for (int i = 0; i < LOADS; i++) next[i] = LOAD(at[from[i]]);                                         \
    } else {                                                                                                 \
        UNROLL                                                                                               \
        for (int i = 0; i < LOADS; i++) next[i] = step[i] < room ? LOAD(at[from[i]]) : (TC)(0);              \
    }
#define KEEP(shared, to, next)                                                                               \
    UNROLL                                                                                                   \
    for (int i = 0; i < LOADS; i++) shared[to[i]] = next[i];
#define LINES_OF(mine, shared, item)                                                                         \
    TC mine[EACH] ALIGNED;                                                                                   \
    UNROLL                                                                                                   \
    for (int i = 0; i < EACH; i += RUN)                                                                      \
        *(LINE *)&mine[i] = *(LOCAL const LINE *)&shared[k * PITCH + item * RUN + PLACE(i)];

KERNEL NAME(GLOBAL TC *out, GLOBAL const TC *a, GLOBAL const TC *b, const drupe_product_params p)
{
    LOCAL TC left[DEEP * PITCH] ALIGNED, right[DEEP * PITCH] ALIGNED;
    const int id = get_local_id(0), x = id % SIDE, y = id / SIDE;
    const i64 across = (p.n + LINES - 1) / LINES, tiles = (p.m + LINES - 1) / LINES * across;
    for (i64 t = get_group_id(0); t < tiles * p.count * p.splits; t += get_num_groups(0)) {
        const i64 part = t / tiles, s = part % p.count, first = part / p.count * p.chunk;
        const i64 row = t % tiles / across * LINES, column = t % tiles % across * LINES;
        GLOBAL const TC *at_a = a + s * p.a_stack + row * p.a_row + first * p.a_column,
                        *at_b = b + s * p.b_stack + column * p.b_column + first * p.b_row;
        PLAN(from_a, to_a, step_a, p.a_along, p.m - 1 - row, p.a_row, p.a_column)
        PLAN(from_b, to_b, step_b, p.b_along, p.n - 1 - column, p.b_column, p.b_row)
        TC r[EACH][EACH], next_a[LOADS], next_b[LOADS];
        UNROLL
        for (int i = 0; i < EACH; i++) {
            UNROLL
            for (int j = 0; j < EACH; j++) r[i][j] = (TC)(0);
        }
        i64 room = min(p.k - first, p.chunk);
        FETCH(next_a, at_a, from_a, step_a, room)
        FETCH(next_b, at_b, from_b, step_b, room)
        for (; room > 0; room -= DEEP) {
            KEEP(left, to_a, next_a)
            KEEP(right, to_b, next_b)
            barrier(CLK_LOCAL_MEM_FENCE);
            if (room > DEEP) {
                at_a += DEEP * p.a_column;
                at_b += DEEP * p.b_row;
                FETCH(next_a, at_a, from_a, step_a, room - DEEP)
                FETCH(next_b, at_b, from_b, step_b, room - DEEP)
            }
            UNROLL
            for (int k = 0; k < DEEP; k++) {
                LINES_OF(u, left, y)
                LINES_OF(v, right, x)
                UNROLL
                for (int i = 0; i < EACH; i++) {
                    UNROLL
                    for (int j = 0; j < EACH; j++) ADD_PRODUCT(r[i][j], u[i], v[j]);
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        UNROLL
        for (int i = 0; i < EACH; i++) {
            const i64 to = row + y * RUN + PLACE(i);
            UNROLL
            for (int j = 0; j < EACH; j++)
                if (to < p.m && column + x * RUN + PLACE(j) < p.n)
                    out[(part * p.m + to) * p.n + column + x * RUN + PLACE(j)] = r[i][j];
        }
    }
}

#else
#define AHEAD 8
KERNEL NAME(GLOBAL TC *out, GLOBAL const TC *a, GLOBAL const TC *b, const drupe_product_params p)
{
    LOCAL TC scratch[GROUP];
    const int id = get_local_id(0), team = p.team, rows = GROUP / team;
    const int member = p.a_along ? id % team : id / rows, line = p.a_along ? id / team : id % rows;
    const i64 blocks = (p.m + rows - 1) / rows;
    for (i64 t = get_group_id(0); t < blocks * p.count * p.splits; t += get_num_groups(0)) {
        const i64 part = t / blocks, s = part % p.count, first = part / p.count * p.chunk;
        const i64 row = t % blocks * rows + line, end = min(p.k, first + p.chunk);
        GLOBAL const TC *at_a = a + s * p.a_stack + min(row, p.m - 1) * p.a_row, *at_b = b + s * p.b_stack;
        TC r = (TC)(0);
        i64 l = first + member;
        for (; l + (AHEAD - 1) * team < end; l += AHEAD * team) {
            TC u[AHEAD], v[AHEAD];
            UNROLL
            for (int i = 0; i < AHEAD; i++) {
                u[i] = LOAD(at_a[(l + i * team) * p.a_column]);
                v[i] = LOAD(at_b[(l + i * team) * p.b_row]);
            }
            UNROLL
            for (int i = 0; i < AHEAD; i++) ADD_PRODUCT(r, u[i], v[i]);
        }
        for (; l < end; l += team) {
            const TC u = LOAD(at_a[l * p.a_column]), v = LOAD(at_b[l * p.b_row]);
            ADD_PRODUCT(r, u, v);
        }
        scratch[line * team + member] = r;
        for (int fold = team / 2; fold > 0; fold /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (member < fold) ADD(scratch[line * team + member], scratch[line * team + member + fold]);
        }
        if (member == 0 && row < p.m) out[part * p.m + row] = scratch[line * team];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif
