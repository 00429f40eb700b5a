/* drupe.Event. */
#include "error.h"
#include "failure.h"
#include "objects.h"
#include "wait.h"

static drupe_event *event_of(PyObject *self)
{
    return ((drupe_py_event *)self)->event;
}

PyObject *drupe_py_event_wrap(drupe_py_state *state, drupe_event *event)
{
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_Event);
    if (self == NULL)
        drupe_event_release(event);
    else
        ((drupe_py_event *)self)->event = event;
    return self;
}

static void event_release(void *event)
{
    drupe_event_release(event);
}

static void event_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    drupe_py_release_on(NULL, event_release, event_of(self));
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

static PyObject *event_queue(PyObject *self, void *closure)
{
    (void)closure;
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

/* A static method: PyCFunction without self, so the state comes from the events. */
static PyObject *event_wait_for(PyObject *ignored, PyObject *object)
{
    (void)ignored;
    PyObject *events = PySequence_Check(object) ? PySequence_Tuple(object) : PyTuple_Pack(1, object);
    if (events == NULL) return NULL;
    bool good = true;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(events); i++) {
        PyObject *event = PyTuple_GET_ITEM(events, i);
        drupe_py_state *state = drupe_py_state_of_pair(event, event);
        good = state != NULL && drupe_py_is(state, event, DRUPE_PY_TYPE_Event);
        if (!good)
            PyErr_Format(PyExc_TypeError, "wait_for takes a drupe.Event or a sequence of them, not %s",
                         Py_TYPE(event)->tp_name);
        else
            good = drupe_py_enter(state) && drupe_py_event_wait(state, event_of(event), DRUPE_FOREVER);
    }
    Py_DECREF(events);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

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
    for (int i = 0; result != NULL && i < 5; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(fields[i]);
        PyStructSequence_SetItem(result, i, value);
        if (value == NULL) Py_CLEAR(result);
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
    if (status == NULL) return NULL;
    drupe_device *device = drupe_queue_device(drupe_event_queue(event_of(self)));
    PyObject *text = PyUnicode_FromFormat("<drupe.Event on %s: %U>", drupe_device_filter(device), status);
    Py_DECREF(status);
    return text;
}

static PyMethodDef event_methods[] = {
    {"wait", (PyCFunction)(void (*)(void))event_wait, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("wait($self, timeout=None)\n--\n\n"
               "Wait until the work is done. Raises what made it fail, and WaitTimeoutError after `timeout` "
               "seconds.")},
    {"wait_for", event_wait_for, METH_O | METH_STATIC,
     PyDoc_STR("wait_for(events)\n--\n\nWait for one event or for all of a sequence.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef event_getset[] = {
    {"status", event_status, NULL, "\"queued\", \"submitted\", \"running\", \"complete\" or \"failed\".",
     NULL},
    {"done", event_done, NULL, "Whether the work is complete or has failed.", NULL},
    {"error", event_error, NULL, "The exception that says why it failed, or None.", NULL},
    {"queue", event_queue, NULL, "The queue of the work.", NULL},
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
    {Py_tp_doc, (void *)PyDoc_STR("The completion of one piece of work on a queue.")},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(event_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(event_repr)},
    {Py_tp_methods, event_methods},
    {Py_tp_getset, event_getset},
    {0, NULL},
};

PyType_Spec drupe_py_Event_spec = {
    .name = "drupe.Event",
    .basicsize = sizeof(drupe_py_event),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = event_slots,
};
