/* Complex arithmetic and functions, for one type TC with parts of type TREAL, under names T(name). Special
 * values are those of C99's Annex G.
 *
 * Sources of the formulas: the definitions, and W. Kahan, "Branch Cuts for Complex Elementary Functions"
 * (1987). In C99 the compiler and libm have most of it. This file is included once per type. */
#define PI ((TREAL)3.14159265358979323846)

#ifndef __OPENCL_VERSION__
#define RE(a)       (__real__(a))
#define IM(a)       (__imag__(a))
#define MAKE(re, im) __builtin_complex((TREAL)(re), (TREAL)(im))
#define LIBM(name, f, d)                                                                                     \
    static inline TC T(name)(TC a)                                                                           \
    {                                                                                                        \
        return _Generic(a, float _Complex : f, default : d)(a);                                              \
    }
LIBM(sqrt, csqrtf, csqrt)
LIBM(exp, cexpf, cexp)
LIBM(log, clogf, clog)
LIBM(sin, csinf, csin)
LIBM(cos, ccosf, ccos)
LIBM(tan, ctanf, ctan)
LIBM(asin, casinf, casin)
LIBM(acos, cacosf, cacos)
LIBM(atan, catanf, catan)
LIBM(sinh, csinhf, csinh)
LIBM(cosh, ccoshf, ccosh)
LIBM(tanh_libm, ctanhf, ctanh)
LIBM(asinh, casinhf, casinh)
LIBM(acosh, cacoshf, cacosh)
LIBM(atanh, catanhf, catanh)
#undef LIBM
/* At infinity the imaginary part has the sign of that of `a`, as the array API has it; Annex G takes that of its
 * double angle's sine. */
static inline TC T(tanh)(TC a)
{
    if (isinf(RE(a)) && isfinite(IM(a))) return MAKE(copysign((TREAL)1, RE(a)), copysign((TREAL)0, IM(a)));
    return T(tanh_libm)(a);
}
static inline TC T(mul)(TC a, TC b)
{
    return a * b;
}
static inline TC T(div)(TC a, TC b)
{
    return a / b;
}
static inline int T(equal)(TC a, TC b)
{
    return a == b;
}

#else
#define RE(a)        ((a).x)
#define IM(a)        ((a).y)
#define MAKE(re, im) ((TC)((TREAL)(re), (TREAL)(im)))
static inline int T(equal)(TC a, TC b)
{
    return RE(a) == RE(b) && IM(a) == IM(b);
}
/* An infinite part counts as 1, the others as 0: a direction. */
static inline TC T(direction)(TC a)
{
    return MAKE(copysign(isinf(RE(a)) ? (TREAL)1 : (TREAL)0, RE(a)),
                copysign(isinf(IM(a)) ? (TREAL)1 : (TREAL)0, IM(a)));
}
/* NaN counts as 0. */
static inline TC T(number)(TC a)
{
    return MAKE(isnan(RE(a)) ? copysign((TREAL)0, RE(a)) : RE(a),
                isnan(IM(a)) ? copysign((TREAL)0, IM(a)) : IM(a));
}
static inline int T(infinite)(TC a)
{
    return isinf(RE(a)) || isinf(IM(a));
}
static inline TC T(mul)(TC a, TC b)
{
    const TREAL rr = RE(a) * RE(b), ii = IM(a) * IM(b), ri = RE(a) * IM(b), ir = IM(a) * RE(b);
    const TC r = MAKE(rr - ii, ri + ir);
    if (!isnan(RE(r)) || !isnan(IM(r))) return r;
    const int a_infinite = T(infinite)(a), b_infinite = T(infinite)(b);
    if (!a_infinite && !b_infinite && !isinf(rr) && !isinf(ii) && !isinf(ri) && !isinf(ir)) return r;
    const TC x = a_infinite ? T(direction)(a) : T(number)(a), y = b_infinite ? T(direction)(b) : T(number)(b);
    return MAKE((TREAL)INFINITY * (RE(x) * RE(y) - IM(x) * IM(y)),
                (TREAL)INFINITY * (RE(x) * IM(y) + IM(x) * RE(y)));
}
static inline TC T(div)(TC a, TC b)
{
    const TREAL size = logb(fmax(fabs(RE(b)), fabs(IM(b))));
    const int shift = isfinite(size) ? -(int)size : 0;
    const TREAL c = ldexp(RE(b), shift), d = ldexp(IM(b), shift), denominator = c * c + d * d;
    const TC r = MAKE(ldexp((RE(a) * c + IM(a) * d) / denominator, shift),
                      ldexp((IM(a) * c - RE(a) * d) / denominator, shift));
    if (!isnan(RE(r)) || !isnan(IM(r))) return r;
    if (denominator == 0 && (!isnan(RE(a)) || !isnan(IM(a)))) {
        const TREAL infinity = copysign((TREAL)INFINITY, c);
        return MAKE(infinity * RE(a), infinity * IM(a));
    }
    TC x = a, y = MAKE(c, d);
    TREAL scale;
    if (T(infinite)(a) && isfinite(c) && isfinite(d)) {
        x = T(direction)(a);
        scale = (TREAL)INFINITY;
    } else if (isinf(size) && size > 0 && isfinite(RE(a)) && isfinite(IM(a))) {
        y = T(direction)(y);
        scale = 0;
    } else {
        return r;
    }
    return MAKE(scale * (RE(x) * RE(y) + IM(x) * IM(y)), scale * (IM(x) * RE(y) - RE(x) * IM(y)));
}
/* times(i), and times(-i). */
static inline TC T(turn)(TC a)
{
    return MAKE(-IM(a), RE(a));
}
static inline TC T(back)(TC a)
{
    return MAKE(IM(a), -RE(a));
}
/* e**x as a product of two, for an x whose exponential may be too large by itself. */
static inline TREAL T(exp_times)(TREAL x, TREAL factor)
{
    const TREAL half_way = exp(x * 0.5f);
    return half_way * factor * half_way;
}
static inline TC T(exp)(TC a)
{
    const TREAL x = RE(a), y = IM(a);
    if (y == 0) return MAKE(exp(x), y);
    if (!isfinite(y)) {
        if (isinf(x)) return x < 0 ? MAKE(0, 0) : MAKE(x, NAN);
        return MAKE(NAN, NAN);
    }
    if (isnan(x)) return MAKE(NAN, NAN);
    return MAKE(T(exp_times)(x, cos(y)), T(exp_times)(x, sin(y)));
}
static inline TC T(log)(TC a)
{
    const TREAL x = fabs(RE(a)), y = fabs(IM(a)), high = fmax(x, y), low = fmin(x, y);
    const TREAL angle = atan2(IM(a), RE(a));
    if (high > 0.5f && high < 2 && !isnan(x) && !isnan(y))
        return MAKE(0.5f * log1p((high - 1) * (high + 1) + low * low), angle);
    if (isinf(high) || isnan(x) || isnan(y)) return MAKE(log(hypot(x, y)), angle);
    if (high > 1) return MAKE(log(hypot(x * 0.25f, y * 0.25f)) + (TREAL)1.38629436111989061883, angle);
    return MAKE(log(hypot(x * 4, y * 4)) - (TREAL)1.38629436111989061883, angle);
}
static inline TC T(sqrt)(TC a)
{
    TREAL x = RE(a), y = IM(a), scale = 1;
    if (x == 0 && y == 0) return MAKE(0, y);
    if (isinf(y)) return MAKE(INFINITY, y);
    if (isnan(x)) return MAKE(NAN, NAN);
    if (isinf(x)) return signbit(x) ? MAKE(fabs(y - y), copysign(x, y)) : MAKE(x, copysign(y - y, y));
    const TREAL high = fmax(fabs(x), fabs(y));
    if (high > 1) {
        x *= 0.0625f;
        y *= 0.0625f;
        scale = 4;
    } else {
        x *= 16;
        y *= 16;
        scale = 0.25f;
    }
    const TREAL t = sqrt((fabs(x) + hypot(x, y)) * 0.5f);
    if (t == 0) return MAKE(0, y);
    if (x >= 0) return MAKE(scale * t, scale * (y / (2 * t)));
    return MAKE(scale * (fabs(y) / (2 * t)), copysign(scale * t, y));
}
static inline TC T(sinh)(TC a)
{
    const TREAL x = RE(a), y = IM(a);
    if (y == 0) return MAKE(sinh(x), y);
    if (x == 0) return MAKE(x, isfinite(y) ? sin(y) : (TREAL)NAN);
    if (!isfinite(y)) return MAKE(isinf(x) ? x : (TREAL)NAN, NAN);
    if (fabs(x) > 40) /* sinh and cosh are half the exponential by then */
        return MAKE(copysign((TREAL)0.5f, x) * T(exp_times)(fabs(x), cos(y)), 0.5f * T(exp_times)(fabs(x), sin(y)));
    return MAKE(sinh(x) * cos(y), cosh(x) * sin(y));
}
static inline TC T(cosh)(TC a)
{
    const TREAL x = RE(a), y = IM(a);
    if (y == 0) return MAKE(cosh(x), isnan(x) ? y : copysign((TREAL)1, x) * y);
    if (x == 0) return MAKE(isfinite(y) ? cos(y) : (TREAL)NAN, isfinite(y) ? x * sin(y) : x);
    if (!isfinite(y)) return MAKE(isinf(x) ? fabs(x) : (TREAL)NAN, NAN);
    if (fabs(x) > 40)
        return MAKE(0.5f * T(exp_times)(fabs(x), cos(y)), copysign((TREAL)0.5f, x) * T(exp_times)(fabs(x), sin(y)));
    return MAKE(cosh(x) * cos(y), sinh(x) * sin(y));
}
static inline TC T(tanh)(TC a)
{
    const TREAL x = RE(a), y = IM(a);
    if (isnan(x)) return MAKE(x, y == 0 ? y : (TREAL)NAN);
    if (isinf(x)) return MAKE(copysign((TREAL)1, x), copysign((TREAL)0, y));
    if (!isfinite(y)) return MAKE(x == 0 ? x : (TREAL)NAN, NAN);
    if (fabs(x) > 22) return MAKE(copysign((TREAL)1, x), 4 * sin(y) * cos(y) * exp(-2 * fabs(x)));
    const TREAL t = tan(y), beta = 1 + t * t, s = sinh(x), rho = sqrt(1 + s * s), denominator = 1 + beta * s * s;
    return MAKE(beta * rho * s / denominator, t / denominator);
}
static inline TC T(sin)(TC a)
{
    return T(back)(T(sinh)(T(turn)(a)));
}
static inline TC T(cos)(TC a)
{
    return T(cosh)(T(turn)(a));
}
static inline TC T(tan)(TC a)
{
    return T(back)(T(tanh)(T(turn)(a)));
}
static inline TC T(acos)(TC a)
{
    const TREAL x = RE(a), y = IM(a);
    if (T(infinite)(a)) {
        const TREAL angle = isnan(x) || isnan(y) ? (TREAL)NAN : atan2(fabs(y), x);
        return MAKE(angle, isnan(y) ? x : -copysign((TREAL)INFINITY, y));
    }
    if (isnan(x) || isnan(y)) return MAKE(x == 0 ? PI / 2 : (TREAL)NAN, NAN);
    const TC below = T(sqrt)(MAKE(1 - x, -y)), above = T(sqrt)(MAKE(1 + x, y));
    return MAKE(2 * atan2(RE(below), RE(above)), asinh(RE(above) * IM(below) - IM(above) * RE(below)));
}
static inline TC T(asin)(TC a)
{
    const TREAL x = RE(a), y = IM(a);
    if (T(infinite)(a)) {
        const TREAL angle = isnan(x) || isnan(y) ? (TREAL)NAN : copysign(atan2(fabs(x), fabs(y)), x);
        return MAKE(angle, copysign((TREAL)INFINITY, y));
    }
    if (isnan(x) || isnan(y)) return MAKE(x == 0 ? x : (TREAL)NAN, NAN);
    const TC below = T(sqrt)(MAKE(1 - x, -y)), above = T(sqrt)(MAKE(1 + x, y));
    return MAKE(atan2(x, RE(below) * RE(above) - IM(below) * IM(above)),
                asinh(RE(below) * IM(above) - IM(below) * RE(above)));
}
static inline TC T(asinh)(TC a)
{
    return T(back)(T(asin)(T(turn)(a)));
}
static inline TC T(acosh)(TC a)
{
    const TC r = T(acos)(a);
    return MAKE(fabs(IM(r)), copysign(RE(r), IM(a)));
}
static inline TC T(atanh)(TC a)
{
    const TREAL x = fabs(RE(a)), y = IM(a), large = (TREAL)1e9f;
    if (isnan(x) && !isinf(y)) return MAKE(NAN, NAN);
    if (T(infinite)(a) || x > large || fabs(y) > large) {
        const TREAL size = hypot(x, y), re = isinf(size) ? (TREAL)0 : x / size / size;
        return MAKE(copysign(re, RE(a)), isnan(y) ? y : copysign(PI / 2, y));
    }
    if (isnan(x) || isnan(y)) return MAKE(x == 0 ? RE(a) : (TREAL)NAN, NAN);
    const TREAL re = 0.25f * log1p(4 * x / ((1 - x) * (1 - x) + y * y));
    const TREAL im = x == 1 && y == 0 ? y : 0.5f * atan2(2 * y, (1 - x) * (1 + x) - y * y);
    return MAKE(copysign(re, RE(a)), im);
}
static inline TC T(atan)(TC a)
{
    return T(back)(T(atanh)(T(turn)(a)));
}
#endif

static inline TREAL T(real)(TC a)
{
    return RE(a);
}
static inline TREAL T(imag)(TC a)
{
    return IM(a);
}
static inline TC T(conj)(TC a)
{
    return MAKE(RE(a), -IM(a));
}
static inline TREAL T(abs)(TC a)
{
    return hypot(RE(a), IM(a));
}
static inline TREAL T(arg)(TC a)
{
    return atan2(IM(a), RE(a));
}
static inline int T(isfinite)(TC a)
{
    return isfinite(RE(a)) && isfinite(IM(a));
}
static inline int T(isinf)(TC a)
{
    return isinf(RE(a)) || isinf(IM(a));
}
static inline int T(isnan)(TC a)
{
    return isnan(RE(a)) || isnan(IM(a));
}
static inline TC T(round)(TC a)
{
    return MAKE(rint(RE(a)), rint(IM(a)));
}
/* A product without a look at its special values, for sums of many. */
static inline TC T(times)(TC a, TC b)
{
    return MAKE(RE(a) * RE(b) - IM(a) * IM(b), RE(a) * IM(b) + IM(a) * RE(b));
}
static inline TC T(reciprocal)(TC a)
{
    return T(div)(MAKE(1, 0), a);
}
/* Of what is infinite in one part, the direction of that part, as NumPy has it. */
static inline TC T(sign)(TC a)
{
    if (isinf(RE(a)) && !isinf(IM(a))) return MAKE(copysign((TREAL)1, RE(a)), 0);
    if (isinf(IM(a)) && !isinf(RE(a))) return MAKE(0, copysign((TREAL)1, IM(a)));
    const TREAL size = hypot(RE(a), IM(a));
    if (size == 0) return MAKE(0, 0);
    return MAKE(RE(a) / size, IM(a) / size);
}
static inline TC T(log2)(TC a)
{
    const TC r = T(log)(a);
    return MAKE(RE(r) * (TREAL)1.44269504088896340736, IM(r) * (TREAL)1.44269504088896340736);
}
static inline TC T(log10)(TC a)
{
    const TC r = T(log)(a);
    return MAKE(RE(r) * (TREAL)0.43429448190325182765, IM(r) * (TREAL)0.43429448190325182765);
}
static inline TC T(log1p)(TC a)
{
    const TREAL x = RE(a), y = IM(a);
    if (!(fabs(x) < 0.5f && fabs(y) < 0.5f)) return T(log)(MAKE(1 + x, y));
    return MAKE(0.5f * log1p(x * (2 + x) + y * y), atan2(y, 1 + x));
}
static inline TC T(expm1)(TC a)
{
    const TREAL x = RE(a), y = IM(a);
    if (!(fabs(x) < 1 && isfinite(y))) {
        const TC r = T(exp)(a);
        return MAKE(RE(r) - 1, IM(r));
    }
    const TREAL s = sin(y * 0.5f);
    return MAKE(expm1(x) * cos(y) - 2 * s * s + 0, exp(x) * sin(y)); /* + 0: a real part is never -0 */
}
/* Small whole powers by products, which are exact where numbers are whole, too. */
static inline TC T(pow)(TC a, TC b)
{
    const TREAL n = RE(b);
    if (n == 0 && IM(b) == 0) return MAKE(1, 0);
    if (RE(a) == 0 && IM(a) == 0) return n > 0 && IM(b) == 0 ? MAKE(0, 0) : MAKE(NAN, NAN);
    if (IM(b) != 0 || !(fabs(n) < 100) || n != rint(n)) return T(exp)(T(mul)(b, T(log)(a)));
    TC result = MAKE(1, 0), base = a;
    for (int k = (int)fabs(n); k; k >>= 1) {
        if (k & 1) result = T(mul)(result, base);
        base = T(mul)(base, base);
    }
    return n < 0 ? T(div)(MAKE(1, 0), result) : result;
}
#undef MAKE
#undef IM
#undef RE
#undef PI
