/* Failures of submitted work in words, and as exceptions. */
#ifndef DRUPE_PYTHON_FAILURE_H
#define DRUPE_PYTHON_FAILURE_H

#include "state.h"

/* Who is told of a failure. */
typedef enum drupe_py_reader {
    DRUPE_PY_WAITER,     /* whoever waits for the work, or submitted it just now */
    DRUPE_PY_OWN_CELL,   /* the cell that submitted it */
    DRUPE_PY_OTHER_CELL, /* another cell; it is shown in its own too */
    DRUPE_PY_NO_CELL     /* it was submitted outside of a cell */
} drupe_py_reader;

/* The class that stands for a status, without "drupe."; "DeviceError" for what has none. Any thread. */
const char *drupe_py_error_name(drupe_status status);
/* "kernel", "copy" and so on. Any thread. */
const char *drupe_py_operation_name(drupe_work_kind kind);
/* What the user should try, "" when there is nothing to say. Any thread. */
const char *drupe_py_error_hint(drupe_status status);
/* The same for a failure: what a host function reports is the caller's affair. */
const char *drupe_py_failure_hint(const drupe_failure *failure);

/* The message: what failed and why, who submitted it, with which arguments, what to do. `cause` (NULL, or
 * with the status DRUPE_OK: none) is what kept it from running; `source` is the line that submitted it, or
 * NULL. At most `size` bytes with the NUL; returns the length. Any thread, without the GIL. */
size_t drupe_py_failure_text(const drupe_failure *own, const drupe_failure *cause, drupe_py_reader reader,
                             const char *source, char *text, size_t size);
#define DRUPE_PY_FAILURE_TEXT 4096u

/* The content of an `error` message about it for the cell that submitted it and does not run any more, a JSON
 * object of "ename", "evalue" and "traceback", with the submitting line where that was noted. As above. */
size_t drupe_py_failure_json(const drupe_failure *own, drupe_py_reader reader, char *json, size_t size);
#define DRUPE_PY_FAILURE_JSON (12u * DRUPE_PY_FAILURE_TEXT + 6u * 4096u)

/* The exception, with all that is known as attributes, and its cause as another one. For cells it has a
 * traceback that ends at the submitting line; who waits has one already. Needs the GIL. */
PyObject *drupe_py_failure_object(drupe_py_state *state, const drupe_failure *own, const drupe_failure *cause,
                                  drupe_py_reader reader);

/* For the error of a call that submits nothing, an allocation or a build: the attributes operation (NULL:
 * left out), queue (0: left out), and cell, line, file and source of the calling line. Needs the GIL. */
void drupe_py_failure_place(PyObject *exception, const char *operation, uint32_t queue);

/* The handler that a queue's user has set, retained, or NULL without an exception. */
PyObject *drupe_py_handler(drupe_py_state *state, uint32_t queue);
/* Set or, with None, remove it. 0, or -1 with an exception. */
int drupe_py_handler_set(drupe_py_state *state, uint32_t queue, PyObject *handler);
/* Whether there is any handler. Any thread, without the GIL. */
bool drupe_py_handlers(void);
/* Give the exception (taken) to the queue's handler, if it has one: true, and `*good` is false when that
 * raised something. */
bool drupe_py_handle(drupe_py_state *state, uint32_t queue, PyObject *exception, bool *good);

#endif
