/* Native state of the engine's objects. */
#ifndef DRUPE_HOST_STATE_H
#define DRUPE_HOST_STATE_H

#include "backends/builtin.h"
#include "backends/host/host_sched.h"

typedef struct drupe_host_device {
    drupe_host_sched *sched;
    unsigned first, count; /* its workers */
} drupe_host_device;

/* Submissions are serialised by core; what workers touch is atomic or behind the lock. The submitter counts
 * what it has issued, those who finish tasks count what they have finished, and neither writes the other's.
 * It is wide because each of them has a part with lines of its own, and core allocates it as one. */
typedef struct drupe_host_queue {
    _Atomic(drupe_host_task *)
        tail;       /* the last unfinished task; not if unordered. Core has its line fetched */
    char alone[56]; /* Hardly ever written: */
    drupe_queue *self;
    drupe_host_sched *sched;
    drupe_host_device *device;
    _Atomic(bool) profiling;
    bool unordered;
    bool urgent;             /* its tasks go to the front of the list */
    bool inlines;            /* small work may run on the submitting thread */
    bool started[2];         /* there is a worker for its tasks, for its functions */
    uint32_t home;           /* which worker of a range its tasks go to, of 2^32 */
    _Atomic(unsigned) round; /* goes up when what has not started is given up */
    _Atomic(bool) faulted;   /* `error` is set */
    drupe_error *error;      /* malloc'ed: a fault that the queue has told nobody of; sched->lock */
    drupe_error *fate;       /* malloc'ed: that fault, or NULL */
    _Atomic(uint64_t) begun; /* the submission that goes on although its round is over, */
    _Atomic(unsigned) begun_since; /* if it is of this round or a later one */
    char apart[64];          /* By the submitter: */
    drupe_host_task *spare;
    drupe_host_task *oldest, *newest; /* in-order: all issued that were not taken back, linked by `later` */
    uint64_t taken_back, seen;        /* of the finished ones; when last looked at, how many there were */
    uint64_t stuck;                   /* unfinished tasks when holding the submitter back was of no use */
    _Atomic(uint64_t) issued;         /* tasks so far */
    char far_apart[64];               /* By those who finish tasks: */
    _Atomic(uint64_t) finished; /* twice the number of finished tasks, plus one if somebody waits for all */
    _Atomic(uint64_t) failed_up_to; /* in-order: tasks with numbers up to this one stand behind a fault */
    _Atomic(drupe_host_task *) returned; /* unordered: for `spare` */
} drupe_host_queue;

static inline bool drupe_host_profiling(const drupe_host_queue *queue)
{
    return atomic_load_explicit(&((drupe_host_queue *)queue)->profiling, memory_order_relaxed);
}

/* Tasks that are not over. */
static inline uint64_t drupe_host_queue_backlog(drupe_host_queue *queue)
{
    uint64_t finished = atomic_load_explicit(&queue->finished, memory_order_acquire) / 2;
    return atomic_load_explicit(&queue->issued, memory_order_relaxed) - finished;
}

/* A task that waits for an event. */
typedef struct drupe_host_link {
    _Alignas(16) struct drupe_host_link *next;
    drupe_host_task *task;
} drupe_host_link;

/* In the lowest bits of an event's `end`. */
enum { DRUPE_HOST_WAITED = 1, DRUPE_HOST_NOTIFY = 2, DRUPE_HOST_OVER = 4, DRUPE_HOST_FAILED = 8 };
#define DRUPE_HOST_BITS ((uintptr_t)15)

/* One line of the cache. */
typedef struct drupe_host_event {
    _Atomic(uintptr_t) end; /* the tasks that wait for it, as links, and bits; without links once it is OVER,
                               and nothing else is touched then */
    _Atomic(int) stage;     /* QUEUED, SUBMITTED or RUNNING */
    drupe_event *self;
    drupe_error *error; /* malloc'ed, once FAILED; NULL without memory */
    /* Of a profiling queue; `started` by the first of its workers, 0: not yet. */
    uint64_t queued, submitted, ended;
    _Atomic(uint64_t) started;
} drupe_host_event;

static inline bool drupe_host_event_complete(const drupe_host_event *event)
{
    uintptr_t end = atomic_load_explicit(&((drupe_host_event *)event)->end, memory_order_acquire);
    return (end & (DRUPE_HOST_OVER | DRUPE_HOST_FAILED)) == DRUPE_HOST_OVER;
}

typedef struct drupe_host_program {
    bool inlines;
    drupe_host_code *code; /* retained; NULL: built-in kernels */
} drupe_host_program;

typedef struct drupe_host_kernel {
    const drupe_builtin *builtin;
    drupe_host_code *code; /* the program's, borrowed; `entry` of it */
    size_t entry;
    bool inlines; /* its arguments are known to be good, so that it may run on the submitting thread */
} drupe_host_kernel;

#endif
