/* Elements by index arrays. Whatever an index is, nothing outside of its axis is touched. The first one that is out of
 * bounds goes to the report: [0] is 1 then, [1] the index, [2] the number of its array.
 *
 * VARIANT 0   out[other] = in[at]
 *         1   out[at] = in[other]
 *         2   out[i] = the position in memory that the indices of two arrays lead to
 *         3   out[position] = the number of the last point that leads there */
static inline i64 quotient(i64 a, i64 b)
{
    return ((a | b) >> 32) == 0 ? (i64)((u32)a / (u32)b) : a / b;
}
static inline i64 lead(i64 index, i64 length, int mode, int array, GLOBAL i64 *report)
{
    i64 v = index;
    if (mode == 1) {
        v %= length;
        return v < 0 ? v + length : v;
    }
    if (mode == 2) return clamp(v, (i64)0, length - 1);
    v += v < 0 ? length : 0;
    if ((u64)v < (u64)length) return v;
    if (atomic_cmpxchg((volatile GLOBAL int *)report, 0, 1) == 0) {
        report[1] = index;
        report[2] = array;
    }
    return -1;
}

/* Steps of position i: `a` along points and `b` along other axes in the indexed array, `c` in the other one, `x` and
 * `y` in the index arrays, and the number of its point. It is no function, since an address of p would have each
 * work-item copy it. */
typedef struct steps {
    i64 a, b, c, x, y, point;
} steps;
#define STEPS(s, i)                                                                                          \
    steps s = {0, 0, 0, 0, 0, p.points ? i : 0};                                                             \
    i64 s##_rest = i;                                                                                        \
    for (int d = p.ndim - 1; d >= 0; d--) {                                                                  \
        const i64 next = d ? quotient(s##_rest, p.shape[d]) : 0, k = s##_rest - next * p.shape[d];           \
        if (d < p.points)                                                                                    \
            s.a += k * p.at[d];                                                                              \
        else                                                                                                 \
            s.b += k * p.at[d];                                                                              \
        s.c += k * p.other[d];                                                                               \
        s.x += k * p.index[0][d];                                                                            \
        s.y += k * p.index[1][d];                                                                            \
        s##_rest = next;                                                                                     \
        if (d == p.points) s.point = next;                                                                   \
    }

#if VARIANT == 0
KERNEL NAME(GLOBAL TO *out, GLOBAL const TO *in, GLOBAL const i64 *index, GLOBAL i64 *report, const drupe_index_params p)
{
    for (i64 i = get_global_id(0); i < p.count; i += get_global_size(0)) {
        STEPS(s, i)
        const i64 v = lead(index[s.x], p.length[0], p.mode, 0, report);
        if (v >= 0) out[s.c] = in[p.base + s.a + s.b + v * p.step[0]];
    }
}
#elif VARIANT == 1
KERNEL NAME(GLOBAL TO *out, GLOBAL const TO *in, GLOBAL const i64 *index, GLOBAL i64 *report, GLOBAL const int *owner,
            const drupe_index_params p)
{
    if (report[0] != p.wanted) return;
    for (i64 i = get_global_id(0); i < p.count; i += get_global_size(0)) {
        STEPS(s, i)
        i64 v = index[s.x];
        if (p.mode == 0)
            v += v < 0 ? p.length[0] : 0;
        else
            v = lead(v, p.length[0], p.mode, 0, report);
        if ((u64)v >= (u64)p.length[0]) continue;
        const i64 at = p.base + s.a + v * p.step[0];
        if (!p.claimed || owner[at] == (int)s.point) out[at + s.b] = in[s.c];
    }
}
#elif VARIANT == 2
KERNEL NAME(GLOBAL i64 *out, GLOBAL const i64 *index, GLOBAL const i64 *second, GLOBAL i64 *report,
            const drupe_index_params p)
{
    for (i64 i = get_global_id(0); i < p.count; i += get_global_size(0)) {
        STEPS(s, i)
        const i64 v = lead(index[s.x], p.length[0], p.mode, 0, report);
        const i64 w = lead(second[s.y], p.length[1], p.mode, 1, report);
        out[s.c] = v >= 0 && w >= 0 ? p.base + v * p.step[0] + w * p.step[1] : 0;
    }
}
#else
KERNEL NAME(GLOBAL int *out, GLOBAL const i64 *index, GLOBAL i64 *report, const drupe_index_params p)
{
    for (i64 i = get_global_id(0); i < p.count; i += get_global_size(0)) {
        STEPS(s, i)
        const i64 v = lead(index[s.x], p.length[0], p.mode, 0, report);
        if (v >= 0) atomic_max((volatile GLOBAL int *)out + p.base + s.a + v * p.step[0], (int)i);
    }
}
#endif
