/* drupe.array.Array: its life and its methods; attributes are in attribute.c, operators in number.c, and
 * what is not hot in drupe/_members.py. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

static void array_release(void *array)
{
    drupe_array_clear(array);
}

void drupe_py_array_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    drupe_py_state *state = drupe_py_state_left(self);
    if (state && state->unread_of == self) state->unread_of = NULL; /* others will have this address */
    drupe_py_release_on(drupe_py_array_of(self)->queue, array_release, drupe_py_array_of(self));
    drupe_py_free(self, DRUPE_PY_TYPE_Array);
}

/* --- Text ---------------------------------------------------------------------------------------------- */

/* Formatting is Python's work. */
PyObject *drupe_py_array_repr(PyObject *self)
{
    return drupe_py_call("drupe.array._text", "array_repr", "(O)", self);
}

PyObject *drupe_py_array_str(PyObject *self)
{
    return drupe_py_call("drupe.array._text", "array_str", "(O)", self);
}

/* --- Methods ------------------------------------------------------------------------------------------- */

/* The parameters stand in NumPy's order, so that they can be given by place as well. */
static PyObject *array_reduction(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                                 drupe_op op)
{
    static const drupe_py_signature sums = DRUPE_PY_SIGNATURE(
        NULL, 4, 0, DRUPE_PY_NAME_axis, DRUPE_PY_NAME_dtype, DRUPE_PY_NAME_out, DRUPE_PY_NAME_keepdims);
    static const drupe_py_signature others =
        DRUPE_PY_SIGNATURE(NULL, 3, 0, DRUPE_PY_NAME_axis, DRUPE_PY_NAME_out, DRUPE_PY_NAME_keepdims);
    drupe_py_state *state = drupe_py_state_of(self);
    bool sum = op == DRUPE_OP_SUM || op == DRUPE_OP_PROD;
    drupe_py_signature signature = sum ? sums : others;
    signature.function = drupe_op_name(op);
    PyObject *given[4];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    PyObject *dtype = sum ? given[1] : NULL, *out = given[sum ? 2 : 1], *keepdims = given[sum ? 3 : 2];
    return drupe_py_into(state, drupe_py_reduce(state, op, self, given[0], dtype, keepdims), out);
}

#define REDUCTION(name, op)                                                                                  \
    static PyObject *array_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs,                   \
                                  PyObject *kwnames)                                                         \
    {                                                                                                        \
        return array_reduction(self, args, nargs, kwnames, op);                                              \
    }

REDUCTION(sum, DRUPE_OP_SUM)
REDUCTION(prod, DRUPE_OP_PROD)
REDUCTION(max, DRUPE_OP_MAX)
REDUCTION(min, DRUPE_OP_MIN)
REDUCTION(all, DRUPE_OP_ALL)
REDUCTION(any, DRUPE_OP_ANY)

static PyObject *array_astype(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("astype", 1, 1, DRUPE_PY_NAME_dtype, DRUPE_PY_NAME_copy);
    drupe_py_state *state = drupe_py_state_of(self);
    const drupe_array *array = drupe_py_array_of(self);
    PyObject *given[2];
    drupe_dtype dtype = array->dtype;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given) ||
        !drupe_py_dtype_arg(state, given[0], &dtype))
        return NULL;
    int copy = drupe_py_flag(given[1], 1);
    if (copy < 0) return NULL;
    if (!copy && dtype == array->dtype) return Py_NewRef(self);
    return drupe_py_array_cast(state, array, dtype);
}

static PyObject *array_to_device(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("to_device", 1, 1, DRUPE_PY_NAME_device, DRUPE_PY_NAME_stream);
    drupe_py_state *state = drupe_py_state_of(self);
    const drupe_array *array = drupe_py_array_of(self);
    PyObject *given[2];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    if (drupe_py_given(given[1])) {
        PyErr_SetString(PyExc_ValueError,
                        "to_device() takes no stream: queues are what others call streams, and "
                        "x.to_device(queue) brings the array to one");
        return NULL;
    }
    drupe_queue *queue = drupe_py_queue_arg(state, NULL, given[0], NULL);
    if (!queue) return NULL;
    PyObject *result =
        queue == array->queue
            ? Py_NewRef(self)
            : drupe_py_array_convert(state, array, queue, drupe_py_array_kind(array), array->dtype);
    drupe_py_queue_release(queue);
    return result;
}

static PyObject *array_asnumpy(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    return drupe_py_enter(state) ? drupe_py_array_numpy(state, drupe_py_array_of(self)) : NULL;
}

static PyObject *array_tolist(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    return drupe_py_enter(state) ? drupe_py_array_list(state, drupe_py_array_of(self)) : NULL;
}

static PyObject *array_item(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    return drupe_py_enter(state) ? drupe_py_array_item(state, drupe_py_array_of(self)) : NULL;
}

/* complex(x), for which types have no slot. */
static PyObject *array_complex(PyObject *self, PyObject *ignored)
{
    PyObject *item = array_item(self, ignored);
    PyObject *result = !item ? NULL : PyObject_CallOneArg((PyObject *)&PyComplex_Type, item);
    Py_XDECREF(item);
    return result;
}

static PyObject *array_copy(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    const drupe_array *array = drupe_py_array_of(self);
    if (!drupe_py_enter(state)) return NULL;
    return drupe_py_array_cast(state, array, array->dtype);
}

/* The shape wanted of `size` elements; one entry may be -1. The number of dimensions, or -1. */
static int reshape_arg(PyObject *shape_object, size_t size, size_t shape[DRUPE_MAX_DIMS])
{
    PyObject *list =
        PyIndex_Check(shape_object) ? PyTuple_Pack(1, shape_object) : PySequence_Tuple(shape_object);
    if (!list) return -1;
    Py_ssize_t ndim = PyTuple_GET_SIZE(list), open = -1;
    size_t known = 1;
    bool good = ndim <= DRUPE_MAX_DIMS, huge = false;
    if (!good) PyErr_Format(PyExc_ValueError, "an array has at most %d dimensions", DRUPE_MAX_DIMS);
    for (Py_ssize_t i = 0; good && i < ndim; i++) {
        Py_ssize_t entry = PyNumber_AsSsize_t(PyTuple_GET_ITEM(list, i), PyExc_OverflowError);
        good = !(entry == -1 && PyErr_Occurred());
        if (good && (entry < -1 || (entry == -1 && open >= 0))) {
            PyErr_SetString(PyExc_ValueError, "a shape has sizes of 0 or more, and one entry may be -1");
            good = false;
        }
        if (entry == -1)
            open = i;
        else
            huge = huge || __builtin_mul_overflow(known, (size_t)entry, &known);
        shape[i] = (size_t)entry;
    }
    Py_DECREF(list);
    if (good && huge && open >= 0) {
        PyErr_Format(PyExc_ValueError, "cannot reshape %zu elements into rows of more than 2**64", size);
        good = false;
    } else if (good && open >= 0 && (known == 0 || size % known != 0)) {
        PyErr_Format(PyExc_ValueError, "cannot reshape %zu elements into rows of %zu", size, known);
        good = false;
    } else if (good && open >= 0) {
        shape[open] = size / known;
    }
    return good ? (int)ndim : -1;
}

/* copy: 1 always, 0 never (ValueError where one is needed), -1 where it is needed. */
static PyObject *reshape(drupe_py_state *state, const drupe_array *array, PyObject *shape_object, int copy)
{
    size_t shape[DRUPE_MAX_DIMS];
    int ndim = reshape_arg(shape_object, array->size, shape);
    if (ndim < 0 || !drupe_py_settle(state, array)) return NULL;
    if (copy <= 0) {
        drupe_array view = {0};
        drupe_array_view(array, &view);
        drupe_status status = drupe_array_reshape(&view, ndim, shape);
        if (status == DRUPE_OK) return drupe_py_array_wrap(state, &view);
        drupe_array_clear(&view);
        if (status != DRUPE_E_UNSUPPORTED) return drupe_py_raise_on(state, array->queue);
        if (copy == 0) {
            PyErr_SetString(PyExc_ValueError,
                            "copy=False, but no view of these elements has that shape: they do "
                            "not lie side by side");
            return NULL;
        }
    }
    /* The elements have to be put side by side first. */
    PyObject *copied = drupe_py_array_cast(state, array, array->dtype);
    if (!copied) return NULL;
    if (!drupe_py_settle(state, drupe_py_array_of(copied))) {
        Py_DECREF(copied);
        return NULL;
    }
    if (drupe_array_reshape(drupe_py_array_of(copied), ndim, shape) == DRUPE_OK) return copied;
    Py_DECREF(copied);
    return drupe_py_raise_on(state, array->queue);
}

/* reshape((2, 3)) and reshape(2, 3) */
static PyObject *array_reshape(PyObject *self, PyObject *args, PyObject *kwargs)
{
    drupe_py_state *state = drupe_py_state_of(self);
    if (!drupe_py_enter(state)) return NULL;
    bool one = PyTuple_GET_SIZE(args) == 1;
    PyObject *shape = one ? PyTuple_GET_ITEM(args, 0) : args;
    if (!kwargs || PyDict_GET_SIZE(kwargs) == 0) return reshape(state, drupe_py_array_of(self), shape, -1);
    return drupe_py_call("drupe.array._shapes", "reshape_method", "(OOO)", self, shape, kwargs);
}

/* What reshape() of drupe/array/_shapes.py is made of. */
static PyObject *module_reshape(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *x, *shape, *copy;
    if (!drupe_py_enter(state) || !PyArg_ParseTuple(args, "OOO:_reshape", &x, &shape, &copy)) return NULL;
    const drupe_array *array = drupe_py_array_arg(state, x, "reshape");
    if (!array) return NULL;
    int always = drupe_py_flag(copy, -1);
    if (always == -1 && PyErr_Occurred()) return NULL;
    return reshape(state, array, shape, always);
}

static PyObject *array_to_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:__array__", names, &dtype, &copy)) return NULL;
    if (drupe_py_array_unread(drupe_py_state_of(self), self)) return NULL;
    return drupe_py_call("drupe.array._exchange", "numpys", "(OOO)", self, dtype, copy);
}

#define EXAMPLE(name, elements, of_rows)                                                                     \
    "\n\naxis: one, several in a tuple, or None for all. IndexError: it is not there.\n\n"                   \
    ">>> asarray(" elements ")." #name "(axis=0).tolist()\n" of_rows
#define SUM_DOC(name, sentence, elements, of_rows)                                                           \
    PyDoc_STR(#name "($self, axis=None, dtype=None, out=None, keepdims=False)\n--\n\n" sentence EXAMPLE(     \
        name, elements, of_rows))
#define REDUCTION_DOC(name, sentence, elements, of_rows)                                                     \
    PyDoc_STR(#name "($self, axis=None, out=None, keepdims=False)\n--\n\n" sentence EXAMPLE(name, elements,  \
                                                                                            of_rows))

static PyObject *array_accept(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    if (!drupe_py_settle(drupe_py_state_of(self), drupe_py_array_of(self))) return NULL;
    drupe_memory *memory = drupe_py_array_of(self)->memory;
    if (!memory) Py_RETURN_NONE;
    return drupe_py_contents_accept(drupe_py_state_of(self), memory);
}

PyMethodDef drupe_py_array_methods[] = {
    {"sum", DRUPE_PY_FAST(array_sum), SUM_DOC(sum, "Sum over the axes.", "[[1, 2], [3, 4]]", "[4, 6]")},
    {"prod", DRUPE_PY_FAST(array_prod),
     SUM_DOC(prod, "Product over the axes.", "[[1, 2], [3, 4]]", "[3, 8]")},
    {"max", DRUPE_PY_FAST(array_max),
     REDUCTION_DOC(max, "Largest element over the axes.", "[[1, 2], [3, 4]]", "[3, 4]")},
    {"min", DRUPE_PY_FAST(array_min),
     REDUCTION_DOC(min, "Smallest element over the axes.", "[[1, 2], [3, 4]]", "[1, 2]")},
    {"all", DRUPE_PY_FAST(array_all),
     REDUCTION_DOC(all, "Whether all elements over the axes are true.", "[[1, 0], [3, 4]]", "[True, False]")},
    {"any", DRUPE_PY_FAST(array_any),
     REDUCTION_DOC(any, "Whether one element over the axes is true.", "[[1, 0], [3, 4]]", "[True, True]")},
    {"astype", DRUPE_PY_FAST(array_astype),
     PyDoc_STR(
         "astype($self, dtype, *, copy=True)\n--\n\nThe elements as another data type.\n\n"
         "dtype: a DType, a name or a type of NumPy. copy: False gives x itself where it has that type.\n"
         "TypeError: complex numbers are to become real ones.\n\n"
         ">>> asarray([1.7, -1.7]).astype('int32').tolist()\n[1, -1]")},
    {"to_device", DRUPE_PY_FAST(array_to_device),
     PyDoc_STR("to_device($self, device, /, *, stream=None)\n--\n\n"
               "The array on another device or queue (a Device, filter or Queue); itself if it is there.\n\n"
               ">>> asarray([1, 2]).to_device('host').tolist()\n[1, 2]")},
    {"asnumpy", array_asnumpy, METH_NOARGS,
     PyDoc_STR("asnumpy($self)\n--\n\nA copy in NumPy, of the same shape and type; waits.\n\n"
               ">>> asarray([1, 2]).asnumpy()\narray([1, 2])")},
    {"tolist", array_tolist, METH_NOARGS,
     PyDoc_STR("tolist($self)\n--\n\nThe elements in nested lists; waits.\n\n"
               ">>> asarray([[1, 2]]).tolist()\n[[1, 2]]")},
    {"item", array_item, METH_NOARGS,
     PyDoc_STR(
         "item($self)\n--\n\nThe only element as a Python number; waits. TypeError: it has more or fewer.\n\n"
         ">>> asarray([5]).item()\n5")},
    {"copy", array_copy, METH_NOARGS,
     PyDoc_STR("copy($self)\n--\n\nA C-contiguous copy.\n\n"
               ">>> x = asarray([1, 2])\n>>> y = x.copy()\n>>> y[0] = 9\n>>> x.tolist()\n[1, 2]")},
    {"accept_contents", array_accept, METH_NOARGS, PyDoc_STR(DRUPE_PY_ACCEPT_DOC)},
    {"__complex__", array_complex, METH_NOARGS, PyDoc_STR("__complex__($self)\n--\n\ncomplex(x); waits.")},
    {"__copy__", array_copy, METH_NOARGS, NULL},
    {"__deepcopy__", array_copy, METH_O, NULL},
    {"reshape", DRUPE_PY_KEYWORDS(array_reshape),
     PyDoc_STR("reshape($self, *shape, order='C', copy=None)\n--\n\n"
               "The elements in another shape: a view where that is possible.\n\n"
               "shape: sizes, one of which may be -1. copy: True copies; False never does. ValueError: the "
               "sizes do\n"
               "not fit, or copy=False and a copy is needed.\n\n"
               ">>> arange(6).reshape(2, -1).tolist()\n[[0, 1, 2], [3, 4, 5]]")},
    {"__array__", DRUPE_PY_KEYWORDS(array_to_array),
     PyDoc_STR("__array__($self, dtype=None, *, copy=None)\n--\n\n"
               "A view in NumPy where the host can address the elements; waits. TypeError elsewhere: call "
               "asnumpy().")},
    {NULL, NULL, 0, NULL},
};

/* --- Functions of the module --------------------------------------------------------------------------- */

static PyObject *module_matmul(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("matmul", 2, 2, DRUPE_PY_NAME_x1, DRUPE_PY_NAME_x2, DRUPE_PY_NAME_out);
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *given[3];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    return drupe_py_providers_find() ? drupe_py_matmul(state, given[0], given[1], given[2]) : NULL;
}

/* Views that take one more argument: the array's, already a copy of the descriptor. */
typedef drupe_status (*view_fn)(drupe_array *view, PyObject *argument);

static PyObject *view_of(drupe_py_state *state, PyObject *object, PyObject *argument, view_fn change)
{
    const drupe_array *array = drupe_py_array_arg(state, object, "view");
    if (!array) return NULL;
    drupe_array view = {0};
    drupe_array_view(array, &view);
    drupe_status status = change(&view, argument);
    if (status == DRUPE_OK) return drupe_py_array_wrap(state, &view);
    if (!PyErr_Occurred()) drupe_py_raise_on(state, view.queue);
    drupe_array_clear(&view);
    return NULL;
}

static drupe_status view_broadcast(drupe_array *view, PyObject *argument)
{
    size_t shape[DRUPE_MAX_DIMS];
    int ndim = drupe_py_shape_arg(argument, shape);
    return ndim < 0 ? DRUPE_E_INVALID : drupe_array_broadcast(view, ndim, shape);
}

static drupe_status view_permute(drupe_array *view, PyObject *argument)
{
    int axes[DRUPE_MAX_DIMS];
    if (argument == Py_None) return drupe_array_permute(view, NULL);
    PyObject *list = PyIndex_Check(argument) ? PyTuple_Pack(1, argument) : PySequence_Tuple(argument);
    if (!list) return DRUPE_E_INVALID;
    if (PyTuple_GET_SIZE(list) != view->ndim)
        PyErr_Format(PyExc_ValueError, "axes has %zd entries, and the array %d dimensions",
                     PyTuple_GET_SIZE(list), view->ndim);
    uint32_t seen = 0;
    for (int i = 0; !PyErr_Occurred() && i < view->ndim; i++)
        axes[i] = drupe_py_axis_arg(PyTuple_GET_ITEM(list, i), view->ndim, &seen);
    Py_DECREF(list);
    return PyErr_Occurred() ? DRUPE_E_INVALID : drupe_array_permute(view, axes);
}

static PyObject *module_view(PyObject *module, const drupe_py_signature *signature, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *kwnames, view_fn change)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *given[2];
    if (!drupe_py_enter(state) || !drupe_py_args(state, signature, args, nargs, kwnames, given)) return NULL;
    return view_of(state, given[0], given[1], change);
}

static PyObject *module_broadcast_to(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                     PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("broadcast_to", 2, 2, DRUPE_PY_NAME_x, DRUPE_PY_NAME_shape);
    return module_view(module, &signature, args, nargs, kwnames, view_broadcast);
}

static PyObject *module_permute_dims(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                     PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("permute_dims", 2, 2, DRUPE_PY_NAME_x, DRUPE_PY_NAME_axes);
    return module_view(module, &signature, args, nargs, kwnames, view_permute);
}

static PyObject *module_promote(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    drupe_dtype types[2] = {DRUPE_DTYPE_NONE, DRUPE_DTYPE_NONE};
    if (nargs != 2 || args[0] == Py_None || args[1] == Py_None) {
        PyErr_SetString(PyExc_TypeError, "_promote() takes two data types");
        return NULL;
    }
    if (!drupe_py_dtype_arg(state, args[0], &types[0]) || !drupe_py_dtype_arg(state, args[1], &types[1]))
        return NULL;
    return drupe_py_dtype_object(state, drupe_dtype_promote(types[0], types[1]));
}

static PyObject *module_host_copies(PyObject *module, PyObject *allowed)
{
    (void)module;
    int truth = PyObject_IsTrue(allowed);
    if (truth < 0) return NULL;
    bool before = drupe_array_staging_allowed();
    drupe_array_staging_allow(truth);
    return PyBool_FromLong(before);
}

PyMethodDef drupe_py_array_functions[] = {
    {"_reshape", module_reshape, METH_VARARGS,
     PyDoc_STR("The elements in another shape; copy is True, False, or None for where it is needed.")},
    {"_array_over", drupe_py_array_over, METH_VARARGS,
     PyDoc_STR("An array over memory: _array_over(memory, dtype, shape, strides or None, offset, queue).")},
    {"_host_copies", module_host_copies, METH_O, PyDoc_STR("Allow them or not; what it was before.")},
    {"_promote", DRUPE_PY_PLACES(module_promote), PyDoc_STR("The common data type of two.")},
    {"matmul", DRUPE_PY_FAST(module_matmul),
     PyDoc_STR(
         "matmul(x1, x2, /, *, out=None)\n--\n\n"
         "Matrix product; of more than two dimensions, of stacks of matrices, which broadcast.\n\n"
         "x1, x2: arrays whose sizes match: the columns of x1 are as many as the rows of x2. out: an array "
         "of\n"
         "the result's shape to write it to, and to return. ValueError: shapes do not match, or out's type\n"
         "would lose part of the result; ExecutionPlacementError: arrays on different queues.\n\n"
         ">>> da.matmul(da.ones((2, 3)), da.ones((3, 1))).tolist()\n[[3.0], [3.0]]")},
    {"broadcast_to", DRUPE_PY_FAST(module_broadcast_to),
     PyDoc_STR(
         "broadcast_to(x, /, shape)\n--\n\nA view in which axes of size 1 are repeated.\n\n"
         "x: an array. shape: that of the result, of as many axes or more. Elements that are shown often\n"
         "cannot be written. ValueError: x does not broadcast to the shape.\n\n"
         ">>> da.broadcast_to(da.asarray([1, 2]), (2, 2)).tolist()\n[[1, 2], [1, 2]]")},
    {"permute_dims", DRUPE_PY_FAST(module_permute_dims),
     PyDoc_STR(
         "permute_dims(x, /, axes)\n--\n\nA view with the axes in another order.\n\n"
         "x: an array. axes: those of x in the order of the result. ValueError: not every axis is there\n"
         "once.\n\n>>> da.permute_dims(da.zeros((2, 3, 4)), (2, 0, 1)).shape\n(4, 2, 3)")},
    {NULL, NULL, 0, NULL},
};
