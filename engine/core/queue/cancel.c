/* Giving up what a queue has not started.
 *
 * It is one more first cause, reported from the beginning: what stands behind it fails by the rule for
 * failures, what is submitted afterwards runs. How far it reaches depends on the backend. One that can cancel
 * loses everything behind what it is at; a driver that cannot keeps what it was given, and only what the
 * engine still holds is given up, as on every out-of-order queue. */
#include "core/queue/launch.h"

/* Whether the backend still has it wait, perhaps for another queue: that does not begin any more. */
static bool waits_natively(const drupe_inflight *entry)
{
    drupe_event_state state = DRUPE_EVENT_SUBMITTED;
    const drupe_event *event = entry->event;
    return event && drupe_event_phase(event) == DRUPE_PHASE_NATIVE &&
           !drupe_device_silent(event->queue->base.device) &&
           event->object.backend->event_state(entry->event, &state) == DRUPE_OK &&
           state == DRUPE_EVENT_QUEUED;
}

/* The number of the last submission that will run, and how many stand before and behind it. */
static uint64_t survey(const drupe_queue *queue, bool native, size_t *left, size_t *given_up)
{
    uint64_t from = 0;
    bool first = true;
    *left = *given_up = 0;
    for (const drupe_inflight *entry = queue->order.head; entry; entry = entry->next) {
        drupe_phase phase = entry->event ? drupe_event_phase(entry->event) : DRUPE_PHASE_NATIVE;
        bool over = entry->event ? drupe_phase_over(phase) : entry->what.number <= queue->proof.proven;
        bool runs = entry->deferred && phase == DRUPE_PHASE_RUNNING;
        if (runs) *left = *given_up = 0; /* what stands before it is over, as the waiter has just seen */
        if (over) continue;
        bool goes_on = runs || (!entry->deferred && (!native || (first && !waits_natively(entry))));
        if (goes_on) from = drupe_inflight_order(entry);
        first = false;
        if (entry->event && entry->event->behind) continue; /* nobody submitted that */
        *left += goes_on;
        *given_up += !goes_on;
    }
    return from;
}

static drupe_status cancel_unordered(drupe_queue *queue, size_t *left, size_t *given_up)
{
    drupe_cause *cause = NULL;
    drupe_status status = DRUPE_OK;
    pthread_mutex_lock(&queue->lock);
    size_t before = drupe_queue_unfinished(queue);
    if (queue->order.deferred) status = drupe_cause_cancelling(queue, 0, &cause);
    if (cause) drupe_cause_report(cause);
    for (drupe_inflight *entry = queue->order.deferred; cause && entry; entry = entry->next)
        drupe_event_give_up(entry->event, cause);
    *left = drupe_queue_unfinished(queue);
    *given_up = before - *left;
    drupe_cause_release(cause);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* What was submitted after `from` is cancelled; needs the queue's lock. */
static drupe_status give_up(drupe_queue *queue, uint64_t from)
{
    drupe_cause *cause;
    DRUPE_TRY(drupe_cause_cancelling(queue, from, &cause));
    /* Before its report: an older failure that is unreported keeps its place. */
    drupe_queue_set_cause(queue, cause, from);
    drupe_marks_settle_locked(queue);
    drupe_cause_report(cause);
    drupe_cause_release(cause);
    return DRUPE_OK;
}

drupe_status drupe_queue_cancel(drupe_queue *queue, size_t *left, size_t *given_up)
{
    *left = *given_up = 0;
    DRUPE_TRY(drupe_core_check());
    if (!queue) return drupe_error_set(DRUPE_E_INVALID, "There is no queue whose work could be cancelled.");
    DRUPE_TRY(drupe_queue_let_go(queue));
    if (drupe_queue_unordered(queue)) return cancel_unordered(queue, left, given_up);
    drupe_queue_settle(queue, true);
    pthread_mutex_lock(&queue->lock);
    void (*cancel)(drupe_queue *, uint64_t) = queue->base.slot->backend->queue_cancel;
    uint64_t from = survey(queue, cancel != NULL, left, given_up);
    drupe_status status = *given_up ? give_up(queue, from) : DRUPE_OK;
    if (status == DRUPE_OK && *given_up) {
        if (cancel) cancel(queue, from);
        drupe_names_recall(queue, from); /* what comes next must not wait for what was given up */
    }
    pthread_mutex_unlock(&queue->lock);
    if (*given_up) drupe_core_note("cancelled: %zu submissions of queue %u", *given_up, queue->base.number);
    drupe_deferred_kick();
    return status;
}
