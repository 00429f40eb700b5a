/* Waits, and references of work in flight.
 *
 * A wait first polls with the GIL held, which is cheaper than giving it up for work that is done already;
 * then it sleeps in slices, the first ones short, and looks for signals after each. Python objects that the
 * device reads or writes travel as `keeps`; the engine may drop those on a thread without the GIL (when the
 * last reference to a queue is dropped in a wait), and then they queue up in `deferred`. */
#include "wait.h"
#include "error.h"
#include "failure.h"
#include "notice.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLICE_FIRST_NS  UINT64_C(1000000)
#define SLICE_NOTICE_NS UINT64_C(200000) /* while Python itself may have something to do */
#define SLICE_NS        UINT64_C(20000000)
#define WATCHED_MAX     16

static _Atomic(drupe_py_hold *) deferred;
static atomic_bool engine_used;
static atomic_bool engine_forked;

static void fork_child(void)
{
    if (atomic_load(&engine_used)) atomic_store(&engine_forked, true);
}

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void fork_watch(void)
{
    (void)pthread_atfork(NULL, NULL, fork_child);
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
        (void)pthread_once(&fork_once, fork_watch);
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
    if (atomic_load_explicit(&deferred, memory_order_relaxed) != NULL) drupe_py_hold_drain();
    return true;
}

static void hold_drop(drupe_py_hold *hold)
{
    if (hold->view.obj != NULL) PyBuffer_Release(&hold->view);
    Py_XDECREF(hold->owner);
    free(hold);
}

drupe_py_hold *drupe_py_hold_new(void)
{
    drupe_py_hold *hold = calloc(1, sizeof *hold);
    if (hold == NULL) PyErr_NoMemory();
    return hold;
}

void drupe_py_hold_release(void *object)
{
    drupe_py_hold *hold = object;
    if (PyGILState_Check()) {
        hold_drop(hold);
        return;
    }
    hold->next = atomic_load(&deferred);
    while (!atomic_compare_exchange_weak(&deferred, &hold->next, hold)) {}
}

drupe_keep drupe_py_hold_keep(drupe_py_hold *hold)
{
    return (drupe_keep){hold, drupe_py_hold_release};
}

void drupe_py_hold_drain(void)
{
    drupe_py_hold *hold = atomic_exchange(&deferred, NULL);
    while (hold != NULL) {
        drupe_py_hold *next = hold->next;
        hold_drop(hold);
        hold = next;
    }
}

/* Under the GIL; a full table only means that holds are dropped at the queue's next submission or wait. */
static drupe_queue *watched[WATCHED_MAX];

void drupe_py_hold_watch(drupe_queue *queue)
{
    size_t slot = WATCHED_MAX;
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        if (watched[i] == queue) return;
        if (watched[i] == NULL) slot = i;
    }
    if (slot < WATCHED_MAX) watched[slot] = drupe_queue_retain(queue);
}

void drupe_py_hold_collect(void)
{
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        drupe_queue *queue = watched[i];
        if (queue == NULL) continue;
        drupe_queue_collect(queue);
        /* Dropping a reference may run Python code that comes here again. */
        if (watched[i] != queue || drupe_queue_pending(queue) > 0) continue;
        watched[i] = NULL;
        drupe_queue_release(queue);
    }
    drupe_py_hold_drain();
}

typedef drupe_status (*wait_fn)(void *object, uint64_t timeout_ns);

static drupe_status wait_event(void *object, uint64_t timeout_ns)
{
    return drupe_event_wait(object, timeout_ns);
}

static drupe_status wait_queue(void *object, uint64_t timeout_ns)
{
    return drupe_queue_wait(object, timeout_ns);
}

/* Whether an exception is set now: by a signal's handler in the main thread, or by another thread for this
 * one (PyThreadState_SetAsyncExc()), which CPython raises only where bytecode runs. */
static bool interrupted(const drupe_py_state *state)
{
    if (PyErr_CheckSignals() < 0) return true;
    PyObject *none = PyObject_CallNoArgs(state->look);
    Py_XDECREF(none);
    return none == NULL;
}

/* A KeyboardInterrupt that is set says what becomes of the work; what has not started is given up. */
static void interrupt_explain(drupe_queue *queue)
{
    size_t left = 0, given_up = 0;
    if (queue == NULL || !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) return;
    drupe_status status = drupe_queue_cancel(queue, &left, &given_up);
    if (status != DRUPE_OK && status != DRUPE_E_UNSUPPORTED) return;
    drupe_py_saved saved = drupe_py_error_save();
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *exception = saved.parts[0];
#else
    PyErr_NormalizeException(&saved.parts[0], &saved.parts[1], &saved.parts[2]);
    PyObject *exception = saved.parts[1];
#endif
    PyObject *text = PyUnicode_FromFormat(
        "the wait for %s was given up. Submissions that had not started: %zu cancelled. Submissions that go "
        "on: %zu. Work that a device has begun cannot be stopped: it ends by itself, or with this process.",
        drupe_device_filter(drupe_queue_device(queue)), given_up, left);
    PyObject *args = text == NULL ? NULL : PyTuple_Pack(1, text);
    if (args != NULL) (void)PyObject_SetAttrString(exception, "args", args);
    Py_XDECREF(args);
    Py_XDECREF(text);
    PyErr_Clear();
    drupe_py_error_restore(saved);
}

/* DRUPE_OK, or a status with a Python exception set. */
static drupe_status wait_sliced(drupe_py_state *state, drupe_queue *queue, wait_fn wait, void *object,
                                uint64_t timeout_ns)
{
    uint64_t slice = drupe_py_notices_any() ? SLICE_NOTICE_NS : SLICE_FIRST_NS;
    drupe_status status = wait(object, 0);
    while (status == DRUPE_E_TIMEOUT && timeout_ns > 0) {
        uint64_t now = slice < timeout_ns ? slice : timeout_ns;
        if (timeout_ns != DRUPE_FOREVER) timeout_ns -= now;
        PyThreadState *thread = PyEval_SaveThread();
        status = wait(object, now);
        PyEval_RestoreThread(thread);
        /* Work that Python does itself may be what is waited for. */
        slice = drupe_py_notices_any() ? SLICE_NOTICE_NS : SLICE_NS;
        if (status == DRUPE_E_TIMEOUT && (interrupted(state) || drupe_py_notices_run() < 0)) {
            interrupt_explain(queue);
            return DRUPE_E_TIMEOUT;
        }
    }
    if (status == DRUPE_E_TIMEOUT)
        drupe_py_raise_text(state, status,
                            "the work was not done when the time was over. It goes on: wait again, without a "
                            "timeout if need be.");
    else if (status != DRUPE_OK)
        drupe_py_raise_on(state, queue);
    return status;
}

/* Dropping references can run any Python code, so an exception that is set is put aside. */
static void collect(drupe_queue *queue)
{
    drupe_py_saved saved = drupe_py_error_save();
    if (queue != NULL) drupe_queue_collect(queue);
    drupe_py_hold_collect();
    drupe_py_error_restore(saved);
}

bool drupe_py_event_wait(drupe_py_state *state, drupe_event *event, uint64_t timeout_ns)
{
    drupe_queue *queue = drupe_event_queue(event);
    /* Another thread may drop the last reference while the GIL is given up. */
    drupe_event_retain(event);
    drupe_status status = wait_sliced(state, queue, wait_event, event, timeout_ns);
    collect(queue);
    drupe_event_release(event);
    return status == DRUPE_OK;
}

/* The error that is set goes to the queue's handler, if there is one. */
static bool hand_over(drupe_py_state *state, drupe_queue *queue)
{
    bool good = false;
    if (drupe_py_handler(state, drupe_queue_number(queue)) == NULL) return false;
    PyObject *exception = drupe_py_exception_take();
    return drupe_py_handle(state, drupe_queue_number(queue), exception, &good) && good;
}

bool drupe_py_queue_wait(drupe_py_state *state, drupe_queue *queue, uint64_t timeout_ns)
{
    drupe_queue_retain(queue);
    drupe_status status = wait_sliced(state, queue, wait_queue, queue, timeout_ns);
    collect(queue);
    bool good = status == DRUPE_OK || (status != DRUPE_E_TIMEOUT && hand_over(state, queue));
    drupe_queue_release(queue);
    return good;
}

/* Keep `owner` until everything submitted to the queue so far is done. Where that cannot be queued, the
 * reference is given up for good: the device may still use the memory. */
static void hold_behind(drupe_queue *queue, PyObject *owner)
{
    drupe_py_hold *hold = calloc(1, sizeof *hold);
    if (hold == NULL) {
        Py_INCREF(owner);
        return;
    }
    hold->owner = Py_NewRef(owner);
    drupe_keep keep = drupe_py_hold_keep(hold);
    drupe_submission barrier = {.queue = queue, .keeps = &keep, .nkeeps = 1, .label = "barrier"};
    Py_INCREF(owner);
    drupe_py_hold_watch(queue);
    if (drupe_submit_barrier(&barrier, NULL) == DRUPE_OK) Py_DECREF(owner);
}

bool drupe_py_event_wait_holding(drupe_py_state *state, drupe_event *event, PyObject *owner)
{
    drupe_queue *queue = drupe_event_queue(event);
    drupe_event_retain(event);
    drupe_status status = wait_sliced(state, queue, wait_event, event, DRUPE_FOREVER);
    drupe_py_saved saved = drupe_py_error_save();
    if (status == DRUPE_E_TIMEOUT) hold_behind(queue, owner);
    drupe_py_error_restore(saved);
    collect(queue);
    drupe_event_release(event);
    return status == DRUPE_OK;
}

void drupe_py_release_on(drupe_queue *queue, void (*release)(void *object), void *object)
{
    if (drupe_py_forked()) return;
    if (queue == NULL || !drupe_queue_last(queue) || drupe_queue_pending(queue) == 0) {
        release(object);
        return;
    }
    /* The watched reference is dropped once the queue is idle; with a full table the release waits. */
    drupe_py_hold_watch(queue);
    PyThreadState *thread = PyEval_SaveThread();
    while (drupe_queue_last(queue) && drupe_queue_wait(queue, SLICE_FIRST_NS) == DRUPE_E_TIMEOUT) {
        /* For work that Python does itself. */
        PyEval_RestoreThread(thread);
        drupe_py_saved saved = drupe_py_error_save();
        if (drupe_py_notices_run() < 0) PyErr_WriteUnraisable(NULL);
        drupe_py_error_restore(saved);
        thread = PyEval_SaveThread();
    }
    release(object);
    PyEval_RestoreThread(thread);
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
