/* Host data that is not what arrays are made of: objects that have an array made of them, and elements of
 * types that there are none of here. */
#ifndef DRUPE_PYTHON_FOREIGN_H
#define DRUPE_PYTHON_FOREIGN_H

#include "objects.h"

/* What an object's __array__() gives, as NumPy asks for it (a new reference, which has a buffer); NULL
 * without an exception if it has no such method. Runs Python code. */
PyObject *drupe_py_foreign_array(PyObject *object);

/* Raise TypeError for an object whose elements have this format of the module struct: what they are, and what
 * to do. */
void drupe_py_foreign_refuse(PyObject *object, const char *format);
/* The exception that is set says why `array`, which was made of `object`, has no buffer. Where its data type
 * is the reason, a TypeError says that instead. Runs Python code. */
void drupe_py_foreign_unreadable(PyObject *object, PyObject *array);
/* Raise TypeError for what is no data type here. Runs Python code. */
void drupe_py_foreign_dtype(PyObject *dtype);
/* The same for one element. */
void drupe_py_foreign_element(PyObject *element);
/* An element was asked for by its number: where the exception that is set is KeyError, the object is indexed
 * by keys, which a TypeError says instead. */
void drupe_py_foreign_keys(PyObject *object);

#define DRUPE_PY_COMPLEX_HINT                                                                                \
    "Keep the real and the imaginary parts of complex numbers as two arrays: asarray(x.real), "              \
    "asarray(x.imag)"

#endif
