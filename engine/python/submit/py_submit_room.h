/* The room of submissions: kernel launches, copies and fills.
 *
 * Owns: the sites whose launches were reported as too large. Locks: the GIL. Threads: any. */
#ifndef DRUPE_PYTHON_SUBMIT_ROOM_H
#define DRUPE_PYTHON_SUBMIT_ROOM_H

#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"

/* Where copies and fills read and write: USM of a Memory or contiguous array, or a host buffer. Zeroed =
 * empty. */
typedef struct drupe_py_copy_end {
    void *pointer;
    size_t nbytes;
    drupe_queue *queue;            /* borrowed from the object; NULL for host memory */
    drupe_py_keepalive *keepalive; /* of host memory, else NULL */
} drupe_py_copy_end;
/* `what` names the object in messages. */
bool drupe_py_copy_end_arg(drupe_py_state *state, PyObject *object, bool writable, const char *what,
                           drupe_py_copy_end *end);
void drupe_py_copy_end_clear(drupe_py_copy_end *end);
/* Queue a copy of `nbytes`; host memory is held until it is done. Both ends are emptied. `event` may be NULL.
 */
bool drupe_py_copy(drupe_py_state *state, drupe_queue *queue, const drupe_py_waits *waits,
                   drupe_py_copy_end *dst, drupe_py_copy_end *src, size_t nbytes, drupe_event **event);

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
PyObject *drupe_py_queue_memcpy_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                      PyObject *kwnames);
/* (memory, count, advice, or None to prefetch, what to wait for) */
PyObject *drupe_py_queue_hint(PyObject *self, PyObject *args);
PyObject *drupe_py_queue_keep_alive(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                    PyObject *kwnames);
PyObject *drupe_py_queue_barrier(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* --- oversize.c ----------------------------------------------------------------------------------------- */

/* A line in the cell that launches a kernel over far more work-items than its arrays have elements: on some
 * devices that ends the process. */

/* Look at a launch from `site` (not 0), whose arguments need not be valid. Runs no Python code. */
void drupe_py_oversize_look(const drupe_py_state *state, const drupe_py_launch *launch,
                            const drupe_range *range, uint32_t site);

/* --- wrong_device.c ------------------------------------------------------------------------------------- */

/* A kernel for one device that was given arguments on another. */

/* Of a launch on `queue` that the engine has refused: true with an exception that tells what to type, false
 * when there is another reason. */
bool drupe_py_wrong_device(drupe_py_state *state, const drupe_py_launch *launch, drupe_queue *queue);

#endif
