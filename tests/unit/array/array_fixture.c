#include "array_fixture.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

drupe_queue *queues[2];
size_t queue_count;

int queues_open(void **state)
{
    static const char *const filters[] = {"host", "opencl:cpu"};
    /* A filter: to run again what concerns one backend only, or on a GPU. */
    const char *only = getenv("DRUPE_ARRAY_TEST_DEVICE");
    (void)state;
    setenv("DRUPE_CACHE", "0", 0); /* what is tested is built */
    for (size_t i = 0; i < 2; i++) {
        drupe_device *device = NULL;
        if (only && i > 0) break;
        if (drupe_device_select(only ? only : filters[i], &device) != DRUPE_OK) continue;
        if (drupe_device_queue(device, &queues[queue_count]) == DRUPE_OK) queue_count++;
        drupe_device_release(device);
    }
    if (queue_count == 0) return -1;
    print_message("on %zu devices\n", queue_count);
    return 0;
}

int queues_close(void **state)
{
    (void)state;
    for (size_t i = 0; i < queue_count; i++) {
        if (drupe_queue_wait(queues[i], DRUPE_FOREVER) != DRUPE_OK) return -1;
        drupe_queue_release(queues[i]);
    }
    queue_count = 0;
    drupe_array_forget();
    const size_t left = drupe_library_close(DRUPE_FOREVER);
    if (left) print_error("%zu objects are left\n", left);
    return left ? -1 : 0;
}

bool queue_is_host(const drupe_queue *queue)
{
    return strcmp(drupe_device_backend(drupe_queue_device(queue)), "host") == 0;
}

/* --- Numbers -------------------------------------------------------------------------------------------- */

bool is_float(drupe_dtype dtype)
{
    return dtype == DRUPE_FLOAT32 || dtype == DRUPE_FLOAT64;
}

number number_cast(number value, drupe_dtype dtype)
{
    number r = {.dtype = dtype};
    if (is_float(dtype)) {
        r.f = is_float(value.dtype) ? value.f : (double)value.i;
        if (dtype == DRUPE_FLOAT32) r.f = is_float(value.dtype) ? (float)value.f : (float)value.i;
    } else if (dtype == DRUPE_BOOL) {
        r.i = is_float(value.dtype) ? value.f != 0 : value.i != 0;
    } else {
        r.i = is_float(value.dtype) ? (int64_t)value.f : value.i;
        if (dtype == DRUPE_INT32) r.i = (int32_t)r.i;
    }
    return r;
}

number number_load(const void *bytes, drupe_dtype dtype)
{
    number r = {.dtype = dtype};
    float f;
    int32_t i;
    switch (dtype) {
    case DRUPE_BOOL: r.i = *(const uint8_t *)bytes; break;
    case DRUPE_INT32: memcpy(&i, bytes, 4), r.i = i; break;
    case DRUPE_INT64: memcpy(&r.i, bytes, 8); break;
    case DRUPE_FLOAT32: memcpy(&f, bytes, 4), r.f = (double)f; break;
    default: memcpy(&r.f, bytes, 8); break;
    }
    return r;
}

void number_store(void *bytes, number value)
{
    const float f = (float)value.f;
    const int32_t i = (int32_t)value.i;
    switch (value.dtype) {
    case DRUPE_BOOL: *(uint8_t *)bytes = (uint8_t)value.i; break;
    case DRUPE_INT32: memcpy(bytes, &i, 4); break;
    case DRUPE_INT64: memcpy(bytes, &value.i, 8); break;
    case DRUPE_FLOAT32: memcpy(bytes, &f, 4); break;
    default: memcpy(bytes, &value.f, 8); break;
    }
}

bool number_close(number a, number b, int ulps)
{
    if (a.dtype != b.dtype) return false;
    if (!is_float(a.dtype)) return a.i == b.i;
    if (isnan(a.f) || isnan(b.f)) return isnan(a.f) && isnan(b.f);
    if (a.f == b.f) return signbit(a.f) == signbit(b.f) || ulps > 0;
    if (isinf(a.f) || isinf(b.f)) return false;
    const double unit = a.dtype == DRUPE_FLOAT32 ? 0x1p-23 : 0x1p-52;
    const double tiny = a.dtype == DRUPE_FLOAT32 ? 0x1p-126 : 0x1p-1022;
    return fabs(a.f - b.f) <= ulps * (unit * fabs(b.f) + tiny);
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

static uint64_t power(uint64_t base, uint64_t exponent)
{
    if (exponent == 0) return 1;
    return exponent % 2 ? base * power(base, exponent - 1) : power(base * base, exponent / 2);
}

/* Rounded down; what does not fit wraps round, which a conversion does on some processors only. */
static uint64_t whole_quotient(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    return b == -1 ? 0 - (uint64_t)a : (uint64_t)(int64_t)floorl((long double)a / b);
}

static number apply_bits(drupe_op op, number a, number b)
{
    const drupe_dtype t = a.dtype;
    const uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
    const int64_t width = 8 * (int64_t)drupe_dtype_size(t), by = b.i < 0 || b.i >= width ? width : b.i;
    switch ((int)op) {
    case DRUPE_OP_BITWISE_AND: return whole(t, x & y);
    case DRUPE_OP_BITWISE_OR: return whole(t, x | y);
    case DRUPE_OP_BITWISE_XOR: return whole(t, x ^ y);
    case DRUPE_OP_BITWISE_INVERT: return t == DRUPE_BOOL ? truth(!x) : whole(t, ~x);
    case DRUPE_OP_BITWISE_LEFT_SHIFT: return whole(t, by < width ? x << by : 0);
    case DRUPE_OP_BITWISE_RIGHT_SHIFT: return whole(t, (uint64_t)(by < width ? a.i >> by : a.i < 0 ? -1 : 0));
    default: fail_msg("no integer reference for %s", drupe_op_name(op)); return a;
    }
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
    case DRUPE_OP_MAXIMUM: return a.i > b.i ? a : b;
    case DRUPE_OP_MINIMUM: return a.i < b.i ? a : b;
    case DRUPE_OP_FLOOR_DIVIDE: return whole(t, whole_quotient(a.i, b.i));
    case DRUPE_OP_REMAINDER: return whole(t, b.i ? x - y * whole_quotient(a.i, b.i) : 0);
    case DRUPE_OP_POW:
        if (b.i < 0) return whole(t, a.i == 1 ? 1 : a.i == -1 ? (b.i % 2 ? UINT64_MAX : 1) : 0);
        return whole(t, power(x, y));
    case DRUPE_OP_EQUAL: return truth(a.i == b.i);
    case DRUPE_OP_NOT_EQUAL: return truth(a.i != b.i);
    case DRUPE_OP_LESS: return truth(a.i < b.i);
    case DRUPE_OP_LESS_EQUAL: return truth(a.i <= b.i);
    case DRUPE_OP_GREATER: return truth(a.i > b.i);
    case DRUPE_OP_GREATER_EQUAL: return truth(a.i >= b.i);
    case DRUPE_OP_LOGICAL_AND: return truth(a.i && b.i);
    case DRUPE_OP_LOGICAL_OR: return truth(a.i || b.i);
    case DRUPE_OP_LOGICAL_XOR: return truth(!a.i != !b.i);
    case DRUPE_OP_LOGICAL_NOT: return truth(!a.i);
    case DRUPE_OP_ISFINITE: return truth(true);
    case DRUPE_OP_ISINF:
    case DRUPE_OP_ISNAN: return truth(false);
    case DRUPE_OP_SIGN: return whole(t, (uint64_t)(int64_t)((a.i > 0) - (a.i < 0)));
    case DRUPE_OP_CEIL:
    case DRUPE_OP_FLOOR:
    case DRUPE_OP_TRUNC:
    case DRUPE_OP_ROUND: return a;
    case DRUPE_OP_NEGATIVE: return whole(t, 0 - x);
    case DRUPE_OP_ABS: return whole(t, a.i < 0 ? 0 - x : x);
    case DRUPE_OP_SQUARE: return whole(t, is_bool ? x : x * x);
    case DRUPE_OP_POSITIVE: return a;
    default: return apply_bits(op, a, b);
    }
}

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
    if (isinf(a) || isnan(a) || isnan(b)) return NAN;
    if (isinf(b)) return a == 0 || (a < 0) == (b < 0) ? a / b : -1;
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
        [DRUPE_OP_SIGN] = sign_of};
    static double (*const binary[DRUPE_OP_COUNT])(double, double) = {
        [DRUPE_OP_DIVIDE] = divided,    [DRUPE_OP_FLOOR_DIVIDE] = quotient, [DRUPE_OP_REMAINDER] = modulo,
        [DRUPE_OP_POW] = pow,           [DRUPE_OP_ATAN2] = atan2,           [DRUPE_OP_HYPOT] = hypot,
        [DRUPE_OP_COPYSIGN] = copysign, [DRUPE_OP_LOGADDEXP] = log_of_sum};
    if (op == DRUPE_OP_NEXTAFTER)
        return real(t, t == DRUPE_FLOAT32 ? (double)nextafterf((float)a, (float)b) : nextafter(a, b));
    if (!unary[op] && !binary[op]) fail_msg("no floating reference for %s", drupe_op_name(op));
    return real(t, unary[op] ? unary[op](a) : binary[op](a, b));
}

number number_apply(drupe_op op, number a, number b)
{
    const drupe_dtype t = a.dtype;
    if (!is_float(t)) return apply_integer(op, a, b);
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
    if (op == DRUPE_OP_SUM || op == DRUPE_OP_ANY) return whole(dtype, 0);
    if (op == DRUPE_OP_PROD || op == DRUPE_OP_ALL) return whole(dtype, 1);
    if (is_float(dtype)) return real(dtype, low ? -INFINITY : INFINITY);
    if (dtype == DRUPE_BOOL) return truth(!low);
    if (dtype == DRUPE_INT32) return (number){.dtype = dtype, .i = low ? INT32_MIN : INT32_MAX};
    return (number){.dtype = dtype, .i = low ? INT64_MIN : INT64_MAX};
}

/* --- Samples -------------------------------------------------------------------------------------------- */

static number sample_number(drupe_dtype dtype, unsigned k, bool special)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 1e30, -1e-30};
    const int64_t small = (int64_t)(k * 2654435761u >> 16) % 15 - 7;
    if (special && k % 7 == 3 && is_float(dtype)) return real(dtype, odd[k / 7 % 6]);
    if (special && k % 11 == 5 && dtype == DRUPE_INT32)
        return (number){dtype, k % 2 ? INT32_MIN : INT32_MAX, 0};
    if (special && k % 11 == 5 && dtype == DRUPE_INT64)
        return (number){dtype, k % 2 ? INT64_MIN : INT64_MAX, 0};
    if (is_float(dtype) && special) return real(dtype, (double)small * 0.75);
    return whole(dtype, (uint64_t)(dtype == DRUPE_BOOL ? small & 1 : small));
}

/* The shape in memory, of which the sample is a view. */
static int base_shape(sample_layout layout, int ndim, const size_t *shape, size_t *base)
{
    for (int d = 0; d < ndim; d++) base[d] = layout == TRANSPOSED ? shape[ndim - 1 - d] : shape[d];
    if (layout == ZERO_D) return 0;
    if (ndim == 0) return 0;
    if (layout == STRIDED) base[ndim - 1] = 2 * shape[ndim - 1];
    if (layout == BROADCAST) base[ndim - 1] = 1;
    if (layout == ROW) {
        base[0] = shape[ndim - 1];
        return 1;
    }
    return ndim;
}

static void view_sample(sample_layout layout, drupe_array *array)
{
    drupe_slice slices[DRUPE_MAX_DIMS];
    for (int d = 0; d < array->ndim; d++) {
        const ptrdiff_t length = (ptrdiff_t)array->shape[d];
        slices[d] = (drupe_slice){0, 1, array->shape[d], false};
        if (layout == NEGATIVE) slices[d] = (drupe_slice){length - 1, -1, array->shape[d], false};
        if (layout == STRIDED && d == array->ndim - 1)
            slices[d] = (drupe_slice){1, 2, array->shape[d] / 2, false};
    }
    if (layout == NEGATIVE || layout == STRIDED) CHECK(drupe_array_slice(array, slices));
    if (layout == TRANSPOSED) CHECK(drupe_array_permute(array, NULL));
}

void sample_make(drupe_queue *queue, drupe_dtype dtype, sample_layout layout, int ndim, const size_t *shape,
                 unsigned seed, bool special, sample *s)
{
    size_t base[DRUPE_MAX_DIMS];
    const int base_ndim = base_shape(layout, ndim, shape, base);
    const size_t size = drupe_dtype_size(dtype);
    memset(s, 0, sizeof(*s));
    CHECK(drupe_array_empty(queue, DRUPE_MEM_DEVICE, dtype, base_ndim, base, &s->array));
    s->base = malloc(s->array.size * size + 1);
    assert_non_null(s->base);
    for (size_t k = 0; k < s->array.size; k++)
        number_store(s->base + k * size, sample_number(dtype, (unsigned)k + seed, special));
    CHECK(drupe_array_from_host(&s->array, s->base, NULL));
    view_sample(layout, &s->array);
}

void sample_clear(sample *s)
{
    CHECK(drupe_queue_wait(s->array.queue, DRUPE_FOREVER));
    drupe_array_clear(&s->array);
    free(s->base);
}

number sample_at(const sample *s, int ndim, const size_t *index)
{
    const drupe_array *a = &s->array;
    ptrdiff_t at = (ptrdiff_t)a->offset;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != 1) at += (ptrdiff_t)index[ndim - a->ndim + d] * a->strides[d];
    return number_load(s->base + at * (ptrdiff_t)drupe_dtype_size(a->dtype), a->dtype);
}

void *array_fetch(const drupe_array *array)
{
    drupe_event *event = NULL;
    void *bytes = malloc(array->size * drupe_dtype_size(array->dtype) + 1);
    assert_non_null(bytes);
    CHECK(drupe_array_to_host(array, bytes, &event));
    CHECK(drupe_event_wait(event, DRUPE_FOREVER));
    drupe_event_release(event);
    return bytes;
}

bool index_next(int ndim, const size_t *shape, size_t *index)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++index[d] < shape[d]) return true;
        index[d] = 0;
    }
    return false;
}
