/* New arrays, and their shapes as objects of Python. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"

/* The first operation that the host computed on copies is a warning where its result appears; false when that
 * became an exception. */
static bool tell_copies(void)
{
    const char *label = drupe_array_staged();
    if (!label) return true;
    PyObject *told = drupe_py_call("drupe.array._copies", "tell", "(s)", label);
    Py_XDECREF(told);
    return told != NULL;
}

PyObject *drupe_py_array_wrap(drupe_py_state *state, drupe_array *array)
{
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_Array);
    if (!self)
        drupe_array_clear(array);
    else
        *drupe_py_array_of(self) = *array;
    drupe_array_none(array);
    if (self && !tell_copies()) Py_CLEAR(self);
    return self;
}

PyObject *drupe_py_arrays_wrap(drupe_py_state *state, drupe_array *arrays, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *item = arrays[i].queue ? drupe_py_array_wrap(state, &arrays[i]) : Py_NewRef(Py_None);
        if (!item)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    for (int i = 0; i < count; i++) drupe_array_clear(&arrays[i]);
    return tuple;
}

PyObject *drupe_py_array_made(drupe_py_state *state, PyThreadState *thread, drupe_status status,
                              drupe_queue *queue, drupe_array *array)
{
    if (thread) drupe_py_site_return(thread);
    return status == DRUPE_OK ? drupe_py_array_wrap(state, array) : drupe_py_raise_on(state, queue);
}

void drupe_py_refuse(PyObject *text)
{
    if (text) PyErr_SetObject(PyExc_TypeError, text);
    Py_XDECREF(text);
}

drupe_mem_kind drupe_py_array_kind(const drupe_array *array)
{
    return drupe_array_kind(array);
}

bool drupe_py_settle(drupe_py_state *state, const drupe_array *array)
{
    if (!array->node || drupe_array_settle(array) == DRUPE_OK) return true;
    drupe_py_raise_on(state, array->queue);
    return false;
}

int drupe_py_shape_arg(PyObject *object, size_t shape[DRUPE_MAX_DIMS])
{
    return drupe_py_sizes(object, "shape", shape, DRUPE_MAX_DIMS);
}

PyObject *drupe_py_axes_tuple(int ndim, const ptrdiff_t *numbers)
{
    PyObject *tuple = PyTuple_New(ndim);
    for (int i = 0; tuple && i < ndim; i++) {
        PyObject *number = PyLong_FromSsize_t(numbers[i]);
        if (!number)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

PyObject *drupe_py_shape_tuple(const drupe_array *array)
{
    return drupe_py_axes_tuple(array->ndim, (const ptrdiff_t *)array->shape); /* no size is above its most */
}

int drupe_py_axis_arg(PyObject *object, int ndim, uint32_t *axes)
{
    Py_ssize_t axis = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (axis == -1 && PyErr_Occurred()) return -1;
    if (axis < -ndim || axis >= ndim) {
        PyErr_Format(PyExc_IndexError, "axis %zd is out of bounds for an array with %d dimensions", axis,
                     ndim);
        return -1;
    }
    int number = (int)(axis < 0 ? axis + ndim : axis);
    if ((*axes >> number & 1) != 0) {
        PyErr_Format(PyExc_ValueError, "axis %zd is given twice", axis);
        return -1;
    }
    *axes |= UINT32_C(1) << number;
    return number;
}

bool drupe_py_axes_arg(PyObject *object, int ndim, uint32_t *axes)
{
    *axes = 0;
    if (!drupe_py_given(object)) {
        *axes = (uint32_t)((UINT64_C(1) << ndim) - 1);
        return true;
    }
    if (PyIndex_Check(object)) return drupe_py_axis_arg(object, ndim, axes) >= 0;
    PyObject *list = PySequence_Tuple(object);
    bool good = list != NULL;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(list); i++)
        good = drupe_py_axis_arg(PyTuple_GET_ITEM(list, i), ndim, axes) >= 0;
    Py_XDECREF(list);
    return good;
}
