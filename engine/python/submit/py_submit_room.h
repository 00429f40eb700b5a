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
    drupe_queue *queue;   /* borrowed from the object; NULL for host memory */
    drupe_memory *memory; /* likewise */
    Py_buffer view;       /* of host memory; else view.obj is NULL */
} drupe_py_copy_end;
/* `what` names the object in messages. */
bool drupe_py_copy_end_arg(drupe_py_state *state, PyObject *object, bool writable, const char *what,
                           drupe_py_copy_end *end);
/* The same of host memory alone, which may lie in either order, but side by side. */
bool drupe_py_copy_end_host(PyObject *object, bool writable, const char *what, drupe_py_copy_end *end);
void drupe_py_copy_end_clear(drupe_py_copy_end *end);
/* Queue a copy of `nbytes`; host memory is held until it is done. The ends are still to be cleared. `event`
 * may be NULL. */
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

/* Arguments as the engine takes them: the words of drupe_submit_words(), or, where that is NULL, `args`. */
typedef struct drupe_py_launch_args {
    const uint64_t *words;
    const drupe_arg *args;
    size_t count; /* of `args` */
} drupe_py_launch_args;
/* The last step of every launch: it is paced, and the first one of its kind, which may have to compile, runs
 * without the GIL. No exception is set on failure. */
drupe_status drupe_py_launch_submit(drupe_py_state *state, drupe_submission *submission,
                                    drupe_py_kernel *kernel, const drupe_range *range,
                                    const drupe_py_launch_args *args, drupe_event **event);

/* The value of an int that is small. */
static inline bool drupe_py_small_int(PyObject *object, int64_t *value)
{
    if (!PyLong_CheckExact(object)) return false;
#if PY_VERSION_HEX >= 0x030C0000
    if (!PyUnstable_Long_IsCompact((PyLongObject *)object)) return false;
    *value = PyUnstable_Long_CompactValue((PyLongObject *)object);
#else
    Py_ssize_t digits = Py_SIZE(object);
    if (digits < -1 || digits > 1) return false;
    *value = digits == 0 ? 0 : digits * (int64_t)((PyLongObject *)object)->ob_digit[0];
#endif
    return true;
}

/* The usual numbers, a small int or a float, as a word for a parameter of this drupe_scalar_type. False
 * without an exception: it is another one, or does not fit. */
static inline bool drupe_py_quick_number(PyObject *object, unsigned scalar, uint64_t *word)
{
    int64_t integer;
    float single;
    *word = 0;
    switch (scalar) {
    case DRUPE_SCALAR_I32:
    case DRUPE_SCALAR_U32:
        /* A small int has 30 bits. */
        if (!drupe_py_small_int(object, &integer) || (integer < 0 && scalar == DRUPE_SCALAR_U32))
            return false;
        memcpy(word, &(int32_t){(int32_t)integer}, 4);
        return true;
    case DRUPE_SCALAR_I64:
    case DRUPE_SCALAR_U64:
        if (!drupe_py_small_int(object, &integer) || (integer < 0 && scalar == DRUPE_SCALAR_U64))
            return false;
        memcpy(word, &integer, 8);
        return true;
    case DRUPE_SCALAR_F32:
        if (!PyFloat_CheckExact(object)) return false;
        single = (float)PyFloat_AS_DOUBLE(object);
        memcpy(word, &single, 4);
        return !Py_IS_INFINITY(single);
    case DRUPE_SCALAR_F64:
        if (!PyFloat_CheckExact(object)) return false;
        memcpy(word, &(double){PyFloat_AS_DOUBLE(object)}, 8);
        return true;
    default: return false;
    }
}

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
