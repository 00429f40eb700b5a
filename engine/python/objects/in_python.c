/* What is written in Python: members of our types that need no speed, in modules of the package that are
 * loaded when one of their functions is first called. */
#include "engine/python/objects/objects_room.h"

PyObject *drupe_py_written(const char *path, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames)
{
    const char *name = strrchr(path, '.') + 1;
    char where[64];
    PyOS_snprintf(where, sizeof where, "drupe.%.*s", (int)(name - 1 - path), path);
    PyObject *module = PyImport_ImportModule(where);
    PyObject *function = !module ? NULL : PyObject_GetAttrString(module, name);
    if (function && self) Py_SETREF(function, PyMethod_New(function, self));
    PyObject *result = !function ? NULL : PyObject_Vectorcall(function, args, (size_t)nargs, kwnames);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

PyObject *drupe_py_written_get(PyObject *self, void *path)
{
    return drupe_py_written(path, self, NULL, 0, NULL);
}

PyObject *drupe_py_mimebundle(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return drupe_py_written("_repr.mimebundle", self, args, nargs, kwnames);
}

PyObject *drupe_py_attribute_of(PyObject *self, void *names)
{
    const char *second = strchr(names, '.') + 1;
    PyObject *first = PyUnicode_FromStringAndSize(names, second - 1 - (const char *)names);
    PyObject *object = !first ? NULL : PyObject_GetAttr(self, first);
    PyObject *value = !object ? NULL : PyObject_GetAttrString(object, second);
    Py_XDECREF(object);
    Py_XDECREF(first);
    return value;
}

PyObject *drupe_py_constant(PyObject *self, void *text)
{
    (void)self;
    return !text ? Py_NewRef(Py_None) : PyUnicode_FromString(text);
}
