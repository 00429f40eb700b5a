/* The roof: drupe._engine as a module, what joins it to the kernel and to extension modules of others, and
 * its functions for tests and diagnosis.
 *
 * Rooms, bottom up: runtime, errors, waits, notebook, objects, array, submit, types, module.
 *
 * py_link.c registers the cell check. It takes unreported failures, then starts `drupe-failures` by
 * drupe_failures_watch().
 *
 * Owns: the module. Locks: the GIL. Threads: any. */
#ifndef DRUPE_PYTHON_MODULE_ROOM_H
#define DRUPE_PYTHON_MODULE_ROOM_H

#include "drupe/ext.h"
#include "engine/python/runtime/runtime_room.h"

/* Functions of the module; arrays end with a NULL name. */
extern PyMethodDef drupe_py_task_functions[], drupe_py_cache_functions[], drupe_py_trace_functions[],
    drupe_py_failure_functions[], drupe_py_fault_functions[];

/* Parts of module creation. 0, or -1 with an exception. */
int drupe_py_link_init(PyObject *module, drupe_py_state *state);
int drupe_py_ext_init(PyObject *module, drupe_py_state *state);

/* submit_host() of drupe/ext.h. */
PyObject *drupe_py_submit_host(drupe_queue *queue, const char *label, drupe_ext_function function, void *user,
                               void (*release)(void *user), PyObject *const *keep, size_t nkeep,
                               PyObject *wait_for);
/* Whether the kernel's handler asks drupe_py_fault_claim(), which is what the link's set_fault_claim() takes.
 */
bool drupe_py_claims_faults(void);
int drupe_py_fault_claim(int signal, void *siginfo, void *ucontext);
/* What the link's set_usage() takes. */
size_t drupe_py_usage(char *json, size_t size);

#endif
