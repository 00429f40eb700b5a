/* The `host` backend's inside.
 *
 * One pool serves the root device and all its sub-devices. Its compute workers are numbered from 0; a device
 * is a range of them, so that sub-devices of one split share none. One more worker runs host functions only,
 * so that a host function may wait for device work.
 *
 * A submission is a task: on its queue it stands behind the task before it, and it may wait for events. When
 * nothing is left to wait for it is ready; workers of its range then take shares of its items until none are
 * left, and the last one finishes it. Small work on an idle queue never becomes a task: it runs on the
 * submitting thread, because waking a worker costs more than the work.
 *
 * Threads: everything in tasks, queues and events is guarded by pool->lock, except what is atomic. */
#ifndef DRUPE_HOST_H
#define DRUPE_HOST_H

#include "backends/backend.h"
#include "base/base.h"

#define DRUPE_HOST_MAX_WORKERS 1024u

typedef struct drupe_host_pool drupe_host_pool;
typedef struct drupe_host_task drupe_host_task;

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
/* CPUs by affinity and quota, at least 1. */
unsigned drupe_host_cpu_limit(void);
/* Physical memory or the control group's limit, whichever is less. */
uint64_t drupe_host_memory_limit(void);
/* What could be allocated now without pushing the machine out of memory. */
uint64_t drupe_host_memory_available(void);
/* The first line of a file, without its newline; false if it cannot be read. */
bool drupe_host_read_line(const char *path, char *line, size_t size);

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
/* Tie a worker that has just been started to its home, if it has one. */
void drupe_host_worker_bind(drupe_host_worker *worker);

/* --- pool.c ----------------------------------------------------------------------------------------------
 */

struct drupe_host_worker {
    drupe_host_pool *pool;
    unsigned index;
    bool started, idle;
    /* What it is at, for a fault that happens there; `busy` is not 0 while that is not our own code. */
    _Atomic(int) busy;
    drupe_host_task *task;
    _Atomic(size_t) begin, end;
    pthread_t thread;
    pthread_cond_t wake;
    unsigned home_first, home_count; /* the range whose CPUs it runs on; count 0: all */
};

struct drupe_host_pool {
    pthread_mutex_t lock;
    pthread_cond_t done; /* an event or a queue that somebody waits for */
    bool has_done, stopping;
    bool shuffle; /* DRUPE_HOST_SHUFFLE: random order and delays, nothing inline */
    uint64_t random;
    unsigned nworkers; /* compute workers; workers[nworkers] is for host functions */
    drupe_host_worker *workers;
    drupe_host_task *first, *last; /* ready, in the order in which they became so */
    size_t nready;
    drupe_host_task *spare;
    drupe_host_machine machine;
    drupe_host_topology topology;
};

drupe_status drupe_host_pool_open(drupe_host_pool **pool) DRUPE_MUST_CHECK;
void drupe_host_pool_close(drupe_host_pool *pool); /* NULL-safe; nothing is in flight */
/* Make sure that the workers of a range run. Needs the lock. */
drupe_status drupe_host_pool_start(drupe_host_pool *pool, unsigned first, unsigned count) DRUPE_MUST_CHECK;
/* The worker is done with its part of the task, which ends with its last worker; needs the lock. */
void drupe_host_pool_leave(drupe_host_worker *worker, drupe_host_task *task);
/* A task without anything to wait for; needs the lock. */
void drupe_host_pool_ready(drupe_host_pool *pool, drupe_host_task *task);

/* fault.c: the vtable's entry for a worker that was parked. */
drupe_status drupe_host_device_fault(drupe_device *device, const drupe_fault *fault);
/* `task` faulted, or stands behind one that did: so does `behind`, the next one on its queue. */
void drupe_host_fault_spread(const drupe_host_task *task, drupe_host_task *behind);

/* --- Native state of the engine's objects -----------------------------------------------------------------
 */

typedef struct drupe_host_device {
    drupe_host_pool *pool;
    unsigned first, count; /* its workers */
} drupe_host_device;

typedef struct drupe_host_queue {
    drupe_host_pool *pool;
    drupe_host_device *device;
    bool profiling;
    bool inlines;            /* small work may run on the submitting thread */
    bool waited;             /* somebody waits for it to run dry */
    _Atomic(bool) faulted;   /* `error` is set */
    drupe_error *error;      /* malloc'ed: a fault that the queue has told nobody of */
    drupe_host_task *tail;   /* the last unfinished task */
    _Atomic(size_t) pending; /* unfinished tasks */
} drupe_host_queue;

/* A task that waits for an event. */
typedef struct drupe_host_link {
    struct drupe_host_link *next;
    drupe_host_task *task;
} drupe_host_link;

typedef struct drupe_host_event {
    drupe_host_pool *pool;
    _Atomic(int) state; /* drupe_event_state; nothing is touched after it is COMPLETE or FAILED */
    bool waited, notify;
    drupe_event *self;
    drupe_host_link *dependents;
    drupe_error *error; /* malloc'ed, once FAILED; NULL without memory */
    drupe_times times;
} drupe_host_event;

typedef struct drupe_host_program {
    bool inlines;
} drupe_host_program;

typedef struct drupe_host_kernel {
    const drupe_builtin *builtin;
    bool inlines; /* its arguments are known to be good, so that it may run on the submitting thread */
} drupe_host_kernel;

/* --- task.c -----------------------------------------------------------------------------------------------
 */

#define DRUPE_HOST_LINKS  4
#define DRUPE_HOST_ARGS   12
#define DRUPE_HOST_VALUES 512

struct drupe_host_task {
    drupe_host_task *next;   /* in the list of the ready or of the spare */
    drupe_host_task *behind; /* on its queue */
    drupe_host_queue *queue;
    drupe_host_event *event; /* or NULL */
    /* Do items [begin, end). */
    void (*body)(drupe_host_task *task, size_t begin, size_t end);
    size_t items, grain; /* a worker takes `grain` items at a time */
    _Atomic(size_t) cursor;
    unsigned first, count; /* the workers that may run it */
    unsigned running;      /* workers that are at it */
    size_t pending;        /* what it still waits for */
    bool listed, failed;
    bool faulted;       /* here or before it on its queue: what stands behind does not run */
    drupe_error *error; /* malloc'ed: of its host function, or its fault */
    const drupe_builtin *builtin;
    void *dst;
    const void *src;
    size_t bytes, pattern_size;
    drupe_host_fn fn;
    void *user;
    const void **args; /* args_inline, or malloc'ed together with the values */
    const void *args_inline[DRUPE_HOST_ARGS];
    drupe_host_link *links; /* links_inline, or malloc'ed */
    drupe_host_link links_inline[DRUPE_HOST_LINKS];
    _Alignas(16) unsigned char values[DRUPE_HOST_VALUES]; /* argument values, or a fill's pattern */
};

/* A task for `s`, not yet queued. */
drupe_status drupe_host_task_new(const drupe_submit *s, drupe_host_task **task) DRUPE_MUST_CHECK;
/* Room for `count` argument pointers and `bytes` of values behind them; the values' address. */
drupe_status drupe_host_task_room(drupe_host_task *task, size_t count, size_t bytes,
                                  unsigned char **values) DRUPE_MUST_CHECK;
/* Put it on its queue behind what is there; *taken* also on failure. */
drupe_status drupe_host_task_queue(const drupe_submit *s, drupe_host_task *task) DRUPE_MUST_CHECK;
/* All shares are done, or it must not run; needs the lock. */
void drupe_host_task_finish(drupe_host_pool *pool, drupe_host_task *task);
void drupe_host_task_free(drupe_host_task *task);

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
drupe_status drupe_host_queue_wait(drupe_queue *queue, uint64_t timeout_ns);
void drupe_host_event_close(drupe_event *event);
drupe_status drupe_host_event_state(drupe_event *event, drupe_event_state *state);
drupe_status drupe_host_event_wait(drupe_event *event, uint64_t timeout_ns);
drupe_status drupe_host_event_times(drupe_event *event, drupe_times *times);
drupe_status drupe_host_event_notify(drupe_event *event);

/* program.c */
drupe_status drupe_host_program_open(drupe_program *program, const drupe_source *source, char **log);
void drupe_host_program_close(drupe_program *program);
drupe_status drupe_host_kernel_open(drupe_kernel *kernel, const char *name);
void drupe_host_kernel_close(drupe_kernel *kernel);
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
