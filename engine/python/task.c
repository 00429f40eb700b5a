/* _task(queue, seconds, text=None): work that lasts a while on an engine thread, and fails if a text is
 * given.
 *
 * It lets the tests of waiting, interrupting, keeping alive and reporting failures run on every device, with
 * times and errors of their choice. */
#include "error.h"
#include "submit.h"
#include <stdlib.h>
#include <time.h>

typedef struct task {
    struct timespec duration;
    bool fails;
    char text[256];
} task;

static drupe_status task_run(void *user)
{
    const task *work = user;
    (void)nanosleep(&work->duration, NULL);
    return work->fails ? drupe_error_set(DRUPE_E_INTERNAL, "%s", work->text) : DRUPE_OK;
}

static PyObject *module_task(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *object, *waits_object = NULL;
    double seconds = 0;
    const char *text = NULL;
    if (!drupe_py_enter(state) ||
        !PyArg_ParseTuple(args, "Od|zO:_task", &object, &seconds, &text, &waits_object))
        return NULL;
    if (!drupe_py_is(state, object, DRUPE_PY_TYPE_Queue) || !(seconds >= 0 && seconds < 3600)) {
        PyErr_SetString(PyExc_TypeError, "_task() takes a Queue and seconds below an hour");
        return NULL;
    }
    task *work = calloc(1, sizeof *work);
    if (work == NULL) return PyErr_NoMemory();
    work->duration.tv_sec = (time_t)seconds;
    work->duration.tv_nsec = (long)((seconds - (double)work->duration.tv_sec) * 1e9);
    work->fails = text != NULL;
    PyOS_snprintf(work->text, sizeof work->text, "%s", text == NULL ? "" : text);
    drupe_py_waits waits;
    if (!drupe_py_waits_arg(state, waits_object, &waits)) {
        free(work);
        return NULL;
    }
    drupe_keep keep = {work, free};
    drupe_submission submission = {.queue = ((drupe_py_queue *)object)->queue,
                                   .waits = waits.events,
                                   .nwaits = waits.count,
                                   .keeps = &keep,
                                   .nkeeps = 1,
                                   .label = "task"};
    drupe_event *event = NULL;
    drupe_status status = drupe_submit_host(&submission, task_run, work, &event);
    drupe_py_waits_clear(&waits);
    return status == DRUPE_OK ? drupe_py_event_wrap(state, event)
                              : drupe_py_raise_on(state, submission.queue);
}

PyMethodDef drupe_py_task_functions[] = {
    {"_task", module_task, METH_VARARGS,
     PyDoc_STR("_task(queue, seconds, text=None, wait_for=())\n--\n\n"
               "For tests: queue work that sleeps, and fails if a text is given.")},
    {NULL, NULL, 0, NULL},
};
