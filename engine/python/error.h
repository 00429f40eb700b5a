/* Engine failures as Python exceptions, made from one table in error.c. */
#ifndef DRUPE_PYTHON_ERROR_H
#define DRUPE_PYTHON_ERROR_H

#include "state.h"

/* Raise the calling thread's last engine error, with all that is known of the work. `device` (borrowed, may
 * be NULL) is named in the exception. Always returns NULL. */
PyObject *drupe_py_raise(drupe_py_state *state, drupe_device *device);
/* The same for work of a queue. */
PyObject *drupe_py_raise_on(drupe_py_state *state, drupe_queue *queue);
/* Raise an exception of the status's class with a text of our own. Always returns NULL. */
PyObject *drupe_py_raise_text(drupe_py_state *state, drupe_status status, const char *format, ...);
/* An exception instance of a kept error; `device_name` and `text` (instead of the error's own) may be NULL.
 * Errors of submitted work have more to tell: see failure.h. */
PyObject *drupe_py_error_object(drupe_py_state *state, const drupe_error *error, const char *device_name,
                                const char *text);
/* Set an exception instance (taken; NULL passes an exception already set on). Always returns NULL. */
PyObject *drupe_py_raise_object(PyObject *exception);

/* The exception that is set, as a new reference; none is set any more. */
PyObject *drupe_py_exception_take(void);

/* Put an exception that may be set aside, and bring it back in place of what was set since. */
typedef struct drupe_py_saved {
    PyObject *parts[3];
} drupe_py_saved;

static inline drupe_py_saved drupe_py_error_save(void)
{
    drupe_py_saved saved = {{NULL, NULL, NULL}};
#if PY_VERSION_HEX >= 0x030C0000
    saved.parts[0] = PyErr_GetRaisedException();
#else
    PyErr_Fetch(&saved.parts[0], &saved.parts[1], &saved.parts[2]);
#endif
    return saved;
}

static inline void drupe_py_error_restore(drupe_py_saved saved)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(saved.parts[0]);
#else
    PyErr_Restore(saved.parts[0], saved.parts[1], saved.parts[2]);
#endif
}

#endif
