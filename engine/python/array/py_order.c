/* Running sums, places of extremes, sorts: what python/drupe/array/_order.py and its neighbours are made of.
 *
 * The functions take their arguments by place, checked by their callers in Python as far as no error of the
 * engine would be clearer. All give up the GIL, since a cast may have to be built. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

bool drupe_py_array_args(drupe_py_state *state, const char *function, PyObject *const *args, Py_ssize_t nargs,
                         Py_ssize_t count, Py_ssize_t arrays)
{
    if (!drupe_py_enter(state)) return false;
    if (nargs != count) {
        PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", function, count, nargs);
        return false;
    }
    for (Py_ssize_t i = 0; i < arrays; i++) {
        if (drupe_py_is(state, args[i], DRUPE_PY_TYPE_Array)) continue;
        drupe_py_operand_refuse(args[i], function);
        return false;
    }
    return true;
}

/* The number of an axis, -1 for None, or -2 with an exception. */
static int axis_arg(PyObject *object, const drupe_array *array)
{
    uint32_t axes = 0;
    if (object == Py_None) return -1;
    const int axis = drupe_py_axis_arg(object, array->ndim, &axes);
    return axis < 0 ? -2 : axis;
}

static PyObject *result(drupe_py_state *state, drupe_status status, drupe_queue *queue, drupe_array *array)
{
    return status != DRUPE_OK ? drupe_py_raise_on(state, queue) : drupe_py_array_wrap(state, array);
}

static PyObject *order_cumulate(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_array_args(state, "cumulative_sum", args, nargs, 5, 1)) return NULL;
    const drupe_array *in = drupe_py_array_of(args[0]);
    drupe_dtype dtype = DRUPE_DTYPE_NONE;
    drupe_array out = {0};
    const int axis = axis_arg(args[1], in), product = PyObject_IsTrue(args[3]), initial = PyObject_IsTrue(args[4]);
    if (axis == -2 || product < 0 || initial < 0 || !drupe_py_dtype_arg(state, args[2], &dtype)) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_cumulate(in, axis, dtype, product, initial, &out);
    drupe_py_site_return(thread);
    return result(state, status, in->queue, &out);
}

static PyObject *order_argreduce(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_array_args(state, "argmax", args, nargs, 4, 1)) return NULL;
    const drupe_array *in = drupe_py_array_of(args[0]);
    drupe_array out = {0};
    const int axis = axis_arg(args[1], in), keepdims = PyObject_IsTrue(args[2]), least = PyObject_IsTrue(args[3]);
    if (axis == -2 || keepdims < 0 || least < 0) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_argreduce(in, axis, keepdims, least, &out);
    drupe_py_site_return(thread);
    return result(state, status, in->queue, &out);
}

/* A tuple of both, each of which is taken; NULL if one is. */
static PyObject *pair(PyObject *first, PyObject *second)
{
    PyObject *both = first && second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return both;
}

static PyObject *order_sort(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_array_args(state, "sort", args, nargs, 5, 1)) return NULL;
    const drupe_array *in = drupe_py_array_of(args[0]);
    drupe_array values = {0}, indices = {0};
    const int axis = axis_arg(args[1], in), descending = PyObject_IsTrue(args[2]);
    const int wants_values = PyObject_IsTrue(args[3]), wants_indices = PyObject_IsTrue(args[4]);
    if (axis == -2 || descending < 0 || wants_values < 0 || wants_indices < 0) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_sort(in, axis, descending, wants_values ? &values : NULL,
                                           wants_indices ? &indices : NULL);
    drupe_py_site_return(thread);
    if (status != DRUPE_OK || !wants_indices) return result(state, status, in->queue, &values);
    if (!wants_values) return drupe_py_array_wrap(state, &indices);
    PyObject *first = drupe_py_array_wrap(state, &values);
    return pair(first, drupe_py_array_wrap(state, &indices));
}

#define PLACES(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

PyMethodDef drupe_py_order_functions[] = {
    {"_cumulate", PLACES(order_cumulate), PyDoc_STR("_cumulate(x, axis, dtype, product, initial)")},
    {"_argreduce", PLACES(order_argreduce), PyDoc_STR("_argreduce(x, axis, keepdims, least)")},
    {"_sort", PLACES(order_sort), PyDoc_STR("_sort(x, axis, descending, values, indices)")},
    {NULL, NULL, 0, NULL},
};
