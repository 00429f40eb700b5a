/* What has to be over before memory is used out of the order of the queue that last used it. */
#include "core/queue/launch.h"
#include <assert.h>

static bool has_uses(const drupe_memory *memory)
{
    return (atomic_load_explicit(&((drupe_memory *)memory)->uses, memory_order_acquire) & DRUPE_USES_COUNT) !=
           0;
}

/* An event that proves the end of silent work of an in-order queue: of work behind it that the driver has, or
 * of a barrier before what is deferred, which may be deferred for as long as the program likes. NULL: it is
 * over. What failed proves nothing. */
static drupe_status event_behind(drupe_queue *queue, const drupe_inflight *silent, drupe_event **event)
{
    drupe_inflight *at = silent->next;
    for (; at && at != queue->order.deferred; at = at->next) {
        drupe_phase phase = at->event ? drupe_event_phase(at->event) : DRUPE_PHASE_FAILED;
        if (phase == DRUPE_PHASE_COMPLETE) return DRUPE_OK;
        if (phase == DRUPE_PHASE_FAILED) continue;
        *event = drupe_event_retain(at->event);
        return DRUPE_OK;
    }
    DRUPE_TRY(drupe_queue_mark(queue, at, event));
    assert(*event); /* there is the silent entry */
    if (drupe_event_phase(*event) != DRUPE_PHASE_FAILED) return DRUPE_OK;
    drupe_event_release(*event);
    *event = NULL;
    return drupe_error_set(DRUPE_E_BUSY,
                           "Work of queue %u on %s may still use this memory, and a failure of later work on "
                           "that queue has not been reported yet. Wait for that queue first.",
                           queue->base.number, queue->base.device->filter);
}

static drupe_status before_ordered(drupe_queue *queue, uint64_t number,
                                   drupe_status (*add)(void *, drupe_event *), void *user, bool *found)
{
    const drupe_inflight *last = NULL;
    const drupe_inflight *at = queue->order.head;
    for (; at && drupe_inflight_order(at) <= number; at = at->next) /* barriers of core stand in between */
        if (!drupe_inflight_over(queue, at)) last = at;
    *found = last != NULL;
    if (!last) return DRUPE_OK;
    drupe_event *event = NULL;
    if (last->event)
        event = drupe_event_retain(last->event);
    else
        DRUPE_TRY(event_behind(queue, last, &event));
    drupe_queue_flush_locked(queue);
    *found = event != NULL;
    return event ? add(user, event) : DRUPE_OK;
}

static drupe_status before_unordered(const drupe_queue *queue, uint64_t number,
                                     drupe_status (*add)(void *, drupe_event *), void *user, bool *found)
{
    for (const drupe_inflight *at = queue->order.head; at; at = at->next) {
        if (at->what.number > number || drupe_inflight_over(queue, at)) continue;
        *found = true;
        DRUPE_TRY(add(user, drupe_event_retain(at->event)));
    }
    return DRUPE_OK;
}

drupe_status drupe_memory_before(drupe_memory *memory, drupe_status (*add)(void *user, drupe_event *event),
                                 void *user)
{
    drupe_queue *queue = memory->queue;
    bool used = has_uses(memory);
    bool found = false;
    drupe_status status = DRUPE_OK;
    if (!atomic_load_explicit(&memory->order, memory_order_relaxed)) return DRUPE_OK;
    if (used) {
        drupe_queue_settle(queue, true);
        pthread_mutex_lock(&queue->lock);
        status = drupe_queue_unordered(queue) ? before_unordered(queue, memory->born, add, user, &found)
                                              : before_ordered(queue, memory->born, add, user, &found);
        pthread_mutex_unlock(&queue->lock);
    }
    if (status == DRUPE_OK && !found) atomic_store_explicit(&memory->order, 0, memory_order_relaxed);
    return status;
}

/* The first one is enough: the caller asks again. */
static drupe_status keep_first(void *user, drupe_event *event)
{
    drupe_event **first = user;
    if (*first)
        drupe_event_release(event);
    else
        *first = event;
    return DRUPE_OK;
}

drupe_status drupe_memory_before_use(drupe_memory *memory, drupe_event **event)
{
    *event = NULL;
    DRUPE_TRY(drupe_core_check());
    if (drupe_gate_parked(memory)) DRUPE_TRY(drupe_gate_wake(memory->pool->root));
    atomic_store(&memory->left, true);
    return drupe_memory_before_view(memory, event);
}

drupe_status drupe_memory_before_view(drupe_memory *memory, drupe_event **event)
{
    *event = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_memory_let_go(memory));
    if (drupe_gate_parked(memory)) DRUPE_TRY(drupe_gate_wake(memory->pool->root));
    atomic_store_explicit(&memory->exposed, true, memory_order_relaxed);
    return drupe_memory_before(memory, keep_first, event);
}
