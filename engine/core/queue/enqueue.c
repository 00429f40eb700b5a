/* A submission gets onto its queue: launched, deferred or failed at once.
 *
 * Failure on one queue. Drivers do not stop a queue because one of its commands failed. Core knows which
 * submissions can fail for a reason of its own making (they wait for another queue, or run a host function):
 * the last of these not known to be over is the queue's last fallible submission, and everything launched
 * behind it waits for it by name, so that the rule for waits covers the rule for queues.
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
static void prepare_waits(const drupe_submit_info *info, uint64_t *ticks)
{
    for (size_t i = 0; i < info->nwaits; i++) {
        drupe_event *wait = info->waits[i];
        if (!wait || wait->queue == info->queue) continue;
        if (drupe_event_poll_by(wait, ticks) == DRUPE_PHASE_NATIVE) drupe_queue_flush(wait->queue);
    }
}

/* The failure that this submission stands behind or waits for, retained, or NULL. */
static drupe_cause *pending_failure(drupe_queue *queue, drupe_inflight *entry)
{
    /* Behind deferred work a failed wait counts when its turn comes: what is deferred is not to be blamed for
     * it. */
    for (size_t i = 0; !queue->order.deferred && i < entry->nwaits; i++) {
        if (drupe_event_settled(entry->waits[i]) == DRUPE_PHASE_FAILED) {
            drupe_cause *cause =
                drupe_cause_of_wait(entry->waits[i]->cause, &entry->what, queue, entry->what.number);
            drupe_queue_set_cause(queue, cause, entry->what.number);
            return cause;
        }
    }
    drupe_cause *cause = drupe_queue_standing(queue, entry->what.number);
    return cause ? cause : drupe_inflight_pending_failure(queue, entry);
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

/* Appends the entry unless it is over already: then `*over` is set and the caller drops it. */
static drupe_status submit_ordered(drupe_queue *queue, drupe_inflight *entry, const drupe_work *work,
                                   size_t bytes, bool *over)
{
    *over = true;
    drupe_cause *cause = pending_failure(queue, entry);
    if (cause) {
        drupe_trace_end(entry->what.number, DRUPE_TRACE_SKIPPED);
        if (entry->event)
            drupe_event_fail_behind(entry->event, cause, entry);
        else
            drupe_mark_inflight(entry, cause);
        drupe_cause_release(cause);
        return DRUPE_OK;
    }
    if (entry->early && queue->names.fetch) drupe_inflight_add_wait(entry, queue->names.fetch);
    if (queue->order.deferred || drupe_work_emulated(queue, work) ||
        drupe_inflight_ready(queue, entry) != DRUPE_READY) {
        DRUPE_TRY(drupe_inflight_defer(queue, entry, work));
    } else {
        DRUPE_TRY(drupe_inflight_launch(queue, entry, work));
    }
    *over = !drupe_inflight_enlist(queue, entry, bytes);
    if (!*over && fetches(queue, work)) queue->names.fetch = entry->event;
    return DRUPE_OK;
}

/* Launch, defer or fail it, with the marks of what it touches. */
static drupe_status submit_marked(const drupe_submit_info *info, drupe_inflight *entry,
                                  const drupe_work *work, bool *over)
{
    drupe_queue *queue = info->queue;
    drupe_cause *late = NULL;
    /* Marked since the caller looked. */
    if (info->read && atomic_load(&drupe_marks_version) != info->marks_seen) {
        drupe_status refused = drupe_marks_read(entry->what.refs, entry->what.nrefs, info->read, &late);
        if (refused != DRUPE_OK) {
            drupe_cause_release(late);
            return refused;
        }
    }
    if (late) entry->pending_failure = late;
    drupe_mark *lifted = entry->replaced ? drupe_marks_lift(entry) : NULL;
    drupe_status status =
        drupe_queue_unordered(queue)
            ? drupe_unordered_submit(queue, entry, work, drupe_submit_info_is_barrier(info, work), over)
            : submit_ordered(queue, entry, work, info->bytes, over);
    entry->pending_failure = NULL;
    drupe_cause_release(late);
    if (lifted) drupe_marks_lifted(lifted, status == DRUPE_OK);
    return status;
}

static drupe_status submit_locked(const drupe_submit_info *info, const drupe_work *work,
                                  drupe_inflight *entry, drupe_event **event, bool *over)
{
    drupe_queue *queue = info->queue;
    bool unordered = drupe_queue_unordered(queue), is_barrier = drupe_submit_info_is_barrier(info, work);
    *over = true;
    /* More waits than named: for the last fallible submission and the last fetch. */
    DRUPE_TRY(drupe_inflight_load(entry, info, unordered ? drupe_unordered_waits(queue, is_barrier) : 2));
    entry->early = leaves_host_early(queue, work);
    drupe_arg_summary_take(&entry->summary, work);
    const drupe_checker *checker = drupe_checking();
    if (checker) DRUPE_TRY(checker->submission(info, entry, work));
    drupe_inflight_trace(queue, entry, work, info->bytes);
    if (unordered || event || drupe_queue_wants_event(queue, info->bytes) || fetches(queue, work))
        DRUPE_TRY(drupe_inflight_attach(queue, entry));
    DRUPE_TRY(submit_marked(info, entry, work, over));
    if (*over && !entry->done && checker) checker->skipped(entry->what.number);
    if (!event) return DRUPE_OK;
    *event = entry->event;
    if (entry->done)
        entry->event = NULL;
    else
        drupe_object_retain_unshared(entry->event);
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

drupe_inflight *drupe_queue_reap_some(drupe_queue *queue, size_t bytes)
{
    drupe_inflight *head = queue->order.head;
    queue->polling.ticks = 0;
    queue->polling.unlooked_bytes += bytes;
    if (!head) return NULL;
    bool known = head->event && drupe_phase_over(drupe_event_phase(head->event));
    bool small = queue->polling.unlooked_bytes < POLL_BYTES;
    if (!time_to_look(queue, known)) return NULL;
    if (drupe_queue_unordered(queue)) return drupe_unordered_reap(queue, REAP_MOST);
    return drupe_inflight_reap(queue, REAP_MANY, small);
}

void drupe_inflight_refused(const drupe_queue *queue, const drupe_inflight *entry)
{
    drupe_failure failure;
    drupe_trace_skip(entry->what.number); /* if it got no record yet */
    drupe_trace_end(entry->what.number, DRUPE_TRACE_FAILED);
    drupe_failure_describe(&failure, drupe_error_last(), queue, &entry->what);
    drupe_failure_tell_refused(&failure);
}

drupe_status drupe_queue_submit(const drupe_submit_info *info, const drupe_work *work, drupe_event **event)
{
    drupe_queue *queue = info->queue;
    if (event) *event = NULL;
    /* Others have written to the native state of the queue and of unfinished events: let it come at once. */
    drupe_prefetch_write(queue + 1);
    for (size_t i = 0; i < info->nwaits; i++) {
        if (info->waits[i]) drupe_event_prefetch(info->waits[i]);
    }
    uint64_t ticks = 0;
    prepare_waits(info, &ticks);
    void *cell = drupe_core_cell();
    drupe_inflight *entry = NULL, *finished = NULL;
    bool over = true;
    pthread_mutex_lock(&queue->lock);
    if (queue->names.last_fallible) drupe_event_prefetch(queue->names.last_fallible);
    finished = drupe_queue_reap_some(queue, info->bytes);
    if (!queue->polling.ticks) queue->polling.ticks = ticks;
    drupe_status status = drupe_loss_check(queue->base.device);
    if (status == DRUPE_OK) status = drupe_inflight_new(queue, &entry);
    if (status == DRUPE_OK) {
        entry->what.cell = cell;
        entry->what.cell_number = drupe_core_cell_number(cell);
        status = submit_locked(info, work, entry, event, &over);
    }
    if (status == DRUPE_OK && entry == queue->order.deferred) drupe_deferred_begin(queue, entry);
    pthread_mutex_unlock(&queue->lock);
    if (!entry || (over && status != DRUPE_OK)) {
        drupe_error kept = *drupe_error_last();
        if (entry) drupe_inflight_refused(queue, entry);
        bool loaded = entry && (entry->what.nrefs > 0 || info->nrefs == 0);
        if (entry)
            drupe_inflight_drop(queue, entry);
        else
            drupe_core_cell_release(cell);
        if (!loaded) drupe_keeps_drop(info->refs, info->nrefs);
        drupe_error_restore(&kept);
    } else if (over) {
        drupe_inflight_drop(queue, entry);
    }
    drupe_inflight_drop(queue, finished);
    return status;
}
