/* drupe.array's data types: one object per type, equal to its name, to NumPy's data type and to NumPy's
 * scalar class. NumPy is only imported when somebody asks for `dtype`, the NumPy type. */
#include "engine/python/array/py_array_room.h"
#include <stddef.h>
#include <string.h>

static drupe_dtype dtype_of(PyObject *self)
{
    return ((drupe_py_dtype *)self)->dtype;
}

PyObject *drupe_py_dtype_object(drupe_py_state *state, drupe_dtype dtype)
{
    return Py_NewRef(state->dtypes[dtype]);
}

drupe_dtype drupe_py_dtype_float(drupe_queue *queue)
{
    bool fp64 = drupe_device_number(drupe_queue_device(queue), DRUPE_INFO_HAS_FP64, 0) != 0;
    return fp64 ? DRUPE_FLOAT64 : DRUPE_FLOAT32;
}

drupe_dtype drupe_py_dtype_complex(drupe_queue *queue)
{
    return drupe_py_dtype_float(queue) == DRUPE_FLOAT64 ? DRUPE_COMPLEX128 : DRUPE_COMPLEX64;
}

drupe_dtype drupe_py_dtype_of_scalar(const drupe_scalar *scalar, drupe_queue *queue)
{
    switch (scalar->kind) {
    case DRUPE_SCALAR_KIND_BOOL: return DRUPE_BOOL;
    case DRUPE_SCALAR_KIND_INT: return scalar->big ? DRUPE_UINT64 : DRUPE_INT64;
    case DRUPE_SCALAR_KIND_FLOAT: return drupe_py_dtype_float(queue);
    default: return drupe_py_dtype_complex(queue);
    }
}

drupe_dtype drupe_py_dtype_of_kind(char kind, size_t itemsize)
{
    for (int i = 0; i < DRUPE_DTYPE_COUNT; i++)
        if (drupe_dtype_kind((drupe_dtype)i) == kind && drupe_dtype_size((drupe_dtype)i) == itemsize)
            return (drupe_dtype)i;
    return DRUPE_DTYPE_NONE;
}

/* The codes of C's types, as NumPy and the module array have them: "d" is float64. */
static drupe_dtype dtype_of_code(const char *code)
{
    static const struct {
        char letter;
        drupe_dtype dtype;
    } codes[] = {{'b', DRUPE_INT8},      {'B', DRUPE_UINT8},   {'h', DRUPE_INT16},   {'H', DRUPE_UINT16},
                 {'i', DRUPE_INT32},     {'I', DRUPE_UINT32},  {'q', DRUPE_INT64},   {'Q', DRUPE_UINT64},
                 {'e', DRUPE_FLOAT16},   {'f', DRUPE_FLOAT32}, {'d', DRUPE_FLOAT64}, {'F', DRUPE_COMPLEX64},
                 {'D', DRUPE_COMPLEX128}};
    if (code[0] == '\0' || code[1] != '\0') return DRUPE_DTYPE_NONE;
    if (code[0] == 'l' || code[0] == 'L')
        return drupe_py_dtype_of_kind(code[0] == 'l' ? 'i' : 'u', sizeof(long));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].letter == code[0]) return codes[i].dtype;
    return DRUPE_DTYPE_NONE;
}

/* A type's name in a str, or its code; NumPy's class of booleans was called bool_ for long. */
static drupe_dtype dtype_of_text(PyObject *text)
{
    const char *name = PyUnicode_AsUTF8(text);
    if (!name) {
        PyErr_Clear();
        return DRUPE_DTYPE_NONE;
    }
    if (strcmp(name, "bool_") == 0) return DRUPE_BOOL;
    drupe_dtype found = drupe_dtype_find(name);
    return found == DRUPE_DTYPE_NONE ? dtype_of_code(name) : found;
}

/* By the name that an attribute of the object gives. */
static drupe_dtype dtype_of_attribute(PyObject *object, const char *attribute)
{
    PyObject *name = PyObject_GetAttrString(object, attribute);
    drupe_dtype found = DRUPE_DTYPE_NONE;
    if (name && PyUnicode_Check(name)) found = dtype_of_text(name);
    Py_XDECREF(name);
    PyErr_Clear();
    return found;
}

/* What an object means as a data type; NONE, without an exception, if nothing. */
static drupe_dtype dtype_find(const drupe_py_state *state, PyObject *object)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_DType)) return dtype_of(object);
    if (PyUnicode_Check(object)) return dtype_of_text(object);
    if (object == (PyObject *)&PyBool_Type) return DRUPE_BOOL;
    if (object == (PyObject *)&PyLong_Type) return DRUPE_INT64;
    if (object == (PyObject *)&PyFloat_Type) return DRUPE_FLOAT64;
    if (object == (PyObject *)&PyComplex_Type) return DRUPE_COMPLEX128;
    if (PyType_Check(object)) return dtype_of_attribute(object, "__name__");
    /* numpy.dtype: `str` tells the byte order too, and `isbuiltin` nobody else has. */
    if (PyObject_HasAttrString(object, "isbuiltin")) return dtype_of_attribute(object, "str");
    return DRUPE_DTYPE_NONE;
}

bool drupe_py_dtype_arg(drupe_py_state *state, PyObject *object, drupe_dtype *dtype)
{
    if (!drupe_py_given(object)) return true;
    drupe_dtype found = dtype_find(state, object);
    if (found == DRUPE_DTYPE_NONE) {
        drupe_py_refuse(drupe_py_call("drupe._foreign", "dtype", "(O)", object));
        return false;
    }
    *dtype = found;
    return true;
}

static PyObject *dtype_compare(PyObject *self, PyObject *other, int op)
{
    if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    drupe_py_state *state = drupe_py_state_of(self);
    return PyBool_FromLong((dtype_find(state, other) == dtype_of(self)) == (op == Py_EQ));
}

static Py_hash_t dtype_hash(PyObject *self)
{
    PyObject *name = PyUnicode_FromString(drupe_dtype_name(dtype_of(self)));
    Py_hash_t hash = !name ? -1 : PyObject_Hash(name);
    Py_XDECREF(name);
    return hash;
}

static PyObject *dtype_str(PyObject *self)
{
    return PyUnicode_FromString(drupe_dtype_name(dtype_of(self)));
}

static PyObject *dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("drupe.array.%s", drupe_dtype_name(dtype_of(self)));
}

static PyObject *dtype_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("DType", 1, 1, DRUPE_PY_NAME_dtype);
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[1];
    drupe_dtype dtype = DRUPE_DTYPE_NONE;
    if (!drupe_py_args_new(state, &signature, args, kwargs, given)) return NULL;
    if (given[0] == Py_None) {
        PyErr_SetString(PyExc_TypeError, "name a data type, such as \"float32\"");
        return NULL;
    }
    return drupe_py_dtype_arg(state, given[0], &dtype) ? drupe_py_dtype_object(state, dtype) : NULL;
}

static void dtype_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    drupe_py_free(self, DRUPE_PY_TYPE_DType);
}

static PyMemberDef dtype_members[] = {
    {"name", T_STRING, offsetof(drupe_py_dtype, name), READONLY, "The name.\n\n>>> float32.name\n'float32'"},
    {"itemsize", T_PYSSIZET, offsetof(drupe_py_dtype, itemsize), READONLY,
     "Bytes of an element.\n\n>>> complex64.itemsize\n8"},
    {"kind", T_CHAR, offsetof(drupe_py_dtype, kind), READONLY,
     "\"b\" of bool, \"i\" and \"u\" of integers with and without a sign, \"f\" of floats, \"c\" of complex "
     "numbers.\n\n>>> uint8.kind\n'u'"},
    {"str", T_STRING_INPLACE, offsetof(drupe_py_dtype, typestr), READONLY,
     "NumPy's type string: byte order, kind, bytes.\n\n>>> float32.str\n'<f4'"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot dtype_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "DType(dtype)\n--\n\nA data type of arrays, by any of its names.\n\n"
         "dtype: a name, a code such as 'd', a class of Python's numbers, a type of NumPy or a DType. It is "
         "equal to\nall of these, and drupe.array has one object for each. TypeError: arrays have no such "
         "type.\n\n"
         ">>> DType(float), DType('float64') is float64, float64 == 'd'\n"
         "(drupe.array.float64, True, True)")},
    {Py_tp_new, DRUPE_PY_FUNCTION(dtype_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(dtype_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_richcompare, DRUPE_PY_FUNCTION(dtype_compare)},
    {Py_tp_hash, DRUPE_PY_FUNCTION(dtype_hash)},
    {Py_tp_str, DRUPE_PY_FUNCTION(dtype_str)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(dtype_repr)},
    {Py_tp_members, dtype_members},
    {0, NULL},
};

DRUPE_PY_SPEC(DType, "drupe.array.DType", drupe_py_dtype, Py_TPFLAGS_HAVE_GC, dtype_slots);

static PyObject *dtype_make(drupe_py_state *state, drupe_dtype dtype)
{
    drupe_py_dtype *self = (drupe_py_dtype *)drupe_py_new(state, DRUPE_PY_TYPE_DType);
    if (!self) return NULL;
    const char order = drupe_dtype_size(dtype) == 1 ? '|' : PY_LITTLE_ENDIAN ? '<' : '>';
    self->dtype = dtype;
    self->name = drupe_dtype_name(dtype);
    self->itemsize = (Py_ssize_t)drupe_dtype_size(dtype);
    self->kind = drupe_dtype_kind(dtype);
    PyOS_snprintf(self->typestr, sizeof self->typestr, "%c%c%d", order, self->kind, (int)self->itemsize);
    return (PyObject *)self;
}

int drupe_py_dtypes_init(PyObject *module, drupe_py_state *state)
{
    PyObject *all = PyDict_New();
    for (int i = 0; all && i < DRUPE_DTYPE_COUNT; i++) {
        PyObject *self = dtype_make(state, (drupe_dtype)i);
        state->dtypes[i] = self;
        if (!self || PyDict_SetItemString(all, drupe_dtype_name((drupe_dtype)i), self) < 0) Py_CLEAR(all);
    }
    int result = !all ? -1 : PyModule_AddObjectRef(module, "dtypes", all);
    if (result == 0) result = PyModule_AddIntConstant(module, "_max_dims", DRUPE_MAX_DIMS);
    Py_XDECREF(all);
    return result;
}
