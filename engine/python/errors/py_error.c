/* Exceptions. One table says which class stands for which status, what else that class is, and what to try.
 */
#include "engine/python/errors/errors_room.h"
#include <stdarg.h>

/* `base` is a second base class, so that programs that know nothing of devices catch what they expect. */
static const struct {
    drupe_status status;
    const char *name;
    PyObject *const *base;
    const char *hint;
    const char *doc;
} table[] = {
    {DRUPE_E_INVALID, "InvalidArgumentError", &PyExc_ValueError, "Correct the argument.",
     "An argument makes no sense."},
    {DRUPE_E_UNSUPPORTED, "UnsupportedError", &PyExc_NotImplementedError,
     "Choose another device: drupe.devices() lists them.", "The device or its backend cannot do this."},
    {DRUPE_E_UNAVAILABLE, "DriverUnavailableError", NULL,
     "Install the library that the message names, or use the device \"host\".",
     "A library or a driver is missing."},
    {DRUPE_E_NOT_FOUND, "DeviceNotFoundError", &PyExc_LookupError,
     "drupe.devices() lists the devices of this machine.", "There is no such device or name."},
    {DRUPE_E_NO_MEMORY, "DeviceMemoryError", &PyExc_MemoryError,
     "Delete arrays that are no longer needed, or call drupe.memory.pool(device).trim().",
     "The memory of the host or of a device is exhausted, or a limit is exceeded."},
    {DRUPE_E_OUT_OF_RANGE, "OutOfRangeError", &PyExc_ValueError,
     "Keep the index, size or range inside of what it refers to.",
     "An index, size or range lies outside of what it refers to."},
    {DRUPE_E_TIMEOUT, "WaitTimeoutError", &PyExc_TimeoutError, "The work goes on: wait again.",
     "The work did not finish within the timeout."},
    {DRUPE_E_CANCELLED, "CancelledError", NULL, "Submit the work again.", "Given up before it started."},
    {DRUPE_E_BUILD_FAILED, "BuildError", NULL, "Correct the source: `log` has all messages of the compiler.",
     "The compiler refused the program; `log` holds its messages."},
    {DRUPE_E_DEVICE_LOST, "DeviceLostError", NULL,
     "Correct the work that failed and run it again: on this device if the message says that it works on, "
     "else on another device or in a new process.",
     "Work faulted on the device, or it stopped answering; unless the message says\n"
     "that it works on, its memory is gone."},
    {DRUPE_E_DEPENDENCY, "DependencyError", NULL, "Look at the first cause, which the message names.",
     "The work did not run, because something it waited for failed."},
    {DRUPE_E_PLACEMENT, "ExecutionPlacementError", &PyExc_ValueError,
     "Bring the operands together with to_device().", "The operands live on different queues."},
    {DRUPE_E_BUSY, "BusyError", NULL, "Try again later.", "Something is in use."},
    {DRUPE_E_CHECK, "CheckError", NULL,
     "Correct the program at one of the two places that the message names.",
     "Checked mode found a mistake of the program that no device reports."},
    {DRUPE_E_INTERNAL, "InternalError", NULL, "Report it with this message.",
     "A defect of the engine or of a driver."},
    {DRUPE_E_TASK, "HostTaskError", NULL, "Look at the exception that it raised, the cause of this one.",
     "A host task failed, or a future that work waited for; `__cause__` is what it\n"
     "raised, where that is known."},
    {DRUPE_E_LINALG, "LinAlgError", &PyExc_ValueError,
     "Look at the matrices: linalg.cond() and linalg.matrix_rank() tell how near to singular they are.",
     "A matrix is singular or not positive definite, or an iteration does not converge.\n\n"
     ">>> x = drupe.array.linalg.inv(drupe.array.zeros((2, 2)))\n"
     ">>> try:\n...     x.asnumpy()\n... except drupe.array.linalg.LinAlgError:\n...     "
     "print('singular')\nsingular"},
};

#define TABLE_SIZE (sizeof table / sizeof *table)

/* What every device error can be asked for; None where it is not known. */
static PyObject *attributes_new(void)
{
    static const char *const names[] = {
        "status",    "native_code", "native_name", "backend", "device", "hint", "label",  "kernel", "queue",
        "operation", "arguments",   "submission",  "cell",    "line",   "file", "source", "cause"};
    PyObject *attributes = PyDict_New();
    for (size_t i = 0; attributes && i < sizeof names / sizeof *names; i++)
        if (PyDict_SetItemString(attributes, names[i], Py_None) < 0) Py_CLEAR(attributes);
    return attributes;
}

static int error_add(PyObject *module, PyObject **slot, const char *name, const char *doc, PyObject *bases,
                     PyObject *attributes)
{
    char full[64];
    PyOS_snprintf(full, sizeof full, "drupe.%s", name);
    *slot = PyErr_NewExceptionWithDoc(full, doc, bases, attributes);
    if (!*slot) return -1;
    return PyModule_AddObjectRef(module, name, *slot);
}

int drupe_py_errors_init(PyObject *module, drupe_py_state *state)
{
    PyObject *attributes = attributes_new();
    if (!attributes) return -1;
    int base = error_add(module, &state->device_error, "DeviceError",
                         "Something went wrong on a device. Attributes, None where not known: status,\n"
                         "native_code, native_name, backend, device, hint; operation (\"kernel\", \"copy\",\n"
                         "\"allocation\", \"build\", ...), queue (the `number` of a Queue, which may be\n"
                         "gone), cell, line, file, source (where it was asked for); of submitted work\n"
                         "also label, kernel, arguments, submission, and cause (the error of the work\n"
                         "that kept it from running).",
                         NULL, attributes);
    Py_DECREF(attributes);
    if (base < 0) return -1;
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        /* Most of all an index of an array, or a number that a type does not hold. */
        const bool range = table[i].status == DRUPE_E_OUT_OF_RANGE;
        PyObject *bases = range ? PyTuple_Pack(4, state->device_error, *table[i].base, PyExc_IndexError,
                                               PyExc_OverflowError)
                          : table[i].base ? PyTuple_Pack(2, state->device_error, *table[i].base)
                                          : PyTuple_Pack(1, state->device_error);
        if (!bases) return -1;
        int result =
            error_add(module, &state->errors[table[i].status], table[i].name, table[i].doc, bases, NULL);
        Py_DECREF(bases);
        if (result < 0) return -1;
    }
    return 0;
}

const char *drupe_py_error_hint(drupe_status status)
{
    for (size_t i = 0; i < TABLE_SIZE; i++)
        if (table[i].status == status) return table[i].hint;
    return "";
}

const char *drupe_py_error_name(drupe_status status)
{
    for (size_t i = 0; i < TABLE_SIZE; i++)
        if (table[i].status == status) return table[i].name;
    return "DeviceError";
}

bool drupe_py_error_put(PyObject *exception, PyObject *attributes)
{
    PyObject *own = !attributes ? NULL : PyObject_GenericGetDict(exception, NULL);
    int result = !own ? -1 : PyDict_Update(own, attributes);
    Py_XDECREF(own);
    Py_XDECREF(attributes);
    return result == 0;
}

PyObject *drupe_py_error_object(drupe_py_state *state, const drupe_error *error, const char *device_name,
                                const char *text)
{
    PyObject *class = state->device_error;
    if (error->status > DRUPE_OK && error->status < DRUPE_STATUS_COUNT && state->errors[error->status])
        class = state->errors[error->status];
    if (!text) text = error->text[0] != '\0' ? error->text : drupe_status_name(error->status);
    PyObject *body = drupe_py_text(text);
    PyObject *exception = !body ? NULL : PyObject_CallOneArg(class, body);
    Py_XDECREF(body);
    if (!exception) return NULL;
    PyObject *attributes = Py_BuildValue(
        "{s:s,s:L,s:N,s:N,s:N,s:N}", "status", drupe_status_name(error->status), "native_code",
        (long long)error->native, "native_name", drupe_py_text_or_none(error->native_name), "backend",
        drupe_py_text_or_none(error->backend), "device", drupe_py_text_or_none(device_name), "hint",
        drupe_py_text_or_none(drupe_py_error_hint(error->status)));
    if (drupe_py_error_put(exception, attributes)) return exception;
    Py_DECREF(exception);
    return NULL;
}

PyObject *drupe_py_raise_object(PyObject *exception)
{
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
    return NULL;
}

/* What a call was at that submits nothing, or NULL; builds say it themselves. */
static const char *operation_of(drupe_status status)
{
    return status == DRUPE_E_NO_MEMORY ? "allocation" : NULL;
}

static PyObject *raise_last(drupe_py_state *state, drupe_device *device, uint32_t queue)
{
    /* An interrupt ended the call while it waited for memory. */
    if (PyErr_Occurred()) return NULL;
    /* A copy: making the exception runs code that may fail in the engine and replace the error. */
    drupe_failure own, cause;
    if (drupe_failure_last(&own, &cause))
        return drupe_py_raise_object(drupe_py_failure_object(state, &own, &cause, DRUPE_PY_WAITER));
    drupe_error error = *drupe_error_last();
    const char *name = !device ? NULL : drupe_device_filter(device);
    PyObject *exception = drupe_py_error_object(state, &error, name, NULL);
    if (exception) drupe_py_failure_locate(exception, operation_of(error.status), queue);
    return drupe_py_raise_object(exception);
}

PyObject *drupe_py_raise(drupe_py_state *state, drupe_device *device)
{
    return raise_last(state, device, 0);
}

PyObject *drupe_py_raise_on(drupe_py_state *state, drupe_queue *queue)
{
    if (!queue) return raise_last(state, NULL, 0);
    return raise_last(state, drupe_queue_device(queue), drupe_queue_number(queue));
}

PyObject *drupe_py_raise_text(drupe_py_state *state, drupe_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyObject *text = PyUnicode_FromFormatV(format, list);
    va_end(list);
    const char *utf8 = !text ? NULL : PyUnicode_AsUTF8(text);
    if (utf8) {
        drupe_error error = {.status = status};
        PyOS_snprintf(error.text, sizeof error.text, "%s", utf8);
        drupe_py_raise_object(drupe_py_error_object(state, &error, NULL, NULL));
    }
    Py_XDECREF(text);
    return NULL;
}

PyObject *drupe_py_exception_take(void)
{
    drupe_py_saved saved = drupe_py_error_save();
#if PY_VERSION_HEX < 0x030C0000
    PyErr_NormalizeException(&saved.parts[0], &saved.parts[1], &saved.parts[2]);
    PyObject *exception = Py_XNewRef(saved.parts[1]);
    if (exception && saved.parts[2]) PyException_SetTraceback(exception, saved.parts[2]);
#else
    PyObject *exception = Py_XNewRef(saved.parts[0]);
#endif
    for (int i = 0; i < 3; i++) Py_XDECREF(saved.parts[i]);
    return exception;
}
