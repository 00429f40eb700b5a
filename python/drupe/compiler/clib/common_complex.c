// Complex numbers: a struct of two floats. Products are added and never subtracted: where one part is a sum of products
// and the other a difference, GCC 12 makes one instruction of both that rounds once, whatever -ffp-contract says. A
// minus is not enough in a quotient, where GCC finds the difference behind it.

// clang-format off
//: complex_$R : | T = complexes
static inline $C drupe_complex_$R($P re, $P im) { $C z; z.re = re; z.im = im; return z; }
//: complex128_of_complex64 : complex_float64
static inline c128 drupe_complex128_of_complex64(c64 z) { return drupe_complex_float64(z.re, z.im); }
//: complex64_of_complex128 : complex_float32
static inline c64 drupe_complex64_of_complex128(c128 z) { return drupe_complex_float32((f32)z.re, (f32)z.im); }
//: real_$T : | T = complexes
static inline $P drupe_real_$T($C z) { return z.re; }
//: imag_$T : | T = complexes
static inline $P drupe_imag_$T($C z) { return z.im; }
//: conj_$T : complex_$R | T = complexes
static inline $C drupe_conj_$T($C z) { return drupe_complex_$R(z.re, -z.im); }
//: neg_$T : complex_$R | T = complexes
static inline $C drupe_neg_$T($C z) { return drupe_complex_$R(-z.re, -z.im); }
//: add_$T : complex_$R | T = complexes
static inline $C drupe_add_$T($C a, $C b) { return drupe_complex_$R(a.re + b.re, a.im + b.im); }
//: sub_$T : complex_$R | T = complexes
static inline $C drupe_sub_$T($C a, $C b) { return drupe_complex_$R(a.re - b.re, a.im - b.im); }
//: eq_$T : | T = complexes
static inline int drupe_eq_$T($C a, $C b) { return a.re == b.re && a.im == b.im; }
//: ne_$T : | T = complexes
static inline int drupe_ne_$T($C a, $C b) { return a.re != b.re || a.im != b.im; }
//: abs_$T : hypot_$R | T = complexes
static inline $P drupe_abs_$T($C z) { return drupe_hypot_$R(z.re, z.im); }
//: angle_$T : atan2_$R | T = complexes
static inline $P drupe_angle_$T($C z) { return drupe_atan2_$R(z.im, z.re); }
//: $F_$T : $F_$R | F = isnan isinf | T = complexes
static inline int drupe_$F_$T($C z) { return drupe_$F_$R(z.re) || drupe_$F_$R(z.im); }
//: isfinite_$T : isfinite_$R | T = complexes
static inline int drupe_isfinite_$T($C z) { return drupe_isfinite_$R(z.re) && drupe_isfinite_$R(z.im); }
// clang-format on

//: mul_$T : complex_$R | T = complexes
static inline $C drupe_mul_$T($C a, $C b)
{
    return drupe_complex_$R(a.re * b.re + -a.im * b.im, a.re * b.im + a.im * b.re);
}

//: flip_$T : bits_$T of_bits_$T | T = floats
static inline $C drupe_flip_$T($C x) { return drupe_of_bits_$T(drupe_bits_$T(x) ^ ($U)1 << (8 * sizeof x - 1)); }

//: div_$T : complex_$R fabs_$R flip_$R | T = complexes
static inline $C drupe_div_$T($C a, $C b)
{
    $P real = drupe_fabs_$R(b.re), imag = drupe_fabs_$R(b.im);
    if (real == 0 && imag == 0) return drupe_complex_$R(a.re / real, a.im / real);
    if (real >= imag) {
        $P ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return drupe_complex_$R((a.re + a.im * ratio) * scale, (a.im + drupe_flip_$R(a.re) * ratio) * scale);
    }
    $P ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
    return drupe_complex_$R((a.re * ratio + a.im) * scale, (a.im * ratio + drupe_flip_$R(a.re)) * scale);
}

//: exp_$T : complex_$R exp_$R sin_$R cos_$R | T = complexes
static inline $C drupe_exp_$T($C z)
{
    if (z.im == 0) return drupe_complex_$R(drupe_exp_$R(z.re), z.im);
    $P factor = 1, size;
    if (z.im - z.im != 0 && z.re < 0 && z.re - z.re != 0) return drupe_complex_$R(0, 0);
    if (z.im - z.im != 0 && z.re > 0 && z.re - z.re != 0) return drupe_complex_$R(z.re, z.im - z.im);
    if (z.re > 80) { // the product may be finite where exp() is not
        factor = drupe_exp_$R(z.re / 2);
        size = factor;
    } else {
        size = drupe_exp_$R(z.re);
    }
    return drupe_complex_$R(size * drupe_cos_$R(z.im) * factor, size * drupe_sin_$R(z.im) * factor);
}

// clang-format off
//: log_$T : complex_$R fabs_$R log_$R log1p_$R hypot_$R atan2_$R | T = complexes
static inline $C drupe_log_$T($C z)
{
    $P x = drupe_fabs_$R(z.re), y = drupe_fabs_$R(z.im), size = drupe_hypot_$R(x, y), real;
    if (x < y) {
        $P other = x;
        x = y;
        y = other;
    }
    if (size > 0.5$S && size < 2) // near 1 the logarithm is small, and hypot() has lost its digits
        real = 0.5$S * drupe_log1p_$R((x - 1) * (x + 1) + y * y);
    else
        real = drupe_log_$R(size);
    return drupe_complex_$R(real, drupe_atan2_$R(z.im, z.re));
}
// clang-format on

// clang-format off
//: sqrt_$T : complex_$R fabs_$R sqrt_$R hypot_$R copysign_$R isinf_$R | T = complexes
static inline $C drupe_sqrt_$T($C z)
{
    if (z.re == 0 && z.im == 0) return drupe_complex_$R(0, z.im);
    if (drupe_isinf_$R(z.im)) return drupe_complex_$R(drupe_fabs_$R(z.im), z.im);
    $P scale = 1, x = z.re, y = z.im;
    if (drupe_fabs_$R(x) > 1e37$S || drupe_fabs_$R(y) > 1e37$S) {
        x /= 4;
        y /= 4;
        scale = 2;
    } else if (drupe_fabs_$R(x) < 1e-36$S && drupe_fabs_$R(y) < 1e-36$S) {
        x *= 16777216;
        y *= 16777216;
        scale = 1 / 4096.0$S;
    }
    $P root = drupe_sqrt_$R((drupe_fabs_$R(x) + drupe_hypot_$R(x, y)) / 2);
    $P other = drupe_isinf_$R(root) ? y - y : y / (2 * root);
    root *= scale;
    other *= scale;
    return x >= 0 ? drupe_complex_$R(root, drupe_copysign_$R(other, y))
                  : drupe_complex_$R(drupe_fabs_$R(other), drupe_copysign_$R(root, y));
}
// clang-format on

//: sinh_$T : complex_$R sinh_$R cosh_$R sin_$R cos_$R | T = complexes
static inline $C drupe_sinh_$T($C z)
{
    if (z.im == 0) return drupe_complex_$R(drupe_sinh_$R(z.re), z.im);
    return drupe_complex_$R(drupe_sinh_$R(z.re) * drupe_cos_$R(z.im),
                            drupe_cosh_$R(z.re) * drupe_sin_$R(z.im));
}

//: cosh_$T : complex_$R sinh_$R cosh_$R sin_$R cos_$R | T = complexes
static inline $C drupe_cosh_$T($C z)
{
    if (z.im == 0) return drupe_complex_$R(drupe_cosh_$R(z.re), z.re > 0 ? z.im : -z.im);
    return drupe_complex_$R(drupe_cosh_$R(z.re) * drupe_cos_$R(z.im),
                            drupe_sinh_$R(z.re) * drupe_sin_$R(z.im));
}

//: tanh_$T : complex_$R sinh_$R sin_$R cos_$R tan_$R exp_$R sqrt_$R fabs_$R isinf_$R | T = complexes
static inline $C drupe_tanh_$T($C z)
{
    $P x = drupe_fabs_$R(z.re);
    if (x > 22) { // there tanh() is 1
        $P rest = drupe_isinf_$R(x) ? 0 : 4 * drupe_sin_$R(z.im) * drupe_cos_$R(z.im) * drupe_exp_$R(-2 * x);
        return drupe_complex_$R(z.re < 0 ? -1 : 1, rest);
    }
    $P t = drupe_tan_$R(z.im), beta = 1 + t * t, s = drupe_sinh_$R(z.re), rho = drupe_sqrt_$R(1 + s * s);
    if (drupe_isinf_$R(t)) return drupe_complex_$R(rho / s, 1 / t);
    $P below = 1 + beta * s * s;
    return drupe_complex_$R(beta * rho * s / below, t / below);
}

// clang-format off
//: sin_$T : complex_$R sinh_$T | T = complexes
static inline $C drupe_sin_$T($C z) { $C w = drupe_sinh_$T(drupe_complex_$R(-z.im, z.re)); return drupe_complex_$R(w.im, -w.re); }
//: cos_$T : complex_$R cosh_$T | T = complexes
static inline $C drupe_cos_$T($C z) { return drupe_cosh_$T(drupe_complex_$R(-z.im, z.re)); }
//: tan_$T : complex_$R tanh_$T | T = complexes
static inline $C drupe_tan_$T($C z) { $C w = drupe_tanh_$T(drupe_complex_$R(-z.im, z.re)); return drupe_complex_$R(w.im, -w.re); }
// clang-format on

//: pow_$T : complex_$R mul_$T div_$T exp_$T log_$T | T = complexes
static inline $C drupe_pow_$T($C a, $C b)
{
    if (b.re == 0 && b.im == 0) return drupe_complex_$R(1, 0);
    if (a.re == 0 && a.im == 0) return b.re > 0 && b.im == 0 ? a : drupe_complex_$R(a.re / a.re, a.re / a.re);
    if (b.im != 0 || !(b.re > -100 && b.re < 100) || b.re != ($P)(int)b.re)
        return drupe_exp_$T(drupe_mul_$T(b, drupe_log_$T(a)));
    $C power = a, result = drupe_complex_$R(1, 0);
    for (int left = (int)(b.re < 0 ? -b.re : b.re); left; left >>= 1) {
        if (left & 1) result = drupe_mul_$T(result, power);
        power = drupe_mul_$T(power, power);
    }
    return b.re < 0 ? drupe_div_$T(drupe_complex_$R(1, 0), result) : result;
}
