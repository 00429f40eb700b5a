/* Out-of-order queues: ordered by waits and barriers alone.
 *
 * Core names everything to the backend. A barrier waits by name for all that is not over, and what follows
 * waits for the last barrier, the queue's `unordered.barrier`: so the rules for waits, in launching and in
 * failing, are all the rules there are, and a backend may run such a queue in any order, or in order. Every
 * submission has an event. What cannot be launched is deferred on its own, and stays where it is on the list
 * when it is launched. */
#include "core/queue/launch.h"
#include <stdlib.h>

/* --- What a submission stands behind -------------------------------------------------------------------- */

/* Why the last barrier failed, if that counts for this submission. Retained, or NULL. */
static drupe_cause *breached(drupe_queue *queue, uint64_t number)
{
    if (queue->unordered.barrier && drupe_event_settled(queue->unordered.barrier) == DRUPE_PHASE_FAILED)
        drupe_unordered_fence(queue, NULL);
    if (!queue->unordered.breached) return NULL;
    if (drupe_cause_stops(queue->unordered.breached, number, queue))
        return drupe_cause_retain(queue->unordered.breached);
    drupe_unordered_breach(queue, NULL);
    return NULL;
}

/* What has failed already. Retained, or NULL. */
static drupe_cause *pending_failure_of(drupe_queue *queue, drupe_inflight *entry, bool barrier,
                                       drupe_cause *unwritten)
{
    for (size_t i = 0; i < entry->nwaits; i++) {
        if (drupe_event_settled(entry->waits[i]) == DRUPE_PHASE_FAILED)
            return drupe_inflight_fails_for(queue, entry, entry->waits[i]->cause);
    }
    drupe_cause *cause = breached(queue, entry->what.number);
    if (!cause && barrier) cause = drupe_queue_pending_failure(queue, entry->what.number);
    return cause ? cause : drupe_inflight_fails_for(queue, entry, unwritten);
}

static void add_waits(drupe_queue *queue, drupe_inflight *entry, bool barrier)
{
    uint64_t after = 0;
    drupe_event *last = queue->unordered.barrier;
    if (last && drupe_event_phase(last) != DRUPE_PHASE_COMPLETE) {
        after = last->number;
        drupe_inflight_add_wait(entry, last);
    }
    for (const drupe_inflight *at = barrier ? queue->order.head : NULL; at; at = at->next) {
        if (at->what.number > after && !drupe_phase_over(drupe_event_phase(at->event)))
            drupe_inflight_add_wait(entry, at->event);
    }
}

/* --- Submitting ----------------------------------------------------------------------------------------- */

drupe_status drupe_unordered_submit(const drupe_submit_info *info, drupe_inflight *entry,
                                    const drupe_work *work, drupe_cause *unwritten, bool *over)
{
    drupe_queue *queue = info->queue;
    bool barrier = drupe_submit_info_is_barrier(info, work);
    drupe_cause *cause = pending_failure_of(queue, entry, barrier, unwritten);
    *over = true;
    if (cause) {
        drupe_event_fail_behind(entry->event, cause, entry);
        if (barrier) drupe_unordered_breach(queue, cause);
        drupe_cause_release(cause);
        return DRUPE_OK;
    }
    add_waits(queue, entry, barrier);
    bool deferred =
        drupe_work_emulated(queue, work) || drupe_inflight_ready(queue, entry, work) != DRUPE_READY;
    DRUPE_TRY(deferred ? drupe_inflight_defer(queue, entry, work, info->uses.read)
                       : drupe_inflight_launch(queue, entry, work));
    if (entry->done) return DRUPE_OK;
    drupe_inflight_append(queue, entry, deferred);
    *over = false;
    if (barrier) drupe_unordered_fence(queue, entry->event);
    return DRUPE_OK;
}

/* --- Waiting -------------------------------------------------------------------------------------------- */

static drupe_status snapshot(drupe_queue *queue, drupe_event ***events, size_t *count)
{
    drupe_status status = DRUPE_OK;
    *count = 0;
    *events = NULL;
    pthread_mutex_lock(&queue->lock);
    drupe_queue_flush_locked(queue);
    if (queue->order.count) *events = malloc(queue->order.count * sizeof(drupe_event *));
    if (queue->order.count && !*events)
        status = drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to wait for %zu submissions.",
                                 queue->order.count);
    for (const drupe_inflight *at = *events ? queue->order.head : NULL; at; at = at->next) {
        if (!drupe_phase_over(drupe_event_phase(at->event)))
            (*events)[(*count)++] = drupe_event_retain(at->event);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

drupe_status drupe_unordered_await(drupe_queue *queue, uint64_t deadline)
{
    drupe_event **events;
    size_t count;
    DRUPE_TRY(snapshot(queue, &events, &count));
    drupe_status status = DRUPE_OK;
    for (size_t i = 0; i < count; i++) {
        if (status == DRUPE_OK) status = drupe_event_await(events[i], deadline);
        drupe_event_release(events[i]);
    }
    free(events);
    if (status == DRUPE_OK) drupe_deferred_let_pass(queue);
    return status;
}

/* --- The waiter's step ---------------------------------------------------------------------------------- */

/* A deferred entry stays on the list while the lock is not held, since only the waiter ends its deferral. */
bool drupe_unordered_serve(drupe_queue *queue)
{
    bool moved = false;
    pthread_mutex_lock(&queue->lock);
    for (drupe_inflight *entry = queue->order.deferred; entry; entry = entry->next) {
        if (!entry->deferred) continue;
        pthread_mutex_unlock(&queue->lock);
        drupe_deferred_poll(entry);
        pthread_mutex_lock(&queue->lock);
        if (!drupe_deferred_advance(queue, entry)) continue;
        drupe_inflight_admit(queue, entry);
        moved = true;
    }
    if (moved) drupe_queue_flush_locked(queue);
    pthread_mutex_unlock(&queue->lock);
    if (moved) drupe_deferred_announce();
    return moved;
}
