/* Exponentials, logarithms, powers and hyperbolic functions of float32: as c99_math_f64.c, where the comments
 * are. */

//: m32 : m_inline
#define DRUPE_ROUNDF    12582912.0f
#define DRUPE_SIGNF     0x80000000u
#define DRUPE_INFINITYF drupe_m32_of(0x7f800000u)
#define DRUPE_NANF      drupe_m32_of(0x7fc00000u)
#define DRUPE_LOG2EF    1.442695f
#define DRUPE_LN2_HIGHF 0.69314575f /* of 15 bits */
#define DRUPE_LN2_LOWF  1.4286068e-06f
#ifdef DRUPE_FMA
float fmaf(float, float, float);
#define DRUPE_MADF(a, b, c) fmaf(a, b, c)
#else
#define DRUPE_MADF(a, b, c) ((a) * (b) + (c))
#endif

DRUPE_M u32 drupe_m32_bits(f32 x)
{
    union {
        f32 f;
        u32 u;
    } v;
    v.f = x;
    return v.u;
}

DRUPE_M f32 drupe_m32_of(u32 u)
{
    union {
        f32 f;
        u32 u;
    } v;
    v.u = u;
    return v.f;
}

DRUPE_M f32 drupe_m32_abs(f32 x)
{
    return drupe_m32_of(drupe_m32_bits(x) & 0x7fffffffu);
}

DRUPE_M f32 drupe_m32_signed(f32 x, f32 s)
{
    return drupe_m32_of(drupe_m32_bits(x) | (drupe_m32_bits(s) & DRUPE_SIGNF));
}

/* The upper 12 bits. */
DRUPE_M f32 drupe_m32_high(f32 x)
{
    return drupe_m32_of(drupe_m32_bits(x) & 0xfffff000u);
}

DRUPE_M f32 drupe_m32_p4(f32 x, f32 x2, f32 a, f32 b, f32 c, f32 d)
{
    return DRUPE_MADF(x2, DRUPE_MADF(x, d, c), DRUPE_MADF(x, b, a));
}

//: m32_low : m32
/* a * b - p, exactly, of p = a * b; both ways give the same number. */
#if defined(__FMA__) || defined(__aarch64__) || defined(__TINYC__)
float fmaf(float, float, float);
DRUPE_M f32 drupe_m32_low(f32 a, f32 b, f32 p)
{
    return fmaf(a, b, -p);
}
#else
DRUPE_M f32 drupe_m32_low(f32 a, f32 b, f32 p)
{
    return (f32)((f64)a * (f64)b - (f64)p);
}
#endif

//: m32_expm1_near : m32
/* e**r - 1 - r for |r| <= log(2) / 2. */
DRUPE_M f32 drupe_m32_expm1_far(f32 r)
{
    f32 r2 = r * r;
    return r2 * DRUPE_MADF(r2 * r2, 0.001386456f,
                           drupe_m32_p4(r, r2, 0.49999997f, 0.16666543f, 0.041667502f, 0.008366541f));
}

DRUPE_M f32 drupe_m32_expm1_near(f32 r)
{
    return r + drupe_m32_expm1_far(r);
}

/* y - n log(2) */
DRUPE_M f32 drupe_m32_less_ln2(f32 y, f32 n)
{
    return DRUPE_MADF(-n, DRUPE_LN2_LOWF, DRUPE_MADF(-n, DRUPE_LN2_HIGHF, y));
}

//: m32_scale : m32
/* p * 2**n with one rounding, for |n| <= 250; t is n + 0x1.8p23. */
DRUPE_M f32 drupe_m32_scale(f32 p, f32 t)
{
    u32 n = drupe_m32_bits(t) - (0x4b400000u - 254), half = n >> 1;
    return p * drupe_m32_of(half << 23) * drupe_m32_of((n - half) << 23);
}

//: m32_exp_sum : m32_expm1_near m32_scale
/* 2**n e**r; t is n + 0x1.8p23 */
DRUPE_M f32 drupe_m32_exp_sum(f32 r, f32 t)
{
    f32 s = 1.0f + r;
    return drupe_m32_scale(s + (((1.0f - s) + r) + drupe_m32_expm1_far(r)), t);
}

//: exp_float32 : m32_exp_sum
DRUPE_M f32 drupe_exp_float32(f32 x)
{
    f32 y = x > 89.0f ? 89.0f : x;
    y = y < -105.0f ? -105.0f : y;
    f32 t = DRUPE_MADF(y, DRUPE_LOG2EF, DRUPE_ROUNDF), n = t - DRUPE_ROUNDF;
    return drupe_m32_exp_sum(drupe_m32_less_ln2(y, n), t);
}

//: exp2_float32 : m32_exp_sum
DRUPE_M f32 drupe_exp2_float32(f32 x)
{
    f32 y = x > 129.0f ? 129.0f : x;
    y = y < -151.0f ? -151.0f : y;
    f32 t = y + DRUPE_ROUNDF, n = t - DRUPE_ROUNDF;
    return drupe_m32_exp_sum((y - n) * 0.6931472f, t);
}

//: expm1_float32 : m32_expm1_near
DRUPE_M f32 drupe_expm1_float32(f32 x)
{
    f32 y = x > 89.0f ? 89.0f : x;
    y = y < -20.0f ? -20.0f : y;
    f32 t = DRUPE_MADF(y, DRUPE_LOG2EF, DRUPE_ROUNDF), n = t - DRUPE_ROUNDF;
    f32 p = drupe_m32_expm1_near(drupe_m32_less_ln2(y, n));
    f32 half = drupe_m32_of((drupe_m32_bits(t) + 126) << 23);
    f32 z = 2.0f * DRUPE_MADF(half, p, half - 0.5f);
    return drupe_m32_signed(n == 0.0f ? p : z, x);
}

//: m32_split : m32
DRUPE_M f32 drupe_m32_split(f32 x, f32 *k)
{
    int small = x < 1.1754944e-38f;
    f32 scaled = x * 33554432.0f;
    u32 u = drupe_m32_bits(small ? scaled : x) + 0x004afb0du;
    f32 e = drupe_m32_of(u >> 23 | 0x4b000000u);
    *k = e - (small ? 8388760.0f : 8388735.0f);
    return drupe_m32_of((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}

//: m32_log_near : m32
DRUPE_M f32 drupe_m32_log_near(f32 f)
{
    f32 s = f / (2.0f + f), z = s * s;
    f32 p = DRUPE_MADF(z * z, 0.2958665f, DRUPE_MADF(z, 0.39988554f, 0.66666687f));
    return s * DRUPE_MADF(-z, p, f);
}

//: m32_log_ends : m32
DRUPE_M f32 drupe_m32_log_ends(f32 x, f32 y)
{
    y = x < DRUPE_INFINITYF ? y : x;
    y = x == 0.0f ? -DRUPE_INFINITYF : y;
    return x < 0.0f ? DRUPE_NANF : y;
}

//: log_float32 : m32_split m32_log_near m32_log_ends
DRUPE_M f32 drupe_log_float32(f32 x)
{
    f32 k, f = drupe_m32_split(x, &k), c = drupe_m32_log_near(f);
    return drupe_m32_log_ends(x, DRUPE_MADF(k, DRUPE_LN2_HIGHF, f - DRUPE_MADF(-k, DRUPE_LN2_LOWF, c)));
}

//: log2_float32 : m32_split m32_log_near m32_log_ends
DRUPE_M f32 drupe_log2_float32(f32 x)
{
    f32 k, f = drupe_m32_split(x, &k), c = drupe_m32_log_near(f);
    f32 high = drupe_m32_high(f - c), low = (f - high) - c, p = high * 1.4423828f, s = k + p;
    f32 rest = DRUPE_MADF(high, 0.00031223285f, low * DRUPE_LOG2EF);
    return drupe_m32_log_ends(x, s + ((p - (s - k)) + rest));
}

//: log10_float32 : m32_split m32_log_near m32_log_ends
DRUPE_M f32 drupe_log10_float32(f32 x)
{
    f32 k, f = drupe_m32_split(x, &k), c = drupe_m32_log_near(f);
    f32 high = drupe_m32_high(f - c), low = (f - high) - c;
    f32 p = high * 0.43408203f, q = k * 0.30102539f, s = q + p;
    f32 rest = DRUPE_MADF(k, 4.6050533e-06f, low * 0.4342945f);
    rest = DRUPE_MADF(high, 0.00021245046f, rest);
    return drupe_m32_log_ends(x, s + ((p - (s - q)) + rest));
}

//: m32_log_sum : m32_split m32_log_near m32_log_ends
/* log(u + low) + more * log(2), where u + low was rounded to u */
DRUPE_M f32 drupe_m32_log_sum(f32 u, f32 low, f32 more)
{
    f32 k, f = drupe_m32_split(u, &k), c = drupe_m32_log_near(f) - low / u;
    k += more;
    f32 y = DRUPE_MADF(k, DRUPE_LN2_HIGHF, f - DRUPE_MADF(-k, DRUPE_LN2_LOWF, c));
    return drupe_m32_log_ends(u, y);
}

//: log1p_float32 : m32_log_sum
DRUPE_M f32 drupe_log1p_float32(f32 x)
{
    f32 u = 1.0f + x, v = u - 1.0f, low = (1.0f - (u - v)) + (x - v);
    f32 y = drupe_m32_log_sum(u, low, 0.0f);
    return x == 0.0f ? x : y;
}

//: pow_float32 : m64 m32
/* In float64: log2(x) to 2**-40, 2**t to 2**-29. */
DRUPE_M f32 drupe_pow_float32(f32 x, f32 y)
{
    f32 a = drupe_m32_abs(x), b = drupe_m32_abs(y);
    u64 u = drupe_m64_bits(a) + 0x00095f619980c433u;
    f64 k = drupe_m64_of(u >> 52 | 0x4330000000000000u) - 4503599627371519.0;
    f64 f = drupe_m64_of((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    f64 s = f / (2.0 + f), z = s * s, z2 = z * z;
    f64 p = DRUPE_MAD(
        z2 * z2, DRUPE_MAD(z, 0.282909379485188, 0.3199050965165136),
        drupe_m64_p4(z, z2, 2.88539008177785, 0.961796694113668, 0.5770779422477009, 0.4122092657607476));
    f32 c = b > 1e30f ? 1e30f : b, d = drupe_m32_signed(c, y);
    f64 l = DRUPE_MAD(s, p, k) * d;
    l = l > 200.0 ? 200.0 : l;
    l = l < -200.0 ? -200.0 : l;
    f64 t = l + DRUPE_ROUND, r = l - (t - DRUPE_ROUND), r2 = r * r;
    f64 q = DRUPE_MAD(r2, 0.00015345788966379887, DRUPE_MAD(r, 0.0013399957629002639, 0.00961848924438997));
    q = DRUPE_MAD(r2 * r2, q,
                  drupe_m64_p4(r, r2, 1.0000000005550491, 0.6931472057671411, 0.2402264688608071,
                               0.055503287118008476));
    f32 e = (f32)(q * drupe_m64_of((drupe_m64_bits(t) + 1023) << 52));
    f32 whole = (b + 8388608.0f) - 8388608.0f, half = 0.5f * b, half_whole = (half + 8388608.0f) - 8388608.0f;
    whole = b < 8388608.0f ? whole : b;
    half_whole = half < 8388608.0f ? half_whole : half;
    u32 sign = drupe_m32_bits(x) & DRUPE_SIGNF;
    sign = half_whole == half ? 0 : sign;
    sign = whole == b ? sign : 0;
    f32 outside = x < 0.0f ? DRUPE_NANF : e;
    e = whole == b ? e : outside;
    f32 inverse = 1.0f / a, edge = drupe_m32_bits(y) & DRUPE_SIGNF ? inverse : a;
    e = a > 0.0f ? e : edge;
    e = a < DRUPE_INFINITYF ? e : edge;
    e = drupe_m32_of(drupe_m32_bits(e) | sign);
    e = y != y ? y : e;
    return y == 0.0f || x == 1.0f ? 1.0f : e;
}

//: sinh_float32 : m32_expm1_near m32_scale
DRUPE_M f32 drupe_sinh_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), b = a > 90.0f ? 90.0f : a, z = b * b;
    f32 near = DRUPE_MADF(
        b * z, drupe_m32_p4(z, z * z, 0.16666667f, 0.008333298f, 0.00019846353f, 2.759186e-06f), b);
    f32 t = DRUPE_MADF(b, DRUPE_LOG2EF, DRUPE_ROUNDF), n = t - DRUPE_ROUNDF;
    f32 e = drupe_m32_scale(1.0f + drupe_m32_expm1_near(drupe_m32_less_ln2(b, n)), t - 1.0f);
    return drupe_m32_signed(b < 1.0f ? near : e - 0.25f / e, x);
}

//: cosh_float32 : m32_expm1_near m32_scale
DRUPE_M f32 drupe_cosh_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), b = a > 90.0f ? 90.0f : a;
    f32 t = DRUPE_MADF(b, DRUPE_LOG2EF, DRUPE_ROUNDF), n = t - DRUPE_ROUNDF;
    f32 e = drupe_m32_scale(1.0f + drupe_m32_expm1_near(drupe_m32_less_ln2(b, n)), t - 1.0f);
    return e + 0.25f / e;
}

//: tanh_float32 : m32_expm1_near
DRUPE_M f32 drupe_tanh_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), b = a > 10.0f ? 10.0f : a, z = b * b, z2 = z * z;
    f32 p = drupe_m32_p4(z, z2, -0.3333333f, 0.13333195f, -0.05394216f, 0.021662159f);
    p = DRUPE_MADF(z2 * z2, DRUPE_MADF(z, 0.0020209306f, -0.008059103f), p);
    f32 near = DRUPE_MADF(b * z, p, b);
    f32 t = DRUPE_MADF(b, 2.88539f, DRUPE_ROUNDF), n = t - DRUPE_ROUNDF;
    f32 e = drupe_m32_expm1_near(drupe_m32_less_ln2(2.0f * b, n));
    f32 power = drupe_m32_of((drupe_m32_bits(t) + 127) << 23), f = power * e, g = power + 1.0f, d = f + g;
    f32 q = 2.0f / d, s = 1.0f - q, far = s + DRUPE_MADF(0.5f * q * q, (g - d) + f, (1.0f - s) - q);
    return drupe_m32_signed(b < 0.7f ? near : far, x);
}

//: asinh_float32 : m32_log_sum libm_sqrt_float32
DRUPE_M f32 drupe_asinh_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), z = a * a;
    int huge = a > 1e5f;
    f32 b = a + z / (1.0f + sqrtf(1.0f + z)), u = 1.0f + b, v = u - 1.0f, low = (1.0f - (u - v)) + (b - v);
    u = huge ? a : u;
    low = huge ? 0.0f : low;
    f32 y = drupe_m32_log_sum(u, low, huge ? 1.0f : 0.0f);
    return drupe_m32_signed(a == 0.0f ? 0.0f : y, x);
}

//: acosh_float32 : m32_log_sum libm_sqrt_float32
DRUPE_M f32 drupe_acosh_float32(f32 x)
{
    int huge = x > 1e5f;
    f32 a = x - 1.0f, b = a + sqrtf(DRUPE_MADF(a, a, 2.0f * a)), u = 1.0f + b, v = u - 1.0f;
    f32 low = (1.0f - (u - v)) + (b - v);
    u = huge ? x : u;
    low = huge ? 0.0f : low;
    f32 y = drupe_m32_log_sum(u, low, huge ? 1.0f : 0.0f);
    return x < 1.0f ? DRUPE_NANF : y;
}

//: atanh_float32 : m32_log_sum
DRUPE_M f32 drupe_atanh_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), b = 2.0f * a / (1.0f - a), u = 1.0f + b, v = u - 1.0f;
    f32 low = (1.0f - (u - v)) + (b - v);
    f32 y = 0.5f * drupe_m32_log_sum(u, low, 0.0f);
    y = a < 0.00024414062f ? a : y;
    y = a > 1.0f ? DRUPE_NANF : y;
    return drupe_m32_signed(y, x);
}
