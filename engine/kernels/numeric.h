/* Arithmetic whose rules C leaves open, per type: num_name_suffix, reached as T(name). Integers wrap;
 * division rounds down and by zero gives 0; a shift by more than there are bits leaves 0 or the sign; nothing
 * traps. Floating remainders take the divisor's sign. */
#ifndef DRUPE_NUMERIC_H
#define DRUPE_NUMERIC_H

#define NUMERIC_INT(S, I, U)                                                                                 \
    static inline I num_add##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (I)((U)a + (U)b);                                                                             \
    }                                                                                                        \
    static inline I num_sub##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (I)((U)a - (U)b);                                                                             \
    }                                                                                                        \
    static inline I num_mul##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (I)((U)a * (U)b);                                                                             \
    }                                                                                                        \
    static inline I num_neg##S(I a)                                                                          \
    {                                                                                                        \
        return (I)(0 - (U)a);                                                                                \
    }                                                                                                        \
    static inline I num_abs##S(I a)                                                                          \
    {                                                                                                        \
        return a < 0 ? num_neg##S(a) : a;                                                                    \
    }                                                                                                        \
    static inline I num_floordiv##S(I a, I b)                                                                \
    {                                                                                                        \
        if (b == 0) return 0;                                                                                \
        if (b == -1) return num_neg##S(a);                                                                   \
        I q = a / b;                                                                                         \
        return q - (I)(q * b != a && (a < 0) != (b < 0));                                                    \
    }                                                                                                        \
    static inline I num_mod##S(I a, I b)                                                                     \
    {                                                                                                        \
        if (b == 0 || b == -1) return 0;                                                                     \
        I r = a % b;                                                                                         \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                                                     \
    }                                                                                                        \
    static inline I num_shl##S(I a, I b)                                                                     \
    {                                                                                                        \
        return (U)b < 8 * sizeof(I) ? (I)((U)a << b) : 0;                                                    \
    }                                                                                                        \
    static inline I num_shr##S(I a, I b)                                                                     \
    {                                                                                                        \
        return a >> ((U)b < 8 * sizeof(I) ? b : (I)(8 * sizeof(I) - 1));                                     \
    }                                                                                                        \
    static inline I num_ipow##S(I a, I b)                                                                    \
    {                                                                                                        \
        if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;                                     \
        U base = (U)a, result = 1;                                                                           \
        for (; b; b >>= 1) {                                                                                 \
            if (b & 1) result *= base;                                                                       \
            base *= base;                                                                                    \
        }                                                                                                    \
        return (I)result;                                                                                    \
    }

/* fmod is exact, so a - mod is a multiple of b up to one rounding, which the last step repairs. */
#define NUMERIC_FLOAT(S, F)                                                                                  \
    static inline F num_mod##S(F a, F b)                                                                     \
    {                                                                                                        \
        F r = fmod(a, b);                                                                                    \
        if (r == 0) return copysign(r, b);                                                                   \
        return (r < 0) != (b < 0) ? r + b : r;                                                               \
    }                                                                                                        \
    static inline F num_floordiv##S(F a, F b)                                                                \
    {                                                                                                        \
        if (b == 0) return a / b;                                                                            \
        F r = fmod(a, b), q = (a - r) / b;                                                                   \
        if (r != 0 && (r < 0) != (b < 0)) q -= 1;                                                            \
        if (q == 0) return copysign((F)0, a / b);                                                            \
        F down = floor(q);                                                                                   \
        return q - down > (F)0.5 ? down + 1 : down;                                                          \
    }                                                                                                        \
    static inline F num_logaddexp##S(F a, F b)                                                               \
    {                                                                                                        \
        F high = a > b ? a : b, low = a > b ? b : a;                                                         \
        if (a == b) return a + (F)0.69314718055994530942; /* also of equal infinities */                     \
        return high + log1p(exp(low - high));                                                                \
    }

NUMERIC_INT(_i32, i32, u32)
NUMERIC_INT(_i64, i64, u64)
NUMERIC_FLOAT(_f32, float)
#if !defined(__OPENCL_VERSION__) || HAS_FP64
NUMERIC_FLOAT(_f64, double)
#endif

#endif
