/* Threads, what they are to do next, and the pool that has all of them. */
#ifndef DRUPE_HOST_SCHED_H
#define DRUPE_HOST_SCHED_H

#include "backends/host/host_machine.h"
#include <setjmp.h>

/* A worker. It is one record of all that a thread needs at hand, so it is wide; what other threads write has
 * lines of its own. */
struct drupe_host_worker {
    drupe_host_tpool *tpool;
    unsigned index;
    /* Its own thread's, by ready.c: */
    unsigned chain;        /* tasks run one after the other without a look at the list */
    drupe_host_task *next; /* to be run next */
    /* By host_worker.c. What it is at, for a fault that happens there; `busy` is not 0 while that is not our
     * own code. */
    _Atomic(int) busy;
    drupe_recovery recovery;
    jmp_buf landing; /* where it goes on after a fault */
    drupe_host_task *task;
    _Atomic(size_t) begin, end;
    _Atomic(uint64_t) taken; /* tasks so far */
    _Atomic(uint64_t) searches;
    unsigned spell; /* tasks since `spell_began`, when it last found one after a search */
    uint64_t spell_began;
    bool slow; /* the last spell was */
    /* tpool->lock, by tpool.c: */
    bool started, sleeping;
    pthread_t thread;
    pthread_cond_t wake;
    unsigned home_first, home_count; /* by topology.c: the range whose CPUs it runs on; count 0: all */
    /* By ready.c: */
    _Alignas(64) _Atomic(drupe_host_task *) inbox; /* what others have made ready, the newest first */
    _Alignas(64) pthread_mutex_t lock;             /* of the list */
    drupe_host_task *first, *last;                 /* ready, in order */
    _Atomic(size_t) listed;
};

/* Its lines by who writes to them: hardly anybody, workers that find and miss tasks, and those who sleep. */
struct drupe_host_tpool {
    drupe_host_sched *sched;
    void (*run)(drupe_host_worker *worker); /* what a thread does: the thread pool is below that */
    const char *name;
    drupe_host_worker *workers; /* `most` of them */
    unsigned most;
    _Atomic(unsigned) count; /* that may be at work */
    bool grows;              /* its tasks may wait for each other */
    bool opened, stopping;
    _Atomic(bool)
        quick; /* what they ran lately took less than waking somebody for it; by host_worker.c, as */
    _Atomic(bool) napping;      /* while it is quick, one of the sleeping ones looks from time to time, */
    _Atomic(unsigned) sleeping; /* or not yet started, of `count` */
    _Atomic(bool) alarmed;      /* the watcher looks whether they are stuck */
    _Alignas(64) _Atomic(unsigned) searching; /* awake without work, or on their way */
    _Atomic(bool) spinning; /* while it is quick, only one of them searches; by host_worker.c */
    _Alignas(64) pthread_mutex_t lock;
    drupe_service watcher; /* under `lock` */
};

/* --- tpool.c: threads ----------------------------------------------------------------------------------- */

drupe_status drupe_host_tpool_open(drupe_host_tpool *tpool, drupe_host_sched *sched,
                                   void (*run)(drupe_host_worker *worker), const char *name, unsigned count,
                                   unsigned most) DRUPE_MUST_CHECK;
void drupe_host_tpool_close(drupe_host_tpool *tpool); /* zeroed: nothing happens; nothing is in flight */
/* Make sure that at least one worker of a range runs. */
drupe_status drupe_host_tpool_start(drupe_host_tpool *tpool, unsigned first, unsigned count) DRUPE_MUST_CHECK;
/* Wake one sleeper of a range, or start one more thread; false if all are up. */
bool drupe_host_tpool_wake(drupe_host_tpool *tpool, unsigned first, unsigned count);
/* Whether nobody needs to be woken for one task that all may run: somebody is awake and quick, and another
 * one looks from time to time whether that is still so. After the task was handed over. */
bool drupe_host_tpool_attends(drupe_host_tpool *tpool);
/* Have somebody look whether the thread pool is stuck. */
void drupe_host_tpool_alarm(drupe_host_tpool *tpool);
/* Whether a task for all of them would have to wake somebody; a hint. */
bool drupe_host_tpool_asleep(drupe_host_tpool *tpool);
/* Whether anything is ready; a hint. */
bool drupe_host_tpool_backlog(drupe_host_tpool *tpool);
/* The worker whose thread calls this, or NULL. Async-signal-safe. */
drupe_host_worker *drupe_host_worker_self(void);
/* Its thread is lost: start another one in its place, or let the next task do it. `ended`: it is joined. */
void drupe_host_worker_replace(drupe_host_worker *worker, bool ended);

/* Whether anything is in its list or inbox. The inbox first: who empties it has counted its content as listed
 * before. A worker that goes to sleep would otherwise miss a task that only it may run, while another one,
 * which may not, turns the inbox round. */
static inline bool drupe_host_worker_listed(drupe_host_worker *worker)
{
    return atomic_load(&worker->inbox) || atomic_load(&worker->listed);
}

/* --- ready.c: ready tasks ------------------------------------------------------------------------------- */

/* Hand over a task without anything to wait for. */
void drupe_host_task_ready(drupe_host_task *task);
/* A ready task that this worker may run, taken off its list unless it is wide; or NULL. */
drupe_host_task *drupe_host_worker_find(drupe_host_worker *worker);
/* Whether anything is ready that nobody is at yet, or that more should come to. */
bool drupe_host_tpool_wanting(drupe_host_tpool *tpool);
/* The worker is done with its part of the task. True for its last worker, which has to finish it. */
bool drupe_host_worker_leave(drupe_host_task *task) DRUPE_MUST_CHECK;

/* --- host_worker.c, host_fault.c: what a worker does ---------------------------------------------------- */

/* Do tasks until the thread pool closes. */
void drupe_host_worker_run(drupe_host_worker *worker);
/* Called by a worker's thread as its first: what is on its stack above the caller survives faults. */
void drupe_host_worker_receive(drupe_host_worker *worker);
/* How it gets out of a task that faults. */
void drupe_host_worker_prepare(drupe_host_worker *worker, const drupe_host_task *task);
/* It got out, by itself: the task fails. */
void drupe_host_worker_recover(drupe_host_worker *worker);
/* The entry of the vtable for a worker that did not. */
drupe_status drupe_host_device_fault(drupe_device *device, const drupe_fault *fault);

/* --- sched.c -------------------------------------------------------------------------------------------- */

struct drupe_host_sched {
    pthread_mutex_t lock; /* around `done`, `random` and the queues' errors */
    pthread_cond_t done;  /* an event or a queue that somebody waits for */
    bool has_done;
    bool shuffle; /* DRUPE_HOST_SHUFFLE: random order and delays, nothing inline */
    uint64_t random;
    unsigned nworkers; /* of the thread pool that computes */
    drupe_host_tpool compute, functions;
    _Atomic(unsigned) nqueues; /* opened so far */
    drupe_host_machine machine;
    drupe_host_topology topology; /* of the thread pool that computes */
};

/* Wake those who wait for events and queues. */
void drupe_host_sched_tell(drupe_host_sched *sched);
/* Repeatable from the seed. */
uint64_t drupe_host_sched_random(drupe_host_sched *sched);
/* A malloc'ed copy, or NULL. */
drupe_error *drupe_host_error_copy(const drupe_error *error);

#endif
