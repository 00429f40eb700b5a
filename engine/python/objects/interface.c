/* Reading __sycl_usm_array_interface__: which bytes of which allocation an object covers. The allocation is
 * found by its address, so `syclobj` is not needed, and memory that this process did not get from drupe is
 * refused: nothing is known of its device. */
#include "engine/python/objects/objects_room.h"

#define MOST_DIMS 64

typedef struct layout {
    Py_ssize_t itemsize, offset; /* offset in elements, like the strides */
    int ndim;
    Py_ssize_t shape[MOST_DIMS], strides[MOST_DIMS];
} layout;

bool drupe_py_is_memory(const drupe_py_state *state, PyObject *object)
{
    return drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMDevice) ||
           drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMShared) ||
           drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMHost);
}

/* An entry, NULL where it is absent or None. Retained: reading one may run Python code, which may change the
 * dict. */
static PyObject *entry(PyObject *interface, const char *name)
{
    PyObject *value = PyDict_GetItemString(interface, name); /* borrowed for this line alone */
    return value == Py_None ? NULL : Py_XNewRef(value);
}

static bool wrong(const char *what)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "__sycl_usm_array_interface__ has no usable '%s'", what);
    return false;
}

/* A tuple of `count` numbers, or of any number when *count is negative. `object` (NULL: absent) is kept by
 * the caller. */
static bool numbers(PyObject *object, const char *what, Py_ssize_t *values, int *count)
{
    if (!object || !PyTuple_Check(object) || PyTuple_GET_SIZE(object) > MOST_DIMS) return wrong(what);
    if (*count >= 0 && PyTuple_GET_SIZE(object) != *count) return wrong(what);
    *count = (int)PyTuple_GET_SIZE(object);
    for (int i = 0; i < *count; i++) {
        values[i] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(object, i), PyExc_OverflowError);
        if (values[i] == -1 && PyErr_Occurred()) return false;
    }
    return true;
}

/* "<f4" or "|u1": kind and bytes of an element. */
static bool element_size(PyObject *object, Py_ssize_t *size)
{
    const char *text = object != NULL && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
    if (!text) return wrong("typestr");
    if (strchr("<>|=", text[0]) && text[0] != '\0') text++;
    bool known = text[0] != '\0' && strchr("biufcV", text[0]);
    char *end = NULL;
    long bytes = known ? strtol(text + 1, &end, 10) : 0;
    if (!known || end == text + 1 || *end != '\0' || bytes < 1 || bytes > 4096) return wrong("typestr");
    *size = (Py_ssize_t)bytes;
    return true;
}

/* In elements. */
static bool offset_read(PyObject *interface, layout *self)
{
    PyObject *offset = entry(interface, "offset");
    self->offset = !offset ? 0 : PyNumber_AsSsize_t(offset, PyExc_OverflowError);
    Py_XDECREF(offset);
    return !PyErr_Occurred() || wrong("offset");
}

static bool element_read(PyObject *interface, layout *self)
{
    PyObject *typestr = entry(interface, "typestr");
    bool good = element_size(typestr, &self->itemsize);
    Py_XDECREF(typestr);
    return good;
}

static bool shape_read(PyObject *interface, layout *self)
{
    PyObject *shape = entry(interface, "shape");
    self->ndim = -1;
    bool good = numbers(shape, "shape", self->shape, &self->ndim);
    Py_XDECREF(shape);
    return good;
}

/* Those given, or those of C order. */
static bool strides_read(PyObject *interface, layout *self)
{
    PyObject *strides = entry(interface, "strides");
    if (strides) {
        bool good = numbers(strides, "strides", self->strides, &self->ndim);
        Py_DECREF(strides);
        return good;
    }
    Py_ssize_t step = 1;
    for (int i = self->ndim; i-- > 0;) {
        self->strides[i] = step;
        if (self->shape[i] > 0 && step > PY_SSIZE_T_MAX / self->shape[i]) return wrong("shape");
        step *= self->shape[i] > 0 ? self->shape[i] : 1;
    }
    return true;
}

static bool layout_read(PyObject *interface, layout *self)
{
    return element_read(interface, self) && shape_read(interface, self) && offset_read(interface, self) &&
           strides_read(interface, self);
}

/* From the first byte that an element occupies to the last, in bytes from `data`. */
static bool layout_span(const layout *self, Py_ssize_t *first, size_t *nbytes)
{
    Py_ssize_t low = self->offset, high = self->offset;
    *nbytes = 0;
    for (int i = 0; i < self->ndim; i++) {
        if (self->shape[i] < 0) return wrong("shape");
        if (self->shape[i] == 0) {
            *first = 0;
            return true;
        }
        Py_ssize_t reach, *end = self->strides[i] < 0 ? &low : &high;
        if (__builtin_mul_overflow(self->shape[i] - 1, self->strides[i], &reach) ||
            __builtin_add_overflow(*end, reach, end))
            return wrong("strides");
    }
    Py_ssize_t length;
    if (__builtin_sub_overflow(high, low, &length) || __builtin_add_overflow(length, 1, &length) ||
        __builtin_mul_overflow(length, self->itemsize, &length) ||
        __builtin_mul_overflow(low, self->itemsize, first))
        return wrong("strides");
    *nbytes = (size_t)length;
    return true;
}

static bool span_find(char *pointer, size_t nbytes, drupe_py_span *span)
{
    span->memory = drupe_memory_find(pointer);
    if (!span->memory) {
        PyErr_SetString(PyExc_ValueError,
                        "the object's __sycl_usm_array_interface__ does not point into memory "
                        "that this process allocated with drupe");
        return false;
    }
    span->offset = (size_t)(pointer - (char *)drupe_memory_pointer(span->memory));
    span->nbytes = nbytes;
    if (nbytes <= drupe_memory_size(span->memory) - span->offset) return true;
    PyErr_Format(PyExc_ValueError,
                 "the object's __sycl_usm_array_interface__ covers %zu bytes from offset %zu, and the "
                 "allocation has %zu",
                 nbytes, span->offset, drupe_memory_size(span->memory));
    drupe_memory_release(span->memory);
    return false;
}

int drupe_py_interface_read(drupe_py_state *state, PyObject *object, drupe_py_span *span)
{
    PyObject *interface = PyObject_GetAttr(object, state->names[DRUPE_PY_NAME___sycl_usm_array_interface__]);
    if (!interface) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        return 0;
    }
    layout found;
    Py_ssize_t first = 0;
    size_t nbytes = 0;
    bool good = PyDict_Check(interface) || wrong("data");
    PyObject *data = good ? entry(interface, "data") : NULL;
    if (good && (!data || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) < 1)) good = wrong("data");
    char *pointer = good ? PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0)) : NULL;
    if (good && PyErr_Occurred()) good = false;
    Py_XDECREF(data);
    good = good && layout_read(interface, &found) && layout_span(&found, &first, &nbytes) &&
           span_find((char *)((uintptr_t)pointer + (uintptr_t)first), nbytes, span);
    Py_DECREF(interface);
    return good ? 1 : -1;
}
