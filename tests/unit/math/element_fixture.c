#include "element_fixture.h"
#include <math.h>
#include <stdlib.h>

uint64_t random_next(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double random_float(bool special)
{
    static const double few[] = {0.0, -0.0, 1.0, NAN, INFINITY, -INFINITY, 6.0e-8, -65504.0};
    const uint64_t r = random_next();
    if (special && r % 4 == 0) return few[(r >> 8) % 8];
    return (double)((int64_t)(r >> 11 & 0xffff) - 0x8000) / 128.0;
}

static uint64_t random_whole(bool special)
{
    const uint64_t r = random_next();
    if (special && r % 8 == 0) return (UINT64_C(1) << 63) - (r >> 8 & 1);
    if (special && r % 8 == 1) return UINT64_MAX - (r >> 8 & 1);
    return r % 3 == 0 ? r >> 40 : r >> 50;
}

static void element_set(drupe_element type, void *elements, size_t i, bool special)
{
    const size_t size = drupe_element_size(type);
    const double re = random_float(special), im = random_float(special);
    const uint64_t whole = type == DRUPE_ELEMENT_BOOL ? random_next() & 1 : random_whole(special);
    switch (type) {
    case DRUPE_ELEMENT_F16: ((uint16_t *)elements)[i] = drupe_float_half((float)re); break;
    case DRUPE_ELEMENT_F32: ((float *)elements)[i] = (float)re; break;
    case DRUPE_ELEMENT_F64: ((double *)elements)[i] = re; break;
    case DRUPE_ELEMENT_C64: ((drupe_pair32 *)elements)[i] = (drupe_pair32){(float)re, (float)im}; break;
    case DRUPE_ELEMENT_C128: ((drupe_pair64 *)elements)[i] = (drupe_pair64){re, im}; break;
    default: memcpy((char *)elements + i * size, &whole, size); break;
    }
}

void *elements_make(drupe_element type, size_t n, bool special)
{
    void *elements = malloc(n * drupe_element_size(type) + 1);
    assert_non_null(elements);
    for (size_t i = 0; i < n; i++) element_set(type, elements, i, special);
    return elements;
}

static int64_t signed_at(drupe_element type, const void *elements, size_t i)
{
    switch (type) {
    case DRUPE_ELEMENT_I8: return ((const int8_t *)elements)[i];
    case DRUPE_ELEMENT_I16: return ((const int16_t *)elements)[i];
    case DRUPE_ELEMENT_I32: return ((const int32_t *)elements)[i];
    default: return ((const int64_t *)elements)[i];
    }
}

element_value element_at(drupe_element type, const void *elements, size_t i)
{
    element_value v = {.is_whole = type < DRUPE_ELEMENT_F16};
    const size_t size = drupe_element_size(type);
    switch (type) {
    case DRUPE_ELEMENT_F16: v.re = (double)drupe_half_float(((const uint16_t *)elements)[i]); break;
    case DRUPE_ELEMENT_F32: v.re = (double)((const float *)elements)[i]; break;
    case DRUPE_ELEMENT_F64: v.re = ((const double *)elements)[i]; break;
    case DRUPE_ELEMENT_C64:
        v.re = (double)((const drupe_pair32 *)elements)[i].re;
        v.im = (double)((const drupe_pair32 *)elements)[i].im;
        break;
    case DRUPE_ELEMENT_C128:
        v.re = ((const drupe_pair64 *)elements)[i].re;
        v.im = ((const drupe_pair64 *)elements)[i].im;
        break;
    case DRUPE_ELEMENT_I8:
    case DRUPE_ELEMENT_I16:
    case DRUPE_ELEMENT_I32:
    case DRUPE_ELEMENT_I64:
        v.is_signed = true;
        v.whole = (uint64_t)signed_at(type, elements, i);
        break;
    default: memcpy(&v.whole, (const char *)elements + i * size, size); break; /* little-endian */
    }
    v.nan = isnan(v.re) || isnan(v.im);
    return v;
}

static int compare_whole(const element_value *x, const element_value *y)
{
    const int below = x->is_signed ? (int64_t)x->whole < (int64_t)y->whole : x->whole < y->whole;
    return x->whole == y->whole ? 0 : below ? -1 : 1;
}

int element_compare(drupe_element type, const void *a, size_t i, const void *b, size_t j)
{
    const element_value x = element_at(type, a, i), y = element_at(type, b, j);
    if (x.is_whole) return compare_whole(&x, &y);
    const int x_class = 2 * !!isnan(x.re) + !!isnan(x.im), y_class = 2 * !!isnan(y.re) + !!isnan(y.im);
    if (x_class != y_class) return x_class < y_class ? -1 : 1;
    if (x.re < y.re || x.re > y.re) return x.re < y.re ? -1 : 1;
    return x.im < y.im ? -1 : x.im > y.im;
}

bool element_same(drupe_element type, const void *a, size_t i, const void *b, size_t j)
{
    const size_t size = drupe_element_size(type);
    return memcmp((const char *)a + i * size, (const char *)b + j * size, size) == 0;
}
