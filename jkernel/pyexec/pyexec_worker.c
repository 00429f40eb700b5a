/* C threads that run one Python function each: for requests that must be served while the main thread is busy
 * or stopped at a breakpoint.
 *
 * A worker may be asked for before the shell stands; it waits for that outside Python. The list holds the
 * workers whose argument may still be told to stop; a worker leaves it before it gives its argument back. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "jkernel/pyexec/pyexec.h"

typedef struct worker {
    jk_worker_task task;
    struct worker *next;
} worker;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    worker *first;
    unsigned running; /* threads, from their start until they are done with Python */
    bool open, closed;
} workers = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* --- In the thread -----------------------------------------------------------------------------------------
 */

static bool wait_open(void)
{
    pthread_mutex_lock(&workers.lock);
    while (!workers.open && !workers.closed) pthread_cond_wait(&workers.changed, &workers.lock);
    bool may = !workers.closed;
    pthread_mutex_unlock(&workers.lock);
    return may;
}

static PyObject *call(const jk_worker_task *task)
{
    PyObject *result = NULL;
    PyObject *core = PyImport_ImportModule("drupe._jkernel");
    PyObject *module = core ? PyImport_ImportModule(task->module) : NULL;
    PyObject *function = module ? PyObject_GetAttrString(module, task->function) : NULL;
    PyObject *argument = function ? task->wrap(PyModule_GetState(core), task->argument) : NULL;
    if (argument) result = PyObject_CallOneArg(function, argument);
    Py_XDECREF(argument);
    Py_XDECREF(function);
    Py_XDECREF(module);
    Py_XDECREF(core);
    return result;
}

/* The exception that is set, as a new reference. */
static PyObject *error_take(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* The same as one line. */
static void describe_error(char *text, size_t size)
{
    PyObject *error = error_take();
    PyObject *message = error ? PyObject_Str(error) : NULL;
    const char *said = message ? PyUnicode_AsUTF8(message) : NULL;
    snprintf(text, size, "%s: %s", error ? Py_TYPE(error)->tp_name : "error", said ? said : "?");
    PyErr_Clear();
    Py_XDECREF(message);
    Py_XDECREF(error);
}

static bool run_python(const jk_worker_task *task, char *problem, size_t size)
{
    PyGILState_STATE attached = PyGILState_Ensure();
    PyObject *result = call(task);
    if (!result) describe_error(problem, size);
    bool good = result != NULL;
    Py_XDECREF(result);
    PyGILState_Release(attached);
    return good;
}

static void worker_unlink(worker *self)
{
    pthread_mutex_lock(&workers.lock);
    worker **link = &workers.first;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    pthread_mutex_unlock(&workers.lock);
}

static void note_failure(const jk_worker_task *task, const char *problem)
{
    char text[700];
    snprintf(text, sizeof text, "%s.%s: %s", task->module, task->function, problem);
    jk_server_note(text);
}

static void *worker_run(void *argument)
{
    worker *self = argument;
    char problem[512] = "the kernel is shutting down";
    bool good = wait_open() && run_python(&self->task, problem, sizeof problem);
    if (!good) note_failure(&self->task, problem);
    worker_unlink(self);
    self->task.ended(self->task.argument, good ? NULL : problem);
    free(self);
    pthread_mutex_lock(&workers.lock);
    workers.running--;
    pthread_mutex_unlock(&workers.lock);
    return NULL;
}

/* --- From outside ------------------------------------------------------------------------------------------
 */

int jk_worker_start(const jk_worker_task *task)
{
    worker *self = calloc(1, sizeof *self);
    if (!self) return -1;
    self->task = *task;
    pthread_t thread;
    pthread_mutex_lock(&workers.lock);
    /* Under the lock: the thread may not be done before it is listed. */
    bool started = !workers.closed && jk_thread_start(&thread, worker_run, self) == 0;
    if (started) {
        self->next = workers.first;
        workers.first = self;
        workers.running++;
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&workers.lock);
    if (!started) free(self);
    return started ? 0 : -1;
}

void jk_workers_open(void)
{
    pthread_mutex_lock(&workers.lock);
    workers.open = true;
    pthread_cond_broadcast(&workers.changed);
    pthread_mutex_unlock(&workers.lock);
}

static bool workers_gone(void)
{
    pthread_mutex_lock(&workers.lock);
    bool gone = workers.running == 0;
    pthread_mutex_unlock(&workers.lock);
    return gone;
}

bool jk_workers_close(int timeout_ms)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    pthread_mutex_lock(&workers.lock);
    workers.closed = true;
    for (worker *each = workers.first; each; each = each->next) each->task.stop(each->task.argument);
    pthread_cond_broadcast(&workers.changed);
    pthread_mutex_unlock(&workers.lock);
    for (int i = 0; i < timeout_ms && !workers_gone(); i++) nanosleep(&pause, NULL);
    return workers_gone();
}
