/* A submission finds its place on its queue: launched, held, or failed at once.
 *
 * Failure on one queue. Drivers do not stop a queue because one of its commands failed. Core knows which
 * submissions can fail for a reason of its own making (they wait for another queue, or run a host function):
 * the last of these not known to be over is the queue's guard, and everything launched behind it waits for it
 * by name, so that the rule for waits covers the rule for queues.
 *
 * Copies from plain host memory. A GPU's driver may read a small source when the copy is queued, whatever the
 * copy waits for (NVIDIA's does, up to 64 KiB). What stands before such a copy may be what writes the source,
 * so it is launched when its waits, and the queue's last copy to plain host memory, are over. */
#include "core/queue/launch.h"

#define POLL_KNOWN  4u
#define POLL_EVERY  8u
#define POLL_SELDOM 64u /* a multiple of it: while few bytes are kept alive */
#define POLL_BYTES  (1u << 20)
#define REAP_MOST   16u   /* of an out-of-order queue, where each has to be looked at */
#define REAP_MANY   1024u /* of an in-order queue: nobody's submission is to take long */

/* Before the lock: what other queues have to do for this submission. `*ticks`: when, or 0. */
static void prepare_waits(const drupe_ticket *ticket, uint64_t *ticks)
{
    for (size_t i = 0; i < ticket->nwaits; i++) {
        drupe_event *wait = ticket->waits[i];
        if (!wait || wait->queue == ticket->queue) continue;
        if (drupe_event_poll_by(wait, ticks) == DRUPE_PHASE_NATIVE) drupe_queue_flush(wait->queue);
    }
}

/* The failure that this submission stands behind or waits for, retained, or NULL. */
static drupe_cause *doom(drupe_queue *queue, drupe_flight *flight)
{
    /* Behind held work a failed wait counts when its turn comes: what is held is not to be blamed for it. */
    for (size_t i = 0; !queue->order.held && i < flight->nwaits; i++) {
        if (drupe_event_settled(flight->waits[i]) == DRUPE_PHASE_FAILED) {
            drupe_cause *cause =
                drupe_cause_of_wait(flight->waits[i]->cause, &flight->what, queue, flight->what.number);
            drupe_queue_blame(queue, cause, flight->what.number);
            return cause;
        }
    }
    drupe_cause *cause = drupe_queue_standing(queue, flight->what.number);
    return cause ? cause : drupe_flight_doomed(queue, flight);
}

static bool leaves_host_early(const drupe_queue *queue, const drupe_work *work)
{
    return work->kind == DRUPE_WORK_COPY && work->from_host && queue->base.device->type != DRUPE_DEVICE_CPU;
}

/* Whether copies from plain host memory behind this work have to wait for it. */
static bool fetches(const drupe_queue *queue, const drupe_work *work)
{
    return work->kind == DRUPE_WORK_COPY && work->to_host && queue->base.device->type != DRUPE_DEVICE_CPU;
}

/* A mark with nothing before it needs no driver, unless others may have given that some work, or somebody
 * wants the device's times or has put layers in between. */
static bool marks_nothing(const drupe_queue *queue, const drupe_flight *flight, const drupe_work *work)
{
    if (work->kind != DRUPE_WORK_BARRIER && work->kind != DRUPE_WORK_MARK) return false;
    return !queue->order.head && flight->nwaits == 0 && !queue->shared &&
           !(queue->base.flags & DRUPE_QUEUE_PROFILING) &&
           queue->base.slot->backend == queue->base.slot->base;
}

/* Appends the flight unless it is over already: then `*over` is set and the caller drops it. */
static drupe_status place(drupe_queue *queue, drupe_flight *flight, const drupe_work *work, bool *over)
{
    *over = true;
    drupe_cause *cause = doom(queue, flight);
    if (cause) {
        drupe_trace_end(flight->what.number, DRUPE_TRACE_SKIPPED);
        if (flight->event)
            drupe_event_fail_behind(flight->event, cause, flight);
        else
            drupe_mark_flight(flight, cause);
        drupe_cause_release(cause);
        return DRUPE_OK;
    }
    if (flight->early && queue->names.fetch) drupe_flight_add_wait(flight, queue->names.fetch);
    if (queue->order.held || drupe_work_emulated(queue, work) ||
        drupe_flight_ready(queue, flight) != DRUPE_READY) {
        DRUPE_TRY(drupe_flight_hold(queue, flight, work));
        if (!queue->order.held) queue->order.held = flight;
    } else if (marks_nothing(queue, flight, work)) {
        DRUPE_TRY(drupe_loss_check(queue->base.device));
        flight->done = true;
        drupe_flight_end_at_once(flight);
    } else {
        DRUPE_TRY(drupe_flight_launch(queue, flight, work));
    }
    if (flight->done) {
        queue->proof.proven = flight->what.number;
        return DRUPE_OK;
    }
    drupe_flight_append(queue, flight);
    if (fetches(queue, work)) queue->names.fetch = flight->event;
    *over = false;
    return DRUPE_OK;
}

/* Launch, hold or fail it, with the marks of what it touches. */
static drupe_status place_marked(const drupe_ticket *ticket, drupe_flight *flight, const drupe_work *work,
                                 bool *over)
{
    drupe_queue *queue = ticket->queue;
    drupe_cause *late = NULL;
    /* Marked since the caller looked. */
    if (ticket->read && atomic_load(&drupe_marks_version) != ticket->marks_seen) {
        drupe_status refused = drupe_marks_read(flight->what.refs, flight->what.nrefs, ticket->read, &late);
        if (refused != DRUPE_OK) {
            drupe_cause_release(late);
            return refused;
        }
    }
    if (late) flight->doom = late;
    drupe_mark *lifted = flight->replaced ? drupe_marks_lift(flight) : NULL;
    drupe_status status =
        drupe_queue_unordered(queue)
            ? drupe_unordered_place(queue, flight, work, drupe_ticket_fences(ticket, work), over)
            : place(queue, flight, work, over);
    flight->doom = NULL;
    drupe_cause_release(late);
    if (lifted) drupe_marks_lifted(lifted, status == DRUPE_OK);
    return status;
}

static drupe_status submit_locked(const drupe_ticket *ticket, const drupe_work *work, drupe_flight *flight,
                                  drupe_event **event, bool *over)
{
    drupe_queue *queue = ticket->queue;
    bool unordered = drupe_queue_unordered(queue), fences = drupe_ticket_fences(ticket, work);
    *over = true;
    /* More waits than named: for the guard and the last fetch. */
    DRUPE_TRY(drupe_flight_load(flight, ticket, unordered ? drupe_unordered_waits(queue, fences) : 2));
    flight->early = leaves_host_early(queue, work);
    drupe_brief_take(&flight->brief, work);
    const drupe_checker *checker = drupe_checking();
    if (checker) DRUPE_TRY(checker->submission(ticket, flight, work));
    drupe_flight_trace(queue, flight, work, ticket->bytes);
    if (unordered || event || drupe_queue_wants_event(queue, ticket->bytes) || fetches(queue, work))
        DRUPE_TRY(drupe_flight_attach(queue, flight));
    DRUPE_TRY(place_marked(ticket, flight, work, over));
    if (*over && !flight->done && checker) checker->skipped(flight->what.number);
    if (!flight->event && !*over) queue->proof.unmarked_bytes += ticket->bytes;
    if (!event) return DRUPE_OK;
    *event = flight->event;
    if (flight->done)
        flight->event = NULL;
    else
        drupe_object_retain_unshared(flight->event);
    return DRUPE_OK;
}

/* `known`: the first is over. */
static bool time_to_look(drupe_queue *queue, bool known)
{
    bool small = queue->polling.unlooked_bytes < POLL_BYTES;
    if (++queue->polling.polls % (known ? POLL_KNOWN : POLL_EVERY) && !(known && !small)) return false;
    bool seldom = queue->base.slot->backend->state_waits && !drupe_queue_unordered(queue) && small && !known;
    if (seldom && queue->polling.polls % POLL_SELDOM) return false;
    queue->polling.unlooked_bytes = 0;
    return true;
}

drupe_flight *drupe_queue_reap_some(drupe_queue *queue, size_t bytes)
{
    drupe_flight *head = queue->order.head;
    queue->polling.ticks = 0;
    queue->polling.unlooked_bytes += bytes;
    if (!head) return NULL;
    bool known = head->event && drupe_phase_over(drupe_event_phase(head->event));
    bool small = queue->polling.unlooked_bytes < POLL_BYTES;
    if (!time_to_look(queue, known)) return NULL;
    if (drupe_queue_unordered(queue)) return drupe_unordered_reap(queue, REAP_MOST);
    return drupe_flight_reap(queue, REAP_MANY, small);
}

void drupe_flight_refused(const drupe_queue *queue, const drupe_flight *flight)
{
    drupe_failure failure;
    drupe_trace_skip(flight->what.number); /* if it got no record yet */
    drupe_trace_end(flight->what.number, DRUPE_TRACE_FAILED);
    drupe_failure_describe(&failure, drupe_error_last(), queue, &flight->what);
    drupe_failure_tell_refused(&failure);
}

drupe_status drupe_queue_submit(const drupe_ticket *ticket, const drupe_work *work, drupe_event **event)
{
    drupe_queue *queue = ticket->queue;
    if (event) *event = NULL;
    /* Others have written to the native state of the queue and of unfinished events: let it come at once. */
    drupe_prefetch_write(queue + 1);
    for (size_t i = 0; i < ticket->nwaits; i++) {
        if (ticket->waits[i]) drupe_event_prefetch(ticket->waits[i]);
    }
    uint64_t ticks = 0;
    prepare_waits(ticket, &ticks);
    void *cell = drupe_core_cell();
    drupe_flight *flight = NULL, *finished = NULL;
    bool over = true;
    pthread_mutex_lock(&queue->lock);
    if (queue->names.guard) drupe_event_prefetch(queue->names.guard);
    finished = drupe_queue_reap_some(queue, ticket->bytes);
    if (!queue->polling.ticks) queue->polling.ticks = ticks;
    drupe_status status = drupe_loss_check(queue->base.device);
    if (status == DRUPE_OK) status = drupe_flight_new(queue, &flight);
    if (status == DRUPE_OK) {
        flight->what.cell = cell;
        flight->what.cell_number = drupe_core_cell_number(cell);
        status = submit_locked(ticket, work, flight, event, &over);
    }
    if (status == DRUPE_OK && flight == queue->order.held) drupe_hold_begin(queue, flight);
    if (over && flight && drupe_flight_reuse(queue, flight)) over = false;
    pthread_mutex_unlock(&queue->lock);
    if (!flight || (over && status != DRUPE_OK)) {
        drupe_error kept = *drupe_error_last();
        if (flight) drupe_flight_refused(queue, flight);
        bool loaded = flight && (flight->what.nrefs > 0 || ticket->nrefs == 0);
        if (flight)
            drupe_flight_drop(queue, flight);
        else
            drupe_core_cell_release(cell);
        if (!loaded) drupe_keeps_drop(ticket->refs, ticket->nrefs);
        drupe_error_restore(&kept);
    } else if (over) {
        drupe_flight_drop(queue, flight);
    }
    drupe_flight_drop(queue, finished);
    return status;
}
