/* Arithmetic on single numbers of every element type, from the definitions. */
#include "array_fixture.h"
#include <complex.h>
#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

bool is_float(drupe_dtype dtype)
{
    return drupe_dtype_kind(dtype) == 'f';
}

bool is_complex(drupe_dtype dtype)
{
    return drupe_dtype_kind(dtype) == 'c';
}

bool is_whole(drupe_dtype dtype)
{
    return !is_float(dtype) && !is_complex(dtype);
}

drupe_dtype computed_in(drupe_dtype dtype)
{
    return dtype == DRUPE_FLOAT16 ? DRUPE_FLOAT32 : dtype;
}

/* --- Conversion ----------------------------------------------------------------------------------------- */

/* The nearest number with ten binary places behind its first, of which the last has at least 2**-24. */
static double round_half(double x)
{
    int exponent;
    if (x == 0 || isnan(x) || isinf(x)) return x;
    (void)frexp(x, &exponent);
    const double unit = ldexp(1, exponent < -13 ? -24 : exponent - 11);
    const double r = rint(x / unit) * unit;
    return fabs(r) >= 65536 ? copysign(INFINITY, x) : r;
}

/* As a float type, from a double. */
static double round_to(double x, drupe_dtype dtype)
{
    const drupe_dtype real = drupe_dtype_real(dtype);
    return real == DRUPE_FLOAT16 ? round_half(x) : real == DRUPE_FLOAT32 ? (double)(float)x : x;
}

static double to_real(number value, drupe_dtype dtype)
{
    const bool narrow = drupe_dtype_real(dtype) == DRUPE_FLOAT32;
    if (!is_whole(value.dtype)) return round_to(value.f, dtype);
    if (value.dtype == DRUPE_UINT64)
        return narrow ? (double)(float)(uint64_t)value.i : round_to((double)(uint64_t)value.i, dtype);
    return narrow ? (double)(float)value.i : round_to((double)value.i, dtype);
}

/* The last bytes of an integer, as a type's. */
static int64_t cut(int64_t i, drupe_dtype dtype)
{
    const unsigned unused = 64 - 8 * (unsigned)drupe_dtype_size(dtype);
    const uint64_t high = (uint64_t)i << unused;
    return drupe_dtype_kind(dtype) == 'u' ? (int64_t)(high >> unused) : (int64_t)high >> unused;
}

number number_cast(number value, drupe_dtype dtype)
{
    number r = {.dtype = dtype};
    if (!is_whole(dtype)) {
        r.f = to_real(value, dtype);
        if (is_complex(dtype) && is_complex(value.dtype)) r.im = round_to(value.im, dtype);
    } else if (dtype == DRUPE_BOOL) {
        r.i =
            is_whole(value.dtype) ? value.i != 0 : value.f != 0 || (is_complex(value.dtype) && value.im != 0);
    } else if (is_whole(value.dtype)) {
        r.i = cut(value.i, dtype);
    } else {
        r.i = cut(value.f >= 0x1p63 ? (int64_t)(uint64_t)value.f : (int64_t)value.f, dtype);
    }
    return r;
}

number number_of(const drupe_scalar *scalar)
{
    if (scalar->kind == DRUPE_SCALAR_KIND_FLOAT) return (number){.dtype = DRUPE_FLOAT64, .f = scalar->f};
    if (scalar->kind == DRUPE_SCALAR_KIND_COMPLEX)
        return (number){.dtype = DRUPE_COMPLEX128, .f = scalar->f, .im = scalar->im};
    return (number){.dtype = scalar->big ? DRUPE_UINT64 : DRUPE_INT64, .i = scalar->i};
}

static double load_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double size = ldexp(exponent ? 1024 + mantissa : mantissa, (exponent ? exponent : 1) - 25);
    if (exponent == 31) size = mantissa ? NAN : INFINITY;
    return bits >> 15 ? -size : size;
}

static uint16_t store_half(double x)
{
    const double size = fabs(round_half(x));
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    int exponent;
    if (isnan(x)) return sign | 0x7e00;
    if (isinf(size)) return sign | 0x7c00;
    if (size < 0x1p-14) return (uint16_t)(sign | (int)(size * 0x1p24));
    const double mantissa = frexp(size, &exponent);
    return (uint16_t)(sign | ((exponent + 14) << 10 | (int)(mantissa * 2048 - 1024)));
}

static double load_real(const char *bytes, drupe_dtype dtype)
{
    uint16_t half;
    float narrow;
    double wide;
    switch ((int)dtype) {
    case DRUPE_FLOAT16: memcpy(&half, bytes, 2); return load_half(half);
    case DRUPE_FLOAT32: memcpy(&narrow, bytes, 4); return (double)narrow;
    default: memcpy(&wide, bytes, 8); return wide;
    }
}

static void store_real(char *bytes, double x, drupe_dtype dtype)
{
    const uint16_t half = store_half(x);
    const float narrow = (float)x;
    switch ((int)dtype) {
    case DRUPE_FLOAT16: memcpy(bytes, &half, 2); break;
    case DRUPE_FLOAT32: memcpy(bytes, &narrow, 4); break;
    default: memcpy(bytes, &x, 8); break;
    }
}

number number_load(const void *bytes, drupe_dtype dtype)
{
    const size_t size = drupe_dtype_size(dtype);
    number r = {.dtype = dtype};
    if (!is_whole(dtype)) {
        r.f = load_real(bytes, drupe_dtype_real(dtype));
        if (is_complex(dtype)) r.im = load_real((const char *)bytes + size / 2, drupe_dtype_real(dtype));
        return r;
    }
    for (size_t i = size; i-- > 0;) r.i = (int64_t)((uint64_t)r.i << 8 | ((const unsigned char *)bytes)[i]);
    r.i = cut(r.i, dtype);
    return r;
}

void number_store(void *bytes, number value)
{
    const size_t size = drupe_dtype_size(value.dtype);
    if (!is_whole(value.dtype)) {
        store_real(bytes, value.f, drupe_dtype_real(value.dtype));
        if (is_complex(value.dtype))
            store_real((char *)bytes + size / 2, value.im, drupe_dtype_real(value.dtype));
        return;
    }
    for (size_t i = 0; i < size; i++) ((unsigned char *)bytes)[i] = (unsigned char)(value.i >> 8 * i);
}

static double unit_of(drupe_dtype dtype)
{
    const drupe_dtype real = drupe_dtype_real(dtype);
    return real == DRUPE_FLOAT16 ? 0x1p-10 : real == DRUPE_FLOAT32 ? 0x1p-23 : 0x1p-52;
}

static double tiny_of(drupe_dtype dtype)
{
    const drupe_dtype real = drupe_dtype_real(dtype);
    return real == DRUPE_FLOAT16 ? 0x1p-24 : real == DRUPE_FLOAT32 ? 0x1p-126 : 0x1p-1022;
}

bool number_close(number a, number b, int ulps)
{
    if (a.dtype != b.dtype) return false;
    if (is_whole(a.dtype)) return a.i == b.i;
    if (is_complex(a.dtype)) {
        const bool finite = isfinite(b.f) && isfinite(b.im);
        if (!finite) return !isfinite(a.f) || !isfinite(a.im);
        return hypot(a.f - b.f, a.im - b.im) <=
               ulps * (unit_of(a.dtype) * hypot(b.f, b.im) + tiny_of(a.dtype));
    }
    if (isnan(a.f) || isnan(b.f)) return isnan(a.f) && isnan(b.f);
    if (a.f == b.f) return signbit(a.f) == signbit(b.f) || ulps > 0;
    if (isinf(a.f) || isinf(b.f)) return false;
    return fabs(a.f - b.f) <= ulps * (unit_of(a.dtype) * fabs(b.f) + tiny_of(a.dtype));
}

static number whole(drupe_dtype dtype, uint64_t value)
{
    const number wide = {.dtype = DRUPE_INT64, .i = (int64_t)value};
    return number_cast(wide, dtype);
}

static number real(drupe_dtype dtype, double value)
{
    return number_cast((number){.dtype = DRUPE_FLOAT64, .f = value}, dtype);
}

static number truth(bool value)
{
    return (number){.dtype = DRUPE_BOOL, .i = value};
}

/* --- Integers ------------------------------------------------------------------------------------------- */

static uint64_t power(uint64_t base, uint64_t exponent)
{
    if (exponent == 0) return 1;
    return exponent % 2 ? base * power(base, exponent - 1) : power(base * base, exponent / 2);
}

static int order(number a, number b)
{
    if (a.dtype == DRUPE_UINT64) return ((uint64_t)a.i > (uint64_t)b.i) - ((uint64_t)a.i < (uint64_t)b.i);
    return (a.i > b.i) - (a.i < b.i);
}

/* Rounded down; what does not fit wraps round, which a conversion does on some processors only. */
static uint64_t whole_quotient(number a, number b)
{
    if (b.i == 0) return 0;
    if (a.dtype == DRUPE_UINT64) return (uint64_t)a.i / (uint64_t)b.i;
    return b.i == -1 ? 0 - (uint64_t)a.i : (uint64_t)(int64_t)floorl((long double)a.i / b.i);
}

static number apply_bits(drupe_op op, number a, number b)
{
    const drupe_dtype t = a.dtype;
    const uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
    const int64_t width = 8 * (int64_t)drupe_dtype_size(t), by = b.i < 0 || b.i >= width ? width : b.i;
    const bool negative = a.i < 0 && t != DRUPE_UINT64;
    switch ((int)op) {
    case DRUPE_OP_BITWISE_AND: return whole(t, x & y);
    case DRUPE_OP_BITWISE_OR: return whole(t, x | y);
    case DRUPE_OP_BITWISE_XOR: return whole(t, x ^ y);
    case DRUPE_OP_BITWISE_INVERT: return t == DRUPE_BOOL ? truth(!x) : whole(t, ~x);
    case DRUPE_OP_BITWISE_LEFT_SHIFT: return whole(t, by < width ? x << by : 0);
    case DRUPE_OP_BITWISE_RIGHT_SHIFT:
        if (by == width) return whole(t, negative ? UINT64_MAX : 0);
        return whole(t, negative ? ~(~x >> by) : x >> by);
    default: fail_msg("no integer reference for %s", drupe_op_name(op)); return a;
    }
}

static number apply_one_integer(drupe_op op, number a, number b)
{
    const drupe_dtype t = a.dtype;
    const uint64_t x = (uint64_t)a.i;
    const bool negative = a.i < 0 && t != DRUPE_UINT64;
    switch ((int)op) {
    case DRUPE_OP_LOGICAL_NOT: return truth(!a.i);
    case DRUPE_OP_ISFINITE: return truth(true);
    case DRUPE_OP_ISINF:
    case DRUPE_OP_ISNAN: return truth(false);
    case DRUPE_OP_SIGN: return whole(t, negative ? UINT64_MAX : x != 0);
    case DRUPE_OP_CEIL:
    case DRUPE_OP_FLOOR:
    case DRUPE_OP_TRUNC:
    case DRUPE_OP_REAL:
    case DRUPE_OP_CONJ:
    case DRUPE_OP_POSITIVE:
    case DRUPE_OP_ROUND: return a;
    case DRUPE_OP_IMAG: return whole(t, 0);
    case DRUPE_OP_NEGATIVE: return whole(t, 0 - x);
    case DRUPE_OP_ABS: return whole(t, negative ? 0 - x : x);
    case DRUPE_OP_SQUARE: return whole(t, t == DRUPE_BOOL ? x : x * x);
    default: return apply_bits(op, a, b);
    }
}

static uint64_t magnitude(number a)
{
    return a.i < 0 && a.dtype != DRUPE_UINT64 ? 0 - (uint64_t)a.i : (uint64_t)a.i;
}

static uint64_t divisor(number a, number b)
{
    uint64_t x = magnitude(a), y = magnitude(b);
    while (y) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

static number apply_integer(drupe_op op, number a, number b)
{
    const drupe_dtype t = a.dtype;
    const uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
    const bool is_bool = t == DRUPE_BOOL;
    switch ((int)op) {
    case DRUPE_OP_ADD: return is_bool ? truth(x || y) : whole(t, x + y);
    case DRUPE_OP_SUBTRACT: return whole(t, x - y);
    case DRUPE_OP_MULTIPLY: return is_bool ? truth(x && y) : whole(t, x * y);
    case DRUPE_OP_MAXIMUM: return order(a, b) > 0 ? a : b;
    case DRUPE_OP_MINIMUM: return order(a, b) < 0 ? a : b;
    case DRUPE_OP_FLOOR_DIVIDE: return whole(t, whole_quotient(a, b));
    case DRUPE_OP_GCD: return whole(t, divisor(a, b));
    case DRUPE_OP_LCM: return whole(t, x && y ? magnitude(a) / divisor(a, b) * magnitude(b) : 0);
    case DRUPE_OP_REMAINDER: return whole(t, b.i ? x - y * whole_quotient(a, b) : 0);
    case DRUPE_OP_POW:
        if (b.i < 0 && t != DRUPE_UINT64)
            return whole(t, a.i == 1 ? 1 : a.i == -1 ? (b.i % 2 ? UINT64_MAX : 1) : 0);
        return whole(t, power(x, y));
    case DRUPE_OP_EQUAL: return truth(a.i == b.i);
    case DRUPE_OP_NOT_EQUAL: return truth(a.i != b.i);
    case DRUPE_OP_LESS: return truth(order(a, b) < 0);
    case DRUPE_OP_LESS_EQUAL: return truth(order(a, b) <= 0);
    case DRUPE_OP_GREATER: return truth(order(a, b) > 0);
    case DRUPE_OP_GREATER_EQUAL: return truth(order(a, b) >= 0);
    case DRUPE_OP_LOGICAL_AND: return truth(a.i && b.i);
    case DRUPE_OP_LOGICAL_OR: return truth(a.i || b.i);
    case DRUPE_OP_LOGICAL_XOR: return truth(!a.i != !b.i);
    default: return apply_one_integer(op, a, b);
    }
}

/* --- Floats --------------------------------------------------------------------------------------------- */

/* Python's rules for the sign of a remainder. */
static double modulo(double a, double b)
{
    const double r = fmod(a, b);
    if (r == 0) return copysign(r, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static double quotient(double a, double b)
{
    if (b == 0) return a / b;
    if (isinf(a) || isinf(b) || isnan(a) || isnan(b)) return a / b; /* as the array API has it */
    return (double)floorl((long double)a / (long double)b);
}

static double opposite(double a)
{
    return -a;
}

static double same(double a)
{
    return a;
}

static double nothing(double a)
{
    (void)a;
    return 0;
}

static double angle(double a)
{
    return isnan(a) ? a : signbit(a) ? PI : 0;
}

static double squared(double a)
{
    return a * a;
}

static double inverse(double a)
{
    return 1 / a;
}

static double sign_of(double a)
{
    return isnan(a) ? a : (double)((a > 0) - (a < 0));
}

static double divided(double a, double b)
{
    return a / b;
}

static double log_of_sum(double a, double b)
{
    if (isinf(a) && a == b) return a;
    return fmax(a, b) + log1p(exp(-fabs(a - b)));
}

/* By their place among all, counted from 0 upwards and downwards. */
static number next_half(double a, double b)
{
    const int16_t bits = (int16_t)store_half(a);
    const int place = bits < 0 ? -(bits & 0x7fff) : bits, next = place + (b > a) - (b < a);
    if (isnan(a) || isnan(b)) return real(DRUPE_FLOAT16, NAN);
    if (a == b) return real(DRUPE_FLOAT16, b);
    const double size = load_half((uint16_t)(next < 0 ? -next : next));
    return real(DRUPE_FLOAT16, next < 0 || (next == 0 && place < 0) ? -size : size);
}

static number apply_function(drupe_op op, double a, double b, drupe_dtype t)
{
    static double (*const unary[DRUPE_OP_COUNT])(double) = {
        [DRUPE_OP_SQRT] = sqrt,         [DRUPE_OP_EXP] = exp,
        [DRUPE_OP_LOG] = log,           [DRUPE_OP_SIN] = sin,
        [DRUPE_OP_COS] = cos,           [DRUPE_OP_TAN] = tan,
        [DRUPE_OP_ASIN] = asin,         [DRUPE_OP_ACOS] = acos,
        [DRUPE_OP_ATAN] = atan,         [DRUPE_OP_SINH] = sinh,
        [DRUPE_OP_COSH] = cosh,         [DRUPE_OP_TANH] = tanh,
        [DRUPE_OP_ASINH] = asinh,       [DRUPE_OP_ACOSH] = acosh,
        [DRUPE_OP_ATANH] = atanh,       [DRUPE_OP_LOG2] = log2,
        [DRUPE_OP_LOG10] = log10,       [DRUPE_OP_LOG1P] = log1p,
        [DRUPE_OP_EXPM1] = expm1,       [DRUPE_OP_CEIL] = ceil,
        [DRUPE_OP_FLOOR] = floor,       [DRUPE_OP_TRUNC] = trunc,
        [DRUPE_OP_ROUND] = rint,        [DRUPE_OP_ABS] = fabs,
        [DRUPE_OP_NEGATIVE] = opposite, [DRUPE_OP_POSITIVE] = same,
        [DRUPE_OP_SQUARE] = squared,    [DRUPE_OP_RECIPROCAL] = inverse,
        [DRUPE_OP_SIGN] = sign_of,      [DRUPE_OP_REAL] = same,
        [DRUPE_OP_IMAG] = nothing,      [DRUPE_OP_CONJ] = same,
        [DRUPE_OP_ANGLE] = angle};
    static double (*const binary[DRUPE_OP_COUNT])(double, double) = {
        [DRUPE_OP_DIVIDE] = divided,    [DRUPE_OP_FLOOR_DIVIDE] = quotient, [DRUPE_OP_REMAINDER] = modulo,
        [DRUPE_OP_POW] = pow,           [DRUPE_OP_ATAN2] = atan2,           [DRUPE_OP_HYPOT] = hypot,
        [DRUPE_OP_COPYSIGN] = copysign, [DRUPE_OP_LOGADDEXP] = log_of_sum};
    if (op == DRUPE_OP_NEXTAFTER && t == DRUPE_FLOAT16) return next_half(a, b);
    if (op == DRUPE_OP_NEXTAFTER)
        return real(t, t == DRUPE_FLOAT32 ? (double)nextafterf((float)a, (float)b) : nextafter(a, b));
    if (!unary[op] && !binary[op]) fail_msg("no floating reference for %s", drupe_op_name(op));
    return real(t, unary[op] ? unary[op](a) : binary[op](a, b));
}

static number apply_real(drupe_op op, number a, number b)
{
    const drupe_dtype t = a.dtype;
    switch ((int)op) {
    case DRUPE_OP_ADD: return real(t, a.f + b.f);
    case DRUPE_OP_SUBTRACT: return real(t, a.f - b.f);
    case DRUPE_OP_MULTIPLY: return real(t, a.f * b.f);
    case DRUPE_OP_MAXIMUM: return isnan(a.f) ? a : isnan(b.f) ? b : a.f > b.f ? a : b;
    case DRUPE_OP_MINIMUM: return isnan(a.f) ? a : isnan(b.f) ? b : a.f < b.f ? a : b;
    case DRUPE_OP_EQUAL: return truth(a.f == b.f);
    case DRUPE_OP_NOT_EQUAL: return truth(a.f != b.f);
    case DRUPE_OP_LESS: return truth(a.f < b.f);
    case DRUPE_OP_LESS_EQUAL: return truth(a.f <= b.f);
    case DRUPE_OP_GREATER: return truth(a.f > b.f);
    case DRUPE_OP_GREATER_EQUAL: return truth(a.f >= b.f);
    case DRUPE_OP_ISFINITE: return truth(isfinite(a.f));
    case DRUPE_OP_ISINF: return truth(isinf(a.f));
    case DRUPE_OP_ISNAN: return truth(isnan(a.f));
    case DRUPE_OP_SIGNBIT: return truth(signbit(a.f));
    default: return apply_function(op, a.f, b.f, t);
    }
}

/* --- Complex numbers ------------------------------------------------------------------------------------ */

static double complex raised(double complex a, double complex b)
{
    if (b == 0) return 1;
    if (a == 0) return creal(b) > 0 && cimag(b) == 0 ? 0 : (double complex)NAN;
    return cpow(a, b);
}

static double complex raised_by_ten(double complex a)
{
    return clog(a) / log(10);
}

static double complex raised_by_two(double complex a)
{
    return clog(a) / log(2);
}

static double complex log_of_one_more(double complex a)
{
    return clog(1 + a);
}

static double complex less_one(double complex a)
{
    return cexp(a) - 1;
}

static double complex direction(double complex a)
{
    return a == 0 ? 0 : a / cabs(a);
}

static double complex rounded(double complex a)
{
    return rint(creal(a)) + I * rint(cimag(a));
}

static number part(double x)
{
    return (number){.dtype = DRUPE_FLOAT64, .f = x};
}

static number apply_to_complex(drupe_op op, double complex a, double complex b, drupe_dtype t)
{
    static double complex (*const unary[DRUPE_OP_COUNT])(double complex) = {[DRUPE_OP_SQRT] = csqrt,
                                                                            [DRUPE_OP_EXP] = cexp,
                                                                            [DRUPE_OP_LOG] = clog,
                                                                            [DRUPE_OP_SIN] = csin,
                                                                            [DRUPE_OP_COS] = ccos,
                                                                            [DRUPE_OP_TAN] = ctan,
                                                                            [DRUPE_OP_ASIN] = casin,
                                                                            [DRUPE_OP_ACOS] = cacos,
                                                                            [DRUPE_OP_ATAN] = catan,
                                                                            [DRUPE_OP_SINH] = csinh,
                                                                            [DRUPE_OP_COSH] = ccosh,
                                                                            [DRUPE_OP_TANH] = ctanh,
                                                                            [DRUPE_OP_ASINH] = casinh,
                                                                            [DRUPE_OP_ACOSH] = cacosh,
                                                                            [DRUPE_OP_ATANH] = catanh,
                                                                            [DRUPE_OP_LOG2] = raised_by_two,
                                                                            [DRUPE_OP_CONJ] = conj,
                                                                            [DRUPE_OP_LOG10] = raised_by_ten,
                                                                            [DRUPE_OP_LOG1P] =
                                                                                log_of_one_more,
                                                                            [DRUPE_OP_EXPM1] = less_one,
                                                                            [DRUPE_OP_SIGN] = direction,
                                                                            [DRUPE_OP_ROUND] = rounded};
    double complex r = 0;
    switch ((int)op) {
    case DRUPE_OP_ADD: r = a + b; break;
    case DRUPE_OP_SUBTRACT: r = a - b; break;
    case DRUPE_OP_SQUARE: r = a * a; break;
    case DRUPE_OP_MULTIPLY: r = a * b; break;
    case DRUPE_OP_DIVIDE: r = a / b; break;
    case DRUPE_OP_RECIPROCAL: r = 1 / a; break;
    case DRUPE_OP_POW: r = raised(a, b); break;
    case DRUPE_OP_NEGATIVE: r = -a; break;
    case DRUPE_OP_POSITIVE: r = a; break;
    default:
        if (!unary[op]) fail_msg("no complex reference for %s", drupe_op_name(op));
        r = unary[op](a);
    }
    return number_cast((number){.dtype = DRUPE_COMPLEX128, .f = creal(r), .im = cimag(r)}, t);
}

static number apply_complex(drupe_op op, number a, number b)
{
    switch ((int)op) {
    case DRUPE_OP_EQUAL: return truth(a.f == b.f && a.im == b.im);
    case DRUPE_OP_NOT_EQUAL: return truth(a.f != b.f || a.im != b.im);
    case DRUPE_OP_ISFINITE: return truth(isfinite(a.f) && isfinite(a.im));
    case DRUPE_OP_ISINF: return truth(isinf(a.f) || isinf(a.im));
    case DRUPE_OP_ISNAN: return truth(isnan(a.f) || isnan(a.im));
    case DRUPE_OP_REAL: return part(a.f);
    case DRUPE_OP_IMAG: return part(a.im);
    case DRUPE_OP_ABS: return part(hypot(a.f, a.im));
    case DRUPE_OP_ANGLE: return part(atan2(a.im, a.f));
    default: return apply_to_complex(op, a.f + I * a.im, b.f + I * b.im, a.dtype);
    }
}

number number_apply(drupe_op op, number a, number b)
{
    if (is_whole(a.dtype)) return apply_integer(op, a, b);
    return is_complex(a.dtype) ? apply_complex(op, a, b) : apply_real(op, a, b);
}

/* --- Reductions ----------------------------------------------------------------------------------------- */

number number_combine(drupe_op op, number a, number b)
{
    switch ((int)op) {
    case DRUPE_OP_SUM: return number_apply(DRUPE_OP_ADD, a, b);
    case DRUPE_OP_PROD: return number_apply(DRUPE_OP_MULTIPLY, a, b);
    case DRUPE_OP_MAX: return number_apply(DRUPE_OP_MAXIMUM, a, b);
    case DRUPE_OP_MIN: return number_apply(DRUPE_OP_MINIMUM, a, b);
    case DRUPE_OP_ANY: return truth(a.i || b.i);
    default: return truth(a.i && b.i);
    }
}

number number_identity(drupe_op op, drupe_dtype dtype)
{
    const bool low = op == DRUPE_OP_MAX;
    const unsigned bits = 8 * (unsigned)drupe_dtype_size(dtype);
    if (op == DRUPE_OP_SUM || op == DRUPE_OP_ANY) return whole(dtype, 0);
    if (op == DRUPE_OP_PROD || op == DRUPE_OP_ALL) return whole(dtype, 1);
    if (is_float(dtype)) return real(dtype, low ? -INFINITY : INFINITY);
    if (dtype == DRUPE_BOOL) return truth(!low);
    if (drupe_dtype_kind(dtype) == 'u') return whole(dtype, low ? 0 : UINT64_MAX);
    const int64_t highest = (int64_t)(UINT64_MAX >> (65 - bits));
    return (number){.dtype = dtype, .i = low ? -highest - 1 : highest};
}
