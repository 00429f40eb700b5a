#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"

static const char has[] = "drupe.array has bool, int32, int64, float32 and float64 in native byte order";

/* Formats of struct and of NumPy, and a type that holds nearly all of their values. */
static const struct {
    const char *format, *name, *instead;
} formats[] = {{"b", "int8", "int32"},         {"B", "uint8", "int32"},   {"h", "int16", "int32"},
               {"H", "uint16", "int32"},       {"I", "uint32", "int64"},  {"L", "uint64", "int64"},
               {"Q", "uint64", "int64"},       {"N", "uint64", "int64"},  {"e", "float16", "float32"},
               {"g", "longdouble", "float64"}, {"Zf", "complex64", NULL}, {"Zd", "complex128", NULL},
               {"Zg", "clongdouble", NULL}};

PyObject *drupe_py_foreign_array(PyObject *object)
{
    if (PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyType_Check(object)) return NULL;
    PyObject *method = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__array__");
    if (!method) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
        return NULL;
    }
    Py_DECREF(method);
    PyObject *array = PyObject_CallMethod(object, "__array__", NULL);
    if (!array || PyObject_CheckBuffer(array)) return array;
    PyErr_Format(PyExc_TypeError, "%s.__array__() gave %s, which is no array of NumPy",
                 Py_TYPE(object)->tp_name, Py_TYPE(array)->tp_name);
    Py_DECREF(array);
    return NULL;
}

/* Whether a format is that of strings of bytes or of characters: an optional length and the letter. */
static bool is_text(const char *format)
{
    while (*format >= '0' && *format <= '9') format++;
    return (*format == 's' || *format == 'w' || *format == 'c') && format[1] == '\0';
}

static void refuse_text(const char *type)
{
    PyErr_Format(PyExc_TypeError, "%s holds text, not numbers: %s", type, has);
}

static bool is_date(PyObject *element)
{
    const char *name = Py_TYPE(element)->tp_name;
    return strcmp(name, "numpy.datetime64") == 0 || strcmp(name, "numpy.timedelta64") == 0;
}

void drupe_py_foreign_unreadable(PyObject *object, PyObject *array)
{
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return;
    drupe_py_saved saved = drupe_py_error_save();
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    PyObject *kind = !dtype ? NULL : PyObject_GetAttrString(dtype, "kind");
    PyObject *name = !dtype ? NULL : PyObject_Str(dtype);
    const char *letter = kind != NULL && PyUnicode_Check(kind) ? PyUnicode_AsUTF8(kind) : NULL;
    const char *type = Py_TYPE(object)->tp_name;
    PyErr_Clear();
    drupe_py_error_restore(saved); /* it stays, unless there is more to say */
    if (letter && strcmp(letter, "T") == 0)
        refuse_text(type);
    else if (letter && name && strstr("MmV", letter))
        PyErr_Format(PyExc_TypeError,
                     "%s with elements of type %U cannot become an array: %s. Convert it first: %s.", type,
                     name, has,
                     strcmp(letter, "V") != 0 ? "x.astype(\"int64\") in NumPy counts in the unit of the type"
                                              : "x.astype(\"float32\") in NumPy");
    Py_XDECREF(name);
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
}

void drupe_py_foreign_refuse(PyObject *object, const char *format)
{
    if (is_date(object)) { /* its buffer is one of bytes */
        drupe_py_foreign_element(object);
        return;
    }
    const char *type = Py_TYPE(object)->tp_name, *plain = format;
    bool foreign = strchr(PY_LITTLE_ENDIAN ? ">!" : "<", format[0]) && format[0] != '\0';
    if (format[0] != '\0' && strchr("@=<>!", format[0])) plain++;
    for (size_t i = 0; !foreign && i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(plain, formats[i].format) != 0) continue;
        if (formats[i].instead)
            PyErr_Format(PyExc_TypeError,
                         "%s with elements of type %s cannot become an array: %s. Convert it first: "
                         "x.astype(\"%s\") in NumPy.",
                         type, formats[i].name, has, formats[i].instead);
        else
            PyErr_Format(PyExc_TypeError, "%s with elements of type %s cannot become an array: %s. %s.", type,
                         formats[i].name, has, DRUPE_PY_COMPLEX_HINT);
        return;
    }
    if (is_text(plain))
        refuse_text(type);
    else if (strcmp(plain, "O") == 0)
        PyErr_Format(
            PyExc_TypeError,
            "%s holds Python objects, not numbers of one type: %s. Convert it first: "
            "x.astype(\"float64\") in NumPy, df.to_numpy(\"float64\") of the columns that are numbers "
            "in pandas.",
            type, has);
    else
        PyErr_Format(PyExc_TypeError,
                     "%s with elements of format '%s' cannot become an array: %s. Convert it first, with "
                     "x.astype(\"float64\") in NumPy.",
                     type, format, has);
}

void drupe_py_foreign_dtype(PyObject *dtype)
{
    PyObject *text = PyObject_Repr(dtype);
    const char *name = !text ? NULL : PyUnicode_AsUTF8(text);
    if (name)
        PyErr_Format(
            PyExc_TypeError,
            "%s is no data type of drupe.array. There are bool, int32, int64, float32 and float64.%s", name,
            strstr(name, "complex") ? " " DRUPE_PY_COMPLEX_HINT "." : "");
    Py_XDECREF(text);
}

void drupe_py_foreign_element(PyObject *element)
{
    if (PyComplex_Check(element) || strncmp(Py_TYPE(element)->tp_name, "numpy.complex", 13) == 0)
        PyErr_Format(PyExc_TypeError, "an array is made of real numbers, not of %s. %s.",
                     Py_TYPE(element)->tp_name, DRUPE_PY_COMPLEX_HINT);
    else if (PyUnicode_Check(element) || PyBytes_Check(element))
        refuse_text(Py_TYPE(element)->tp_name);
    else if (is_date(element))
        PyErr_Format(
            PyExc_TypeError,
            "an array is made of numbers, not of %s. Convert the dates first: x.astype(\"int64\") in "
            "NumPy counts in the unit of their type.",
            Py_TYPE(element)->tp_name);
    else
        PyErr_Format(PyExc_TypeError, "an array is made of numbers in sequences of equal length, not of %s",
                     Py_TYPE(element)->tp_name);
}

void drupe_py_foreign_keys(PyObject *object)
{
    if (!PyErr_ExceptionMatches(PyExc_KeyError)) return;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "an array is made of sequences, and %s has keys instead of positions. Pass its values: "
                 "df.to_numpy() of a table, list(x.values()) of a mapping.",
                 Py_TYPE(object)->tp_name);
}
