/* Trigonometric and error functions, roots, and gamma of float64; see c99_math.c. */

//: m64_turn : m64
/* x = n pi / 2 + r - low; t is n + DRUPE_ROUND. For |x| < 2e8: pi / 2 is the sum of 26, 26, 26 and 53 bits,
   so that three products with n are exact, and no double is so close to a multiple of pi / 2 that 131 bits
   are too few. */
DRUPE_M f64 drupe_m64_turn(f64 x, f64 *t, f64 *low)
{
    *t = DRUPE_MAD(x, 0.63661977236758134, DRUPE_ROUND);
    f64 n = *t - DRUPE_ROUND;
    f64 a = DRUPE_MAD(-n, 1.5707963109016418, x), b = DRUPE_MAD(-n, 1.5893254712295857e-08, a);
    f64 c = DRUPE_MAD(n, 6.123233932053594e-17, -DRUPE_MAD(-n, 1.5893254712295857e-08, a - b)), r = b - c;
    *low = DRUPE_MAD(n, 6.36831716351095e-25, c - (b - r));
    return r;
}

//: m64_sin_near : m64
DRUPE_M f64 drupe_m64_sin_near(f64 r, f64 low)
{
    f64 z = r * r, z2 = z * z;
    f64 p = drupe_m64_p4(z, z2, -0.00019841269837083411, 2.7557316222010126e-06, -2.505115105586478e-08,
                         1.591925234868353e-10);
    p = DRUPE_MAD(z2, p, DRUPE_MAD(z, 0.008333333333331309, -0.16666666666666666));
    return r - DRUPE_MAD(-(z * r), p, low);
}

//: m64_cos_near : m64
DRUPE_M f64 drupe_m64_cos_near(f64 r, f64 low)
{
    f64 z = r * r, z2 = z * z;
    f64 p = drupe_m64_p4(z, z2, 2.4801587298459978e-05, -2.7557317158022486e-07, 2.087612775660295e-09,
                         -1.1381536210721856e-11);
    p = DRUPE_MAD(z2, p, DRUPE_MAD(z, -0.0013888888888887061, 0.041666666666666664));
    return DRUPE_MAD(-0.5, z, 1.0) + DRUPE_MAD(z2, p, r * low);
}

//: m64_turned : m64_turn m64_sin_near m64_cos_near m64_rare
/* y, or, where |x| is too large or not finite, what m64_rare makes of x by `which`. */
DRUPE_M f64 drupe_m64_turned(f64 x, f64 y, f64 which)
{
    int fine = drupe_m64_abs(x) < 2e8;
    f64 g = fine ? 0.0 : x;
    y = fine ? y : which;
    return DRUPE_M64_RARE(g, y);
}

//: sin_float64 : m64_turned
DRUPE_M f64 drupe_sin_float64(f64 x)
{
    f64 t, low, r = drupe_m64_turn(x, &t, &low);
    f64 s = drupe_m64_sin_near(r, low), c = drupe_m64_cos_near(r, low);
    u64 n = drupe_m64_bits(t);
    f64 y = n & 1 ? c : s;
    return drupe_m64_turned(x, drupe_m64_of(drupe_m64_bits(y) ^ (n & 2) << 62), 1.0);
}

//: cos_float64 : m64_turned
DRUPE_M f64 drupe_cos_float64(f64 x)
{
    f64 t, low, r = drupe_m64_turn(x, &t, &low);
    f64 s = drupe_m64_sin_near(r, low), c = drupe_m64_cos_near(r, low);
    u64 n = drupe_m64_bits(t);
    f64 y = n & 1 ? s : c;
    return drupe_m64_turned(x, drupe_m64_of(drupe_m64_bits(y) ^ ((n + 1) & 2) << 62), 2.0);
}

//: tan_float64 : m64_turned
DRUPE_M f64 drupe_tan_float64(f64 x)
{
    f64 t, low, r = drupe_m64_turn(x, &t, &low);
    f64 s = drupe_m64_sin_near(r, low), c = drupe_m64_cos_near(r, low);
    u64 odd = drupe_m64_bits(t) & 1;
    f64 y = (odd ? c : s) / (odd ? s : c);
    return drupe_m64_turned(x, drupe_m64_of(drupe_m64_bits(y) ^ odd << 63), 3.0);
}

//: m64_asin_near : m64
/* of |x| <= 1 / 2: what asin(x) has beyond x; z = x * x */
DRUPE_M f64 drupe_m64_asin_near(f64 x, f64 z)
{
    f64 z2 = z * z, z4 = z2 * z2;
    f64 p = drupe_m64_p4(z, z2, 0.16666666666666669, 0.07499999999998022, 0.044642857146993474,
                         0.03038194409547796);
    f64 q = drupe_m64_p4(z, z2, 0.022372174505917, 0.017352358516634823, 0.01397169279546263,
                         0.011474714406453815);
    f64 s = drupe_m64_p4(z, z2, 0.010350639476805578, 0.005342541859886888, 0.017702831250643623,
                         -0.015308291690066997);
    return x * z * DRUPE_MAD(z4, DRUPE_MAD(z4, DRUPE_MAD(z4, 0.029060083280196665, s), q), p);
}

//: asin_float64 : m64_asin_near libm_sqrt_float64
DRUPE_M f64 drupe_asin_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), half = 0.5 - 0.5 * a;
    int far = a > 0.5;
    f64 root = sqrt(half), b = far ? root : a, z = a * a;
    f64 rest = drupe_m64_asin_near(b, far ? half : z);
    /* pi / 2 - 2 asin(root) */
    f64 wide = 1.5707963267948966 - (2.0 * b + (2.0 * rest - 6.123233995736766e-17));
    f64 near = b + rest;
    return drupe_m64_signed(far ? wide : near, x);
}

//: acos_float64 : m64_asin_near libm_sqrt_float64
DRUPE_M f64 drupe_acos_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), half = 0.5 - 0.5 * a;
    int far = a > 0.5, negative = x < 0.0;
    f64 root = sqrt(half), b = far ? root : x, z = a * a;
    f64 rest = drupe_m64_asin_near(b, far ? half : z);
    /* pi / 2 - asin(x); 2 asin(root); pi - 2 asin(root) */
    f64 middle = 1.5707963267948966 - (b + (rest - 6.123233995736766e-17));
    f64 right = 2.0 * (b + rest);
    f64 left = 3.141592653589793 - (2.0 * b + (2.0 * rest - 1.2246467991473532e-16));
    f64 edge = negative ? left : right;
    return far ? edge : middle;
}

//: m64_atan_near : m64
/* of |x| <= sqrt(2) - 1 */
DRUPE_M f64 drupe_m64_atan_near(f64 x, f64 low)
{
    f64 z = x * x, z2 = z * z, z4 = z2 * z2;
    f64 p = drupe_m64_p4(z, z2, -0.3333333333333333, 0.19999999999996249, -0.14285714284775028,
                         0.1111111102233604);
    f64 q = drupe_m64_p4(z, z2, -0.09090904824863544, 0.07692188260467082, -0.06664575839105179,
                         0.05858660088199446);
    f64 s = DRUPE_MAD(z2, -0.01925287353207692, DRUPE_MAD(z, 0.039297977881748, -0.050879184004476746));
    return x + DRUPE_MAD(x * z, DRUPE_MAD(z4, DRUPE_MAD(z4, s, q), p), low);
}

//: atan_float64 : m64_atan_near
DRUPE_M f64 drupe_atan_float64(f64 x)
{
    f64 a = drupe_m64_abs(x);
    a = a > 1e300 ? 1e300 : a;
    int middle = a > 0.41421356237309503, large = a > 2.414213562373095;
    f64 minus = a - 1.0, plus = a + 1.0;
    f64 over = middle ? minus : a, under = middle ? plus : 1.0;
    over = large ? -1.0 : over;
    under = large ? a : under;
    f64 high = middle ? 0.7853981633974483 : 0.0, low = middle ? 3.061616997868383e-17 : 0.0;
    high = large ? 1.5707963267948966 : high;
    low = large ? 6.123233995736766e-17 : low;
    return drupe_m64_signed(high + drupe_m64_atan_near(over / under, low), x);
}

//: atan2_float64 : m64_atan_near
DRUPE_M f64 drupe_atan2_float64(f64 y, f64 x)
{
    f64 infinity = DRUPE_INFINITY;
    f64 a = drupe_m64_abs(y), b = drupe_m64_abs(x);
    int steep = a > b;
    f64 large = steep ? a : b, small = steep ? b : a;
    /* of two infinities, two zeros; sums that overflow */
    f64 alike = small == infinity ? 1.0 : 0.0;
    small = large == infinity ? alike : small;
    large = large == infinity || large == 0.0 ? 1.0 : large;
    f64 down = large > 1e300 ? 0.0009765625 : 1.0;
    large *= down;
    small *= down;
    int middle = small > 0.41421356237309503 * large;
    f64 minus = small - large, plus = small + large;
    f64 over = middle ? minus : small, under = middle ? plus : large;
    /* The angle is count * pi / 4 + or - that of over / under. */
    f64 count = middle ? 1.0 : 0.0, inverse = 2.0 - count;
    u64 flip = steep ? DRUPE_SIGN : 0;
    count = steep ? inverse : count;
    inverse = 4.0 - count;
    u64 back = drupe_m64_bits(x) & DRUPE_SIGN;
    count = back ? inverse : count;
    f64 angle = drupe_m64_atan_near(over / under, 0.0);
    angle = drupe_m64_of(drupe_m64_bits(angle) ^ flip ^ back);
    angle = count * 0.7853981633974483 + DRUPE_MAD(count, 3.061616997868383e-17, angle);
    angle = drupe_m64_signed(angle, y);
    return x != x || y != y ? x + y : angle;
}

//: m64_erf_near : m64
/* erf(x) of 0 <= x <= 0.875 */
DRUPE_M f64 drupe_m64_erf_near(f64 x)
{
    f64 z = x * x, z2 = z * z, z4 = z2 * z2;
    f64 p = drupe_m64_p4(z, z2, 0.1283791670955126, -0.3761263890318344, 0.1128379167092996,
                         -0.02686617063915829);
    f64 q = drupe_m64_p4(z, z2, 0.005223977557630685, -0.0008548322656485791, 0.00012055159937495049,
                         -1.4921270553593992e-05);
    f64 s =
        DRUPE_MAD(z2, 1.0509207901299691e-08, DRUPE_MAD(z, -1.5639955475090047e-07, 1.6390866822468196e-06));
    return DRUPE_MAD(x, DRUPE_MAD(z4, DRUPE_MAD(z4, s, q), p), x);
}

//: erf_float64 : m64_erf_near m64_expm1_near
DRUPE_M f64 drupe_erf_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), b = a > 6.0 ? 6.0 : a;
    /* log(erfc(1 + u)) */
    f64 u = b - 1.0, u2 = u * u, u4 = u2 * u2;
    f64 g = drupe_m64_p4(u, u2, -2.6389675142347917, -0.8431072563584965, -0.041561098046412254,
                         0.010033825435437719);
    f64 h = drupe_m64_p4(u, u2, -0.0019779030335494528, 0.00023732471178520003, 2.6270740261868152e-05,
                         -2.7143203281999748e-05);
    f64 i = drupe_m64_p4(u, u2, 9.583448907005067e-06, -2.030007595867428e-06, 1.1716796415291552e-07,
                         1.1398809344078002e-07);
    f64 j = drupe_m64_p4(u, u2, -5.978057114455855e-08, 1.7555275182879802e-08, -3.499193280410299e-09,
                         4.69828170311898e-10);
    i = DRUPE_MAD(u4 * u4, DRUPE_MAD(u, 1.4555944084476484e-12, -3.8506136778115946e-11),
                  DRUPE_MAD(u4, j, i));
    g = DRUPE_MAD(u4 * u4, i, DRUPE_MAD(u4, h, g));
    f64 l = DRUPE_MAD(u, g, -1.8496055099332482);
    f64 t = DRUPE_MAD(l, DRUPE_LOG2E, DRUPE_ROUND), n = t - DRUPE_ROUND;
    f64 e = DRUPE_MAD(u, g, DRUPE_MAD(-n, DRUPE_LN2_HIGH, -1.8496055099332482));
    e = drupe_m64_expm1_near(DRUPE_MAD(-n, DRUPE_LN2_LOW, e));
    f64 power = drupe_m64_of((drupe_m64_bits(t) + 1023) << 52), far = DRUPE_MAD(-power, e, 1.0 - power);
    return drupe_m64_signed(b < 0.875 ? drupe_m64_erf_near(b) : far, x);
}

//: erfc_float64 : m64_erf_near m64_expm1_near m64_scale m64_low
DRUPE_M f64 drupe_erfc_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), b = a > 28.0 ? 28.0 : a;
    u64 sign = drupe_m64_bits(x) & DRUPE_SIGN;
    f64 near = drupe_m64_erf_near(b);
    near = 1.0 - drupe_m64_of(drupe_m64_bits(near) | sign);
    /* e**-b**2 w P(1 - 7 w), w = 1 / (b + 3.5) */
    f64 d = b + 3.5, w = 1.0 / d, one = d * w, v = (1.0 - 8.0 * w) + w;
    f64 c = DRUPE_MAD(-w, b - (d - 3.5), (1.0 - one) - drupe_m64_low(d, w, one)); /* w + c w is more exact */
    v = DRUPE_MAD(-7.0 * w, c, v);
    f64 v2 = v * v, v4 = v2 * v2;
    f64 p = drupe_m64_p4(v, v2, -0.9377997245671126, 0.6941136466346232, -0.43525602671680746,
                         0.22573862164839972);
    f64 q = drupe_m64_p4(v, v2, -0.0923187066419341, 0.026518619861819477, -0.003177050276413162,
                         -0.0013053544855170982);
    f64 r = drupe_m64_p4(v, v2, 0.0007145309962707507, -4.206336128959243e-05, -7.477286078228629e-05,
                         1.8651046960957663e-05);
    f64 s = drupe_m64_p4(v, v2, 7.2283717272675995e-06, -3.3980011986703963e-06, -7.608841962448585e-07,
                         5.51173279373961e-07);
    f64 u = DRUPE_MAD(v2, 4.623412881372879e-09, DRUPE_MAD(v, -7.35572201614962e-08, 7.124688418472254e-08));
    r = DRUPE_MAD(v4 * v4, u, DRUPE_MAD(v4, s, r));
    q = v * DRUPE_MAD(v4 * v4, r, DRUPE_MAD(v4, q, p));
    p = 1.0870555892622602 + q;
    q = (1.0870555892622602 - p) + q; /* what was rounded off p */
    f64 high = drupe_m64_high(b), square = high * high, rest = (b - high) * (b + high);
    f64 t = DRUPE_MAD(square, -DRUPE_LOG2E, DRUPE_ROUND), n = t - DRUPE_ROUND;
    f64 e = drupe_m64_expm1_near(drupe_m64_less_ln2(-square, n) - rest);
    f64 far = drupe_m64_scale(w * (p + DRUPE_MAD(p, c + e, q)), t), left = 2.0 - far;
    far = sign ? left : far;
    return b < 0.75 ? near : far;
}

//: cbrt_float64 : m64_split
DRUPE_M f64 drupe_cbrt_float64(f64 x)
{
    f64 a = drupe_m64_abs(x), k, m = 1.0 + drupe_m64_split(a, DRUPE_ROOT_HALF, &k);
    f64 t = k * 0.3333333333333333 + DRUPE_ROUND, third = t - DRUPE_ROUND, rest = k - 3.0 * third;
    m = rest > 0.0 ? 2.0 * m : m;
    m = rest < 0.0 ? 0.5 * m : m; /* 0.35 <= m < 2.83 */
    f64 m2 = m * m, y = DRUPE_MAD(m2 * m2, DRUPE_MAD(m, 0.011280685024098496, -0.10446639475959871),
                                  drupe_m64_p4(m, m2, 0.4151479272151054, 1.0523386590656405,
                                               -0.7610632242983013, 0.38696105437537803));
    /* Halley's iteration, and once more with y**2 exact */
    f64 c = y * y * y;
    y = drupe_m64_high(y + y * (m - c) / (2.0 * c + m));
    f64 r = m / (y * y);
    y = y + y * ((r - y) / (2.0 * y + r));
    y = y * drupe_m64_of((drupe_m64_bits(t) + 1023) << 52);
    y = a > 0.0 ? y : a;
    y = a < DRUPE_INFINITY ? y : a;
    return drupe_m64_signed(y, x);
}

//: hypot_float64 : m64 libm_sqrt_float64
DRUPE_M f64 drupe_hypot_float64(f64 x, f64 y)
{
    f64 infinity = DRUPE_INFINITY, a = drupe_m64_abs(x), b = drupe_m64_abs(y);
    f64 large = a > b ? a : b;
    f64 scale = large > 1e150 ? 2.409919865102884e-181 : 1.0,
        back = large > 1e150 ? 4.149515568880993e+180 : 1.0;
    scale = large < 1e-140 ? 4.149515568880993e+180 : scale;
    back = large < 1e-140 ? 2.409919865102884e-181 : back;
    f64 c = a * scale, d = b * scale, r = sqrt(DRUPE_MAD(c, c, d * d)) * back;
    return a == infinity || b == infinity ? infinity : r;
}

//: rsqrt_float64 : m_inline libm_sqrt_float64
DRUPE_M f64 drupe_rsqrt_float64(f64 x)
{
    return 1.0 / sqrt(x);
}

//: gamma_float64 : m_inline
double drupe_libm_tgamma(double) __asm__("tgamma");
DRUPE_M f64 drupe_gamma_float64(f64 x)
{
    return drupe_libm_tgamma(x);
}

//: lgamma_float64 : m_inline
/* lgamma() writes to a variable that all threads share. */
double drupe_libm_lgamma(double, int *) __asm__("lgamma_r");
DRUPE_M f64 drupe_lgamma_float64(f64 x)
{
    int sign;
    return drupe_libm_lgamma(x, &sign);
}
