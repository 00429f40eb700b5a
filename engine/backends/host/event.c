/* Queues and events, as those see them who wait. */
#include "backends/host/host.h"
#include <stdlib.h>

drupe_status drupe_host_queue_open(drupe_queue *queue, uint32_t flags)
{
    drupe_host_queue *native = drupe_native(queue);
    native->device = drupe_native(drupe_queue_device(queue));
    native->pool = native->device->pool;
    native->profiling = (flags & DRUPE_QUEUE_PROFILING) != 0;
    /* A sub-device's work belongs on its own workers, however small it is. */
    native->inlines = !native->pool->shuffle && !drupe_device_parent(drupe_queue_device(queue));
    return DRUPE_OK;
}

/* The worker that finished the last task may still be looking at the queue, with the lock held. */
void drupe_host_queue_close(drupe_queue *queue)
{
    drupe_host_queue *native = drupe_native(queue);
    if (!native->pool) return;
    pthread_mutex_lock(&native->pool->lock);
    pthread_mutex_unlock(&native->pool->lock);
    free(native->error);
}

/* DRUPE_OK, or the fault of work without an event, once. */
static drupe_status take_error(drupe_host_queue *queue)
{
    pthread_mutex_lock(&queue->pool->lock);
    drupe_error *error = queue->error;
    queue->error = NULL;
    atomic_store(&queue->faulted, false);
    pthread_mutex_unlock(&queue->pool->lock);
    drupe_status status = error ? drupe_error_restore(error) : DRUPE_OK;
    free(error);
    return status;
}

drupe_status drupe_host_queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    drupe_host_queue *native = drupe_native(queue);
    if (!native->pool) return DRUPE_OK;
    if (atomic_load(&native->pending) == 0)
        return atomic_load(&native->faulted) ? take_error(native) : DRUPE_OK;
    uint64_t deadline = drupe_deadline(timeout_ns);
    bool in_time = true;
    pthread_mutex_lock(&native->pool->lock);
    native->waited = true;
    while (atomic_load(&native->pending) && in_time) {
        in_time = drupe_cond_wait_until(&native->pool->done, &native->pool->lock, deadline);
    }
    bool dry = atomic_load(&native->pending) == 0;
    pthread_mutex_unlock(&native->pool->lock);
    if (!dry) return drupe_error_set(DRUPE_E_TIMEOUT, "The queue is not done yet.");
    return atomic_load(&native->faulted) ? take_error(native) : DRUPE_OK;
}

static bool is_over(int state)
{
    return state == DRUPE_EVENT_COMPLETE || state == DRUPE_EVENT_FAILED;
}

void drupe_host_event_close(drupe_event *event)
{
    drupe_host_event *native = drupe_native(event);
    free(native->error);
}

drupe_status drupe_host_event_state(drupe_event *event, drupe_event_state *state)
{
    drupe_host_event *native = drupe_native(event);
    *state = (drupe_event_state)atomic_load_explicit(&native->state, memory_order_acquire);
    if (*state != DRUPE_EVENT_FAILED) return DRUPE_OK;
    if (native->error)
        drupe_error_restore(native->error);
    else
        drupe_error_set(DRUPE_E_NO_MEMORY, "It failed, and there was no memory to keep the reason.");
    return DRUPE_OK;
}

drupe_status drupe_host_event_wait(drupe_event *event, uint64_t timeout_ns)
{
    drupe_host_event *native = drupe_native(event);
    if (is_over(atomic_load_explicit(&native->state, memory_order_acquire))) return DRUPE_OK;
    drupe_host_pool *pool = native->pool;
    uint64_t deadline = drupe_deadline(timeout_ns);
    bool in_time = true;
    pthread_mutex_lock(&pool->lock);
    native->waited = true;
    while (!is_over(atomic_load(&native->state)) && in_time) {
        in_time = drupe_cond_wait_until(&pool->done, &pool->lock, deadline);
    }
    bool over = is_over(atomic_load(&native->state));
    pthread_mutex_unlock(&pool->lock);
    return over ? DRUPE_OK : drupe_error_set(DRUPE_E_TIMEOUT, "The work is not done yet.");
}

drupe_status drupe_host_event_times(drupe_event *event, drupe_times *times)
{
    *times = ((const drupe_host_event *)drupe_native(event))->times;
    return DRUPE_OK;
}

drupe_status drupe_host_event_notify(drupe_event *event)
{
    drupe_host_event *native = drupe_native(event);
    bool over = is_over(atomic_load_explicit(&native->state, memory_order_acquire));
    if (!over) {
        pthread_mutex_lock(&native->pool->lock);
        native->notify = true;
        over = is_over(atomic_load(&native->state));
        pthread_mutex_unlock(&native->pool->lock);
    }
    if (over) drupe_core_notify(event);
    return DRUPE_OK;
}
