/* Python functions that are called when events are over.
 *
 * One watch serves the process. When something can be taken from it a thread of the engine asks for a pending
 * call, which CPython makes on the main thread between bytecodes; event loops that read the descriptor take
 * care of the time when no bytecode runs (drupe/_events.py), and waits in this extension of threads that
 * wait. Whoever comes first takes all. */
#include "notice.h"
#include "error.h"
#include "objects.h"
#include "wait.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct notice {
    PyObject *event, *function, *context; /* context may be NULL */
    drupe_py_when when;
} notice;

static drupe_watch *watch; /* opened and closed under the GIL */
static atomic_bool asked;  /* a pending call is on its way */

static int run_pending(void *unused)
{
    (void)unused;
    atomic_store(&asked, false);
    /* The parent's calls are not the child's. */
    return drupe_py_forked() ? 0 : drupe_py_notices_run();
}

/* Without the GIL. When CPython's list of pending calls is full, loops and waits are left. */
static void wake(void *unused)
{
    (void)unused;
    if (atomic_exchange(&asked, true)) return;
    if (Py_AddPendingCall(run_pending, NULL) < 0) atomic_store(&asked, false);
}

static bool open_watch(drupe_py_state *state)
{
    if (watch != NULL) return true;
    if (drupe_watch_open(wake, NULL, &watch) == DRUPE_OK) return true;
    drupe_py_raise(state, NULL);
    return false;
}

static void notice_free(notice *one)
{
    Py_XDECREF(one->context);
    Py_DECREF(one->function);
    Py_DECREF(one->event);
    free(one);
}

bool drupe_py_notice_add(drupe_py_state *state, PyObject *event, drupe_py_when when, PyObject *function,
                         PyObject *context)
{
    if (!open_watch(state)) return false;
    notice *one = calloc(1, sizeof *one);
    if (one == NULL) {
        PyErr_NoMemory();
        return false;
    }
    *one = (notice){Py_NewRef(event), Py_NewRef(function), Py_XNewRef(context), when};
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

/* What ends a program passes through, everything else is shown. */
static int settle_error(PyObject *function)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) || PyErr_ExceptionMatches(PyExc_SystemExit))
        return -1;
    PyErr_WriteUnraisable(function);
    return 0;
}

static int notice_call(notice *one)
{
    int status = 0;
    bool entered = one->context != NULL && PyContext_Enter(one->context) == 0;
    if (one->context != NULL && !entered) status = settle_error(one->function);
    PyObject *result = PyObject_CallOneArg(one->function, one->event);
    if (result == NULL) status = settle_error(one->function);
    Py_XDECREF(result);
    drupe_py_saved saved = drupe_py_error_save();
    if (entered && PyContext_Exit(one->context) < 0) PyErr_WriteUnraisable(one->function);
    notice_free(one);
    drupe_py_error_restore(saved);
    return status;
}

int drupe_py_notices_run(void)
{
    drupe_event *event;
    void *user;
    int status = 0;
    /* A function that is called may close the watch: it ends the program. */
    while (status == 0 && watch != NULL && drupe_watch_take(watch, &event, &user)) {
        drupe_event_release(event);
        status = notice_call(user);
    }
    return status;
}

bool drupe_py_notices_any(void)
{
    return watch != NULL && drupe_watch_count(watch) > 0;
}

int drupe_py_notices_fd(drupe_py_state *state)
{
    return open_watch(state) ? drupe_watch_fd(watch) : -1;
}

static void give_up(void *user)
{
    notice *one = user;
    drupe_event *event = ((drupe_py_event *)one->event)->event;
    drupe_error error = {.status = DRUPE_E_CANCELLED, .text = "Python ended before its turn came."};
    /* The wait reports the failure: nobody is left to hear of it. */
    if (one->when == DRUPE_PY_WHEN_TURN && drupe_event_finish(event, &error) == DRUPE_OK &&
        drupe_event_wait(event, 0) != DRUPE_OK)
        drupe_queue_collect(drupe_event_queue(event));
    notice_free(one);
}

void drupe_py_notices_close(void)
{
    drupe_watch *closing = watch;
    watch = NULL;
    drupe_watch_close(closing, give_up);
}

/* --- What is written in Python -------------------------------------------------------------------------- */

PyObject *drupe_py_events_call(const char *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    size_t named = kwnames == NULL ? 0 : (size_t)PyTuple_GET_SIZE(kwnames);
    size_t given = (size_t)nargs, total = given + named + 1;
    PyObject *few[8], **all = total <= 8 ? few : PyMem_Calloc(total, sizeof *all);
    if (all == NULL) return PyErr_NoMemory();
    all[0] = self;
    for (size_t i = 0; i < given + named; i++) all[i + 1] = args[i];
    PyObject *module = PyImport_ImportModule("drupe._events");
    PyObject *callable = module == NULL ? NULL : PyObject_GetAttrString(module, function);
    PyObject *result = callable == NULL ? NULL : PyObject_Vectorcall(callable, all, given + 1, kwnames);
    Py_XDECREF(callable);
    Py_XDECREF(module);
    if (all != few) PyMem_Free(all);
    return result;
}

/* --- Functions of the module ---------------------------------------------------------------------------- */

static PyObject *notices_run(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    if (drupe_py_forked() || drupe_py_notices_run() == 0) Py_RETURN_NONE;
    return NULL;
}

static PyObject *notices_fd(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    int fd = drupe_py_notices_fd(state);
    return fd < 0 ? NULL : PyLong_FromLong(fd);
}

PyMethodDef drupe_py_notice_functions[] = {
    {"_notices_run", notices_run, METH_NOARGS,
     PyDoc_STR("_notices_run()\n--\n\nCall the functions whose events are over.")},
    {"_notices_fd", notices_fd, METH_NOARGS,
     PyDoc_STR("_notices_fd()\n--\n\nThe descriptor that is readable while some are due.")},
    {NULL, NULL, 0, NULL},
};
