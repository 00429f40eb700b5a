/* Failures: first causes, who has heard of them, what the caller is told.
 *
 * Files: failure.c (causes, and which of them a queue stands behind), failure_log.c (copies for the log),
 * report.c (the record of a failure, and that of a thread's last error).
 *
 * Owns: causes, the list of the unreported, and of a queue: cause, cause_from, marks_due.
 *
 * Locks: the failure lock, and the log's; leaves. No threads: failure_poller.c of services/ looks for
 * failures. */
#ifndef DRUPE_CORE_FAILURE_ROOM_H
#define DRUPE_CORE_FAILURE_ROOM_H

#include "core/program/program_room.h"
#include "core/trace/trace_room.h"

/* --- failure.c ------------------------------------------------------------------------------------------ */

/* The first cause of one or more failures. */
struct drupe_cause {
    _Atomic(uint32_t) references;
    _Atomic(bool) reported;
    bool cancels; /* it is no failure: drupe_queue_cancel() gave up what stands behind it on its queue */
    drupe_failure what;
    uint64_t note;       /* its id in the log, 0: none */
    drupe_cause *before; /* retained: the first cause, reported before this work was submitted; or NULL */
    const drupe_queue *queue; /* where it happened; compared, never followed */
    uint64_t reported_at;     /* the latest submission then; failure lock */
    drupe_cause *next;        /* in the list of the unreported, or of those that wait to be freed */
};

/* A new cause, in the list of the unreported. `what` (NULL: unknown) gives its label, site and cell away.
 * `queue` NULL: it happened on none. Never NULL: without memory, a shared one. */
drupe_cause *drupe_cause_new(const drupe_error *error, drupe_subject *what, const drupe_queue *queue,
                             uint64_t submission);
/* What stops `what` of `queue`, submission `number`, because a wait failed for `cause`: that; or, where it
 * was reported before the submission was made, a new one, since nobody would hear of this work otherwise.
 * Retained. */
drupe_cause *drupe_cause_of_wait(drupe_cause *cause, drupe_subject *what, const drupe_queue *queue,
                                 uint64_t number);
/* The one that all began with, borrowed from `cause`. */
drupe_cause *drupe_cause_first(drupe_cause *cause);
drupe_cause *drupe_cause_retain(drupe_cause *cause);
/* May be called on any thread: cells are released by drupe_cause_free_deferred(). */
void drupe_cause_release(drupe_cause *cause); /* NULL-safe */
/* Release the cells of causes that are gone. Only where the caller's references may be dropped. */
void drupe_cause_free_deferred(void);
void drupe_cause_report(drupe_cause *cause);
/* Whether it counts for submission `number`: it is unreported, or was reported after that was made. */
bool drupe_cause_stops(drupe_cause *cause, uint64_t number, const drupe_queue *queue);
/* Fill `failure` with the DRUPE_E_DEPENDENCY of work that stands behind `cause`; `what` may be NULL. */
void drupe_cause_dependent(drupe_cause *cause, const drupe_subject *what, const drupe_queue *queue,
                           drupe_failure *failure);

/* Record that `cause` stops everything behind submission `from`. An unreported cause stays. On an in-order
 * queue one with a smaller `from` replaces it. */
void drupe_queue_set_cause(drupe_queue *queue, drupe_cause *cause, uint64_t from);
/* A cause that is no failure: its queue's work from `from` on is cancelled. */
drupe_status drupe_cause_cancelling(const drupe_queue *queue, uint64_t from,
                                    drupe_cause **cause) DRUPE_MUST_CHECK;
/* The failure that submission `number` stands behind, retained, or NULL: one that is unreported, or that was
 * reported after the submission. */
drupe_cause *drupe_queue_pending_failure(drupe_queue *queue, uint64_t number);
/* The same of one that stands at `order` in the order. */
drupe_cause *drupe_queue_pending_failure_at(drupe_queue *queue, uint64_t order, uint64_t number);
/* A failure that submission `number` stands behind and that was reported before it, but had not come to this
 * queue by then: what waits for another queue fails later than that. Retained, or NULL. */
drupe_cause *drupe_queue_late_failure(drupe_queue *queue, uint64_t number);
/* The queue's unreported cause, retained, or NULL. */
drupe_cause *drupe_queue_trouble(drupe_queue *queue);
/* An unreported cause that happened on the queue, retained, or NULL. */
drupe_cause *drupe_cause_on(const drupe_queue *queue);
/* Report the oldest unreported failure that is accepted (NULL: any). False: there is none. */
bool drupe_cause_take(bool (*accept)(const drupe_failure *failure, void *user), void *user,
                      drupe_failure *failure);
/* Offer the failures that were not told yet to the observer. Any thread. */
void drupe_failures_offer(void);
/* failure_log.c: keep a copy; its id. And count what did not run because of it (0: nothing). Any thread. */
uint64_t drupe_failures_note(const drupe_failure *failure);
void drupe_failures_note_dependent(uint64_t id);
/* Forget all causes, for drupe_library_close(). */
void drupe_failures_clear(void);

/* --- report.c ------------------------------------------------------------------------------------------- */

/* The record of work that failed, without its cell; `queue` and `what` may be NULL. */
void drupe_failure_describe(drupe_failure *failure, const drupe_error *error, const drupe_queue *queue,
                            const drupe_subject *what);
/* The thread's last error is `own`; `cause` (NULL: itself) is what stopped it. */
void drupe_failure_tell(const drupe_failure *own, const drupe_failure *cause);
/* The same of a submission that was refused; a cause that goes with the error stays. */
void drupe_failure_tell_refused(drupe_failure *own);

/* --- What queues owe ------------------------------------------------------------------------------------ */

/* Work behind `queue`'s cause is still to be marked, which drupe_marks_settle() does. Any lock may be held.
 */
void drupe_marks_ask(drupe_queue *queue);
/* Queues that owe marks. */
extern _Atomic(unsigned) drupe_marks_owed;

#endif
