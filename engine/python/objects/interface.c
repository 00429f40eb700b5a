/* Reading __sycl_usm_array_interface__: which bytes of which allocation an object covers; drupe/_memory.py
 * works out which bytes. The allocation is found by its address, so `syclobj` is not needed, and memory that
 * this process did not get from drupe is refused: nothing is known of its device. */
#include "engine/python/objects/objects_room.h"

bool drupe_py_is_memory(const drupe_py_state *state, PyObject *object)
{
    return drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMDevice) ||
           drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMShared) ||
           drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMHost);
}

static bool span_find(char *pointer, size_t nbytes, drupe_py_span *span)
{
    span->memory = drupe_memory_find(pointer);
    if (!span->memory) {
        PyErr_SetString(PyExc_ValueError,
                        "the object's __sycl_usm_array_interface__ does not point into memory "
                        "that this process allocated with drupe");
        return false;
    }
    span->offset = (size_t)(pointer - (char *)drupe_memory_pointer(span->memory));
    span->nbytes = nbytes;
    if (nbytes <= drupe_memory_size(span->memory) - span->offset) return true;
    PyErr_Format(PyExc_ValueError,
                 "the object's __sycl_usm_array_interface__ covers %zu bytes from offset %zu, and the "
                 "allocation has %zu",
                 nbytes, span->offset, drupe_memory_size(span->memory));
    drupe_memory_release(span->memory);
    return false;
}

int drupe_py_interface_read(drupe_py_state *state, PyObject *object, drupe_py_span *span)
{
    PyObject *interface = PyObject_GetAttr(object, state->names[DRUPE_PY_NAME___sycl_usm_array_interface__]);
    if (!interface) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        return 0;
    }
    PyObject *found = drupe_py_call("drupe._memory", "span", "(O)", interface);
    unsigned long long address;
    Py_ssize_t nbytes;
    bool good = found && PyArg_ParseTuple(found, "Kn", &address, &nbytes) &&
                span_find((char *)(uintptr_t)address, (size_t)nbytes, span);
    Py_XDECREF(found);
    Py_DECREF(interface);
    return good ? 1 : -1;
}
