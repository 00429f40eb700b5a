/* What the engine has done lately: one record per submission in a ring that is always on.
 *
 * The ring is written while work is submitted and when it is found to be over, and may be read at the same
 * time, from any thread and inside a signal handler: readers take no lock and stop nobody. A record that is
 * overwritten while it is read is left out.
 *
 * What a record does not say. The engine learns that work is over when it looks, so `seen_ns` is the latest
 * that the work can have ended, not when it ended. When it ran is known of what threads of the engine run
 * (the `host` device, host functions and copies in pieces on every device) and, by the device's clock, on
 * profiling queues. Work that was submitted without an event has no end of its own: it is PASSED when
 * something behind it on its queue, or the queue itself, was found to be over. */
#ifndef DRUPE_TRACE_H
#define DRUPE_TRACE_H

#include "drupe/failures.h"

#define DRUPE_TRACE_RECORDS 8192u /* how many the ring holds */

typedef enum drupe_trace_status {
    DRUPE_TRACE_PENDING,   /* not known to be over */
    DRUPE_TRACE_COMPLETE,  /* over, without a failure */
    DRUPE_TRACE_PASSED,    /* over; it had no event that could tell a failure */
    DRUPE_TRACE_FAILED,    /* failed, in the submission or later */
    DRUPE_TRACE_SKIPPED,   /* did not run: something before it had failed */
    DRUPE_TRACE_CANCELLED, /* did not run: it was given up */
    DRUPE_TRACE_UNKNOWN,   /* over; its record was overwritten before that. In views only, see view.h */
    DRUPE_TRACE_STATUS_COUNT
} drupe_trace_status;

typedef struct drupe_trace_record {
    uint64_t id;                   /* number of the submission, from 1; increasing, and some are missing */
    uint64_t submitted_ns;         /* CLOCK_MONOTONIC */
    uint64_t seen_ns;              /* CLOCK_MONOTONIC: when it was found to be over; 0: not yet */
    uint64_t started_ns, ended_ns; /* of the work itself; 0: not known. CLOCK_MONOTONIC unless `own_clock` */
    uint64_t bytes;                /* COPY, FILL: how many; else the size of the memory that it uses */
    uint64_t items;                /* KERNEL: work-items */
    uint32_t queue;                /* drupe_queue_number() */
    uint32_t cell;                 /* the observer's number of the cell; 0: none */
    uint32_t site;                 /* drupe_submission's */
    uint8_t kind;                  /* drupe_work_kind */
    uint8_t status;                /* drupe_trace_status */
    bool ordered;                  /* its queue is in-order */
    bool own_clock;                /* these times are of the device's clock */
    bool told;                     /* when it begins is known at once: until then it waits */
    char device[32];               /* filter string */
    char label[56];                /* cut to fit */
} drupe_trace_record;

/* Copy records with ids above `after`, oldest first, at most `capacity`; returns how many. Call again with
 * the id of the last one for more. Async-signal-safe. */
DRUPE_API size_t drupe_trace_read(uint64_t after, drupe_trace_record *records, size_t capacity);
/* Look at what is over on all queues, so that the records say so, and drop its references: see Keep-alive in
 * queue.h. Never blocks on a device. */
DRUPE_API void drupe_trace_update(void);
/* The same for the engine's own threads: it drops nothing. */
DRUPE_API void drupe_trace_look(void);
/* Whether the work is known to be over. Its record, if it has one, says how it ended; some numbers have no
 * record. False also when the record is gone, or not written yet; `*gone` says so. Cheap. */
DRUPE_API bool drupe_trace_over(uint64_t id, bool *gone);
/* When a thread of the engine began with work, and when it was done (0: it goes on); CLOCK_MONOTONIC. False:
 * nobody has told of it. Cheap. */
DRUPE_API bool drupe_trace_ran(uint64_t id, uint64_t *began_ns, uint64_t *over_ns);
/* The number of the first submission of a queue that is not known to be over; UINT64_MAX: there is none, or
 * no such queue. Takes locks. */
DRUPE_API uint64_t drupe_trace_oldest(uint32_t queue);
/* What is known of the beginning of work. */
typedef enum drupe_trace_start {
    DRUPE_TRACE_BEHIND,    /* older work of its device, or an event that it waits for, is not over */
    DRUPE_TRACE_PREPARING, /* nothing is in its way, and the driver has not begun: many compile then */
    DRUPE_TRACE_BEGUN      /* it has begun or is over, or nobody can tell */
} drupe_trace_start;
/* Of the submission with this number on a queue. Only work with an event can tell. Takes locks. */
DRUPE_API drupe_trace_start drupe_trace_start_of(uint32_t queue, uint64_t id);
/* Wait until a submission with this number, or a later one, was made, until drupe_trace_wake(), or until the
 * time is over. Costs submitters nothing but the look at a number. One thread at a time. */
DRUPE_API void drupe_trace_await(uint64_t number, uint64_t timeout_ns);
/* End the wait of drupe_trace_await(), or the next one if there is none. */
DRUPE_API void drupe_trace_wake(void);
/* The observer's words for where a record comes from, "" when there is nothing to say. Async-signal-safe. */
DRUPE_API void drupe_trace_place(uint32_t site, uint32_t cell, char *text, size_t size);
/* The id of the latest submission; 0: none yet. Async-signal-safe. */
DRUPE_API uint64_t drupe_trace_latest(void);
/* The last `count` records as lines of UTF-8, oldest first, as many of the latest as fit; returns the bytes
 * written, without a NUL. Async-signal-safe. */
DRUPE_API size_t drupe_trace_text(char *text, size_t size, size_t count);
/* "pending" and so on; never NULL. */
DRUPE_API const char *drupe_trace_status_name(drupe_trace_status status);

#endif
