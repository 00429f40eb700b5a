// Functions of the C library, and a zero of which compilers do not know that it is one. GCC 12 takes the float of an
// integer that was made of a float for trunc(), which has -0.0, and 0.0 - (double)i for -(double)i: so this zero is
// added to what becomes an integer, and stands for 0.0 there.

// clang-format off
//: zero :
i64 drupe_zero;
//: $F_$T : | F = sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan | T = floats
$C $F$S($C) __attribute__((const));
static inline $C drupe_$F_$T($C x) { return $F$S(x); }
//: $F_$T : | F = sinh cosh tanh asinh acosh atanh erf erfc lgamma floor ceil trunc rint | T = floats
$C $F$S($C) __attribute__((const));
static inline $C drupe_$F_$T($C x) { return $F$S(x); }
//: $F_$T : | F = pow fmod atan2 copysign hypot nextafter | T = floats
$C $F$S($C, $C) __attribute__((const));
static inline $C drupe_$F_$T($C a, $C b) { return $F$S(a, b); }
//: gamma_$T : | T = floats
$C tgamma$S($C) __attribute__((const));
static inline $C drupe_gamma_$T($C x) { return tgamma$S(x); }
//: fma_$T : | T = floats
$C fma$S($C, $C, $C) __attribute__((const));
static inline $C drupe_fma_$T($C a, $C b, $C c) { return fma$S(a, b, c); }
//: ldexp_$T : | T = floats
$C ldexp$S($C, int) __attribute__((const));
static inline $C drupe_ldexp_$T($C x, i64 n) { return ldexp$S(x, (int)(n < -4096 ? -4096 : n > 4096 ? 4096 : n)); }
// clang-format on
