/* Work that must wait for another context, another backend, a host function or the caller.
 *
 * The waiter (waiter.c) is the only one to launch deferred work, except that work of core's own threads
 * begins at once where nothing stands before it: it polls what the first deferred entry of each queue waits
 * for (of an out-of-order queue, every deferred one). */
#include "core/queue/launch.h"
#include <stdlib.h>

/* --- Host functions that core runs ---------------------------------------------------------------------- */

static void run_job(drupe_job *job)
{
    drupe_inflight *entry = (drupe_inflight *)(void *)((char *)job - offsetof(drupe_inflight, job));
    drupe_event *event = entry->event;
    drupe_core_began(entry->what.number);
    atomic_store(job->busy, 1);
    drupe_status status = entry->work.fn(entry->work.user);
    atomic_store(job->busy, 0);
    drupe_core_ran(entry->what.number);
    if (status == DRUPE_OK) {
        drupe_event_complete(event, DRUPE_PHASE_RUNNING);
        return;
    }
    if (drupe_error_last()->status != status) {
        drupe_error_set(status, "The host function answered %s without a reason.", drupe_status_name(status));
    }
    drupe_event_fail(event, DRUPE_PHASE_RUNNING, drupe_error_last());
}

static void fail_job(drupe_job *job)
{
    drupe_inflight *entry = (drupe_inflight *)(void *)((char *)job - offsetof(drupe_inflight, job));
    drupe_core_ran(entry->what.number);
    drupe_event_fail(entry->event, DRUPE_PHASE_RUNNING, drupe_error_last());
}

/* --- The waiter: one step of one queue, under the queue's lock -------------------------------------------
 */

static void fail(drupe_inflight *entry)
{
    drupe_event_fail(entry->event, DRUPE_PHASE_DEFERRED, drupe_error_last());
}

/* That all before the entry on its queue is over, which the driver knows by an event. */
static drupe_readiness marker_ready(drupe_queue *queue, drupe_inflight *entry)
{
    for (;;) {
        if (!entry->marker) {
            if (drupe_queue_mark(queue, entry, &entry->marker) != DRUPE_OK) {
                fail(entry); /* no other work did: the reason is its own */
                return DRUPE_MUST_FAIL;
            }
            if (!entry->marker) return DRUPE_READY;
            drupe_queue_flush_locked(queue);
            drupe_event_ask_notify(entry->marker);
        }
        drupe_phase phase = drupe_event_poll_locked(entry->marker);
        if (phase == DRUPE_PHASE_COMPLETE) return DRUPE_READY;
        if (phase != DRUPE_PHASE_FAILED) {
            drupe_waiter_poll();
            return DRUPE_BLOCKED;
        }
        if (drupe_cause_stops(entry->marker->cause, entry->what.number, queue)) return DRUPE_MUST_FAIL;
        /* Why it failed was told before the entry was submitted, so the queue works on; but what failed
         * marks nothing. */
        drupe_event_release(entry->marker);
        entry->marker = NULL;
    }
}

/* A host function runs after all it waits for, since no driver waits in its place, and after everything
 * before it on its queue. */
static drupe_readiness host_ready(drupe_queue *queue, drupe_inflight *entry)
{
    for (size_t i = 0; i < entry->nwaits; i++) {
        if (!drupe_phase_over(drupe_event_phase(entry->waits[i]))) return DRUPE_BLOCKED;
    }
    return drupe_queue_unordered(queue) ? DRUPE_READY : marker_ready(queue, entry);
}

/* Whether the entry stands behind a failure on its own in-order queue. */
static bool stands_behind(drupe_queue *queue, const drupe_inflight *entry)
{
    if (drupe_queue_unordered(queue)) return false;
    drupe_cause *cause = drupe_queue_standing(queue, entry->what.number);
    drupe_cause_release(cause);
    return cause != NULL;
}

static void fail_dependent(drupe_inflight *entry)
{
    drupe_error_set(DRUPE_E_DEPENDENCY, "Something before '%s' failed.", entry->what.label);
    fail(entry);
}

bool drupe_deferred_advance(drupe_queue *queue, drupe_inflight *entry)
{
    drupe_phase phase = drupe_event_phase(entry->event);
    if (drupe_phase_over(phase)) return true;
    if (phase != DRUPE_PHASE_DEFERRED) return false;
    drupe_readiness readiness =
        stands_behind(queue, entry) ? DRUPE_MUST_FAIL : drupe_inflight_ready(queue, entry);
    bool emulated = drupe_work_emulated(queue, &entry->work);
    if (readiness == DRUPE_READY && emulated) readiness = host_ready(queue, entry);
    if (readiness == DRUPE_BLOCKED) return false;
    if (readiness == DRUPE_MUST_FAIL) {
        fail_dependent(entry);
        return true;
    }
    if (emulated) {
        int deferred = DRUPE_PHASE_DEFERRED; /* the caller may fail it just now */
        if (!atomic_compare_exchange_strong(&entry->event->phase, &deferred, DRUPE_PHASE_RUNNING))
            return false;
        if (entry->event->turn) return false;
        entry->job.run = run_job;
        entry->job.fail = fail_job;
        entry->job.what = "host function";
        drupe_worker_post(&entry->job);
        /* Behind the copy itself, which finds a thread first. */
        if (entry->work.kind == DRUPE_WORK_COPY) {
            drupe_pieces *pieces = entry->work.user;
            pieces->hurry(pieces);
        }
        return false;
    }
    if (drupe_inflight_launch(queue, entry, &entry->work) != DRUPE_OK) fail(entry);
    return true;
}

void drupe_deferred_begin(drupe_queue *queue, drupe_inflight *entry)
{
    bool first = queue->order.head == entry && entry->nwaits == 0 && !drupe_queue_unordered(queue);
    if (!first || entry->event->turn || !drupe_work_emulated(queue, &entry->work)) return;
    /* What is over stays on the deferred part until the waiter comes by. */
    bool over = drupe_deferred_advance(queue, entry);
    (void)over;
}

void drupe_deferred_poll(const drupe_inflight *entry)
{
    for (size_t i = 0; i < entry->nwaits; i++) {
        if (drupe_event_poll(entry->waits[i]) != DRUPE_PHASE_NATIVE) continue;
        drupe_event_ask_notify(entry->waits[i]);
        drupe_waiter_poll();
    }
}

/* Poll the waits of the first deferred entry. Only this thread takes entries from the deferred part, so the
 * entry stays while the lock is not held; polling may need the locks of other queues. */
bool drupe_deferred_serve(drupe_queue *queue)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_serve(queue);
    pthread_mutex_lock(&queue->lock);
    drupe_inflight *entry = queue->order.deferred;
    pthread_mutex_unlock(&queue->lock);
    if (!entry) return false;
    drupe_deferred_poll(entry);
    pthread_mutex_lock(&queue->lock);
    bool moved = drupe_deferred_advance(queue, entry);
    if (moved) {
        drupe_inflight_admit(queue, entry);
        drupe_queue_flush_locked(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    if (moved) drupe_deferred_announce();
    return moved;
}
