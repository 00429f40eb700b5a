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
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("Event", 1, 0, DRUPE_PY_NAME_event);
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
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("wait", 1, 0, DRUPE_PY_NAME_timeout);
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[1];
    uint64_t timeout_ns;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given) ||
        !drupe_py_timeout(given[0], &timeout_ns) || !drupe_py_event_wait(state, event_of(self), timeout_ns))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *event_wait_list(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    size_t room = 0, count = 0;
    if (!drupe_py_enter(state)) return NULL;
    drupe_status status = drupe_event_waits(event_of(self), NULL, 0, &room);
    drupe_event **events = PyMem_New(drupe_event *, room + 1);
    if (!events) return PyErr_NoMemory();
    if (status == DRUPE_OK) status = drupe_event_waits(event_of(self), events, room, &count);
    PyObject *list = status == DRUPE_OK ? PyList_New(0) : drupe_py_raise(state, NULL);
    for (size_t i = 0; status == DRUPE_OK && i < count && i < room; i++)
        drupe_py_append(&list, drupe_py_event_wrap(state, events[i]));
    PyMem_Free(events);
    return list;
}

/* --- Being called back ---------------------------------------------------------------------------------- */

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
    PyObject *coroutine = drupe_py_call("drupe._events", "wait", "(O)", self);
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

static PyObject *event_repr(PyObject *self)
{
    return drupe_py_call("drupe._queue", "event_text", "(O)", self);
}

static PyMethodDef event_methods[] = {
    {"wait", DRUPE_PY_FAST(event_wait),
     PyDoc_STR("wait($self, timeout=None)\n--\n\n"
               "Wait until the work is done. Raises what made it fail, and WaitTimeoutError after `timeout` "
               "seconds.")},
    {"get_wait_list", event_wait_list, METH_NOARGS,
     PyDoc_STR("get_wait_list($self)\n--\n\nThe unfinished events that it waits for by name.")},
    {"addressof_ref", drupe_py_address, METH_NOARGS,
     PyDoc_STR("addressof_ref($self)\n--\n\nThe address of the engine's event (drupe_event), as an int.")},
    {"_notify", event_notify, METH_O, NULL},
    {"_finish", event_finish, METH_VARARGS, NULL},
    {"_submission", event_submission, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef event_getset[] = {
    {"status", event_status, NULL, "\"queued\", \"submitted\", \"running\", \"complete\" or \"failed\".",
     NULL},
    {"done", event_done, NULL, "Whether the work is complete or has failed.", NULL},
    {"error", event_error, NULL, "The exception that says why it failed, or None.", NULL},
    {"queue", event_queue, NULL, "The queue of the work; None for an event without one.", NULL},
    {"times", event_times, NULL, "EventTimes in ns, on a profiling queue; waits until the work is done.",
     NULL},
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
DRUPE_PY_SPEC(Event, "drupe.Event", drupe_py_event, 0, event_slots);
