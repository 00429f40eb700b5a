/* The vectors of fft_body.h, and their transposition. Included once for each precision. */
#undef VEC
#undef UVEC
#undef PAIR
#undef LANES
#undef WIDTH
#undef UNITS
#undef STRIDE
#undef HALF
#undef EACH
#define VEC    FN(vec)
#define UVEC   FN(uvec)
#define PAIR   FN(pair)
#define LANES  ((size_t)(64 / REAL_BYTES))
#define WIDTH  ((size_t)(FFT_BYTES / REAL_BYTES))
#define UNITS  ((size_t)(64 / FFT_BYTES))
#define STRIDE (2 * UNITS) /* vectors of one element of a block */
#define HALF   ((REAL)0.5)

typedef REAL VEC __attribute__((vector_size(FFT_BYTES)));
typedef REAL UVEC
    __attribute__((vector_size(FFT_BYTES), aligned(REAL_BYTES), may_alias)); /* anywhere in memory */
typedef struct PAIR {
    VEC re, im;
} PAIR;

/* F(i) for each place of a vector; W is their number. */
#undef W
#if FFT_BYTES / REAL_BYTES == 2
#define W       2
#define EACH(F) F(0), F(1)
#elif FFT_BYTES / REAL_BYTES == 4
#define W       4
#define EACH(F) F(0), F(1), F(2), F(3)
#elif FFT_BYTES / REAL_BYTES == 8
#define W       8
#define EACH(F) F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7)
#else
#define W 16
#define EACH(F)                                                                                              \
    F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15)
#endif

#ifndef FFT_PLACES
#define FFT_PLACES
#define EVEN(i) (2 * (i))
#define ODD(i)  (2 * (i) + 1)
#define LOW(i)  (((i)&1) * W + (i) / 2)
#define HIGH(i) (((i)&1) * W + (i) / 2 + W / 2)
/* A step of a transposition: squares of d beside the diagonal change places. */
#define UPPER(i, d) ((i) & (d) ? W + (i) - (d) : (i))
#define LOWER(i, d) ((i) & (d) ? W + (i) : (i) + (d))
#define UPPER1(i)   UPPER(i, 1)
#define LOWER1(i)   LOWER(i, 1)
#define UPPER2(i)   UPPER(i, 2)
#define LOWER2(i)   LOWER(i, 2)
#define UPPER4(i)   UPPER(i, 4)
#define LOWER4(i)   LOWER(i, 4)
#define UPPER8(i)   UPPER(i, 8)
#define LOWER8(i)   LOWER(i, 8)
#endif

#define STEP(d)                                                                                              \
    for (size_t i = 0; i < WIDTH; i++)                                                                       \
        if (!(i & d)) {                                                                                      \
            const VEC a = x[i], b = x[i + d];                                                                \
            x[i] = __builtin_shufflevector(a, b, EACH(UPPER##d));                                            \
            x[i + d] = __builtin_shufflevector(a, b, EACH(LOWER##d));                                        \
        }

static inline void FN(transpose)(VEC x[WIDTH])
{
    STEP(1)
#if FFT_BYTES / REAL_BYTES > 2
    STEP(2)
#endif
#if FFT_BYTES / REAL_BYTES > 4
    STEP(4)
#endif
#if FFT_BYTES / REAL_BYTES > 8
    STEP(8)
#endif
}
#undef STEP
