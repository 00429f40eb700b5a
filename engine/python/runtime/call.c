/* Calls of functions that are written in Python, and values for the records that they are given. */
#include "engine/python/runtime/runtime_room.h"
#include <stdarg.h>

PyObject *drupe_py_call(const char *module, const char *function, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyObject *args = Py_VaBuildValue(format, list);
    va_end(list);
    PyObject *imported = !args ? NULL : PyImport_ImportModule(module);
    PyObject *callable = !imported ? NULL : PyObject_GetAttrString(imported, function);
    PyObject *result = !callable ? NULL : PyObject_CallObject(callable, args);
    Py_XDECREF(callable);
    Py_XDECREF(imported);
    Py_XDECREF(args);
    return result;
}

PyObject *drupe_py_text(const char *utf8)
{
    return PyUnicode_DecodeUTF8(utf8, (Py_ssize_t)strlen(utf8), "replace");
}

PyObject *drupe_py_text_or_none(const char *utf8)
{
    if (!utf8 || utf8[0] == '\0') Py_RETURN_NONE;
    return drupe_py_text(utf8);
}

PyObject *drupe_py_number_or_none(uint64_t number)
{
    if (number == 0) Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(number);
}

PyObject *drupe_py_list(const void *records, size_t count, size_t size, PyObject *(*make)(const void *record))
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = make((const char *)records + i * size);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}
