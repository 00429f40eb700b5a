/* What an out-of-order queue has in flight: looking at it. How it is ordered: unordered_place.c. */
#include "core/queue/launch.h"

void drupe_unordered_breach(drupe_queue *queue, drupe_cause *cause)
{
    drupe_cause_release(queue->names.breach);
    queue->names.breach = cause ? drupe_cause_retain(cause) : NULL;
}

/* The fence's flight is about to go, or the fence has failed. */
void drupe_unordered_drop_fence(drupe_queue *queue)
{
    if (drupe_event_settled(queue->names.fence) == DRUPE_PHASE_FAILED)
        drupe_unordered_breach(queue, queue->names.fence->cause);
    queue->names.fence = NULL;
}

size_t drupe_unordered_waits(const drupe_queue *queue, bool barrier)
{
    return barrier ? queue->order.count + 1 : 1;
}

/* --- Looking -------------------------------------------------------------------------------------------- */

/* Detach the flight that follows `before` (NULL: the first). */
static drupe_flight *detach(drupe_queue *queue, drupe_flight *before)
{
    drupe_flight *flight = before ? before->next : queue->order.head;
    if (before)
        before->next = flight->next;
    else
        queue->order.head = flight->next;
    if (queue->order.tail == flight) queue->order.tail = before;
    drupe_queue_count(queue, -1);
    if (queue->names.fence == flight->event) drupe_unordered_drop_fence(queue);
    return flight;
}

/* The look goes round: work that lasts long does not hide what stands behind it. */
drupe_flight *drupe_unordered_reap(drupe_queue *queue, size_t most)
{
    drupe_flight *list = NULL, *before = queue->order.scan;
    if (most > queue->order.count) most = queue->order.count;
    for (; most > 0 && queue->order.head; most--) {
        if (before && !before->next) before = NULL;
        drupe_flight *flight = before ? before->next : queue->order.head;
        if (drupe_phase_over(drupe_event_poll_locked(flight->event)) && !flight->event->abandoned) {
            detach(queue, before);
            flight->next = list;
            list = flight;
        } else {
            before = flight;
        }
    }
    queue->order.scan = queue->order.head ? before : NULL;
    return list;
}

void drupe_unordered_settle(drupe_queue *queue)
{
    for (drupe_flight *flight = queue->order.head; flight; flight = flight->next) {
        drupe_event_poll_locked(flight->event);
    }
}

static size_t unfinished(const drupe_flight *list)
{
    size_t count = 0;
    for (; list; list = list->next) count += !drupe_phase_over(drupe_event_phase(list->event));
    return count;
}

size_t drupe_unordered_pending(drupe_queue *queue)
{
    return unfinished(queue->order.head) + unfinished(queue->order.held);
}
