/* Arguments: a hand-written parser for fast calls, and the conversions that many functions share. */
#ifndef DRUPE_PYTHON_ARGS_H
#define DRUPE_PYTHON_ARGS_H

#include "state.h"

#define DRUPE_PY_ARGS_MAX 10

typedef struct drupe_py_signature {
    const char *function; /* for messages */
    int positional;       /* how many may be given by position */
    int required;         /* how many, from the left, must be given */
    int count;            /* names in use */
    drupe_py_name names[DRUPE_PY_ARGS_MAX];
} drupe_py_signature;

/* Sort a vectorcall into `out`, one borrowed object or NULL per name. */
bool drupe_py_args(const drupe_py_state *state, const drupe_py_signature *signature, PyObject *const *args,
                   Py_ssize_t nargs, PyObject *kwnames, PyObject **out);
/* The same for tp_new, where arguments come as a tuple and a dict (which may be NULL). */
bool drupe_py_args_new(const drupe_py_state *state, const drupe_py_signature *signature, PyObject *args,
                       PyObject *kwargs, PyObject **out);

static inline bool drupe_py_given(PyObject *object)
{
    return object != NULL && object != Py_None;
}

/* A size, named `what` in the message; negative values are refused. */
bool drupe_py_size(PyObject *object, const char *what, size_t *size);
/* An int or a sequence of ints; at most `capacity` of them. The count, or -1. */
int drupe_py_sizes(PyObject *object, const char *what, size_t *sizes, int capacity);
/* Truth of an optional argument. -1 on error. */
int drupe_py_flag(PyObject *object, int fallback);
/* Seconds to nanoseconds; NULL and None mean DRUPE_FOREVER. */
bool drupe_py_timeout(PyObject *object, uint64_t *timeout_ns);
/* "device", "shared", "host"; NULL and None leave *kind alone. */
bool drupe_py_mem_kind(PyObject *object, drupe_mem_kind *kind);

/* A Device, a filter string or None: the device of `with drupe.device(...)`, else the default one. Retained.
 */
drupe_device *drupe_py_device_arg(drupe_py_state *state, PyObject *object);
/* What device= and queue= select together: the queue given, else the default queue of the device given (a
 * Device, filter, Queue or array), else `fallback` (borrowed, may be NULL), else the default device's queue.
 * Retained. */
drupe_queue *drupe_py_queue_arg(drupe_py_state *state, PyObject *queue, PyObject *device,
                                drupe_queue *fallback);

/* The events to wait for: an Event or a sequence of them. `events` is PyMem memory to be freed by
 * drupe_py_waits_clear(); the events are retained. */
typedef struct drupe_py_waits {
    drupe_event **events;
    size_t count;
} drupe_py_waits;
bool drupe_py_waits_arg(drupe_py_state *state, PyObject *object, drupe_py_waits *waits);
void drupe_py_waits_clear(drupe_py_waits *waits);

#endif
