/* Element types of results.
 *
 * Arrays promote by the generated matrix. Python scalars are weak: one changes the type only when its kind
 * (bool < int < float < complex) is above that of the arrays. A device without float64 has float32 as its
 * widest float. What an operation is computed in may differ from what is stored: float16 is computed in
 * float32. */
#include "array/array_room.h"
#include "generated/drupe_half.h"
#include <inttypes.h>
#include <stdio.h>

/* --- Scalars -------------------------------------------------------------------------------------------- */

/* Whether an integer type holds an integer; -1: it is below, 1: above. */
static int misfit(const drupe_scalar *scalar, drupe_dtype dtype)
{
    const dtype_row *row = drupe_dtype_row(dtype);
    const unsigned bits = 8 * (unsigned)row->size;
    if (row->kind == KIND_UINT) {
        if (scalar->big) return row->size < 8;
        return scalar->i < 0 ? -1 : bits < 64 && scalar->i >> bits;
    }
    if (row->kind != KIND_INT) return 0;
    if (scalar->big) return 1;
    const int64_t highest = (int64_t)(UINT64_MAX >> (65 - bits));
    return scalar->i > highest ? 1 : scalar->i < -highest - 1 ? -1 : 0;
}

static drupe_status does_not_fit(const drupe_scalar *scalar, drupe_dtype dtype, const char *advice)
{
    char number[32];
    if (scalar->big)
        snprintf(number, sizeof(number), "%" PRIu64, (uint64_t)scalar->i);
    else
        snprintf(number, sizeof(number), "%" PRId64, scalar->i);
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "the integer %s does not fit into %s%s", number,
                           drupe_dtype_name(dtype), advice);
}

static double scalar_real(const drupe_scalar *scalar)
{
    if (scalar->kind >= DRUPE_SCALAR_KIND_FLOAT) return scalar->f;
    return scalar->big ? (double)(uint64_t)scalar->i : (double)scalar->i;
}

/* The integer that a scalar is cut to, like a cast in C. */
static drupe_status scalar_integer(const drupe_scalar *scalar, drupe_dtype dtype, int64_t *integer)
{
    drupe_scalar whole = {.kind = DRUPE_SCALAR_KIND_INT, .i = scalar->i, .big = scalar->big};
    if (scalar->kind >= DRUPE_SCALAR_KIND_FLOAT) {
        if (!(scalar->f >= -9223372036854775808.0 && scalar->f < 18446744073709551616.0))
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "%g does not fit into %s", scalar->f,
                                   drupe_dtype_name(dtype));
        whole.big = scalar->f >= 9223372036854775808.0;
        whole.i = whole.big ? (int64_t)(uint64_t)scalar->f : (int64_t)scalar->f;
    }
    *integer = whole.i;
    return misfit(&whole, dtype) ? does_not_fit(&whole, dtype, "") : DRUPE_OK;
}

/* An integer's last bytes, which of a two's complement are the shorter integer. */
static void store_integer(int64_t integer, size_t size, void *bytes)
{
    const int8_t one = (int8_t)integer;
    const int16_t two = (int16_t)integer;
    const int32_t four = (int32_t)integer;
    const void *const sources[] = {[1] = &one, [2] = &two, [4] = &four, [8] = &integer};
    memcpy(bytes, sources[size], size);
}

static void store_real(double value, drupe_dtype dtype, void *bytes)
{
    const float narrow = (float)value;
    const uint16_t half = half_bits_wide(value);
    if (dtype == DRUPE_FLOAT16)
        memcpy(bytes, &half, sizeof(half));
    else if (dtype == DRUPE_FLOAT32)
        memcpy(bytes, &narrow, sizeof(narrow));
    else
        memcpy(bytes, &value, sizeof(value));
}

drupe_status drupe_scalar_bytes(const drupe_scalar *scalar, drupe_dtype dtype, void *bytes)
{
    const dtype_row *row = drupe_dtype_row(dtype);
    const bool is_complex = scalar->kind == DRUPE_SCALAR_KIND_COMPLEX;
    int64_t integer = 0;
    if (row->kind == KIND_BOOL) {
        integer = scalar_real(scalar) != 0 || (is_complex && scalar->im != 0);
    } else if (row->kind == KIND_COMPLEX) {
        store_real(scalar_real(scalar), row->real, bytes);
        store_real(is_complex ? scalar->im : 0.0, row->real, (char *)bytes + row->size / 2);
        return DRUPE_OK;
    } else if (is_complex) {
        return drupe_error_set(DRUPE_E_INVALID,
                               "a complex number does not fit into %s: take its real part, or an array of "
                               "complex128",
                               row->name);
    } else if (row->kind == KIND_FLOAT) {
        store_real(scalar_real(scalar), dtype, bytes);
        return DRUPE_OK;
    } else {
        DRUPE_TRY(scalar_integer(scalar, dtype, &integer));
    }
    store_integer(integer, row->size, bytes);
    return DRUPE_OK;
}

static double load_real(const void *bytes, drupe_dtype dtype)
{
    double value = 0;
    float narrow;
    uint16_t half;
    if (dtype == DRUPE_FLOAT16) {
        memcpy(&half, bytes, sizeof(half));
        return (double)half_value(half);
    }
    if (dtype == DRUPE_FLOAT64) {
        memcpy(&value, bytes, sizeof(value));
        return value;
    }
    memcpy(&narrow, bytes, sizeof(narrow));
    return (double)narrow;
}

void drupe_scalar_load(const void *bytes, drupe_dtype dtype, drupe_scalar *scalar)
{
    const dtype_row *row = drupe_dtype_row(dtype);
    const unsigned unused = 64 - 8 * (unsigned)(row->size < 8 ? row->size : 8);
    uint64_t whole = 0;
    *scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_INT};
    if (row->kind >= KIND_FLOAT) {
        scalar->kind = row->kind == KIND_FLOAT ? DRUPE_SCALAR_KIND_FLOAT : DRUPE_SCALAR_KIND_COMPLEX;
        scalar->f = load_real(bytes, row->real);
        if (row->kind == KIND_COMPLEX) scalar->im = load_real((const char *)bytes + row->size / 2, row->real);
        return;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&whole, bytes, row->size);
    whole <<= unused;
#else
    memcpy(&whole, bytes, row->size);
#endif
    scalar->i = row->kind == KIND_INT ? (int64_t)whole >> unused : (int64_t)(whole >> unused);
    scalar->big = row->kind == KIND_UINT && row->size == 8 && scalar->i < 0;
    if (row->kind == KIND_BOOL) {
        scalar->kind = DRUPE_SCALAR_KIND_BOOL;
        scalar->i = scalar->i != 0;
    }
}

/* --- Results -------------------------------------------------------------------------------------------- */

/* The common type of arrays alone, or NONE. */
static drupe_dtype arrays_type(const op_row *row, const drupe_operand *in, size_t nin, bool *arrays)
{
    drupe_dtype common = DRUPE_DTYPE_NONE;
    for (size_t i = 0; i < nin; i++) {
        if (!in[i].array) continue;
        *arrays = true;
        if (row->truths >> i & 1) continue;
        const drupe_dtype dtype = in[i].array->dtype;
        common = common == DRUPE_DTYPE_NONE ? dtype : drupe_dtype_promote(common, dtype);
    }
    return common;
}

/* A weak scalar of a higher kind than the arrays' type makes it one of its kind. */
static drupe_dtype with_scalar(drupe_dtype common, const drupe_scalar *scalar)
{
    const int kind = drupe_dtype_row(common)->kind;
    if (scalar->kind == DRUPE_SCALAR_KIND_COMPLEX && kind < KIND_COMPLEX)
        return drupe_dtype_promote(kind < KIND_FLOAT ? DRUPE_FLOAT64 : common, DRUPE_COMPLEX64);
    if (scalar->kind == DRUPE_SCALAR_KIND_FLOAT && kind < KIND_FLOAT) return DRUPE_FLOAT64;
    if (scalar->kind == DRUPE_SCALAR_KIND_INT && kind < KIND_INT) return DRUPE_INT64;
    return common;
}

/* The common type of arrays and weak scalars. */
static drupe_dtype common_type(const op_row *row, const drupe_operand *in, size_t nin, bool fp64)
{
    bool arrays = false;
    drupe_dtype common = arrays_type(row, in, nin, &arrays);
    if (!arrays) return common;
    if (common == DRUPE_DTYPE_NONE) common = DRUPE_BOOL; /* the least: the scalars decide */
    for (size_t i = 0; i < nin; i++)
        if (!in[i].array && !(row->truths >> i & 1)) common = with_scalar(common, &in[i].scalar);
    return drupe_dtype_available(common, fp64);
}

/* A Python integer must fit the arrays' integer type. A comparison has an answer without: as its result tells
 * nothing of the type, it may be made in another, where what is beyond all numbers of the type is infinite.
 */
static drupe_status check_scalars(const op_row *row, const drupe_operand *in, size_t nin, bool fp64,
                                  op_types *types)
{
    for (size_t i = 0; i < nin; i++) {
        const drupe_scalar *scalar = &in[i].scalar;
        if (in[i].array || row->truths >> i & 1 || scalar->kind != DRUPE_SCALAR_KIND_INT ||
            !misfit(scalar, types->common))
            continue;
        if (row->result == RESULT_BOOL) {
            types->compute = drupe_float_default(fp64);
            types->beyond |= 1u << i;
        } else if (row->result == RESULT_SAME) {
            return does_not_fit(scalar, types->common, ": convert the array with astype first");
        }
    }
    return DRUPE_OK;
}

/* Integers to a negative power are no integers. What arrays hold, only the caller can find out in time. */
static drupe_status check_power(const drupe_operand *exponent, drupe_dtype common)
{
    if (drupe_dtype_row(common)->kind >= KIND_FLOAT || exponent->array || exponent->scalar.big ||
        exponent->scalar.i >= 0)
        return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID,
                           "integers have no power of %" PRId64 " among integers: convert them with "
                           "astype(float64) first, or write a float as the exponent",
                           exponent->scalar.i);
}

/* What numbers of a type are computed in by an operation. */
static drupe_dtype compute_type(const op_row *row, drupe_dtype dtype)
{
    const dtype_row *type = drupe_dtype_row(dtype);
    const bool whole = type->kind == KIND_INT || type->kind == KIND_UINT;
    return row->narrow && whole && type->size < 4 ? DRUPE_INT32 : type->compute;
}

drupe_status drupe_op_types(int op, const drupe_operand *in, size_t nin, bool fp64, op_types *types)
{
    const op_row *row = drupe_op_row(op);
    drupe_dtype common = common_type(row, in, nin, fp64);
    if (common == DRUPE_DTYPE_NONE)
        return drupe_error_set(DRUPE_E_INVALID, "%s needs at least one array among its operands", row->name);
    const int kind = drupe_dtype_row(common)->kind;
    if (!(row->takes & KIND_BIT(kind)))
        return drupe_error_set(
            DRUPE_E_INVALID, "%s does not take %s: %s first", row->name, drupe_dtype_name(common),
            kind == KIND_COMPLEX ? "take real(x), imag(x) or abs(x)" : "convert with astype");
    if (op == DRUPE_OP_POW) DRUPE_TRY(check_power(&in[1], common));
    if ((row->result == RESULT_FLOAT || row->result == RESULT_FLOAT_REAL) && kind < KIND_FLOAT)
        common = drupe_float_default(fp64);
    *types = (op_types){common, compute_type(row, common), common, 0};
    switch (row->result) {
    case RESULT_SAME:
    case RESULT_FLOAT: break;
    case RESULT_REAL:
    case RESULT_FLOAT_REAL: types->result = drupe_dtype_row(common)->real; break;
    case RESULT_BOOL: types->result = DRUPE_BOOL; break;
    case RESULT_LOGICAL: types->compute = types->result = DRUPE_BOOL; break;
    case RESULT_SUM:
        if (kind < KIND_FLOAT) types->result = kind == KIND_UINT ? DRUPE_UINT64 : DRUPE_INT64;
        drupe_reduce_types(op, types->result, types);
        break;
    }
    return check_scalars(row, in, nin, fp64, types);
}

void drupe_reduce_types(int op, drupe_dtype dtype, op_types *types)
{
    const op_row *row = drupe_op_row(op);
    const dtype_row *type = drupe_dtype_row(dtype);
    types->result = dtype;
    types->compute = row->result == RESULT_SUM && type->kind < KIND_FLOAT && type->kind > KIND_BOOL
                         ? DRUPE_INT64
                         : type->compute;
}

drupe_dtype drupe_op_result(drupe_op op, const drupe_operand *in, size_t nin)
{
    op_types types = {.result = DRUPE_DTYPE_NONE};
    bool fp64 = true;
    if ((int)op < 0 || op >= DRUPE_OP_COUNT || nin != (size_t)drupe_op_arity(op)) {
        (void)drupe_error_set(DRUPE_E_INVALID, "%s takes %d operands, not %zu", drupe_op_name(op),
                              drupe_op_arity(op), nin);
        return DRUPE_DTYPE_NONE;
    }
    for (size_t i = 0; i < nin; i++) {
        drupe_target *target;
        if (!in[i].array) continue;
        if (drupe_target_get(in[i].array->queue, &target) != DRUPE_OK) return DRUPE_DTYPE_NONE;
        fp64 = target->fp64;
        break;
    }
    return drupe_op_types((int)op, in, nin, fp64, &types) == DRUPE_OK ? types.result : DRUPE_DTYPE_NONE;
}

drupe_dtype drupe_copy_type(drupe_dtype from, drupe_dtype to)
{
    if (to == DRUPE_FLOAT16 && drupe_dtype_row(from)->real == DRUPE_FLOAT64) return DRUPE_FLOAT64;
    return drupe_dtype_row(to)->compute;
}

drupe_status drupe_op_constant(int op, const op_types *types, const drupe_operand *in, size_t i,
                               drupe_u64 bytes[2])
{
    const drupe_dtype wanted = drupe_op_input(drupe_op_row(op), types->compute, i);
    drupe_scalar scalar = in[i].scalar;
    memset(bytes, 0, 2 * sizeof(*bytes));
    if (types->beyond >> i & 1)
        scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_FLOAT,
                                .f = misfit(&scalar, types->common) < 0 ? -INFINITY : INFINITY};
    if (types->common == DRUPE_FLOAT16 && wanted == DRUPE_FLOAT32) {
        DRUPE_TRY(drupe_scalar_bytes(&scalar, DRUPE_FLOAT16, bytes));
        drupe_scalar_load(bytes, DRUPE_FLOAT16, &scalar);
    }
    return drupe_scalar_bytes(&scalar, wanted, bytes);
}
