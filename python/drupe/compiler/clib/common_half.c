// float16: two bytes in memory, and a float32 of the same value everywhere else.

// Nearest, ties to even: adding a half of the last place that stays, less one where that place is even,
// carries just where it should; what is too small for float16's exponents is rounded by an addition of
// floats.
//: to_half_float32 : bits_float32 of_bits_float32
static inline u16 drupe_to_half_float32(f32 x)
{
    u32 bits = drupe_bits_float32(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    u32 normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    u32 small = drupe_bits_float32(drupe_of_bits_float32(size) + 0.5f) - 0x3f000000u;
    u32 large = size > 0x7f800000u ? 0x7e00u | (size >> 13 & 0x3ffu) : 0x7c00u;
    return (u16)(sign | (size >= 0x47800000u ? large : size < 0x38800000u ? small : normal));
}

//: to_half_float64 : bits_float64 of_bits_float64
static inline u16 drupe_to_half_float64(f64 x)
{
    u64 bits = drupe_bits_float64(x), sign = bits >> 48 & 0x8000u, size = bits & 0x7fffffffffffffffu;
    u64 normal = (size - ((u64)1008 << 52) + 0x1ffffffffffu + (size >> 42 & 1u)) >> 42;
    u64 small = drupe_bits_float64(drupe_of_bits_float64(size) + 268435456.0) - 0x41b0000000000000u;
    u64 large = size > 0x7ff0000000000000u ? 0x7e00u | (size >> 42 & 0x3ffu) : 0x7c00u;
    return (u16)(sign | (size >= 0x40f0000000000000u ? large : size < 0x3f10000000000000u ? small : normal));
}

//: from_half : bits_float32 of_bits_float32
static inline f32 drupe_from_half(u16 half)
{
    u32 sign = (u32)(half & 0x8000u) << 16, size = (u32)(half & 0x7fffu) << 13;
    u32 finite = drupe_bits_float32(drupe_of_bits_float32(size) * 5192296858534827628530496329220096.0f);
    return drupe_of_bits_float32(sign | (size >= 0x0f800000u ? size | 0x7f800000u : finite));
}

// clang-format off
//: round_half_$T : to_half_$T from_half | T = floats
static inline f32 drupe_round_half_$T($C x) { return drupe_from_half(drupe_to_half_$T(x)); }
// clang-format on
