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

/* Before the lock: what other queues have to do for this submission. */
static void prepare_waits(const drupe_submit_info *info)
{
    for (size_t i = 0; i < info->nwaits; i++) {
        drupe_event *wait = info->waits[i];
        if (!wait || wait->queue == info->queue) continue;
        if (drupe_event_poll(wait) == DRUPE_PHASE_NATIVE) drupe_queue_flush(wait->queue);
    }
}

/* The failure that this submission stands behind or waits for, retained, or NULL. */
static drupe_cause *pending_failure(drupe_queue *queue, drupe_inflight *entry, drupe_cause *unwritten)
{
    /* Behind deferred work a failed wait counts when its turn comes: what is deferred is not to be blamed for
     * it. */
    for (size_t i = 0; !queue->order.deferred && i < entry->nwaits; i++) {
        if (drupe_event_settled(entry->waits[i]) == DRUPE_PHASE_FAILED)
            return drupe_inflight_fails_for(queue, entry, entry->waits[i]->cause);
    }
    drupe_cause *cause = drupe_queue_pending_failure(queue, entry->what.number);
    return cause ? cause : drupe_inflight_fails_for(queue, entry, unwritten);
}

/* Whether copies from plain host memory behind this work have to wait for it. */
static bool fetches(const drupe_queue *queue, const drupe_work *work)
{
    return work->kind == DRUPE_WORK_COPY && work->to_host && queue->base.device->type != DRUPE_DEVICE_CPU;
}

/* Appends the entry unless it is over already: then `*over` is set and the caller drops it. */
static drupe_status submit_ordered(const drupe_submit_info *info, drupe_inflight *entry,
                                   const drupe_work *work, drupe_cause *unwritten, bool *over)
{
    drupe_queue *queue = info->queue;
    *over = true;
    drupe_cause *cause = pending_failure(queue, entry, unwritten);
    if (cause) {
        drupe_trace_end(entry->what.number, DRUPE_TRACE_SKIPPED);
        if (entry->event)
            drupe_event_fail_behind(entry->event, cause, entry);
        else
            drupe_mark_inflight(entry, cause);
        drupe_cause_release(cause);
        return DRUPE_OK;
    }
    if (queue->names.fetch && drupe_work_leaves_early(queue, work))
        drupe_inflight_add_wait(entry, queue->names.fetch);
    bool deferred = queue->order.deferred || drupe_work_emulated(queue, work) ||
                    drupe_inflight_ready(queue, entry, work) != DRUPE_READY;
    DRUPE_TRY(deferred ? drupe_inflight_defer(queue, entry, work, info->uses.read)
                       : drupe_inflight_launch(queue, entry, work));
    *over = !drupe_inflight_enlist(queue, entry, info->uses.bytes, deferred);
    if (!*over && fetches(queue, work)) drupe_names_fetch(queue, entry);
    return DRUPE_OK;
}

/* Launch, defer or fail it, with the marks of what it touches. */
static drupe_status submit_marked(const drupe_submit_info *info, drupe_inflight *entry,
                                  const drupe_work *work, bool *over)
{
    drupe_cause *late = NULL;
    /* Once, and before marks are read: what fails from here on fails this as well, by name. */
    if (!drupe_queue_unordered(info->queue)) drupe_names_look(info->queue);
    /* Marked since the caller looked. */
    if (info->uses.read && atomic_load(&drupe_marks_version) != info->uses.marks_seen) {
        drupe_status refused = drupe_marks_read(&info->uses, &late);
        if (refused != DRUPE_OK) {
            drupe_cause_release(late);
            return refused;
        }
    }
    drupe_cause *unwritten = late ? late : info->uses.pending_failure;
    drupe_mark *lifted = entry->replaced ? drupe_marks_lift(entry) : NULL;
    drupe_status status = drupe_queue_unordered(info->queue)
                              ? drupe_unordered_submit(info, entry, work, unwritten, over)
                              : submit_ordered(info, entry, work, unwritten, over);
    drupe_cause_release(late);
    if (lifted) drupe_marks_lifted(lifted, status == DRUPE_OK);
    return status;
}

static drupe_status submit_locked(const drupe_submit_info *info, const drupe_work *work,
                                  drupe_inflight *entry, drupe_event **event, bool *over)
{
    drupe_queue *queue = info->queue;
    bool unordered = drupe_queue_unordered(queue);
    *over = true;
    /* More waits than named: for the last fallible submission and the last fetch, or all before a barrier. */
    size_t more = unordered && drupe_submit_info_is_barrier(info, work) ? queue->order.count + 1 : 2;
    DRUPE_TRY(drupe_inflight_load(entry, info, work, more));
    const drupe_checker *checker = drupe_checking();
    if (checker) DRUPE_TRY(checker->submission(info, entry, work));
    drupe_inflight_trace(queue, entry, work, info->uses.bytes);
    if (unordered || event || drupe_queue_wants_event(queue, info->uses.bytes) || fetches(queue, work))
        DRUPE_TRY(drupe_inflight_attach(queue, entry));
    DRUPE_TRY(submit_marked(info, entry, work, over));
    if (*over && !entry->done && checker) checker->skipped(entry->what.number);
    if (event) *event = drupe_inflight_give_event(entry);
    return DRUPE_OK;
}

void drupe_inflight_refuse(drupe_queue *queue, drupe_inflight *entry)
{
    drupe_error kept = *drupe_error_last();
    drupe_failure failure;
    drupe_trace_skip(entry->what.number); /* if it got no record yet */
    drupe_trace_end(entry->what.number, DRUPE_TRACE_FAILED);
    drupe_failure_describe(&failure, drupe_error_last(), queue, &entry->what);
    drupe_failure_tell_refused(&failure);
    drupe_inflight_drop(queue, entry);
    drupe_error_restore(&kept);
}

/* Drop what a submission brought that got no entry, or one without room for it. The thread's error stays. */
static void give_back(const drupe_submit_info *info, void *cell)
{
    drupe_error kept = *drupe_error_last();
    drupe_core_cell_release(cell);
    drupe_keeps_drop(info->uses.refs, info->uses.nrefs);
    drupe_error_restore(&kept);
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
    prepare_waits(info);
    void *cell = drupe_core_cell();
    drupe_inflight *entry = NULL, *finished = NULL;
    bool over = true;
    pthread_mutex_lock(&queue->lock);
    if (queue->names.last_fallible) drupe_event_prefetch(queue->names.last_fallible);
    finished = drupe_queue_reap_some(queue, info->uses.bytes);
    drupe_status status = drupe_loss_check(queue->base.device);
    if (status == DRUPE_OK) status = drupe_inflight_new(queue, info->label, cell, &entry);
    if (status == DRUPE_OK) status = submit_locked(info, work, entry, event, &over);
    if (status == DRUPE_OK && entry->deferred &&
        !(entry == queue->order.deferred && drupe_deferred_begin(queue, entry)))
        drupe_deferred_kick();
    pthread_mutex_unlock(&queue->lock);
    if (status != DRUPE_OK && !(entry && entry->what.nrefs)) give_back(info, entry ? NULL : cell);
    if (status != DRUPE_OK && entry)
        drupe_inflight_refuse(queue, entry);
    else if (over)
        drupe_inflight_drop(queue, entry);
    drupe_inflight_drop(queue, finished);
    return status;
}
