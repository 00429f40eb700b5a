/* C threads that serve one subshell each by a Python function: for requests that must be served while the
 * main thread is busy or stopped at a breakpoint. The debugger's requests come in a subshell of their own.
 *
 * A worker may be asked for before the shell stands; it waits for that outside Python. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "jkernel/pyexec/pyexec.h"

typedef struct worker {
    const char *module;    /* drupe.jupyter.MODULE.serve(subshell) runs in the thread */
    jk_subshell *subshell; /* owned */
} worker;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
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

/* None, or why it could not be served. */
static PyObject *serve(const worker *self)
{
    PyObject *result = NULL;
    PyObject *core = PyImport_ImportModule("drupe._jkernel");
    PyObject *workers_module = core ? PyImport_ImportModule("drupe.jupyter.workers") : NULL;
    PyObject *subshell =
        workers_module ? jk_subshell_object_new(PyModule_GetState(core), self->subshell) : NULL;
    if (subshell) result = PyObject_CallMethod(workers_module, "serve", "sO", self->module, subshell);
    Py_XDECREF(subshell);
    Py_XDECREF(workers_module);
    Py_XDECREF(core);
    return result;
}

static bool run_python(const worker *self, char *problem, size_t size)
{
    PyGILState_STATE attached = PyGILState_Ensure();
    PyObject *why = serve(self);
    bool good = why == Py_None;
    const char *text = why && !good ? PyUnicode_AsUTF8(why) : NULL;
    const PyObject *kind = PyErr_Occurred();
    if (!text) text = kind ? ((const PyTypeObject *)kind)->tp_name : "Python cannot be called";
    if (!good) snprintf(problem, size, "%s", text);
    PyErr_Clear();
    Py_XDECREF(why);
    PyGILState_Release(attached);
    return good;
}

static void *worker_run(void *argument)
{
    worker *self = argument;
    char problem[512] = "the kernel is shutting down", text[700];
    bool good = wait_open() && run_python(self, problem, sizeof problem);
    snprintf(text, sizeof text, "drupe.jupyter.%s has ended: %s", self->module, problem);
    if (!good) jk_server_note(text);
    jk_subshell_end(self->subshell, text); /* what failed was answered with errors; what is queued is now */
    jk_subshell_release(self->subshell);
    free(self);
    pthread_mutex_lock(&workers.lock);
    workers.running--;
    pthread_mutex_unlock(&workers.lock);
    return NULL;
}

/* --- From outside ------------------------------------------------------------------------------------------
 */

static int worker_start(const char *module, jk_subshell *subshell)
{
    worker *self = calloc(1, sizeof *self);
    if (!self) return -1;
    *self = (worker){module, subshell};
    pthread_t thread;
    pthread_mutex_lock(&workers.lock);
    /* Under the lock: the thread may not be done before it is counted. */
    bool started = !workers.closed && jk_thread_start(&thread, worker_run, self) == 0;
    if (started) {
        workers.running++;
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&workers.lock);
    if (!started) free(self);
    return started ? 0 : -1;
}

int jk_workers_subshell_open(void *self, jk_subshell *subshell)
{
    (void)self;
    return worker_start("subshells", subshell);
}

int jk_workers_debugger_open(void *self, jk_subshell *subshell)
{
    (void)self;
    return worker_start("debugger", subshell);
}

PyObject *jk_workers_open(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pthread_mutex_lock(&workers.lock);
    workers.open = true;
    pthread_cond_broadcast(&workers.changed);
    pthread_mutex_unlock(&workers.lock);
    Py_RETURN_NONE;
}

static bool workers_gone(void)
{
    pthread_mutex_lock(&workers.lock);
    bool gone = workers.running == 0;
    pthread_mutex_unlock(&workers.lock);
    return gone;
}

static bool workers_close(int timeout_ms)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    pthread_mutex_lock(&workers.lock);
    workers.closed = true;
    pthread_cond_broadcast(&workers.changed);
    pthread_mutex_unlock(&workers.lock);
    jk_server *server = jk_kernel_enter();
    if (server) {
        jk_server_end_shells(server);
        jk_kernel_leave();
    }
    for (int i = 0; i < timeout_ms && !workers_gone(); i++) nanosleep(&pause, NULL);
    return workers_gone();
}

PyObject *jk_workers_close(PyObject *module, PyObject *value)
{
    (void)module;
    int timeout_ms = (int)PyLong_AsLong(value);
    if (timeout_ms == -1 && PyErr_Occurred()) return NULL;
    bool ended;
    Py_BEGIN_ALLOW_THREADS ended = workers_close(timeout_ms);
    Py_END_ALLOW_THREADS return PyBool_FromLong(ended);
}
