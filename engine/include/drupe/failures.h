/* Failures of submissions: those that nobody waited for, the log of all, and what is known of the last one.
 *
 * Threads: all functions may be called from any thread. */
#ifndef DRUPE_FAILURES_H
#define DRUPE_FAILURES_H

#include "drupe/submit.h"

typedef struct drupe_failure {
    drupe_error error;
    char label[64];       /* kernel name or "copy", "fill", ... */
    char device[64];      /* filter string of the device */
    uint64_t submission;  /* process-wide number of the submission */
    void *cell;           /* the observer's cell that submitted it; *taken* by the caller; may be NULL */
    uint32_t site;        /* of the submission, 0 = unknown */
    uint32_t queue;       /* drupe_queue_number(), 0 = unknown */
    uint32_t cell_number; /* the observer's, 0 = none; stays when `cell` has been taken */
    drupe_work_kind kind; /* BARRIER where it is not known */
    bool shown;           /* the observer has shown it in its cell: see drupe_failures_watch() */
    bool refused;         /* by the submitting call itself: nothing was queued */
    char arguments[512];  /* what it was called with, as a line of text; "" = unknown or nothing */
} drupe_failure;

/* Look at what has finished on all queues, and take the oldest failure that was not reported yet. Returns
 * false when there is none. Never blocks on the device. Dependents of a reported cause are not reported
 * again. */
DRUPE_API bool drupe_failure_take(drupe_failure *failure);
/* The same for the oldest one that `accept` agrees to take, which must not call the engine. */
DRUPE_API bool drupe_failure_take_for(bool (*accept)(const drupe_failure *failure, void *user), void *user,
                                      drupe_failure *failure);
/* From now on until all that is unfinished is over, look for failures on a thread of the engine and offer
 * them to the observer's failed(). They stay to be reported. Also drops references like
 * drupe_queue_collect(). */
DRUPE_API void drupe_failures_watch(void);

/* A failure as the log keeps it. */
typedef struct drupe_failure_note {
    uint64_t id;           /* from 1, increasing by one */
    uint64_t at_ns;        /* CLOCK_MONOTONIC: when it was noticed */
    uint64_t unix_ns;      /* the same instant as time since 1970 */
    uint64_t dependents;   /* submissions with an event that did not run because of it, so far */
    drupe_failure failure; /* its `cell` is NULL; `shown` is not kept */
} drupe_failure_note;

#define DRUPE_FAILURE_NOTES 128u /* how many are remembered */

/* Copy what the log has of failures with ids above `after`, oldest first, at most `capacity`; returns how
 * many. Every failure of submitted work is in it once, reported or not, when it was noticed; what did not run
 * because of it is counted, what was refused or cancelled is not in it. */
DRUPE_API size_t drupe_failures_read(uint64_t after, drupe_failure_note *notes, size_t capacity);

/* What is known of the calling thread's last error, when it is that of a submission, refused or failed later:
 * `own` is the submission that failed, and `cause` the one whose failure kept it from running (its status is
 * DRUPE_OK when `own` failed by itself). Their `cell` is NULL. False when the last error is of another kind.
 */
DRUPE_API bool drupe_failure_last(drupe_failure *own, drupe_failure *cause);
/* The same for an event; false unless it failed. */
DRUPE_API bool drupe_event_failure(drupe_event *event, drupe_failure *own, drupe_failure *cause);

#endif
