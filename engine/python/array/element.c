/* One element: a number of Python as the bytes of a data type, and the bytes as a number of Python. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"

bool drupe_py_element_store(drupe_py_state *state, const drupe_scalar *scalar, drupe_dtype dtype,
                            uint8_t *bytes)
{
    const char kind = drupe_dtype_kind(dtype);
    if (scalar->kind == DRUPE_SCALAR_KIND_COMPLEX && kind != 'c' && kind != 'b') {
        PyErr_Format(PyExc_TypeError,
                     "complex numbers do not fit into %s: take their real parts, z.real, or "
                     "imaginary parts, z.imag",
                     drupe_dtype_name(dtype));
        return false;
    }
    if (drupe_scalar_bytes(scalar, dtype, bytes) == DRUPE_OK) return true;
    drupe_py_raise(state, NULL);
    return false;
}

PyObject *drupe_py_number(const drupe_scalar *scalar)
{
    switch (scalar->kind) {
    case DRUPE_SCALAR_KIND_BOOL: return PyBool_FromLong(scalar->i != 0);
    case DRUPE_SCALAR_KIND_FLOAT: return PyFloat_FromDouble(scalar->f);
    case DRUPE_SCALAR_KIND_COMPLEX: return PyComplex_FromDoubles(scalar->f, scalar->im);
    default: break;
    }
    return scalar->big ? PyLong_FromUnsignedLongLong((uint64_t)scalar->i) : PyLong_FromLongLong(scalar->i);
}

PyObject *drupe_py_element(drupe_dtype dtype, const uint8_t *bytes)
{
    drupe_scalar scalar;
    drupe_scalar_load(bytes, dtype, &scalar);
    return drupe_py_number(&scalar);
}
