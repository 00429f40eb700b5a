/* Exponentials, logarithms, powers and hyperbolic functions of float64; see c99_math.c. */

//: m64 : m_inline
#define DRUPE_ROUND    6755399441055744.0 /* the sum is called t */
#define DRUPE_SIGN     0x8000000000000000u
#define DRUPE_INFINITY drupe_m64_of(0x7ff0000000000000u)
#define DRUPE_NAN      drupe_m64_of(0x7ff8000000000000u)
#define DRUPE_LOG2E    1.4426950408889634
#define DRUPE_LN2_HIGH 0.6931471805598903 /* of 42 bits: exact times n, the exponent of a number */
#define DRUPE_LN2_LOW  5.497923018708371e-14
/* a * b + c: rounded once where DRUPE_FMA is defined, else twice. */
#ifdef DRUPE_FMA
double fma(double, double, double);
#define DRUPE_MAD(a, b, c) fma(a, b, c)
#else
#define DRUPE_MAD(a, b, c) ((a) * (b) + (c))
#endif

DRUPE_M u64 drupe_m64_bits(f64 x)
{
    union {
        f64 f;
        u64 u;
    } v;
    v.f = x;
    return v.u;
}

DRUPE_M f64 drupe_m64_of(u64 u)
{
    union {
        f64 f;
        u64 u;
    } v;
    v.u = u;
    return v.f;
}

DRUPE_M f64 drupe_m64_abs(f64 x)
{
    return drupe_m64_of(drupe_m64_bits(x) & 0x7fffffffffffffffu);
}

/* x >= 0, with the sign of s. */
DRUPE_M f64 drupe_m64_signed(f64 x, f64 s)
{
    return drupe_m64_of(drupe_m64_bits(x) | (drupe_m64_bits(s) & DRUPE_SIGN));
}

/* The upper 26 bits. */
DRUPE_M f64 drupe_m64_high(f64 x)
{
    return drupe_m64_of(drupe_m64_bits(x) & 0xfffffffff8000000u);
}

/* a + b x + c x**2 + d x**3 */
DRUPE_M f64 drupe_m64_p4(f64 x, f64 x2, f64 a, f64 b, f64 c, f64 d)
{
    return DRUPE_MAD(x2, DRUPE_MAD(x, d, c), DRUPE_MAD(x, b, a));
}

//: m64_low : m64
/* a * b - p, exactly, of p = a * b; both ways give the same number. */
#if defined(__FMA__) || defined(__aarch64__) || defined(__TINYC__)
double fma(double, double, double);
DRUPE_M f64 drupe_m64_low(f64 a, f64 b, f64 p)
{
    return fma(a, b, -p);
}
#else
DRUPE_M f64 drupe_m64_low(f64 a, f64 b, f64 p)
{
    f64 c = a * 134217729.0, d = b * 134217729.0;
    f64 ah = c - (c - a), al = a - ah, bh = d - (d - b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}
#endif

//: m64_expm1_near : m64
/* e**r - 1 - r for |r| <= log(2) / 2. */
DRUPE_M f64 drupe_m64_expm1_far(f64 r)
{
    f64 r2 = r * r, r4 = r2 * r2;
    f64 a = drupe_m64_p4(r, r2, 0.5000000000000006, 0.16666666666666594, 0.04166666666657379,
                         0.008333333333386235);
    f64 b = drupe_m64_p4(r, r2, 0.0013888888932306021, 0.00019841269727140017, 2.4801504542256717e-05,
                         2.7557399606611717e-06);
    return r2 * DRUPE_MAD(r4, DRUPE_MAD(r4, DRUPE_MAD(r, 2.50564578076435e-08, 2.762628713559131e-07), b), a);
}

DRUPE_M f64 drupe_m64_expm1_near(f64 r)
{
    return r + drupe_m64_expm1_far(r);
}

/* y - n log(2) */
DRUPE_M f64 drupe_m64_less_ln2(f64 y, f64 n)
{
    return DRUPE_MAD(-n, DRUPE_LN2_LOW, DRUPE_MAD(-n, DRUPE_LN2_HIGH, y));
}

//: m64_scale : m64
/* p * 2**n, rounded once, for |n| <= 2000; t is n + DRUPE_ROUND. Two factors, for 2**n alone may overflow. */
DRUPE_M f64 drupe_m64_scale(f64 p, f64 t)
{
    u64 n = drupe_m64_bits(t) - (0x4338000000000000u - 2046), half = n >> 1;
    return p * drupe_m64_of(half << 52) * drupe_m64_of((n - half) << 52);
}

//: exp_float64 : m64_expm1_near m64_scale
DRUPE_M f64 drupe_exp_float64(f64 x)
{
    f64 y = x > 710.0 ? 710.0 : x;
    y = y < -746.0 ? -746.0 : y;
    f64 t = DRUPE_MAD(y, DRUPE_LOG2E, DRUPE_ROUND), n = t - DRUPE_ROUND;
    return drupe_m64_scale(1.0 + drupe_m64_expm1_near(drupe_m64_less_ln2(y, n)), t);
}

//: exp2_float64 : m64_expm1_near m64_scale
DRUPE_M f64 drupe_exp2_float64(f64 x)
{
    f64 y = x > 1025.0 ? 1025.0 : x;
    y = y < -1076.0 ? -1076.0 : y;
    f64 t = y + DRUPE_ROUND, n = t - DRUPE_ROUND;
    return drupe_m64_scale(1.0 + drupe_m64_expm1_near((y - n) * 0.6931471805599453), t);
}

//: expm1_float64 : m64_expm1_near
DRUPE_M f64 drupe_expm1_float64(f64 x)
{
    f64 y = x > 710.0 ? 710.0 : x;
    y = y < -50.0 ? -50.0 : y;
    f64 t = DRUPE_MAD(y, DRUPE_LOG2E, DRUPE_ROUND), n = t - DRUPE_ROUND;
    f64 p = drupe_m64_expm1_near(drupe_m64_less_ln2(y, n));
    f64 half = drupe_m64_of((drupe_m64_bits(t) + 1022) << 52); /* 2**(n - 1): 2**n may overflow */
    f64 z = 2.0 * DRUPE_MAD(half, p, half - 0.5);
    return drupe_m64_signed(n == 0.0 ? p : z, x);
}

//: m64_split : m64
#define DRUPE_ROOT_HALF 0x3fe6a09e667f3bcdu
/* x = m * 2**k of a positive x: m - 1, which is exact; `least` are the bits of the least m, between 1 / 2
   and 1. Adding those of 1 less these carries into the exponent from 2 * least on. */
DRUPE_M f64 drupe_m64_split(f64 x, u64 least, f64 *k)
{
    int small = x < 2.2250738585072014e-308;
    f64 scaled = x * 18014398509481984.0;
    u64 u = drupe_m64_bits(small ? scaled : x) + (0x3ff0000000000000u - least);
    f64 e = drupe_m64_of(u >> 52 | 0x4330000000000000u);
    *k = e - (small ? 4503599627371573.0 : 4503599627371519.0);
    return drupe_m64_of((u & 0x000fffffffffffffu) + least) - 1.0;
}

//: m64_log_near : m64
/* f - log(1 + f), for the f of m64_split: log(1 + f) = 2 atanh(s) for s = f / (2 + f), and 2 s = f - s f, of
   which f is exact. */
DRUPE_M f64 drupe_m64_log_near(f64 f)
{
    f64 s = f / (2.0 + f), z = s * s, z2 = z * z;
    f64 p =
        drupe_m64_p4(z, z2, 0.666666666666667, 0.3999999999989978, 0.28571428625963263, 0.22222211129894248);
    f64 q = DRUPE_MAD(z2, 0.14616774277409247, DRUPE_MAD(z, 0.15331697693427296, 0.18182889719074233));
    return s * DRUPE_MAD(-z, DRUPE_MAD(z2 * z2, q, p), f);
}

//: m64_log_ends : m64
/* y, the logarithm of x, unless x is 0, negative, infinite or NaN. */
DRUPE_M f64 drupe_m64_log_ends(f64 x, f64 y)
{
    y = x < DRUPE_INFINITY ? y : x;
    y = x == 0.0 ? -DRUPE_INFINITY : y;
    return x < 0.0 ? DRUPE_NAN : y;
}

//: log_float64 : m64_split m64_log_near m64_log_ends
DRUPE_M f64 drupe_log_float64(f64 x)
{
    f64 k, f = drupe_m64_split(x, DRUPE_ROOT_HALF, &k), c = drupe_m64_log_near(f);
    return drupe_m64_log_ends(x, DRUPE_MAD(k, DRUPE_LN2_HIGH, f - DRUPE_MAD(-k, DRUPE_LN2_LOW, c)));
}

//: log2_float64 : m64_split m64_log_near m64_log_ends
DRUPE_M f64 drupe_log2_float64(f64 x)
{
    f64 k, f = drupe_m64_split(x, DRUPE_ROOT_HALF, &k), c = drupe_m64_log_near(f);
    /* 1 / log(2) is the sum of 27 and 53 bits: the product of high and the first is exact. */
    f64 high = drupe_m64_high(f), low = (f - high) - c;
    f64 rest = DRUPE_MAD(high, 4.3584687174185184e-09, low * DRUPE_LOG2E);
    return drupe_m64_log_ends(x, DRUPE_MAD(high, 1.4426950365304947, k) + rest);
}

//: log10_float64 : m64_split m64_log_near m64_log_ends
DRUPE_M f64 drupe_log10_float64(f64 x)
{
    f64 k, f = drupe_m64_split(x, DRUPE_ROOT_HALF, &k), c = drupe_m64_log_near(f);
    f64 high = drupe_m64_high(f), low = (f - high) - c;
    f64 p = high * 0.434294480830431, q = k * 0.30102999566395283, s = q + p;
    f64 rest = DRUPE_MAD(k, 2.8363394551044964e-14, low * 0.43429448190325182);
    rest = DRUPE_MAD(high, 1.0728208431540585e-09, rest);
    return drupe_m64_log_ends(x, s + ((p - (s - q)) + rest));
}

//: m64_log_sum : m64_split m64_log_near m64_log_ends
/* log(u + low) + more * log(2), for |low| < ulp(u) */
DRUPE_M f64 drupe_m64_log_sum(f64 u, f64 low, f64 more)
{
    f64 k, f = drupe_m64_split(u, DRUPE_ROOT_HALF, &k), c = drupe_m64_log_near(f) - low / u;
    k += more;
    f64 y = DRUPE_MAD(k, DRUPE_LN2_HIGH, f - DRUPE_MAD(-k, DRUPE_LN2_LOW, c));
    return drupe_m64_log_ends(u, y);
}

//: log1p_float64 : m64_log_sum
DRUPE_M f64 drupe_log1p_float64(f64 x)
{
    f64 u = 1.0 + x, v = u - 1.0, low = (1.0 - (u - v)) + (x - v); /* u + low is 1 + x */
    f64 y = drupe_m64_log_sum(u, low, 0.0);
    return x == 0.0 ? x : y;
}

//: pow_float64 : m64_split m64_low m64_expm1_near m64_scale
/* log2(x) of x > 0 with a relative error of 2**-64, as a sum of two: results up to 2**1024 need 63 bits of
 * it. */
DRUPE_M f64 drupe_m64_log2_twice(f64 x, f64 *low)
{
    /* x = 2**k m, and log2(m) = log2(c) + 2 atanh(s) / log(2), s = (m - c) / (m + c): |s| < 0.0884 with two
     * c. */
    f64 k, m = 1.0 + drupe_m64_split(x, 0x3feb000000000000u, &k);
    int upper = m > 1.1875;
    f64 c = upper ? 1.4140625 : 1.0, low_c = upper ? -5.621848729602859e-15 : 0.0;
    k += upper ? 0.499845887083211 : 0.0; /* of 40 bits: exact */
    f64 f = m - c, u = m + c, ul = m - (u - c), inverse = 1.0 / u, s = f * inverse, p = s * u;
    f64 sl = inverse * DRUPE_MAD(-s, ul, (f - p) - drupe_m64_low(s, u, p));
    f64 z = s * s, zl = DRUPE_MAD(2.0 * s, sl, drupe_m64_low(s, s, z)), z2 = z * z;
    /* 2 atanh(s) / log(2) = s (a + b z + t z**2), of which a and b need more than 53 bits */
    f64 t =
        drupe_m64_p4(z, z2, 0.5770780163555843, 0.4121985831129378, 0.3205988968160179, 0.2623085550879274);
    t = DRUPE_MAD(z2 * z2, DRUPE_MAD(z, 0.1974729035616486, 0.22189222871012484), t);
    f64 g = z * 0.9617966939259756, gl = drupe_m64_low(z, 0.9617966939259756, g) +
                                         DRUPE_MAD(zl, 0.9617966939259756, z * 5.0577616648125907e-17);
    f64 a = 2.8853900817779268 + g, al = ((2.8853900817779268 - a) + g) + (gl + 4.0710547481862066e-17);
    f64 l = s * a, ll = DRUPE_MAD(sl, a, drupe_m64_low(s, a, l)), y = k + l;
    *low = ((k - y) + l) + (DRUPE_MAD(s, DRUPE_MAD(z2, t, al), ll) + low_c);
    return y;
}

/* 2**(y + low), for |low| < 2**-42 */
DRUPE_M f64 drupe_m64_exp2_twice(f64 y, f64 low)
{
    f64 t = y + DRUPE_ROUND, r = y - (t - DRUPE_ROUND), g = r * 0.6931471805599453;
    low = DRUPE_MAD(low, 0.6931471805599453, r * 2.3190468138462996e-17);
    low += drupe_m64_low(r, 0.6931471805599453, g);
    f64 e = drupe_m64_expm1_near(g);
    return drupe_m64_scale(1.0 + (e + DRUPE_MAD(low, e, low)), t);
}

DRUPE_M f64 drupe_pow_float64(f64 x, f64 y)
{
    f64 a = drupe_m64_abs(x), b = drupe_m64_abs(y);
    u64 ysign = drupe_m64_bits(y) & DRUPE_SIGN;
    f64 low, l = drupe_m64_log2_twice(a, &low);
    f64 c = b > 1e20 ? 1e20 : b; /* more makes no difference: the result is 0, 1 or infinite */
    f64 d = drupe_m64_of(drupe_m64_bits(c) | ysign);
    f64 h = d * l, hl = DRUPE_MAD(d, low, drupe_m64_low(d, l, h)), e = h + hl, el = (h - e) + hl;
    f64 e1 = e > 1100.0 ? 1100.0 : e;
    e1 = e1 < -1100.0 ? -1100.0 : e1;
    el = e1 == e ? el : 0.0;
    f64 r = drupe_m64_exp2_twice(e1, el);
    /* Is y an integer, and an even one? */
    f64 whole = (b + 4503599627370496.0) - 4503599627370496.0, half = 0.5 * b;
    f64 half_whole = (half + 4503599627370496.0) - 4503599627370496.0;
    whole = b < 4503599627370496.0 ? whole : b;
    half_whole = half < 4503599627370496.0 ? half_whole : half;
    u64 sign = drupe_m64_bits(x) & DRUPE_SIGN;
    sign = half_whole == half ? 0 : sign;
    sign = whole == b ? sign : 0;
    f64 outside = x < 0.0 ? DRUPE_NAN : r;
    r = whole == b ? r : outside;
    f64 inverse = 1.0 / a, edge = ysign ? inverse : a;
    r = a > 0.0 ? r : edge;
    r = a < DRUPE_INFINITY ? r : edge;
    r = drupe_m64_of(drupe_m64_bits(r) | sign);
    r = y != y ? y : r;
    return y == 0.0 || x == 1.0 ? 1.0 : r;
}

//: sinh_float64 : m64_expm1_near m64_scale
DRUPE_M f64 drupe_sinh_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), b = a > 711.0 ? 711.0 : a;
    f64 z = b * b, z2 = z * z;
    f64 p = drupe_m64_p4(z, z2, 0.16666666666666666, 0.008333333333333567, 0.00019841269841110027,
                         2.755731926475427e-06);
    f64 q = DRUPE_MAD(z2, 7.716118506230999e-13, DRUPE_MAD(z, 1.6058656937876387e-10, 2.505210547406269e-08));
    f64 near = DRUPE_MAD(b * z, DRUPE_MAD(z2 * z2, q, p), b);
    f64 t = DRUPE_MAD(b, DRUPE_LOG2E, DRUPE_ROUND), n = t - DRUPE_ROUND;
    f64 e = drupe_m64_scale(1.0 + drupe_m64_expm1_near(drupe_m64_less_ln2(b, n)), t - 1.0);
    return drupe_m64_signed(b < 1.0 ? near : e - 0.25 / e, x);
}

//: cosh_float64 : m64_expm1_near m64_scale
DRUPE_M f64 drupe_cosh_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), b = a > 711.0 ? 711.0 : a;
    f64 t = DRUPE_MAD(b, DRUPE_LOG2E, DRUPE_ROUND), n = t - DRUPE_ROUND;
    f64 e = drupe_m64_scale(1.0 + drupe_m64_expm1_near(drupe_m64_less_ln2(b, n)), t - 1.0);
    return e + 0.25 / e;
}

//: tanh_float64 : m64_expm1_near
DRUPE_M f64 drupe_tanh_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), b = a > 20.0 ? 20.0 : a;
    f64 z = b * b, z2 = z * z, z4 = z2 * z2;
    f64 p = drupe_m64_p4(z, z2, -0.33333333333333326, 0.13333333333327518, -0.05396825396197503,
                         0.021869488277434537);
    f64 q = drupe_m64_p4(z, z2, -0.00886323009172265, 0.003592061344695796, -0.0014553225487157046,
                         0.0005874835726220188);
    f64 s =
        DRUPE_MAD(z2, -1.7303151147750928e-05, DRUPE_MAD(z, 7.971545771441377e-05, -0.00023087440751859314));
    f64 near = DRUPE_MAD(b * z, DRUPE_MAD(z4, DRUPE_MAD(z4, s, q), p), b);
    f64 t = DRUPE_MAD(b, 2.8853900817779268, DRUPE_ROUND), n = t - DRUPE_ROUND;
    f64 e = drupe_m64_expm1_near(drupe_m64_less_ln2(2.0 * b, n));
    f64 power = drupe_m64_of((drupe_m64_bits(t) + 1023) << 52),
        far = 1.0 - 2.0 / DRUPE_MAD(power, e, power + 1.0);
    return drupe_m64_signed(b < 0.625 ? near : far, x);
}

//: asinh_float64 : m64_log_sum libm_sqrt_float64
DRUPE_M f64 drupe_asinh_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), z = a * a;
    int huge = a > 1e10; /* asinh(a) = log(2 a); else log1p(a + a**2 / (1 + sqrt(1 + a**2))) */
    f64 b = a + z / (1.0 + sqrt(1.0 + z)), u = 1.0 + b, v = u - 1.0, low = (1.0 - (u - v)) + (b - v);
    u = huge ? a : u;
    low = huge ? 0.0 : low;
    f64 y = drupe_m64_log_sum(u, low, huge ? 1.0 : 0.0);
    return drupe_m64_signed(a == 0.0 ? 0.0 : y, x);
}

//: acosh_float64 : m64_log_sum libm_sqrt_float64
DRUPE_M f64 drupe_acosh_float64(f64 x)
{
    int huge = x > 1e10; /* acosh(x) = log(2 x); else log1p(a + sqrt(2 a + a**2)) with a = x - 1 */
    f64 a = x - 1.0, b = a + sqrt(DRUPE_MAD(a, a, 2.0 * a)), u = 1.0 + b, v = u - 1.0;
    f64 low = (1.0 - (u - v)) + (b - v);
    u = huge ? x : u;
    low = huge ? 0.0 : low;
    f64 y = drupe_m64_log_sum(u, low, huge ? 1.0 : 0.0);
    return x < 1.0 ? DRUPE_NAN : y;
}

//: atanh_float64 : m64_log_sum
DRUPE_M f64 drupe_atanh_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), b = 2.0 * a / (1.0 - a), u = 1.0 + b, v = u - 1.0; /* log1p(b) / 2 */
    f64 low = (1.0 - (u - v)) + (b - v);
    f64 y = 0.5 * drupe_m64_log_sum(u, low, 0.0);
    y = a < 7.450580596923828e-09 ? a : y;
    y = a > 1.0 ? DRUPE_NAN : y;
    return drupe_m64_signed(y, x);
}
