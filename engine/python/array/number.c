/* The operators of Array, and its type.
 *
 * Each operator is a row that names its operation. A bitwise operator between bools is a logical one. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

/* An operator, and the operations of the table that it is: among other operands, and among bools alone. */
typedef struct operator
{
    const char *symbol;
    drupe_op op, bool_op;
}
operator;

static bool is_bool(const drupe_operand *operand)
{
    return operand->array != NULL ? operand->array->dtype == DRUPE_BOOL
                                  : operand->scalar.kind == DRUPE_SCALAR_KIND_BOOL;
}

static drupe_op op_of(const operator* self, const drupe_operand *operands, size_t count)
{
    bool bools = true;
    for (size_t i = 0; i < count; i++) bools = bools && is_bool(&operands[i]);
    return bools ? self->bool_op : self->op;
}

/* Data of other libraries is refused with advice; anything else may have an operator of its own for us. */
static PyObject *not_operand(PyObject *object, const operator* self)
{
    if (!PyObject_CheckBuffer(object) && !PyList_Check(object) && !PyTuple_Check(object))
        Py_RETURN_NOTIMPLEMENTED;
    char function[32];
    PyOS_snprintf(function, sizeof function, "operator %s", self->symbol);
    drupe_py_operand_refuse(object, function);
    return NULL;
}

/* The operation of one operand that a power is, as NumPy has it: a square, a root, a reciprocal. These are
 * quicker, and their last digit is right. DRUPE_OP_POW: none. */
static drupe_op power_simpler(const drupe_operand operands[2])
{
    const drupe_scalar *exponent = &operands[1].scalar;
    if (!operands[0].array || operands[1].array) return DRUPE_OP_POW;
    const char kind = drupe_dtype_kind(operands[0].array->dtype);
    const bool integer = exponent->kind == DRUPE_SCALAR_KIND_INT && !exponent->big;
    if (kind == 'i' || kind == 'u') return integer && exponent->i == 2 ? DRUPE_OP_SQUARE : DRUPE_OP_POW;
    if (kind == 'b' || !(integer || exponent->kind == DRUPE_SCALAR_KIND_FLOAT)) return DRUPE_OP_POW;
    const double value = integer ? (double)exponent->i : exponent->f;
    return value == 2      ? DRUPE_OP_SQUARE
           : value == 0.5  ? DRUPE_OP_SQRT
           : value == 1    ? DRUPE_OP_POSITIVE
           : value == -1.0 ? DRUPE_OP_RECIPROCAL
                           : DRUPE_OP_POW;
}

/* Integers divided by a power of two are shifted, and what remains are the lower bits: vectors have no
 * division of integers. Rounds down, too. Changes the second operand where it is such a power that fits the
 * first one's type. */
static drupe_op division_simpler(drupe_op op, drupe_operand operands[2])
{
    drupe_scalar *divisor = &operands[1].scalar;
    if (!operands[0].array || operands[1].array) return op;
    const drupe_dtype dtype = operands[0].array->dtype;
    const char kind = drupe_dtype_kind(dtype);
    if ((kind != 'i' && kind != 'u') || divisor->kind != DRUPE_SCALAR_KIND_INT || divisor->big) return op;
    if (divisor->i <= 0 || (divisor->i & (divisor->i - 1)) != 0) return op;
    int shift = 0;
    while (divisor->i >> shift > 1) shift++;
    if (shift >= (int)(8 * drupe_dtype_size(dtype)) - (kind == 'i')) return op;
    divisor->i = op == DRUPE_OP_REMAINDER ? divisor->i - 1 : shift;
    return op == DRUPE_OP_REMAINDER ? DRUPE_OP_BITWISE_AND : DRUPE_OP_BITWISE_RIGHT_SHIFT;
}

static PyObject *binary(PyObject *a, PyObject *b, const operator* self, PyObject *out)
{
    drupe_py_state *state = drupe_py_state_of_pair(a, b);
    PyObject *const objects[] = {a, b};
    drupe_operand operands[2];
    if (!state) Py_RETURN_NOTIMPLEMENTED;
    if (!drupe_py_enter(state)) return NULL;
    for (int i = 0; i < 2; i++) {
        int found = drupe_py_operand_arg(state, objects[i], &operands[i]);
        if (found < 0) return NULL;
        if (found == 0) return not_operand(objects[i], self);
    }
    drupe_op op = op_of(self, operands, 2);
    const size_t spent = !out ? drupe_py_temporary(a, b, operands) : 2;
    if (op == DRUPE_OP_POW) op = power_simpler(operands);
    if (op == DRUPE_OP_FLOOR_DIVIDE || op == DRUPE_OP_REMAINDER) op = division_simpler(op, operands);
    const size_t count = self->op == DRUPE_OP_POW && op != DRUPE_OP_POW ? 1 : 2;
    return drupe_py_apply_over(state, op, operands, count, spent < count ? spent : count, out);
}

static PyObject *unary(PyObject *array, const operator* self)
{
    drupe_py_state *state = drupe_py_state_of(array);
    drupe_operand operand = {.array = drupe_py_array_of(array)};
    if (!drupe_py_enter(state)) return NULL;
    return drupe_py_apply(state, op_of(self, &operand, 1), &operand, 1, NULL);
}

#define BINARY(name, symbol, op, bool_op)                                                                    \
    static const operator operator_##name = {symbol, op, bool_op};                                           \
    static PyObject *number_##name(PyObject *a, PyObject *b)                                                 \
    {                                                                                                        \
        return binary(a, b, &operator_##name, NULL);                                                         \
    }                                                                                                        \
    static PyObject *number_inplace_##name(PyObject *a, PyObject *b)                                         \
    {                                                                                                        \
        return binary(a, b, &operator_##name, a);                                                            \
    }

#define UNARY(name, symbol, op, bool_op)                                                                     \
    static const operator operator_##name = {symbol, op, bool_op};                                           \
    static PyObject *number_##name(PyObject *self)                                                           \
    {                                                                                                        \
        return unary(self, &operator_##name);                                                                \
    }

BINARY(add, "+", DRUPE_OP_ADD, DRUPE_OP_ADD)
BINARY(subtract, "-", DRUPE_OP_SUBTRACT, DRUPE_OP_SUBTRACT)
BINARY(multiply, "*", DRUPE_OP_MULTIPLY, DRUPE_OP_MULTIPLY)
BINARY(divide, "/", DRUPE_OP_DIVIDE, DRUPE_OP_DIVIDE)
BINARY(floor_divide, "//", DRUPE_OP_FLOOR_DIVIDE, DRUPE_OP_FLOOR_DIVIDE)
BINARY(remainder, "%", DRUPE_OP_REMAINDER, DRUPE_OP_REMAINDER)
BINARY(and, "&", DRUPE_OP_BITWISE_AND, DRUPE_OP_LOGICAL_AND)
BINARY(or, "|", DRUPE_OP_BITWISE_OR, DRUPE_OP_LOGICAL_OR)
BINARY(xor, "^", DRUPE_OP_BITWISE_XOR, DRUPE_OP_NOT_EQUAL)
BINARY(lshift, "<<", DRUPE_OP_BITWISE_LEFT_SHIFT, DRUPE_OP_BITWISE_LEFT_SHIFT)
BINARY(rshift, ">>", DRUPE_OP_BITWISE_RIGHT_SHIFT, DRUPE_OP_BITWISE_RIGHT_SHIFT)
UNARY(negative, "-", DRUPE_OP_NEGATIVE, DRUPE_OP_NEGATIVE)
UNARY(positive, "+", DRUPE_OP_POSITIVE, DRUPE_OP_POSITIVE)
UNARY(absolute, "abs", DRUPE_OP_ABS, DRUPE_OP_ABS)
UNARY(invert, "~", DRUPE_OP_BITWISE_INVERT, DRUPE_OP_LOGICAL_NOT)

static PyObject *power(PyObject *a, PyObject *b, PyObject *modulus, PyObject *out)
{
    static const operator self = {"**", DRUPE_OP_POW, DRUPE_OP_POW};
    if (modulus == Py_None) return binary(a, b, &self, out);
    PyErr_SetString(PyExc_TypeError, "pow() of arrays takes no modulus: write (a ** b) % m");
    return NULL;
}

static PyObject *number_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return power(a, b, modulus, NULL);
}

static PyObject *number_inplace_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return power(a, b, modulus, a);
}

static PyObject *number_matmul(PyObject *a, PyObject *b)
{
    drupe_py_state *state = drupe_py_state_of_pair(a, b);
    if (!state) Py_RETURN_NOTIMPLEMENTED;
    return drupe_py_enter(state) && drupe_py_providers_find() ? drupe_py_matmul(state, a, b, NULL) : NULL;
}

static PyObject *number_compare(PyObject *self, PyObject *other, int op)
{
    static const operator operators[] = {
        [Py_LT] = {"<", DRUPE_OP_LESS, DRUPE_OP_LESS},
        [Py_LE] = {"<=", DRUPE_OP_LESS_EQUAL, DRUPE_OP_LESS_EQUAL},
        [Py_EQ] = {"==", DRUPE_OP_EQUAL, DRUPE_OP_EQUAL},
        [Py_NE] = {"!=", DRUPE_OP_NOT_EQUAL, DRUPE_OP_NOT_EQUAL},
        [Py_GT] = {">", DRUPE_OP_GREATER, DRUPE_OP_GREATER},
        [Py_GE] = {">=", DRUPE_OP_GREATER_EQUAL, DRUPE_OP_GREATER_EQUAL},
    };
    return binary(self, other, &operators[op], NULL);
}

/* --- Python numbers: these wait ------------------------------------------------------------------------ */

static PyObject *item_as(PyObject *self, PyObject *(*convert)(PyObject *number))
{
    PyObject *item = drupe_py_array_item(drupe_py_state_of(self), drupe_py_array_of(self));
    PyObject *result = !item ? NULL : convert(item);
    Py_XDECREF(item);
    return result;
}

static PyObject *number_float(PyObject *self)
{
    return item_as(self, PyNumber_Float);
}

static PyObject *number_int(PyObject *self)
{
    return item_as(self, PyNumber_Long);
}

static PyObject *number_index(PyObject *self)
{
    const drupe_array *array = drupe_py_array_of(self);
    const char kind = drupe_dtype_kind(array->dtype);
    if (array->ndim == 0 && (kind == 'i' || kind == 'u')) return number_int(self);
    PyErr_Format(
        PyExc_TypeError,
        "only an integer array without dimensions can be an index, and this one is %s with %d dimensions",
        drupe_dtype_name(array->dtype), array->ndim);
    return NULL;
}

static int number_bool(PyObject *self)
{
    const drupe_array *array = drupe_py_array_of(self);
    if (array->size != 1) {
        PyErr_Format(PyExc_ValueError,
                     "the truth of an array of %zu elements is ambiguous; say drupe.array.any(x) or "
                     "drupe.array.all(x)",
                     array->size);
        return -1;
    }
    PyObject *item = drupe_py_array_item(drupe_py_state_of(self), array);
    int truth = !item ? -1 : PyObject_IsTrue(item);
    Py_XDECREF(item);
    return truth;
}

/* --- The type ------------------------------------------------------------------------------------------ */

static PyType_Slot array_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "An array on a device. Made by drupe.array.asarray(), zeros() and their like;\n"
         "its work is queued, and only reading its elements waits.\n\n"
         "Its data type is one of 14, it has up to 32 axes, and operators and indices work as NumPy's\n"
         "do. An error that depends on values alone comes where elements are read.\n\n"
         ">>> x = asarray([[1, 2], [3, 4]])\n>>> (2 * x)[:, 0].tolist()\n[2, 6]")},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(drupe_py_array_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(drupe_py_array_repr)},
    {Py_tp_str, DRUPE_PY_FUNCTION(drupe_py_array_str)},
    {Py_tp_hash, DRUPE_PY_FUNCTION(PyObject_HashNotImplemented)},
    {Py_tp_iter, DRUPE_PY_FUNCTION(drupe_py_array_iter)},
    {Py_tp_richcompare, DRUPE_PY_FUNCTION(number_compare)},
    {Py_tp_methods, drupe_py_array_methods},
    {Py_tp_members, drupe_py_array_members},
    {Py_tp_getset, drupe_py_array_getset},
    {Py_mp_length, DRUPE_PY_FUNCTION(drupe_py_array_length)},
    {Py_mp_subscript, DRUPE_PY_FUNCTION(drupe_py_array_subscript)},
    {Py_mp_ass_subscript, DRUPE_PY_FUNCTION(drupe_py_array_subscript_set)},
    {Py_sq_length, DRUPE_PY_FUNCTION(drupe_py_array_length)},
    {Py_sq_item, DRUPE_PY_FUNCTION(drupe_py_array_row)},
    {Py_bf_getbuffer, DRUPE_PY_FUNCTION(drupe_py_array_getbuffer)},
    {Py_bf_releasebuffer, DRUPE_PY_FUNCTION(drupe_py_array_releasebuffer)},
    {Py_nb_add, DRUPE_PY_FUNCTION(number_add)},
    {Py_nb_inplace_add, DRUPE_PY_FUNCTION(number_inplace_add)},
    {Py_nb_subtract, DRUPE_PY_FUNCTION(number_subtract)},
    {Py_nb_inplace_subtract, DRUPE_PY_FUNCTION(number_inplace_subtract)},
    {Py_nb_multiply, DRUPE_PY_FUNCTION(number_multiply)},
    {Py_nb_inplace_multiply, DRUPE_PY_FUNCTION(number_inplace_multiply)},
    {Py_nb_true_divide, DRUPE_PY_FUNCTION(number_divide)},
    {Py_nb_inplace_true_divide, DRUPE_PY_FUNCTION(number_inplace_divide)},
    {Py_nb_floor_divide, DRUPE_PY_FUNCTION(number_floor_divide)},
    {Py_nb_inplace_floor_divide, DRUPE_PY_FUNCTION(number_inplace_floor_divide)},
    {Py_nb_remainder, DRUPE_PY_FUNCTION(number_remainder)},
    {Py_nb_inplace_remainder, DRUPE_PY_FUNCTION(number_inplace_remainder)},
    {Py_nb_power, DRUPE_PY_FUNCTION(number_power)},
    {Py_nb_inplace_power, DRUPE_PY_FUNCTION(number_inplace_power)},
    {Py_nb_and, DRUPE_PY_FUNCTION(number_and)},
    {Py_nb_inplace_and, DRUPE_PY_FUNCTION(number_inplace_and)},
    {Py_nb_or, DRUPE_PY_FUNCTION(number_or)},
    {Py_nb_inplace_or, DRUPE_PY_FUNCTION(number_inplace_or)},
    {Py_nb_xor, DRUPE_PY_FUNCTION(number_xor)},
    {Py_nb_inplace_xor, DRUPE_PY_FUNCTION(number_inplace_xor)},
    {Py_nb_lshift, DRUPE_PY_FUNCTION(number_lshift)},
    {Py_nb_inplace_lshift, DRUPE_PY_FUNCTION(number_inplace_lshift)},
    {Py_nb_rshift, DRUPE_PY_FUNCTION(number_rshift)},
    {Py_nb_inplace_rshift, DRUPE_PY_FUNCTION(number_inplace_rshift)},
    {Py_nb_negative, DRUPE_PY_FUNCTION(number_negative)},
    {Py_nb_positive, DRUPE_PY_FUNCTION(number_positive)},
    {Py_nb_absolute, DRUPE_PY_FUNCTION(number_absolute)},
    {Py_nb_invert, DRUPE_PY_FUNCTION(number_invert)},
    {Py_nb_matrix_multiply, DRUPE_PY_FUNCTION(number_matmul)},
    {Py_nb_float, DRUPE_PY_FUNCTION(number_float)},
    {Py_nb_int, DRUPE_PY_FUNCTION(number_int)},
    {Py_nb_index, DRUPE_PY_FUNCTION(number_index)},
    {Py_nb_bool, DRUPE_PY_FUNCTION(number_bool)},
    {0, NULL},
};

DRUPE_PY_SPEC(Array, "drupe.array.Array", drupe_py_array,
              Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, array_slots);
