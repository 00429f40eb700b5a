/* Reductions in the form for GPUs; drupe_reduce_params as in reduce.cl, of which this is the other half.
 *
 *   row      the teams of an output, one to each split, run through it together, and each folds in local
 *            memory. So all of them read one part of memory at a time, which is faster than many. Neighbours are
 *            loaded WIDE at a time, behind those that come before the first aligned address
 *   column   a work-item per output or split, AHEAD loads at a time
 *
 * What keeps the memory busy is many loads on their way: nothing is combined before all of a round are issued. */
#define AHEAD 8

/* a / b of numbers that are not negative: 64-bit divisions take some hundred instructions. */
static inline i64 quotient(i64 a, i64 b)
{
    return ((a | b) >> 32) == 0 ? (i64)((u32)a / (u32)b) : a / b;
}
/* Where the elements of output o begin. It is no function, since an address of p would have each work-item copy it. */
#define REDUCE_BASE(base, o)                                                                                 \
    i64 base = 0, base##_rest = o;                                                                           \
    for (int d = p.ndim - 1; d >= 0; d--) {                                                                  \
        const i64 next = d ? quotient(base##_rest, p.shape[d]) : 0;                                          \
        base += (base##_rest - next * p.shape[d]) * p.strides[d];                                            \
        base##_rest = next;                                                                                  \
    }
#define COMBINE(r, value)                                                                                    \
    {                                                                                                        \
        const TC b = value;                                                                                  \
        r = (TC)(OP(r, b));                                                                                  \
    }
/* Elements first, first + step ... before `end` of those that ELEMENT(i) names, into r. */
#define RUN(r, first, step, end)                                                                             \
    {                                                                                                        \
        i64 i = first;                                                                                       \
        if (i + (AHEAD - 1) * (step) < (end)) {                                                              \
            TC lanes[AHEAD];                                                                                 \
            UNROLL                                                                                           \
            for (int k = 0; k < AHEAD; k++) lanes[k] = IDENTITY;                                             \
            for (; i + (AHEAD - 1) * (step) < (end); i += AHEAD * (step)) {                                  \
                TC loaded[AHEAD];                                                                            \
                UNROLL                                                                                       \
                for (int k = 0; k < AHEAD; k++) loaded[k] = ELEMENT(i + k * (step));                         \
                UNROLL                                                                                       \
                for (int k = 0; k < AHEAD; k++) COMBINE(lanes[k], loaded[k])                                 \
            }                                                                                                \
            UNROLL                                                                                           \
            for (int k = 0; k < AHEAD; k++) COMBINE(r, lanes[k])                                             \
        }                                                                                                    \
        for (; i < (end); i += (step)) COMBINE(r, ELEMENT(i))                                                \
    }

#if COLUMN
#define ELEMENT(i) LOAD0(GET(1, in, base + (i)*p.stride))
KERNEL NAME(GLOBAL TO *out, GLOBAL const TI0 *in, const drupe_reduce_params p BOUNDS)
{
    const i64 per = quotient(p.extent + p.splits - 1, p.splits);
    for (i64 t = get_global_id(0); t < p.outputs * p.splits; t += get_global_size(0)) {
        const i64 s = p.splits > 1 ? quotient(t, p.outputs) : 0, to = min(p.extent, (s + 1) * per);
        REDUCE_BASE(base, t - s * p.outputs)
        TC r = IDENTITY;
        RUN(r, s * per, 1, to)
        PUT(0, out, t, STORE(r))
    }
}

#else
#if WIDE > 1
#define WIDE_TYPE CAT(TI0, WIDE)
/* A vector into the accumulators of its components. */
#define TAKE2(x)  COMBINE(lanes[0], LOAD0(x.s0)) COMBINE(lanes[1], LOAD0(x.s1))
#define TAKE4(x)  TAKE2(x) COMBINE(lanes[2], LOAD0(x.s2)) COMBINE(lanes[3], LOAD0(x.s3))
#define TAKE8(x)                                                                                             \
    TAKE4(x)                                                                                                 \
    COMBINE(lanes[4], LOAD0(x.s4))                                                                           \
    COMBINE(lanes[5], LOAD0(x.s5)) COMBINE(lanes[6], LOAD0(x.s6)) COMBINE(lanes[7], LOAD0(x.s7))
#define TAKE16(x)                                                                                            \
    TAKE8(x)                                                                                                 \
    COMBINE(lanes[8], LOAD0(x.s8))                                                                           \
    COMBINE(lanes[9], LOAD0(x.s9)) COMBINE(lanes[10], LOAD0(x.sa)) COMBINE(lanes[11], LOAD0(x.sb))           \
    COMBINE(lanes[12], LOAD0(x.sc))                                                                          \
    COMBINE(lanes[13], LOAD0(x.sd)) COMBINE(lanes[14], LOAD0(x.se)) COMBINE(lanes[15], LOAD0(x.sf))
#define TAKE(x) {CAT(TAKE, WIDE)(x)}
/* One round: N vectors are on their way before the first is combined. */
#define ROUNDS(N)                                                                                            \
    for (; i + (N - 1) * team < whole; i += N * team) {                                                      \
        WIDE_TYPE loaded[N];                                                                                 \
        UNROLL                                                                                               \
        for (int k = 0; k < N; k++) loaded[k] = wide[i + k * team];                                          \
        UNROLL                                                                                               \
        for (int k = 0; k < N; k++) TAKE(loaded[k])                                                          \
    }
/* `n` neighbours from `at` on, by a team of which this work-item is `member`. */
static inline TC neighbours(GLOBAL const TI0 *at, i64 n, int member, int team)
{
    const int past = (int)((ulong)at / sizeof(TI0) & (WIDE - 1));
    const i64 before = min((i64)(WIDE - past & (WIDE - 1)), n), whole = (n - before) / WIDE;
    GLOBAL const WIDE_TYPE *wide = (GLOBAL const WIDE_TYPE *)(at + before);
    TC r = IDENTITY;
    for (i64 i = member; i < before; i += team) COMBINE(r, LOAD0(at[i]))
    if (member < whole) {
        TC lanes[WIDE];
        i64 i = member;
        UNROLL
        for (int k = 0; k < WIDE; k++) lanes[k] = IDENTITY;
        ROUNDS(AHEAD)
        ROUNDS(4)
        ROUNDS(1)
        UNROLL
        for (int k = 0; k < WIDE; k++) COMBINE(r, lanes[k])
    }
    for (i64 i = before + whole * WIDE + member; i < n; i += team) COMBINE(r, LOAD0(at[i]))
    return r;
}
#elif STRIDED
#define ELEMENT(i) LOAD0(GET(1, in, base + (i)*p.stride))
#else
#define ELEMENT(i) LOAD0(GET(1, in, base + (i)))
#endif

KERNEL NAME(GLOBAL TO *out, GLOBAL const TI0 *in, const drupe_reduce_params p BOUNDS)
{
    LOCAL TC scratch[GROUP];
    const int id = get_local_id(0), team = p.team, member = id & (team - 1), teams = get_local_size(0) / team;
    const i64 tasks = p.outputs * p.splits;
    const int step = team * (int)p.splits;
    for (i64 first = (i64)get_group_id(0) * teams; first < tasks; first += (i64)get_num_groups(0) * teams) {
        const i64 t = first + id / team;
        TC r = IDENTITY;
        if (t < tasks) {
            const i64 o = p.splits > 1 ? quotient(t, p.splits) : t;
            const int start = (int)(t - o * p.splits) * team + member;
            REDUCE_BASE(base, o)
#if WIDE > 1
            r = neighbours(in + base, p.extent, start, step);
#else
            RUN(r, start, step, p.extent)
#endif
        }
        scratch[id] = r;
        for (int fold = team / 2; fold > 0; fold /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (member < fold) COMBINE(scratch[id], scratch[id + fold])
        }
        if (member == 0 && t < tasks) PUT(0, out, t, STORE(scratch[id]))
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif
