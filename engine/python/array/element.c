/* One element: a number of Python as the bytes of a data type, and the bytes as a number of Python.
 *
 * Floats are rounded once, also to float16: CPython's packing of halves does both. */
#include "engine/python/array/py_array_room.h"
#include <math.h>

/* --- To bytes ------------------------------------------------------------------------------------------ */

/* An integer of 65 bits: the bits of an int64_t where it is negative, else of a uint64_t. */
typedef struct whole {
    uint64_t bits;
    bool negative;
} whole;

static whole whole_of(const drupe_scalar *scalar)
{
    return (whole){(uint64_t)scalar->i, scalar->i < 0 && !scalar->big};
}

/* Whether an integer type of `size` bytes holds it. */
static bool whole_fits(whole number, bool has_sign, size_t size)
{
    const uint64_t highest = UINT64_MAX >> (64 - 8 * size + (has_sign ? 1 : 0));
    return number.negative ? has_sign && ~number.bits <= highest : number.bits <= highest;
}

static void whole_write(whole number, size_t size, uint8_t *bytes)
{
    memcpy(bytes, (const char *)&number.bits + (PY_BIG_ENDIAN ? sizeof number.bits - size : 0), size);
}

/* Floats are cut. */
static bool store_integer(const drupe_scalar *scalar, drupe_dtype dtype, uint8_t *bytes)
{
    const bool has_sign = drupe_py_dtype_kind(dtype) == 'i';
    const size_t size = drupe_dtype_size(dtype);
    whole number = whole_of(scalar);
    bool good = true;
    if (scalar->kind == DRUPE_SCALAR_KIND_FLOAT) {
        const double f = scalar->f;
        good = f >= -9223372036854775808.0 && f < 18446744073709551616.0;
        if (good) number = f < 0 ? (whole){(uint64_t)(int64_t)f, f <= -1} : (whole){(uint64_t)f, false};
    }
    if (good && whole_fits(number, has_sign, size)) {
        whole_write(number, size, bytes);
        return true;
    }
    if (scalar->kind == DRUPE_SCALAR_KIND_FLOAT)
        PyErr_Format(PyExc_ValueError, "a number is not finite or does not fit into %s",
                     drupe_dtype_name(dtype));
    else if (number.negative)
        PyErr_Format(PyExc_OverflowError, "%lld does not fit into %s", (long long)number.bits,
                     drupe_dtype_name(dtype));
    else
        PyErr_Format(PyExc_OverflowError, "%llu does not fit into %s", (unsigned long long)number.bits,
                     drupe_dtype_name(dtype));
    return false;
}

static double number_of(const drupe_scalar *scalar)
{
    if (scalar->kind >= DRUPE_SCALAR_KIND_FLOAT) return scalar->f;
    return scalar->big ? (double)(uint64_t)scalar->i : (double)scalar->i;
}

static void store_float(double number, size_t size, uint8_t *bytes)
{
    const float single = (float)number;
    if (size == sizeof number) {
        memcpy(bytes, &number, size);
    } else if (size == sizeof single) {
        memcpy(bytes, &single, size);
    } else {
        /* Half of the last place above the largest half, 65504, is infinity; the packing refuses it. */
        if (number >= 65520.0 || number <= -65520.0) number = number < 0 ? -HUGE_VAL : HUGE_VAL;
        PyFloat_Pack2(number, (char *)bytes, PY_LITTLE_ENDIAN);
    }
}

bool drupe_py_element_store(const drupe_scalar *scalar, drupe_dtype dtype, uint8_t *bytes)
{
    const size_t size = drupe_dtype_size(dtype);
    const bool is_complex = scalar->kind == DRUPE_SCALAR_KIND_COMPLEX;
    const char kind = drupe_py_dtype_kind(dtype);
    if (is_complex && kind != 'c' && kind != 'b') {
        PyErr_Format(PyExc_TypeError, "a complex number does not fit into %s: take its real part, z.real",
                     drupe_dtype_name(dtype));
        return false;
    }
    switch (kind) {
    case 'b': bytes[0] = number_of(scalar) != 0 || (is_complex && scalar->im != 0); return true;
    case 'f': store_float(number_of(scalar), size, bytes); return true;
    case 'c':
        store_float(number_of(scalar), size / 2, bytes);
        store_float(is_complex ? scalar->im : 0, size / 2, bytes + size / 2);
        return true;
    default: return store_integer(scalar, dtype, bytes);
    }
}

/* --- From bytes ---------------------------------------------------------------------------------------- */

static PyObject *load_integer(const uint8_t *bytes, size_t size, bool has_sign)
{
    uint64_t bits = 0;
    memcpy((char *)&bits + (PY_BIG_ENDIAN ? sizeof bits - size : 0), bytes, size);
    if (!has_sign) return PyLong_FromUnsignedLongLong(bits);
    const uint64_t sign = UINT64_C(1) << (8 * size - 1);
    return PyLong_FromLongLong((int64_t)((bits ^ sign) - sign));
}

static double load_float(const uint8_t *bytes, size_t size)
{
    double number;
    float single;
    if (size == sizeof number) {
        memcpy(&number, bytes, size);
        return number;
    }
    if (size != sizeof single) return PyFloat_Unpack2((const char *)bytes, PY_LITTLE_ENDIAN);
    memcpy(&single, bytes, size);
    return (double)single;
}

PyObject *drupe_py_element(drupe_dtype dtype, const uint8_t *bytes)
{
    const size_t size = drupe_dtype_size(dtype);
    switch (drupe_py_dtype_kind(dtype)) {
    case 'b': return PyBool_FromLong(bytes[0] != 0);
    case 'f': return PyFloat_FromDouble(load_float(bytes, size));
    case 'c':
        return PyComplex_FromDoubles(load_float(bytes, size / 2), load_float(bytes + size / 2, size / 2));
    case 'i': return load_integer(bytes, size, true);
    default: return load_integer(bytes, size, false);
    }
}
