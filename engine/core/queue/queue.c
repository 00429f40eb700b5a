/* Queues: looking, waiting, letting go.
 *
 * A queue has two counts. Handles are the caller's: when the last one goes, the queue is drained on that
 * thread, which is where references may be dropped. Inner references belong to events, memory and the waiter:
 * they keep the struct, and the last of them may go anywhere, since a drained queue holds nothing of the
 * caller's. A handle may come back (the queue of an event); then the queue simply lives again. */
#include "core/queue/launch.h"

/* --- Life ----------------------------------------------------------------------------------------------- */

void drupe_queue_destroy(drupe_queue *queue)
{
    drupe_queue_leave(queue);
    if (queue->is_default) {
        drupe_library_lock();
        if (queue->base.device->queue == queue) queue->base.device->queue = NULL;
        drupe_library_unlock();
    }
    if (!drupe_device_silent(queue->base.device)) {
        /* Nothing is left; the driver is told to wait because its interface asks for that. */
        drupe_status status = queue->base.slot->backend->queue_wait(queue, DRUPE_FOREVER);
        (void)status;
        queue->base.slot->backend->queue_close(queue);
    }
    atomic_store(&queue->base.unheard, false); /* nobody is left to hear of it */
    drupe_marks_settle_locked(queue);
    drupe_inflight_forget_spares(queue);
    drupe_event_forget_spares(queue);
    drupe_cause_release(atomic_load(&queue->base.cause));
    drupe_cause_release(queue->unordered.breached);
    pthread_mutex_destroy(&queue->lock);
    drupe_slot *slot = queue->base.slot;
    drupe_device_release(queue->base.device);
    drupe_context_release(queue->base.context);
    drupe_object_free(&slot->live, queue);
}

drupe_queue *drupe_queue_retain(drupe_queue *queue)
{
    if (queue && atomic_fetch_add(&queue->base.object.references, 1) == 0) drupe_queue_inner_retain(queue);
    return queue;
}

static void release(drupe_queue *queue, bool told)
{
    if (!queue || !drupe_object_release(queue)) return;
    drupe_queue_finish(queue, UINT64_MAX);
    const drupe_checker *checker = drupe_checking();
    if (checker && told) checker->queue(queue, UINT64_MAX);
    if (checker) checker->closed(queue);
    drupe_event_keep_no_more(queue);
    drupe_queue_inner_release(queue);
}

void drupe_queue_release(drupe_queue *queue)
{
    release(queue, true);
}

void drupe_queue_release_inside(drupe_queue *queue)
{
    release(queue, false);
}

bool drupe_queue_last(const drupe_queue *queue)
{
    return atomic_load_explicit(&((drupe_queue *)queue)->base.object.references, memory_order_relaxed) == 1;
}

drupe_device *drupe_queue_device(const drupe_queue *queue)
{
    return queue->base.device;
}

drupe_context *drupe_queue_context(const drupe_queue *queue)
{
    return queue->base.context;
}

uint32_t drupe_queue_flags_of(const drupe_queue *queue)
{
    return queue->base.flags & ~DRUPE_QUEUE_TIMED;
}

uint32_t drupe_queue_number(const drupe_queue *queue)
{
    return queue->base.number;
}

drupe_event *drupe_queue_newest(const drupe_queue *queue)
{
    return queue->order.tail && !queue->order.deferred ? queue->order.tail->event : NULL;
}

/* --- Looking -------------------------------------------------------------------------------------------- */

size_t drupe_queue_blockers(drupe_queue *queue, drupe_event **events, size_t capacity)
{
    size_t count = 0;
    pthread_mutex_lock(&queue->lock);
    for (const drupe_inflight *entry = queue->order.head; entry && count == 0; entry = entry->next) {
        for (size_t i = 0; i < entry->nwaits && count < capacity; i++) {
            if (!drupe_phase_over(drupe_event_phase(entry->waits[i])))
                events[count++] = drupe_event_retain(entry->waits[i]);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return count;
}

size_t drupe_queue_pending(drupe_queue *queue)
{
    if (drupe_core_check() != DRUPE_OK || drupe_device_loss(queue->base.device)) return 0;
    pthread_mutex_lock(&queue->lock);
    size_t pending = drupe_queue_unfinished(queue);
    pthread_mutex_unlock(&queue->lock);
    return pending;
}

void drupe_queue_collect(drupe_queue *queue)
{
    if (!queue || drupe_core_check() != DRUPE_OK) return;
    drupe_event *mark = NULL;
    drupe_queue_inner_retain(queue); /* its last handle may go with what is dropped here */
    pthread_mutex_lock(&queue->lock);
    /* Silent work at the end would stay unproven until the next wait. Without a mark it does. */
    if (queue->proof.unmarked && drupe_queue_mark(queue, NULL, &mark) != DRUPE_OK) mark = NULL;
    drupe_queue_flush_locked(queue);
    drupe_inflight *finished = drupe_inflight_reap(queue, SIZE_MAX, false);
    pthread_mutex_unlock(&queue->lock);
    drupe_event_release(mark);
    drupe_inflight_drop(queue, finished);
    drupe_queue_inner_release(queue);
}

/* --- Waiting -------------------------------------------------------------------------------------------- */

/* DRUPE_OK when all is over, however it ended; or DRUPE_E_TIMEOUT, or why no mark could be made. */
static drupe_status await_all(drupe_queue *queue, uint64_t deadline)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_await(queue, deadline);
    drupe_event *mark = NULL;
    pthread_mutex_lock(&queue->lock);
    drupe_status status = drupe_queue_mark(queue, NULL, &mark);
    uint64_t number = queue->order.tail ? queue->order.tail->what.number : queue->proof.proven;
    bool silent = queue->proof.silent; /* what is over may have failed unheard */
    pthread_mutex_unlock(&queue->lock);
    if (status != DRUPE_OK || (!mark && !silent)) return status;
    if (mark) status = drupe_event_await(mark, deadline);
    bool proven = status != DRUPE_OK;
    while (!proven) {
        bool complete = !mark || drupe_event_phase(mark) == DRUPE_PHASE_COMPLETE;
        status = drupe_loss_check(queue->base.device);
        if (status == DRUPE_OK)
            status = drupe_queue_prove(queue, number, complete, drupe_time_left(deadline));
        proven = status != DRUPE_E_TIMEOUT || drupe_time_left(deadline) == 0;
    }
    drupe_event_release(mark);
    if (status == DRUPE_OK) drupe_deferred_let_pass(queue);
    return status;
}

drupe_status drupe_queue_native(drupe_queue *queue, void **handle)
{
    *handle = NULL;
    DRUPE_TRY(drupe_core_check());
    if (!queue) return drupe_error_set(DRUPE_E_INVALID, "There is no queue to take a handle from.");
    if (!queue->base.slot->backend->queue_native) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "A queue on '%s' has no handle of a driver: queue a host function instead.",
                               drupe_device_filter(queue->base.device));
    }
    DRUPE_TRY(drupe_queue_let_go(queue));
    drupe_deferred_let_pass(queue);
    pthread_mutex_lock(&queue->lock);
    drupe_status status =
        queue->order.deferred
            ? drupe_error_set(DRUPE_E_BUSY, "Work of this queue waits for another device, and what the "
                                            "driver is given now would overtake it. Wait for the queue "
                                            "first.")
            : queue->base.slot->backend->queue_native(queue, handle);
    queue->shared = queue->shared || status == DRUPE_OK;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

bool drupe_queue_quiet(const drupe_queue *queue)
{
    const drupe_queue_base *base = &queue->base;
    if (atomic_load_explicit(&drupe_core_forked, memory_order_relaxed) || drupe_check_on()) return false;
    /* What is held back is counted before it is no longer held back, so that is looked at first. */
    if (drupe_queue_has_postponed(queue)) return false;
    /* Who took out the last entry has seen the end of its work. */
    if (atomic_load_explicit(&((drupe_queue *)queue)->order.count, memory_order_acquire)) return false;
    return !drupe_queue_unordered(queue) && !queue->shared &&
           !atomic_load_explicit(&((drupe_queue *)queue)->proof.silent, memory_order_acquire) &&
           drupe_queue_works((drupe_queue *)queue) &&
           !atomic_load_explicit(&((drupe_queue_base *)base)->unheard, memory_order_acquire) &&
           !drupe_device_loss(base->device);
}

drupe_status drupe_queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    DRUPE_TRY(drupe_core_check());
    if (!queue) return drupe_error_set(DRUPE_E_INVALID, "There is no queue to wait for.");
    DRUPE_TRY(drupe_queue_let_go(queue));
    uint64_t latest = drupe_inflight_latest();
    drupe_status status = await_all(queue, drupe_deadline(timeout_ns));
    if (status != DRUPE_OK && !drupe_device_loss(queue->base.device)) return status;
    drupe_queue_settle(queue, true);
    const drupe_checker *checker = drupe_checking();
    if (checker) checker->queue(queue, latest);
    DRUPE_TRY(drupe_queue_report(queue));
    DRUPE_TRY(drupe_loss_check(queue->base.device));
    return checker ? checker->memory() : DRUPE_OK;
}

bool drupe_queue_idle(drupe_queue *queue, uint64_t timeout_ns)
{
    drupe_error kept = *drupe_error_last();
    bool over = drupe_core_check() == DRUPE_OK && !drupe_device_loss(queue->base.device) &&
                await_all(queue, drupe_deadline(timeout_ns)) == DRUPE_OK;
    if (over) drupe_queue_settle(queue, true);
    drupe_error_restore(&kept);
    return over;
}

void drupe_queue_finish(drupe_queue *queue, uint64_t deadline)
{
    /* Without a mark (no memory) the driver itself is asked; deferred work cannot be waited for then. */
    if (await_all(queue, deadline) != DRUPE_OK && drupe_error_last()->status != DRUPE_E_TIMEOUT) {
        if (drupe_device_silent(queue->base.device)) return;
        if (queue->base.slot->backend->queue_wait(queue, drupe_time_left(deadline)) != DRUPE_OK) return;
    }
    pthread_mutex_lock(&queue->lock);
    drupe_inflight *finished = drupe_inflight_reap(queue, SIZE_MAX, false);
    pthread_mutex_unlock(&queue->lock);
    drupe_inflight_drop(queue, finished);
}
