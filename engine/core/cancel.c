/* Giving up what a queue has not started.
 *
 * It is one more first cause, reported from the beginning: what stands behind it is doomed by the rule for
 * failures, what is submitted afterwards runs. How far it reaches depends on the backend. One that can cancel
 * loses everything behind what it is at; a driver that cannot keeps what it was given, and only what the
 * engine still holds is given up, as on every out-of-order queue. */
#include "core/core.h"

static bool unfinished(const drupe_flight *flight)
{
    return flight->event && !drupe_phase_over(drupe_event_phase(flight->event));
}

/* Whether the backend still has it wait, perhaps for another queue: that does not begin any more. */
static bool waits_natively(const drupe_flight *flight)
{
    drupe_event_state state = DRUPE_EVENT_SUBMITTED;
    const drupe_event *event = flight->event;
    return event && drupe_event_phase(event) == DRUPE_PHASE_NATIVE &&
           !drupe_device_silent(event->queue->device) &&
           event->object.backend->event_state(flight->event, &state) == DRUPE_OK &&
           state == DRUPE_EVENT_QUEUED;
}

/* The number of the last submission that will run, and how many stand before and behind it. */
static uint64_t survey(const drupe_queue *queue, bool native, size_t *left, size_t *given_up)
{
    uint64_t from = 0;
    bool first = true;
    *left = *given_up = 0;
    for (const drupe_flight *flight = queue->head; flight; flight = flight->next) {
        drupe_phase phase = flight->event ? drupe_event_phase(flight->event) : DRUPE_PHASE_NATIVE;
        bool over = flight->event ? drupe_phase_over(phase) : flight->number <= queue->proven;
        bool runs = flight->held && phase == DRUPE_PHASE_RUNNING;
        if (runs) *left = *given_up = 0; /* what stands before it is over, as the waiter has just seen */
        if (over) continue;
        bool goes_on = runs || (!flight->held && (!native || (first && !waits_natively(flight))));
        if (goes_on) from = drupe_flight_place(flight);
        first = false;
        if (flight->event && flight->event->behind) continue; /* nobody submitted that */
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
    size_t before = drupe_unordered_pending(queue);
    if (queue->held) status = drupe_cause_cancelling(queue, 0, &cause);
    if (cause) drupe_cause_report(cause);
    for (drupe_flight *flight = queue->held; cause && flight; flight = flight->next)
        drupe_event_give_up(flight->event, cause);
    *left = drupe_unordered_pending(queue);
    *given_up = before - *left;
    drupe_cause_release(cause);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* What comes next must not wait for what was given up: the guard is the last one that goes on. */
static void guard_again(drupe_queue *queue, uint64_t from)
{
    queue->guard = NULL;
    const drupe_flight *flight = queue->head;
    for (; flight && drupe_flight_place(flight) <= from; flight = flight->next) {
        if (flight->fallible && !flight->held && unfinished(flight)) queue->guard = flight->event;
    }
}

drupe_status drupe_queue_cancel(drupe_queue *queue, size_t *left, size_t *given_up)
{
    *left = *given_up = 0;
    DRUPE_TRY(drupe_core_check());
    if (!queue) return drupe_error_set(DRUPE_E_INVALID, "There is no queue whose work could be cancelled.");
    if (drupe_queue_unordered(queue)) return cancel_unordered(queue, left, given_up);
    drupe_queue_settle(queue, true);
    pthread_mutex_lock(&queue->lock);
    void (*cancel)(drupe_queue *) = queue->slot->backend->queue_cancel;
    uint64_t from = survey(queue, cancel != NULL, left, given_up);
    drupe_status status = *given_up ? drupe_queue_give_up(queue, from) : DRUPE_OK;
    if (status == DRUPE_OK && *given_up) {
        if (cancel) cancel(queue);
        guard_again(queue, from);
    }
    pthread_mutex_unlock(&queue->lock);
    if (*given_up) drupe_core_note("cancelled: %zu submissions of queue %u", *given_up, queue->number);
    drupe_hold_kick();
    return status;
}
