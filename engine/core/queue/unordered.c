/* What an out-of-order queue has in flight: looking at it. How it is ordered: unordered_submit.c. */
#include "core/queue/launch.h"

void drupe_unordered_breach(drupe_queue *queue, drupe_cause *cause)
{
    drupe_cause_release(queue->unordered.breached);
    queue->unordered.breached = cause ? drupe_cause_retain(cause) : NULL;
}

void drupe_unordered_fence(drupe_queue *queue, drupe_event *event)
{
    drupe_event *before = queue->unordered.barrier;
    if (!event && drupe_event_settled(before) == DRUPE_PHASE_FAILED)
        drupe_unordered_breach(queue, before->cause);
    queue->unordered.barrier = event;
}

/* --- Looking -------------------------------------------------------------------------------------------- */

/* The look goes round: work that lasts long does not hide what stands behind it. */
drupe_inflight *drupe_unordered_reap(drupe_queue *queue, size_t most)
{
    drupe_inflight *list = NULL, *before = queue->unordered.scan;
    if (most > queue->order.count) most = queue->order.count;
    for (; most > 0; most--) {
        if (before && !before->next) before = NULL;
        drupe_inflight *entry = before ? before->next : queue->order.head;
        if (!entry->deferred && drupe_phase_over(drupe_event_poll_locked(entry->event)) &&
            !entry->event->abandoned) {
            drupe_inflight_detach(queue, before, &list);
            if (queue->unordered.barrier == entry->event) drupe_unordered_fence(queue, NULL);
        } else {
            before = entry;
        }
    }
    queue->unordered.scan = queue->order.head ? before : NULL;
    return list;
}
