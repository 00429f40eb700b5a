/* Stable radix sort of rows by digits of DIGIT bits, the lowest first. Keys are unsigned and in the order of their
 * elements: NaNs are above everything, and -0.0 is 0.0. With each goes the place of its element in its row.
 *
 * VARIANT 0   keys of the elements at `places`, or of all in their order
 *         1   for each row, digit and tile of it, how many of the tile's keys have the digit there
 *         2   each tile's keys and places to where `before` says that its digits begin
 *         3   out = the elements at the places
 *         4   out = the places */
#define DIGIT  4
#define DIGITS 16
#define TILE   (GROUP * SORT_EACH)
#if KEY_BYTES == 8
typedef ulong key_type;
#define SORT_EACH 4
#else
typedef uint key_type;
#define SORT_EACH 8
#endif

#if VARIANT == 0
#define KEY_TOP ((key_type)1 << (KEY_BITS - 1))
/* The bits of a float, of which the sign is the highest, as a number that has the float's order. */
static inline key_type key_of_bits(key_type bits, key_type infinity, int descending)
{
    const key_type sign = bits & KEY_TOP, size = bits & (KEY_TOP - 1);
    const key_type key = size == 0 ? KEY_TOP : sign ? KEY_TOP - size : KEY_TOP + size;
    if (size > infinity) return KEY_TOP + (KEY_TOP - 1);
    return descending ? KEY_TOP + (KEY_TOP - 1) - key : key;
}
#if KEY_KIND == 3
/* Numbers with a NaN are in ascending order, always. */
#define IS_NAN(i)        (in[i].s0 != in[i].s0 || in[i].s1 != in[i].s1)
#define PAIR_DESCENDS(i) (p.descending && !IS_NAN(i))
#if KEY_BITS == 64
#define FLOAT_KEY(x, i) key_of_bits(as_ulong(x), 0x7ff0000000000000UL, PAIR_DESCENDS(i))
#else
#define FLOAT_KEY(x, i) key_of_bits(as_uint(x), 0x7f800000U, PAIR_DESCENDS(i))
#endif
#define KEY(i)                                                                                               \
    (p.part == 2 ? (key_type)(2 * (in[i].s0 != in[i].s0) + (in[i].s1 != in[i].s1))                           \
                 : p.part ? FLOAT_KEY(in[i].s0, i) : FLOAT_KEY(in[i].s1, i))
#elif KEY_KIND == 2 && KEY_BITS == 16
#define KEY(i) key_of_bits(((GLOBAL const ushort *)in)[i], 0x7c00, p.descending)
#elif KEY_KIND == 2 && KEY_BITS == 32
#define KEY(i) key_of_bits(as_uint(in[i]), 0x7f800000U, p.descending)
#elif KEY_KIND == 2
#define KEY(i) key_of_bits(as_ulong(in[i]), 0x7ff0000000000000UL, p.descending)
#else
static inline key_type key_of_integer(key_type key, int descending)
{
    const key_type all = KEY_TOP + (KEY_TOP - 1);
    key = (KEY_KIND == 1 ? key + KEY_TOP : key) & all;
    return descending ? all - key : key;
}
#define KEY(i) key_of_integer((key_type)LOAD0(in[i]), p.descending)
#endif
KERNEL NAME(GLOBAL key_type *out, GLOBAL int *places, GLOBAL const TI0 *in, const drupe_sort_params p)
{
    for (i64 i = get_global_id(0); i < p.rows * p.n; i += get_global_size(0)) {
        const i64 row = i / p.n * p.n;
        const i64 at = p.placed ? row + places[i] : i;
        if (!p.placed) places[i] = (int)(i - row);
        out[i] = KEY(at);
    }
}

#elif VARIANT == 1
KERNEL NAME(GLOBAL int *out, GLOBAL const key_type *keys, const drupe_sort_params p)
{
    LOCAL int counts[DIGITS];
    const int id = get_local_id(0), size = get_local_size(0);
    for (i64 t = get_group_id(0); t < p.rows * p.tiles; t += get_num_groups(0)) {
        const i64 row = t / p.tiles, tile = t - row * p.tiles, end = min(p.n, (tile + 1) * size * SORT_EACH);
        if (id < DIGITS) counts[id] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (i64 i = tile * size * SORT_EACH + id; i < end; i += size)
            atomic_inc(&counts[keys[row * p.n + i] >> p.shift & (DIGITS - 1)]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < DIGITS) out[(row * DIGITS + id) * p.tiles + tile] = counts[id];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#elif VARIANT == 2
/* Behind it, counts[digit * size + item] says how many keys of the tile are in front of the item's of that digit. */
static inline void scan_counts(LOCAL ushort *counts, LOCAL int *sums, int id, int size)
{
    int sum = 0;
    for (int k = 0; k < DIGITS; k++) sum += counts[id * DIGITS + k];
    sums[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = 1; reach < size; reach *= 2) {
        const int other = id >= reach ? sums[id - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[id] += other;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    int before = sums[id] - sum;
    for (int k = 0; k < DIGITS; k++) {
        const int own = counts[id * DIGITS + k];
        counts[id * DIGITS + k] = (ushort)before;
        before += own;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}
KERNEL NAME(GLOBAL key_type *out, GLOBAL int *out_places, GLOBAL const key_type *keys, GLOBAL const int *places,
            GLOBAL const int *before, const drupe_sort_params p)
{
    LOCAL ushort counts[DIGITS * GROUP];
    LOCAL int sums[GROUP], begins[DIGITS];
    LOCAL key_type sorted[TILE];
    LOCAL int sorted_places[TILE];
    const int id = get_local_id(0), size = get_local_size(0);
    for (i64 t = get_group_id(0); t < p.rows * p.tiles; t += get_num_groups(0)) {
        const i64 row = t / p.tiles, tile = t - row * p.tiles, base = row * p.n;
        const i64 from = tile * size * SORT_EACH;
        const int have = (int)min(p.n - from, (i64)size * SORT_EACH);
        const int own = clamp(have - id * SORT_EACH, 0, SORT_EACH);
        key_type mine[SORT_EACH];
        for (int d = 0; d < DIGITS; d++) counts[d * size + id] = 0;
        /* What is missing at the row's end gets the highest digit, and so a place behind all that is there. */
        UNROLL
        for (int k = 0; k < SORT_EACH; k++) {
            mine[k] = k < own ? keys[base + from + id * SORT_EACH + k] : ~(key_type)0;
            counts[(int)(mine[k] >> p.shift & (DIGITS - 1)) * size + id]++;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        scan_counts(counts, sums, id, size);
        if (id < DIGITS) begins[id] = counts[id * size];
        barrier(CLK_LOCAL_MEM_FENCE);
        UNROLL
        for (int k = 0; k < SORT_EACH; k++) {
            const int to = counts[(int)(mine[k] >> p.shift & (DIGITS - 1)) * size + id]++;
            sorted[to] = mine[k];
            sorted_places[to] = k < own ? places[base + from + id * SORT_EACH + k] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = id; i < have; i += size) {
            const int digit = (int)(sorted[i] >> p.shift & (DIGITS - 1));
            const i64 to = base + before[row * (DIGITS * p.tiles + 1) + digit * p.tiles + tile] + i - begins[digit];
            out[to] = sorted[i];
            out_places[to] = sorted_places[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#elif VARIANT == 3
KERNEL NAME(GLOBAL TO *out, GLOBAL const int *places, GLOBAL const TO *in, const drupe_sort_params p)
{
    for (i64 i = get_global_id(0); i < p.rows * p.n; i += get_global_size(0)) out[i] = in[i / p.n * p.n + places[i]];
}
#else
KERNEL NAME(GLOBAL i64 *out, GLOBAL const int *places, const drupe_sort_params p)
{
    for (i64 i = get_global_id(0); i < p.rows * p.n; i += get_global_size(0)) out[i] = places[i];
}
#endif
