/* Faults of device work: who may take them.
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
    {NULL, NULL, 0, NULL},
};
