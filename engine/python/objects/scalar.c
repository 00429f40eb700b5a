/* Python numbers as scalars of a device, with range checks. */
#include "engine/python/objects/objects_room.h"

static const struct {
    const char *name;
    uint8_t size;
    bool integer;
    int64_t low;
    uint64_t high;
} scalars[] = {
    [DRUPE_SCALAR_UNKNOWN] = {"value", 0, false, 0, 0},
    [DRUPE_SCALAR_I8] = {"char", 1, true, INT8_MIN, INT8_MAX},
    [DRUPE_SCALAR_U8] = {"uchar", 1, true, 0, UINT8_MAX},
    [DRUPE_SCALAR_I16] = {"short", 2, true, INT16_MIN, INT16_MAX},
    [DRUPE_SCALAR_U16] = {"ushort", 2, true, 0, UINT16_MAX},
    [DRUPE_SCALAR_I32] = {"int", 4, true, INT32_MIN, INT32_MAX},
    [DRUPE_SCALAR_U32] = {"uint", 4, true, 0, UINT32_MAX},
    [DRUPE_SCALAR_I64] = {"long", 8, true, INT64_MIN, INT64_MAX},
    [DRUPE_SCALAR_U64] = {"ulong", 8, true, 0, UINT64_MAX},
    [DRUPE_SCALAR_F16] = {"half", 2, false, 0, 0},
    [DRUPE_SCALAR_F32] = {"float", 4, false, 0, 0},
    [DRUPE_SCALAR_F64] = {"double", 8, false, 0, 0},
};

const char *drupe_py_scalar_name(drupe_scalar_type type)
{
    return scalars[type].name;
}

size_t drupe_py_scalar_size(drupe_scalar_type type)
{
    return scalars[type].size;
}

drupe_scalar_type drupe_py_scalar_of(drupe_dtype dtype)
{
    switch (dtype) {
    case DRUPE_BOOL: return DRUPE_SCALAR_U8;
    case DRUPE_INT8: return DRUPE_SCALAR_I8;
    case DRUPE_UINT8: return DRUPE_SCALAR_U8;
    case DRUPE_INT16: return DRUPE_SCALAR_I16;
    case DRUPE_UINT16: return DRUPE_SCALAR_U16;
    case DRUPE_INT32: return DRUPE_SCALAR_I32;
    case DRUPE_UINT32: return DRUPE_SCALAR_U32;
    case DRUPE_INT64: return DRUPE_SCALAR_I64;
    case DRUPE_UINT64: return DRUPE_SCALAR_U64;
    case DRUPE_FLOAT16: return DRUPE_SCALAR_F16;
    case DRUPE_FLOAT32: return DRUPE_SCALAR_F32;
    case DRUPE_FLOAT64: return DRUPE_SCALAR_F64;
    default: return DRUPE_SCALAR_UNKNOWN;
    }
}

static bool range_error(PyObject *object, drupe_scalar_type type, const char *what)
{
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "%s is %R, which does not fit into %s", what, object,
                 scalars[type].name);
    return false;
}

static bool integer_bytes(PyObject *object, drupe_scalar_type type, const char *what, void *bytes)
{
    if (!PyLong_CheckExact(object) && (PyFloat_Check(object) || !PyIndex_Check(object))) {
        PyErr_Format(PyExc_TypeError, "%s must be an integer (its type is %s), not %s", what,
                     scalars[type].name, Py_TYPE(object)->tp_name);
        return false;
    }
    PyObject *integer = PyLong_CheckExact(object) ? Py_NewRef(object) : PyNumber_Index(object);
    if (!integer) return false;
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    uint64_t bits = (uint64_t)value;
    bool good =
        overflow == 0 && value >= scalars[type].low && (value < 0 || (uint64_t)value <= scalars[type].high);
    if (overflow > 0 && type == DRUPE_SCALAR_U64) {
        bits = PyLong_AsUnsignedLongLong(integer);
        good = !PyErr_Occurred();
    }
    Py_DECREF(integer);
    if (!good) return range_error(object, type, what);
    size_t size = scalars[type].size; /* the lowest bytes are meant */
    memcpy(bytes, (char *)&bits + (PY_BIG_ENDIAN ? sizeof bits - size : 0), size);
    return true;
}

static bool float_bytes(PyObject *object, drupe_scalar_type type, const char *what, void *bytes)
{
    /* An array of one element is a number to Python, but not a scalar. */
    bool plain = PyFloat_CheckExact(object);
    if (!plain && PySequence_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be a number (its type is %s), not %s", what,
                     scalars[type].name, Py_TYPE(object)->tp_name);
        return false;
    }
    double value = plain ? PyFloat_AS_DOUBLE(object) : PyFloat_AsDouble(object);
    if (value == -1.0 && !plain && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) return range_error(object, type, what);
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s must be a number (its type is %s), not %s", what,
                         scalars[type].name, Py_TYPE(object)->tp_name);
        return false;
    }
    if (type == DRUPE_SCALAR_F64) {
        memcpy(bytes, &value, sizeof value);
        return true;
    }
    if (type == DRUPE_SCALAR_F16) {
        if (PyFloat_Pack2(value, bytes, PY_LITTLE_ENDIAN) == 0) return true;
        return range_error(object, type, what);
    }
    float single = (float)value;
    if (Py_IS_INFINITY(single) && !Py_IS_INFINITY(value)) return range_error(object, type, what);
    memcpy(bytes, &single, sizeof single);
    return true;
}

bool drupe_py_scalar_bytes(PyObject *object, drupe_scalar_type type, const char *what, void *bytes,
                           size_t *size)
{
    *size = scalars[type].size;
    return scalars[type].integer ? integer_bytes(object, type, what, bytes)
                                 : float_bytes(object, type, what, bytes);
}
