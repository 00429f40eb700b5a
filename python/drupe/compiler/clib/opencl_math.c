// Functions that OpenCL C has.

// clang-format off
//: $F_$T : | F = sqrt rsqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan | T = floats
static inline $C drupe_$F_$T($C x) { return $F(x); }
//: $F_$T : | F = sinh cosh tanh asinh acosh atanh erf erfc lgamma floor ceil trunc rint fabs | T = floats
static inline $C drupe_$F_$T($C x) { return $F(x); }
//: $F_$T : | F = pow fmod atan2 copysign hypot nextafter | T = floats
static inline $C drupe_$F_$T($C a, $C b) { return $F(a, b); }
//: gamma_$T : | T = floats
static inline $C drupe_gamma_$T($C x) { return tgamma(x); }
//: fma_$T : | T = floats
static inline $C drupe_fma_$T($C a, $C b, $C c) { return fma(a, b, c); }
//: ldexp_$T : | T = floats
static inline $C drupe_ldexp_$T($C x, i64 n) { return ldexp(x, (int)(n < -4096 ? -4096 : n > 4096 ? 4096 : n)); }
//: bits_float32 :
static inline u32 drupe_bits_float32(f32 x) { return as_uint(x); }
//: bits_float64 :
static inline u64 drupe_bits_float64(f64 x) { return as_ulong(x); }
//: of_bits_float32 :
static inline f32 drupe_of_bits_float32(u32 bits) { return as_float(bits); }
//: of_bits_float64 :
static inline f64 drupe_of_bits_float64(u64 bits) { return as_double(bits); }
// clang-format on
