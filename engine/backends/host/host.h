/* The `host` backend's inside.
 *
 * Two crews of threads serve the root device and all its sub-devices. The workers of the first are numbered
 * from 0 and run kernels, copies and fills; a device is a range of them, so that sub-devices of one split
 * share none. The second runs host functions only: they may wait for device work and for each other, so it
 * grows when all of its workers seem to be stuck.
 *
 * A submission is a task. It counts what it waits for: its turn on its queue, and events. Whoever takes the
 * count to zero makes it ready: a worker runs one of the tasks that it has just set free itself and puts the
 * others into its list; everybody else drops them into a worker's inbox. A worker without work looks through
 * the lists of the others, for a while, then sleeps. Small work on an idle queue never becomes a task: it
 * runs on the submitting thread, because waking a worker costs more than the work.
 *
 * A worker whose task faults leaves it and goes on, or is given up and its thread replaced: while a body
 * runs, that holds no lock of ours, and nothing but a share of the task belongs to it.
 *
 * Threads: tasks change hands through atomics alone; locks are held for a few instructions and never two at a
 * time, but for crew->lock, under which lists may be looked through, and pool->lock, a leaf. */
#ifndef DRUPE_HOST_H
#define DRUPE_HOST_H

#include "backends/backend.h"
#include "base/service.h"
#include <setjmp.h>

#define DRUPE_HOST_MAX_WORKERS DRUPE_HOST_THREADS_MOST

typedef struct drupe_host_pool drupe_host_pool;
typedef struct drupe_host_task drupe_host_task;
typedef struct drupe_host_code drupe_host_code; /* code.h */
typedef struct drupe_host_crew drupe_host_crew;

/* --- machine.c, limits.c: what this machine is -----------------------------------------------------------
 */

typedef struct drupe_host_machine {
    char name[128], vendor[64];
    unsigned threads;     /* workers to start: CPUs this process may use, or DRUPE_HOST_THREADS */
    uint64_t memory;      /* bytes, the control group's limit respected */
    uint64_t cache, line; /* bytes of the last cache level and of a line; 0 if unknown */
    uint64_t clock_mhz;   /* 0 if unknown */
    bool corrects_errors; /* memory errors are counted, so they are corrected; false if unknown */
} drupe_host_machine;

void drupe_host_machine_probe(drupe_host_machine *machine);
/* What tells apart processors that run different code: 32 hexadecimal digits, static. Any thread. */
const char *drupe_host_features(void);

/* --- topology.c: what its CPUs share ---------------------------------------------------------------------
 */

typedef struct drupe_host_place drupe_host_place;

/* Zeroed = nothing is known. */
typedef struct drupe_host_topology {
    drupe_host_place *places; /* of each worker */
    unsigned count;
} drupe_host_topology;

typedef struct drupe_host_worker drupe_host_worker;

/* Of as many workers; DRUPE_TEST_SYS names a folder that stands for /sys, its CPUs are all allowed then. */
void drupe_host_topology_probe(drupe_host_topology *topology, unsigned threads);
void drupe_host_topology_clear(drupe_host_topology *topology);
/* How many of the workers from `first` on share the domain with it; 0 if that is unknown. */
unsigned drupe_host_topology_run(const drupe_host_topology *topology, drupe_domain domain, unsigned first,
                                 unsigned count);
/* Into how many parts the domain divides a range; 0 if that is unknown. */
unsigned drupe_host_topology_parts(const drupe_host_topology *topology, drupe_domain domain, unsigned first,
                                   unsigned count);
/* Have the workers of a range run on its CPUs only. */
void drupe_host_pool_settle(drupe_host_pool *pool, unsigned first, unsigned count);
/* Tie a worker that has just been started to its home, if it has one. Needs crew->lock. */
void drupe_host_worker_bind(drupe_host_worker *worker);

/* --- crew.c, ready.c: threads, and what they are to do next
 * --------------------------------------------------
 */

struct drupe_host_worker {
    drupe_host_crew *crew;
    unsigned index;
    unsigned chain;        /* tasks run one after the other without a look at the list */
    unsigned interval;     /* ns between two looks for work */
    uint64_t taken_before; /* of `taken`: at the last search */
    unsigned spell;        /* tasks since `spell_began`, when it last found one after a search */
    uint64_t spell_began;
    bool slow;             /* the last spell was */
    drupe_host_task *next; /* its own thread's: to be run next */
    /* What it is at, for a fault that happens there; `busy` is not 0 while that is not our own code. */
    _Atomic(int) busy;
    drupe_recovery recovery;
    jmp_buf landing; /* where it goes on after a fault */
    drupe_host_task *task;
    _Atomic(size_t) begin, end;
    _Atomic(uint64_t) taken; /* tasks so far */
    _Atomic(uint64_t) searches;
    bool started, sleeping; /* crew->lock */
    pthread_t thread;
    pthread_cond_t wake;
    unsigned home_first, home_count;               /* the range whose CPUs it runs on; count 0: all */
    _Alignas(64) _Atomic(drupe_host_task *) inbox; /* what others have made ready, the newest first */
    _Alignas(64) pthread_mutex_t lock;             /* of the list */
    drupe_host_task *first, *last;                 /* ready, in order */
    _Atomic(size_t) listed;
};

/* Its lines by who writes to them: hardly anybody, workers that find and miss tasks, and those who sleep. */
struct drupe_host_crew {
    drupe_host_pool *pool;
    const char *name;
    drupe_host_worker *workers; /* `most` of them */
    unsigned most;
    _Atomic(unsigned) count; /* that may be at work */
    bool grows;              /* its tasks may wait for each other */
    bool opened, stopping;
    _Atomic(bool) quick;        /* what they ran lately took less than waking somebody for it */
    _Atomic(bool) napping;      /* while it is quick, one of the sleeping ones looks from time to time, */
    _Atomic(unsigned) sleeping; /* or not yet started, of `count` */
    _Atomic(bool) alarmed;      /* the watcher looks whether they are stuck */
    _Atomic(bool) hurried;      /* somebody has begun to wait: who searches looks at once; a hint */
    _Alignas(64) _Atomic(unsigned) searching; /* awake without work, or on their way */
    _Atomic(bool) spinning;                   /* while it is quick, only one of them searches */
    _Alignas(64) pthread_mutex_t lock;
    drupe_service watcher; /* under `lock` */
};

drupe_status drupe_host_crew_open(drupe_host_crew *crew, drupe_host_pool *pool, const char *name,
                                  unsigned count, unsigned most) DRUPE_MUST_CHECK;
void drupe_host_crew_close(drupe_host_crew *crew); /* zeroed: nothing happens; nothing is in flight */
/* Make sure that at least one worker of a range runs. */
drupe_status drupe_host_crew_start(drupe_host_crew *crew, unsigned first, unsigned count) DRUPE_MUST_CHECK;
/* Wake one sleeper of a range, or start one more thread; false if all are up. */
bool drupe_host_crew_wake(drupe_host_crew *crew, unsigned first, unsigned count);
/* Whether nobody needs to be woken for one task that all may run: somebody is awake and quick, and another
 * one looks from time to time whether that is still so. After the task was handed over. */
bool drupe_host_crew_attends(drupe_host_crew *crew);
/* Have somebody look whether the crew is stuck. */
void drupe_host_crew_alarm(drupe_host_crew *crew);
/* Hand over a task without anything to wait for. */
void drupe_host_task_ready(drupe_host_task *task);
/* A ready task that this worker may run, taken off its list unless it is wide; or NULL. */
drupe_host_task *drupe_host_worker_find(drupe_host_worker *worker);
/* Whether anything is ready; a hint. */
bool drupe_host_crew_backlog(drupe_host_crew *crew);
/* The worker whose thread calls this, or NULL. Async-signal-safe. */
drupe_host_worker *drupe_host_worker_self(void);
/* Its thread is lost: start another one in its place, or let the next task do it. `ended`: it is joined. */
void drupe_host_worker_replace(drupe_host_worker *worker, bool ended);
/* The worker is done with its part of the task, which ends with its last worker. */
void drupe_host_worker_leave(drupe_host_task *task);

/* fault.c: called by a worker's thread as its first: what is on its stack above the caller survives faults.
 */
void drupe_host_worker_receive(drupe_host_worker *worker);
/* How it gets out of a task that faults. */
void drupe_host_worker_prepare(drupe_host_worker *worker, const drupe_host_task *task);
/* It got out, by itself: the task fails. */
void drupe_host_worker_recover(drupe_host_worker *worker);
/* The entry of the vtable for a worker that did not. */
drupe_status drupe_host_device_fault(drupe_device *device, const drupe_fault *fault);
/* A malloc'ed copy, or NULL. */
drupe_error *drupe_host_error_copy(const drupe_error *error);

/* --- pool.c ----------------------------------------------------------------------------------------------
 */

struct drupe_host_pool {
    pthread_mutex_t lock; /* around `done`, `random` and the queues' errors */
    pthread_cond_t done;  /* an event or a queue that somebody waits for */
    bool has_done;
    bool shuffle; /* DRUPE_HOST_SHUFFLE: random order and delays, nothing inline */
    uint64_t random;
    unsigned nworkers; /* of the crew that computes */
    drupe_host_crew compute, functions;
    _Atomic(unsigned) nqueues; /* opened so far */
    drupe_host_machine machine;
    drupe_host_topology topology; /* of the crew that computes */
};

drupe_status drupe_host_pool_open(drupe_host_pool **pool) DRUPE_MUST_CHECK;
void drupe_host_pool_close(drupe_host_pool *pool); /* NULL-safe; nothing is in flight */
/* The caller is about to wait. */
void drupe_host_pool_hurry(drupe_host_pool *pool);
/* Wake those who wait for events and queues. */
void drupe_host_pool_tell(drupe_host_pool *pool);
/* Repeatable from the seed. */
uint64_t drupe_host_pool_random(drupe_host_pool *pool);

/* --- Native state of the engine's objects -----------------------------------------------------------------
 */

typedef struct drupe_host_device {
    drupe_host_pool *pool;
    unsigned first, count; /* its workers */
} drupe_host_device;

/* Submissions are serialised by core; what workers touch is atomic or behind the lock. The submitter counts
 * what it has issued, those who finish tasks count what they have finished, and neither writes the other's.
 */
typedef struct drupe_host_queue {
    _Atomic(drupe_host_task *)
        tail;       /* the last unfinished task; not if unordered. Core has its line fetched */
    char alone[56]; /* Hardly ever written: */
    drupe_host_pool *pool;
    drupe_host_device *device;
    _Atomic(bool) profiling;
    bool unordered;
    bool urgent;             /* its tasks go to the front of the list */
    bool inlines;            /* small work may run on the submitting thread */
    bool started[2];         /* there is a worker for its tasks, for its functions */
    uint32_t home;           /* which worker of a range its tasks go to, of 2^32 */
    _Atomic(unsigned) round; /* goes up when what has not started is given up */
    _Atomic(bool) faulted;   /* `error` is set */
    drupe_error *error;      /* malloc'ed: a fault that the queue has told nobody of; pool->lock */
    drupe_error *fate;       /* malloc'ed: that fault, or NULL */
    char apart[64];          /* By the submitter: */
    drupe_host_task *spare;
    drupe_host_task *oldest, *newest; /* in-order: all issued that were not taken back, linked by `later` */
    uint64_t taken_back, seen;        /* of the finished ones; when last looked at, how many there were */
    unsigned takes;
    uint64_t stuck;             /* unfinished tasks when holding the submitter back was of no use */
    _Atomic(uint64_t) issued;   /* tasks so far */
    char far_apart[64];         /* By those who finish tasks: */
    _Atomic(uint64_t) finished; /* twice the number of finished tasks, plus one if somebody waits for all */
    _Atomic(uint64_t) doomed;   /* in-order: tasks with numbers up to this one stand behind a fault */
    _Atomic(drupe_host_task *) returned;   /* unordered: for `spare` */
    pthread_mutex_t lock;                  /* unordered: */
    size_t running;                        /* tasks that had their turn and are not over */
    bool closed;                           /* one of them is a barrier */
    drupe_host_task *parked, *parked_last; /* a barrier that waits for them, and what stands behind it */
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

/* --- task.c -----------------------------------------------------------------------------------------------
 */

#define DRUPE_HOST_LINKS  4
#define DRUPE_HOST_ARGS   12
#define DRUPE_HOST_VALUES 512

typedef enum drupe_host_kind { DRUPE_HOST_MOVE, DRUPE_HOST_KERNEL, DRUPE_HOST_FUNCTION } drupe_host_kind;

/* What every task needs comes first: two lines that the submitter fills in and a worker writes to. The third
 * is not the submitter's, the fourth has what it waits for. */
struct drupe_host_task {
    _Alignas(64) drupe_host_task *next; /* in a list of the ready, or on an unordered queue */
    drupe_host_queue *queue;
    drupe_host_crew *crew;
    drupe_host_event *event; /* or NULL */
    drupe_host_event
        *guard; /* over when it has its turn: should it have failed, this fails as well; or NULL */
    /* Do items [begin, end). */
    void (*body)(drupe_host_task *task, size_t begin, size_t end);
    union {
        drupe_host_fn fn;
        const drupe_builtin *builtin;
    };
    union {
        void *user;
        drupe_host_code *code; /* retained: where `builtin` is, unless it is the engine's own; or NULL */
    };
    _Atomic(unsigned) pending; /* what it still waits for */
    unsigned first, count;     /* the workers that may run it */
    unsigned round;            /* of its queue when it was made */
    uint8_t kind;              /* drupe_host_kind */
    _Atomic(bool) failed;
    _Atomic(bool) faulted; /* `error` is that of a fault */
    _Atomic(bool) stuck;   /* a thread is parked inside of it for ever */
    bool wide;             /* several workers may run shares of it: it stays listed while there are any */
    bool listed;           /* home->lock; wide ones only */
    bool barrier;          /* on an unordered queue */
    bool more_links, more_args;        /* malloc'ed */
    uint64_t number;                   /* of those issued on its queue, from 1 */
    uint64_t submission;               /* drupe_submit's number */
    _Atomic(drupe_host_task *) behind; /* on its queue */
    drupe_host_task *later;       /* issued after it on its queue, or the next spare one; the submitter's */
    size_t items;                 /* 0: nothing is to be run */
    _Atomic(drupe_error *) error; /* malloc'ed: of its host function, or its fault */
    /* The third line. */
    drupe_host_task *prev;   /* as next */
    size_t grain;            /* with several items: a worker takes so many at a time */
    drupe_host_link *links;  /* `more_links`: these instead of links_inline */
    _Atomic(size_t) cursor;  /* wide */
    drupe_host_worker *home; /* wide: in whose list it is */
    unsigned running;        /* wide: workers that are at it; home->lock */
    _Alignas(64) drupe_host_link links_inline[DRUPE_HOST_LINKS];
    void *dst;
    const void *src;
    size_t bytes, pattern_size;
    const void **args; /* of a kernel: args_inline, or more, together with the values */
    const void *args_inline[DRUPE_HOST_ARGS];
    _Alignas(16) unsigned char values[DRUPE_HOST_VALUES]; /* argument values, or a fill's pattern */
};

/* A task for `s`, not yet queued. */
drupe_status drupe_host_task_new(const drupe_submit *s, drupe_host_task **task) DRUPE_MUST_CHECK;
/* Room for `count` argument pointers and `bytes` of values behind them; the values' address. */
drupe_status drupe_host_task_room(drupe_host_task *task, size_t count, size_t bytes,
                                  unsigned char **values) DRUPE_MUST_CHECK;
/* Put it on its queue behind what is there; *taken* also on failure. */
drupe_status drupe_host_task_queue(const drupe_submit *s, drupe_host_task *task) DRUPE_MUST_CHECK;
/* All shares are done, or it must not run. */
void drupe_host_task_finish(drupe_host_task *task);
/* One that was never queued. */
void drupe_host_task_free(drupe_host_task *task);
/* All tasks of a queue on which nothing is unfinished. */
void drupe_host_task_forget(drupe_host_queue *queue);
/* An event whose work was done inline. */
void drupe_host_event_close_complete(drupe_host_event *event);

/* --- The vtable's entries ----------------------------------------------------------------------------------
 */

/* info.c */
drupe_status drupe_host_device_info(drupe_device *device, drupe_info key, void *value, size_t size,
                                    size_t *needed);
/* device.c */
drupe_status drupe_host_device_split(drupe_device *device, const drupe_partition *partition,
                                     drupe_device *const *subs, size_t count);
drupe_status drupe_host_device_parts(drupe_device *device, drupe_domain domain, size_t *count);

/* memory.c */
drupe_status drupe_host_mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                  size_t size, size_t align, void **pointer);
void drupe_host_mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer);
drupe_status drupe_host_mem_wipe(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                 void *pointer, size_t size);
drupe_status drupe_host_mem_export(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                   void *pointer, size_t size, unsigned char handle[DRUPE_IPC_BYTES]);
drupe_status drupe_host_mem_import(drupe_context *context, drupe_device *device,
                                   const unsigned char handle[DRUPE_IPC_BYTES], drupe_mem_kind *kind,
                                   void **pointer, size_t *size);
void drupe_host_mem_detach(drupe_context *context, drupe_device *device, void *pointer, size_t size);

/* event.c */
drupe_status drupe_host_queue_open(drupe_queue *queue, uint32_t flags);
void drupe_host_queue_close(drupe_queue *queue);
drupe_status drupe_host_queue_time(drupe_queue *queue);
drupe_status drupe_host_queue_wait(drupe_queue *queue, uint64_t timeout_ns);
void drupe_host_queue_cancel(drupe_queue *queue);
void drupe_host_event_close(drupe_event *event);
drupe_status drupe_host_event_state(drupe_event *event, drupe_event_state *state);
drupe_status drupe_host_event_wait(drupe_event *event, uint64_t timeout_ns);
drupe_status drupe_host_event_times(drupe_event *event, drupe_times *times);
drupe_status drupe_host_event_notify(drupe_event *event);

/* code.c */
drupe_host_code *drupe_host_code_retain(drupe_host_code *code);
void drupe_host_code_release(drupe_host_code *code); /* NULL-safe */
/* Whether this machine has a C compiler; the environment is read once per process. */
bool drupe_host_code_possible(void);

/* program.c */
drupe_status drupe_host_program_open(drupe_program *program, const drupe_source *source, char **log);
void drupe_host_program_close(drupe_program *program);
drupe_status drupe_host_kernel_open(drupe_kernel *kernel, const char *name);
void drupe_host_kernel_close(drupe_kernel *kernel);
drupe_status drupe_host_program_names(drupe_program *program, char **names);
drupe_status drupe_host_program_binary(drupe_program *program, void **bytes, size_t *size);
const char *drupe_host_program_advice(drupe_device *device, drupe_language language);
drupe_status drupe_host_program_tools(drupe_device *device, drupe_language language, char **tools);
drupe_status drupe_host_kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info);
drupe_status drupe_host_kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value);

/* submit.c */
drupe_status drupe_host_submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                      const drupe_arg *args, size_t nargs);
drupe_status drupe_host_submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes);
drupe_status drupe_host_submit_fill(const drupe_submit *s, void *dst, const void *pattern,
                                    size_t pattern_size, size_t bytes);
drupe_status drupe_host_submit_barrier(const drupe_submit *s);
drupe_status drupe_host_submit_host(const drupe_submit *s, drupe_host_fn fn, void *user);

#endif
