/* What NumPy asks an array that one of its ufuncs meets.
 *
 * An operator whose left side is NumPy's comes here as the ufunc of that operator: Array's own operator
 * answers, which takes NumPy's numbers and refuses its arrays. Ufuncs that are called by name would have to
 * copy the array to the host: they are refused, with the function of drupe.array that does the same on the
 * device. */
#include "engine/python/array/py_array_room.h"

#include <stddef.h>
#include <string.h>

/* Operators, and where the function of each stands. */
static const struct {
    const char *name;
    size_t slot;
} operators[] = {
    {"add", offsetof(PyNumberMethods, nb_add)},
    {"subtract", offsetof(PyNumberMethods, nb_subtract)},
    {"multiply", offsetof(PyNumberMethods, nb_multiply)},
    {"divide", offsetof(PyNumberMethods, nb_true_divide)},
    {"true_divide", offsetof(PyNumberMethods, nb_true_divide)},
    {"floor_divide", offsetof(PyNumberMethods, nb_floor_divide)},
    {"remainder", offsetof(PyNumberMethods, nb_remainder)},
    {"power", offsetof(PyNumberMethods, nb_power)},
    {"matmul", offsetof(PyNumberMethods, nb_matrix_multiply)},
    {"bitwise_and", offsetof(PyNumberMethods, nb_and)},
    {"bitwise_or", offsetof(PyNumberMethods, nb_or)},
    {"bitwise_xor", offsetof(PyNumberMethods, nb_xor)},
    {"left_shift", offsetof(PyNumberMethods, nb_lshift)},
    {"right_shift", offsetof(PyNumberMethods, nb_rshift)},
};

/* Comparisons, and what each is seen from its right side. */
static const struct {
    const char *name;
    int swapped;
} comparisons[] = {{"less", Py_GT},      {"less_equal", Py_GE}, {"equal", Py_EQ},
                   {"not_equal", Py_NE}, {"greater", Py_LT},    {"greater_equal", Py_LE}};

/* Where names of NumPy are others than those of the array API. */
static const char *const others[][2] = {{"absolute", "abs"}, {"fabs", "abs"}, {"power", "pow"}};

/* A number that NumPy compares has become an array without dimensions: it is a number again. New reference.
 */
static PyObject *number_of(PyObject *object)
{
    PyObject *nowhere = PyObject_CheckBuffer(object) ? PyTuple_New(0) : NULL;
    PyObject *number = !nowhere ? NULL : PyObject_GetItem(object, nowhere);
    Py_XDECREF(nowhere);
    if (number) return number;
    PyErr_Clear();
    return Py_NewRef(object);
}

/* The operator's result, for a left side of NumPy's. NULL without an error: no operator is called so. */
static PyObject *answer(PyObject *self, PyObject *left, const char *name)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (strcmp(name, operators[i].name) != 0) continue;
        const char *slot = (const char *)Py_TYPE(self)->tp_as_number + operators[i].slot;
        if (strcmp(name, "power") == 0) return (*(const ternaryfunc *)slot)(left, self, Py_None);
        return (*(const binaryfunc *)slot)(left, self);
    }
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        if (strcmp(name, comparisons[i].name) != 0) continue;
        PyObject *number = number_of(left);
        PyObject *result = drupe_py_array_compare(self, number, comparisons[i].swapped);
        Py_DECREF(number);
        return result;
    }
    return NULL;
}

/* The function of drupe.array that does what the ufunc does, or NULL. */
static const char *of_ours(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i][0]) == 0) name = others[i][1];
    PyObject *module = PyImport_ImportModule("drupe.array");
    PyObject *function = !module ? NULL : PyObject_GetAttrString(module, name);
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(function);
    return !function ? NULL : name;
}

static void refuse(const char *name, const char *method, bool called)
{
    const char *ours = of_ours(name);
    if (called && ours)
        PyErr_Format(PyExc_TypeError,
                     "numpy.%s() takes no arrays on devices: drupe.array.%s() computes there, and "
                     "drupe.array.asnumpy(x) copies the values to the host for NumPy",
                     name, ours);
    else
        PyErr_Format(PyExc_TypeError,
                     "numpy.%s%s%s() takes no arrays on devices, and drupe.array has no such function: "
                     "drupe.array.asnumpy(x) copies the values to the host for NumPy",
                     name, called ? "" : ".", called ? "" : method);
}

/* Whether the call can come from an operator: two operands, of which ours is the right one, and as output
 * none or, in +=, the left one, which is refused as it is in +. */
static bool is_operator(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) != 4) return false;
    PyObject *left = PyTuple_GET_ITEM(args, 2);
    if (Py_TYPE(left) == Py_TYPE(self) || Py_TYPE(PyTuple_GET_ITEM(args, 3)) != Py_TYPE(self)) return false;
    if (!kwargs || PyDict_GET_SIZE(kwargs) == 0) return true;
    PyObject *out = PyDict_GetItemString(kwargs, "out"); /* borrowed for this line alone */
    return PyDict_GET_SIZE(kwargs) == 1 && out && PyTuple_Check(out) && PyTuple_GET_SIZE(out) == 1 &&
           PyTuple_GET_ITEM(out, 0) == left;
}

PyObject *drupe_py_array_ufunc(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) < 2) {
        PyErr_SetString(PyExc_TypeError, "__array_ufunc__() takes a ufunc, its method and its arguments");
        return NULL;
    }
    PyObject *ufunc = PyObject_GetAttrString(PyTuple_GET_ITEM(args, 0), "__name__");
    const char *name = !ufunc ? NULL : PyUnicode_AsUTF8(ufunc);
    const char *method = !name ? NULL : PyUnicode_AsUTF8(PyTuple_GET_ITEM(args, 1));
    PyObject *result = NULL;
    if (method) {
        bool called = strcmp(method, "__call__") == 0;
        if (called && is_operator(self, args, kwargs)) result = answer(self, PyTuple_GET_ITEM(args, 2), name);
        if (!result && !PyErr_Occurred()) refuse(name, method, called);
    }
    Py_XDECREF(ufunc);
    return result;
}
