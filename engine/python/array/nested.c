/* Nested sequences: their shape, the type that all of their numbers fit into, and the numbers as bytes. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

typedef struct nest {
    drupe_py_state *state;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    int kind;           /* the highest kind of scalar seen; -1: none */
    bool big, negative; /* an integer above int64 was seen; one below 0 */
    drupe_dtype dtype;
    uint8_t *next; /* where the next element goes */
    size_t seen;
} nest;

static bool is_nested(PyObject *object)
{
    return PySequence_Check(object) && !PyUnicode_Check(object) && !PyBytes_Check(object);
}

/* Its one element instead of an array without dimensions, which is called a sequence as well. Steals the
 * reference. */
static PyObject *nest_scalar_of(PyObject *item)
{
    Py_buffer view;
    if (!is_nested(item) || !PyObject_CheckBuffer(item)) return item;
    if (PyObject_GetBuffer(item, &view, PyBUF_FULL_RO) != 0) {
        PyErr_Clear(); /* whoever reads its elements says more */
        return item;
    }
    int ndim = view.ndim;
    PyBuffer_Release(&view);
    if (ndim != 0) return item;
    PyObject *nowhere = PyTuple_New(0);
    PyObject *element = !nowhere ? NULL : PyObject_GetItem(item, nowhere);
    Py_XDECREF(nowhere);
    Py_DECREF(item);
    return element;
}

PyObject *drupe_py_array_by_method(PyObject *object)
{
    if (PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyType_Check(object)) return NULL;
    PyObject *method = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__array__");
    if (!method) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
        return NULL;
    }
    Py_DECREF(method);
    PyObject *array = PyObject_CallMethod(object, "__array__", NULL);
    if (!array || PyObject_CheckBuffer(array)) return array;
    PyErr_Format(PyExc_TypeError, "%s.__array__() gave %s, which is no array of NumPy",
                 Py_TYPE(object)->tp_name, Py_TYPE(array)->tp_name);
    Py_DECREF(array);
    return NULL;
}

/* What stands at a position, or the values that NumPy would be given of it: a column of a table may look
 * labels up instead of positions. Of an array without dimensions it is the number, which is waited for. New
 * reference; runs Python code. */
static PyObject *nest_item(drupe_py_state *state, PyObject *sequence, Py_ssize_t i)
{
    PyObject *item = PySequence_GetItem(sequence, i);
    if (!item) {
        if (PyErr_ExceptionMatches(PyExc_KeyError)) { /* it is indexed by keys */
            PyErr_Clear();
            drupe_py_refuse(drupe_py_call("drupe._foreign", "keys", "(s)", Py_TYPE(sequence)->tp_name));
        }
        return NULL;
    }
    if (PyFloat_Check(item) || PyLong_Check(item)) return item;
    if (drupe_py_is(state, item, DRUPE_PY_TYPE_Array) && drupe_py_array_of(item)->ndim == 0) {
        PyObject *number = drupe_py_array_item(state, drupe_py_array_of(item));
        Py_DECREF(item);
        return number;
    }
    if (PyObject_CheckBuffer(item)) return nest_scalar_of(item);
    PyObject *array = drupe_py_array_by_method(item);
    if (!array && !PyErr_Occurred()) return item;
    Py_DECREF(item);
    return !array ? NULL : nest_scalar_of(array);
}

/* The shape, from the first element of each level. */
static bool nest_shape(nest *self, PyObject *object)
{
    PyObject *level = Py_NewRef(object);
    while (level && is_nested(level)) {
        Py_ssize_t length = PySequence_Size(level);
        if (length >= 0 && self->ndim == DRUPE_MAX_DIMS) {
            PyErr_Format(PyExc_ValueError, "an array has at most %d dimensions", DRUPE_MAX_DIMS);
            length = -1;
        }
        if (length >= 0) self->shape[self->ndim++] = (size_t)length;
        PyObject *first = length > 0 ? nest_item(self->state, level, 0) : NULL;
        Py_DECREF(level);
        if (length == 0) return true;
        level = first;
    }
    Py_XDECREF(level);
    return level != NULL;
}

static bool nest_scalar(nest *self, PyObject *object)
{
    drupe_scalar scalar;
    int found = drupe_py_scalar_arg(self->state, object, &scalar);
    if (found == 0)
        drupe_py_refuse(drupe_py_call("drupe._foreign", "element", "(Os)", object, Py_TYPE(object)->tp_name));
    if (found <= 0 || !drupe_py_go_on(self->state, &self->seen)) return false;
    if (self->next) {
        uint8_t *here = self->next;
        self->next += drupe_dtype_size(self->dtype);
        return drupe_py_element_store(self->state, &scalar, self->dtype, here);
    }
    if ((int)scalar.kind > self->kind) self->kind = (int)scalar.kind;
    if (scalar.kind == DRUPE_SCALAR_KIND_INT) {
        self->big = self->big || scalar.big;
        self->negative = self->negative || (scalar.i < 0 && !scalar.big);
    }
    return true;
}

/* Visit all elements in order: the first time to find their kind, the second to store them. */
static bool nest_walk(nest *self, PyObject *object, int depth)
{
    if (depth == self->ndim) return nest_scalar(self, object);
    bool fits = is_nested(object);
    Py_ssize_t length = fits ? PySequence_Size(object) : 0;
    if (length < 0) return false;
    if (!fits || (size_t)length != self->shape[depth]) {
        PyErr_Format(PyExc_ValueError, "the nested sequences differ in length at depth %d: %zu is expected",
                     depth, self->shape[depth]);
        return false;
    }
    bool good = true;
    for (Py_ssize_t i = 0; good && i < length; i++) {
        PyObject *item = nest_item(self->state, object, i);
        good = item != NULL && nest_walk(self, item, depth + 1);
        Py_XDECREF(item);
        /* range(2**40) is a sequence too, of no Python code that would look. */
        if (good && i % 1024 == 1023) good = PyErr_CheckSignals() == 0;
    }
    return good;
}

/* The type of what was seen; false where there is none that holds all integers. */
static bool nest_type(nest *self, drupe_queue *queue)
{
    const drupe_scalar most = {.kind = self->kind < 0 ? DRUPE_SCALAR_KIND_FLOAT : self->kind,
                               .big = self->big};
    self->dtype = drupe_py_dtype_of_scalar(&most, queue);
    if (self->dtype != DRUPE_UINT64 || !self->negative) return true;
    PyErr_SetString(PyExc_OverflowError, "the integers fit neither into int64 nor into uint64 together: "
                                         "pass dtype=\"float64\" to have them rounded");
    return false;
}

PyObject *drupe_py_nested_bytes(drupe_py_state *state, PyObject *object, drupe_queue *queue,
                                drupe_dtype *dtype, int *ndim, size_t shape[DRUPE_MAX_DIMS])
{
    nest all = {.state = state, .kind = -1, .dtype = *dtype};
    if (!nest_shape(&all, object) || !nest_walk(&all, object, 0)) return NULL;
    if (*dtype == DRUPE_DTYPE_NONE && !nest_type(&all, queue)) return NULL;
    size_t size = drupe_dtype_size(all.dtype);
    for (int i = 0; i < all.ndim; i++) size *= all.shape[i]; /* all of these were visited */
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes && size > 0) {
        all.next = (uint8_t *)PyBytes_AS_STRING(bytes);
        if (!nest_walk(&all, object, 0)) Py_CLEAR(bytes);
    }
    *dtype = all.dtype;
    *ndim = all.ndim;
    memcpy(shape, all.shape, sizeof all.shape);
    return bytes;
}
