/* From a ticket to the backend: natively, held, or failed at once.
 *
 * Who gets an event. Work that nobody looks at has none, which is cheaper on every driver; one in 64, or one
 * that keeps much memory alive, gets an event all the same, so that references are dropped in time.
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
#include <sched.h>
#include <stdlib.h>

#define UNMARKED_MOST  63u
#define UNMARKED_BYTES (16u << 20)
#define POLL_KNOWN     4u
#define POLL_EVERY     8u
#define POLL_SELDOM    64u /* a multiple of it: while few bytes are kept alive */
#define POLL_BYTES     (1u << 20)
#define REAP_MOST      16u   /* of an out-of-order queue, where each has to be looked at */
#define REAP_MANY      1024u /* of an in-order queue: nobody's submission is to take long */
#define WAITS_INLINE   16u

/* --- Readiness ------------------------------------------------------------------------------------------ */

drupe_phase drupe_event_settled(const drupe_event *event)
{
    drupe_phase phase;
    while ((phase = drupe_event_phase(event)) == DRUPE_PHASE_SETTLING) sched_yield();
    return phase;
}

drupe_readiness drupe_flight_ready(const drupe_queue *queue, const drupe_flight *flight)
{
    drupe_readiness readiness = DRUPE_READY;
    for (size_t i = 0; i < flight->nwaits; i++) {
        const drupe_event *wait = flight->waits[i];
        drupe_phase phase = drupe_event_settled(wait);
        if (phase == DRUPE_PHASE_FAILED) return DRUPE_DOOMED;
        if (phase == DRUPE_PHASE_COMPLETE) continue;
        bool native =
            phase == DRUPE_PHASE_NATIVE && wait->queue->base.context == queue->base.context && !flight->early;
        if (!native) readiness = DRUPE_BLOCKED;
    }
    return readiness;
}

/* Whether an unfinished event of the same in-order queue can fail without the queue failing: by something
 * before it that has been reported since, after which the queue works on. */
static bool may_fail_alone(const drupe_event *event)
{
    const drupe_flight *flight = event->flight;
    return drupe_event_phase(event) != DRUPE_PHASE_COMPLETE && flight && (flight->fallible || flight->nwaits);
}

/* The events that the backend has to wait for; the others of an in-order queue are covered by its order and
 * its guard. */
static size_t native_waits(const drupe_queue *queue, const drupe_flight *flight, drupe_event **waits)
{
    size_t count = 0;
    for (size_t i = 0; i < flight->nwaits; i++) {
        drupe_event *wait = flight->waits[i];
        bool covered = wait->queue == queue && !drupe_queue_unordered(queue) && !may_fail_alone(wait);
        if (covered) continue;
        if (drupe_event_phase(wait) != DRUPE_PHASE_COMPLETE) waits[count++] = wait;
    }
    return count;
}

/* --- Handing over --------------------------------------------------------------------------------------- */

static drupe_status call_backend(const drupe_submit *submit, const drupe_work *work)
{
    const drupe_backend *backend = submit->queue->base.slot->backend;
    drupe_status status;
    bool locked;
    switch (work->kind) {
    case DRUPE_WORK_KERNEL:
        locked = drupe_kernel_lock(work->kernel, submit->queue);
        status = backend->submit_kernel(submit, work->kernel, work->range, work->args, work->nargs);
        drupe_kernel_unlock(work->kernel, locked);
        return status;
    case DRUPE_WORK_COPY: return backend->submit_copy(submit, work->dst, work->src, work->bytes);
    case DRUPE_WORK_FILL:
        return backend->submit_fill(submit, work->dst, work->src, work->pattern_size, work->bytes);
    case DRUPE_WORK_BARRIER:
    case DRUPE_WORK_MARK: return backend->submit_barrier(submit);
    case DRUPE_WORK_HOST: return backend->submit_host(submit, work->fn, work->user);
    case DRUPE_WORK_PREFETCH:
        if (!backend->submit_prefetch) return backend->submit_barrier(submit);
        return backend->submit_prefetch(submit, work->dst, work->bytes);
    case DRUPE_WORK_ADVISE:
        if (!backend->submit_advise) return backend->submit_barrier(submit);
        return backend->submit_advise(submit, work->dst, work->bytes, work->advice);
    }
    return drupe_error_set(DRUPE_E_INTERNAL, "There is no work of kind %d.", (int)work->kind);
}

drupe_status drupe_flight_attach(drupe_queue *queue, drupe_flight *flight)
{
    /* A held flight has one that others may be looking at. */
    if (flight->event) return DRUPE_OK;
    DRUPE_TRY(drupe_event_next(queue, &flight->event));
    flight->event->number = flight->what.number;
    flight->event->flight = flight;
    return DRUPE_OK;
}

/* It is over and nobody else has seen it. */
static void end_at_once(drupe_flight *flight)
{
    drupe_trace_end_at_once(flight->what.number);
    if (flight->event)
        atomic_store_explicit(&flight->event->phase, DRUPE_PHASE_COMPLETE, memory_order_release);
}

void drupe_flight_launched(drupe_queue *queue, drupe_flight *flight)
{
    if (flight->done) {
        end_at_once(flight);
        return;
    }
    queue->unflushed = queue->base.slot->backend->queue_flush != NULL;
    if (!flight->event) {
        queue->unmarked++;
        queue->silent = true;
        return;
    }
    queue->unmarked = queue->unmarked_bytes = 0;
    atomic_store_explicit(&flight->event->phase, DRUPE_PHASE_NATIVE, memory_order_release);
    if (flight->fallible && !drupe_queue_unordered(queue)) queue->guard = flight->event;
}

/* The guard's flight is dropped before this one, which takes over its reference unless another one has. */
static void mind_guard(drupe_queue *queue, drupe_flight *flight)
{
    drupe_flight *before = queue->guard->flight;
    if (before->event_passed)
        drupe_flight_add_wait(flight, queue->guard);
    else
        flight->waits[flight->nwaits++] = queue->guard;
    before->event_passed = true;
}

static drupe_status launch_with(drupe_queue *queue, drupe_flight *flight, const drupe_work *work,
                                drupe_event **waits)
{
    drupe_submit submit = {
        .queue = queue, .waits = waits, .words = work->words, .number = flight->what.number};
    submit.nwaits = native_waits(queue, flight, waits);
    flight->fallible = submit.nwaits > 0 || work->kind == DRUPE_WORK_HOST;
    if (flight->fallible) DRUPE_TRY(drupe_flight_attach(queue, flight));
    bool minded = queue->base.slot->backend->minds_guards;
    if (queue->guard && minded) submit.guard = queue->guard;
    if (queue->guard && !minded) waits[submit.nwaits++] = queue->guard;
    submit.event = flight->event;
    /* Events of a profiling queue have times to be asked for. */
    submit.done = queue->base.flags & DRUPE_QUEUE_PROFILING ? NULL : &flight->done;
    if (submit.event) submit.event->opened = true;
    DRUPE_TRY(call_backend(&submit, work));
    /* Should this fail, the guard is where its cause is found. */
    if (queue->guard && !flight->done && (minded || flight->event)) mind_guard(queue, flight);
    drupe_flight_launched(queue, flight);
    return DRUPE_OK;
}

drupe_status drupe_flight_launch(drupe_queue *queue, drupe_flight *flight, const drupe_work *work)
{
    DRUPE_TRY(drupe_loss_check(queue->base.device));
    drupe_event *few[WAITS_INLINE], **waits = few;
    if (flight->nwaits >= WAITS_INLINE) {
        waits = malloc((flight->nwaits + 1) * sizeof(drupe_event *));
        if (!waits) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for %u waits.", flight->nwaits);
    }
    drupe_status status = launch_with(queue, flight, work, waits);
    if (waits != few) free(waits);
    return status;
}

/* --- Marks ---------------------------------------------------------------------------------------------- */

/* Put a launched barrier behind `after`, whose successor is held or absent. */
static drupe_status insert_barrier(drupe_queue *queue, drupe_flight *after, drupe_event **event)
{
    drupe_flight *flight;
    DRUPE_TRY(drupe_flight_new(queue, &flight));
    drupe_trace_skip(flight->what.number);
    flight->what.label = drupe_label_barrier;
    drupe_work work = {.kind = DRUPE_WORK_BARRIER};
    drupe_status status = drupe_flight_attach(queue, flight);
    if (status == DRUPE_OK) {
        flight->event->behind = drupe_flight_place(after);
        flight->event->inserted = true;
        status = drupe_flight_launch(queue, flight, &work);
    }
    if (status != DRUPE_OK) {
        drupe_event_release(flight->event);
        flight->next = queue->spare;
        queue->spare = flight;
        return status;
    }
    flight->next = after->next;
    after->next = flight;
    if (queue->tail == after) queue->tail = flight;
    queue->gate = NULL;
    drupe_queue_count(queue, 1);
    *event = drupe_event_retain(flight->event);
    return DRUPE_OK;
}

/* Work that failed, and was reported, while something before it still runs: it marks nothing. */
static bool is_history(const drupe_queue *queue, const drupe_event *event)
{
    return !drupe_queue_unordered(queue) && drupe_event_phase(event) == DRUPE_PHASE_FAILED &&
           !drupe_cause_dooms(event->cause, UINT64_MAX, queue);
}

drupe_status drupe_queue_mark(drupe_queue *queue, drupe_flight *before, drupe_event **event)
{
    *event = NULL;
    drupe_flight *last = before ? NULL : queue->tail;
    for (drupe_flight *at = queue->head; before && at != before; at = at->next) last = at;
    if (!last) return DRUPE_OK;
    if (last->event && !is_history(queue, last->event)) {
        *event = drupe_event_retain(last->event);
        return DRUPE_OK;
    }
    return insert_barrier(queue, last, event);
}

void drupe_queue_flush_locked(drupe_queue *queue)
{
    if (!queue->unflushed || drupe_device_silent(queue->base.device)) return;
    queue->unflushed = false;
    /* A queue that cannot be flushed shows it in its events. */
    if (queue->base.slot->backend->queue_flush(queue) != DRUPE_OK) return;
}

/* --- Submitting ----------------------------------------------------------------------------------------- */

/* Before the lock: what other queues have to do for this submission. `*ticks`: when, or 0. */
static void prepare_waits(const drupe_ticket *ticket, uint64_t *ticks)
{
    for (size_t i = 0; i < ticket->nwaits; i++) {
        drupe_event *wait = ticket->waits[i];
        if (!wait || wait->queue == ticket->queue) continue;
        if (drupe_event_poll_by(wait, ticks) == DRUPE_PHASE_NATIVE) drupe_queue_flush(wait->queue);
    }
}

bool drupe_queue_wants_event(const drupe_queue *queue, size_t bytes)
{
    /* Times are an event's. */
    return drupe_queue_timed(queue) || queue->unmarked >= UNMARKED_MOST ||
           queue->unmarked_bytes + bytes >= UNMARKED_BYTES;
}

static bool in_pieces(const drupe_work *work)
{
    return work->kind == DRUPE_WORK_COPY && work->fn;
}

drupe_status drupe_flight_hold(drupe_queue *queue, drupe_flight *flight, const drupe_work *work)
{
    DRUPE_TRY(drupe_flight_attach(queue, flight));
    DRUPE_TRY(drupe_flight_copy_work(flight, work));
    bool turn = work->kind == DRUPE_WORK_HOST && !work->fn;
    flight->event->turn = turn;
    if (!turn && drupe_work_emulated(queue, work)) DRUPE_TRY(drupe_worker_start());
    DRUPE_TRY(drupe_hold_add(queue));
    flight->held = true;
    flight->event->brisk = in_pieces(work) && ((const drupe_pieces *)work->user)->brisk;
    for (size_t i = 0; i < flight->nwaits; i++) drupe_event_ask_notify(flight->waits[i]);
    return DRUPE_OK;
}

drupe_cause *drupe_queue_standing(drupe_queue *queue, uint64_t number)
{
    if (queue->guard && drupe_phase_over(drupe_event_poll_locked(queue->guard))) queue->guard = NULL;
    return drupe_queue_doom(queue, number);
}

drupe_cause *drupe_flight_doomed(drupe_queue *queue, drupe_flight *flight)
{
    if (!flight->doom) return NULL;
    drupe_cause *cause = drupe_cause_of_wait(flight->doom, &flight->what, queue, flight->what.number);
    drupe_queue_blame(queue, cause, flight->what.number);
    return cause;
}

/* The failure that this submission stands behind or waits for, retained, or NULL. */
static drupe_cause *doom(drupe_queue *queue, drupe_flight *flight)
{
    /* Behind held work a failed wait counts when its turn comes: what is held is not to be blamed for it. */
    for (size_t i = 0; !queue->held && i < flight->nwaits; i++) {
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
    return !queue->head && flight->nwaits == 0 && !queue->shared &&
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
    if (flight->early && queue->fetch) drupe_flight_add_wait(flight, queue->fetch);
    if (queue->held || drupe_work_emulated(queue, work) || drupe_flight_ready(queue, flight) != DRUPE_READY) {
        DRUPE_TRY(drupe_flight_hold(queue, flight, work));
        if (!queue->held) queue->held = flight;
    } else if (marks_nothing(queue, flight, work)) {
        DRUPE_TRY(drupe_loss_check(queue->base.device));
        flight->done = true;
        end_at_once(flight);
    } else {
        DRUPE_TRY(drupe_flight_launch(queue, flight, work));
    }
    if (flight->done) {
        queue->proven = flight->what.number;
        return DRUPE_OK;
    }
    drupe_flight_append(queue, flight);
    if (fetches(queue, work)) queue->fetch = flight->event;
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
    if (!flight->event && !*over) queue->unmarked_bytes += ticket->bytes;
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
    bool small = queue->unlooked_bytes < POLL_BYTES;
    if (++queue->polls % (known ? POLL_KNOWN : POLL_EVERY) && !(known && !small)) return false;
    bool seldom = queue->base.slot->backend->state_waits && !drupe_queue_unordered(queue) && small && !known;
    if (seldom && queue->polls % POLL_SELDOM) return false;
    queue->unlooked_bytes = 0;
    return true;
}

drupe_flight *drupe_queue_reap_some(drupe_queue *queue, size_t bytes)
{
    drupe_flight *head = queue->head;
    queue->ticks = 0;
    queue->unlooked_bytes += bytes;
    if (!head) return NULL;
    bool known = head->event && drupe_phase_over(drupe_event_phase(head->event));
    bool small = queue->unlooked_bytes < POLL_BYTES;
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
    if (queue->guard) drupe_event_prefetch(queue->guard);
    finished = drupe_queue_reap_some(queue, ticket->bytes);
    if (!queue->ticks) queue->ticks = ticks;
    drupe_status status = drupe_loss_check(queue->base.device);
    if (status == DRUPE_OK) status = drupe_flight_new(queue, &flight);
    if (status == DRUPE_OK) {
        flight->what.cell = cell;
        flight->what.cell_number = drupe_core_cell_number(cell);
        status = submit_locked(ticket, work, flight, event, &over);
    }
    if (status == DRUPE_OK && flight == queue->held) drupe_hold_begin(queue, flight);
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
