/* Work that must wait for another context, another backend, a host function or the caller.
 *
 * The waiter (waiter.c) polls what the first deferred entry of each queue waits for (of an out-of-order
 * queue, every one), and it alone launches deferred work. Only work of core's own threads begins at once
 * where nothing stands before it. */
#include "core/queue/launch.h"
#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define BRIEF_NS 100000u /* in which a worker ends a copy of which nothing is left */

/* --- Copies of the work --------------------------------------------------------------------------------- */

static size_t arg_size(const drupe_arg *arg)
{
    if (arg->kind == DRUPE_ARG_LOCAL) return 0;
    return arg->kind == DRUPE_ARG_POINTER ? sizeof(void *) : arg->size;
}

/* One piece of memory: range, argument table, values. */
static drupe_status copy_kernel(drupe_inflight *entry, const drupe_work *work)
{
    size_t table = drupe_round16(sizeof(drupe_range)),
           values = table + drupe_round16(work->nargs * sizeof(drupe_arg));
    size_t size = values;
    for (size_t i = 0; i < work->nargs; i++) size += drupe_round16(arg_size(&work->args[i]));
    char *copy = malloc(size);
    if (!copy) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to hold a kernel's arguments.");
    memcpy(copy, work->range, sizeof(drupe_range));
    drupe_arg *args = (drupe_arg *)(void *)(copy + table);
    for (size_t i = 0; i < work->nargs; i++) {
        args[i] = work->args[i];
        if (arg_size(&args[i]) == 0) continue;
        memcpy(copy + values, args[i].value, arg_size(&args[i]));
        args[i].value = copy + values;
        values += drupe_round16(arg_size(&args[i]));
    }
    entry->deferral.copy = copy;
    entry->deferral.work.words = NULL;
    entry->deferral.work.range = (drupe_range *)(void *)copy;
    entry->deferral.work.args = args;
    return DRUPE_OK;
}

static drupe_status copy_work(drupe_inflight *entry, const drupe_work *work)
{
    entry->deferral.work = *work;
    if (work->kind == DRUPE_WORK_KERNEL) return copy_kernel(entry, work);
    if (work->kind != DRUPE_WORK_FILL) return DRUPE_OK;
    entry->deferral.copy = malloc(work->pattern_size);
    if (!entry->deferral.copy)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to hold a fill's pattern.");
    memcpy(entry->deferral.copy, work->src, work->pattern_size);
    entry->deferral.work.src = entry->deferral.copy;
    return DRUPE_OK;
}

/* --- Deferring ------------------------------------------------------------------------------------------ */

drupe_status drupe_inflight_defer(drupe_queue *queue, drupe_inflight *entry, const drupe_work *work,
                                  uint64_t read)
{
    DRUPE_TRY(drupe_inflight_attach(queue, entry));
    DRUPE_TRY(copy_work(entry, work));
    entry->deferral.read = read;
    bool turn = work->kind == DRUPE_WORK_HOST && !work->fn;
    if (!turn && drupe_work_emulated(queue, work)) DRUPE_TRY(drupe_worker_start());
    DRUPE_TRY(drupe_deferred_add(queue));
    bool in_pieces = work->kind == DRUPE_WORK_COPY && work->fn;
    drupe_event_defer(entry->event, turn, in_pieces && ((const drupe_pieces *)work->user)->spins);
    for (size_t i = 0; i < entry->nwaits; i++) drupe_event_ask_notify(entry->waits[i]);
    return DRUPE_OK;
}

/* --- Host functions that core runs ---------------------------------------------------------------------- */

static drupe_inflight *entry_of(drupe_job *job)
{
    return (drupe_inflight *)(void *)((char *)job - offsetof(drupe_inflight, deferral.job));
}

static void run_job(drupe_job *job)
{
    drupe_inflight *entry = entry_of(job);
    drupe_event *event = entry->event;
    drupe_core_began(entry->what.number);
    atomic_store(job->busy, 1);
    drupe_status status = entry->deferral.work.fn(entry->deferral.work.user);
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
    drupe_inflight *entry = entry_of(job);
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
        if (!entry->deferral.marker) {
            if (drupe_queue_mark(queue, entry, &entry->deferral.marker) != DRUPE_OK) {
                fail(entry); /* no other work did: the reason is its own */
                return DRUPE_MUST_FAIL;
            }
            if (!entry->deferral.marker) return DRUPE_READY;
            drupe_queue_flush_locked(queue);
            drupe_event_ask_notify(entry->deferral.marker);
        }
        drupe_phase phase = drupe_event_poll_locked(entry->deferral.marker);
        if (phase == DRUPE_PHASE_COMPLETE) return DRUPE_READY;
        if (phase != DRUPE_PHASE_FAILED) {
            drupe_waiter_poll();
            return DRUPE_BLOCKED;
        }
        if (drupe_cause_stops(entry->deferral.marker->cause, entry->what.number, queue))
            return DRUPE_MUST_FAIL;
        /* Why it failed was told before the entry was submitted, so the queue works on; but what failed
         * marks nothing. */
        drupe_event_release(entry->deferral.marker);
        entry->deferral.marker = NULL;
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

/* Why work before it did not write what it reads, though the queue works. That work may have been held as well
 * when the entry was submitted, so nothing was marked then; and why it failed may have been told by then, of
 * another queue. Marks are for handles, which may be gone: so all that reads fails for what came late. */
static bool unwritten(drupe_queue *queue, const drupe_inflight *entry, drupe_cause **cause)
{
    if (drupe_marks_read_late(entry, cause)) return true;
    if (entry->deferral.read && !drupe_queue_unordered(queue))
        *cause = drupe_queue_late_failure(queue, entry->what.number);
    return *cause != NULL;
}

static bool fail_unwritten(drupe_queue *queue, drupe_inflight *entry)
{
    drupe_cause *cause;
    if (!unwritten(queue, entry, &cause)) return false;
    if (!cause) {
        fail_dependent(entry);
        return true;
    }
    if (drupe_event_leave(entry->event, DRUPE_PHASE_DEFERRED, DRUPE_PHASE_SETTLING)) {
        drupe_cause *own = drupe_inflight_fails_for(queue, entry, cause);
        drupe_event_fail_behind(entry->event, own, entry);
        drupe_cause_release(own);
        drupe_deferred_announce();
    }
    drupe_cause_release(cause);
    return true;
}

bool drupe_deferred_advance(drupe_queue *queue, drupe_inflight *entry)
{
    drupe_phase phase = drupe_event_phase(entry->event);
    if (drupe_phase_over(phase)) return true;
    if (phase != DRUPE_PHASE_DEFERRED) return false;
    drupe_readiness readiness = stands_behind(queue, entry)
                                    ? DRUPE_MUST_FAIL
                                    : drupe_inflight_ready(queue, entry, &entry->deferral.work);
    bool emulated = drupe_work_emulated(queue, &entry->deferral.work);
    if (readiness == DRUPE_READY && emulated) readiness = host_ready(queue, entry);
    if (readiness == DRUPE_BLOCKED) return false;
    if (readiness == DRUPE_MUST_FAIL) {
        fail_dependent(entry);
        return true;
    }
    if (fail_unwritten(queue, entry)) return true;
    if (emulated) {
        /* The caller may fail it just now. */
        if (!drupe_event_leave(entry->event, DRUPE_PHASE_DEFERRED, DRUPE_PHASE_RUNNING)) return false;
        if (entry->event->turn) return false;
        const bool copies = entry->deferral.work.kind == DRUPE_WORK_COPY; /* it may make all of it itself */
        drupe_worker_post(&entry->deferral.job, run_job, fail_job, copies ? "copy" : "host function");
        /* Behind the copy itself, which finds a thread first. */
        if (entry->deferral.work.kind == DRUPE_WORK_COPY) {
            drupe_pieces *pieces = entry->deferral.work.user;
            pieces->hurry(pieces);
        }
        return false;
    }
    if (drupe_inflight_launch(queue, entry, &entry->deferral.work) != DRUPE_OK) fail(entry);
    return true;
}

bool drupe_deferred_begin(drupe_queue *queue, drupe_inflight *entry)
{
    bool first = queue->order.head == entry && entry->nwaits == 0 && !drupe_queue_unordered(queue);
    if (!first || entry->event->turn) return false;
    assert(drupe_work_emulated(queue, &entry->deferral.work)); /* or why was it deferred? */
    /* What is over stays on the deferred part until the waiter comes by. */
    return !drupe_deferred_advance(queue, entry) && drupe_event_phase(entry->event) == DRUPE_PHASE_RUNNING;
}

void drupe_deferred_poll(const drupe_inflight *entry)
{
    for (size_t i = 0; i < entry->nwaits; i++) {
        if (drupe_event_poll(entry->waits[i]) != DRUPE_PHASE_NATIVE) continue;
        drupe_event_ask_notify(entry->waits[i]);
        drupe_waiter_poll();
    }
    drupe_marks_settle(); /* before marks are looked at, which is done under the queue's lock */
}

/* Those who wait put away what is over, unless the waiter is just looking at it. */
static void put_away(drupe_queue *queue)
{
    drupe_inflight *entry = queue->order.deferred;
    if (drupe_queue_unordered(queue)) return;
    for (; entry && !queue->order.polled && drupe_phase_over(drupe_event_phase(entry->event));
         entry = queue->order.deferred)
        drupe_inflight_admit(queue, entry);
}

void drupe_deferred_let_pass(drupe_queue *queue)
{
    for (;;) {
        bool late = false;
        pthread_mutex_lock(&queue->lock);
        put_away(queue);
        for (drupe_inflight *at = queue->order.deferred; at && !late; at = at->next) {
            late = at->deferred && drupe_phase_over(drupe_event_phase(at->event));
            if (!drupe_queue_unordered(queue)) break;
        }
        pthread_mutex_unlock(&queue->lock);
        if (!late) break;
        drupe_deferred_kick();
        sched_yield();
    }
}

/* --- Help from who waits ---------------------------------------------------------------------------------
 */

/* The copy that such a thread may help with, held, and its event, retained; or NULL. */
static drupe_pieces *find_copy(drupe_queue *queue, drupe_event **event)
{
    drupe_pieces *pieces = NULL;
    pthread_mutex_lock(&queue->lock);
    drupe_inflight *at = queue->order.deferred;
    while (at && drupe_phase_over(drupe_event_phase(at->event))) at = at->next;
    const drupe_work *work = at && at->deferred ? &at->deferral.work : NULL;
    if (work && work->kind == DRUPE_WORK_COPY && work->fn &&
        drupe_event_phase(at->event) == DRUPE_PHASE_RUNNING)
        pieces = work->user;
    if (pieces && !pieces->help) pieces = NULL;
    if (pieces) pieces->hold(pieces);
    if (pieces) *event = drupe_event_retain(at->event);
    pthread_mutex_unlock(&queue->lock);
    return pieces;
}

/* What no worker has begun, although all is copied, ends here. */
static void end_here(drupe_queue *queue, const drupe_event *event)
{
    drupe_job *job = NULL;
    pthread_mutex_lock(&queue->lock);
    if (drupe_event_phase(event) == DRUPE_PHASE_RUNNING && drupe_worker_take(&event->entry->deferral.job))
        job = &event->entry->deferral.job;
    pthread_mutex_unlock(&queue->lock);
    if (job) run_job(job);
}

bool drupe_deferred_help(drupe_queue *queue, uint64_t deadline)
{
    drupe_event *event = NULL;
    if (!queue || drupe_now_ns() >= deadline) return false;
    drupe_pieces *pieces = find_copy(queue, &event);
    if (!pieces) return false;
    const bool all = pieces->help(pieces, deadline);
    if (all) end_here(queue, event);
    uint64_t until = drupe_deadline(BRIEF_NS);
    if (until > deadline) until = deadline;
    while (all && !drupe_phase_over(drupe_event_phase(event)) && drupe_now_ns() < until) sched_yield();
    const bool over = drupe_phase_over(drupe_event_phase(event));
    pieces->let_go(pieces);
    drupe_event_release(event);
    return over;
}

/* --- The waiter's step -----------------------------------------------------------------------------------
 */

/* Poll the waits of the first deferred entry. While `polled` is set nobody else takes entries from the
 * deferred part, so the entry stays while the lock is not held; polling may need the locks of other queues.
 */
bool drupe_deferred_serve(drupe_queue *queue)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_serve(queue);
    pthread_mutex_lock(&queue->lock);
    drupe_inflight *entry = queue->order.deferred;
    queue->order.polled = entry != NULL;
    pthread_mutex_unlock(&queue->lock);
    if (!entry) return false;
    drupe_deferred_poll(entry);
    pthread_mutex_lock(&queue->lock);
    queue->order.polled = false;
    bool moved = drupe_deferred_advance(queue, entry);
    if (moved) {
        drupe_inflight_admit(queue, entry);
        drupe_queue_flush_locked(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    if (moved) drupe_deferred_announce();
    return moved;
}
