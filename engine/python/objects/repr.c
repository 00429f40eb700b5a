/* What notebooks ask objects for; drupe/_repr.py answers. */
#include "engine/python/objects/objects_room.h"

PyObject *drupe_py_repr(PyObject *self, const char *function, PyObject *argument)
{
    PyObject *module = PyImport_ImportModule("drupe._repr");
    PyObject *result = !module ? NULL : PyObject_CallMethod(module, function, "OO", self, argument);
    Py_XDECREF(module);
    return result;
}

PyObject *drupe_py_mimebundle(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"include", "exclude", NULL};
    PyObject *include = Py_None, *exclude = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:_repr_mimebundle_", names, &include, &exclude))
        return NULL;
    return drupe_py_repr(self, "mimebundle", Py_None);
}
