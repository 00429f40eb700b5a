/* What the loops are made of that convert elements from one type to another: generated/host_casts.inc names
 * them. */
#ifdef __F16C__
#include <immintrin.h>
#endif

typedef void (*cast_fn)(i64 n, void *to, const void *from);

/* Of an element in[i]. */
#define CAST_LOOP(name, from_type, to_type, value)                                                           \
    static void name(i64 n, void *to_, const void *from_)                                                    \
    {                                                                                                        \
        const from_type *in = from_;                                                                         \
        to_type *out = to_;                                                                                  \
        INDEPENDENT                                                                                          \
        for (i64 i = 0; i < n; i++) out[i] = (to_type)(value);                                               \
    }
/* By way of another type, of at most BLOCK elements. */
#define CAST_WAY(name, first, middle_type, second)                                                           \
    static void name(i64 n, void *to, const void *from)                                                      \
    {                                                                                                        \
        middle_type middle[BLOCK];                                                                           \
        first(n, middle, from);                                                                              \
        second(n, to, middle);                                                                               \
    }
#define COPY(bits)                                                                                           \
    static void copy_##bits(i64 n, void *to, const void *from)                                               \
    {                                                                                                        \
        memcpy(to, from, (size_t)n *(bits / 8));                                                             \
    }
COPY(8)
COPY(16)
COPY(32)
COPY(64)
COPY(128)
/* Between float16 and float32: by the processor where it can. */
#ifdef __F16C__
#define HALVES 8
static void cast_f16_f32(i64 n, void *to, const void *from)
{
    const u16 *in = from;
    float *out = to;
    i64 i = 0;
    for (; i + HALVES <= n; i += HALVES)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + i))));
    if (i == n) return; /* the rest in the same way: processors mark signalling NaN as quiet */
    u16 halves[HALVES] = {0};
    float floats[HALVES];
    memcpy(halves, in + i, (size_t)(n - i) * sizeof(*in));
    _mm256_storeu_ps(floats, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)halves)));
    memcpy(out + i, floats, (size_t)(n - i) * sizeof(*out));
}
static void cast_f32_f16(i64 n, void *to, const void *from)
{
    const float *in = from;
    u16 *out = to;
    i64 i = 0;
    for (; i + HALVES <= n; i += HALVES)
        _mm_storeu_si128((__m128i *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++) out[i] = half_bits(in[i]);
}
#else
CAST_LOOP(cast_f16_f32, u16, float, half_value(in[i]))
CAST_LOOP(cast_f32_f16, float, u16, half_bits(in[i]))
#endif
/* C leaves open what becomes of negative ones; NumPy wraps them round. */
#define FLOAT_TO_U64(x) ((x) < 0 ? (u64)(i64)(x) : (u64)(x))
