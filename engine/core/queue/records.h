/* What a queue, an event, a submission in flight and a submission being made are. */
#ifndef DRUPE_CORE_RECORDS_H
#define DRUPE_CORE_RECORDS_H

#include "core/failure/failure_room.h"
#include <sys/queue.h>

typedef struct drupe_inflight drupe_inflight;

/* Something for a worker to do; part of what it is about. worker.c's. */
typedef struct drupe_job {
    STAILQ_ENTRY(drupe_job) next;
    void (*run)(struct drupe_job *job); /* these three as drupe_worker_post() got them */
    void (*fail)(struct drupe_job *job);
    const char *what;
    _Atomic(int) *busy; /* the worker's: not 0 while run() is in the caller's code */
} drupe_job;

/* What a copy that core makes in pieces begins with: `work->user` of a COPY with a body. */
typedef struct drupe_pieces {
    void (*hurry)(struct drupe_pieces *pieces); /* have its threads come while it is being started */
    /* For a thread that waits: copy what nobody has begun, until the deadline; whether all is copied. The
     * copy is held meanwhile. NULL: no other thread may touch the memory. */
    bool (*help)(struct drupe_pieces *pieces, uint64_t deadline);
    void (*hold)(struct drupe_pieces *pieces);
    void (*let_go)(void *pieces);
    bool spins; /* its end is worth watching for: there are processors enough */
} drupe_pieces;

/* --- event.c -------------------------------------------------------------------------------------------- */

typedef enum drupe_phase {
    DRUPE_PHASE_DEFERRED, /* core has it */
    DRUPE_PHASE_RUNNING,  /* a host function or copy on core's worker, or the caller's turn */
    DRUPE_PHASE_NATIVE,   /* the backend has it */
    DRUPE_PHASE_SETTLING, /* a thread is writing down why it failed */
    DRUPE_PHASE_COMPLETE,
    DRUPE_PHASE_FAILED
} drupe_phase;

/* What is the backend's begins on a cache line of its own: other threads write to it. */
struct drupe_event {
    _Alignas(64) drupe_object object;
    drupe_queue *queue;     /* with an inner reference of the event's memory; NULL: the caller ends it */
    _Atomic(int) phase;     /* drupe_phase */
    _Atomic(bool) notified; /* event_notify() was asked for */
    bool opened;            /* the backend has seen it: event_close() is due */
    bool turn;              /* of drupe_submit_turn(): the caller ends it */
    bool spins;             /* while it runs, watching it costs less than being woken */
    bool inserted;          /* `behind` is set */
    /* Its device was lost before it was over: what it uses may still be written to. */
    _Atomic(bool) abandoned;
    uint64_t number;
    union {
        drupe_inflight *entry;   /* borrowed, valid until the event has settled; without a queue its own */
        drupe_event *next_spare; /* among the free ones */
    };
    /* On another line, and 0 in all free ones, as only few events write to it: */
    uint64_t behind; /* of a barrier that core put between others: the number of what is before it; else 0 */
    drupe_event *settle_next;     /* of the thread that settles it */
    const drupe_failure *failure; /* once FAILED; malloc'ed unless it is that of the cause */
    drupe_cause *cause;           /* retained, once FAILED */
};

/* --- Entries -------------------------------------------------------------------------------------------- */

/* Call the release functions of keeps that were taken; NULL functions are skipped. */
void drupe_keeps_drop(const drupe_keep *keeps, size_t count);

#define DRUPE_INFLIGHT_REFS  8
#define DRUPE_INFLIGHT_WAITS 4

/* Of a deferred entry. deferred.c's; there is none in an entry that is not deferred. */
typedef struct drupe_deferral {
    drupe_event *marker; /* retained: before work that core or the caller does, the end of what stands before
                            it on the queue */
    void *copy;          /* malloc'ed: what `work` points to */
    drupe_work work;
    drupe_job job; /* of work that core's worker does */
    uint64_t read; /* which of the entry's `refs` it reads, as `written` has those that it writes */
} drupe_deferral;

/* What every submission needs comes first, on few cache lines. inflight.c's; `done` is the backend's answer.
 */
struct drupe_inflight {
    _Alignas(64) drupe_inflight *next;
    drupe_event *event; /* retained; NULL: nobody looks */
    bool deferred;
    bool done;         /* it was over when it was launched, and is on no list */
    bool passed;       /* the next entry owns this one's references */
    bool checks_first; /* as in drupe_submission */
    uint32_t nwaits, refs_capacity;
    drupe_subject what;  /* its first half still on the first line */
    drupe_event **waits; /* retained */
    uint32_t waits_capacity;
    /* Which of `refs` it writes, as far as they are memory (those from 64 on all), until they were marked. */
    _Atomic(uint64_t) written;
    uint64_t replaced;       /* those of them of which no byte stays */
    drupe_deferral deferral; /* its beginning beside what is read when the entry is dropped */
    drupe_event *waits_inline[DRUPE_INFLIGHT_WAITS];
    drupe_arg_summary summary;
    drupe_keep refs_inline[DRUPE_INFLIGHT_REFS];
    char label_copy[64];
};

/* The parts of a queue, each written by one file, under the queue's lock, unless it says otherwise. */

/* What is in flight, in the order of submission. inflight.c's. */
typedef struct drupe_order {
    drupe_inflight *head, *tail;
    drupe_inflight *deferred;   /* the first that is deferred; of an in-order queue all behind it are, too */
    drupe_inflight *first_open; /* of an in-order queue: the first with an event that is not over, if known */
    drupe_inflight *looked;     /* of an in-order queue: the last that a look has told to be over; or NULL */
    _Atomic(size_t) count;
    bool unflushed; /* the driver got work since the last flush */
    bool polled;    /* the waiter looks at the first deferred one without the lock: it stays where it is */
} drupe_order;

/* Free entries. inflight.c's. */
typedef struct drupe_records {
    drupe_inflight *spare;
    _Atomic(drupe_inflight *) returned; /* given back without the lock */
} drupe_records;

/* Free events. event.c's. */
typedef struct drupe_event_store {
    drupe_event *spare;
    _Atomic(uintptr_t) returned; /* and a bit once nothing is kept */
} drupe_event_store;

/* Work without an event, and how its end is known. inflight.c's. */
typedef struct drupe_proof {
    size_t unmarked; /* submissions without an event since the last one with one; not the marks of mark.c */
    size_t unmarked_bytes; /* what they keep alive */
    uint64_t proven;       /* submissions with numbers up to this one are over */
    _Atomic(bool) silent;  /* work without an event was launched since the last wait */
} drupe_proof;

/* What the next submission to an in-order queue has to wait for by name; the entries keep the events.
 * launch.c's. */
typedef struct drupe_names {
    drupe_event *last_fallible; /* the last fallible submission that is not known to be over */
    drupe_event *fetch;         /* the last copy to plain host memory */
} drupe_names;

/* Of an out-of-order queue. unordered.c's. */
typedef struct drupe_unordered {
    drupe_inflight *scan;  /* what was looked at last */
    drupe_event *barrier;  /* the last one, until its entry is dropped */
    drupe_cause *breached; /* retained: why that failed, once it was dropped */
} drupe_unordered;

/* When to look at what is over. inflight.c's. */
typedef struct drupe_polling {
    unsigned polls;
    size_t unlooked_bytes; /* what submissions since the last look keep alive */
    uint64_t ticks;        /* of a submission: when it looked at what was over, or 0 */
} drupe_polling;

/* What is the backend's begins on a cache line of its own. With those of its parts these are more than 20
 * members: a queue is what a submission touches from end to end under one lock, so it is one piece of memory.
 */
struct drupe_queue {
    drupe_queue_base base;
    drupe_trace_queue traced; /* as the trace tells it */
    pthread_mutex_t lock;
    drupe_order order;
    drupe_records records;
    drupe_event_store store;
    /* The oldest submission when waiting did not help; throttle.c's, without the lock. */
    _Atomic(uint64_t) stuck;
    drupe_proof proof;
    uint64_t timed_from; /* of PROFILING that came later: events of those before have no times */
    drupe_names names;
    drupe_unordered unordered;
    drupe_polling polling;
    _Atomic(bool) postponed;      /* who builds on core holds work back; postpone.c's, without the lock */
    size_t near;                  /* so large may copies be that at_once.c makes; queue_open.c's */
    bool infers;                  /* a kernel that is complete proves those before it: see inflight.c */
    _Atomic(bool) shared;         /* others may give work to the driver's queue */
    bool is_default;              /* a device points to it; library lock */
    LIST_ENTRY(drupe_queue) link; /* all queues; queue_list.c's, with its lock */
    /* Queues with deferred work; waiter.c's, with its lock. */
    SLIST_ENTRY(drupe_queue) deferred;
    bool on_deferred_list;
};

/* What a submission keeps alive, and what it does with the memory among that. */
typedef struct drupe_operands {
    drupe_keep *refs; /* the array is borrowed, the objects are taken */
    size_t nrefs;
    size_t bytes;                 /* of the memory among them */
    uint64_t written, replaced;   /* as in drupe_inflight */
    uint64_t read;                /* those of them whose contents count, as far as they were looked at */
    unsigned marks_seen;          /* drupe_marks_version before that */
    drupe_cause *pending_failure; /* borrowed: why something that is read was not written, or NULL */
} drupe_operands;

/* Everything about one submission but its work. */
typedef struct drupe_submit_info {
    drupe_queue *queue;
    drupe_event *const *waits; /* borrowed */
    size_t nwaits;
    const char *label; /* borrowed */
    bool label_static; /* it outlives the submission */
    bool kept;         /* the host memory that it uses is among what it keeps alive */
    bool ordered;
    uint32_t site;
    drupe_operands uses;
    const drupe_access *accesses; /* borrowed */
    size_t naccesses;
} drupe_submit_info;

/* Whether it is a barrier to an out-of-order queue. */
static inline bool drupe_submit_info_is_barrier(const drupe_submit_info *info, const drupe_work *work)
{
    return info->ordered || work->kind == DRUPE_WORK_BARRIER;
}

/* The longest single wait in a driver: then the device is looked at. */
#define DRUPE_SLICE_NS UINT64_C(100000000)

#endif
