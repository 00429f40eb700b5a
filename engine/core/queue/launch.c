/* Giving work to the backend, or holding it; and marks, which are events at the end of what was launched.
 *
 * Who gets an event. Work that nobody looks at has none, which is cheaper on every driver; one in 64, or one
 * that keeps much memory alive, gets an event all the same, so that references are dropped in time. */
#include "core/queue/launch.h"
#include <stdlib.h>

#define UNMARKED_MOST  63u
#define UNMARKED_BYTES (16u << 20)
#define WAITS_INLINE   16u

/* --- Readiness ------------------------------------------------------------------------------------------ */

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
void drupe_flight_end_at_once(drupe_flight *flight)
{
    drupe_trace_end_at_once(flight->what.number);
    if (flight->event)
        atomic_store_explicit(&flight->event->phase, DRUPE_PHASE_COMPLETE, memory_order_release);
}

void drupe_flight_launched(drupe_queue *queue, drupe_flight *flight)
{
    if (flight->done) {
        drupe_flight_end_at_once(flight);
        return;
    }
    queue->unflushed = queue->base.slot->backend->queue_flush != NULL;
    if (!flight->event) {
        queue->proof.unmarked++;
        queue->proof.silent = true;
        return;
    }
    queue->proof.unmarked = queue->proof.unmarked_bytes = 0;
    atomic_store_explicit(&flight->event->phase, DRUPE_PHASE_NATIVE, memory_order_release);
    if (flight->fallible && !drupe_queue_unordered(queue)) queue->names.guard = flight->event;
}

/* The guard's flight is dropped before this one, which takes over its reference unless another one has. */
static void mind_guard(drupe_queue *queue, drupe_flight *flight)
{
    drupe_flight *before = queue->names.guard->flight;
    if (before->event_passed)
        drupe_flight_add_wait(flight, queue->names.guard);
    else
        flight->waits[flight->nwaits++] = queue->names.guard;
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
    if (queue->names.guard && minded) submit.guard = queue->names.guard;
    if (queue->names.guard && !minded) waits[submit.nwaits++] = queue->names.guard;
    submit.event = flight->event;
    /* Events of a profiling queue have times to be asked for. */
    submit.done = queue->base.flags & DRUPE_QUEUE_PROFILING ? NULL : &flight->done;
    if (submit.event) submit.event->opened = true;
    DRUPE_TRY(call_backend(&submit, work));
    /* Should this fail, the guard is where its cause is found. */
    if (queue->names.guard && !flight->done && (minded || flight->event)) mind_guard(queue, flight);
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
        drupe_flight_put_back(queue, flight);
        return status;
    }
    flight->next = after->next;
    after->next = flight;
    if (queue->order.tail == after) queue->order.tail = flight;
    queue->order.gate = NULL;
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
    drupe_flight *last = before ? NULL : queue->order.tail;
    for (drupe_flight *at = queue->order.head; before && at != before; at = at->next) last = at;
    if (!last) return DRUPE_OK;
    if (last->event && !is_history(queue, last->event)) {
        *event = drupe_event_retain(last->event);
        return DRUPE_OK;
    }
    return insert_barrier(queue, last, event);
}

/* --- Holding -------------------------------------------------------------------------------------------- */

bool drupe_queue_wants_event(const drupe_queue *queue, size_t bytes)
{
    /* Times are an event's. */
    return drupe_queue_timed(queue) || queue->proof.unmarked >= UNMARKED_MOST ||
           queue->proof.unmarked_bytes + bytes >= UNMARKED_BYTES;
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
    if (queue->names.guard && drupe_phase_over(drupe_event_poll_locked(queue->names.guard)))
        queue->names.guard = NULL;
    return drupe_queue_doom(queue, number);
}

drupe_cause *drupe_flight_doomed(drupe_queue *queue, drupe_flight *flight)
{
    if (!flight->doom) return NULL;
    drupe_cause *cause = drupe_cause_of_wait(flight->doom, &flight->what, queue, flight->what.number);
    drupe_queue_blame(queue, cause, flight->what.number);
    return cause;
}

void drupe_kernel_share(drupe_kernel *kernel, const drupe_queue *queue)
{
    uint32_t sole = atomic_load_explicit(&kernel->sole, memory_order_acquire);
    if (sole == 0 && atomic_compare_exchange_strong(&kernel->sole, &sole, queue->base.number)) return;
    /* To take the other queue's lock is to wait for a launch that is under way there. */
    for (drupe_queue *other = drupe_queue_walk(NULL); other; other = drupe_queue_walk(other)) {
        if (other->base.number != sole) continue;
        pthread_mutex_lock(&other->lock);
        atomic_store_explicit(&kernel->sole, DRUPE_KERNEL_SHARED, memory_order_release);
        pthread_mutex_unlock(&other->lock);
    }
    atomic_store_explicit(&kernel->sole, DRUPE_KERNEL_SHARED, memory_order_release);
}
