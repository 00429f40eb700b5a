/* Trigonometric and error functions, roots, and gamma of float32: as c99_math_f64_more.c, where the comments
 * are. */

//: m32_turned : m64 m32 m32_rare
/* x - n c pi, in float64, where c pi is high + low and high has 26 bits: good for |x| < 2e8. */
DRUPE_M f64 drupe_m32_turn(f32 x, f64 n, f64 high, f64 low)
{
    return DRUPE_MAD(-n, low, DRUPE_MAD(-n, high, (f64)x));
}

/* sin(r) of |r| <= pi / 2 to 2**-27, with its sign changed if n is odd */
DRUPE_M f32 drupe_m32_sin_near(f64 r, u64 n)
{
    f64 z = r * r, z2 = z * z;
    f64 p = DRUPE_MAD(z2 * z2, 2.60153733180545e-06,
                      drupe_m64_p4(z, z2, 0.9999999946092165, -0.16666656576569613, 0.008333022771489855,
                                   -0.00019807251963304423));
    return (f32)drupe_m64_of(drupe_m64_bits(r * p) ^ n << 63);
}

/* y, or, where |x| is too large or not finite, what m32_rare makes of x by `which`. */
DRUPE_M f32 drupe_m32_turned(f32 x, f32 y, f32 which)
{
    int fine = drupe_m32_abs(x) < 2e8f;
    f32 g = fine ? 0.0f : x;
    y = fine ? y : which;
    return DRUPE_M32_RARE(g, y);
}

//: sin_float32 : m32_turned
DRUPE_M f32 drupe_sin_float32(f32 x)
{
    f64 t = DRUPE_MAD((f64)x, 0.3183098861837907, DRUPE_ROUND);
    f64 r = drupe_m32_turn(x, t - DRUPE_ROUND, 3.1415926218032837, 3.178650954705639e-08);
    return drupe_m32_turned(x, drupe_m32_sin_near(r, drupe_m64_bits(t)), 1.0f);
}

//: cos_float32 : m32_turned
/* cos(x) = -sin(r) where x = (n + 1 / 2) pi + r and n is even */
DRUPE_M f32 drupe_cos_float32(f32 x)
{
    f64 t = DRUPE_MAD((f64)x, 0.3183098861837907, -0.5) + DRUPE_ROUND;
    f64 r = drupe_m32_turn(x, (t - DRUPE_ROUND) + 0.5, 3.1415926218032837, 3.178650954705639e-08);
    return drupe_m32_turned(x, drupe_m32_sin_near(r, drupe_m64_bits(t) + 1), 2.0f);
}

//: tan_float32 : m32_turned
DRUPE_M f32 drupe_tan_float32(f32 x)
{
    f64 t = DRUPE_MAD((f64)x, 0.63661977236758134, DRUPE_ROUND);
    f64 r = drupe_m32_turn(x, t - DRUPE_ROUND, 1.5707963109016418, 1.5893254773528196e-08), z = r * r,
        z2 = z * z;
    f64 s = r * drupe_m64_p4(z, z2, 0.9999999967355474, -0.16666650124771895, 0.008332011164629107,
                             -0.0001950114377438949);
    f64 c = DRUPE_MAD(z2 * z2, 2.437181069211067e-05,
                      drupe_m64_p4(z, z2, 0.9999999999433512, -0.49999999568018183, 0.041666612904856896,
                                   -0.0013886519529951174));
    u64 odd = drupe_m64_bits(t) & 1;
    f64 y = (odd ? c : s) / (odd ? s : c);
    return drupe_m32_turned(x, (f32)drupe_m64_of(drupe_m64_bits(y) ^ odd << 63), 3.0f);
}

//: m32_asin_near : m32
/* of |x| <= 1 / 2: what asin(x) has beyond x; z = x * x */
DRUPE_M f32 drupe_m32_asin_near(f32 x, f32 z)
{
    f32 z2 = z * z;
    return x * z *
           DRUPE_MADF(z2 * z2, 0.038344067f,
                      drupe_m32_p4(z, z2, 0.16666673f, 0.07498759f, 0.045021027f, 0.026426747f));
}

//: asin_float32 : m32_asin_near libm_sqrt_float32
DRUPE_M f32 drupe_asin_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), half = 0.5f - 0.5f * a;
    int far = a > 0.5f;
    f32 root = sqrtf(half), b = far ? root : a, z = a * a;
    f32 rest = drupe_m32_asin_near(b, far ? half : z);
    f32 wide = 1.5707964f - (2.0f * b + (2.0f * rest + 4.371139e-08f)), near = b + rest;
    return drupe_m32_signed(far ? wide : near, x);
}

//: acos_float32 : m32_asin_near libm_sqrt_float32
DRUPE_M f32 drupe_acos_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), half = 0.5f - 0.5f * a;
    int far = a > 0.5f, negative = x < 0.0f;
    f32 root = sqrtf(half), b = far ? root : x, z = a * a;
    f32 rest = drupe_m32_asin_near(b, far ? half : z);
    f32 middle = 1.5707964f - (b + (rest + 4.371139e-08f)), right = 2.0f * (b + rest);
    f32 left = 3.1415927f - (2.0f * b + (2.0f * rest + 8.742278e-08f)), edge = negative ? left : right;
    return far ? edge : middle;
}

//: m32_atan_near : m32
/* of |x| <= sqrt(2) - 1 */
DRUPE_M f32 drupe_m32_atan_near(f32 x, f32 low)
{
    f32 z = x * x, z2 = z * z;
    f32 p = DRUPE_MADF(z2 * z2, -0.06447064f,
                       drupe_m32_p4(z, z2, -0.3333333f, 0.19999518f, -0.14263591f, 0.107414804f));
    return x + DRUPE_MADF(x * z, p, low);
}

//: atan_float32 : m32_atan_near
DRUPE_M f32 drupe_atan_float32(f32 x)
{
    f32 a = drupe_m32_abs(x);
    a = a > 1e30f ? 1e30f : a;
    int middle = a > 0.41421357f, large = a > 2.4142136f;
    f32 minus = a - 1.0f, plus = a + 1.0f;
    f32 over = middle ? minus : a, under = middle ? plus : 1.0f;
    over = large ? -1.0f : over;
    under = large ? a : under;
    f32 high = middle ? 0.7853982f : 0.0f, low = middle ? -2.1855695e-08f : 0.0f;
    high = large ? 1.5707964f : high;
    low = large ? -4.371139e-08f : low;
    return drupe_m32_signed(high + drupe_m32_atan_near(over / under, low), x);
}

//: atan2_float32 : m32_atan_near
DRUPE_M f32 drupe_atan2_float32(f32 y, f32 x)
{
    f32 infinity = DRUPE_INFINITYF;
    f32 a = drupe_m32_abs(y), b = drupe_m32_abs(x);
    int steep = a > b;
    f32 large = steep ? a : b, small = steep ? b : a;
    f32 alike = small == infinity ? 1.0f : 0.0f;
    small = large == infinity ? alike : small;
    large = large == infinity || large == 0.0f ? 1.0f : large;
    f32 down = large > 1e30f ? 0.0009765625f : 1.0f;
    large *= down;
    small *= down;
    int middle = small > 0.41421357f * large;
    f32 minus = small - large, plus = small + large;
    f32 over = middle ? minus : small, under = middle ? plus : large;
    f32 count = middle ? 1.0f : 0.0f, inverse = 2.0f - count;
    u32 flip = steep ? DRUPE_SIGNF : 0;
    count = steep ? inverse : count;
    inverse = 4.0f - count;
    u32 back = drupe_m32_bits(x) & DRUPE_SIGNF;
    count = back ? inverse : count;
    f32 angle = drupe_m32_atan_near(over / under, 0.0f);
    angle = drupe_m32_of(drupe_m32_bits(angle) ^ flip ^ back);
    angle = count * 0.78539824f + DRUPE_MADF(count, -8.146034e-08f, angle);
    angle = drupe_m32_signed(angle, y);
    return x != x || y != y ? x + y : angle;
}

//: m32_erf_near : m32
/* erf(x) of 0 <= x <= 0.8125 */
DRUPE_M f32 drupe_m32_erf_near(f32 x)
{
    f32 z = x * x, z2 = z * z;
    f32 p = DRUPE_MADF(z2 * z2, DRUPE_MADF(z, -0.0006523347f, 0.005084528f),
                       drupe_m32_p4(z, z2, 0.12837917f, -0.37612608f, 0.11283152f, -0.026821345f));
    return DRUPE_MADF(x, p, x);
}

//: erf_float32 : m32_erf_near m32_expm1_near
DRUPE_M f32 drupe_erf_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), b = a > 4.0f ? 4.0f : a;
    /* log(erfc(1 + u)) */
    f32 u = b - 1.0f, u2 = u * u;
    f32 g = drupe_m32_p4(u, u2, -2.6389675f, -0.84310496f, -0.041563407f, 0.010013195f);
    g = DRUPE_MADF(u2 * u2,
                   drupe_m32_p4(u, u2, -0.0019281628f, 0.00020552258f, 1.5934247e-05f, -6.217169e-06f), g);
    f32 l = DRUPE_MADF(u, g, -1.8496056f);
    f32 t = DRUPE_MADF(l, DRUPE_LOG2EF, DRUPE_ROUNDF), n = t - DRUPE_ROUNDF;
    f32 e = DRUPE_MADF(u, g, DRUPE_MADF(-n, DRUPE_LN2_HIGHF, -1.8496056f));
    e = drupe_m32_expm1_near(DRUPE_MADF(-n, DRUPE_LN2_LOWF, e));
    f32 power = drupe_m32_of((drupe_m32_bits(t) + 127) << 23), far = DRUPE_MADF(-power, e, 1.0f - power);
    return drupe_m32_signed(b < 0.8125f ? drupe_m32_erf_near(b) : far, x);
}

//: erfc_float32 : m32_erf_near m32_expm1_near m32_scale m32_low
DRUPE_M f32 drupe_erfc_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), b = a > 11.0f ? 11.0f : a;
    u32 sign = drupe_m32_bits(x) & DRUPE_SIGNF;
    f32 near = drupe_m32_erf_near(b);
    near = 1.0f - drupe_m32_of(drupe_m32_bits(near) | sign);
    /* e**-b**2 w P(1 - 5 w), w = 1 / (b + 2.5) */
    f32 d = b + 2.5f, w = 1.0f / d, one = d * w, v = (1.0f - 4.0f * w) - w;
    f32 c =
        DRUPE_MADF(-w, b - (d - 2.5f), (1.0f - one) - drupe_m32_low(d, w, one)); /* w + c w is more exact */
    v = DRUPE_MADF(-5.0f * w, c, v);
    f32 v2 = v * v, v4 = v2 * v2;
    f32 p = drupe_m32_p4(v, v2, 1.0540318f, -0.8046519f, 0.45391282f, -0.17124826f);
    p = DRUPE_MADF(
        v4,
        DRUPE_MADF(v4, DRUPE_MADF(v, -0.00019355814f, 0.00074619806f),
                   drupe_m32_p4(v, v2, 0.028376639f, 0.008357925f, -0.004878188f, -0.00027839807f)),
        p);
    f32 high = drupe_m32_high(b), square = high * high, rest = (b - high) * (b + high);
    f32 t = DRUPE_MADF(square, -DRUPE_LOG2EF, DRUPE_ROUNDF), n = t - DRUPE_ROUNDF;
    f32 e = drupe_m32_expm1_near(drupe_m32_less_ln2(-square, n) - rest);
    f32 far = drupe_m32_scale(w * (p + p * (c + e)), t), left = 2.0f - far;
    far = sign ? left : far;
    return b < 0.75f ? near : far;
}

//: cbrt_float32 : m32_split
DRUPE_M f32 drupe_cbrt_float32(f32 x)
{
    f32 a = drupe_m32_abs(x), k, m = 1.0f + drupe_m32_split(a, &k);
    f32 t = k * 0.33333334f + DRUPE_ROUNDF, third = t - DRUPE_ROUNDF, rest = k - 3.0f * third;
    m = rest > 0.0f ? 2.0f * m : m;
    m = rest < 0.0f ? 0.5f * m : m; /* 0.35 <= m < 2.83 */
    f32 m2 = m * m, y = DRUPE_MADF(m2 * m2, -0.019553615f,
                                   drupe_m32_p4(m, m2, 0.44356522f, 0.8983824f, -0.47389486f, 0.15333585f));
    /* Halley's iteration with y**2 exact */
    y = drupe_m32_high(y + 0.00012207031f);
    f32 r = m / (y * y);
    y = y + y * ((r - y) / (2.0f * y + r));
    y = y * drupe_m32_of((drupe_m32_bits(t) + 127) << 23);
    y = a > 0.0f ? y : a;
    y = a < DRUPE_INFINITYF ? y : a;
    return drupe_m32_signed(y, x);
}

//: hypot_float32 : m32 libm_sqrt_float64
DRUPE_M f32 drupe_hypot_float32(f32 x, f32 y)
{
    f32 infinity = DRUPE_INFINITYF, a = drupe_m32_abs(x), b = drupe_m32_abs(y);
    f64 c = a, d = b; /* their squares neither overflow nor underflow */
    f32 r = (f32)sqrt(c * c + d * d);
    return a == infinity || b == infinity ? infinity : r;
}

//: rsqrt_float32 : m_inline libm_sqrt_float32
DRUPE_M f32 drupe_rsqrt_float32(f32 x)
{
    return 1.0f / sqrtf(x);
}

//: gamma_float32 : m_inline
float drupe_libm_tgammaf(float) __asm__("tgammaf");
DRUPE_M f32 drupe_gamma_float32(f32 x)
{
    return drupe_libm_tgammaf(x);
}

//: lgamma_float32 : m_inline
float drupe_libm_lgammaf(float, int *) __asm__("lgammaf_r");
DRUPE_M f32 drupe_lgamma_float32(f32 x)
{
    int sign;
    return drupe_libm_lgammaf(x, &sign);
}
