// Floats: Python's and NumPy's functions that C lacks, or has otherwise.

//: bits_float32 :
static inline u32 drupe_bits_float32(f32 x)
{
    union {
        f32 x;
        u32 bits;
    } both;
    both.x = x;
    return both.bits;
}

//: bits_float64 :
static inline u64 drupe_bits_float64(f64 x)
{
    union {
        f64 x;
        u64 bits;
    } both;
    both.x = x;
    return both.bits;
}

//: of_bits_float32 :
static inline f32 drupe_of_bits_float32(u32 bits)
{
    union {
        f32 x;
        u32 bits;
    } both;
    both.bits = bits;
    return both.x;
}

//: of_bits_float64 :
static inline f64 drupe_of_bits_float64(u64 bits)
{
    union {
        f64 x;
        u64 bits;
    } both;
    both.bits = bits;
    return both.x;
}

// clang-format off
//: inf_float32 : of_bits_float32
static inline f32 drupe_inf_float32(void) { return drupe_of_bits_float32(0x7f800000u); }
//: inf_float64 : of_bits_float64
static inline f64 drupe_inf_float64(void) { return drupe_of_bits_float64(0x7ff0000000000000u); }
//: nan_float32 : of_bits_float32
static inline f32 drupe_nan_float32(void) { return drupe_of_bits_float32(0x7fc00000u); }
//: nan_float64 : of_bits_float64
static inline f64 drupe_nan_float64(void) { return drupe_of_bits_float64(0x7ff8000000000000u); }
//: same_$T : bits_$T | T = floats
static inline int drupe_same_$T($C a, $C b) { return drupe_bits_$T(a) == drupe_bits_$T(b); }
//: isnan_$T : | T = floats
static inline int drupe_isnan_$T($C x) { return x != x; }
//: isinf_$T : inf_$T | T = floats
static inline int drupe_isinf_$T($C x) { return x == drupe_inf_$T() || x == -drupe_inf_$T(); }
//: isfinite_$T : | T = floats
static inline int drupe_isfinite_$T($C x) { return x - x == 0.0$S; }
//: signbit_float32 : bits_float32
static inline int drupe_signbit_float32(f32 x) { return (int)(drupe_bits_float32(x) >> 31); }
//: signbit_float64 : bits_float64
static inline int drupe_signbit_float64(f64 x) { return (int)(drupe_bits_float64(x) >> 63); }
//: fabs_float32 : bits_float32 of_bits_float32
static inline f32 drupe_fabs_float32(f32 x) { return drupe_of_bits_float32(drupe_bits_float32(x) & 0x7fffffffu); }
//: fabs_float64 : bits_float64 of_bits_float64
static inline f64 drupe_fabs_float64(f64 x) { return drupe_of_bits_float64(drupe_bits_float64(x) & 0x7fffffffffffffffu); }
//: abs_$T : fabs_$T | T = floats
static inline $C drupe_abs_$T($C x) { return drupe_fabs_$T(x); }
//: neg_$T : | T = floats
static inline $C drupe_neg_$T($C x) { return -x; }
//: rsqrt_$T : sqrt_$T | T = floats
static inline $C drupe_rsqrt_$T($C x) { return 1.0$S / drupe_sqrt_$T(x); }
//: minimum_$T : | T = floats
static inline $C drupe_minimum_$T($C a, $C b) { return a < b || a != a ? a : b; }
//: maximum_$T : | T = floats
static inline $C drupe_maximum_$T($C a, $C b) { return a > b || a != a ? a : b; }
//: fmin_$T : | T = floats
static inline $C drupe_fmin_$T($C a, $C b) { return a < b || b != b ? a : b; }
//: fmax_$T : | T = floats
static inline $C drupe_fmax_$T($C a, $C b) { return a > b || b != b ? a : b; }
// clang-format on

// Python's and NumPy's: the remainder has the divisor's sign, and the quotient fits it.
//: mod_$T : fmod_$T copysign_$T | T = floats
static inline $C drupe_mod_$T($C a, $C b)
{
    $C rest = drupe_fmod_$T(a, b);
    if (b == 0) return rest;
    if (rest == 0) return drupe_copysign_$T(0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
}

// clang-format off
// What C leaves open for negative numbers, and compilers do differently in vectors: they wrap.
//: uint64_of_$T : | T = floats
static inline u64 drupe_uint64_of_$T($C x)
{
    return x >= 9223372036854775808.0$S ? (u64)(i64)(x - 9223372036854775808.0$S) ^ (u64)1 << 63 : (u64)(i64)x;
}

//: floordiv_$T : fmod_$T copysign_$T floor_$T | T = floats
static inline $C drupe_floordiv_$T($C a, $C b)
{
    if (b == 0) return a / b;
    $C rest = drupe_fmod_$T(a, b);
    $C quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return drupe_copysign_$T(0, a / b);
    $C whole = drupe_floor_$T(quotient);
    return quotient - whole > 0.5$S ? whole + 1 : whole;
}
// clang-format on
