/* What is told of a failure.
 *
 * The text is made in C, because a failure that happens while no cell runs is published by a thread of the
 * engine, which never takes the GIL. The source line is added only where Python may be asked for it. */
#include "engine/python/errors/errors_room.h"
#include <stdatomic.h>
#include <string.h>

/* --- The text ------------------------------------------------------------------------------------------ */

/* `source`: the line as the user wrote it, or NULL. */
static void add_location(drupe_py_strbuf *to, const drupe_failure *failure, drupe_py_reader reader,
                         const char *source)
{
    static const char *const unknown[] = {NULL, "this cell", "another cell", NULL};
    char location[160];
    if (drupe_py_site_text(failure->site, failure->cell_number, location, sizeof location) == 0) {
        if (reader == DRUPE_PY_NO_CELL) drupe_py_strbuf_add(to, "\nSubmitted outside of a cell.");
        if (!unknown[reader]) return;
        PyOS_snprintf(location, sizeof location, "%s", unknown[reader]);
    }
    drupe_py_strbuf_add(to, "\nSubmitted by %s", location);
    if (reader == DRUPE_PY_OTHER_CELL) drupe_py_strbuf_add(to, ", whose output shows this error too");
    if (source)
        drupe_py_strbuf_add(to, ":\n    %.200s", source);
    else
        drupe_py_strbuf_add(to, ".");
}

/* A refused argument is explained by its own message; what a driver refuses is not. */
static bool wants_arguments(const drupe_failure *failure)
{
    if (failure->arguments[0] == '\0') return false;
    return !failure->refused || failure->error.native != 0;
}

/* An event that the caller ended is on no device. */
static void add_name(drupe_py_strbuf *to, const drupe_failure *failure)
{
    drupe_py_strbuf_add(to, "'%s'%s%s", failure->label, failure->device[0] != '\0' ? " on " : "",
                        failure->device);
}

/* The first line alone tells where to look: summaries and logs show no more. */
static void add_briefly(drupe_py_strbuf *to, const drupe_failure *failure)
{
    char location[160];
    bool known = drupe_py_site_text(failure->site, failure->cell_number, location, sizeof location) > 0;
    drupe_py_strbuf_add(to, " failed%s%s%s: ", known ? " (" : "", location, known ? ")" : "");
}

static void add_origin(drupe_py_strbuf *to, const drupe_failure *failure, drupe_py_reader reader,
                       const char *source)
{
    add_location(to, failure, reader, source);
    if (wants_arguments(failure)) drupe_py_strbuf_add(to, "\nCalled with: %s.", failure->arguments);
}

const char *drupe_py_failure_hint(const drupe_failure *failure)
{
    return failure->kind == DRUPE_WORK_HOST ? "" : drupe_py_error_hint(failure->error.status);
}

/* Whether the reader of a result is to catch the first error itself, as from NumPy, and not that the copy to
 * the host did not run: of a matrix that cannot be factored, an index outside of its axis, an argument that a
 * function of the host finds wrong when it runs. */
static bool passes_on(const drupe_failure *cause)
{
    const drupe_status status = cause->error.status;
    return status == DRUPE_E_LINALG || status == DRUPE_E_OUT_OF_RANGE ||
           (status == DRUPE_E_INVALID && cause->kind == DRUPE_WORK_HOST);
}

/* The first cause comes first, and where it was submitted; what did not run because of it follows. */
static void add_dependent(drupe_py_strbuf *to, const drupe_failure *own, const drupe_failure *cause)
{
    const char *why = cause->error.text;
    const int most = 700;
    int length = (int)strnlen(why, (size_t)most);
    while (length > 0 && length < most && why[length - 1] == '.') length--;
    if (passes_on(cause)) {
        char location[160];
        const bool known = drupe_py_site_text(cause->site, cause->cell_number, location, sizeof location) > 0;
        drupe_py_strbuf_add(to, "%.*s (", length, why);
        add_name(to, cause);
        drupe_py_strbuf_add(to, "%s%s)", known ? ", " : "", known ? location : "");
    } else {
        add_name(to, cause);
        add_briefly(to, cause);
        drupe_py_strbuf_add(to, "%.*s", length, why);
    }
    drupe_py_strbuf_add(to, "; '%s' therefore did not run.", own->label);
}

size_t drupe_py_failure_text(const drupe_failure *own, const drupe_failure *cause, drupe_py_reader reader,
                             const char *source, char *text, size_t size)
{
    drupe_py_strbuf to = {text, size, 0};
    const drupe_error *error = &own->error;
    const char *why = error->text[0] != '\0' ? error->text : drupe_status_name(error->status);
    bool dependent = error->status == DRUPE_E_DEPENDENCY || error->status == DRUPE_E_CANCELLED;
    text[0] = '\0';
    const bool known = cause && cause->error.status != DRUPE_OK;
    if (!own->refused && !dependent) {
        add_name(&to, own);
        add_briefly(&to, own);
    }
    if (!own->refused && known && error->status == DRUPE_E_DEPENDENCY)
        add_dependent(&to, own, cause);
    else
        drupe_py_strbuf_add(&to, "%s", why);
    if (own->refused) {
        if (wants_arguments(own)) drupe_py_strbuf_add(&to, "\nCalled with: %s.", own->arguments);
        return to.used;
    }
    add_origin(&to, own, reader, source);
    const char *hint = drupe_py_failure_hint(own);
    if (hint[0] != '\0' && !dependent) drupe_py_strbuf_add(&to, "\nWhat to do: %s", hint);
    if (!known) return to.used;
    drupe_py_strbuf_add(&to, "\nThe first cause is ");
    add_name(&to, cause);
    drupe_py_strbuf_add(&to, ".");
    add_origin(&to, cause, DRUPE_PY_WAITER, NULL);
    return to.used;
}

/* --- Exceptions ---------------------------------------------------------------------------------------- */

const char *drupe_py_operation_name(drupe_work_kind kind)
{
    switch (kind) {
    case DRUPE_WORK_KERNEL: return "kernel";
    case DRUPE_WORK_COPY: return "copy";
    case DRUPE_WORK_FILL: return "fill";
    case DRUPE_WORK_HOST: return "host function";
    case DRUPE_WORK_PREFETCH: return "prefetch";
    case DRUPE_WORK_ADVISE: return "advice";
    case DRUPE_WORK_MARK:
    case DRUPE_WORK_BARRIER: break;
    }
    return "barrier";
}

PyObject *drupe_py_failure_record(const drupe_failure *failure, const char *operation)
{
    int line = 0;
    PyObject *file = drupe_py_site_file(failure->site, &line);
    return Py_BuildValue("{s:N,s:z,s:N,s:N,s:N,s:N,s:N,s:N}", "label", drupe_py_text_or_none(failure->label),
                         "operation", operation, "arguments", drupe_py_text_or_none(failure->arguments),
                         "queue", drupe_py_number_or_none(failure->queue), "submission",
                         drupe_py_number_or_none(failure->submission), "cell",
                         drupe_py_number_or_none(failure->cell_number), "file", file, "line",
                         drupe_py_number_or_none((uint64_t)line));
}

/* The submitting line as the user wrote it, or None. Leaves no exception. */
static PyObject *source_of(uint32_t site)
{
    int line = 0;
    PyObject *file = drupe_py_site_file(site, &line);
    PyObject *source = drupe_py_call("drupe._located", "source", "(Ni)", file, line);
    PyErr_Clear();
    return !source ? Py_NewRef(Py_None) : source;
}

/* Leaves no exception. */
static void attributes_put(PyObject *exception, const drupe_failure *failure, const char *operation,
                           PyObject *source)
{
    const char *kernel = failure->kind == DRUPE_WORK_KERNEL ? failure->label : NULL;
    if (!drupe_py_error_put(exception, drupe_py_failure_record(failure, operation)) ||
        !drupe_py_error_put(
            exception, Py_BuildValue("{s:N,s:O}", "kernel", drupe_py_text_or_none(kernel), "source", source)))
        PyErr_Clear();
}

void drupe_py_failure_locate(PyObject *exception, const char *operation, uint32_t queue)
{
    drupe_failure here = {.kind = DRUPE_WORK_BARRIER, .queue = queue, .site = drupe_py_site()};
    drupe_py_location spot;
    if (drupe_py_site_location(here.site, &spot)) here.cell_number = spot.cell;
    PyObject *source = source_of(here.site);
    attributes_put(exception, &here, operation, source);
    Py_DECREF(source);
}

/* The exception that a host task or a future raised, or NULL without one. */
static PyObject *raised_by(const drupe_failure *failure)
{
    if (failure->error.status != DRUPE_E_TASK) return NULL;
    PyObject *raised =
        drupe_py_call("drupe._events", "raised_by", "(K)", (unsigned long long)failure->submission);
    if (raised && PyExceptionInstance_Check(raised)) return raised;
    Py_XDECREF(raised);
    PyErr_Clear();
    return NULL;
}

/* For a cell: a traceback that ends at the submitting line. Without one the text says it all. */
static void exception_locate(PyObject *exception, uint32_t site)
{
    int offset = 0;
    PyCodeObject *code = drupe_py_site_code(site, &offset);
    if (!code) return;
    Py_XDECREF(drupe_py_call("drupe._located", "locate", "(ONi)", exception, code, offset));
    PyErr_Clear();
}

/* The error that decides the class. */
static drupe_error error_of(const drupe_failure *own, const drupe_failure *cause)
{
    drupe_error error = own->error;
    if (error.status == DRUPE_E_DEPENDENCY && cause && passes_on(cause)) error.status = cause->error.status;
    return error;
}

/* The exception of a failure, without that of its cause. */
static PyObject *single_object(drupe_py_state *state, const drupe_failure *own, const drupe_failure *cause,
                               drupe_py_reader reader)
{
    char text[DRUPE_PY_FAILURE_TEXT];
    const char *operation = drupe_py_operation_name(own->kind);
    PyObject *source = source_of(own->site);
    const char *line = source == Py_None ? NULL : PyUnicode_AsUTF8(source);
    PyErr_Clear();
    (void)drupe_py_failure_text(own, cause, reader, line, text, sizeof text);
    const drupe_error error = error_of(own, cause);
    PyObject *exception = drupe_py_error_object(state, &error, own->device, text);
    if (exception && reader != DRUPE_PY_WAITER) exception_locate(exception, own->site);
    /* What is not known counts as a barrier. */
    if (own->kind == DRUPE_WORK_BARRIER && strcmp(own->label, operation) != 0) operation = NULL;
    if (exception) attributes_put(exception, own, operation, source);
    Py_DECREF(source);
    PyObject *raised = !exception ? NULL : raised_by(own);
    if (raised) PyException_SetCause(exception, raised);
    return exception;
}

PyObject *drupe_py_failure_object(drupe_py_state *state, const drupe_failure *own, const drupe_failure *cause,
                                  drupe_py_reader reader)
{
    PyObject *exception = single_object(state, own, cause, reader);
    if (!exception || !cause || cause->error.status == DRUPE_OK) return exception;
    PyObject *first = single_object(state, cause, NULL, DRUPE_PY_WAITER);
    if (first && PyObject_SetAttrString(exception, "cause", first) == 0)
        PyException_SetCause(exception, Py_NewRef(first));
    Py_XDECREF(first);
    PyErr_Clear();
    return exception;
}

/* --- Handlers ------------------------------------------------------------------------------------------ */

static atomic_bool any_handler;

PyObject *drupe_py_handler(drupe_py_state *state, uint32_t queue)
{
    if (!state->handlers || PyDict_GET_SIZE(state->handlers) == 0) return NULL;
    PyObject *key = PyLong_FromUnsignedLong(queue);
    PyObject *handler =
        !key ? NULL : PyDict_GetItemWithError(state->handlers, key); /* borrowed for this line alone */
    Py_XINCREF(handler);
    Py_XDECREF(key);
    if (!handler) PyErr_Clear();
    return handler;
}

int drupe_py_handler_set(drupe_py_state *state, uint32_t queue, PyObject *handler)
{
    if (handler == Py_None) {
        PyObject *before = drupe_py_handler(state, queue);
        if (!before) return 0;
        Py_DECREF(before);
    }
    if (!state->handlers) state->handlers = PyDict_New();
    PyObject *key = !state->handlers ? NULL : PyLong_FromUnsignedLong(queue);
    int result = -1;
    if (key)
        result = handler == Py_None ? PyDict_DelItem(state->handlers, key)
                                    : PyDict_SetItem(state->handlers, key, handler);
    Py_XDECREF(key);
    if (state->handlers) atomic_store(&any_handler, PyDict_GET_SIZE(state->handlers) > 0);
    return result;
}

bool drupe_py_handlers(void)
{
    return atomic_load(&any_handler);
}

/* What a handler raised has come while it was told of `failure`, as in an `except`. */
static void context_put(PyObject *failure)
{
    PyObject *raised = drupe_py_exception_take();
    PyObject *context = PyException_GetContext(raised);
    if (!context && raised != failure) PyException_SetContext(raised, Py_NewRef(failure));
    Py_XDECREF(context);
    drupe_py_raise_object(raised);
}

bool drupe_py_handle(drupe_py_state *state, uint32_t queue, PyObject *exception, bool *good)
{
    PyObject *handler = drupe_py_handler(state, queue);
    if (!handler) return false;
    PyObject *result = !exception ? NULL : PyObject_CallOneArg(handler, exception);
    Py_DECREF(handler);
    if (!result && exception) context_put(exception);
    Py_XDECREF(exception);
    *good = result != NULL;
    Py_XDECREF(result);
    return true;
}
