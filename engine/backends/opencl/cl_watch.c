/* Waiting for one native event with a timeout, which OpenCL does not have.
 *
 * The driver's callback is only a hint that wakes the waiter early: some drivers never call it for failed
 * work, some pass a wrong status, some come 20 ms late, and it may come on any thread, even inside the
 * registering call. So the status is always asked for, and the waiter wakes by itself from time to time. A
 * short wait is polled for first, since being woken costs more than many kernels take: on a CPU device only
 * briefly, because polling takes a core from the work and the callback comes at once; on a GPU longer,
 * because its callback may be late. */
#include "opencl.h"
#include <sched.h>
#include <stdlib.h>

#define POLL_CPU_NS UINT64_C(30000)
#define POLL_GPU_NS UINT64_C(300000)
/* Between two looks: a part of the time waited so far. A look costs 0.3 us, and a wake-up some more. On a GPU
 * the part is how late the end may be seen, since the callback may be later still. */
#define PAUSE_CPU_NS  UINT64_C(500000)
#define PAUSE_GPU_NS  UINT64_C(100000)
#define PART_CPU      8
#define PART_GPU      64
#define PAUSE_MOST_NS UINT64_C(10000000)

cl_int drupe_cl_mark_status(drupe_cl_mark *mark)
{
    if (atomic_load_explicit(&mark->complete, memory_order_acquire)) return CL_COMPLETE;
    cl_int status = CL_COMPLETE, code = mark->api->GetEventInfo(mark->id, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                                sizeof status, &status, NULL);
    if (code != CL_SUCCESS || status != CL_COMPLETE) return code != CL_SUCCESS ? code : status;
    /* Drivers may look without any order, as PoCL does. */
    drupe_read_barrier();
    /* Whoever waited asks again afterwards, and a look costs 0.3 us. */
    atomic_store_explicit(&mark->complete, true, memory_order_release);
    return CL_COMPLETE;
}

void drupe_cl_mark_flush(const drupe_cl_mark *mark)
{
    if (atomic_exchange(&mark->queue->unflushed, false)) mark->api->Flush(mark->queue->id);
}

/* --- The callback's side -------------------------------------------------------------------------------- */

/* Around `done` and `notify` of all watches, and what waiters sleep on: few wait at a time, and a wake-up too
 * many costs them a look. */
static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    pthread_cond_t done;
} callbacks = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void prepare(void)
{
    if (drupe_cond_init(&callbacks.done) != DRUPE_OK) (void)pthread_cond_init(&callbacks.done, NULL);
}

static void watch_release(drupe_cl_watch *watch)
{
    if (atomic_fetch_sub(&watch->references, 1) == 1) free(watch);
}

/* Holding the lock while core is told keeps the event from closing meanwhile; core takes no lock there that
 * it holds while it calls a backend. */
static void CL_CALLBACK on_complete(cl_event id, cl_int status, void *user)
{
    (void)id, (void)status;
    drupe_cl_watch *watch = user;
    pthread_mutex_lock(&callbacks.lock);
    watch->done = true;
    pthread_cond_broadcast(&callbacks.done);
    if (watch->notify) drupe_core_notify(watch->notify);
    watch->notify = NULL;
    pthread_mutex_unlock(&callbacks.lock);
    watch_release(watch);
}

/* The mark's watch, made and registered by the first caller; NULL = poll instead. Borrowed from the mark. */
static drupe_cl_watch *mark_watch(drupe_cl_mark *mark)
{
    drupe_cl_watch *watch = atomic_load(&mark->watch);
    if (watch) return watch;
    drupe_cl_watch *made = calloc(1, sizeof *made), *expected = NULL;
    if (!made) {
        drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for waiting on an event.");
        return NULL;
    }
    pthread_once(&callbacks.once, prepare);
    atomic_init(&made->references, 2); /* the mark's, and the callback's */
    if (!atomic_compare_exchange_strong(&mark->watch, &expected, made)) {
        free(made);
        return expected;
    }
    if (mark->api->SetEventCallback(mark->id, CL_COMPLETE, on_complete, made) != CL_SUCCESS) {
        atomic_fetch_sub(&made->references, 1); /* nobody will call: the waiters' own intervals serve */
    }
    return made;
}

/* --- The waiter's side ---------------------------------------------------------------------------------- */

static bool is_over(drupe_cl_mark *mark)
{
    return drupe_cl_mark_status(mark) <= CL_COMPLETE;
}

static bool poll_until(drupe_cl_mark *mark, uint64_t deadline)
{
    for (;;) {
        if (is_over(mark)) return true;
        if (drupe_now_ns() >= deadline) return false;
        sched_yield();
    }
}

/* One interval: until the callback, or `until`. */
static void doze(drupe_cl_watch *watch, uint64_t until)
{
    pthread_mutex_lock(&callbacks.lock);
    bool done = watch->done;
    if (!done) drupe_cond_wait_until(&callbacks.done, &callbacks.lock, until);
    pthread_mutex_unlock(&callbacks.lock);
    if (done) sched_yield(); /* called back, yet the status lags behind */
}

drupe_status drupe_cl_mark_wait(drupe_cl_mark *mark, uint64_t timeout_ns)
{
    if (is_over(mark)) return DRUPE_OK;
    drupe_cl_mark_flush(mark);
    if (timeout_ns == 0) return drupe_error_set(DRUPE_E_TIMEOUT, "The work is not finished yet.");
    uint64_t started = drupe_now_ns(), deadline = drupe_deadline(timeout_ns);
    const bool cpu = mark->queue->device->caps.cpu;
    const uint64_t most = cpu ? POLL_CPU_NS : POLL_GPU_NS, least = cpu ? PAUSE_CPU_NS : PAUSE_GPU_NS;
    if (poll_until(mark, deadline - started < most ? deadline : started + most)) return DRUPE_OK;
    drupe_cl_watch *watch = mark_watch(mark);
    if (!watch) return drupe_error_last()->status;
    while (!is_over(mark)) {
        uint64_t now = drupe_now_ns(), pause = (now - started) / (cpu ? PART_CPU : PART_GPU);
        if (now >= deadline) return drupe_error_set(DRUPE_E_TIMEOUT, "The work was not finished in time.");
        if (pause < least) pause = least;
        uint64_t until = now + (pause < PAUSE_MOST_NS ? pause : PAUSE_MOST_NS);
        doze(watch, until < deadline ? until : deadline);
    }
    return DRUPE_OK;
}

drupe_status drupe_cl_mark_notify(drupe_cl_mark *mark, drupe_event *event)
{
    drupe_cl_mark_flush(mark);
    drupe_cl_watch *watch = mark_watch(mark);
    if (!watch) return drupe_error_last()->status;
    pthread_mutex_lock(&callbacks.lock);
    bool done = watch->done;
    if (!done) watch->notify = event;
    pthread_mutex_unlock(&callbacks.lock);
    if (done) drupe_core_notify(event);
    return DRUPE_OK;
}

void drupe_cl_mark_clear(drupe_cl_mark *mark)
{
    drupe_cl_watch *watch = atomic_load_explicit(&mark->watch, memory_order_acquire);
    if (watch) {
        atomic_store_explicit(&mark->watch, NULL, memory_order_relaxed);
        pthread_mutex_lock(&callbacks.lock);
        watch->notify = NULL;
        pthread_mutex_unlock(&callbacks.lock);
        watch_release(watch);
    }
    if (mark->id) mark->api->ReleaseEvent(mark->id);
    mark->id = NULL;
    atomic_store_explicit(&mark->complete, false, memory_order_relaxed);
}
