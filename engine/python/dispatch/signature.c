/* The signature of a call: all that decides which compiled kernel serves it.
 *
 * One pass over the arguments writes a word for each, and one more for the class of a named tuple; two calls
 * are served by the same kernel if their words are equal. Whatever is not known here (subclasses of numbers,
 * arrays of NumPy, other objects) makes no signature. */
#include "engine/python/dispatch/dispatch_room.h"
#include "engine/python/errors/errors_room.h"

bool drupe_py_forgive(void)
{
    if (PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError)) PyErr_Clear();
    return !PyErr_Occurred();
}

/* --- Scalars of NumPy ------------------------------------------------------------------------------------
 */

static const char *type_name(int dtype)
{
    return dtype == DRUPE_BOOL ? "bool_" : drupe_dtype_name((drupe_dtype)dtype);
}

/* NumPy is looked up among the imported modules, never imported. */
static void learn_numpy(drupe_py_state *state)
{
    PyObject *found[DRUPE_DTYPE_COUNT] = {NULL}, *name = PyUnicode_FromString("numpy");
    PyObject *numpy = !name ? NULL : PyImport_GetModule(name);
    bool all = numpy != NULL;
    for (int i = 0; all && i < DRUPE_DTYPE_COUNT; i++) {
        found[i] = PyObject_GetAttrString(numpy, type_name(i));
        all = found[i] != NULL;
    }
    if (!all && PyErr_Occurred()) (void)drupe_py_forgive();
    for (int i = 0; i < DRUPE_DTYPE_COUNT; i++) {
        /* Python code ran, and may have come here. */
        if (all && !state->numpy_types[i])
            state->numpy_types[i] = found[i];
        else
            Py_XDECREF(found[i]);
    }
    Py_XDECREF(numpy);
    Py_XDECREF(name);
}

/* The data type whose class that is, or NONE. */
static drupe_dtype numpy_dtype(drupe_py_state *state, const PyTypeObject *type)
{
    if (!state->numpy_types[0]) learn_numpy(state);
    for (int i = 0; i < DRUPE_DTYPE_COUNT; i++)
        if (state->numpy_types[i] == (const PyObject *)type) return (drupe_dtype)i;
    return DRUPE_DTYPE_NONE;
}

/* --- Local memory ----------------------------------------------------------------------------------------
 */

int drupe_py_local_shape(PyObject *object, size_t *shape)
{
    PyObject *sizes = PyObject_GetAttrString(object, "shape");
    int dims = !sizes ? -1 : drupe_py_sizes(sizes, "shape", shape, DRUPE_MAX_DIMS);
    Py_XDECREF(sizes);
    if (dims < 0) (void)drupe_py_forgive();
    return dims;
}

/* The data type and the number of dimensions of a LocalAccessor. False as drupe_py_forgive() leaves it. */
static bool local_read(drupe_py_state *state, PyObject *object, drupe_dtype *dtype, int *ndim)
{
    size_t shape[DRUPE_MAX_DIMS];
    *dtype = DRUPE_DTYPE_NONE;
    *ndim = drupe_py_local_shape(object, shape);
    PyObject *name = *ndim < 0 ? NULL : PyObject_GetAttr(object, state->names[DRUPE_PY_NAME__dtype]);
    bool good = name && drupe_py_dtype_arg(state, name, dtype) && *dtype != DRUPE_DTYPE_NONE;
    Py_XDECREF(name);
    if (!good && PyErr_Occurred()) (void)drupe_py_forgive();
    return good;
}

/* --- Reading ----------------------------------------------------------------------------------------------
 */

#define TAKES_IT 1
#define REFUSES  0
#define RAISED   (-1)

static inline uint64_t word_of(drupe_py_node node, unsigned dtype, unsigned dims, unsigned more)
{
    return (uint64_t)node | (uint64_t)dtype << 8 | (uint64_t)dims << 16 | (uint64_t)more << 32;
}

static inline int put(drupe_py_kernel_call *call, PyObject *object, uint64_t word)
{
    if (call->nodes == DRUPE_PY_NODES) return REFUSES;
    call->objects[call->nodes++] = object;
    call->signature[call->words++] = word;
    return TAKES_IT;
}

static inline int read_array(drupe_py_state *state, drupe_py_kernel_call *call, PyObject *object, bool settle)
{
    const drupe_array *array = drupe_py_array_of(object);
    /* Python code may run, and change what was read before. */
    if (settle && array->node) return drupe_py_settle(state, array) ? DRUPE_PY_AGAIN : RAISED;
    if (!call->queue) call->queue = array->queue;
    if (call->queue != array->queue) {
        call->other = array->queue;
        return REFUSES;
    }
    bool plain = (array->ndim == 1 && array->strides[0] == 1) || drupe_array_contiguous(array);
    return put(call, object,
               word_of(DRUPE_PY_NODE_ARRAY, (unsigned)array->dtype, (unsigned)array->ndim, plain));
}

static int read_one(drupe_py_state *state, drupe_py_kernel_call *call, PyObject *object, bool settle);

static int read_tuple(drupe_py_state *state, drupe_py_kernel_call *call, PyObject *object, bool settle)
{
    bool named = !PyTuple_CheckExact(object);
    const size_t count = (size_t)PyTuple_GET_SIZE(object);
    if (count > DRUPE_PY_NODES) return REFUSES;
    int result = put(call, object, word_of(DRUPE_PY_NODE_TUPLE, 0, named, (unsigned)count));
    if (result == TAKES_IT && named) call->signature[call->words++] = (uintptr_t)Py_TYPE(object);
    for (size_t i = 0; result == TAKES_IT && i < count; i++)
        result = read_one(state, call, PyTuple_GET_ITEM(object, i), settle);
    return result;
}

/* What is not among the usual arguments. */
static int read_other(drupe_py_state *state, drupe_py_kernel_call *call, PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    drupe_py_node node = DRUPE_PY_NODE_NUMPY;
    drupe_dtype dtype;
    int ndim = 0;
    if (type == (PyTypeObject *)state->local_accessor) {
        node = DRUPE_PY_NODE_LOCAL;
        if (!local_read(state, object, &dtype, &ndim)) dtype = DRUPE_DTYPE_NONE;
    } else {
        dtype = numpy_dtype(state, type);
    }
    if (dtype == DRUPE_DTYPE_NONE) return PyErr_Occurred() ? RAISED : REFUSES;
    return put(call, object, word_of(node, (unsigned)dtype, (unsigned)ndim, 0));
}

static int read_one(drupe_py_state *state, drupe_py_kernel_call *call, PyObject *object, bool settle)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) return read_array(state, call, object, settle);
    if (PyLong_CheckExact(object)) return put(call, object, word_of(DRUPE_PY_NODE_INT, 0, 0, 0));
    if (PyFloat_CheckExact(object)) return put(call, object, word_of(DRUPE_PY_NODE_FLOAT, 0, 0, 0));
    if (PyTuple_Check(object)) return read_tuple(state, call, object, settle);
    if (PyBool_Check(object)) return put(call, object, word_of(DRUPE_PY_NODE_BOOL, 0, 0, 0));
    if (PyComplex_CheckExact(object)) return put(call, object, word_of(DRUPE_PY_NODE_COMPLEX, 0, 0, 0));
    return read_other(state, call, object);
}

static bool read_space(const drupe_py_state *state, drupe_py_kernel_call *call, PyObject *space)
{
    call->grouped = drupe_py_is(state, space, DRUPE_PY_TYPE_NdRange);
    if (call->grouped) {
        const drupe_py_nd_range *both = (drupe_py_nd_range *)space;
        (void)drupe_py_range_sizes(both->local_range, call->local);
        space = both->global_range;
    } else if (!drupe_py_is(state, space, DRUPE_PY_TYPE_Range)) {
        return false;
    }
    call->dims = drupe_py_range_sizes(space, call->global);
    return true;
}

int drupe_py_call_read(drupe_py_state *state, drupe_py_kernel_call *call, PyObject *space,
                       PyObject *const *args, size_t nargs, bool settle)
{
    int result;
    call->other = NULL;
    if (!read_space(state, call, space)) return REFUSES;
    do {
        result = TAKES_IT;
        call->queue = NULL;
        call->nodes = call->words = 0;
        call->signature[call->words++] =
            (uint64_t)nargs << 16 | (uint64_t)call->dims << 8 | (uint64_t)call->grouped;
        for (size_t i = 0; result == TAKES_IT && i < nargs; i++)
            result = read_one(state, call, args[i], settle);
    } while (result == DRUPE_PY_AGAIN);
    return result;
}

/* --- Parts of a call --------------------------------------------------------------------------------------
 */

static int count_nodes(PyObject *object)
{
    int count = 1;
    for (Py_ssize_t i = 0; PyTuple_Check(object) && i < PyTuple_GET_SIZE(object); i++)
        count += count_nodes(PyTuple_GET_ITEM(object, i));
    return count;
}

int drupe_py_call_find(PyObject *args, PyObject *path)
{
    int node = -1;
    PyObject *in = args;
    bool good = PyTuple_Check(path) && PyTuple_GET_SIZE(path) > 0;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(path); i++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(path, i));
        if (place == -1 && PyErr_Occurred()) return -1;
        good = PyTuple_Check(in) && place >= 0 && place < PyTuple_GET_SIZE(in);
        node++;
        for (Py_ssize_t k = 0; good && k < place; k++) node += count_nodes(PyTuple_GET_ITEM(in, k));
        if (good) in = PyTuple_GET_ITEM(in, place);
    }
    if (good && node < DRUPE_PY_NODES) return node;
    PyErr_Format(PyExc_ValueError, "no argument has the path %R", path);
    return -1;
}

bool drupe_py_call_number(drupe_py_state *state, PyObject *object)
{
    return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) ||
           PyComplex_CheckExact(object) || numpy_dtype(state, Py_TYPE(object)) != DRUPE_DTYPE_NONE;
}

static PyObject *describe_tuple(drupe_py_state *state, PyObject *object)
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
        drupe_py_append(&list, drupe_py_call_describe(state, PyTuple_GET_ITEM(object, i)));
    PyObject *parts = drupe_py_tuple(list);
    return !parts ? NULL : Py_BuildValue("(ON)", Py_TYPE(object), parts);
}

PyObject *drupe_py_call_describe(drupe_py_state *state, PyObject *object)
{
    drupe_dtype dtype;
    int ndim;
    if (PyTuple_Check(object)) return describe_tuple(state, object);
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        const drupe_array *array = drupe_py_array_of(object);
        return Py_BuildValue("(ssis)", "array", drupe_dtype_name(array->dtype), array->ndim,
                             drupe_array_contiguous(array) ? "contiguous" : "strided");
    }
    if (Py_TYPE(object) == (PyTypeObject *)state->local_accessor) {
        if (local_read(state, object, &dtype, &ndim))
            return Py_BuildValue("(ssi)", "local", drupe_dtype_name(dtype), ndim);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return Py_NewRef(Py_TYPE(object)); /* of a number */
}
