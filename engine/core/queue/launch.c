/* Giving work to the backend, or holding it; and marks, which are events at the end of what a queue has.
 *
 * Who gets an event. Work that nobody looks at has none, which is cheaper on every driver; one in 64, or one
 * that keeps much memory alive, gets an event all the same, so that references are dropped in time. */
#include "core/queue/launch.h"
#include <stdlib.h>
#include <string.h>

#define UNMARKED_MOST  63u
#define UNMARKED_BYTES (16u << 20)
#define WAITS_INLINE   16u

/* --- Readiness ------------------------------------------------------------------------------------------ */

drupe_readiness drupe_inflight_ready(const drupe_queue *queue, const drupe_inflight *entry,
                                     const drupe_work *work)
{
    drupe_readiness readiness = DRUPE_READY;
    bool early = drupe_work_leaves_early(queue, work);
    for (size_t i = 0; i < entry->nwaits; i++) {
        const drupe_event *wait = entry->waits[i];
        drupe_phase phase = drupe_event_settled(wait);
        if (phase == DRUPE_PHASE_FAILED) return DRUPE_MUST_FAIL;
        if (phase == DRUPE_PHASE_COMPLETE) continue;
        bool native =
            phase == DRUPE_PHASE_NATIVE && wait->queue->base.context == queue->base.context && !early;
        if (!native) readiness = DRUPE_BLOCKED;
    }
    return readiness;
}

/* Whether an unfinished event of the same in-order queue can fail without the queue failing: by something
 * before it that has been reported since, after which the queue works on. */
static bool may_fail_alone(const drupe_event *event)
{
    return drupe_event_phase(event) != DRUPE_PHASE_COMPLETE && drupe_inflight_fallible(event->entry);
}

/* The events that the backend has to wait for; the others of an in-order queue are covered by its order and
 * its last fallible submission. */
static size_t native_waits(const drupe_queue *queue, const drupe_inflight *entry, drupe_event **waits)
{
    size_t count = 0;
    for (size_t i = 0; i < entry->nwaits; i++) {
        drupe_event *wait = entry->waits[i];
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
    case DRUPE_WORK_ADVISE: break;
    }
    if (!backend->submit_advise) return backend->submit_barrier(submit);
    return backend->submit_advise(submit, work->dst, work->bytes, work->advice);
}

bool drupe_queue_wants_event(const drupe_queue *queue, size_t bytes)
{
    /* Times are an event's. */
    return drupe_queue_timed(queue) || queue->proof.unmarked >= UNMARKED_MOST ||
           queue->proof.unmarked_bytes + bytes >= UNMARKED_BYTES;
}

static drupe_status launch_with(drupe_queue *queue, drupe_inflight *entry, const drupe_work *work,
                                drupe_event **waits)
{
    drupe_submit submit = {.queue = queue, .waits = waits, .number = entry->what.number};
    submit.nwaits = native_waits(queue, entry, waits);
    bool host = work->kind == DRUPE_WORK_HOST, fallible = submit.nwaits > 0 || (host && !work->faults_only);
    if (fallible || host) DRUPE_TRY(drupe_inflight_attach(queue, entry));
    bool minded = queue->base.slot->backend->takes_predecessor;
    if (queue->names.last_fallible && minded) submit.predecessor = queue->names.last_fallible;
    if (queue->names.last_fallible && !minded) waits[submit.nwaits++] = queue->names.last_fallible;
    submit.event = entry->event;
    submit.brief = work->brief;
    submit.sound = work->sound;
    /* Events of a profiling queue have times to be asked for. */
    submit.done = queue->base.flags & DRUPE_QUEUE_PROFILING ? NULL : &entry->done;
    drupe_event_hand_over(submit.event);
    DRUPE_TRY(call_backend(&submit, work));
    /* Should this fail, the last fallible submission is where its cause is found. */
    if (queue->names.last_fallible && !entry->done)
        drupe_inflight_add_wait(entry, queue->names.last_fallible);
    drupe_inflight_launched(queue, entry);
    if (fallible && !entry->done && !drupe_queue_unordered(queue)) queue->names.last_fallible = entry->event;
    return DRUPE_OK;
}

drupe_status drupe_inflight_launch(drupe_queue *queue, drupe_inflight *entry, const drupe_work *work)
{
    DRUPE_TRY(drupe_loss_check(queue->base.device));
    drupe_event *few[WAITS_INLINE], **waits = few;
    if (entry->nwaits >= WAITS_INLINE) {
        waits = malloc((entry->nwaits + 1) * sizeof(drupe_event *));
        if (!waits) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for %u waits.", entry->nwaits);
    }
    drupe_status status = launch_with(queue, entry, work, waits);
    if (waits != few) free(waits);
    return status;
}

/* --- Marks ---------------------------------------------------------------------------------------------- */

/* Put a launched barrier behind `after`, whose successor is deferred or absent. */
static drupe_status insert_barrier(drupe_queue *queue, drupe_inflight *after, drupe_event **event)
{
    drupe_inflight *entry;
    DRUPE_TRY(drupe_inflight_new(queue, drupe_label_barrier, NULL, &entry));
    drupe_trace_skip(entry->what.number);
    drupe_work work = {.kind = DRUPE_WORK_BARRIER};
    drupe_status status = drupe_inflight_attach(queue, entry);
    if (status == DRUPE_OK) {
        drupe_event_insert(entry->event, drupe_inflight_order(after));
        status = drupe_inflight_launch(queue, entry, &work);
    }
    if (status != DRUPE_OK) {
        drupe_event_release(entry->event);
        drupe_inflight_put_back(queue, entry);
        return status;
    }
    drupe_inflight_insert(queue, after, entry);
    *event = drupe_event_retain(entry->event);
    return DRUPE_OK;
}

/* Work that failed, and was reported, while something before it still runs: it marks nothing. */
static bool is_history(const drupe_queue *queue, const drupe_event *event)
{
    return drupe_event_phase(event) == DRUPE_PHASE_FAILED &&
           !drupe_cause_stops(event->cause, UINT64_MAX, queue);
}

/* The last deferred work that is not over: what stands behind it may have failed before it. */
static drupe_event *open_deferred(const drupe_queue *queue)
{
    drupe_event *last = NULL;
    for (const drupe_inflight *at = queue->order.deferred; at; at = at->next)
        if (at->deferred && !drupe_phase_over(drupe_event_phase(at->event))) last = at->event;
    return last;
}

drupe_status drupe_queue_mark(drupe_queue *queue, drupe_inflight *before, drupe_event **event)
{
    *event = before ? NULL : drupe_event_retain(open_deferred(queue));
    if (*event) return DRUPE_OK;
    drupe_inflight *last = before ? NULL : queue->order.tail;
    for (drupe_inflight *at = queue->order.head; before && at != before; at = at->next) last = at;
    if (!last) return DRUPE_OK;
    if (last->event && !is_history(queue, last->event)) {
        *event = drupe_event_retain(last->event);
        return DRUPE_OK;
    }
    return insert_barrier(queue, last, event);
}

/* --- Failing -------------------------------------------------------------------------------------------- */

void drupe_names_look_closely(drupe_queue *queue)
{
    if (queue->names.last_fallible && drupe_phase_over(drupe_event_poll_locked(queue->names.last_fallible)))
        queue->names.last_fallible = NULL;
    drupe_marks_settle_locked(queue);
}

bool drupe_queue_works_again(drupe_queue *queue)
{
    if (atomic_load_explicit(&queue->base.marks_due, memory_order_acquire)) return false;
    /* Numbers only grow: what holds for the next one holds for later ones. */
    drupe_cause *cause = drupe_queue_pending_failure(queue, drupe_inflight_latest() + 1);
    drupe_cause_release(cause);
    return !cause;
}

drupe_cause *drupe_queue_standing(drupe_queue *queue, uint64_t number)
{
    drupe_names_look(queue);
    return drupe_queue_pending_failure(queue, number);
}

void drupe_names_recall(drupe_queue *queue, uint64_t from)
{
    queue->names.last_fallible = NULL;
    const drupe_inflight *entry = queue->order.head;
    for (; entry && drupe_inflight_order(entry) <= from; entry = entry->next) {
        if (drupe_inflight_fallible(entry) && !entry->deferred && entry->event &&
            !drupe_phase_over(drupe_event_phase(entry->event)))
            queue->names.last_fallible = entry->event;
    }
}

drupe_cause *drupe_inflight_fails_for(drupe_queue *queue, drupe_inflight *entry, drupe_cause *cause)
{
    if (!cause) return NULL;
    drupe_cause *own = drupe_cause_of_wait(cause, &entry->what, queue, entry->what.number);
    drupe_queue_set_cause(queue, own, entry->what.number);
    return own;
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
