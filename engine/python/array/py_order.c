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
        if (!drupe_py_is(state, args[i], DRUPE_PY_TYPE_Array)) {
            drupe_py_operand_refuse(args[i], function);
            return false;
        }
        if (!drupe_py_settle(state, drupe_py_array_of(args[i]))) return false;
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
    const int axis = axis_arg(args[1], in), product = PyObject_IsTrue(args[3]),
              initial = PyObject_IsTrue(args[4]);
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
    const int axis = axis_arg(args[1], in), keepdims = PyObject_IsTrue(args[2]),
              least = PyObject_IsTrue(args[3]);
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

/* None, or an array; false with an exception. */
static bool optional_arg(drupe_py_state *state, PyObject *object, const char *function,
                         const drupe_array **array)
{
    *array = NULL;
    if (object == Py_None) return true;
    if (!drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        drupe_py_operand_refuse(object, function);
        return false;
    }
    *array = drupe_py_array_of(object);
    return drupe_py_settle(state, *array);
}

static PyObject *order_search(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_array_args(state, "searchsorted", args, nargs, 4, 2)) return NULL;
    const drupe_array *sorted = drupe_py_array_of(args[0]), *values = drupe_py_array_of(args[1]), *sorter;
    drupe_array out = {0};
    const int right = PyObject_IsTrue(args[2]);
    if (right < 0 || !optional_arg(state, args[3], "searchsorted", &sorter)) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_search(sorted, values, right, sorter, &out);
    drupe_py_site_return(thread);
    return result(state, status, sorted->queue, &out);
}

static PyObject *order_isin(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_array_args(state, "isin", args, nargs, 3, 2)) return NULL;
    const drupe_array *values = drupe_py_array_of(args[0]), *set = drupe_py_array_of(args[1]);
    drupe_array out = {0};
    const int invert = PyObject_IsTrue(args[2]);
    if (invert < 0) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_isin(values, set, invert, &out);
    drupe_py_site_return(thread);
    return result(state, status, values->queue, &out);
}

/* (count, values, firsts, inverse, counts), with None for what is not wanted; `wanted` has a bit for each of
 * the last three. */
static PyObject *order_unique(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_array_args(state, "unique", args, nargs, 3, 1)) return NULL;
    const drupe_array *in = drupe_py_array_of(args[0]);
    drupe_array results[5] = {{0}, {0}, {0}, {0}, {0}};
    const int equal_nan = PyObject_IsTrue(args[1]);
    const long wanted = PyLong_AsLong(args[2]);
    if (equal_nan < 0 || (wanted == -1 && PyErr_Occurred())) return NULL;
    const drupe_distinct out = {&results[0], &results[1], wanted & 1 ? &results[2] : NULL,
                                wanted & 2 ? &results[3] : NULL, wanted & 4 ? &results[4] : NULL};
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_unique(in, equal_nan, &out);
    drupe_py_site_return(thread);
    if (status != DRUPE_OK) return drupe_py_raise_on(state, in->queue);
    PyObject *tuple = PyTuple_New(5);
    for (int i = 0; i < 5; i++) {
        const bool there = i < 2 || (wanted >> (i - 2) & 1);
        PyObject *item = there ? drupe_py_array_wrap(state, &results[i]) : Py_NewRef(Py_None);
        if (!item) Py_CLEAR(tuple);
        if (tuple)
            PyTuple_SET_ITEM(tuple, i, item);
        else
            Py_XDECREF(item);
    }
    return tuple;
}

static PyObject *order_bincount(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_array_args(state, "bincount", args, nargs, 3, 1)) return NULL;
    const drupe_array *numbers = drupe_py_array_of(args[0]), *weights;
    drupe_array out = {0};
    size_t bins;
    if (!optional_arg(state, args[1], "bincount", &weights) || !drupe_py_size(args[2], "bins", &bins))
        return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_bincount(numbers, weights, bins, &out);
    drupe_py_site_return(thread);
    return result(state, status, numbers->queue, &out);
}

static PyObject *order_interp(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_array_args(state, "interp", args, nargs, 5, 3)) return NULL;
    const drupe_array *x = drupe_py_array_of(args[0]);
    drupe_array out = {0};
    const double left = PyFloat_AsDouble(args[3]), right = PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred()) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status =
        drupe_array_interp(x, drupe_py_array_of(args[1]), drupe_py_array_of(args[2]), left, right, &out);
    drupe_py_site_return(thread);
    return result(state, status, x->queue, &out);
}

#define PLACES(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

PyMethodDef drupe_py_order_functions[] = {
    {"_cumulate", PLACES(order_cumulate), PyDoc_STR("_cumulate(x, axis, dtype, product, initial)")},
    {"_argreduce", PLACES(order_argreduce), PyDoc_STR("_argreduce(x, axis, keepdims, least)")},
    {"_sort", PLACES(order_sort), PyDoc_STR("_sort(x, axis, descending, values, indices)")},
    {"_search", PLACES(order_search), PyDoc_STR("_search(sorted, values, right, sorter)")},
    {"_isin", PLACES(order_isin), PyDoc_STR("_isin(values, set, invert)")},
    {"_unique", PLACES(order_unique), PyDoc_STR("_unique(x, equal_nan, wanted)")},
    {"_bincount", PLACES(order_bincount), PyDoc_STR("_bincount(numbers, weights, bins)")},
    {"_interp", PLACES(order_interp), PyDoc_STR("_interp(x, xp, fp, left, right)")},
    {NULL, NULL, 0, NULL},
};
