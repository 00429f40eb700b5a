// Integers: what Python and NumPy mean by operators that C has otherwise. Strong integers wrap.

// clang-format off
//: abs_$T : | T = signed
static inline $C drupe_abs_$T($C a) { return a < 0 ? ($C)(0 - ($W)a) : a; }
//: abs_$T : | T = unsigned
static inline $C drupe_abs_$T($C a) { return a; }
//: neg_$T : | T = ints
static inline $C drupe_neg_$T($C a) { return ($C)(0 - ($W)a); }
//: minimum_$T : | T = ints
static inline $C drupe_minimum_$T($C a, $C b) { return a < b ? a : b; }
//: maximum_$T : | T = ints
static inline $C drupe_maximum_$T($C a, $C b) { return a > b ? a : b; }
//: wrap_index_int64 :
static inline i64 drupe_wrap_index_int64(i64 index, i64 extent) { return index < 0 ? index + extent : index; }
//: popcount_bits :
static inline int drupe_popcount_bits(u64 a)
{
    a -= a >> 1 & 0x5555555555555555u;
    a = (a & 0x3333333333333333u) + (a >> 2 & 0x3333333333333333u);
    a = (a + (a >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)(a * 0x0101010101010101u >> 56);
}
//: popcount_$T : popcount_bits abs_$T | T = ints
static inline $C drupe_popcount_$T($C a) { return ($C)drupe_popcount_bits(($U)drupe_abs_$T(a)); }
//: floordiv_$T : | T = unsigned
static inline $C drupe_floordiv_$T($C a, $C b) { return b ? a / b : 0; }
//: mod_$T : | T = unsigned
static inline $C drupe_mod_$T($C a, $C b) { return b ? a % b : 0; }
// clang-format on

//: floordiv_$T : | T = signed
static inline $C drupe_floordiv_$T($C a, $C b)
{
    if (b == 0) return 0;
    if (b == -1) return ($C)(0 - ($W)a);
    return ($C)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

//: mod_$T : | T = signed
static inline $C drupe_mod_$T($C a, $C b)
{
    if (b == 0 || b == -1) return 0;
    $C rest = ($C)(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? ($C)(rest + b) : rest;
}

//: pow_$T : | T = unsigned
static inline $C drupe_pow_$T($C a, $C b)
{
    $W power = a, result = 1;
    for ($C left = b; left > 0; left >>= 1) {
        if (left & 1) result *= power;
        power *= power;
    }
    return ($C)result;
}

//: pow_$T : | T = signed
static inline $C drupe_pow_$T($C a, $C b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    $W power = ($W)a, result = 1;
    for ($C left = b; left > 0; left >>= 1) {
        if (left & 1) result *= power;
        power *= power;
    }
    return ($C)result;
}

//: shl_$T : | T = ints
static inline $C drupe_shl_$T($C a, $C b)
{
    return ($U)b < 8 * sizeof($C) ? ($C)(($W)a << b) : ($C)0;
}

//: shr_$T : | T = signed
static inline $C drupe_shr_$T($C a, $C b)
{
    return ($U)b < 8 * sizeof($C) ? ($C)(a >> b) : ($C)(a < 0 ? -1 : 0);
}

//: shr_$T : | T = unsigned
static inline $C drupe_shr_$T($C a, $C b)
{
    return b < 8 * sizeof($C) ? ($C)(a >> b) : ($C)0;
}

//: gcd_$T : abs_$T | T = ints
static inline $C drupe_gcd_$T($C a, $C b)
{
    $U x = ($U)drupe_abs_$T(a), y = ($U)drupe_abs_$T(b);
    while (y) {
        $U rest = ($U)(x % y);
        x = y;
        y = rest;
    }
    return ($C)x;
}
