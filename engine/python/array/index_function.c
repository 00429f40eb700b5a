/* What masks need of waits, and the functions of indexing that drupe/array/_indexing.py is made of. */
#include "engine/python/array/key_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

/* --- Counts --------------------------------------------------------------------------------------------- */

/* The last number of a one-dimensional int64 array, or that of one without dimensions. Waits. */
static bool count_read(drupe_py_state *state, const drupe_array *counts, size_t *count)
{
    drupe_array last;
    drupe_array_view(counts, &last);
    if (last.ndim == 1) {
        const drupe_slice slice = {(ptrdiff_t)counts->shape[0] - 1, 1, 1, true};
        if (drupe_array_slice(&last, &slice) != DRUPE_OK) {
            drupe_array_clear(&last);
            drupe_py_raise_on(state, counts->queue);
            return false;
        }
    }
    PyObject *item = drupe_py_array_item(state, &last);
    drupe_array_clear(&last);
    *count = !item ? 0 : PyLong_AsSize_t(item);
    Py_XDECREF(item);
    return item != NULL && !PyErr_Occurred();
}

/* The counts of a mask, and the last of them. `counts` is empty on failure. */
static bool mask_count(drupe_py_state *state, const drupe_array *mask, drupe_array *counts, size_t *count)
{
    PyThreadState *thread = drupe_py_index_begin(state, mask, NULL);
    drupe_status status = drupe_array_mask_count(mask, counts);
    drupe_py_index_end(thread);
    if (status != DRUPE_OK) {
        drupe_py_raise_on(state, mask->queue);
        return false;
    }
    if (count_read(state, counts, count)) return true;
    drupe_array_clear(counts);
    return false;
}

bool drupe_py_positions(drupe_py_state *state, const drupe_array *mask, drupe_array *positions)
{
    drupe_array counts = {0};
    size_t count;
    memset(positions, 0, sizeof *positions);
    if (!mask_count(state, mask, &counts, &count)) return false;
    PyThreadState *thread = drupe_py_index_begin(state, mask, mask); /* not the key of the count */
    drupe_status status = drupe_array_mask_positions(mask, &counts, count, positions);
    drupe_py_index_end(thread);
    drupe_array_clear(&counts);
    if (status != DRUPE_OK) drupe_py_raise_on(state, mask->queue);
    return status == DRUPE_OK;
}

PyObject *drupe_py_mask_pick(drupe_py_state *state, const drupe_array *array, const drupe_array *mask)
{
    drupe_array counts = {0}, out = {0};
    size_t count;
    if (array->queue != mask->queue) {
        drupe_py_raise_text(state, DRUPE_E_PLACEMENT,
                            "an array and its mask are on different queues: bring them together with "
                            "to_device()");
        return NULL;
    }
    if (!mask_count(state, mask, &counts, &count)) return NULL;
    PyThreadState *thread = drupe_py_index_begin(state, array, mask);
    drupe_status status = drupe_array_mask_pick(array, mask, &counts, count, &out);
    PyObject *result = drupe_py_array_made(state, thread, status, array->queue, &out);
    drupe_array_clear(&counts);
    return result;
}

/* --- Functions of the module ---------------------------------------------------------------------------- */

static bool mode_arg(PyObject *object, drupe_index_mode *mode)
{
    static const char *const names[] = {"raise", "wrap", "clip"};
    for (int i = 0; i < 3; i++) {
        if (!PyUnicode_Check(object) || PyUnicode_CompareWithASCIIString(object, names[i]) != 0) continue;
        *mode = (drupe_index_mode)i;
        return true;
    }
    PyErr_Format(PyExc_ValueError, "mode is \"raise\", \"wrap\" or \"clip\", not %R", object);
    return false;
}

/* The arguments (x, indices, axis, mode) of take and take_along_axis. */
typedef struct take_arguments {
    drupe_py_state *state;
    const drupe_array *x, *indices; /* borrowed */
    int axis;
    drupe_index_mode mode;
} take_arguments;

static bool take_args(PyObject *module, const char *function, PyObject *const *args, Py_ssize_t nargs,
                      take_arguments *take)
{
    uint32_t axes = 0;
    take->state = drupe_py_array_args(module, function, args, nargs, 4, 2);
    if (!take->state || !mode_arg(args[3], &take->mode)) return false;
    take->x = drupe_py_array_of(args[0]);
    take->indices = drupe_py_array_of(args[1]);
    take->axis = drupe_py_axis_arg(args[2], take->x->ndim, &axes);
    return take->axis >= 0;
}

/* _take(x, indices, axis, mode) */
static PyObject *module_take(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    take_arguments take;
    drupe_array out = {0};
    if (!take_args(module, "take", args, nargs, &take)) return NULL;
    const drupe_index index = {take.indices, take.axis, take.axis};
    const drupe_selection selection = {&index, 1, take.axis, take.mode};
    PyThreadState *thread = drupe_py_index_begin(take.state, take.x, take.indices);
    drupe_status status = drupe_array_gather(take.x, &selection, &out);
    return drupe_py_array_made(take.state, thread, status, take.x->queue, &out);
}

/* _take_along(x, indices, axis, mode) */
static PyObject *module_take_along(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    take_arguments take;
    drupe_array out = {0};
    if (!take_args(module, "take_along_axis", args, nargs, &take)) return NULL;
    PyThreadState *thread = drupe_py_index_begin(take.state, take.x, take.indices);
    drupe_status status = drupe_array_gather_along(take.x, take.indices, take.axis, take.mode, &out);
    return drupe_py_array_made(take.state, thread, status, take.x->queue, &out);
}

static bool value_arg(drupe_py_state *state, PyObject *object, const char *function, drupe_operand *value)
{
    const int found = drupe_py_operand_arg(state, object, value);
    if (found == 0) drupe_py_operand_refuse(object, function);
    return found > 0 && (!value->array || drupe_py_settle(state, value->array));
}

/* After drupe_py_index_begin() and what puts elements into x: None, or the exception of the status. */
static PyObject *put_end(drupe_py_state *state, PyThreadState *thread, drupe_status status,
                         const drupe_array *x)
{
    drupe_py_index_end(thread);
    return status == DRUPE_OK ? Py_NewRef(Py_None) : drupe_py_raise_on(state, x->queue);
}

/* _put(x, indices, value, mode): along the one axis of x */
static PyObject *module_put(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "put", args, nargs, 4, 2);
    drupe_operand value;
    drupe_index_mode mode;
    if (!state || !mode_arg(args[3], &mode) || !value_arg(state, args[2], "put", &value)) return NULL;
    const drupe_array *x = drupe_py_array_of(args[0]);
    const drupe_index index = {drupe_py_array_of(args[1]), 0, 0};
    const drupe_selection selection = {&index, 1, 0, mode};
    PyThreadState *thread = drupe_py_index_begin(state, x, value.array);
    return put_end(state, thread, drupe_array_scatter(x, &selection, &value), x);
}

/* _put_along(x, indices, axis, value) */
static PyObject *module_put_along(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "put_along_axis", args, nargs, 4, 2);
    drupe_operand value;
    uint32_t axes = 0;
    if (!state || !value_arg(state, args[3], "put_along_axis", &value)) return NULL;
    const drupe_array *x = drupe_py_array_of(args[0]), *indices = drupe_py_array_of(args[1]);
    const int axis = drupe_py_axis_arg(args[2], x->ndim, &axes);
    if (axis < 0) return NULL;
    PyThreadState *thread = drupe_py_index_begin(state, x, value.array);
    return put_end(state, thread, drupe_array_scatter_along(x, indices, axis, &value), x);
}

/* One row of an array of two dimensions. */
static PyObject *row_of(drupe_py_state *state, const drupe_array *all, int number)
{
    drupe_array row;
    const drupe_slice slices[] = {{number, 1, 1, true}, {0, 1, all->shape[1], false}};
    drupe_array_view(all, &row);
    if (drupe_array_slice(&row, slices) == DRUPE_OK) return drupe_py_array_wrap(state, &row);
    drupe_array_clear(&row);
    return drupe_py_raise_on(state, all->queue);
}

static PyObject *rows_of(drupe_py_state *state, const drupe_array *all)
{
    PyObject *rows = PyTuple_New((Py_ssize_t)all->shape[0]);
    for (int d = 0; rows && d < (int)all->shape[0]; d++) {
        PyObject *row = row_of(state, all, d);
        if (row)
            PyTuple_SET_ITEM(rows, d, row);
        else
            Py_CLEAR(rows);
    }
    return rows;
}

/* _nonzero(x, together): a tuple of one array for each axis, or one array of two dimensions. */
static PyObject *module_nonzero(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "nonzero", args, nargs, 2, 1);
    if (!state) return NULL;
    const drupe_array *x = drupe_py_array_of(args[0]);
    if (x->ndim == 0) {
        PyErr_SetString(PyExc_ValueError, "nonzero() takes arrays with one dimension at least");
        return NULL;
    }
    PyObject *mask = Py_NewRef(args[0]);
    if (x->dtype != DRUPE_BOOL) {
        const drupe_operand operands[] = {{.array = x}, {.scalar = {.kind = DRUPE_SCALAR_KIND_INT}}};
        Py_SETREF(mask, drupe_py_apply(state, DRUPE_OP_NOT_EQUAL, operands, 2, NULL));
    }
    drupe_array all = {0};
    PyObject *result = NULL;
    if (mask && drupe_py_settle(state, drupe_py_array_of(mask)) &&
        drupe_py_positions(state, drupe_py_array_of(mask), &all))
        result = args[1] == Py_True ? drupe_py_array_wrap(state, &all) : rows_of(state, &all);
    drupe_array_clear(&all);
    Py_XDECREF(mask);
    return result;
}

/* _repeated(repeats): each number from 0 on as often as `repeats` says */
static PyObject *module_repeated(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "repeat", args, nargs, 1, 1);
    drupe_array total = {0}, out = {0};
    size_t count = 0;
    if (!state) return NULL;
    const drupe_array *repeats = drupe_py_array_of(args[0]);
    PyThreadState *thread = drupe_py_index_begin(state, repeats, repeats);
    drupe_status status = drupe_array_repeat_count(repeats, &total);
    drupe_py_index_end(thread);
    if (status != DRUPE_OK) return drupe_py_raise_on(state, repeats->queue);
    bool counted = count_read(state, &total, &count);
    drupe_array_clear(&total);
    if (!counted) return NULL;
    status = drupe_array_repeat_positions(repeats, count, &out);
    return drupe_py_array_made(state, NULL, status, repeats->queue, &out);
}

PyMethodDef drupe_py_index_functions[] = {
    {"_take", DRUPE_PY_PLACES(module_take),
     PyDoc_STR("_take(x, indices, axis, mode): elements along an axis.")},
    {"_take_along", DRUPE_PY_PLACES(module_take_along),
     PyDoc_STR("_take_along(x, indices, axis, mode): an element of each row along an axis, for each index.")},
    {"_put", DRUPE_PY_PLACES(module_put),
     PyDoc_STR("_put(x, indices, value, mode): write elements of an array with one dimension.")},
    {"_put_along", DRUPE_PY_PLACES(module_put_along),
     PyDoc_STR("_put_along(x, indices, axis, value): write an element of each row, for each index.")},
    {"_nonzero", DRUPE_PY_PLACES(module_nonzero),
     PyDoc_STR("_nonzero(x, together): where elements are not zero; waits for their number.")},
    {"_repeated", DRUPE_PY_PLACES(module_repeated),
     PyDoc_STR("_repeated(repeats): numbers from 0 on, each as often as it says; waits for their sum.")},
    {NULL, NULL, 0, NULL},
};
