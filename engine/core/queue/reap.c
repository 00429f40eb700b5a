/* What is over leaves the queue, behind everything that has to be known by then: what failed, and whose
 * memory that leaves without a result. */
#include "core/queue/launch.h"

#define REAP_MOST 16u   /* of an out-of-order queue, where each has to be looked at */
#define REAP_MANY 1024u /* of an in-order queue: nobody's submission is to take long */

/* --- Hearing of what failed ----------------------------------------------------------------------------- */

void drupe_marks_hear(drupe_queue *queue)
{
    const drupe_backend *backend = queue->base.slot->backend;
    if (!atomic_exchange(&queue->base.unheard, false) || drupe_device_silent(queue->base.device)) return;
    if (backend->queue_fault && backend->queue_fault(queue) != DRUPE_OK)
        drupe_queue_blame(queue, queue->order.tail ? queue->order.tail->what.number : queue->proof.proven);
    drupe_queue_settle_locked(queue, false);
}

/* --- Paying what is owed -------------------------------------------------------------------------------- */

/* That it is over does not tell that it ran. */
static bool is_complete(const drupe_inflight *entry)
{
    return entry->event && drupe_event_phase(entry->event) == DRUPE_PHASE_COMPLETE;
}

/* Why it will not run, or did not, where the queue's cause does not stop it: what it waits for by name has
 * failed for a reason that was told before it was submitted. Nobody else tells of work without an event.
 * Retained, or NULL. */
static drupe_cause *cause_of_names(drupe_queue *queue, drupe_inflight *entry)
{
    for (size_t i = 0; i < entry->nwaits; i++) {
        if (drupe_event_settled(entry->waits[i]) != DRUPE_PHASE_FAILED) continue;
        drupe_cause *cause = entry->waits[i]->cause;
        return entry->event ? drupe_cause_retain(cause) : drupe_inflight_fails_for(queue, entry, cause);
    }
    return NULL;
}

/* What stands behind the queue's cause. On an out-of-order queue every submission has an event, which marks
 * for itself. */
static void walk(drupe_queue *queue)
{
    drupe_inflight *entry = drupe_queue_unordered(queue) ? NULL : queue->order.head;
    for (; entry; entry = entry->next) {
        if (!atomic_load(&entry->written) || is_complete(entry)) continue;
        drupe_cause *cause = drupe_queue_pending_failure(queue, drupe_inflight_order(entry));
        if (!cause) cause = cause_of_names(queue, entry);
        if (!cause) continue;
        drupe_mark_inflight(entry, cause);
        drupe_cause_release(cause);
    }
}

void drupe_marks_settle_locked(drupe_queue *queue)
{
    unsigned due = atomic_load(&queue->base.marks_due);
    while (due) {
        drupe_marks_hear(queue);
        walk(queue);
        /* The count falls after the walk, because a thread that finds no marks owed reads them at once. If
         * the queue got another cause during the walk, the exchange fails and the walk is repeated. */
        if (atomic_compare_exchange_strong(&queue->base.marks_due, &due, 0)) {
            atomic_fetch_sub(&drupe_marks_owed, 1);
            due = 0;
        }
    }
}

void drupe_marks_settle(void)
{
    if (!atomic_load_explicit(&drupe_marks_owed, memory_order_acquire)) return;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (!atomic_load(&queue->base.marks_due)) continue;
        pthread_mutex_lock(&queue->lock);
        drupe_marks_settle_locked(queue);
        pthread_mutex_unlock(&queue->lock);
    }
}

/* --- Reaping -------------------------------------------------------------------------------------------- */

drupe_inflight *drupe_inflight_reap(drupe_queue *queue, size_t most, bool hasty)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_reap(queue, queue->order.count);
    queue->polling.ticks = 0;
    if (atomic_load_explicit(&queue->base.unheard, memory_order_acquire)) drupe_marks_hear(queue);
    drupe_inflight *cut = drupe_inflight_finished(queue, most, hasty);
    if (!cut) return NULL;
    drupe_marks_settle_locked(queue);
    return drupe_inflight_cut(queue, cut, most);
}

drupe_inflight *drupe_queue_reap_some(drupe_queue *queue, size_t bytes)
{
    bool small;
    if (!drupe_inflight_due(queue, bytes, &small)) return NULL;
    if (drupe_queue_unordered(queue)) return drupe_unordered_reap(queue, REAP_MOST);
    return drupe_inflight_reap(queue, REAP_MANY, small);
}
