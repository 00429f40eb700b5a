/* Out-of-order queues: ordered by waits and barriers alone.
 *
 * Core names everything to the backend. A barrier waits by name for all that is not over, and what follows
 * waits for the last barrier, the queue's fence: so the rules for waits, in launching and in failing, are all
 * the rules there are, and a backend may run such a queue in any order, or in order. Every submission has an
 * event. What cannot be launched is held on its own, in a list beside that of the launched. */
#include "core/queue/launch.h"
#include <stdlib.h>

/* --- What a submission stands behind -------------------------------------------------------------------- */

/* Why the last barrier failed, if that counts for this submission. Retained, or NULL. */
static drupe_cause *breached(drupe_queue *queue, uint64_t number)
{
    if (queue->names.fence && drupe_event_settled(queue->names.fence) == DRUPE_PHASE_FAILED)
        drupe_unordered_drop_fence(queue);
    if (!queue->names.breach) return NULL;
    if (drupe_cause_dooms(queue->names.breach, number, queue)) return drupe_cause_retain(queue->names.breach);
    drupe_unordered_breach(queue, NULL);
    return NULL;
}

/* What has failed already. Retained, or NULL. */
static drupe_cause *doom(drupe_queue *queue, drupe_flight *flight, bool barrier)
{
    for (size_t i = 0; i < flight->nwaits; i++) {
        if (drupe_event_settled(flight->waits[i]) != DRUPE_PHASE_FAILED) continue;
        drupe_cause *cause =
            drupe_cause_of_wait(flight->waits[i]->cause, &flight->what, queue, flight->what.number);
        drupe_queue_blame(queue, cause, flight->what.number);
        return cause;
    }
    drupe_cause *cause = breached(queue, flight->what.number);
    if (!cause && barrier) cause = drupe_queue_doom(queue, flight->what.number);
    return cause ? cause : drupe_flight_doomed(queue, flight);
}

static void wait_for_list(drupe_flight *flight, const drupe_flight *list, uint64_t after)
{
    for (; list; list = list->next) {
        if (list->what.number > after && !drupe_phase_over(drupe_event_phase(list->event)))
            drupe_flight_add_wait(flight, list->event);
    }
}

static void add_waits(drupe_queue *queue, drupe_flight *flight, bool barrier)
{
    uint64_t after = 0;
    if (queue->names.fence && drupe_event_phase(queue->names.fence) != DRUPE_PHASE_COMPLETE) {
        after = queue->names.fence->number;
        drupe_flight_add_wait(flight, queue->names.fence);
    }
    if (!barrier) return;
    wait_for_list(flight, queue->order.head, after);
    wait_for_list(flight, queue->order.held, after);
}

/* --- Submitting ----------------------------------------------------------------------------------------- */

static void append_held(drupe_queue *queue, drupe_flight *flight)
{
    if (queue->order.held)
        queue->order.held_tail->next = flight;
    else
        queue->order.held = flight;
    queue->order.held_tail = flight;
    drupe_queue_count(queue, 1);
}

drupe_status drupe_unordered_place(drupe_queue *queue, drupe_flight *flight, const drupe_work *work,
                                   bool barrier, bool *over)
{
    drupe_cause *cause = doom(queue, flight, barrier);
    *over = true;
    if (cause) {
        drupe_event_fail_behind(flight->event, cause, flight);
        if (barrier) drupe_unordered_breach(queue, cause);
        drupe_cause_release(cause);
        return DRUPE_OK;
    }
    add_waits(queue, flight, barrier);
    if (drupe_work_emulated(queue, work) || drupe_flight_ready(queue, flight) != DRUPE_READY) {
        DRUPE_TRY(drupe_flight_hold(queue, flight, work));
        append_held(queue, flight);
    } else {
        DRUPE_TRY(drupe_flight_launch(queue, flight, work));
        if (flight->done) return DRUPE_OK;
        drupe_flight_append(queue, flight);
    }
    *over = false;
    if (!barrier) return DRUPE_OK;
    queue->names.fence = flight->event;
    return DRUPE_OK;
}

/* --- Waiting -------------------------------------------------------------------------------------------- */

static size_t gather(const drupe_flight *list, drupe_event **events)
{
    size_t count = 0;
    for (; list; list = list->next) {
        if (!drupe_phase_over(drupe_event_phase(list->event)))
            events[count++] = drupe_event_retain(list->event);
    }
    return count;
}

static drupe_status snapshot(drupe_queue *queue, drupe_event ***events, size_t *count)
{
    drupe_status status = DRUPE_OK;
    *count = 0;
    *events = NULL;
    pthread_mutex_lock(&queue->lock);
    drupe_queue_flush_locked(queue);
    if (queue->order.count) {
        *events = malloc(queue->order.count * sizeof(drupe_event *));
        if (*events) {
            *count = gather(queue->order.head, *events);
            *count += gather(queue->order.held, *events + *count);
        } else {
            status = drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to wait for %zu submissions.",
                                     queue->order.count);
        }
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
    if (status == DRUPE_OK) drupe_hold_let_pass(queue);
    return status;
}

/* --- The waiter's step ---------------------------------------------------------------------------------- */

/* Move a flight that the backend has, or that is over, from the held to the launched. */
static void let_go(drupe_queue *queue, drupe_flight *before, drupe_flight *flight)
{
    if (before)
        before->next = flight->next;
    else
        queue->order.held = flight->next;
    if (queue->order.held_tail == flight) queue->order.held_tail = before;
    flight->held = false;
    flight->next = NULL;
    drupe_queue_count(queue, -1);
    drupe_flight_append(queue, flight);
}

/* Only the waiter takes flights from the held list, so they stay while the lock is not held. */
bool drupe_unordered_serve(drupe_queue *queue)
{
    bool moved = false;
    drupe_flight *before = NULL;
    pthread_mutex_lock(&queue->lock);
    drupe_flight *flight = queue->order.held;
    while (flight) {
        pthread_mutex_unlock(&queue->lock);
        drupe_hold_poll(flight);
        pthread_mutex_lock(&queue->lock);
        drupe_flight *next = flight->next;
        if (drupe_hold_advance(queue, flight)) {
            let_go(queue, before, flight);
            moved = true;
        } else {
            before = flight;
        }
        flight = next;
    }
    if (moved) drupe_queue_flush_locked(queue);
    pthread_mutex_unlock(&queue->lock);
    if (moved) drupe_hold_announce();
    return moved;
}
