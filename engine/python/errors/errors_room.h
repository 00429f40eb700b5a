/* The room of errors: what went wrong, in words and as exceptions of Python, and the places in programs that
 * it happened at.
 *
 * Owns: the table of places, and the handlers of queues. Locks: the GIL; what needs none says so, and the
 * table of places is read without one. Threads: any. */
#ifndef DRUPE_PYTHON_ERRORS_ROOM_H
#define DRUPE_PYTHON_ERRORS_ROOM_H

#include "drupe_link.h"
#include "engine/python/runtime/runtime_room.h"

/* The kernel, which knows cells and publishes; NULL without one. One process has one kernel. The module sets
 * it before the engine does anything; borrowed for good. Any thread. */
extern const drupe_link *drupe_py_link;
/* Whether the code of this cell (borrowed, or NULL) runs. Any thread, without the GIL. */
static inline bool drupe_py_cell_runs(void *cell)
{
    return DRUPE_LINK_HAS(drupe_py_link, cell_running) && drupe_py_link->cell_running(cell) != 0;
}

/* --- py_error.c ---------------------------------------------------------------------------------------- */

/* Engine failures as Python exceptions, made from one table in py_error.c. */

/* Raise the calling thread's last engine error, with all that is known of the work. `device` (borrowed, may
 * be NULL) is named in the exception. Always returns NULL. */
PyObject *drupe_py_raise(drupe_py_state *state, drupe_device *device);
/* The same for work of a queue. */
PyObject *drupe_py_raise_on(drupe_py_state *state, drupe_queue *queue);
/* Raise an exception of the status's class with a text of our own. Always returns NULL. */
PyObject *drupe_py_raise_text(drupe_py_state *state, drupe_status status, const char *format, ...);
/* An exception instance of a kept error; `device_name` and `text` (instead of the error's own) may be NULL.
 * Errors of submitted work have more to tell: see drupe_py_failure_object(). */
PyObject *drupe_py_error_object(drupe_py_state *state, const drupe_error *error, const char *device_name,
                                const char *text);
/* Set attributes of an exception from a dict (taken; NULL passes an exception on). False with an exception.
 */
bool drupe_py_error_put(PyObject *exception, PyObject *attributes);
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

/* --- strbuf.c ------------------------------------------------------------------------------------------- */

/* Text of bounded size, for messages that are made without Python and without allocating. */

#include <stddef.h>

/* `text` has room for `size` bytes, NUL included, of which `used` are written; what does not fit is cut. */
typedef struct drupe_py_strbuf {
    char *text;
    size_t size, used;
} drupe_py_strbuf;

void drupe_py_strbuf_add(drupe_py_strbuf *to, const char *format, ...) DRUPE_PRINTF(2, 3);
/* The text as it is. Async-signal-safe. */
void drupe_py_strbuf_put(drupe_py_strbuf *to, const char *text);
/* The text as the inside of a JSON string; what is no UTF-8 is replaced. */
void drupe_py_strbuf_add_json(drupe_py_strbuf *to, const char *text);
/* At most `most` bytes of the text, which is not cut inside of a character. */
size_t drupe_py_utf8_cut(const char *text, size_t most);

/* --- site.c -------------------------------------------------------------------------------------------- */

/* Locations in Python programs by a small number, which travels with a submission. */

/* The frame of Python code that the calling thread runs, or NULL. Needs the GIL. */
static inline struct _PyInterpreterFrame *drupe_py_frame(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_Get()->current_frame;
#else
    return PyThreadState_Get()->cframe->current_frame;
#endif
}
/* The place that the calling thread's Python code is at, this package's own code left out; 0: none. Needs the
 * GIL. */
uint32_t drupe_py_site(void);
/* drupe_py_stack_depth() of the instruction that the calling thread's Python code is at. Needs the GIL. */
int drupe_py_site_depth(void);
/* For core, which asks where a submission without a site comes from: as above, and without the GIL what
 * drupe_py_site_leave() has noted on this thread. */
uint32_t drupe_py_site_ask(void);
/* PyEval_SaveThread() and PyEval_RestoreThread() around a stretch that may submit: the location and the cell
 * are noted before. */
PyThreadState *drupe_py_site_leave(void);
void drupe_py_site_return(PyThreadState *thread);

/* Where a submission came from, of a location and the number of the cell that it was submitted for: "cell
 * [3], line 7", "cell [3], line 10 of tools.py" and so on; what is not known is left out, and the oldest of
 * many places are forgotten. At most `size` bytes with the NUL; returns the length. Any thread, without the
 * GIL, async-signal-safe. */
size_t drupe_py_site_text(uint32_t site, uint32_t cell, char *text, size_t size);
/* The same in parts, of code that is known; false when it is not. As above. */
typedef struct drupe_py_location {
    int line;
    uint32_t cell; /* whose code it is, 0: no cell's */
    char file[40]; /* the last part of the name, cut to fit */
} drupe_py_location;
bool drupe_py_site_location(uint32_t site, drupe_py_location *location);
/* The number of the latest location. Needs the GIL. */
uint32_t drupe_py_site_latest(void);
/* Its code object (a new reference) and its offset, or NULL without an exception. Needs the GIL. */
PyCodeObject *drupe_py_site_code(uint32_t site, int *offset);
/* The name of its file (a new reference, None where it is not known) and its line, or 0. Needs the GIL. */
PyObject *drupe_py_site_file(uint32_t site, int *line);

/* The cell of this thread, retained, or NULL: for core, which asks at every submission. */
void *drupe_py_site_cell(void);
/* What the module's own code is; 0, or -1 with an exception. */
int drupe_py_site_init(PyObject *module);
/* Drop all code objects: the interpreter ends. */
void drupe_py_site_clear(void);

/* --- py_failure.c -------------------------------------------------------------------------------------- */

/* Failures of submitted work in words, and as exceptions. */

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

/* What is known of a failure as a dict: label, operation (NULL: None), arguments, queue, submission, cell,
 * file and line, each None where it is not known. Needs the GIL. */
PyObject *drupe_py_failure_record(const drupe_failure *failure, const char *operation);

/* For the error of a call that submits nothing, an allocation or a build: the attributes operation (NULL:
 * left out), queue (0: left out), and cell, line, file and source of the calling line. Needs the GIL. */
void drupe_py_failure_locate(PyObject *exception, const char *operation, uint32_t queue);

/* The handler that a queue's user has set, retained, or NULL without an exception. */
PyObject *drupe_py_handler(drupe_py_state *state, uint32_t queue);
/* Set or, with None, remove it. 0, or -1 with an exception. */
int drupe_py_handler_set(drupe_py_state *state, uint32_t queue, PyObject *handler);
/* Whether there is any handler. Any thread, without the GIL. */
bool drupe_py_handlers(void);
/* Give the exception (taken) to the queue's handler, if it has one: true, and `*good` is false when that
 * raised something. */
bool drupe_py_handle(drupe_py_state *state, uint32_t queue, PyObject *exception, bool *good);

/* --- temporary.c --------------------------------------------------------------------------------------- */

/* Operands that end with the operation they are given to. */

/* For the number slots of Array. Which of the two, 0 or 1, the interpreter drops when the operator returns,
 * so that nobody can see what becomes of its memory; 2: neither, or it is not known. Needs the GIL. */
size_t drupe_py_temporary(PyObject *a, PyObject *b, const drupe_operand operands[2]);
/* How many values lie on a frame's stack when the binary operation at this offset of its code begins; -1: it
 * is another instruction, or it is not known. Needs the GIL. */
int drupe_py_stack_depth(PyCodeObject *code, int offset);

/* --- For the module ------------------------------------------------------------------------------------ */

int drupe_py_errors_init(PyObject *module, drupe_py_state *state); /* 0, or -1 with an exception */
extern PyMethodDef drupe_py_site_functions[];

#endif
