/* Telling Python that events are over.
 *
 * One watch serves the process; a thread of Python (drupe/_events.py) sleeps on its descriptor and takes what
 * is due. What it calls is quick and takes no lock of the program: it tells an event loop, or puts the
 * program's function into the line of the thread that is to call it. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

typedef struct notice {
    PyObject *event, *function;
    drupe_py_when when;
} notice;

static drupe_watch *watch; /* opened and closed under the GIL */

static bool open_watch(drupe_py_state *state)
{
    if (watch) return true;
    if (drupe_watch_open(NULL, NULL, &watch) == DRUPE_OK) return true;
    drupe_py_raise(state, NULL);
    return false;
}

static void notice_free(notice *one)
{
    Py_DECREF(one->function);
    Py_DECREF(one->event);
    free(one);
}

bool drupe_py_notice_add(drupe_py_state *state, PyObject *event, drupe_py_when when, PyObject *function)
{
    if (!open_watch(state)) return false;
    notice *one = calloc(1, sizeof *one);
    if (!one) {
        PyErr_NoMemory();
        return false;
    }
    *one = (notice){Py_NewRef(event), Py_NewRef(function), when};
    drupe_event *engine_event = ((drupe_py_event *)event)->event;
    drupe_status status = when == DRUPE_PY_WHEN_TURN ? drupe_watch_turn(watch, engine_event, one)
                                                     : drupe_watch_add(watch, engine_event, one);
    if (status == DRUPE_OK) return true;
    drupe_py_raise(state, NULL);
    drupe_py_saved saved = drupe_py_error_save();
    notice_free(one);
    drupe_py_error_restore(saved);
    return false;
}

/* function(event). What it raises is shown. */
static void call_shown(PyObject *function, PyObject *event)
{
    PyObject *result = PyObject_CallOneArg(function, event);
    if (!result) PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
}

static void give_up(void *user)
{
    notice *one = user;
    drupe_event *event = ((drupe_py_event *)one->event)->event;
    drupe_error error = {.status = DRUPE_E_CANCELLED, .text = "Python ended before its turn came."};
    /* The wait reports the failure: nobody is left to hear of it. */
    if (one->when == DRUPE_PY_WHEN_TURN && drupe_event_finish(event, &error) == DRUPE_OK &&
        drupe_event_wait(event, 0) != DRUPE_OK)
        drupe_py_collect(drupe_event_queue(event));
    notice_free(one);
}

void drupe_py_notices_close(void)
{
    drupe_watch *closing = watch;
    watch = NULL;
    drupe_watch_close(closing, give_up);
}

/* --- Functions of the module ---------------------------------------------------------------------------- */

static PyObject *notices_run(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    drupe_event *event;
    void *user;
    /* A function that is called may close the watch: it ends the program. */
    while (!drupe_py_forked() && watch && drupe_watch_take(watch, &event, &user)) {
        notice *one = user;
        drupe_event_release(event);
        call_shown(one->function, one->event);
        notice_free(one);
    }
    Py_RETURN_NONE;
}

static PyObject *module_call_shown(PyObject *module, PyObject *args)
{
    PyObject *function, *event;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:_call_shown", &function, &event)) return NULL;
    call_shown(function, event);
    Py_RETURN_NONE;
}

static PyObject *notices_fd(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state) || !open_watch(state)) return NULL;
    return PyLong_FromLong(drupe_watch_fd(watch));
}

PyMethodDef drupe_py_notice_functions[] = {
    {"_notices_run", notices_run, METH_NOARGS,
     PyDoc_STR("_notices_run()\n--\n\nCall the functions whose events are over.")},
    {"_call_shown", module_call_shown, METH_VARARGS,
     PyDoc_STR("_call_shown(function, event)\n--\n\nCall function(event); what it raises is shown.")},
    {"_notices_fd", notices_fd, METH_NOARGS,
     PyDoc_STR("_notices_fd()\n--\n\nThe descriptor that is readable while some are due.")},
    {NULL, NULL, 0, NULL},
};
