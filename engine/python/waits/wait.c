/* Waits, and references of work in flight.
 *
 * A wait first polls with the GIL held, which is cheaper than giving it up for work that is done already;
 * then it sleeps in slices, the first ones short, and looks for signals after each. Python objects that the
 * device reads or writes travel as `keeps`. When the engine drops those they queue up in `deferred`: it may
 * be without the GIL, and it is in the middle of its own affairs, where Python code, which may do anything,
 * has no place. drupe_py_keepalive_drain() drops them for good.
 *
 * Nothing here waits for a queue only because its last handle goes: a queue with unfinished work is watched,
 * which keeps it until somebody finds that the work is over. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLICE_FIRST_NS UINT64_C(1000000)
#define SLICE_SERVE_NS UINT64_C(200000) /* on threads that call functions for others */
#define SLICE_NS       UINT64_C(20000000)
#define WATCHED_FEW    16u /* that nobody has to look at while they go */

static _Atomic(drupe_py_keepalive *) deferred;
static PyObject *stress; /* of tests: a function, or NULL */
static atomic_bool engine_used;
static atomic_bool engine_forked;

static void fork_child(void)
{
    if (atomic_load(&engine_used)) atomic_store(&engine_forked, true);
}

bool drupe_py_forked(void)
{
    return atomic_load_explicit(&engine_forked, memory_order_relaxed);
}

bool drupe_py_used(void)
{
    return atomic_load_explicit(&engine_used, memory_order_relaxed);
}

bool drupe_py_enter(drupe_py_state *state)
{
    if (!atomic_load_explicit(&engine_used, memory_order_relaxed)) {
        (void)pthread_atfork(NULL, NULL, fork_child);
        atomic_store(&engine_used, true);
    }
    if (drupe_py_forked()) {
        drupe_py_raise_text(
            state, DRUPE_E_UNAVAILABLE,
            "this process was forked from one that was using devices, and devices do not "
            "survive a fork. Use multiprocessing's \"spawn\" or \"forkserver\" start method, or "
            "touch drupe only after the fork.");
        return false;
    }
    drupe_py_keepalive_drain();
    return true;
}

void drupe_py_keepalive_free(drupe_py_keepalive *keepalive)
{
    if (keepalive->view.obj) PyBuffer_Release(&keepalive->view);
    Py_XDECREF(keepalive->owner);
    free(keepalive);
}

drupe_py_keepalive *drupe_py_keepalive_new(void)
{
    drupe_py_keepalive *keepalive = calloc(1, sizeof *keepalive);
    if (!keepalive) PyErr_NoMemory();
    return keepalive;
}

void drupe_py_view_move(Py_buffer *to, Py_buffer *from)
{
    *to = *from;
    if (from->shape == &from->len) to->shape = &to->len;
    if (from->strides == &from->itemsize) to->strides = &to->itemsize;
    from->obj = NULL;
}

static void keep_release(void *object)
{
    drupe_py_keepalive *keepalive = object;
    keepalive->next = atomic_load(&deferred);
    while (!atomic_compare_exchange_weak(&deferred, &keepalive->next, keepalive)) {}
}

drupe_keep drupe_py_keepalive_keep(drupe_py_keepalive *keepalive)
{
    return (drupe_keep){keepalive, keep_release};
}

bool drupe_py_keepalive_of(PyObject *owner, drupe_queue *queue, drupe_keep *keep)
{
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    if (!keepalive) return false;
    keepalive->owner = Py_NewRef(owner);
    *keep = drupe_py_keepalive_keep(keepalive);
    drupe_py_keepalive_watch(queue);
    return true;
}

/* Tests have whatever they like run wherever Python code may run. */
static void stress_run(void)
{
    PyObject *function = Py_XNewRef(stress);
    PyObject *result = !function ? NULL : PyObject_CallNoArgs(function);
    if (!result && function) PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
    Py_XDECREF(function);
}

void drupe_py_keepalive_drain(void)
{
    if (!atomic_load_explicit(&deferred, memory_order_relaxed) && !stress) return;
    drupe_py_saved saved = drupe_py_error_save();
    drupe_py_keepalive *keepalive = atomic_exchange(&deferred, NULL);
    while (keepalive) {
        drupe_py_keepalive *next = keepalive->next;
        drupe_py_keepalive_free(keepalive);
        keepalive = next;
    }
    stress_run();
    drupe_py_error_restore(saved);
}

/* --- Watched queues ------------------------------------------------------------------------------------- */

/* Under the GIL. */
static struct {
    drupe_queue **queues; /* each retained */
    size_t count, room;
} watched;

static bool is_watched(const drupe_queue *queue)
{
    for (size_t i = watched.count; i-- > 0;)
        if (watched.queues[i] == queue) return true;
    return false;
}

/* Takes the reference when it gives true. */
static bool watch_add(drupe_queue *queue)
{
    if (watched.count == watched.room) {
        size_t more = watched.room == 0 ? WATCHED_FEW : 2 * watched.room;
        drupe_queue **list = realloc(watched.queues, more * sizeof *list);
        if (!list) return false;
        watched.queues = list;
        watched.room = more;
    }
    watched.queues[watched.count++] = queue;
    return true;
}

void drupe_py_keepalive_watch(drupe_queue *queue)
{
    if (is_watched(queue)) return;
    /* Without it, holds are dropped at the queue's next submission or wait. */
    if (!watch_add(drupe_queue_retain(queue))) drupe_queue_release(queue);
}

/* Let go of the watched queues whose work is over. Runs no Python code. */
static void watched_look(void)
{
    for (size_t i = watched.count; i-- > 0;) {
        drupe_queue *queue = watched.queues[i];
        drupe_queue_collect(queue);
        if (drupe_queue_pending(queue) > 0) continue;
        watched.queues[i] = watched.queues[--watched.count];
        drupe_queue_release(queue);
    }
}

void drupe_py_keepalive_collect(void)
{
    watched_look();
    drupe_py_keepalive_drain();
}

void drupe_py_collect(drupe_queue *queue)
{
    if (queue && !is_watched(queue)) drupe_queue_collect(queue);
    drupe_py_keepalive_collect();
}

void drupe_py_queue_release(drupe_queue *queue)
{
    if (!queue || drupe_py_forked()) return;
    if (drupe_queue_last(queue) && drupe_queue_pending(queue) > 0) {
        if (watched.count >= WATCHED_FEW) watched_look();
        /* Given up for good rather than waited for: other threads would stand still meanwhile. */
        (void)watch_add(queue);
        return;
    }
    drupe_queue_release(queue);
}

void drupe_py_release_on(drupe_queue *queue, void (*release)(void *object), void *object)
{
    if (drupe_py_forked()) return;
    if (!queue || !drupe_queue_last(queue)) {
        release(object);
        return;
    }
    drupe_queue_retain(queue);
    release(object);
    drupe_py_queue_release(queue);
}

/* For an event of the queue, or for all of it (`event` NULL). */
static drupe_status wait_for(drupe_queue *queue, drupe_event *event, uint64_t timeout_ns)
{
    return event ? drupe_event_wait(event, timeout_ns) : drupe_queue_wait(queue, timeout_ns);
}

/* PyThreadState_SetAsyncExc() is heard only where bytecode runs. */
bool drupe_py_interrupted(const drupe_py_state *state)
{
    if (PyErr_CheckSignals() < 0) return true;
    PyObject *none = PyObject_CallNoArgs(state->look);
    Py_XDECREF(none);
    return !none;
}

/* A KeyboardInterrupt that is set says what becomes of the work; what has not started is given up. */
static void interrupt_explain(drupe_queue *queue)
{
    size_t left = 0, given_up = 0;
    if (!queue || !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) return;
    drupe_status status = drupe_queue_cancel(queue, &left, &given_up);
    if (status != DRUPE_OK && status != DRUPE_E_UNSUPPORTED) return;
    PyObject *exception = drupe_py_exception_take();
    PyObject *text = PyUnicode_FromFormat(
        "the wait for %s was given up. Submissions that had not started: %zu cancelled. Submissions that go "
        "on: %zu. Work that a device has begun cannot be stopped: it ends by itself, or with this process.",
        drupe_device_filter(drupe_queue_device(queue)), given_up, left);
    PyObject *args = !text ? NULL : PyTuple_Pack(1, text);
    if (args) (void)PyObject_SetAttrString(exception, "args", args);
    Py_XDECREF(args);
    Py_XDECREF(text);
    PyErr_Clear();
    (void)drupe_py_raise_object(exception);
}

/* A thread that calls functions for others goes on with them while one of these waits. */
static _Thread_local PyObject *serves;

static void serve(void)
{
    if (!serves) return;
    PyObject *result = PyObject_CallNoArgs(serves);
    if (!result) PyErr_WriteUnraisable(serves);
    Py_XDECREF(result);
}

/* DRUPE_OK, or a status with a Python exception set. */
static drupe_status wait_sliced(drupe_py_state *state, drupe_queue *queue, drupe_event *event,
                                uint64_t timeout_ns)
{
    uint64_t slice = SLICE_FIRST_NS;
    drupe_status status = wait_for(queue, event, 0);
    while (status == DRUPE_E_TIMEOUT && timeout_ns > 0) {
        if (serves) slice = SLICE_SERVE_NS;
        uint64_t now = slice < timeout_ns ? slice : timeout_ns;
        if (timeout_ns != DRUPE_FOREVER) timeout_ns -= now;
        PyThreadState *thread = PyEval_SaveThread();
        status = wait_for(queue, event, now);
        PyEval_RestoreThread(thread);
        slice = SLICE_NS;
        if (status != DRUPE_E_TIMEOUT) break;
        if (drupe_py_interrupted(state)) {
            interrupt_explain(queue);
            return status;
        }
        serve();
    }
    if (status == DRUPE_E_TIMEOUT)
        drupe_py_raise_text(state, status,
                            "the work did not finish within the timeout. It goes on: wait again, without a "
                            "timeout if need be.");
    else if (status != DRUPE_OK)
        drupe_py_raise_on(state, queue);
    return status;
}

/* The error that is set goes to the queue's handler, if there is one. */
static bool hand_over(drupe_py_state *state, drupe_queue *queue)
{
    bool good = false;
    PyObject *handler = drupe_py_handler(state, drupe_queue_number(queue));
    if (!handler) return false;
    Py_DECREF(handler);
    PyObject *exception = drupe_py_exception_take();
    return drupe_py_handle(state, drupe_queue_number(queue), exception, &good) && good;
}

bool drupe_py_queue_wait(drupe_py_state *state, drupe_queue *queue, uint64_t timeout_ns)
{
    if (watched.count == 0 && drupe_queue_quiet(queue)) return true; /* and there is nothing to drop */
    drupe_queue_retain(queue);
    drupe_status status = wait_sliced(state, queue, NULL, timeout_ns);
    drupe_py_collect(queue);
    bool good = status == DRUPE_OK || (status != DRUPE_E_TIMEOUT && hand_over(state, queue));
    drupe_py_queue_release(queue);
    return good;
}

bool drupe_py_event_wait(drupe_py_state *state, drupe_event *event, uint64_t timeout_ns)
{
    drupe_queue *queue = drupe_event_queue(event);
    /* Another thread may drop the last reference while the GIL is given up. */
    drupe_event_retain(event);
    drupe_status status = wait_sliced(state, queue, event, timeout_ns);
    drupe_py_collect(queue);
    drupe_event_release(event);
    return status == DRUPE_OK;
}

static uint64_t *warm_slot(drupe_py_state *state, uint64_t key)
{
    return &state->warm[(size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 54) & (DRUPE_PY_WARM_SLOTS - 1)];
}

bool drupe_py_warm(drupe_py_state *state, uint64_t key)
{
    key = key << 1 | 1; /* 0 marks a free slot */
    uint64_t *slot = warm_slot(state, key);
    if (*slot == key) return true;
    *slot = key;
    return false;
}

void drupe_py_cool(drupe_py_state *state, uint64_t key)
{
    *warm_slot(state, key << 1 | 1) = 0;
}

/* --- Functions of the module ---------------------------------------------------------------------------- */

static PyObject *module_stress(PyObject *module, PyObject *function)
{
    (void)module;
    Py_XSETREF(stress, function == Py_None ? NULL : Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyObject *module_serve(PyObject *module, PyObject *function)
{
    (void)module;
    Py_XSETREF(serves, function == Py_None ? NULL : Py_NewRef(function));
    Py_RETURN_NONE;
}

PyMethodDef drupe_py_wait_functions[] = {
    {"_stress", module_stress, METH_O,
     PyDoc_STR(
         "_stress(function)\n--\n\n"
         "For tests: call a function, None for none, wherever the engine drops Python objects or waits,\n"
         "where Python code of the program may run.")},
    {"_serve", module_serve, METH_O,
     PyDoc_STR(
         "_serve(function)\n--\n\nCall a function again and again while this thread waits for a device.")},
    {NULL, NULL, 0, NULL},
};
