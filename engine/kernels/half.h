/* float16 as bits: one of sign, five of exponent, ten of mantissa. Kernels compute in float; these convert,
 * and round to nearest even, once. Without branches, so that loops over them vectorise. */
#ifndef DRUPE_HALF_H
#define DRUPE_HALF_H

#ifndef __OPENCL_VERSION__
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef uint16_t u16;
typedef uint32_t u32;
static inline u32 as_uint(float x)
{
    u32 bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
static inline float as_float(u32 bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}
#endif

/* The mantissa and exponent where float has them; one multiplication moves the exponent's zero, and makes
 * numbers of those without a leading one. */
static inline float half_value(u16 stored)
{
    const u32 sign = (u32)(stored & 0x8000) << 16, rest = stored & 0x7fff;
    const u32 bits = as_uint(as_float(rest << 13) * 0x1p112f);
    return as_float(sign | bits | (rest >= 0x7c00 ? 0x7f800000 : 0));
}

/* Of numbers below 2**-14, the addition of 0.5 leaves the mantissa's last bits, rounded, in the lowest. */
static inline u16 half_bits(float x)
{
    const u32 bits = as_uint(x), size = bits & 0x7fffffff;
    const u32 normal = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
    const u32 small = as_uint(as_float(size) + 0.5f) - 0x3f000000;
    const u32 finite = size < 0x38800000 ? small : normal;
    const u32 high = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
    return (u16)((bits >> 16 & 0x8000) | (size >= 0x47800000 ? high : finite));
}

#ifndef __OPENCL_VERSION__
/* By a float that is cut towards zero and whose last bit tells whether anything was lost. */
static inline u16 half_bits_wide(double x)
{
    const float near = (float)x;
    const u32 over = fabs((double)near) > fabs(x), lost = (double)near != x;
    return half_bits(as_float((as_uint(near) - over) | lost));
}
#endif

/* The next number of float16 from a towards b, which are ones too. */
static inline float half_next(float a, float b)
{
    const u32 bits = half_bits(a);
    if (a != a || b != b) return a + b;
    if (a == b) return b;
    if (a == 0) return half_value(b < 0 ? 0x8001 : 1);
    return half_value((u16)((a < b) == (a > 0) ? bits + 1 : bits - 1));
}

#endif
