/* The distinct elements of a sorted row. `ranks` are the running sums of the marks: what an element's kind is, from 1.
 *
 * VARIANT 0   out[i] = 1 where an element differs from the one before it, else 0
 *         1   out[kind] = in[i] of the first element of each kind
 *         2   out[kind] = where its first element is
 *         3   out[places[i]] = the kind of element i
 *         4   out[kind] = how many elements are of it, from what variant 2 wrote */
#if VARIANT == 0
#if KIND_COMPLEX
#define DIFFER(a, b) (a.s0 != b.s0 || a.s1 != b.s1)
#elif KIND_FLOAT
#define DIFFER(a, b) (a != b && !(p.equal_nan && a != a && b != b))
#else
#define DIFFER(a, b) (a != b)
#endif
KERNEL NAME(GLOBAL i64 *out, GLOBAL const TI0 *in, const drupe_unique_params p)
{
    for (i64 i = get_global_id(0); i < p.n; i += get_global_size(0)) {
        const TC a = LOAD0(READ(1, in, max(i - 1, (i64)0))), b = LOAD0(READ(1, in, i));
        out[i] = i == 0 || DIFFER(a, b);
    }
}
#elif VARIANT < 3
#if VARIANT == 1
#define VALUE(i) in[i]
#else
#define VALUE(i) i
#endif
KERNEL NAME(GLOBAL TO *out, GLOBAL const TO *in, GLOBAL const i64 *ranks, const drupe_unique_params p)
{
    for (i64 i = get_global_id(0); i < p.n; i += get_global_size(0))
        if (i == 0 || ranks[i] != ranks[i - 1]) out[ranks[i] - 1] = VALUE(i);
}
#elif VARIANT == 3
KERNEL NAME(GLOBAL i64 *out, GLOBAL const i64 *places, GLOBAL const i64 *ranks, const drupe_unique_params p)
{
    for (i64 i = get_global_id(0); i < p.n; i += get_global_size(0)) out[places[i]] = ranks[i] - 1;
}
#else
KERNEL NAME(GLOBAL i64 *out, GLOBAL const i64 *begins, GLOBAL const i64 *ranks, const drupe_unique_params p)
{
    const i64 kinds = ranks[p.n - 1];
    for (i64 k = get_global_id(0); k < kinds; k += get_global_size(0))
        out[k] = (k + 1 < kinds ? begins[k + 1] : p.n) - begins[k];
}
#endif
