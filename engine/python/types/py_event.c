/* drupe.Event. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"

static drupe_event *event_of(PyObject *self)
{
    return ((drupe_py_event *)self)->event;
}

static void event_dealloc(PyObject *self)
{
    if (!drupe_py_forked()) drupe_event_release(event_of(self));
    drupe_py_free(self, DRUPE_PY_TYPE_Event);
}

static PyObject *event_status(PyObject *self, void *closure)
{
    (void)closure;
    static const char *const names[] = {"queued", "submitted", "running", "complete", "failed"};
    if (!drupe_py_enter(drupe_py_state_of(self))) return NULL;
    return PyUnicode_FromString(names[drupe_event_state_of(event_of(self))]);
}

static PyObject *event_done(PyObject *self, void *closure)
{
    (void)closure;
    if (!drupe_py_enter(drupe_py_state_of(self))) return NULL;
    return PyBool_FromLong(drupe_event_state_of(event_of(self)) >= DRUPE_EVENT_COMPLETE);
}

/* Event(): complete. Event(event): the same. */
static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const drupe_py_signature signature = {"Event", 1, 0, 1, {DRUPE_PY_NAME_event}};
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[1];
    drupe_event *event = NULL;
    if (!drupe_py_enter(state) || !drupe_py_args_new(state, &signature, args, kwargs, given)) return NULL;
    if (drupe_py_given(given[0])) {
        if (drupe_py_is(state, given[0], DRUPE_PY_TYPE_Event)) return Py_NewRef(given[0]);
        PyErr_Format(PyExc_TypeError,
                     "Event() takes nothing, for a complete event, or an Event, not %s. Work gives events; "
                     "Event.from_future() makes one of a future.",
                     Py_TYPE(given[0])->tp_name);
        return NULL;
    }
    drupe_status status = drupe_event_open(NULL, 0, &event);
    if (status == DRUPE_OK) status = drupe_event_finish(event, NULL);
    if (status == DRUPE_OK) return drupe_py_event_wrap(state, event);
    drupe_event_release(event);
    return drupe_py_raise(state, NULL);
}

static PyObject *event_execution_status(PyObject *self, void *closure)
{
    (void)closure;
    static const char *const words[] = {"submitted", "submitted", "running", "complete", "complete"};
    drupe_py_state *state = drupe_py_state_of(self);
    if (!drupe_py_enter(state)) return NULL;
    return drupe_py_word(state, "event_status_type", words[drupe_event_state_of(event_of(self))]);
}

static PyObject *event_backend(PyObject *self, void *closure)
{
    (void)closure;
    drupe_queue *queue = drupe_event_queue(event_of(self));
    if (!queue) Py_RETURN_NONE;
    return PyUnicode_FromString(drupe_device_backend(drupe_queue_device(queue)));
}

static PyObject *event_queue(PyObject *self, void *closure)
{
    (void)closure;
    if (!drupe_event_queue(event_of(self))) Py_RETURN_NONE;
    return drupe_py_queue_wrap(drupe_py_state_of(self),
                               drupe_queue_retain(drupe_event_queue(event_of(self))));
}

static PyObject *event_error(PyObject *self, void *closure)
{
    (void)closure;
    drupe_py_state *state = drupe_py_state_of(self);
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_event_state_of(event_of(self)) != DRUPE_EVENT_FAILED) Py_RETURN_NONE;
    drupe_failure own, cause;
    if (!drupe_event_failure(event_of(self), &own, &cause)) Py_RETURN_NONE;
    return drupe_py_failure_object(state, &own, &cause, DRUPE_PY_WAITER);
}

static PyObject *event_wait(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = {"wait", 1, 0, 1, {DRUPE_PY_NAME_timeout}};
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[1];
    uint64_t timeout_ns;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given) ||
        !drupe_py_timeout(given[0], &timeout_ns) || !drupe_py_event_wait(state, event_of(self), timeout_ns))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *event_wait_for(PyObject *ignored, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    (void)ignored;
    if (nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "wait_for takes a drupe.Event or a sequence of them");
        return NULL;
    }
    return drupe_py_events_call("wait_for", args[0], args + 1, nargs - 1, kwnames);
}

static PyObject *event_from_future(PyObject *ignored, PyObject *future)
{
    (void)ignored;
    return drupe_py_events_call("from_future", future, NULL, 0, NULL);
}

static PyObject *event_wait_list(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_event *few[16], **events = few;
    size_t count = 0, capacity = sizeof few / sizeof *few;
    if (!drupe_py_enter(state)) return NULL;
    drupe_status status = drupe_event_waits(event_of(self), NULL, 0, &count);
    if (count > capacity) {
        events = PyMem_Calloc(count, sizeof(drupe_event *));
        if (!events) return PyErr_NoMemory();
        capacity = count;
    }
    if (status == DRUPE_OK) status = drupe_event_waits(event_of(self), events, capacity, &count);
    if (status != DRUPE_OK) count = 0;
    PyObject *list = status == DRUPE_OK ? PyList_New(0) : drupe_py_raise(state, NULL);
    for (size_t i = 0; i < count && i < capacity; i++) {
        if (!list) {
            drupe_event_release(events[i]);
            continue;
        }
        PyObject *event = drupe_py_event_wrap(state, events[i]);
        if (!event || PyList_Append(list, event) < 0) Py_CLEAR(list);
        Py_XDECREF(event);
    }
    if (events != few) PyMem_Free(events);
    return list;
}

static PyObject *event_address(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return PyLong_FromVoidPtr(event_of(self));
}

/* --- Being called back ---------------------------------------------------------------------------------- */

static PyObject *event_add_done_callback(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                         PyObject *kwnames)
{
    static const drupe_py_signature signature = {
        "add_done_callback", 1, 1, 2, {DRUPE_PY_NAME_function, DRUPE_PY_NAME_context}};
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[2];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    if (!PyCallable_Check(given[0])) {
        PyErr_Format(PyExc_TypeError, "a callback is a function of one argument, the event, not %s",
                     Py_TYPE(given[0])->tp_name);
        return NULL;
    }
    bool copied = !drupe_py_given(given[1]);
    if (!copied && !PyContext_CheckExact(given[1])) {
        PyErr_Format(PyExc_TypeError, "context must be a contextvars.Context, not %s",
                     Py_TYPE(given[1])->tp_name);
        return NULL;
    }
    PyObject *context = copied ? PyContext_CopyCurrent() : Py_NewRef(given[1]);
    if (!context) return NULL;
    PyObject *const both[] = {given[0], context};
    PyObject *result = drupe_py_events_call("add_done_callback", self, both, 2, NULL);
    Py_DECREF(context);
    return result;
}

static PyObject *event_notify(PyObject *self, PyObject *function)
{
    if (!drupe_py_notice_add(drupe_py_state_of(self), self, DRUPE_PY_WHEN_OVER, function)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *event_finish(PyObject *self, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of(self);
    const char *text = NULL;
    int cancelled = 0;
    if (!PyArg_ParseTuple(args, "|zp:_finish", &text, &cancelled)) return NULL;
    if (drupe_py_forked()) Py_RETURN_NONE;
    drupe_error error = {.status = cancelled ? DRUPE_E_CANCELLED : DRUPE_E_TASK};
    PyOS_snprintf(error.text, sizeof error.text, "%s", !text ? "" : text);
    if (drupe_event_finish(event_of(self), !text ? NULL : &error) == DRUPE_OK) Py_RETURN_NONE;
    return drupe_py_raise(state, NULL);
}

static PyObject *event_submission(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return PyLong_FromUnsignedLongLong(drupe_event_submission(event_of(self)));
}

static PyObject *event_await(PyObject *self)
{
    PyObject *coroutine = drupe_py_events_call("wait", self, NULL, 0, NULL);
    PyObject *iterator = !coroutine ? NULL : PyObject_CallMethod(coroutine, "__await__", NULL);
    Py_XDECREF(coroutine);
    return iterator;
}

/* --- Times ---------------------------------------------------------------------------------------------- */

/* The profiling times need a finished event, so they wait for it. */
static bool times_get(drupe_py_state *state, PyObject *self, drupe_times *times)
{
    if (!drupe_py_enter(state)) return false;
    drupe_status status = drupe_event_times(event_of(self), times);
    if (status == DRUPE_E_BUSY) {
        if (!drupe_py_event_wait(state, event_of(self), DRUPE_FOREVER)) return false;
        status = drupe_event_times(event_of(self), times);
    }
    if (status != DRUPE_OK) drupe_py_raise_on(state, drupe_event_queue(event_of(self)));
    return status == DRUPE_OK;
}

static PyObject *event_times(PyObject *self, void *closure)
{
    (void)closure;
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_times times;
    if (!times_get(state, self, &times)) return NULL;
    uint64_t const fields[] = {times.queued, times.submitted, times.started, times.ended,
                               times.ended - times.started};
    PyObject *result = PyStructSequence_New(state->times);
    for (int i = 0; result && i < 5; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(fields[i]);
        PyStructSequence_SetItem(result, i, value);
        if (!value) Py_CLEAR(result);
    }
    return result;
}

enum { TIME_SUBMIT, TIME_START, TIME_END };

static PyObject *event_profiling(PyObject *self, void *closure)
{
    drupe_times times;
    if (!times_get(drupe_py_state_of(self), self, &times)) return NULL;
    switch ((intptr_t)closure) {
    case TIME_SUBMIT: return PyLong_FromUnsignedLongLong(times.submitted);
    case TIME_START: return PyLong_FromUnsignedLongLong(times.started);
    default: return PyLong_FromUnsignedLongLong(times.ended);
    }
}

static PyObject *event_repr(PyObject *self)
{
    PyObject *status = event_status(self, NULL);
    if (!status) return NULL;
    drupe_queue *queue = drupe_event_queue(event_of(self));
    drupe_trace_record record = {.id = 0};
    uint64_t number = drupe_event_submission(event_of(self));
    if (number == 0 || drupe_trace_read(number - 1, &record, 1) == 0 || record.id != number)
        record.label[0] = '\0';
    const char *quote = record.label[0] == '\0' ? "" : "'";
    PyObject *label = PyUnicode_DecodeUTF8(record.label, (Py_ssize_t)strlen(record.label), "replace");
    PyObject *text = !label   ? NULL
                     : !queue ? PyUnicode_FromFormat("<drupe.Event: %U>", status)
                              : PyUnicode_FromFormat("<drupe.Event %s%U%s on %s: %U>", quote, label, quote,
                                                     drupe_device_filter(drupe_queue_device(queue)), status);
    Py_XDECREF(label);
    Py_DECREF(status);
    return text;
}

static PyObject *event_display(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return drupe_py_repr(self, "display_event", Py_None);
}

static PyMethodDef event_methods[] = {
    DRUPE_PY_MIMEBUNDLE,
    {"wait", (PyCFunction)(void (*)(void))event_wait, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("wait($self, timeout=None)\n--\n\n"
               "Wait until the work is done. Raises what made it fail, and WaitTimeoutError after `timeout` "
               "seconds.")},
    {"wait_for", (PyCFunction)(void (*)(void))event_wait_for, METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     PyDoc_STR("wait_for(events, timeout=None)\n--\n\nWait for one event or for all of a sequence.")},
    {"from_future", event_from_future, METH_O | METH_STATIC,
     PyDoc_STR(
         "from_future(future)\n--\n\n"
         "An event that ends when a future of concurrent.futures or asyncio does, for work to wait for.")},
    {"get_wait_list", event_wait_list, METH_NOARGS,
     PyDoc_STR("get_wait_list($self)\n--\n\nThe unfinished events that it waits for by name.")},
    {"add_done_callback", (PyCFunction)(void (*)(void))event_add_done_callback, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("add_done_callback($self, function, *, context=None)\n--\n\n"
               "Call function(event) when the work is done or has failed: on a thread of its own,\n"
               "`drupe-callbacks`, which holds no lock of the program and calls one function\n"
               "after the other, in the order in which their events were seen to be over and, for\n"
               "one event, in which they were added. Output goes to the cell that added it, what\n"
               "it raises is shown there. For code that must run in an event loop, await the\n"
               "event instead.")},
    {"addressof_ref", event_address, METH_NOARGS,
     PyDoc_STR("addressof_ref($self)\n--\n\nThe address of the engine's event (drupe_event), as an int.")},
    {"_notify", event_notify, METH_O, NULL},
    {"_finish", event_finish, METH_VARARGS, NULL},
    {"_submission", event_submission, METH_NOARGS, NULL},
    {"_ipython_display_", event_display, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef event_getset[] = {
    {"status", event_status, NULL, "\"queued\", \"submitted\", \"running\", \"complete\" or \"failed\".",
     NULL},
    {"done", event_done, NULL, "Whether the work is complete or has failed.", NULL},
    {"error", event_error, NULL, "The exception that says why it failed, or None.", NULL},
    {"queue", event_queue, NULL, "The queue of the work; None for an event without one.", NULL},
    {"execution_status", event_execution_status, NULL, "A member of drupe.enums.event_status_type.", NULL},
    {"backend", event_backend, NULL, "\"host\" or \"opencl\"; None for an event without a queue.", NULL},
    {"times", event_times, NULL, "EventTimes in ns, on a profiling queue; waits until the work is done.",
     NULL},
    {"profiling_info_submit", event_profiling, NULL, "When it was handed to the device, in ns.",
     (void *)(intptr_t)TIME_SUBMIT},
    {"profiling_info_start", event_profiling, NULL, "When the device began, in ns.",
     (void *)(intptr_t)TIME_START},
    {"profiling_info_end", event_profiling, NULL, "When the device was done, in ns.",
     (void *)(intptr_t)TIME_END},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot event_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("Event(event=None)\n--\n\n"
                       "The completion of one piece of work on a queue; Event() is complete. `await\n"
                       "event` waits without blocking the event loop and raises what made the work\n"
                       "fail; when the await is cancelled, the work goes on.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(event_new)},
    {Py_am_await, DRUPE_PY_FUNCTION(event_await)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(event_dealloc)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(event_repr)},
    {Py_tp_methods, event_methods},
    {Py_tp_getset, event_getset},
    {0, NULL},
};

/* Out of the collector's sight: an event holds no Python objects, and each submission makes one. */
PyType_Spec drupe_py_Event_spec = {
    .name = "drupe.Event",
    .basicsize = sizeof(drupe_py_event),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = event_slots,
};
