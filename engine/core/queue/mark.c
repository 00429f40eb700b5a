/* Marks: which handles do not hold what the program expects, and why.
 *
 * Work that did not run, or failed, is no error of the memory's bytes: it is one of whoever reads them as a
 * result. So the mark belongs to the handle, and a piece that is handed on starts without one. A mark names
 * the handle by its birth, since the entry that sets it may outlive that: a mark of an earlier handle counts
 * for nothing.
 *
 * A failure stops everything behind it on an in-order queue, also what has no event and what a driver has
 * begun to fail; all that is marked at one time, before anybody hears of the failure, by a walk over the
 * queue's entries. The walk needs the queue's lock, and failures are noticed with and without it: so the
 * queue owes its marks until somebody comes who can take it, and whoever tells of failures or looks at marks
 * has them all paid first. */
#include "core/queue/launch.h"
#include "core/queue/valid.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reason {
    drupe_mark mark;
    drupe_cause *cause;   /* retained */
    bool ran;             /* the work had begun, so the contents are nobody's */
    bool new_bytes;       /* it was to replace all of them */
    drupe_memory *memory; /* while it is lifted, as is the next */
    struct reason *next;
    char label[64]; /* of the work */
} reason;

static void reason_free(drupe_mark *mark)
{
    reason *one = (reason *)(void *)mark;
    drupe_cause_release(one->cause);
    free(one);
}

static void keep(drupe_mark *mark)
{
    (void)mark;
}

/* For all that is marked while no memory is left to write down why. */
static reason unexplained = {.mark = {.free = keep, .born = DRUPE_MARK_ANY}, .label = "work"};

/* --- Setting -------------------------------------------------------------------------------------------- */

static void mark_one(drupe_memory *memory, const drupe_inflight *entry, drupe_cause *cause, bool replaced)
{
    uint64_t born = memory->born;
    if (entry->what.number <= born) return; /* its handle is gone */
    reason *mark = calloc(1, sizeof *mark);
    if (!mark) {
        drupe_mark_put(memory, &unexplained.mark, born);
        return;
    }
    mark->cause = drupe_cause_retain(cause);
    mark->mark = (drupe_mark){.free = reason_free, .born = born};
    /* What was cancelled has numbers above the one that such a cause names. */
    mark->ran = cause->what.submission == entry->what.number && !cause->before;
    mark->new_bytes = replaced;
    const drupe_status status = cause->what.error.status;
    mark->mark.passing =
        mark->ran && entry->checks_first && (status == DRUPE_E_OUT_OF_RANGE || status == DRUPE_E_INVALID);
    snprintf(mark->label, sizeof mark->label, "%s", entry->what.label);
    drupe_mark_put(memory, &mark->mark, born);
}

void drupe_mark_inflight(drupe_inflight *entry, drupe_cause *cause)
{
    uint64_t written = drupe_inflight_take_written(entry);
    for (size_t i = 0; written && i < entry->what.nrefs; i++) {
        if (entry->what.refs[i].release != drupe_uses_drop || !drupe_effect_bit(written, i)) continue;
        bool replaced = i < 64 && drupe_effect_bit(entry->replaced, i);
        mark_one(entry->what.refs[i].object, entry, cause, replaced);
    }
}

drupe_mark *drupe_marks_lift(const drupe_inflight *entry)
{
    reason *list = NULL;
    for (size_t i = 0; i < entry->what.nrefs && i < 64; i++) {
        if (entry->what.refs[i].release != drupe_uses_drop || !drupe_effect_bit(entry->replaced, i)) continue;
        reason *mark = (reason *)(void *)drupe_mark_take(entry->what.refs[i].object);
        if (!mark || mark == &unexplained) continue;
        mark->memory = entry->what.refs[i].object;
        mark->next = list;
        list = mark;
    }
    return list ? &list->mark : NULL;
}

void drupe_marks_lifted(drupe_mark *list, bool replaced)
{
    for (reason *mark = (reason *)(void *)list, *next; mark; mark = next) {
        next = mark->next;
        if (replaced)
            reason_free(&mark->mark);
        else
            drupe_mark_put(mark->memory, &mark->mark, mark->mark.born);
    }
}

/* --- Hearing of what failed ------------------------------------------------------------------------------
 */

void drupe_marks_hear(drupe_queue *queue)
{
    const drupe_backend *backend = queue->base.slot->backend;
    if (!atomic_exchange(&queue->base.unheard, false) || drupe_device_silent(queue->base.device)) return;
    if (backend->queue_fault && backend->queue_fault(queue) != DRUPE_OK)
        drupe_queue_blame(queue, queue->order.tail ? queue->order.tail->what.number : queue->proof.proven);
    drupe_queue_settle_locked(queue, false);
}

/* --- Paying what is owed -------------------------------------------------------------------------------- */

/* That it is over does not tell that it ran. */
static bool is_complete(const drupe_inflight *entry)
{
    return entry->event && drupe_event_phase(entry->event) == DRUPE_PHASE_COMPLETE;
}

/* What stands behind the queue's cause. On an out-of-order queue every submission has an event, which marks
 * for itself. */
static void walk(drupe_queue *queue)
{
    drupe_inflight *entry = drupe_queue_unordered(queue) ? NULL : queue->order.head;
    for (; entry; entry = entry->next) {
        if (!atomic_load(&entry->written) || is_complete(entry)) continue;
        drupe_cause *cause = drupe_queue_pending_failure(queue, drupe_inflight_order(entry));
        if (!cause) continue;
        drupe_mark_inflight(entry, cause);
        drupe_cause_release(cause);
    }
}

void drupe_marks_settle_locked(drupe_queue *queue)
{
    unsigned due = atomic_load(&queue->base.marks_due);
    while (due) {
        drupe_marks_hear(queue);
        walk(queue);
        /* The count falls after the walk, because a thread that finds no marks owed reads them at once. If
         * the queue got another cause during the walk, the exchange fails and the walk is repeated. */
        if (atomic_compare_exchange_strong(&queue->base.marks_due, &due, 0)) {
            atomic_fetch_sub(&drupe_marks_owed, 1);
            due = 0;
        }
    }
}

void drupe_marks_settle(void)
{
    if (!atomic_load_explicit(&drupe_marks_owed, memory_order_acquire)) return;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (!atomic_load(&queue->base.marks_due)) continue;
        pthread_mutex_lock(&queue->lock);
        drupe_marks_settle_locked(queue);
        pthread_mutex_unlock(&queue->lock);
    }
}

/* --- Looking -------------------------------------------------------------------------------------------- */

static void copy_reason(const drupe_mark *mark, void *user)
{
    reason *copy = user;
    *copy = *(const reason *)(const void *)mark;
    if (copy->cause) drupe_cause_retain(copy->cause);
}

/* A copy of the mark with a reference to its cause, or false. One of work that changed nothing is gone once
 * its failure was reported, as NumPy's array is what it was after an exception. */
static bool read_mark(drupe_memory *memory, reason *copy)
{
    if (!drupe_mark_look(memory, copy_reason, copy)) return false;
    if (!copy->mark.passing || !atomic_load(&copy->cause->reported)) return true;
    drupe_cause_release(copy->cause);
    drupe_mark_pass(memory);
    return false;
}

static const char *contents(const reason *mark)
{
    if (mark->ran && !mark->mark.passing) return "What it holds is undefined.";
    return mark->new_bytes ? "It holds no result." : "It holds its earlier value.";
}

/* Takes the mark's cause. */
static drupe_status explain(const drupe_memory *memory, reason mark)
{
    if (!mark.cause) {
        return drupe_error_set(DRUPE_E_DEPENDENCY,
                               "The work that was to write this memory did not, and there was no host memory "
                               "to keep the reason. Compute it again, or take it as it is with "
                               "accept_contents().");
    }
    const drupe_cause *first = drupe_cause_first(mark.cause);
    const drupe_failure *what = &first->what;
    drupe_status status = first->cancels ? DRUPE_E_CANCELLED : DRUPE_E_DEPENDENCY;
    char why[900];
    if (first->cancels)
        snprintf(why, sizeof why, "was cancelled before it started");
    else if (mark.ran)
        snprintf(why, sizeof why, "failed: %.700s", what->error.text);
    else
        snprintf(why, sizeof why,
                 "did not run, because '%s' on %s (submission %llu) failed before it: %.600s", what->label,
                 what->device, (unsigned long long)what->submission, what->error.text);
    status =
        drupe_error_set(status,
                        "This memory was to be written by '%s', which %s%s %s Compute it again, or take it "
                        "as it is with accept_contents().",
                        mark.label, why, why[strlen(why) - 1] == '.' ? "" : ".", contents(&mark));
    const drupe_queue *queue = memory->queue;
    drupe_failure own;
    drupe_failure_describe(&own, drupe_error_last(), queue, NULL);
    drupe_failure_tell(&own, first->cancels ? NULL : what);
    drupe_cause_release(mark.cause);
    return status;
}

static drupe_status read_one(drupe_memory *memory, drupe_cause **pending_failure)
{
    reason mark;
    if (!read_mark(memory, &mark)) return DRUPE_OK;
    if (!mark.cause || atomic_load(&mark.cause->reported)) return explain(memory, mark);
    if (*pending_failure)
        drupe_cause_release(mark.cause);
    else
        *pending_failure = mark.cause;
    return DRUPE_OK;
}

drupe_status drupe_mark_read(drupe_memory *memory, drupe_cause **pending_failure)
{
    if (!drupe_mark_possible(memory)) return DRUPE_OK;
    drupe_marks_settle();
    return read_one(memory, pending_failure);
}

drupe_status drupe_memory_contents(drupe_memory *memory)
{
    DRUPE_TRY(drupe_core_check());
    if (!drupe_mark_possible(memory)) return DRUPE_OK;
    drupe_marks_settle();
    reason mark;
    return read_mark(memory, &mark) ? explain(memory, mark) : DRUPE_OK;
}

drupe_status drupe_marks_read(const drupe_operands *uses, drupe_cause **pending_failure)
{
    for (size_t i = 0; i < uses->nrefs; i++) {
        if (uses->refs[i].release == drupe_uses_drop && drupe_effect_bit(uses->read, i))
            DRUPE_TRY(read_one(uses->refs[i].object, pending_failure));
    }
    return DRUPE_OK;
}

void drupe_memory_accept(drupe_memory *memory)
{
    if (drupe_core_check() != DRUPE_OK) return;
    drupe_marks_settle();
    drupe_mark_drop(memory);
}
