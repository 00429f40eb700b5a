/* Queues: their order, what they have in flight, how it ends, and who waits for it.
 *
 * Reading order: records.h (the structs), inflight.h -> queue_open.c, queue.c (opening, looking, waiting) ->
 * enqueue.c, launch.c, unordered_submit.c (from a submission info to the backend) -> inflight.c, unordered.c,
 * event.c, event_wait.c (what is in flight, and how it ended) -> deferred.c, waiter.c (work that must wait),
 * worker.c, watch.c (who is told of its end) -> trouble.c, suspects.c, mark.c, cancel.c, lost.c,
 * fault_deliver.c, fault_text.c (failures) -> refs.c, before.c, throttle.c (memory in flight), defaults.c,
 * queue_list.c.
 *
 * Headers, bottom up: records.h, inflight.h, this one, waiter.h, launch.h, valid.h.
 *
 * Owns: queues, events, entries; the list of queues; the waiter's list.
 *
 * Locks, in the order in which they may be taken: `serving` of watch.c; queue->lock (one queue's entries;
 * held during its backend calls, never while references are dropped); kernel->lock; the lock of waiter.c
 * (queues with deferred work, and waiting for deferred events); the leaves of worker.c and queue_list.c. No
 * thread holds two queue locks.
 *
 * Threads: drupe-waiter (waiter.c), drupe-worker (worker.c). They never drop what a caller gave. */
#ifndef DRUPE_CORE_QUEUE_ROOM_H
#define DRUPE_CORE_QUEUE_ROOM_H

#include "core/queue/inflight.h"

/* Beside drupe_queue_flags: events have times for the trace, because they cost next to nothing; callers see
 * none. */
#define DRUPE_QUEUE_TIMED (1u << 30)
/* Whether its work gets events, to be asked for times. */
static inline bool drupe_queue_timed(const drupe_queue *queue)
{
    return (queue->base.flags & (DRUPE_QUEUE_PROFILING | DRUPE_QUEUE_TIMED)) != 0;
}

/* --- event.c, event_wait.c ------------------------------------------------------------------------------ */

/* A fresh event of submission `number`. Its entry may be NULL if it is complete at once, or if its caller
 * alone asks the backend for it and core never hears of its end. The queue's lock is held: its memory is that
 * of one that is gone, where there is any. */
drupe_status drupe_event_next(drupe_queue *queue, uint64_t number, drupe_inflight *entry,
                              drupe_event **event) DRUPE_MUST_CHECK;
/* One that the caller ends, and which owns its entry; NULL: no memory. */
drupe_event *drupe_event_alone(drupe_inflight *entry);
/* From one phase to another, unless another thread was faster. */
bool drupe_event_leave(drupe_event *event, drupe_phase from, drupe_phase to);
/* The queue has lost its last handle: from now on the memory of its events goes with them. Takes the queue's
 * lock. */
void drupe_event_keep_no_more(drupe_queue *queue);
/* The memory of events that are gone. Nobody else has the queue. */
void drupe_event_forget_spares(drupe_queue *queue);
/* Its phase, after asking the backend if that still has it. No queue lock may be held. */
drupe_phase drupe_event_poll(drupe_event *event);
/* The same for a caller that holds the queue's lock and polls in the order of submission. */
drupe_phase drupe_event_poll_locked(drupe_event *event);
/* That for many at one time: `*ticks` is 0 for the first of them. */
drupe_phase drupe_event_poll_at(drupe_event *event, uint64_t *ticks);
/* Ask the backend, if it has the event, which is completed if it is complete. True: it looks failed, which is
 * not settled. */
bool drupe_event_ask(drupe_event *event, uint64_t *ticks);
/* Wait without reporting: DRUPE_OK (over) or DRUPE_E_TIMEOUT. */
drupe_status drupe_event_await(drupe_event *event, uint64_t deadline) DRUPE_MUST_CHECK;
/* Until nobody is writing down how the event ended. */
drupe_phase drupe_event_settled(const drupe_event *event);
/* True when the backend says that the event failed; its reason is then the thread's error. */
bool drupe_event_looks_failed(drupe_event *event, drupe_event_state *state);
void drupe_event_complete(drupe_event *event, drupe_phase from);
void drupe_event_complete_at(drupe_event *event, drupe_phase from, uint64_t ticks);
/* Fail it: the cause is that of a failed wait, else the queue's, else a new one made from `error`. What it
 * waits for must have settled, if it came from the backend: drupe_event_poll*() see to that. */
void drupe_event_fail(drupe_event *event, drupe_phase from, const drupe_error *error);
/* Fail a fresh event that never had an entry. */
void drupe_event_fail_behind(drupe_event *event, drupe_cause *cause, drupe_inflight *entry);
/* Fail an event that is still deferred for `cause`, without a look at its waits. */
void drupe_event_give_up(drupe_event *event, drupe_cause *cause);
/* Have the waiter woken when it is over; harmless when called again. */
void drupe_event_ask_notify(drupe_event *event);

/* --- reap.c: what has to be known before anything of a queue counts as good --------------- */

/* Mark what all queues owe. Before anybody is told of a failure and before marks are looked at. */
void drupe_marks_settle(void);
/* The same for this queue, whose lock is held. */
void drupe_marks_settle_locked(drupe_queue *queue);
/* If the backend has told of trouble, find the queue's cause before what is over counts as good. The queue's
 * lock is held. */
void drupe_marks_hear(drupe_queue *queue);

/* --- mark.c: handles whose contents are not what a program expects ---------------------------------------
 *
 * Work that does not run, or fails, leaves what it would have written as it was, which is nobody's result.
 * The handles are marked with the cause, before anybody is told of it; reading or computing from them is
 * refused until something replaces all of their bytes. Without a queue's lock, unless told otherwise. */

/* Mark what this entry would have written, once: what is found out about it later, when a program may have
 * accepted or replaced the contents, counts for nothing. Its references cannot go meanwhile. Any lock may be
 * held. */
void drupe_mark_inflight(drupe_inflight *entry, drupe_cause *cause);
/* Take the marks off what an entry is about to replace, and put them back when it was refused after all. Its
 * queue's lock is held. */
drupe_mark *drupe_marks_lift(const drupe_inflight *entry);
void drupe_marks_lifted(drupe_mark *list, bool replaced);

/* --- mark_read.c */

/* As drupe_memory_contents(), for a submission that reads. While the failure is unreported the answer is
 * DRUPE_OK, and an empty `*pending_failure` receives the cause, retained: the submission is made and fails.
 */
drupe_status drupe_mark_read(drupe_memory *memory, drupe_cause **pending_failure) DRUPE_MUST_CHECK;
/* The same of all that is read, for who holds the lock of the queue. */
drupe_status drupe_marks_read(const drupe_operands *uses, drupe_cause **pending_failure) DRUPE_MUST_CHECK;
/* Whether deferred work would read what work before it did not write. `*cause` is why, retained, or NULL where
 * that is not known. */
bool drupe_marks_read_late(const drupe_inflight *entry, drupe_cause **cause) DRUPE_MUST_CHECK;
/* A glance: false means that the handle has no mark. */
static inline bool drupe_mark_possible(const drupe_memory *memory)
{
    /* The count is loaded first: a queue takes itself off the count only after it has stored its marks. */
    return atomic_load_explicit(&drupe_marks_owed, memory_order_acquire) ||
           atomic_load_explicit(&((drupe_memory *)memory)->mark, memory_order_acquire);
}

/* --- queue.c -------------------------------------------------------------------------------------------- */

/* Of a queue that the caller never saw: that its work is over tells the caller nothing. NULL-safe. */
void drupe_queue_release_inside(drupe_queue *queue);
/* Look at what has finished without dropping anything. `inferring`: where a kernel answers for others, let
 * it; not where one of them is known to have failed. */
void drupe_queue_settle(drupe_queue *queue, bool inferring);
/* Wait until everything is over, whatever it ended like, and drop its references. */
void drupe_queue_finish(drupe_queue *queue, uint64_t deadline);
/* Push what was submitted to the hardware. */
void drupe_queue_flush(drupe_queue *queue);
/* Until then, or DRUPE_FOREVER. */
static inline uint64_t drupe_time_left(uint64_t deadline)
{
    if (deadline == UINT64_MAX) return DRUPE_FOREVER;
    uint64_t now = drupe_now_ns();
    return deadline > now ? deadline - now : 0;
}
/* Its last inner reference is gone. */
void drupe_queue_destroy(drupe_queue *queue);
/* queue_list.c: it is complete, and others may find it; it goes. */
void drupe_queue_join(drupe_queue *queue);
void drupe_queue_leave(drupe_queue *queue);
/* The queue after `queue` (NULL: the first) with an inner reference; that of `queue` is given up. */
drupe_queue *drupe_queue_walk(drupe_queue *queue);

/* --- Checked mode -----------------------------------------------------------------------------------------
 */

/* What queues ask of checked mode; check/ registers itself when it is switched on. */
typedef struct drupe_checker {
    /* Before the work of a loaded entry is launched; the queue's lock is held. */
    drupe_status (*submission)(const drupe_submit_info *info, const drupe_inflight *entry,
                               const drupe_work *work);
    /* The caller knows that the event is over, and with it all that it waited for unless it failed. */
    void (*event)(const drupe_event *event);
    /* The same for what was submitted to the queue up to `number`. */
    void (*queue)(const drupe_queue *queue, uint64_t number);
    void (*closed)(const drupe_queue *queue); /* it is gone; another may get its address */
    void (*skipped)(uint64_t number);         /* a submission did not run */
    void (*dropped)(uint64_t number); /* one gives up what it kept alive: its host memory may be another's */
    drupe_status (*memory)(void);     /* look at the redzones of all memory, once per wait */
    /* What a fault has to do with guarded memory, appended to `text` of `size` bytes; false: nothing. */
    bool (*fault)(const drupe_fault *fault, char *text, size_t size);
} drupe_checker;
/* NULL before checked mode was on for the first time. */
extern _Atomic(const drupe_checker *) drupe_checker_now;
/* NULL while checked mode is off. */
static inline const drupe_checker *drupe_checking(void)
{
    return drupe_check_on() ? atomic_load_explicit(&drupe_checker_now, memory_order_acquire) : NULL;
}

#endif
