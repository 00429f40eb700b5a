/* Element types as the loops of this room see them, and float16 as the float it stands for. */
#ifndef DRUPE_MATH_ELEMENT_H
#define DRUPE_MATH_ELEMENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum drupe_element {
    DRUPE_ELEMENT_BOOL, /* one byte, 0 or 1 */
    DRUPE_ELEMENT_I8,
    DRUPE_ELEMENT_U8,
    DRUPE_ELEMENT_I16,
    DRUPE_ELEMENT_U16,
    DRUPE_ELEMENT_I32,
    DRUPE_ELEMENT_U32,
    DRUPE_ELEMENT_I64,
    DRUPE_ELEMENT_U64,
    DRUPE_ELEMENT_F16, /* two bytes, as bits */
    DRUPE_ELEMENT_F32,
    DRUPE_ELEMENT_F64,
    DRUPE_ELEMENT_C64, /* pairs (re, im) */
    DRUPE_ELEMENT_C128,
    DRUPE_ELEMENT_COUNT
} drupe_element;

static inline size_t drupe_element_size(drupe_element type)
{
    static const uint8_t sizes[DRUPE_ELEMENT_COUNT] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 8, 16};
    return sizes[type];
}

typedef struct drupe_pair32 {
    float re, im;
} drupe_pair32;
typedef struct drupe_pair64 {
    double re, im;
} drupe_pair64;

static inline float drupe_half_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    uint32_t bits;
    float value;
    if (magnitude >= 0x7c00u) { /* infinite, or NaN */
        bits = 0x7f800000u | (magnitude & 0x3ffu) << 13;
    } else if (magnitude >= 0x400u) {
        bits = (magnitude << 13) + (112u << 23);
    } else { /* subnormal: units of 2**-24 */
        value = (float)magnitude * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounded to the nearest, ties to even. */
static inline uint16_t drupe_float_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and more */
    if (magnitude >= 0x38800000u) {                                  /* normal: 2**-14 and more */
        const uint32_t odd = magnitude >> 13 & 1;
        return (uint16_t)(sign | ((magnitude - (112u << 23) + 0xfffu + odd) >> 13));
    }
    float shifted; /* the sum has units of 2**-24, so that adding rounds */
    memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5f;
    uint32_t sum;
    memcpy(&sum, &shifted, sizeof sum);
    return (uint16_t)(sign | (sum - 0x3f000000u));
}

#endif
