/* Basic indexing: integers, slices, Ellipsis and None, each giving a view. */
#include "engine/python/array/key_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

bool drupe_py_key_refuse(PyObject *item)
{
    PyErr_Format(PyExc_IndexError,
                 "an array is indexed with integers, slices, ..., None, and arrays of integers or bools, not "
                 "with %s",
                 Py_TYPE(item)->tp_name);
    return false;
}

bool drupe_py_key_too_many(const drupe_array *array, int named)
{
    PyErr_Format(PyExc_IndexError, "too many indices: the array has %d dimensions, and %d were indexed",
                 array->ndim, named);
    return false;
}

bool drupe_py_plan_integer(index_plan *plan, const drupe_array *array, PyObject *item)
{
    Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
    Py_ssize_t size = (Py_ssize_t)array->shape[plan->axis];
    if (index == -1 && PyErr_Occurred()) {
        /* NumPy's arrays claim to be integers, and most of them are not. */
        return PyErr_ExceptionMatches(PyExc_TypeError) ? drupe_py_key_refuse(item) : false;
    }
    if (index < -size || index >= size) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis %d with size %zd", index,
                     plan->axis, size);
        return false;
    }
    plan->slices[plan->axis++] = (drupe_slice){index < 0 ? index + size : index, 1, 1, true};
    return true;
}

bool drupe_py_plan_slice(index_plan *plan, const drupe_array *array, PyObject *item)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) return false;
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)array->shape[plan->axis], &start, &stop, step);
    plan->slices[plan->axis++] = (drupe_slice){start, step, (size_t)count, false};
    plan->out_axis++;
    return true;
}

void drupe_py_plan_rest(index_plan *plan, const drupe_array *array, int count)
{
    for (int i = 0; i < count; i++) {
        plan->slices[plan->axis] = (drupe_slice){0, 1, array->shape[plan->axis], false};
        plan->axis++;
        plan->out_axis++;
    }
}

bool drupe_py_plan_new(index_plan *plan)
{
    if (plan->ninserted < DRUPE_MAX_DIMS) {
        plan->inserted[plan->ninserted++] = plan->out_axis++;
        return true;
    }
    PyErr_Format(PyExc_IndexError, "an array has at most %d dimensions", DRUPE_MAX_DIMS);
    return false;
}

static bool plan_item(index_plan *plan, const drupe_array *array, PyObject *item, int fill)
{
    if (item == Py_Ellipsis) {
        drupe_py_plan_rest(plan, array, fill);
        return true;
    }
    if (item == Py_None) return drupe_py_plan_new(plan);
    if (PySlice_Check(item)) return drupe_py_plan_slice(plan, array, item);
    if (PyIndex_Check(item) && !PyBool_Check(item)) return drupe_py_plan_integer(plan, array, item);
    return drupe_py_key_refuse(item);
}

/* How many axes the items name; a second Ellipsis is an error. -1 on error. */
static int named_axes(PyObject *const *items, Py_ssize_t count, int *ellipses)
{
    int named = 0;
    *ellipses = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == Py_Ellipsis)
            (*ellipses)++;
        else if (items[i] != Py_None)
            named++;
    }
    if (*ellipses <= 1) return named;
    PyErr_SetString(PyExc_IndexError, "an index can hold one ellipsis (...) only");
    return -1;
}

static bool plan_make(index_plan *plan, const drupe_array *array, PyObject *key)
{
    PyObject *single[] = {key};
    bool tuple = PyTuple_Check(key);
    PyObject *const *items = tuple ? &PyTuple_GET_ITEM(key, 0) : single;
    Py_ssize_t count = tuple ? PyTuple_GET_SIZE(key) : 1;
    int ellipses, named = named_axes(items, count, &ellipses);
    memset(plan, 0, sizeof *plan);
    if (named < 0) return false;
    if (named > array->ndim) return drupe_py_key_too_many(array, named);
    for (Py_ssize_t i = 0; i < count; i++)
        if (!plan_item(plan, array, items[i], array->ndim - named)) return false;
    drupe_py_plan_rest(plan, array, array->ndim - plan->axis);
    return true;
}

bool drupe_py_plan_view(drupe_py_state *state, const drupe_array *array, const index_plan *plan,
                        drupe_array *view)
{
    drupe_array_view(array, view);
    drupe_status status = drupe_array_slice(view, plan->slices);
    for (int i = 0; status == DRUPE_OK && i < plan->ninserted; i++)
        status = drupe_array_insert_axis(view, plan->inserted[i]);
    if (status == DRUPE_OK) return true;
    drupe_py_raise_on(state, array->queue);
    drupe_array_clear(view);
    return false;
}

/* The view that `key` selects. `view` is empty on failure. */
static bool view_make(PyObject *self, PyObject *key, drupe_array *view)
{
    drupe_py_state *state = drupe_py_state_of(self);
    const drupe_array *array = drupe_py_array_of(self);
    index_plan plan;
    memset(view, 0, sizeof *view);
    if (!drupe_py_enter(state) || !plan_make(&plan, array, key) || !drupe_py_settle(state, array))
        return false;
    return drupe_py_plan_view(state, array, &plan, view);
}

PyObject *drupe_py_array_subscript(PyObject *self, PyObject *key)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_array view;
    if (drupe_py_key_advanced(state, key)) return drupe_py_index_get(self, key);
    return view_make(self, key, &view) ? drupe_py_array_wrap(state, &view) : NULL;
}

PyObject *drupe_py_array_iter(PyObject *self)
{
    if (drupe_py_array_of(self)->ndim > 0) return PySeqIter_New(self);
    PyErr_SetString(PyExc_TypeError, "an array without dimensions has nothing to iterate over");
    return NULL;
}

PyObject *drupe_py_array_row(PyObject *self, Py_ssize_t index)
{
    PyObject *key = PyLong_FromSsize_t(index);
    if (!key) return NULL;
    if (drupe_py_array_of(self)->ndim == 0) {
        Py_DECREF(key);
        PyErr_SetString(PyExc_TypeError, "an array without dimensions cannot be iterated over");
        return NULL;
    }
    PyObject *row = drupe_py_array_subscript(self, key);
    Py_DECREF(key);
    return row;
}

Py_ssize_t drupe_py_array_length(PyObject *self)
{
    const drupe_array *array = drupe_py_array_of(self);
    if (array->ndim > 0) return (Py_ssize_t)array->shape[0];
    PyErr_SetString(PyExc_TypeError, "an array without dimensions has no len()");
    return -1;
}

/* Assign what is neither an array nor a scalar: it is copied to the array's queue first. */
static bool assign_other(drupe_py_state *state, drupe_array *view, PyObject *value)
{
    const int put = drupe_py_array_put(state, view, value);
    if (put != 0) return put > 0;
    drupe_mem_kind kind = drupe_py_array_kind(view);
    PyObject *source = drupe_py_array_from(state, value, view->queue, kind, DRUPE_DTYPE_NONE);
    if (!source) return false;
    drupe_operand operand = {.array = drupe_py_array_of(source)};
    bool good = drupe_py_assign(state, view, &operand);
    Py_DECREF(source);
    return good;
}

int drupe_py_array_subscript_set(PyObject *self, PyObject *key, PyObject *value)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_array view;
    drupe_operand operand;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
        return -1;
    }
    if (drupe_py_key_advanced(state, key)) return drupe_py_index_set(self, key, value) ? 0 : -1;
    if (!view_make(self, key, &view)) return -1;
    int found = drupe_py_operand_arg(state, value, &operand);
    bool good = found >= 0;
    if (found > 0) {
        good = drupe_py_assign(state, &view, &operand);
    } else if (found == 0) {
        good = assign_other(state, &view, value);
    }
    drupe_array_clear(&view);
    return good ? 0 : -1;
}
