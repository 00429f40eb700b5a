/* Places of the largest (VARIANT 0) or least elements: a team of work-items to an output or split, whose state is a
 * place and its element. Of equal ones the first counts, and a NaN comes before everything. */
#define AHEAD 4
static inline int comes_before(TC x, i64 i, TC y, i64 j)
{
#if KIND_COMPLEX
    const int a = any(isnan(x)), b = any(isnan(y));
    if (a || b) return a && b ? i < j : a;
    if (x.s0 != y.s0) return VARIANT ? x.s0 < y.s0 : x.s0 > y.s0;
    if (x.s1 != y.s1) return VARIANT ? x.s1 < y.s1 : x.s1 > y.s1;
    return i < j;
#else
#if KIND_FLOAT
    const int a = x != x, b = y != y;
    if (a || b) return a && b ? i < j : a;
#endif
    if (x == y) return i < j;
    return VARIANT ? x < y : x > y;
#endif
}
#define PLACE(i) (p.listed ? list[(i)*p.outputs + o] : (i))
#define TAKE(value, place)                                                                                   \
    {                                                                                                        \
        if (best < 0 || comes_before(value, place, r, best)) {                                               \
            r = value;                                                                                       \
            best = place;                                                                                    \
        }                                                                                                    \
    }

KERNEL NAME(GLOBAL i64 *out, GLOBAL const TI0 *in, GLOBAL const i64 *list, const drupe_arg_params p)
{
    LOCAL TC values[GROUP];
    LOCAL i64 places[GROUP];
    const int id = get_local_id(0), team = p.team, member = id & (team - 1), teams = get_local_size(0) / team;
    const i64 per = (p.extent + p.splits - 1) / p.splits, tasks = p.outputs * p.splits;
    for (i64 first = (i64)get_group_id(0) * teams; first < tasks; first += (i64)get_num_groups(0) * teams) {
        const i64 t = first + id / team;
        i64 best = -1;
        TC r = (TC)(0);
        if (t < tasks) {
            const i64 s = t / p.outputs, o = t - s * p.outputs, to = min(p.extent, (s + 1) * per);
            const i64 row = o / p.inner, base = row * p.n * p.inner + o - row * p.inner;
            i64 i = s * per + member;
            for (; i + (AHEAD - 1) * team < to; i += AHEAD * team) {
                TC loaded[AHEAD];
                i64 at[AHEAD];
                UNROLL
                for (int k = 0; k < AHEAD; k++) {
                    at[k] = PLACE(i + k * team);
                    loaded[k] = LOAD0(READ(1, in, base + at[k] * p.inner));
                }
                UNROLL
                for (int k = 0; k < AHEAD; k++) TAKE(loaded[k], at[k])
            }
            for (; i < to; i += team) {
                const i64 at = PLACE(i);
                const TC value = LOAD0(READ(1, in, base + at * p.inner));
                TAKE(value, at)
            }
        }
        values[id] = r;
        places[id] = best;
        for (int fold = team / 2; fold > 0; fold /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (member < fold && places[id + fold] >= 0) {
                TAKE(values[id + fold], places[id + fold])
                values[id] = r;
                places[id] = best;
            }
        }
        if (member == 0 && t < tasks) out[t] = best;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
