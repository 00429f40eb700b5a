/* Host tasks: the parts of drupe/_events.py that need the engine. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/submit/py_submit_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

/* --- Functions in C ------------------------------------------------------------------------------------- */

typedef struct call {
    int (*function)(void *user);
    void *user;
} call;

static drupe_status call_run(void *user)
{
    const call *work = user;
    int answer = work->function(work->user);
    if (answer == 0) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_TASK, "The function returned %d, and 0 means success.", answer);
}

static bool is_queue(drupe_py_state *state, PyObject *object)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Queue)) return true;
    PyErr_SetString(PyExc_TypeError, "a host task needs a Queue");
    return false;
}

static PyObject *module_host_call(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *queue, *keep, *waits;
    unsigned long long address, user;
    const char *name;
    if (!PyArg_ParseTuple(args, "OKKOOs:_host_call", &queue, &address, &user, &keep, &waits, &name) ||
        !is_queue(state, queue))
        return NULL;
    call *work = calloc(1, sizeof *work);
    if (!work) return PyErr_NoMemory();
    work->function = (int (*)(void *))(uintptr_t)address;
    work->user = (void *)(uintptr_t)user;
    return drupe_py_submit_host(((drupe_py_queue *)queue)->queue, name, call_run, work, free, &keep, 1,
                                waits);
}

static PyObject *module_capsule_address(PyObject *module, PyObject *capsule)
{
    (void)module;
    if (!PyCapsule_CheckExact(capsule)) {
        PyErr_SetString(PyExc_TypeError, "a PyCapsule is needed");
        return NULL;
    }
    void *pointer = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    return !pointer ? NULL : PyLong_FromVoidPtr(pointer);
}

/* --- Functions in Python -------------------------------------------------------------------------------- */

static void turn_give_up(drupe_event *event)
{
    drupe_error error = {.status = DRUPE_E_CANCELLED, .text = "There was no memory to submit it."};
    (void)!drupe_event_finish(event, &error);
}

static PyObject *module_turn(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *queue, *waits_object, *function;
    const char *name;
    drupe_py_waits waits;
    if (!drupe_py_enter(state) ||
        !PyArg_ParseTuple(args, "OOsO:_turn", &queue, &waits_object, &name, &function) ||
        !is_queue(state, queue) || !drupe_py_waits_arg(state, waits_object, &waits))
        return NULL;
    drupe_submission submission = {.queue = ((drupe_py_queue *)queue)->queue,
                                   .waits = waits.events,
                                   .nwaits = waits.count,
                                   .label = name};
    drupe_event *event = NULL;
    drupe_status status = drupe_submit_turn(&submission, &event);
    drupe_py_waits_clear(&waits);
    drupe_event_retain(event);
    PyObject *result =
        status == DRUPE_OK ? drupe_py_event_wrap(state, event) : drupe_py_raise_on(state, submission.queue);
    if (result && !drupe_py_notice_add(state, result, DRUPE_PY_WHEN_TURN, function)) Py_CLEAR(result);
    /* Or the queue would wait for a turn that nobody takes. */
    if (!result && event) turn_give_up(event);
    drupe_event_release(event);
    return result;
}

static PyObject *module_event_open(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    const char *name;
    drupe_event *event = NULL;
    if (!drupe_py_enter(state) || !PyArg_ParseTuple(args, "s:_event_open", &name)) return NULL;
    drupe_status status = drupe_event_open(name, 0, &event);
    return status == DRUPE_OK ? drupe_py_event_wrap(state, event) : drupe_py_raise(state, NULL);
}

PyMethodDef drupe_py_task_functions[] = {
    {"_host_call", module_host_call, METH_VARARGS,
     PyDoc_STR("_host_call(queue, address, user, keep, wait_for, name)\n--\n\n"
               "Queue a call of the C function at an address with the address `user`.")},
    {"_capsule_address", module_capsule_address, METH_O,
     PyDoc_STR("_capsule_address(capsule)\n--\n\nWhat a PyCapsule points to, as an int.")},
    {"_turn", module_turn, METH_VARARGS,
     PyDoc_STR(
         "_turn(queue, wait_for, name, function)\n--\n\n"
         "An event whose turn on the queue comes: then a quick function is told, and _finish() ends it.")},
    {"_event_open", module_event_open, METH_VARARGS,
     PyDoc_STR("_event_open(name)\n--\n\nAn event without a queue that _finish() ends.")},
    {NULL, NULL, 0, NULL},
};
