/* Queues and events, as those see them who wait. */
#include "backends/host/host.h"
#include <sched.h>
#include <stdlib.h>

#define SPIN_NS 10000u /* being woken costs more than many tasks take */

static drupe_status timed_out(const char *what)
{
    return drupe_error_set(DRUPE_E_TIMEOUT, "The %s is not done yet.", what);
}

/* Whoever waits for a copy or fill takes its part in it: the worker that was woken for it may not be there
 * yet, and brings no data in its caches. */
static void help(drupe_host_queue *queue, uint64_t deadline)
{
    drupe_host_task *task;
    while (drupe_now_ns() < deadline && (task = drupe_host_task_find_move(queue)))
        drupe_host_task_help(task, deadline);
}

/* --- Queues ----------------------------------------------------------------------------------------------
 */

drupe_status drupe_host_queue_open(drupe_queue *queue, uint32_t flags)
{
    drupe_host_queue *native = drupe_native(queue);
    native->self = queue;
    native->device = drupe_native(drupe_queue_device(queue));
    native->sched = native->device->sched;
    native->profiling = (flags & DRUPE_QUEUE_PROFILING) != 0;
    native->unordered = (flags & DRUPE_QUEUE_OUT_OF_ORDER) != 0;
    /* Spread evenly over any number of workers: multiples of the golden ratio. */
    native->home = atomic_fetch_add(&native->sched->nqueues, 1) * 2654435769u;
    /* A sub-device's work belongs on its own workers, however small it is. */
    native->inlines = !native->sched->shuffle && !drupe_device_parent(drupe_queue_device(queue));
    return DRUPE_OK;
}

drupe_status drupe_host_queue_time(drupe_queue *queue)
{
    drupe_host_queue *native = drupe_native(queue);
    atomic_store(&native->profiling, true);
    return DRUPE_OK;
}

void drupe_host_queue_close(drupe_queue *queue)
{
    drupe_host_queue *native = drupe_native(queue);
    if (!native->sched) return;
    drupe_host_task_forget(native);
    free(native->error);
    free(native->fate);
}

/* DRUPE_OK, or the fault of work without an event, once. */
static drupe_status take_error(drupe_host_queue *queue)
{
    if (!atomic_load(&queue->faulted)) return DRUPE_OK;
    pthread_mutex_lock(&queue->sched->lock);
    drupe_error *error = queue->error;
    queue->error = NULL;
    atomic_store(&queue->faulted, false);
    pthread_mutex_unlock(&queue->sched->lock);
    drupe_status status = error ? drupe_error_restore(error) : DRUPE_OK;
    free(error);
    return status;
}

drupe_status drupe_host_queue_fault(drupe_queue *queue)
{
    return take_error(drupe_native(queue));
}

static bool is_dry(drupe_host_queue *queue)
{
    return drupe_host_queue_backlog(queue) == 0;
}

/* Tasks look at the round when their turn comes. That of `begun` may still be to come, while a worker stands
 * between the end of the event before it and the end of the task. What an earlier call gave up stays so. */
void drupe_host_queue_cancel(drupe_queue *queue, uint64_t begun)
{
    drupe_host_queue *native = drupe_native(queue);
    if (atomic_load(&native->begun) != begun) {
        atomic_store(&native->begun_since, atomic_load(&native->round));
        atomic_store(&native->begun, begun);
    }
    atomic_fetch_add(&native->round, 1);
}

drupe_status drupe_host_queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    drupe_host_queue *native = drupe_native(queue);
    if (!native->sched) return DRUPE_OK;
    if (is_dry(native)) return take_error(native);
    if (timeout_ns == 0) return timed_out("queue");
    drupe_host_sched *sched = native->sched;
    uint64_t deadline = drupe_deadline(timeout_ns);
    bool in_time = true;
    help(native, deadline);
    pthread_mutex_lock(&sched->lock);
    while (atomic_fetch_or(&native->finished, 1) / 2 != atomic_load(&native->issued) && in_time)
        in_time = drupe_cond_wait_until(&sched->done, &sched->lock, deadline);
    bool dry = atomic_fetch_and(&native->finished, ~UINT64_C(1)) / 2 == atomic_load(&native->issued);
    pthread_mutex_unlock(&sched->lock);
    return dry ? take_error(native) : timed_out("queue");
}

/* --- Events ----------------------------------------------------------------------------------------------
 */

static bool is_over(drupe_host_event *event)
{
    return atomic_load_explicit(&event->end, memory_order_acquire) & DRUPE_HOST_OVER;
}

void drupe_host_event_close(drupe_event *event)
{
    drupe_host_event *native = drupe_native(event);
    free(native->error);
}

drupe_status drupe_host_event_state(drupe_event *event, drupe_event_state *state)
{
    drupe_host_event *native = drupe_native(event);
    uintptr_t end = atomic_load_explicit(&native->end, memory_order_acquire);
    *state = DRUPE_EVENT_COMPLETE;
    if (!(end & DRUPE_HOST_OVER))
        *state = (drupe_event_state)atomic_load_explicit(&native->stage, memory_order_relaxed);
    if (!(end & DRUPE_HOST_FAILED)) return DRUPE_OK;
    *state = DRUPE_EVENT_FAILED;
    if (native->error)
        drupe_error_restore(native->error);
    else
        drupe_error_set(DRUPE_E_NO_MEMORY, "It failed, and there was no memory to keep the reason.");
    return DRUPE_OK;
}

static drupe_host_sched *sched_of(const drupe_event *event)
{
    return ((const drupe_host_queue *)drupe_native(drupe_event_queue(event)))->sched;
}

drupe_status drupe_host_event_wait(drupe_event *event, uint64_t timeout_ns)
{
    drupe_host_event *native = drupe_native(event);
    if (is_over(native)) return DRUPE_OK;
    if (timeout_ns == 0) return timed_out("work");
    drupe_host_sched *sched = sched_of(event);
    uint64_t deadline = drupe_deadline(timeout_ns);
    help(drupe_native(drupe_event_queue(event)), deadline);
    uint64_t until = drupe_deadline(SPIN_NS);
    while (!is_over(native) && drupe_now_ns() < until) sched_yield();
    bool in_time = true;
    pthread_mutex_lock(&sched->lock);
    while (!(atomic_fetch_or(&native->end, (uintptr_t)DRUPE_HOST_WAITED) & DRUPE_HOST_OVER) && in_time)
        in_time = drupe_cond_wait_until(&sched->done, &sched->lock, deadline);
    pthread_mutex_unlock(&sched->lock);
    return is_over(native) ? DRUPE_OK : timed_out("work");
}

drupe_status drupe_host_event_times(drupe_event *event, drupe_times *times)
{
    const drupe_host_event *native = drupe_native(event);
    *times = (drupe_times){.queued = native->queued,
                           .submitted = native->submitted,
                           .started = atomic_load(&((drupe_host_event *)native)->started),
                           .ended = native->ended};
    return DRUPE_OK;
}

drupe_status drupe_host_event_notify(drupe_event *event)
{
    drupe_host_event *native = drupe_native(event);
    if (atomic_fetch_or(&native->end, (uintptr_t)DRUPE_HOST_NOTIFY) & DRUPE_HOST_OVER)
        drupe_core_notify(event);
    return DRUPE_OK;
}
