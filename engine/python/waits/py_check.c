/* Checked mode from Python. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

#define SETTLE_NS 5000000000u

int drupe_py_check_host(drupe_py_state *state, const drupe_memory *memory, bool writes)
{
    if (!drupe_check_active()) return 0;
    if (drupe_check_host(drupe_memory_pointer(memory), drupe_memory_size(memory), writes) == DRUPE_OK)
        return 0;
    drupe_py_raise_on(state, drupe_memory_queue(memory));
    return -1;
}

static PyObject *check_begin(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    if (!drupe_py_enter(drupe_py_state_of_module(module))) return NULL;
    drupe_check_begin();
    Py_RETURN_NONE;
}

/* What is in flight may still do wrong: it is waited for, and the memory is looked at once more. */
static PyObject *check_end(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    drupe_library_settle(SETTLE_NS);
    Py_END_ALLOW_THREADS;
    drupe_status status = drupe_check_memory();
    drupe_error error = *drupe_error_last();
    drupe_check_end();
    if (status == DRUPE_OK) Py_RETURN_NONE;
    return drupe_py_raise_object(drupe_py_error_object(state, &error, NULL, NULL));
}

static PyObject *check_findings(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    return PyLong_FromUnsignedLongLong(drupe_check_findings());
}

PyMethodDef drupe_py_check_functions[] = {
    {"_check_begin", check_begin, METH_NOARGS, NULL},
    {"_check_end", check_end, METH_NOARGS, NULL},
    {"_check_findings", check_findings, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
