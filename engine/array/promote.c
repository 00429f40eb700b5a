/* Element types of results.
 *
 * Arrays promote by the generated matrix. Python scalars are weak: one changes the type only when its kind
 * (bool < int < float) is above that of the arrays. A device without float64 has float32 as its widest. */
#include "array/array_room.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool fits(const drupe_scalar *scalar, drupe_dtype dtype)
{
    return dtype != DRUPE_INT32 || (scalar->i >= INT32_MIN && scalar->i <= INT32_MAX);
}

/* The common type of arrays and weak scalars. */
static drupe_dtype common_type(const op_row *row, const drupe_operand *in, size_t nin, bool fp64)
{
    drupe_dtype common = DRUPE_DTYPE_NONE;
    bool arrays = false;
    for (size_t i = 0; i < nin; i++) {
        arrays = arrays || in[i].array;
        if (!in[i].array || row->truths >> i & 1) continue;
        common =
            common == DRUPE_DTYPE_NONE ? in[i].array->dtype : drupe_dtype_promote(common, in[i].array->dtype);
    }
    if (!arrays) return common;
    if (common == DRUPE_DTYPE_NONE) common = DRUPE_BOOL; /* the least: the scalars decide */
    for (size_t i = 0; i < nin; i++) {
        if (in[i].array || row->truths >> i & 1) continue;
        const int kind = drupe_dtype_row(common)->kind;
        if (in[i].scalar.kind == DRUPE_SCALAR_KIND_FLOAT && kind < KIND_FLOAT)
            common = DRUPE_FLOAT64;
        else if (in[i].scalar.kind == DRUPE_SCALAR_KIND_INT && kind < KIND_INT)
            common = DRUPE_INT64;
    }
    return common == DRUPE_FLOAT64 && !fp64 ? DRUPE_FLOAT32 : common;
}

/* A Python integer must fit the arrays' integer type; a comparison widens instead, as its result tells
 * nothing of the type. */
static drupe_status check_scalars(const op_row *row, const drupe_operand *in, size_t nin, drupe_dtype *common)
{
    for (size_t i = 0; i < nin; i++) {
        const drupe_scalar *scalar = &in[i].scalar;
        if (in[i].array || row->truths >> i & 1 || scalar->kind != DRUPE_SCALAR_KIND_INT ||
            fits(scalar, *common))
            continue;
        if (row->result == RESULT_BOOL) {
            *common = DRUPE_INT64;
        } else if (row->result == RESULT_SAME) {
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                                   "the integer %" PRId64 " does not fit into %s: convert the array with "
                                   "astype(int64) first",
                                   scalar->i, drupe_dtype_name(*common));
        }
    }
    return DRUPE_OK;
}

/* Integers to a negative power are no integers. What arrays hold, only the caller can find out in time. */
static drupe_status check_power(const drupe_operand *exponent, drupe_dtype common)
{
    if (drupe_dtype_row(common)->kind != KIND_INT || exponent->array || exponent->scalar.i >= 0)
        return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID,
                           "integers have no power of %" PRId64 " among integers: convert them with "
                           "astype(float64) first, or write a float as the exponent",
                           exponent->scalar.i);
}

drupe_status drupe_op_types(int op, const drupe_operand *in, size_t nin, bool fp64, op_types *types)
{
    const op_row *row = drupe_op_row(op);
    drupe_dtype common = common_type(row, in, nin, fp64);
    if (common == DRUPE_DTYPE_NONE)
        return drupe_error_set(DRUPE_E_INVALID, "%s needs at least one array among its operands", row->name);
    if (!(row->takes & KIND_BIT(drupe_dtype_row(common)->kind)))
        return drupe_error_set(DRUPE_E_INVALID, "%s does not take %s: convert with astype first", row->name,
                               drupe_dtype_name(common));
    DRUPE_TRY(check_scalars(row, in, nin, &common));
    if (op == DRUPE_OP_POW) DRUPE_TRY(check_power(&in[1], common));
    const int kind = drupe_dtype_row(common)->kind;
    *types = (op_types){common, common};
    switch (row->result) {
    case RESULT_SAME: break;
    case RESULT_FLOAT:
        if (kind != KIND_FLOAT) common = fp64 ? DRUPE_FLOAT64 : DRUPE_FLOAT32;
        *types = (op_types){common, common};
        break;
    case RESULT_BOOL: types->result = DRUPE_BOOL; break;
    case RESULT_LOGICAL: *types = (op_types){DRUPE_BOOL, DRUPE_BOOL}; break;
    case RESULT_SUM:
        if (kind != KIND_FLOAT) *types = (op_types){DRUPE_INT64, DRUPE_INT64};
        break;
    }
    return DRUPE_OK;
}

drupe_dtype drupe_op_result(drupe_op op, const drupe_operand *in, size_t nin)
{
    op_types types = {DRUPE_DTYPE_NONE, DRUPE_DTYPE_NONE};
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

/* The integer that a scalar is cut to, like a cast in C. */
static drupe_status scalar_integer(const drupe_scalar *scalar, drupe_dtype dtype, int64_t *integer)
{
    *integer = scalar->i;
    if (scalar->kind == DRUPE_SCALAR_KIND_FLOAT) {
        if (!(scalar->f >= -9223372036854775808.0 && scalar->f < 9223372036854775808.0))
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "%g does not fit into %s", scalar->f,
                                   drupe_dtype_name(dtype));
        *integer = (int64_t)scalar->f;
    }
    const drupe_scalar whole = {.kind = DRUPE_SCALAR_KIND_INT, .i = *integer};
    if (fits(&whole, dtype)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "%" PRId64 " does not fit into %s", *integer,
                           drupe_dtype_name(dtype));
}

drupe_status drupe_scalar_bytes(const drupe_scalar *scalar, drupe_dtype dtype, drupe_u64 *bytes)
{
    const bool is_float = scalar->kind == DRUPE_SCALAR_KIND_FLOAT;
    const double number = is_float ? scalar->f : (double)scalar->i;
    int64_t integer = 0;
    *bytes = 0;
    if (dtype == DRUPE_BOOL) {
        const uint8_t value = is_float ? scalar->f != 0 : scalar->i != 0;
        memcpy(bytes, &value, sizeof(value));
    } else if (dtype == DRUPE_FLOAT32) {
        const float value = is_float ? (float)scalar->f : (float)scalar->i;
        memcpy(bytes, &value, sizeof(value));
    } else if (dtype == DRUPE_FLOAT64) {
        memcpy(bytes, &number, sizeof(number));
    } else {
        DRUPE_TRY(scalar_integer(scalar, dtype, &integer));
        const int32_t narrow = (int32_t)integer;
        if (dtype == DRUPE_INT32)
            memcpy(bytes, &narrow, sizeof(narrow));
        else
            memcpy(bytes, &integer, sizeof(integer));
    }
    return DRUPE_OK;
}
