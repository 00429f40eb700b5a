/* Whether host memory of Python objects is sure to be there. */
#include "engine/python/objects/objects_room.h"
#include <string.h>

#define BASES_MOST 4 /* NumPy keeps one: the array that owns what views of it show */

/* What an array of NumPy's shows the memory of, borrowed; NULL: its own, or nobody knows. */
static PyObject *base_of(const drupe_py_state *state, PyObject *array, bool *known)
{
    PyObject *base = PyObject_GetAttr(array, state->names[DRUPE_PY_NAME_base]);
    *known = base != NULL;
    if (!base) PyErr_Clear();
    Py_XDECREF(base); /* the array keeps it */
    return base == Py_None ? NULL : base;
}

bool drupe_py_owner_sound(const drupe_py_state *state, PyObject *owner)
{
    for (int i = 0; i < BASES_MOST; i++) {
        if (owner && PyMemoryView_Check(owner)) owner = PyMemoryView_GET_BUFFER(owner)->obj;
        if (!owner) return false;
        if (PyBytes_CheckExact(owner) || PyByteArray_CheckExact(owner)) return true;
        if (strcmp(Py_TYPE(owner)->tp_name, "numpy.ndarray") != 0) return false;
        bool known;
        owner = base_of(state, owner, &known);
        if (!owner) return known;
    }
    return false;
}
