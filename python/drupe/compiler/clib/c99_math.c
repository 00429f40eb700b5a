/* Functions of mathematics for kernels on host: what all of them share.
 *
 * Compilers make vector code of a loop that calls them: they have no branches, tables, or conversions between
 * floats and integers. gcc needs -fno-trapping-math for it, so that it may compute what a select then drops.
 *
 * All compilers give the same bits, with -ffp-contract=off: constants are single numbers (tcc folds
 * operations in long double), an exact product is the same number however it is computed, and of libm's
 * functions those that are called here are called by other names, so that gcc does not compute them itself. A
 * NaN may have another sign or payload.
 *
 * Where DRUPE_FMA is defined, products and sums are fused, in polynomials above all, which is a quarter
 * faster: other bits, so that either all texts for a machine define it or none does. Without an instruction
 * for it, fma() is slow.
 *
 * The polynomials are minimax ones: Sollya's fpminimax(), or least squares in Chebyshev's nodes, with the
 * coefficients rounded one after another. p4() of four coefficients is the step of Estrin's scheme: Horner's
 * has fewer operations, but each waits for the one before.
 *
 * Rounding to an integer is adding 3 * 2**51 (float32: 3 * 2**22): the sum's lower bits are the integer. */

//: m_inline :
#define DRUPE_M static inline __attribute__((always_inline, unused))

//: libm_sqrt_float64 :
double sqrt(double);

//: libm_sqrt_float32 :
float sqrtf(float);

//: m_rare : m_inline
/* For arguments that are too rare to have vector code: RARE(g, y) is y where g is 0, else what y says of g.
 *
 * A branch would keep gcc from making vectors of a loop. So RARE is declared as a function that has vector
 * versions, which return at once unless some g is not 0; they are written here. (The vector ABIs say how they
 * are named and called.) gcc only calls a function under a condition for all lanes if it is a built-in one
 * without effects: hence it goes by the name of one that nobody calls, scalb. Other compilers get a branch.
 */
#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__GNUC__) && !defined(__clang__) &&             \
    !defined(__TINYC__)
#define DRUPE_RARE_VECTORS 1
#ifdef __aarch64__
#define DRUPE_RARE_CALL __attribute__((aarch64_vector_pcs, used))
typedef long long drupe_rare_8 __attribute__((vector_size(8)));
DRUPE_M int drupe_any_8(drupe_rare_8 v)
{
    return v[0] != 0;
}
#else
#define DRUPE_RARE_CALL __attribute__((used))
#endif
typedef long long drupe_rare_16 __attribute__((vector_size(16)));
DRUPE_M int drupe_any_16(drupe_rare_16 v)
{
    return (v[0] | v[1]) != 0;
}
#ifdef __AVX__
typedef long long drupe_rare_32 __attribute__((vector_size(32)));
DRUPE_M int drupe_any_32(drupe_rare_32 v)
{
    return !__builtin_ia32_ptestz256(v, v);
}
#endif
#ifdef __AVX512F__
typedef long long drupe_rare_64 __attribute__((vector_size(64)));
DRUPE_M int drupe_any_64(drupe_rare_64 v)
{
    union {
        drupe_rare_64 all;
        drupe_rare_32 half[2];
    } u;
    u.all = v;
    return drupe_any_32(u.half[0] | u.half[1]);
}
#endif
/* The version for vectors of BYTES. */
#define DRUPE_RARE_VECTOR(ONE, TYPE, BYTES, NAME, LABEL)                                                     \
    typedef TYPE NAME##_vector __attribute__((vector_size(BYTES)));                                          \
    DRUPE_RARE_CALL static NAME##_vector NAME(NAME##_vector, NAME##_vector) __asm__(LABEL);                  \
    DRUPE_RARE_CALL static NAME##_vector NAME(NAME##_vector g, NAME##_vector y)                              \
    {                                                                                                        \
        if (__builtin_expect(drupe_any_##BYTES((drupe_rare_##BYTES)g), 0))                                   \
            for (unsigned i = 0; i < BYTES / sizeof(TYPE); i++) y[i] = ONE(g[i], y[i]);                      \
        return y;                                                                                            \
    }
#endif

//: m64_rare : m_rare
double drupe_libm_sin(double) __asm__("sin");
double drupe_libm_cos(double) __asm__("cos");
double drupe_libm_tan(double) __asm__("tan");

/* y: 1 for the sine of g, 2 for the cosine, 3 for the tangent. */
static f64 drupe_m64_rare_one(f64 g, f64 y)
{
    if (g == 0.0) return y;
    return y == 1.0 ? drupe_libm_sin(g) : y == 2.0 ? drupe_libm_cos(g) : drupe_libm_tan(g);
}

#ifdef DRUPE_RARE_VECTORS
static f64 drupe_m64_rare_x(f64, f64) __asm__("drupe_m64_rare") __attribute__((used));
static f64 drupe_m64_rare_x(f64 g, f64 y)
{
    return drupe_m64_rare_one(g, y);
}
#ifdef __aarch64__
DRUPE_RARE_VECTOR(drupe_m64_rare_one, f64, 16, drupe_m64_rare_n, "_ZGVnN2vv_drupe_m64_rare")
#else
DRUPE_RARE_VECTOR(drupe_m64_rare_one, f64, 16, drupe_m64_rare_b, "_ZGVbN2vv_drupe_m64_rare")
#endif
#ifdef __AVX__
DRUPE_RARE_VECTOR(drupe_m64_rare_one, f64, 32, drupe_m64_rare_c, "_ZGVcN4vv_drupe_m64_rare")
DRUPE_RARE_VECTOR(drupe_m64_rare_one, f64, 32, drupe_m64_rare_d, "_ZGVdN4vv_drupe_m64_rare")
#endif
#ifdef __AVX512F__
DRUPE_RARE_VECTOR(drupe_m64_rare_one, f64, 64, drupe_m64_rare_e, "_ZGVeN8vv_drupe_m64_rare")
#endif
f64 scalb(f64, f64) __asm__("drupe_m64_rare") __attribute__((simd("notinbranch"), const));
#define DRUPE_M64_RARE(g, y) scalb(g, y)
#else
#define DRUPE_M64_RARE(g, y) drupe_m64_rare_one(g, y)
#endif

//: m32_rare : m_rare
double drupe_libm_sin(double) __asm__("sin");
double drupe_libm_cos(double) __asm__("cos");
double drupe_libm_tan(double) __asm__("tan");

/* As drupe_m64_rare_one(). */
static f32 drupe_m32_rare_one(f32 g, f32 y)
{
    if (g == 0.0f) return y;
    return (f32)(y == 1.0f ? drupe_libm_sin(g) : y == 2.0f ? drupe_libm_cos(g) : drupe_libm_tan(g));
}

#ifdef DRUPE_RARE_VECTORS
static f32 drupe_m32_rare_x(f32, f32) __asm__("drupe_m32_rare") __attribute__((used));
static f32 drupe_m32_rare_x(f32 g, f32 y)
{
    return drupe_m32_rare_one(g, y);
}
#ifdef __aarch64__
DRUPE_RARE_VECTOR(drupe_m32_rare_one, f32, 8, drupe_m32_rare_h, "_ZGVnN2vv_drupe_m32_rare")
DRUPE_RARE_VECTOR(drupe_m32_rare_one, f32, 16, drupe_m32_rare_n, "_ZGVnN4vv_drupe_m32_rare")
#else
DRUPE_RARE_VECTOR(drupe_m32_rare_one, f32, 16, drupe_m32_rare_b, "_ZGVbN4vv_drupe_m32_rare")
#endif
#ifdef __AVX__
DRUPE_RARE_VECTOR(drupe_m32_rare_one, f32, 32, drupe_m32_rare_c, "_ZGVcN8vv_drupe_m32_rare")
DRUPE_RARE_VECTOR(drupe_m32_rare_one, f32, 32, drupe_m32_rare_d, "_ZGVdN8vv_drupe_m32_rare")
#endif
#ifdef __AVX512F__
DRUPE_RARE_VECTOR(drupe_m32_rare_one, f32, 64, drupe_m32_rare_e, "_ZGVeN16vv_drupe_m32_rare")
#endif
f32 scalbf(f32, f32) __asm__("drupe_m32_rare") __attribute__((simd("notinbranch"), const));
#define DRUPE_M32_RARE(g, y) scalbf(g, y)
#else
#define DRUPE_M32_RARE(g, y) drupe_m32_rare_one(g, y)
#endif
