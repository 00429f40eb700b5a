/* drupe.Queue: the object and its properties; what is submitted to it is in submit.c. */
#include "drupe/postpone.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/submit/py_submit_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"

static drupe_queue *queue_of(PyObject *self)
{
    return ((drupe_py_queue *)self)->queue;
}

/* The context given, retained, or the device's own. */
static drupe_context *context_arg(drupe_py_state *state, PyObject *object, drupe_device *device)
{
    drupe_context *context = NULL;
    if (!drupe_py_given(object)) {
        if (drupe_device_context(device, &context) == DRUPE_OK) return context;
        drupe_py_raise(state, device);
        return NULL;
    }
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Context))
        return drupe_context_retain(((drupe_py_context *)object)->context);
    PyErr_Format(PyExc_TypeError, "context must be a drupe.Context, not %s", Py_TYPE(object)->tp_name);
    return NULL;
}

static PyObject *queue_open(drupe_py_state *state, drupe_device *device, PyObject *context_object,
                            uint32_t flags)
{
    drupe_queue *queue = NULL;
    drupe_context *context = context_arg(state, context_object, device);
    if (!context) return NULL;
    drupe_status status = drupe_queue_open(context, device, flags, &queue);
    if (status != DRUPE_OK) drupe_py_raise(state, device);
    drupe_context_release(context);
    return status == DRUPE_OK ? drupe_py_queue_wrap(state, queue) : NULL;
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE(
        "Queue", 2, 0, DRUPE_PY_NAME_device, DRUPE_PY_NAME_context, DRUPE_PY_NAME_profiling,
        DRUPE_PY_NAME_property, DRUPE_PY_NAME_in_order, DRUPE_PY_NAME_priority);
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[6];
    if (!drupe_py_enter(state) || !drupe_py_args_new(state, &signature, args, kwargs, given)) return NULL;
    for (int i = 2; i < 6; i++)
        if (!given[i]) given[i] = Py_None;
    PyObject *flags_object =
        drupe_py_call("drupe._queue", "flags", "(OOOO)", given[2], given[3], given[4], given[5]);
    if (!flags_object) return NULL;
    uint32_t flags = (uint32_t)PyLong_AsUnsignedLong(flags_object);
    Py_DECREF(flags_object);
    /* dpctl has them the other way round. */
    if (given[0] && drupe_py_is(state, given[0], DRUPE_PY_TYPE_Context)) {
        PyObject *context = given[0];
        given[0] = given[1];
        given[1] = context;
    }
    drupe_device *device = drupe_py_device_arg(state, given[0]);
    if (!device) return NULL;
    PyObject *self = queue_open(state, device, given[1], flags);
    drupe_device_release(device);
    return self;
}

/* The handler goes with the last one who could change it. */
static void handler_forget(PyObject *self)
{
    drupe_py_state *state = drupe_py_state_left(self);
    if (!state || !state->handlers || !drupe_queue_last(queue_of(self))) return;
    /* Queues also go while an exception is on its way. */
    drupe_py_saved saved = drupe_py_error_save();
    if (drupe_py_handler_set(state, drupe_queue_number(queue_of(self)), Py_None) < 0) PyErr_Clear();
    drupe_py_error_restore(saved);
}

static void queue_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    handler_forget(self);
    drupe_py_queue_release(queue_of(self));
    drupe_py_free(self, DRUPE_PY_TYPE_Queue);
}

static PyObject *queue_repr(PyObject *self)
{
    return drupe_py_call("drupe._queue", "text", "(O)", self);
}

static PyObject *queue_device(PyObject *self, void *closure)
{
    (void)closure;
    drupe_device *device = drupe_queue_device(queue_of(self));
    return drupe_py_device_wrap(drupe_py_state_of(self), drupe_device_retain(device));
}

static PyObject *queue_context(PyObject *self, void *closure)
{
    (void)closure;
    drupe_context *context = drupe_queue_context(queue_of(self));
    return drupe_py_context_wrap(drupe_py_state_of(self), drupe_context_retain(context));
}

static PyObject *queue_flags(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(drupe_queue_flags_of(queue_of(self)));
}

static PyObject *queue_on_error(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *handler = drupe_py_handler(drupe_py_state_of(self), drupe_queue_number(queue_of(self)));
    return !handler ? Py_NewRef(Py_None) : handler;
}

static int queue_on_error_set(PyObject *self, PyObject *handler, void *closure)
{
    (void)closure;
    if (!handler) handler = Py_None;
    if (handler != Py_None && !PyCallable_Check(handler)) {
        PyErr_Format(PyExc_TypeError, "on_error must be a function of one exception, or None, not %s",
                     Py_TYPE(handler)->tp_name);
        return -1;
    }
    return drupe_py_handler_set(drupe_py_state_of(self), drupe_queue_number(queue_of(self)), handler);
}

static PyObject *queue_number(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(drupe_queue_number(queue_of(self)));
}

static PyObject *queue_pending(PyObject *self, void *closure)
{
    (void)closure;
    if (!drupe_py_enter(drupe_py_state_of(self))) return NULL;
    drupe_py_collect(queue_of(self));
    return PyLong_FromSize_t(drupe_queue_pending(queue_of(self)));
}

static PyObject *queue_wait(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("wait", 1, 0, DRUPE_PY_NAME_timeout);
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[1];
    uint64_t timeout_ns;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given) ||
        !drupe_py_timeout(given[0], &timeout_ns) || !drupe_py_queue_wait(state, queue_of(self), timeout_ns))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *queue_flush(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    if (!drupe_py_enter(drupe_py_state_of(self))) return NULL;
    if (drupe_postponed_flush(queue_of(self)) == DRUPE_OK) Py_RETURN_NONE;
    return drupe_py_raise_on(drupe_py_state_of(self), queue_of(self));
}

#define IDLE_SLICE_NS UINT64_C(10000000)

static PyObject *queue_idle(PyObject *self, PyObject *seconds)
{
    drupe_py_state *state = drupe_py_state_of(self);
    uint64_t left, slice;
    bool idle = false;
    if (!drupe_py_enter(state) || !drupe_py_timeout(seconds, &left)) return NULL;
    do {
        slice = left < IDLE_SLICE_NS ? left : IDLE_SLICE_NS;
        left -= slice;
        PyThreadState *thread = PyEval_SaveThread();
        idle = drupe_queue_idle(queue_of(self), slice);
        PyEval_RestoreThread(thread);
        if (!idle && left > 0 && drupe_py_interrupted(state)) return NULL;
    } while (!idle && left > 0);
    drupe_py_collect(queue_of(self));
    return PyBool_FromLong(idle);
}

static PyObject *queue_cancel(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    size_t left, given_up;
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_queue_cancel(queue_of(self), &left, &given_up) != DRUPE_OK)
        return drupe_py_raise_on(state, queue_of(self));
    return PyLong_FromSize_t(given_up);
}

static PyObject *queue_blockers(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_event *events[64];
    if (!drupe_py_enter(state)) return NULL;
    drupe_py_collect(queue_of(self));
    size_t count = drupe_queue_blockers(queue_of(self), events, sizeof events / sizeof *events);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < count; i++) drupe_py_append(&list, drupe_py_event_wrap(state, events[i]));
    return list;
}

static PyMethodDef queue_methods[] = {
    {"_blockers", queue_blockers, METH_NOARGS,
     PyDoc_STR("_blockers($self)\n--\n\nThe events that its oldest waiting submission still waits for.")},
    {"_idle", queue_idle, METH_O,
     PyDoc_STR("_idle(seconds)\n--\n\nWhether its work is over, found out in at most so long.")},
    {"wait", DRUPE_PY_FAST(queue_wait),
     PyDoc_STR("wait($self, timeout=None)\n--\n\n"
               "Wait for everything submitted so far. Raises the first error that was not\n"
               "reported yet, and WaitTimeoutError after `timeout` seconds.")},
    {"flush", queue_flush, METH_NOARGS,
     PyDoc_STR("flush($self)\n--\n\n"
               "Submit the array expressions of this queue that are pending, and let the device\n"
               "begin with what was submitted. Does not wait.")},
    {"cancel", queue_cancel, METH_NOARGS,
     PyDoc_STR("cancel($self)\n--\n\n"
               "Cancel the submissions that have not started and return how many those were.\n"
               "Their events fail with CancelledError; no others do. Work that runs goes on, and\n"
               "so does work that the driver cannot give back: see `pending`.")},
    {"submit", DRUPE_PY_FAST(drupe_py_queue_submit),
     PyDoc_STR("submit($self, kernel, args, global_size, local_size=None, wait_for=(), *, event=True)\n--\n\n"
               "Queue a kernel with a sequence of arguments and give its Event (None with\n"
               "event=False, which is cheaper). Sizes are in work-items, dimension 0 varying\n"
               "fastest.")},
    {"copy", DRUPE_PY_FAST(drupe_py_queue_copy),
     PyDoc_STR("copy($self, dst, src, nbytes=None, wait_for=(), *, dtype=None, event=True)\n--\n\n"
               "Queue a copy between memory objects, contiguous arrays and host buffers, and\n"
               "give its Event. A host buffer is kept alive and must not be changed until the\n"
               "copy is done. With a `dtype`, the size is a number of its elements.")},
    {"memcpy_async", DRUPE_PY_FAST(drupe_py_queue_memcpy_async),
     PyDoc_STR(
         "memcpy_async($self, dest, src, count=None, dEvents=())\n--\n\n"
         "Queue a copy of `count` bytes and give its Event. Both ends are kept alive until it is done.")},
    {"_hint", drupe_py_queue_hint, METH_VARARGS,
     PyDoc_STR("_hint(mem, count, advice, wait_for)\n--\n\nAdvice about memory, or with None a prefetch.")},
    {"_submit_keep_args_alive", DRUPE_PY_FAST(drupe_py_queue_keep_alive),
     PyDoc_STR("_submit_keep_args_alive($self, args, dEvents)\n--\n\n"
               "Keep an object alive until the events are over; gives an Event for that.")},
    {"addressof_ref", drupe_py_address, METH_NOARGS,
     PyDoc_STR("addressof_ref($self)\n--\n\nThe address of the engine's queue (drupe_queue), as an int.")},
    {"fill", DRUPE_PY_FAST(drupe_py_queue_fill),
     PyDoc_STR("fill($self, mem, value, nbytes=None, wait_for=(), *, dtype=None, event=True)\n--\n\n"
               "Queue filling memory with a value of `dtype` (bytes if it is not given: then\n"
               "value is 0 to 255, or 1, 2, 4, 8 or 16 bytes to repeat), and give its Event.")},
    {"barrier", DRUPE_PY_FAST(drupe_py_queue_barrier),
     PyDoc_STR("barrier($self, wait_for=())\n--\n\n"
               "An Event for everything submitted so far and for `wait_for`; what follows waits for both.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef queue_getset[] = {
    {"device", queue_device, NULL, "The device of the queue.", NULL},
    {"context", queue_context, NULL, "The context of the queue.", NULL},
    {"_flags", queue_flags, NULL, "What it was opened with, drupe_queue_flags.", NULL},
    {"on_error", queue_on_error, queue_on_error_set,
     "None, or a function that gets the queue's errors as exceptions, where they\n"
     "would be raised otherwise: in queue.wait() and at the end of a cell. It runs on\n"
     "the interpreter's thread.",
     NULL},
    {"number", queue_number, NULL, "The number of this queue in errors and traces.", NULL},
    {"pending", queue_pending, NULL, "Submissions that have not finished, as far as is known.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot queue_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("Queue(device=None, context=None, *, profiling=False, property=None, in_order=True, "
                       "priority=None)\n--\n\n"
                       "A new queue. In order, work starts when what was submitted before it is done;\n"
                       "with in_order=False only `wait_for` and barriers order it. `device.queue` and\n"
                       "`drupe.queue(device)` give the default queue of a device, which arrays use.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(queue_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(queue_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_richcompare, DRUPE_PY_FUNCTION(drupe_py_same)},
    {Py_tp_hash, DRUPE_PY_FUNCTION(drupe_py_same_hash)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(queue_repr)},
    {Py_tp_methods, queue_methods},
    {Py_tp_getset, queue_getset},
    {0, NULL},
};

DRUPE_PY_SPEC(Queue, "drupe.Queue", drupe_py_queue, Py_TPFLAGS_HAVE_GC, queue_slots);

/* --- Functions of the module --------------------------------------------------------------------------- */

static PyObject *module_queues(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    drupe_queue *queues[256];
    if (!drupe_py_enter(state)) return NULL;
    size_t count = drupe_queue_list(queues, sizeof queues / sizeof *queues);
    PyObject *list = PyList_New(0);
    while (count-- > 0) drupe_py_append(&list, drupe_py_queue_wrap(state, queues[count]));
    return list;
}

static PyObject *module_profile_queues(PyObject *module, PyObject *flag)
{
    int all = PyObject_IsTrue(flag);
    if (all < 0 || !drupe_py_enter(drupe_py_state_of_module(module))) return NULL;
    return PyBool_FromLong(drupe_queue_profile(all != 0));
}

PyMethodDef drupe_py_queue_functions[] = {
    {"_queues", module_queues, METH_NOARGS,
     PyDoc_STR("_queues()\n--\n\n"
               "The queues that the program holds, in the order of their numbers.")},
    {"_profile_queues", module_profile_queues, METH_O,
     PyDoc_STR(
         "_profile_queues(all)\n--\n\n"
         "Whether queues that are made from now on carry times, asked for or not; gives what held before.")},
    {NULL, NULL, 0, NULL},
};
