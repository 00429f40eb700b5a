/* Running sums, places of extremes, sorts: what python/drupe/array/_order.py and its neighbours are made of.
 *
 * The functions take their arguments by place, checked by their callers in Python as far as no error of the
 * engine would be clearer. All give up the GIL, since a cast may have to be built. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

/* The number of an axis, -1 for None, or -2 with an exception. */
static int axis_arg(PyObject *object, const drupe_array *array)
{
    uint32_t axes = 0;
    if (object == Py_None) return -1;
    const int axis = drupe_py_axis_arg(object, array->ndim, &axes);
    return axis < 0 ? -2 : axis;
}

static PyObject *order_cumulate(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "cumulative_sum", args, nargs, 5, 1);
    if (!state) return NULL;
    const drupe_array *in = drupe_py_array_of(args[0]);
    drupe_dtype dtype = DRUPE_DTYPE_NONE;
    drupe_array out = {0};
    const int axis = axis_arg(args[1], in), product = PyObject_IsTrue(args[3]),
              initial = PyObject_IsTrue(args[4]);
    if (axis == -2 || product < 0 || initial < 0 || !drupe_py_dtype_arg(state, args[2], &dtype)) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_cumulate(in, axis, dtype, product, initial, &out);
    return drupe_py_array_made(state, thread, status, in->queue, &out);
}

static PyObject *order_argreduce(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "argmax", args, nargs, 4, 1);
    if (!state) return NULL;
    const drupe_array *in = drupe_py_array_of(args[0]);
    drupe_array out = {0};
    const int axis = axis_arg(args[1], in), keepdims = PyObject_IsTrue(args[2]),
              least = PyObject_IsTrue(args[3]);
    if (axis == -2 || keepdims < 0 || least < 0) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_argreduce(in, axis, keepdims, least, &out);
    return drupe_py_array_made(state, thread, status, in->queue, &out);
}

static PyObject *order_sort(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "sort", args, nargs, 5, 1);
    if (!state) return NULL;
    const drupe_array *in = drupe_py_array_of(args[0]);
    drupe_array results[2] = {{0}, {0}}; /* values, indices */
    const int axis = axis_arg(args[1], in), descending = PyObject_IsTrue(args[2]);
    const int wants_values = PyObject_IsTrue(args[3]), wants_indices = PyObject_IsTrue(args[4]);
    if (axis == -2 || descending < 0 || wants_values < 0 || wants_indices < 0) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_sort(in, axis, descending, wants_values ? &results[0] : NULL,
                                           wants_indices ? &results[1] : NULL);
    drupe_py_site_return(thread);
    if (status == DRUPE_OK && wants_values && wants_indices) return drupe_py_arrays_wrap(state, results, 2);
    return drupe_py_array_made(state, NULL, status, in->queue, &results[wants_values ? 0 : 1]);
}

static PyObject *order_search(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "searchsorted", args, nargs, 4, 2);
    if (!state) return NULL;
    const drupe_array *sorted = drupe_py_array_of(args[0]), *values = drupe_py_array_of(args[1]), *sorter;
    drupe_array out = {0};
    const int right = PyObject_IsTrue(args[2]);
    if (right < 0 || !drupe_py_array_arg_or_none(state, args[3], "searchsorted", &sorter)) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_search(sorted, values, right, sorter, &out);
    return drupe_py_array_made(state, thread, status, sorted->queue, &out);
}

static PyObject *order_isin(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "isin", args, nargs, 3, 2);
    if (!state) return NULL;
    const drupe_array *values = drupe_py_array_of(args[0]), *set = drupe_py_array_of(args[1]);
    drupe_array out = {0};
    const int invert = PyObject_IsTrue(args[2]);
    if (invert < 0) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_isin(values, set, invert, &out);
    return drupe_py_array_made(state, thread, status, values->queue, &out);
}

/* (count, values, firsts, inverse, counts), with None for what is not wanted; `wanted` has a bit for each of
 * the last three. */
static PyObject *order_unique(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "unique", args, nargs, 3, 1);
    if (!state) return NULL;
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
    return status == DRUPE_OK ? drupe_py_arrays_wrap(state, results, 5) : drupe_py_raise_on(state, in->queue);
}

static PyObject *order_bincount(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "bincount", args, nargs, 3, 1);
    if (!state) return NULL;
    const drupe_array *numbers = drupe_py_array_of(args[0]), *weights;
    drupe_array out = {0};
    size_t bins;
    if (!drupe_py_array_arg_or_none(state, args[1], "bincount", &weights) ||
        !drupe_py_size(args[2], "bins", &bins))
        return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_bincount(numbers, weights, bins, &out);
    return drupe_py_array_made(state, thread, status, numbers->queue, &out);
}

static PyObject *order_interp(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "interp", args, nargs, 5, 3);
    if (!state) return NULL;
    const drupe_array *x = drupe_py_array_of(args[0]);
    drupe_array out = {0};
    const double left = PyFloat_AsDouble(args[3]), right = PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred()) return NULL;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status =
        drupe_array_interp(x, drupe_py_array_of(args[1]), drupe_py_array_of(args[2]), left, right, &out);
    return drupe_py_array_made(state, thread, status, x->queue, &out);
}

PyMethodDef drupe_py_order_functions[] = {
    {"_cumulate", DRUPE_PY_PLACES(order_cumulate), PyDoc_STR("_cumulate(x, axis, dtype, product, initial)")},
    {"_argreduce", DRUPE_PY_PLACES(order_argreduce), PyDoc_STR("_argreduce(x, axis, keepdims, least)")},
    {"_sort", DRUPE_PY_PLACES(order_sort), PyDoc_STR("_sort(x, axis, descending, values, indices)")},
    {"_search", DRUPE_PY_PLACES(order_search), PyDoc_STR("_search(sorted, values, right, sorter)")},
    {"_isin", DRUPE_PY_PLACES(order_isin), PyDoc_STR("_isin(values, set, invert)")},
    {"_unique", DRUPE_PY_PLACES(order_unique), PyDoc_STR("_unique(x, equal_nan, wanted)")},
    {"_bincount", DRUPE_PY_PLACES(order_bincount), PyDoc_STR("_bincount(numbers, weights, bins)")},
    {"_interp", DRUPE_PY_PLACES(order_interp), PyDoc_STR("_interp(x, xp, fp, left, right)")},
    {NULL, NULL, 0, NULL},
};
