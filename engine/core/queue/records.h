/* What a queue, an event, a submission in flight and a submission being made are. */
#ifndef DRUPE_CORE_RECORDS_H
#define DRUPE_CORE_RECORDS_H

#include "core/failure/failure_room.h"

typedef struct drupe_flight drupe_flight;

/* Something for a worker to do; part of what it is about. */
typedef struct drupe_job {
    struct drupe_job *next;
    void (*run)(struct drupe_job *job);
    void (*fail)(
        struct drupe_job *job); /* instead of the rest of run(), with the thread's error: it faulted */
    _Atomic(int) *busy;         /* the worker's: not 0 while run() is in the caller's code */
    const char *what;           /* static: what faulted, "host function" or the like */
} drupe_job;

/* What a copy that core makes in pieces begins with: `work->user` of a COPY with a body. */
typedef struct drupe_pieces {
    void (*hurry)(struct drupe_pieces *pieces); /* have its threads come while it is being started */
    bool brisk; /* its end is worth watching for: there are processors enough */
} drupe_pieces;

/* --- event.c -------------------------------------------------------------------------------------------- */

typedef enum drupe_phase {
    DRUPE_PHASE_HELD,     /* core has it */
    DRUPE_PHASE_RUNNING,  /* a host task on core's worker */
    DRUPE_PHASE_NATIVE,   /* the backend has it */
    DRUPE_PHASE_SETTLING, /* a thread is writing down why it failed */
    DRUPE_PHASE_COMPLETE,
    DRUPE_PHASE_FAILED
} drupe_phase;

/* What is the backend's begins on a cache line of its own: other threads write to it. */
struct drupe_event {
    _Alignas(64) drupe_object object;
    drupe_queue *queue;     /* kept, see `counted`; NULL: the caller ends it */
    _Atomic(int) phase;     /* drupe_phase */
    _Atomic(bool) notified; /* event_notify() was asked for */
    bool opened;            /* the backend has seen it: event_close() is due */
    bool turn;              /* of drupe_submit_turn(): the caller ends it */
    bool brisk;             /* while it runs, watching it costs less than being woken */
    bool inserted;          /* `behind` is set */
    bool counted;           /* it has an inner reference to its queue; else the queue counts it in `events` */
    /* Its device was lost before it was over: what it uses may still be written to. */
    _Atomic(bool) abandoned;
    uint64_t number;
    union {
        drupe_flight *flight;    /* borrowed, valid until the event has settled; without a queue its own */
        drupe_event *next_spare; /* among the free ones */
    };
    /* On another line, and 0 in all free ones, as only few events write to it: */
    uint64_t behind; /* of a barrier that core put between others: the number of what is before it; else 0 */
    drupe_event *settle_next;     /* of the thread that settles it */
    const drupe_failure *failure; /* once FAILED; malloc'ed unless it is that of the cause */
    drupe_cause *cause;           /* retained, once FAILED */
    drupe_event *older_spares;    /* of the first of a list of free ones: another such list */
};

/* --- Flights ----------------------------------------------------------------------------------------------
 */

/* Call the release functions of keeps that were taken; NULL functions are skipped. */
void drupe_keeps_drop(const drupe_keep *keeps, size_t count);

#define DRUPE_FLIGHT_REFS  8
#define DRUPE_FLIGHT_WAITS 4

/* What every submission needs comes first, on few cache lines. */
struct drupe_flight {
    _Alignas(64) drupe_flight *next;
    drupe_event *event; /* retained; NULL: nobody looks */
    drupe_subject what;
    bool held;
    bool fallible;     /* may fail for a reason that core knows: what follows must wait for it by name */
    bool early;        /* the driver may read its source at once: see launch.c */
    bool done;         /* it was over when it was launched, and is on no list */
    bool passed;       /* its references belong to the flight behind it, which uses the same */
    bool event_passed; /* so does that to its event, to one that waits for it */
    uint32_t nwaits;
    drupe_event **waits; /* retained */
    uint32_t refs_capacity, waits_capacity;
    union {
        void *work_copy;            /* malloc'ed: what `work` points to */
        drupe_flight *older_spares; /* of the first of a list of free ones: another such list */
    };
    drupe_event *marker; /* retained: before a host task, the end of what stands before it on the queue */
    /* Which of `refs` it writes, as far as they are memory (those from 64 on all), until they were marked. */
    _Atomic(uint64_t) written;
    uint64_t replaced; /* those of them of which no byte stays */
    drupe_cause *doom; /* borrowed while it is being placed: why what it reads was not written, or NULL */
    drupe_event *waits_inline[DRUPE_FLIGHT_WAITS];
    drupe_brief brief;
    drupe_keep refs_inline[DRUPE_FLIGHT_REFS];
    char label_copy[64];
    drupe_work work; /* of a held one */
    drupe_job job;   /* of a host task that core runs */
};

/* What is the backend's begins on a cache line of its own. */
struct drupe_queue {
    drupe_queue_base base;
    uint32_t trace_device; /* drupe_trace_device() of its device */
    bool opened;
    pthread_mutex_t lock;
    drupe_flight *head, *tail; /* in the order of submission */
    drupe_flight *held;        /* the first that the backend does not have, or NULL */
    drupe_flight *held_tail;   /* of an out-of-order queue, where the held ones are a list of their own */
    drupe_flight *scan;        /* of an out-of-order queue: what was looked at last */
    drupe_flight *gate; /* of an in-order queue: the first flight with an event that is not over, if known */
    drupe_flight *looked;       /* of an in-order queue: the last that a look has told to be over; or NULL */
    drupe_flight *spare;        /* free records: a list, */
    drupe_flight *older_spares; /* and a list of such lists, each by its first one */
    _Atomic(drupe_flight *) returned;         /* free records, given back without the lock */
    drupe_event *spare_events, *older_events; /* the same of events */
    _Atomic(uintptr_t) returned_events;       /* and a bit once all events are counted */
    size_t events;                            /* that are not counted, the spare ones among them */
    _Atomic(size_t) flights;                  /* changed under the lock */
    _Atomic(uint64_t) stuck; /* the oldest submission when waiting did not help; see pace.c */
    size_t unmarked;         /* submissions without an event since the last one with one */
    size_t unmarked_bytes;   /* what they keep alive */
    uint64_t proven;         /* submissions with numbers up to this one are over */
    uint64_t timed_from;     /* of PROFILING that came later: events of those before have no times */
    drupe_event *guard; /* the last fallible submission that is not known to be over; its flight keeps it */
    drupe_event *fetch; /* of an in-order queue: the last copy to plain host memory; its flight keeps it */
    drupe_event
        *fence; /* of an out-of-order queue: its last barrier, until it is dropped; its flight keeps it */
    drupe_cause *breach; /* retained: why the last barrier failed, once it was dropped */
    unsigned polls, takes;
    size_t unlooked_bytes; /* what submissions since the last look keep alive */
    uint64_t ticks;        /* of a submission: when it looked at what was over, or 0 */
    bool unflushed;
    bool shared;              /* others may give work to the driver's queue */
    bool silent;              /* work without an event was launched since the last wait */
    bool leaps;               /* a kernel that is complete proves those before it: see flight.c */
    bool is_default;          /* a device points to it; library lock */
    drupe_queue *prev, *next; /* all queues, queue.c's lock */
    drupe_queue *hold_next;   /* queues with held work, hold lock */
    bool on_hold;
};

static inline drupe_subject *drupe_flight_subject(drupe_flight *flight)
{
    return flight ? &flight->what : NULL;
}

/* Everything about one submission but its work; `refs` are taken. */
typedef struct drupe_ticket {
    drupe_queue *queue;
    drupe_event *const *waits; /* borrowed */
    size_t nwaits;
    const char *label; /* borrowed */
    bool label_static; /* it outlives the submission */
    bool kept;         /* the host memory that it uses is among `refs` */
    bool ordered;
    uint32_t site;
    drupe_keep *refs; /* the array is borrowed, the objects are taken */
    size_t nrefs;
    size_t bytes;                 /* what they keep alive */
    uint64_t written, replaced;   /* as in drupe_flight */
    uint64_t read;                /* those of them whose contents count, as far as they were looked at */
    unsigned marks_seen;          /* drupe_marks_version before that */
    drupe_cause *doom;            /* borrowed, as in drupe_flight */
    const drupe_access *accesses; /* borrowed */
    size_t naccesses;
} drupe_ticket;

/* Whether it is a barrier to an out-of-order queue. */
static inline bool drupe_ticket_fences(const drupe_ticket *ticket, const drupe_work *work)
{
    return ticket->ordered || work->kind == DRUPE_WORK_BARRIER;
}

/* The longest single wait in a driver: then the device is looked at. */
#define DRUPE_SLICE_NS UINT64_C(100000000)

#endif
