/* Faults of device work: who may take them, and failures on demand for tests.
 *
 * A thread that holds or may take the GIL is never parked, since everything else would stop with it. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"

int drupe_py_fault_claim(int signal, void *siginfo, void *ucontext)
{
    if (PyGILState_GetThisThreadState()) return 0;
    return drupe_fault_claim(signal, siginfo, ucontext);
}

static PyObject *contain_faults(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    /* The kernel's handler asks already. */
    if (!drupe_py_claims_faults() && drupe_fault_install(drupe_py_fault_claim) != DRUPE_OK)
        return drupe_py_raise(state, NULL);
    Py_RETURN_NONE;
}

static PyObject *fault_plan(PyObject *module, PyObject *args)
{
    const char *plan = NULL;
    if (!PyArg_ParseTuple(args, "|z:_fault_plan", &plan)) return NULL;
    if (drupe_fault_plan(plan) != DRUPE_OK) return drupe_py_raise(drupe_py_state_of_module(module), NULL);
    Py_RETURN_NONE;
}

static PyObject *fault_calls(PyObject *module, PyObject *args)
{
    (void)module;
    const char *entry = NULL;
    if (!PyArg_ParseTuple(args, "|z:_fault_calls", &entry)) return NULL;
    return PyLong_FromUnsignedLongLong(drupe_fault_calls(entry));
}

static PyObject *fault_made(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    return PyLong_FromUnsignedLongLong(drupe_fault_made());
}

PyMethodDef drupe_py_fault_functions[] = {
    {"contain_faults", contain_faults, METH_NOARGS,
     PyDoc_STR("contain_faults()\n--\n\n"
               "Let this process survive device work that faults (touches memory that it may\n"
               "not) on a processor of this machine: the work fails with DeviceLostError\n"
               "instead.\n"
               "\n"
               "The Drupe kernel does so by itself. A plain program ends at a fault, as it\n"
               "would without Drupe, until it calls this once; handlers for SIGSEGV, SIGBUS,\n"
               "SIGFPE and SIGILL are then installed, in front of those that are there, which\n"
               "get every fault that is not a device's. Call faulthandler.enable() before.")},
    {"_fault_plan", fault_plan, METH_VARARGS,
     PyDoc_STR("_fault_plan(plan=None)\n--\n\nWhat shall fail, in the language of DRUPE_FAULT; for tests.")},
    {"_fault_calls", fault_calls, METH_VARARGS,
     PyDoc_STR("_fault_calls(entry=None)\n--\n\nCalls of the backends since the plan was made; for tests.")},
    {"_fault_made", fault_made, METH_NOARGS, PyDoc_STR("_fault_made()\n--\n\nFailures that the plan made.")},
    {NULL, NULL, 0, NULL},
};
