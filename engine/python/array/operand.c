/* What operators and functions take, and running an operation on it.
 *
 * Scalars of Python and of NumPy are weak: they take the type of the arrays. Arrays of other libraries are
 * refused, since taking them would copy to the device without a word. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

/* Is it an instance of numpy.generic? NumPy is looked up among the imported modules, never imported. */
static bool numpy_scalar(drupe_py_state *state, PyObject *object)
{
    if (!state->numpy_generic) {
        PyObject *name = PyUnicode_FromString("numpy");
        PyObject *numpy = !name ? NULL : PyImport_GetModule(name);
        PyObject *generic = !numpy ? NULL : PyObject_GetAttrString(numpy, "generic");
        Py_XDECREF(numpy);
        Py_XDECREF(name);
        PyErr_Clear();
        if (!generic) return false;
        Py_XSETREF(state->numpy_generic, generic); /* Python code ran, and may have come here */
    }
    return PyObject_IsInstance(object, state->numpy_generic) == 1;
}

static int scalar_of_long(PyObject *object, drupe_scalar *scalar)
{
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    *scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_INT, .i = value, .f = (double)value};
    if (value == -1 && PyErr_Occurred()) return -1;
    if (overflow == 0) return 1;
    const unsigned long long high = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
    if (overflow > 0 && !PyErr_Occurred()) {
        *scalar =
            (drupe_scalar){.kind = DRUPE_SCALAR_KIND_INT, .i = (int64_t)high, .f = (double)high, .big = true};
        return 1;
    }
    PyErr_Format(PyExc_OverflowError,
                 "%R fits neither into int64 nor into uint64, the largest integer types of drupe.array",
                 object);
    return -1;
}

static int scalar_of_complex(PyObject *object, drupe_scalar *scalar)
{
    const Py_complex value = PyComplex_AsCComplex(object);
    if (value.real == -1.0 && PyErr_Occurred()) return -1;
    *scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_COMPLEX, .f = value.real, .im = value.imag};
    return 1;
}

static int scalar_of_bool(bool truth, drupe_scalar *scalar)
{
    *scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_BOOL, .i = truth, .f = truth};
    return 1;
}

static int scalar_of_numpy(PyObject *object, drupe_scalar *scalar)
{
    const char *name = Py_TYPE(object)->tp_name;
    if (strncmp(name, "numpy.bool", 10) == 0) return scalar_of_bool(PyObject_IsTrue(object) > 0, scalar);
    if (PyIndex_Check(object)) {
        PyObject *integer = PyNumber_Index(object);
        int result = !integer ? -1 : scalar_of_long(integer, scalar);
        Py_XDECREF(integer);
        return result;
    }
    if (strncmp(name, "numpy.complex", 13) == 0) return scalar_of_complex(object, scalar);
    /* Dates have no place here, nor have floats of more than 64 bits. */
    if (strncmp(name, "numpy.float", 11) != 0) return 0;
    *scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_FLOAT, .f = PyFloat_AsDouble(object)};
    return scalar->f == -1.0 && PyErr_Occurred() ? -1 : 1;
}

int drupe_py_scalar_arg(drupe_py_state *state, PyObject *object, drupe_scalar *scalar)
{
    if (PyFloat_Check(object)) {
        *scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_FLOAT, .f = PyFloat_AS_DOUBLE(object)};
        return 1;
    }
    if (PyBool_Check(object)) return scalar_of_bool(object == Py_True, scalar);
    if (PyLong_Check(object)) return scalar_of_long(object, scalar);
    if (PyComplex_Check(object)) return scalar_of_complex(object, scalar);
    return numpy_scalar(state, object) ? scalar_of_numpy(object, scalar) : 0;
}

int drupe_py_operand_arg(drupe_py_state *state, PyObject *object, drupe_operand *operand)
{
    operand->array = NULL;
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        operand->array = drupe_py_array_of(object);
        return 1;
    }
    return drupe_py_scalar_arg(state, object, &operand->scalar);
}

void drupe_py_operand_refuse(PyObject *object, const char *function)
{
    bool holds_data = PyObject_CheckBuffer(object) || PySequence_Check(object);
    PyErr_Format(PyExc_TypeError, "%s: operands are arrays of drupe.array and numbers, not %s%s", function,
                 Py_TYPE(object)->tp_name,
                 holds_data && !PyUnicode_Check(object)
                     ? ". Copy it to the device first: drupe.array.asarray(x)"
                     : "");
}

/* The same for a function that takes pending arrays. */
static const drupe_array *array_arg(drupe_py_state *state, PyObject *object, const char *function)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) return drupe_py_array_of(object);
    drupe_py_operand_refuse(object, function);
    return NULL;
}

const drupe_array *drupe_py_array_arg(drupe_py_state *state, PyObject *object, const char *function)
{
    const drupe_array *array = array_arg(state, object, function);
    return array && drupe_py_settle(state, array) ? array : NULL;
}

bool drupe_py_array_arg_or_none(drupe_py_state *state, PyObject *object, const char *function,
                                const drupe_array **array)
{
    *array = object == Py_None ? NULL : drupe_py_array_arg(state, object, function);
    return *array || object == Py_None;
}

drupe_py_state *drupe_py_array_args(PyObject *module, const char *function, PyObject *const *args,
                                    Py_ssize_t nargs, Py_ssize_t count, Py_ssize_t arrays)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    if (nargs != count) {
        PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", function, count, nargs);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < arrays; i++)
        if (!drupe_py_array_arg(state, args[i], function)) return NULL;
    return state;
}

/* --- Running ------------------------------------------------------------------------------------------- */

/* Distinguishes what may need a program of its own: operation, types, device and layout. One of the two may
 * be NULL. */
static uint64_t warm_key(int op, const drupe_array *a, const drupe_array *b)
{
    if (!a) {
        a = b;
        b = NULL;
    }
    if (!a) return 0;
    uint64_t key = (uint64_t)(uintptr_t)drupe_queue_device(a->queue) << 16;
    key ^= (uint64_t)(unsigned)op << 8 ^ (uint64_t)a->dtype << 4;
    key ^= (uint64_t)!drupe_array_contiguous(a) << 55;
    if (!b) return key ^ 15u;
    const bool alike =
        a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
    return key ^ (uint64_t)b->dtype ^ (uint64_t) !(alike && drupe_array_contiguous(b)) << 54;
}

/* A weak scalar and an output choose programs too. */
static uint64_t warm_key_of(drupe_op op, const drupe_operand *operands, size_t count, const drupe_array *out)
{
    const drupe_array *a = operands[0].array, *b = count > 1 ? operands[1].array : NULL;
    uint64_t key = warm_key((int)op, a, b);
    if (count > 2 && operands[2].array) key ^= warm_key(0, operands[2].array, a ? a : b) << 1;
    for (size_t i = 0; i < count; i++)
        if (!operands[i].array) key ^= (uint64_t)(operands[i].scalar.kind + 1) << 56;
    return key ^ (!out->memory ? 0 : (uint64_t)(out->dtype + 1) << 59);
}

/* Around a call of the engine that submits: the first of its kind runs without the GIL, since a program may
 * have to be built for it. NULL: it is not the first. */
static PyThreadState *first_begin(drupe_py_state *state, uint64_t key)
{
    return drupe_py_warm(state, key) ? NULL : drupe_py_site_leave();
}

static void first_end(PyThreadState *thread)
{
    if (thread) drupe_py_site_return(thread);
}

static drupe_status run(drupe_py_state *state, drupe_op op, const drupe_operand *operands, size_t count,
                        size_t spent, drupe_array *out)
{
    uint64_t key = warm_key_of(op, operands, count, out);
    PyThreadState *thread = first_begin(state, key);
    /* Others may get hold of a temporary operand while the GIL is not held. */
    drupe_status status = drupe_array_apply_over(op, operands, count, thread ? count : spent, out);
    first_end(thread);
    if (thread && status != DRUPE_OK) drupe_py_cool(state, key);
    return status;
}

static PyObject *apply_fail(drupe_py_state *state, const drupe_operand *operands, size_t count)
{
    drupe_queue *queue = NULL;
    for (size_t i = 0; i < count && !queue; i++)
        if (operands[i].array) queue = operands[i].array->queue;
    return drupe_py_raise_on(state, queue);
}

/* Whether integers are raised to powers that an array holds: negative ones have no result. */
static bool has_integer_powers(drupe_op op, const drupe_operand *operands)
{
    if (op != DRUPE_OP_POW || !operands[1].array || operands[1].array->size == 0) return false;
    const drupe_operand *base = &operands[0];
    const drupe_dtype exponents = operands[1].array->dtype;
    if (drupe_dtype_kind(exponents) != 'i') return false;
    if (!base->array) return base->scalar.kind < DRUPE_SCALAR_KIND_FLOAT;
    return drupe_dtype_kind(drupe_dtype_promote(base->array->dtype, exponents)) == 'i';
}

/* Waits for the least exponent: an error that came later would be one of another line. */
static bool powers_check(drupe_py_state *state, const drupe_array *exponents)
{
    drupe_array lowest = {0};
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status =
        drupe_array_reduce(DRUPE_OP_MIN, exponents, (uint32_t)((UINT64_C(1) << exponents->ndim) - 1), false,
                           DRUPE_DTYPE_NONE, &lowest);
    drupe_py_site_return(thread);
    if (status != DRUPE_OK) {
        drupe_py_raise_on(state, exponents->queue);
        return false;
    }
    PyObject *item = drupe_py_array_item(state, &lowest);
    long long value = !item ? -1 : PyLong_AsLongLong(item);
    Py_XDECREF(item);
    drupe_array_clear(&lowest);
    if (item && value < 0)
        drupe_py_raise_text(state, DRUPE_E_INVALID,
                            "integers have no power of %lld among integers: convert them with "
                            "astype(float64) first",
                            value);
    return item != NULL && value >= 0;
}

PyObject *drupe_py_apply(drupe_py_state *state, drupe_op op, const drupe_operand *operands, size_t count,
                         PyObject *out)
{
    return drupe_py_apply_over(state, op, operands, count, count, out);
}

PyObject *drupe_py_apply_over(drupe_py_state *state, drupe_op op, const drupe_operand *operands, size_t count,
                              size_t spent, PyObject *out)
{
    drupe_array result;
    drupe_array_none(&result);
    if (has_integer_powers(op, operands)) {
        if (!powers_check(state, operands[1].array)) return NULL;
        spent = count; /* others may have got hold of it */
    }
    if (out) {
        if (run(state, op, operands, count, count, drupe_py_array_of(out)) != DRUPE_OK)
            return apply_fail(state, operands, count);
        return Py_NewRef(out);
    }
    if (run(state, op, operands, count, spent, &result) != DRUPE_OK)
        return apply_fail(state, operands, count);
    return drupe_py_array_wrap(state, &result);
}

PyObject *drupe_py_reduce(drupe_py_state *state, drupe_op op, PyObject *object, PyObject *axis,
                          PyObject *dtype, PyObject *keepdims)
{
    const drupe_array *array = array_arg(state, object, drupe_op_name(op));
    if (!array) return NULL;
    drupe_dtype wanted = DRUPE_DTYPE_NONE;
    uint32_t axes;
    int keep = drupe_py_flag(keepdims, 0);
    if (keep < 0 || !drupe_py_dtype_arg(state, dtype, &wanted) ||
        !drupe_py_axes_arg(axis, array->ndim, &axes))
        return NULL;
    drupe_array result = {0};
    PyThreadState *thread = first_begin(state, warm_key((int)op, array, NULL) ^ (uint64_t)axes << 56 ^
                                                   (uint64_t)(wanted + 1) << 48);
    /* Others may get hold of a temporary operand while the GIL is not held. */
    const bool spent = !thread && Py_REFCNT(object) == 1;
    drupe_status status = drupe_array_reduce_over(op, array, axes, keep != 0, wanted, spent, &result);
    return drupe_py_array_made(state, thread, status, array->queue, &result);
}

/* Numbers beside those of the table's operations, for drupe_py_warm(). */
enum { WARM_ASSIGN = DRUPE_OP_COUNT, WARM_MATMUL, WARM_INDEX = WARM_MATMUL + DRUPE_MAX_DIMS + 1 };

/* A cast that drops imaginary parts without a word is refused. */
static bool parts_kept(const drupe_array *array, const drupe_operand *value)
{
    const char kind = drupe_dtype_kind(array->dtype);
    const bool is_complex = value->array ? drupe_dtype_kind(value->array->dtype) == 'c'
                                         : value->scalar.kind == DRUPE_SCALAR_KIND_COMPLEX;
    if (!is_complex || kind == 'c' || kind == 'b') return true;
    PyErr_Format(PyExc_TypeError,
                 "complex numbers do not fit into %s: take drupe.array.real(x) or drupe.array.imag(x) first",
                 drupe_dtype_name(array->dtype));
    return false;
}

PyObject *drupe_py_array_cast(drupe_py_state *state, const drupe_array *array, drupe_dtype dtype)
{
    const drupe_array wanted = {.dtype = dtype};
    const drupe_operand operand = {.array = array};
    drupe_array result;
    if (!parts_kept(&wanted, &operand)) return NULL;
    PyThreadState *thread =
        first_begin(state, warm_key(WARM_ASSIGN, array, NULL) ^ (uint64_t)(dtype + 1) << 59);
    drupe_status status = drupe_array_cast(array, dtype, &result);
    first_end(thread);
    if (status != DRUPE_OK) return drupe_py_raise_on(state, array->queue);
    return drupe_py_array_wrap(state, &result);
}

bool drupe_py_assign(drupe_py_state *state, const drupe_array *array, const drupe_operand *value)
{
    if (!parts_kept(array, value)) return false;
    PyThreadState *thread = first_begin(state, warm_key(WARM_ASSIGN, array, value->array));
    drupe_status status = drupe_array_assign(array, value);
    first_end(thread);
    if (status != DRUPE_OK) drupe_py_raise_on(state, array->queue);
    return status == DRUPE_OK;
}

PyObject *drupe_py_into(drupe_py_state *state, PyObject *result, PyObject *out)
{
    if (!result || !drupe_py_given(out)) return result;
    const drupe_array *from = drupe_py_array_of(result);
    bool good = drupe_py_is(state, out, DRUPE_PY_TYPE_Array);
    if (!good) PyErr_SetString(PyExc_TypeError, "out must be a drupe.array.Array");
    if (good &&
        (from->ndim != drupe_py_array_of(out)->ndim ||
         memcmp(from->shape, drupe_py_array_of(out)->shape, (size_t)from->ndim * sizeof *from->shape) != 0)) {
        PyErr_SetString(PyExc_ValueError, "out must have the shape of the result");
        good = false;
    }
    drupe_operand operand = {.array = from};
    good = good && drupe_py_assign(state, drupe_py_array_of(out), &operand);
    Py_DECREF(result);
    return good ? Py_NewRef(out) : NULL;
}

PyObject *drupe_py_matmul(drupe_py_state *state, PyObject *a, PyObject *b, PyObject *out)
{
    if (drupe_py_given(out) && !drupe_py_is(state, out, DRUPE_PY_TYPE_Array)) {
        PyErr_SetString(PyExc_TypeError, "out must be a drupe.array.Array");
        return NULL;
    }
    const drupe_array *left = drupe_py_array_arg(state, a, "matmul");
    const drupe_array *right = left ? drupe_py_array_arg(state, b, "matmul") : NULL;
    if (!right || (drupe_py_given(out) && !drupe_py_settle(state, drupe_py_array_of(out)))) return NULL;
    drupe_array result = {0};
    PyThreadState *thread = first_begin(state, warm_key(WARM_MATMUL + left->ndim, left, right));
    drupe_status status =
        drupe_array_matmul(left, right, drupe_py_given(out) ? drupe_py_array_of(out) : &result);
    if (!drupe_py_given(out)) return drupe_py_array_made(state, thread, status, left->queue, &result);
    first_end(thread);
    return status == DRUPE_OK ? Py_NewRef(out) : drupe_py_raise_on(state, left->queue);
}

PyThreadState *drupe_py_index_begin(drupe_py_state *state, const drupe_array *array, const drupe_array *other)
{
    return first_begin(state, warm_key(WARM_INDEX, array, other));
}

void drupe_py_index_end(PyThreadState *thread)
{
    first_end(thread);
}
