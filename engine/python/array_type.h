/* The parts of the type Array, which number.c puts together. */
#ifndef DRUPE_PYTHON_ARRAY_TYPE_H
#define DRUPE_PYTHON_ARRAY_TYPE_H

#include "array.h"

/* array.c, attribute.c */
void drupe_py_array_dealloc(PyObject *self);
PyObject *drupe_py_array_repr(PyObject *self);
PyObject *drupe_py_array_str(PyObject *self);
extern PyMethodDef drupe_py_array_methods[];
extern PyGetSetDef drupe_py_array_getset[];

/* index.c */
Py_ssize_t drupe_py_array_length(PyObject *self);
PyObject *drupe_py_array_subscript(PyObject *self, PyObject *key);
int drupe_py_array_subscript_set(PyObject *self, PyObject *key, PyObject *value);
/* Element `index` of the first axis; IndexError ends an iteration. */
PyObject *drupe_py_array_row(PyObject *self, Py_ssize_t index);

/* number.c */
PyObject *drupe_py_array_compare(PyObject *self, PyObject *other, int op);

/* ufunc.c */
PyObject *drupe_py_array_ufunc(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
