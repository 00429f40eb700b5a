/* See sort_keys.h. Of integers the sign bit is turned over; of floats all bits are where the sign is set. */
#include "math/sort_keys.h"

/* Integers, as the unsigned type of their bits; `sign` of unsigned ones is 0. */
#define INTEGER(name, type, key_type, sign)                                                                  \
    static bool name##_keys(const void *in, size_t n, bool descending, key_type *keys)                       \
    {                                                                                                        \
        const type *x = in, turn = descending ? (type) ~(sign) : (sign);                                     \
        for (size_t i = 0; i < n; i++) keys[i] = (type)(x[i] ^ turn);                                        \
        return false;                                                                                        \
    }                                                                                                        \
    static void name##_back(const key_type *keys, size_t n, bool descending, void *out)                      \
    {                                                                                                        \
        type *x = out;                                                                                       \
        const type turn = descending ? (type) ~(sign) : (sign);                                              \
        for (size_t i = 0; i < n; i++) x[i] = (type)((type)keys[i] ^ turn);                                  \
    }

/* Floats, as the unsigned type of their bits. */
#define FLOAT(name, type, key_type, sign, infinite, quiet_nan)                                               \
    static bool name##_keys(const void *in, size_t n, bool descending, key_type *keys)                       \
    {                                                                                                        \
        const type *x = in, most = (type) ~(type)0, turn = descending ? most : 0;                            \
        type zeros = 0;                                                                                      \
        for (size_t i = 0; i < n; i++) {                                                                     \
            type bits = x[i];                                                                                \
            const bool zero = bits == (sign), nan = (bits & (type) ~(sign)) > (infinite);                    \
            zeros |= zero;                                                                                   \
            bits = zero ? 0 : bits;                                                                          \
            const type key = (type)(bits ^ (bits & (sign) ? most : (sign)) ^ turn);                          \
            keys[i] = nan ? most : key;                                                                      \
        }                                                                                                    \
        return zeros != 0;                                                                                   \
    }                                                                                                        \
    static void name##_back(const key_type *keys, size_t n, bool descending, void *out)                      \
    {                                                                                                        \
        type *x = out;                                                                                       \
        const type most = (type) ~(type)0, turn = descending ? most : 0;                                     \
        for (size_t i = 0; i < n; i++) {                                                                     \
            const type key = (type)((type)keys[i] ^ turn);                                                   \
            const type bits = (type)(key ^ (key & (sign) ? (sign) : most));                                  \
            x[i] = (type)keys[i] == most ? (quiet_nan) : bits;                                               \
        }                                                                                                    \
    }

INTEGER(u8, uint8_t, uint32_t, 0)
INTEGER(u16, uint16_t, uint32_t, 0)
INTEGER(u32, uint32_t, uint32_t, 0)
INTEGER(u64, uint64_t, uint64_t, 0)
INTEGER(i8, uint8_t, uint32_t, 0x80u)
INTEGER(i16, uint16_t, uint32_t, 0x8000u)
INTEGER(i32, uint32_t, uint32_t, UINT32_C(1) << 31)
INTEGER(i64, uint64_t, uint64_t, UINT64_C(1) << 63)
FLOAT(f16, uint16_t, uint32_t, 0x8000u, 0x7c00u, 0x7e00u)
FLOAT(f32, uint32_t, uint32_t, UINT32_C(1) << 31, UINT32_C(0x7f800000), UINT32_C(0x7fc00000))
FLOAT(f64, uint64_t, uint64_t, UINT64_C(1) << 63, UINT64_C(0x7ff) << 52, UINT64_C(0xfff) << 51)

bool drupe_keys_narrow(drupe_element type, const void *in, size_t n, bool descending, uint32_t *keys)
{
    switch (type) {
    case DRUPE_ELEMENT_BOOL:
    case DRUPE_ELEMENT_U8: return u8_keys(in, n, descending, keys);
    case DRUPE_ELEMENT_I8: return i8_keys(in, n, descending, keys);
    case DRUPE_ELEMENT_U16: return u16_keys(in, n, descending, keys);
    case DRUPE_ELEMENT_I16: return i16_keys(in, n, descending, keys);
    case DRUPE_ELEMENT_U32: return u32_keys(in, n, descending, keys);
    case DRUPE_ELEMENT_I32: return i32_keys(in, n, descending, keys);
    case DRUPE_ELEMENT_F16: return f16_keys(in, n, descending, keys);
    default: return f32_keys(in, n, descending, keys);
    }
}

void drupe_keys_narrow_back(drupe_element type, const uint32_t *keys, size_t n, bool descending, void *out)
{
    switch (type) {
    case DRUPE_ELEMENT_BOOL:
    case DRUPE_ELEMENT_U8: u8_back(keys, n, descending, out); break;
    case DRUPE_ELEMENT_I8: i8_back(keys, n, descending, out); break;
    case DRUPE_ELEMENT_U16: u16_back(keys, n, descending, out); break;
    case DRUPE_ELEMENT_I16: i16_back(keys, n, descending, out); break;
    case DRUPE_ELEMENT_U32: u32_back(keys, n, descending, out); break;
    case DRUPE_ELEMENT_I32: i32_back(keys, n, descending, out); break;
    case DRUPE_ELEMENT_F16: f16_back(keys, n, descending, out); break;
    default: f32_back(keys, n, descending, out); break;
    }
}

bool drupe_keys_wide(drupe_element type, const void *in, size_t n, bool descending, uint64_t *keys)
{
    if (type == DRUPE_ELEMENT_F64) return f64_keys(in, n, descending, keys);
    return type == DRUPE_ELEMENT_I64 ? i64_keys(in, n, descending, keys) : u64_keys(in, n, descending, keys);
}

void drupe_keys_wide_back(drupe_element type, const uint64_t *keys, size_t n, bool descending, void *out)
{
    if (type == DRUPE_ELEMENT_F64)
        f64_back(keys, n, descending, out);
    else if (type == DRUPE_ELEMENT_I64)
        i64_back(keys, n, descending, out);
    else
        u64_back(keys, n, descending, out);
}
