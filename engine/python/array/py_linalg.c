/* Linear algebra of arrays; drupe/array/linalg.py has the functions that users call. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

/* No axis is longer, so that a diagonal that begins there has no elements. */
#define DIAGONAL_MOST ((Py_ssize_t)1 << 62)

bool drupe_py_providers_find(void)
{
    static bool found; /* under the GIL */
    if (found) return true;
    found = true;
    PyObject *none = drupe_py_call("drupe.array._providers", "suggest", "()");
    Py_XDECREF(none);
    return none != NULL;
}

static bool op_arg(PyObject *object, drupe_linear_op *op)
{
    const char *name = PyUnicode_AsUTF8(object);
    if (!name) return false;
    for (int i = 0; i < DRUPE_LINEAR_COUNT; i++) {
        *op = (drupe_linear_op)i;
        if (strcmp(name, drupe_array_linear_name(*op)) == 0) return true;
    }
    PyErr_Format(PyExc_ValueError, "there is no operation %R", object);
    return false;
}

static PyObject *linear(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *name, *a, *b;
    unsigned flags;
    double cutoff;
    drupe_linear_op op;
    if (!drupe_py_enter(state) || !PyArg_ParseTuple(args, "OOOId:_linear", &name, &a, &b, &flags, &cutoff) ||
        !op_arg(name, &op) || !drupe_py_providers_find())
        return NULL;
    const char *function = drupe_array_linear_name(op);
    const drupe_array *in[2] = {drupe_py_array_arg(state, a, function)};
    if (!in[0] || !drupe_py_array_arg_or_none(state, b, function, &in[1])) return NULL;
    drupe_array results[DRUPE_LINEAR_RESULTS] = {{0}};
    int count;
    PyThreadState *thread = drupe_py_site_leave(); /* libraries may be opened */
    drupe_status status = drupe_array_linear(op, flags, cutoff, in, results, &count);
    drupe_py_site_return(thread);
    return status != DRUPE_OK ? drupe_py_raise_on(state, in[0]->queue)
                              : drupe_py_arrays_wrap(state, results, count);
}

/* The view's last two axes become one, which runs along their diagonal. */
static void diagonal_take(drupe_array *view, Py_ssize_t offset)
{
    const int row = view->ndim - 2, column = view->ndim - 1;
    const Py_ssize_t rows = (Py_ssize_t)view->shape[row], columns = (Py_ssize_t)view->shape[column];
    const Py_ssize_t right = offset > 0 ? offset : 0, down = offset < 0 ? -offset : 0;
    Py_ssize_t length = rows - down < columns - right ? rows - down : columns - right;
    if (length < 0) length = 0;
    if (length > 0)
        view->offset =
            (size_t)((Py_ssize_t)view->offset + down * view->strides[row] + right * view->strides[column]);
    view->strides[row] += view->strides[column];
    view->shape[row] = (size_t)length;
    view->ndim--;
    view->size = 1;
    for (int d = 0; d < view->ndim; d++) view->size *= view->shape[d];
}

static PyObject *diagonal(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *x;
    Py_ssize_t offset;
    if (!drupe_py_enter(state) || !PyArg_ParseTuple(args, "On:_diagonal", &x, &offset)) return NULL;
    if (!drupe_py_is(state, x, DRUPE_PY_TYPE_Array) || drupe_py_array_of(x)->ndim < 2) {
        PyErr_SetString(PyExc_TypeError, "_diagonal() takes an Array with 2 dimensions at least");
        return NULL;
    }
    if (offset < -DIAGONAL_MOST || offset > DIAGONAL_MOST)
        offset = offset < 0 ? -DIAGONAL_MOST : DIAGONAL_MOST;
    drupe_array view = {0};
    if (!drupe_py_settle(state, drupe_py_array_of(x))) return NULL;
    drupe_array_view(drupe_py_array_of(x), &view);
    diagonal_take(&view, offset);
    return drupe_py_array_wrap(state, &view);
}

static PyObject *providers(PyObject *module, PyObject *ignored)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    (void)ignored;
    if (!drupe_py_enter(state) || !drupe_py_providers_find()) return NULL;
    PyObject *list = PyList_New(0);
    drupe_provider_row row;
    for (size_t i = 0; list && drupe_array_provider(i, &row); i++) {
        PyObject *entry = Py_BuildValue("(sNzs)", row.operation, drupe_py_dtype_object(state, row.dtype),
                                        row.provider, row.library);
        if (!entry || PyList_Append(list, entry) < 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyObject *provider_suggest(PyObject *module, PyObject *args)
{
    const char *path, *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss:_provider_suggest", &path, &name)) return NULL;
    drupe_array_provider_suggest(path, name);
    Py_RETURN_NONE;
}

PyMethodDef drupe_py_linalg_functions[] = {
    {"_linear", linear, METH_VARARGS,
     PyDoc_STR("_linear(op, a, b, flags, cutoff)\n--\n\nAn operation of linear algebra; a tuple of arrays.")},
    {"_diagonal", diagonal, METH_VARARGS,
     PyDoc_STR("_diagonal(x, offset)\n--\n\nA view of the diagonals of the last two axes.")},
    {"_providers", providers, METH_NOARGS,
     PyDoc_STR("_providers()\n--\n\nTuples of operation, data type, provider and library, for CPUs.")},
    {"_provider_suggest", provider_suggest, METH_VARARGS,
     PyDoc_STR("_provider_suggest(path, name)\n--\n\nA library to try before those of the system.")},
    {NULL, NULL, 0, NULL},
};
