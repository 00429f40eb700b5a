/* Arithmetic whose rules C leaves open, per type: num_name_suffix, reached as T(name). Integers wrap;
 * division rounds down and by zero gives 0; a shift by more than there are bits leaves 0 or the sign; nothing
 * traps. Floating remainders take the divisor's sign. */
#ifndef DRUPE_NUMERIC_H
#define DRUPE_NUMERIC_H

/* a / b, cut; b is not 0. Vectors have no division of integers. F holds all values of its type I and some
 * digits more: the quotient of two comes out exact, or closer to the true one than that is to the next
 * integer. On GPUs the division of floats may be off, and F is I. */
#define NUMERIC_QUOTIENT(S, I, F) NUMERIC_QUOTIENT_(S, I, F)
#define NUMERIC_QUOTIENT_(S, I, F)                                                                           \
    static inline I num_quotient##S(I a, I b)                                                                \
    {                                                                                                        \
        return (I)((F)a / (F)b);                                                                             \
    }

/* Types S of integers I, which wrap as their unsigned U do. W is what C computes in: of short types U would
 * become a signed one. */
#define NUMERIC_INTEGER(S, I, U, W)                                                                          \
    static inline I num_add##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (I)((W)a + (W)b);                                                                             \
    }                                                                                                        \
    static inline I num_sub##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (I)((W)a - (W)b);                                                                             \
    }                                                                                                        \
    static inline I num_mul##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (I)((W)a * (W)b);                                                                             \
    }                                                                                                        \
    static inline I num_neg##S(I a)                                                                          \
    {                                                                                                        \
        return (I)(0 - (W)a);                                                                                \
    }                                                                                                        \
    static inline I num_shl##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (U)b < 8 * sizeof(I) ? (I)((W)a << b) : (I)0;                                                 \
    }                                                                                                        \
    static inline I num_raise##S(I a, I b)                                                                   \
    {                                                                                                        \
        W base = (W)a, result = 1;                                                                           \
        for (; b; b >>= 1) {                                                                                 \
            if (b & 1) result *= base;                                                                       \
            base *= base;                                                                                    \
        }                                                                                                    \
        return (I)result;                                                                                    \
    }                                                                                                        \
    static inline U num_euclid##S(U x, U y)                                                                  \
    {                                                                                                        \
        while (y != 0) {                                                                                     \
            const U rest = (U)(x % y);                                                                       \
            x = y;                                                                                           \
            y = rest;                                                                                        \
        }                                                                                                    \
        return x;                                                                                            \
    }

#define NUMERIC_INT(S, I, U, W) NUMERIC_INT_(S, I, U, W)
#define NUMERIC_INT_(S, I, U, W)                                                                             \
    NUMERIC_INTEGER(S, I, U, W)                                                                              \
    static inline I num_abs##S(I a)                                                                          \
    {                                                                                                        \
        return a < 0 ? num_neg##S(a) : a;                                                                    \
    }                                                                                                        \
    static inline I num_floordiv##S(I a, I b)                                                                \
    {                                                                                                        \
        const I d = b == 0 || b == -1 ? (I)1 : b, q = num_quotient##S(a, d);                                 \
        const I down = (I)(q - (q * d != a && (a < 0) != (d < 0)));                                          \
        return b == 0 ? (I)0 : b == -1 ? num_neg##S(a) : down;                                               \
    }                                                                                                        \
    static inline I num_mod##S(I a, I b)                                                                     \
    {                                                                                                        \
        const I d = b == 0 || b == -1 ? (I)1 : b, r = (I)(a - num_quotient##S(a, d) * d);                    \
        return (I)(r != 0 && (r < 0) != (d < 0) ? r + d : r);                                                \
    }                                                                                                        \
    static inline I num_shr##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (I)(a >> ((U)b < 8 * sizeof(I) ? b : (I)(8 * sizeof(I) - 1)));                                \
    }                                                                                                        \
    static inline I num_ipow##S(I a, I b)                                                                    \
    {                                                                                                        \
        if (b < 0) return (I)(a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0);                                \
        return num_raise##S(a, b);                                                                           \
    }                                                                                                        \
    static inline I num_gcd##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (I)num_euclid##S((U)num_abs##S(a), (U)num_abs##S(b));                                         \
    }                                                                                                        \
    static inline I num_lcm##S(I a, I b)                                                                     \
    {                                                                                                        \
        const U x = (U)num_abs##S(a), y = (U)num_abs##S(b), common = num_euclid##S(x, y);                    \
        return common == 0 ? (I)0 : num_mul##S((I)(x / common), (I)y);                                       \
    }

#define NUMERIC_UINT(S, U, W) NUMERIC_UINT_(S, U, W)
#define NUMERIC_UINT_(S, U, W)                                                                               \
    NUMERIC_INTEGER(S, U, U, W)                                                                              \
    static inline U num_floordiv##S(U a, U b)                                                                \
    {                                                                                                        \
        const U q = num_quotient##S(a, b == 0 ? (U)1 : b);                                                   \
        return b == 0 ? (U)0 : q;                                                                            \
    }                                                                                                        \
    static inline U num_mod##S(U a, U b)                                                                     \
    {                                                                                                        \
        return b == 0 ? (U)0 : (U)(a - num_quotient##S(a, b == 0 ? (U)1 : b) * b);                           \
    }                                                                                                        \
    static inline U num_shr##S(U a, U b)                                                                     \
    {                                                                                                        \
        return b < 8 * sizeof(U) ? (U)(a >> b) : (U)0;                                                       \
    }                                                                                                        \
    static inline U num_ipow##S(U a, U b)                                                                    \
    {                                                                                                        \
        return num_raise##S(a, b);                                                                           \
    }                                                                                                        \
    static inline U num_gcd##S(U a, U b)                                                                     \
    {                                                                                                        \
        return num_euclid##S(a, b);                                                                          \
    }                                                                                                        \
    static inline U num_lcm##S(U a, U b)                                                                     \
    {                                                                                                        \
        const U common = num_euclid##S(a, b);                                                                \
        return common == 0 ? (U)0 : num_mul##S((U)(a / common), b);                                          \
    }

/* fmod. Libraries divide bit by bit. A quotient that is exact as an integer, cut, is the right one or, where
 * the division was rounded up, one more; either remainder fits the type, so that fma gives it without an
 * error (but of 0 perhaps not the sign). The branches are such as processors foresee. */
#if !defined(__OPENCL_VERSION__) && (defined(__FMA__) || defined(__aarch64__))
#define NUMERIC_REST(S, F)                                                                                   \
    static inline F num_rest##S(F a, F b)                                                                    \
    {                                                                                                        \
        const F q = trunc(a / b), most = (F)(sizeof(F) == 4 ? 1 << 23 : (i64)1 << 52);                       \
        if (!(q < most && q > -most) || isinf(b)) return fmod(a, b);                                         \
        const F r = fma(-q, b, a);                                                                           \
        return r != 0 && (r < 0) != (a < 0) ? r + copysign(b, a) : r;                                        \
    }
#else
#define NUMERIC_REST(S, F)                                                                                   \
    static inline F num_rest##S(F a, F b)                                                                    \
    {                                                                                                        \
        return fmod(a, b);                                                                                   \
    }
#endif

/* fmod is exact, so a - mod is a multiple of b up to one rounding, which the last step repairs. Where an
 * operand is infinite, the array API wants floor(a / b), which the remainder does not fit. */
#define NUMERIC_FLOAT(S, F) NUMERIC_FLOAT_(S, F)
#define NUMERIC_FLOAT_(S, F)                                                                                 \
    NUMERIC_REST(S, F)                                                                                       \
    static inline F num_mod##S(F a, F b)                                                                     \
    {                                                                                                        \
        F r = num_rest##S(a, b);                                                                             \
        if (r == 0) return copysign(r, b);                                                                   \
        return (r < 0) != (b < 0) ? r + b : r;                                                               \
    }                                                                                                        \
    static inline F num_floordiv##S(F a, F b)                                                                \
    {                                                                                                        \
        if (b == 0) return a / b;                                                                            \
        if (isinf(a) || isinf(b)) return floor(a / b);                                                       \
        F r = num_rest##S(a, b), q = (a - r) / b;                                                            \
        if (r != 0 && (r < 0) != (b < 0)) q -= 1;                                                            \
        F down = floor(q);                                                                                   \
        if (q - down > (F)0.5) down += 1;                                                                    \
        return copysign(down, a / b); /* of 0, too */                                                        \
    }                                                                                                        \
    static inline F num_logaddexp##S(F a, F b)                                                               \
    {                                                                                                        \
        F high = a > b ? a : b, low = a > b ? b : a;                                                         \
        if (a == b) return a + (F)0.69314718055994530942; /* also of equal infinities */                     \
        return high + log1p(exp(low - high));                                                                \
    }

#ifdef __OPENCL_VERSION__ /* a program computes in one type */
#if KIND_INT
NUMERIC_QUOTIENT(TS, TC, TC)
NUMERIC_INT(TS, TC, TUNSIGNED, TWRAP)
#elif KIND_UINT
NUMERIC_QUOTIENT(TS, TC, TC)
NUMERIC_UINT(TS, TC, TWRAP)
#elif KIND_FLOAT
NUMERIC_FLOAT(TS, TC)
#endif
#else
NUMERIC_QUOTIENT(_i8, int8_t, float)
NUMERIC_QUOTIENT(_i16, int16_t, float)
NUMERIC_QUOTIENT(_i32, i32, double)
NUMERIC_QUOTIENT(_i64, i64, i64)
NUMERIC_QUOTIENT(_u8, uint8_t, float)
NUMERIC_QUOTIENT(_u16, uint16_t, float)
NUMERIC_QUOTIENT(_u32, u32, double)
NUMERIC_QUOTIENT(_u64, u64, u64)
NUMERIC_INT(_i8, int8_t, uint8_t, u32)
NUMERIC_INT(_i16, int16_t, uint16_t, u32)
NUMERIC_INT(_i32, i32, u32, u32)
NUMERIC_INT(_i64, i64, u64, u64)
NUMERIC_UINT(_u8, uint8_t, u32)
NUMERIC_UINT(_u16, uint16_t, u32)
NUMERIC_UINT(_u32, u32, u32)
NUMERIC_UINT(_u64, u64, u64)
NUMERIC_FLOAT(_f32, float)
NUMERIC_FLOAT(_f64, double)
#endif

#endif
