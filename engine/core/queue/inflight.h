/* Events and entries in flight: what is so short that it stands in the header of their files, event.c and
 * inflight.c. */
#ifndef DRUPE_CORE_INFLIGHT_H
#define DRUPE_CORE_INFLIGHT_H

#include "core/queue/records.h"

/* --- event.c -------------------------------------------------------------------------------------------- */

/* Have its native state come: another thread has written to it if it is not known to be over. Who asks will
 * write there sooner or later, as one that waits or as the one that uses it again. */
static inline void drupe_event_prefetch(const drupe_event *event)
{
    drupe_prefetch_write(event + 1);
}

static inline drupe_phase drupe_event_phase(const drupe_event *event)
{
    return (drupe_phase)atomic_load_explicit(&((drupe_event *)event)->phase, memory_order_acquire);
}
static inline bool drupe_phase_over(drupe_phase phase)
{
    return phase >= DRUPE_PHASE_COMPLETE;
}
/* Of an event that no other thread ends meanwhile. */
static inline void drupe_event_enter(drupe_event *event, drupe_phase phase)
{
    atomic_store_explicit(&event->phase, (int)phase, memory_order_release);
}
/* It goes to the backend. NULL-safe. */
static inline void drupe_event_hand_over(drupe_event *event)
{
    if (event) event->opened = true;
}
/* It is one of deferred work; `turn`: which the caller does. */
static inline void drupe_event_defer(drupe_event *event, bool turn, bool spins)
{
    event->turn = turn;
    event->spins = spins;
}
/* It is one of a barrier that core puts behind submission `behind`. */
static inline void drupe_event_insert(drupe_event *event, uint64_t behind)
{
    event->behind = behind;
    event->inserted = true;
}
/* What was submitted after this number, on the same in-order queue, stands behind the event. Numbers tell the
 * order of submission. A barrier that core inserts has a number that is higher than its place in the order;
 * `behind` is its place. */
static inline uint64_t drupe_event_order(const drupe_event *event)
{
    return event->behind ? event->behind : event->number;
}
static inline uint64_t drupe_inflight_order(const drupe_inflight *entry)
{
    return entry->event ? drupe_event_order(entry->event) : entry->what.number;
}

/* --- inflight.c: the following need the queue's lock ---------------------------------------------------- */

/* A record of a submission with a number. Takes the cell, but not on failure; the label outlives the record,
 * or a copy follows. */
drupe_status drupe_inflight_new(drupe_queue *queue, const char *label, void *cell,
                                drupe_inflight **entry) DRUPE_MUST_CHECK;
/* One that no queue has, for an event that the caller ends; NULL: no memory. Without a lock. */
drupe_inflight *drupe_inflight_alone(const char *label, uint32_t site);
/* Take `uses`, for which there is room, and a summary of the work. */
static inline void drupe_inflight_fill(drupe_inflight *entry, uint32_t site, const drupe_operands *uses,
                                       const drupe_work *work)
{
    entry->what.site = site;
    entry->what.nrefs = (uint32_t)uses->nrefs;
    for (size_t i = 0; i < uses->nrefs; i++) entry->what.refs[i] = uses->refs[i];
    atomic_store_explicit(&entry->written, uses->written, memory_order_relaxed);
    entry->replaced = uses->replaced;
    entry->checks_first = work->kind == DRUPE_WORK_HOST && work->checks_first;
    drupe_arg_summary_take(&entry->summary, work);
}
/* Take what the submission info brings and make room for `more` waits; on failure the objects not yet taken
 * are the caller's. */
drupe_status drupe_inflight_load(drupe_inflight *entry, const drupe_submit_info *info, const drupe_work *work,
                                 size_t more) DRUPE_MUST_CHECK;
/* An event of its own for the entry, unless it has one. */
drupe_status drupe_inflight_attach(drupe_queue *queue, drupe_inflight *entry) DRUPE_MUST_CHECK;
/* Its event, for the caller: the entry's own reference if it was over when it was launched, or else another
 * one. */
static inline drupe_event *drupe_inflight_give_event(drupe_inflight *entry)
{
    drupe_event *event = entry->event;
    if (entry->done)
        entry->event = NULL;
    else
        drupe_object_retain_unshared(event);
    return event;
}
/* Its references go to the entry behind it. */
static inline void drupe_inflight_pass(drupe_inflight *entry)
{
    entry->passed = true;
}
/* What it writes and was not marked yet; that is up to the caller now. Any lock may be held. */
static inline uint64_t drupe_inflight_take_written(drupe_inflight *entry)
{
    return atomic_exchange(&entry->written, 0);
}
/* It may fail for a reason that core knows: what follows must wait for it by name. */
static inline bool drupe_inflight_fallible(const drupe_inflight *entry)
{
    return entry->nwaits || entry->summary.kind == DRUPE_WORK_HOST;
}
/* There is room for one. */
void drupe_inflight_add_wait(drupe_inflight *entry, drupe_event *wait);
/* A record that was never used is free again. */
void drupe_inflight_put_back(drupe_queue *queue, drupe_inflight *entry);
/* The records that are free. Nobody else has the queue. */
void drupe_inflight_forget_spares(drupe_queue *queue);

/* The list: a launched or deferred entry at its end, or a launched one behind another. */
void drupe_inflight_append(drupe_queue *queue, drupe_inflight *entry, bool deferred);
void drupe_inflight_insert(drupe_queue *queue, drupe_inflight *after, drupe_inflight *entry);
/* It is no longer deferred: the backend has it, or it is over. */
void drupe_inflight_admit(drupe_queue *queue, drupe_inflight *entry);
/* Move the entry that follows `before` (NULL: the first) to another list. */
void drupe_inflight_detach(drupe_queue *queue, drupe_inflight *before, drupe_inflight **list);
/* The backend has the entry's work. */
void drupe_inflight_launched(drupe_queue *queue, drupe_inflight *entry);
/* Everything up to this submission is over. */
static inline void drupe_queue_proven(drupe_queue *queue, uint64_t number)
{
    if (queue->proof.proven < number) queue->proof.proven = number;
}
/* Put a launched or deferred entry, which keeps `bytes` alive, on the list of an in-order queue; false: it is
 * over. */
static inline bool drupe_inflight_enlist(drupe_queue *queue, drupe_inflight *entry, size_t bytes,
                                         bool deferred)
{
    if (entry->done) {
        drupe_queue_proven(queue, entry->what.number);
        return false;
    }
    drupe_inflight_append(queue, entry, deferred);
    if (!entry->event) queue->proof.unmarked_bytes += bytes;
    return true;
}
/* Establish that all up to submission `number` is over, when that is, and hear of silent failures; a slice of
 * the time only. Takes the lock. */
drupe_status drupe_queue_prove(drupe_queue *queue, uint64_t number, bool complete,
                               uint64_t left_ns) DRUPE_MUST_CHECK;
/* The thread's last error is that of work without an event, up to submission `number`: the queue's cause,
 * unless it has one. The lock is held. */
void drupe_queue_blame(drupe_queue *queue, uint64_t number);
/* Push what was submitted to the hardware. */
void drupe_queue_flush_locked(drupe_queue *queue);

/* Of an in-order queue, the last of what is over, of at most `most` from the first; NULL: none is. `hasty`:
 * an entry that none has answered for is asked another time. */
drupe_inflight *drupe_inflight_finished(drupe_queue *queue, size_t most, bool hasty);
/* Take the entries up to `last`, but at most `most`, out of the queue. */
drupe_inflight *drupe_inflight_cut(drupe_queue *queue, drupe_inflight *last, size_t most);
/* Whether it is time to look, before a submission that keeps `bytes` alive; `small`: little is kept alive. */
bool drupe_inflight_due(drupe_queue *queue, size_t bytes, bool *small);

/* --- reap.c */

/* Look at what is over, in order, and detach it: of an in-order queue at most `most`; `hasty` as above. The
 * caller drops the list after unlocking. */
drupe_inflight *drupe_inflight_reap(drupe_queue *queue, size_t most, bool hasty);
/* Some of that, if it is time to look. The next submission keeps `bytes` alive. */
drupe_inflight *drupe_queue_reap_some(drupe_queue *queue, size_t bytes);

/* --- inflight.c */

/* The same without detaching: only the trace is told. Of an in-order queue. True: there may be more. */
bool drupe_inflight_look(drupe_queue *queue, size_t most);
/* Of an in-order queue: what no look has told to be over yet. */
static inline drupe_inflight *drupe_inflight_unlooked(const drupe_queue *queue)
{
    return queue->order.looked ? queue->order.looked->next : queue->order.head;
}
/* drupe_queue_settle(). */
void drupe_queue_settle_locked(drupe_queue *queue, bool inferring);
/* How many submissions are not known to be over. */
size_t drupe_queue_unfinished(const drupe_queue *queue);
/* Whether it is known to be over; of silent work: because something behind it has proven that. */
static inline bool drupe_inflight_over(const drupe_queue *queue, const drupe_inflight *entry)
{
    if (entry->what.number <= queue->proof.proven) return true;
    return entry->event && drupe_phase_over(drupe_event_phase(entry->event));
}

/* Without the lock: drop references and return the records. */
void drupe_inflight_drop(drupe_queue *queue, drupe_inflight *list);

#endif
