/* Where each value belongs among sorted elements, by halving; NaNs are above everything.
 *
 * VARIANT 0   out = the place
 *         1   out = whether the element there is equal: 1 - absent, else absent */
#if KIND_COMPLEX
#define EQUAL(x, y) (x.s0 == y.s0 && x.s1 == y.s1)
#else
#define EQUAL(x, y) (x == y)
#endif
static inline int is_less(TC x, TC y)
{
#if KIND_COMPLEX
    const int a = 2 * (x.s0 != x.s0) + (x.s1 != x.s1), b = 2 * (y.s0 != y.s0) + (y.s1 != y.s1);
    if (a != b) return a < b;
    if (a < 2 && x.s0 != y.s0) return x.s0 < y.s0;
    return a % 2 == 0 && x.s1 < y.s1;
#elif KIND_FLOAT
    return x < y || (y != y && x == x);
#else
    return x < y;
#endif
}
#if VARIANT
#define RESULT uchar
#else
#define RESULT i64
#endif
KERNEL NAME(GLOBAL RESULT *out, GLOBAL const TI0 *sorted, GLOBAL const TI0 *values, const drupe_search_params p)
{
    for (i64 t = get_global_id(0); t < p.m; t += get_global_size(0)) {
        const TC value = LOAD0(READ(1, values, t));
        i64 low = 0, high = p.n;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            const TC element = LOAD0(READ(1, sorted, middle));
            if (p.right ? !is_less(value, element) : is_less(element, value))
                low = middle + 1;
            else
                high = middle;
        }
#if VARIANT
        int found = 0;
        if (low < p.n) {
            const TC element = LOAD0(READ(1, sorted, low));
            found = EQUAL(element, value);
        }
        out[t] = (uchar)(found != p.absent);
#else
        out[t] = low;
#endif
    }
}
