/* What an out-of-order queue has in flight: looking at it. How it is ordered: unordered_submit.c. */
#include "core/queue/launch.h"

void drupe_unordered_breach(drupe_queue *queue, drupe_cause *cause)
{
    drupe_cause_release(queue->names.barrier_failure);
    queue->names.barrier_failure = cause ? drupe_cause_retain(cause) : NULL;
}

/* The last barrier's entry is about to go, or it has failed. */
void drupe_unordered_drop_fence(drupe_queue *queue)
{
    if (drupe_event_settled(queue->names.last_barrier) == DRUPE_PHASE_FAILED)
        drupe_unordered_breach(queue, queue->names.last_barrier->cause);
    queue->names.last_barrier = NULL;
}

size_t drupe_unordered_waits(const drupe_queue *queue, bool barrier)
{
    return barrier ? queue->order.count + 1 : 1;
}

/* --- Looking -------------------------------------------------------------------------------------------- */

/* Detach the entry that follows `before` (NULL: the first). */
static drupe_inflight *detach(drupe_queue *queue, drupe_inflight *before)
{
    drupe_inflight *entry = before ? before->next : queue->order.head;
    if (before)
        before->next = entry->next;
    else
        queue->order.head = entry->next;
    if (queue->order.tail == entry) queue->order.tail = before;
    drupe_queue_count(queue, -1);
    if (queue->names.last_barrier == entry->event) drupe_unordered_drop_fence(queue);
    return entry;
}

/* The look goes round: work that lasts long does not hide what stands behind it. */
drupe_inflight *drupe_unordered_reap(drupe_queue *queue, size_t most)
{
    drupe_inflight *list = NULL, *before = queue->order.scan;
    if (most > queue->order.count) most = queue->order.count;
    for (; most > 0 && queue->order.head; most--) {
        if (before && !before->next) before = NULL;
        drupe_inflight *entry = before ? before->next : queue->order.head;
        if (!entry->deferred && drupe_phase_over(drupe_event_poll_locked(entry->event)) &&
            !entry->event->abandoned) {
            detach(queue, before);
            entry->next = list;
            list = entry;
        } else {
            before = entry;
        }
    }
    queue->order.scan = queue->order.head ? before : NULL;
    return list;
}

void drupe_unordered_settle(drupe_queue *queue)
{
    for (drupe_inflight *entry = queue->order.head; entry; entry = entry->next) {
        drupe_event_poll_locked(entry->event);
    }
}

size_t drupe_unordered_pending(drupe_queue *queue)
{
    size_t count = 0;
    for (const drupe_inflight *entry = queue->order.head; entry; entry = entry->next)
        count += !drupe_phase_over(drupe_event_phase(entry->event));
    return count;
}
