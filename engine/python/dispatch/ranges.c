/* drupe.Range and drupe.NdRange: how many work-items a kernel in Python has, in the order of its dimensions.
 *
 * A Range is made for nearly every call, so the class has a vectorcall of its own, which is five times as
 * fast as a class in Python. */
#include "engine/python/dispatch/dispatch_room.h"
#include "engine/python/runtime/runtime_room.h"
#include <stddef.h>
#include <structmember.h>

static const char *const dim_names[DRUPE_PY_DIMS] = {"dim0 of a Range", "dim1 of a Range", "dim2 of a Range"};

/* --- Range ---------------------------------------------------------------------------------------------- */

int drupe_py_range_sizes(PyObject *range, size_t sizes[DRUPE_PY_DIMS])
{
    int dims = (int)PyTuple_GET_SIZE(range);
    for (int i = 0; i < dims; i++) sizes[i] = PyLong_AsSize_t(PyTuple_GET_ITEM(range, i));
    return dims;
}

static bool product_check(const size_t *sizes, int dims)
{
    Py_ssize_t items = 1;
    bool fits = true, empty = false;
    for (int i = 0; i < dims; i++) empty = empty || sizes[i] == 0;
    for (int i = 0; !empty && fits && i < dims; i++)
        fits = !__builtin_mul_overflow(items, (Py_ssize_t)sizes[i], &items);
    if (!fits) PyErr_SetString(PyExc_OverflowError, "a Range has fewer than 2**63 work-items");
    return fits;
}

/* `objects` are what the sizes came from, or NULL. */
static PyObject *range_new(drupe_py_state *state, PyObject *const *objects, const size_t *sizes, int dims)
{
    PyObject *self = product_check(sizes, dims) ? drupe_py_new_of(state, DRUPE_PY_TYPE_Range, dims) : NULL;
#if PY_VERSION_HEX >= 0x030E0000
    if (self) ((PyTupleObject *)self)->ob_hash = -1; /* not computed yet */
#endif
    for (int i = 0; self && i < dims; i++) {
        bool own = objects && PyLong_CheckExact(objects[i]);
        PyObject *size = own ? Py_NewRef(objects[i]) : PyLong_FromSize_t(sizes[i]);
        PyTuple_SET_ITEM(self, i, size);
        if (!size) Py_CLEAR(self);
    }
    return self;
}

static PyObject *range_of(drupe_py_state *state, PyObject *const given[DRUPE_PY_DIMS])
{
    size_t sizes[DRUPE_PY_DIMS];
    int dims = drupe_py_given(given[2]) ? 3 : drupe_py_given(given[1]) ? 2 : 1;
    for (int i = 0; i < dims; i++)
        if (!drupe_py_size(given[i] ? given[i] : Py_None, dim_names[i], &sizes[i])) return NULL;
    return range_new(state, given, sizes, dims);
}

static const drupe_py_signature range_signature =
    DRUPE_PY_SIGNATURE("Range", DRUPE_PY_DIMS, 1, DRUPE_PY_NAME_dim0, DRUPE_PY_NAME_dim1, DRUPE_PY_NAME_dim2);

static PyObject *range_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    drupe_py_state *state = drupe_py_state_of_type((PyTypeObject *)type);
    PyObject *given[DRUPE_PY_DIMS];
    if (!drupe_py_args(state, &range_signature, args, PyVectorcall_NARGS(nargsf), kwnames, given))
        return NULL;
    return range_of(state, given);
}

static PyObject *range_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[DRUPE_PY_DIMS];
    if (!drupe_py_args_new(state, &range_signature, args, kwargs, given)) return NULL;
    return range_of(state, given);
}

static void range_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) Py_XDECREF(PyTuple_GET_ITEM(self, i));
    drupe_py_free(self, DRUPE_PY_TYPE_Range);
}

static PyObject *range_repr(PyObject *self)
{
    PyObject *sizes = PyTuple_Type.tp_repr(self); /* which ends in ",)" if there is one */
    PyObject *text = !sizes ? NULL
                     : PyTuple_GET_SIZE(self) == 1
                         ? PyUnicode_FromFormat("Range(%S)", PyTuple_GET_ITEM(self, 0))
                         : PyUnicode_FromFormat("Range%U", sizes);
    Py_XDECREF(sizes);
    return text;
}

static PyObject *range_get(PyObject *self, PyObject *index)
{
    return PyObject_GetItem(self, index);
}

static PyObject *range_size(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    size_t sizes[DRUPE_PY_DIMS], items = 1;
    int dims = drupe_py_range_sizes(self, sizes);
    for (int i = 0; i < dims; i++) items *= sizes[i];
    return PyLong_FromSize_t(items);
}

/* For pickle, of any protocol. */
static PyObject *range_reduce(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    PyObject *sizes = PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self));
    return !sizes ? NULL : Py_BuildValue("(ON)", Py_TYPE(self), sizes);
}

static PyObject *range_dim(PyObject *self, void *closure)
{
    Py_ssize_t i = (Py_ssize_t)(intptr_t)closure;
    if (i < PyTuple_GET_SIZE(self)) return Py_NewRef(PyTuple_GET_ITEM(self, i));
    return PyLong_FromLong(-1);
}

static PyObject *range_ndim(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(PyTuple_GET_SIZE(self));
}

static PyMethodDef range_methods[] = {
    {"get", range_get, METH_O, PyDoc_STR("get($self, index, /)\n--\n\nThe size of a dimension.")},
    {"size", range_size, METH_NOARGS, PyDoc_STR("size($self, /)\n--\n\nThe number of work-items.")},
    {"__reduce__", range_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef range_getset[] = {
    {"ndim", range_ndim, NULL, "The number of dimensions.", NULL},
    {"dim0", range_dim, NULL, "The size of the first dimension.", (void *)0},
    {"dim1", range_dim, NULL, "The size of the second dimension; -1 where there is none.", (void *)1},
    {"dim2", range_dim, NULL, "The size of the third dimension; -1 where there is none.", (void *)2},
    {NULL, NULL, NULL, NULL, NULL},
};

static int range_traverse(PyObject *self, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); i++) Py_VISIT(PyTuple_GET_ITEM(self, i));
    return drupe_py_traverse(self, visit, arg);
}

static PyType_Slot range_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR(
                    "Range(dim0, dim1=None, dim2=None)\n--\n\n"
                    "How many work-items a kernel has in each of 1 to 3 dimensions, of which the last one\n"
                    "runs fastest: a tuple of ints. It is empty if one of them is 0.\n\n"
                    ">>> Range(4, 5).size()\n20")},
    {Py_tp_base, &PyTuple_Type},
    {Py_tp_new, DRUPE_PY_FUNCTION(range_tp_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(range_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(range_traverse)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(range_repr)},
    {Py_tp_methods, range_methods},
    {Py_tp_getset, range_getset},
    {0, NULL},
};

/* Its size is that of a tuple. */
PyType_Spec drupe_py_Range_spec = {
    .name = "drupe.Range",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = range_slots,
};

void drupe_py_ranges_init(drupe_py_state *state)
{
    state->types[DRUPE_PY_TYPE_Range]->tp_vectorcall = range_vectorcall;
}

/* --- NdRange -------------------------------------------------------------------------------------------- */

static drupe_py_nd_range *nd_range_of(PyObject *self)
{
    return (drupe_py_nd_range *)self;
}

/* A Range of a Range, an int or a sequence of ints. New reference. */
static PyObject *range_arg(drupe_py_state *state, PyObject *object, const char *what,
                           size_t sizes[DRUPE_PY_DIMS])
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Range)) {
        (void)drupe_py_range_sizes(object, sizes);
        return Py_NewRef(object);
    }
    int dims = drupe_py_sizes(object, what, sizes, DRUPE_PY_DIMS);
    if (dims == 0) PyErr_Format(PyExc_ValueError, "%s needs 1 to 3 entries", what);
    return dims <= 0 ? NULL : range_new(state, NULL, sizes, dims);
}

static bool division_check(int dims, int locals, const size_t *global, const size_t *local)
{
    if (dims != locals) {
        PyErr_Format(PyExc_ValueError, "local_size has %d dimension%s and global_size %d", locals,
                     locals == 1 ? "" : "s", dims);
        return false;
    }
    for (int i = 0; i < dims; i++) {
        if (local[i] > 0 && global[i] % local[i] == 0) continue;
        if (local[i] == 0)
            PyErr_Format(PyExc_ValueError,
                         "local_size is 0 in dimension %d; a group has 1 or more work-items", i);
        else
            PyErr_Format(
                PyExc_ValueError,
                "in dimension %d local_size, %zu, does not divide global_size, %zu; round that up to "
                "%zu and let the work-items beyond the data return at once",
                i, local[i], global[i], (global[i] / local[i] + 1) * local[i]);
        return false;
    }
    return true;
}

static PyObject *nd_range_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("NdRange", 2, 2, DRUPE_PY_NAME_global_size, DRUPE_PY_NAME_local_size);
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[2], *self = NULL;
    size_t global[DRUPE_PY_DIMS], local[DRUPE_PY_DIMS];
    if (!drupe_py_args_new(state, &signature, args, kwargs, given)) return NULL;
    PyObject *global_range = range_arg(state, given[0], "global_size", global);
    PyObject *local_range = !global_range ? NULL : range_arg(state, given[1], "local_size", local);
    if (local_range && division_check((int)PyTuple_GET_SIZE(global_range), (int)PyTuple_GET_SIZE(local_range),
                                      global, local))
        self = drupe_py_new(state, DRUPE_PY_TYPE_NdRange);
    if (self) {
        nd_range_of(self)->global_range = Py_NewRef(global_range);
        nd_range_of(self)->local_range = Py_NewRef(local_range);
    }
    Py_XDECREF(global_range);
    Py_XDECREF(local_range);
    return self;
}

static void nd_range_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(nd_range_of(self)->global_range);
    Py_XDECREF(nd_range_of(self)->local_range);
    drupe_py_free(self, DRUPE_PY_TYPE_NdRange);
}

static int nd_range_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(nd_range_of(self)->global_range);
    Py_VISIT(nd_range_of(self)->local_range);
    return drupe_py_traverse(self, visit, arg);
}

static PyObject *nd_range_repr(PyObject *self)
{
    return PyUnicode_FromFormat("NdRange(%R, %R)", nd_range_of(self)->global_range,
                                nd_range_of(self)->local_range);
}

static PyObject *nd_range_compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(other) != Py_TYPE(self)) Py_RETURN_NOTIMPLEMENTED;
    int same =
        PyObject_RichCompareBool(nd_range_of(self)->global_range, nd_range_of(other)->global_range, Py_EQ);
    if (same > 0)
        same =
            PyObject_RichCompareBool(nd_range_of(self)->local_range, nd_range_of(other)->local_range, Py_EQ);
    return same < 0 ? NULL : PyBool_FromLong(same == (op == Py_EQ));
}

static PyObject *nd_range_reduce(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return Py_BuildValue("(O(OO))", Py_TYPE(self), nd_range_of(self)->global_range,
                         nd_range_of(self)->local_range);
}

static Py_hash_t nd_range_hash(PyObject *self)
{
    PyObject *both = PyTuple_Pack(2, nd_range_of(self)->global_range, nd_range_of(self)->local_range);
    Py_hash_t hash = !both ? -1 : PyObject_Hash(both);
    Py_XDECREF(both);
    return hash;
}

static PyObject *nd_range_global(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return Py_NewRef(nd_range_of(self)->global_range);
}

static PyObject *nd_range_local(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return Py_NewRef(nd_range_of(self)->local_range);
}

static PyMethodDef nd_range_methods[] = {
    {"get_global_range", nd_range_global, METH_NOARGS,
     PyDoc_STR("get_global_range($self, /)\n--\n\nThe Range of all work-items.")},
    {"get_local_range", nd_range_local, METH_NOARGS,
     PyDoc_STR("get_local_range($self, /)\n--\n\nThe Range of a group's work-items.")},
    {"__reduce__", nd_range_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef nd_range_members[] = {
    {"global_range", T_OBJECT, offsetof(drupe_py_nd_range, global_range), READONLY,
     "The Range of all work-items."},
    {"local_range", T_OBJECT, offsetof(drupe_py_nd_range, local_range), READONLY,
     "The Range of a group's work-items."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot nd_range_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "NdRange(global_size, local_size)\n--\n\n"
         "How many work-items a kernel has, and how many of them make a group, which shares local\n"
         "memory and meets at barriers. Both are a Range, an int or a sequence of ints; the second\n"
         "one divides the first one in each dimension.\n\n"
         ">>> NdRange((64, 64), (8, 8)).local_range.size()\n64")},
    {Py_tp_new, DRUPE_PY_FUNCTION(nd_range_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(nd_range_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(nd_range_traverse)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(nd_range_repr)},
    {Py_tp_richcompare, DRUPE_PY_FUNCTION(nd_range_compare)},
    {Py_tp_hash, DRUPE_PY_FUNCTION(nd_range_hash)},
    {Py_tp_methods, nd_range_methods},
    {Py_tp_members, nd_range_members},
    {0, NULL},
};

DRUPE_PY_SPEC(NdRange, "drupe.NdRange", drupe_py_nd_range, Py_TPFLAGS_HAVE_GC, nd_range_slots);
