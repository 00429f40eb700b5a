/* Submitting from Python: the places that copies and fills work on, and kernel launches. */
#ifndef DRUPE_PYTHON_SUBMIT_H
#define DRUPE_PYTHON_SUBMIT_H

#include "objects.h"
#include "wait.h"

/* Where copies and fills read and write: USM of a Memory or contiguous array, or a host buffer. Zeroed =
 * empty. */
typedef struct drupe_py_place {
    void *pointer;
    size_t nbytes;
    drupe_queue *queue;  /* borrowed from the object; NULL for host memory */
    drupe_py_hold *hold; /* of host memory, else NULL */
} drupe_py_place;
/* `what` names the object in messages. */
bool drupe_py_place_arg(drupe_py_state *state, PyObject *object, bool writable, const char *what,
                        drupe_py_place *place);
void drupe_py_place_clear(drupe_py_place *place);
/* Queue a copy of `nbytes`; host memory is held until it is done. `places` are emptied. `event` may be NULL.
 */
bool drupe_py_copy(drupe_py_state *state, drupe_queue *queue, const drupe_py_waits *waits,
                   drupe_py_place *dst, drupe_py_place *src, size_t nbytes, drupe_event **event);

/* A Python number as `size` bytes of a scalar type, with range checks; `what` names it in messages. `bytes`
 * has room for 8. */
bool drupe_py_scalar_bytes(PyObject *object, drupe_scalar_type type, const char *what, void *bytes,
                           size_t *size);
/* "int", "float" and so on, as OpenCL C writes it. */
const char *drupe_py_scalar_name(drupe_scalar_type type);
drupe_scalar_type drupe_py_scalar_of(drupe_dtype dtype);

/* One launch. `event` may be NULL. */
typedef struct drupe_py_launch {
    drupe_py_kernel *kernel;
    drupe_queue *queue; /* borrowed; NULL: that of the USM arguments */
    PyObject *const *args;
    size_t nargs;
    PyObject *global_size, *local_size, *wait_for; /* NULL or None where not given */
} drupe_py_launch;
/* What drupe_py_kernel.forms has for an argument. */
uint8_t drupe_py_launch_form(const drupe_arg_info *info);
bool drupe_py_launch_run(drupe_py_state *state, const drupe_py_launch *launch, drupe_event **event);

/* Methods of Queue. */
PyObject *drupe_py_queue_submit(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *drupe_py_queue_copy(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *drupe_py_queue_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *drupe_py_queue_memcpy(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *drupe_py_queue_memcpy_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                      PyObject *kwnames);
PyObject *drupe_py_queue_memset(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *drupe_py_queue_memset_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                      PyObject *kwnames);
PyObject *drupe_py_queue_prefetch(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *drupe_py_queue_mem_advise(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                    PyObject *kwnames);
PyObject *drupe_py_queue_keep_alive(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                    PyObject *kwnames);
PyObject *drupe_py_queue_barrier(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

#endif
