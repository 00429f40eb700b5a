/* The vtable that a device backend fills in, and the services it may call.
 *
 * Division of labour: core allocates objects, validates arguments, counts references, orders and holds
 * submissions, spreads failures, pools memory and serialises calls on one queue and one kernel; everything
 * else may be concurrent. A backend talks to its driver and validates nothing.
 *
 * Rules for every entry: return DRUPE_OK or a status left by drupe_error_set*(); never abort or print; each
 * *_close runs exactly once per *_open, also after a failed open, on whatever the open left in the zeroed
 * state; no entry is called before load() succeeded. NULL is allowed for entries marked (opt).
 *
 * Native state: core allocates `size.x` zeroed bytes behind each object; drupe_native(object) is their
 * address. Those of queues and events begin on a cache line, which core fetches ahead. Handles reach objects
 * through the public accessors (drupe_queue_device() and so on). */
#ifndef DRUPE_BACKEND_H
#define DRUPE_BACKEND_H

#include "drupe/failures.h"
#include "drupe/fault.h"
#include "drupe/memory.h"
#include "drupe/program.h"
#include <stdatomic.h>

#define DRUPE_HOST_THREADS_MOST 1024u /* what DRUPE_HOST_THREADS may ask for */

typedef struct drupe_backend drupe_backend;
typedef struct drupe_text drupe_text; /* base.h */

/* What is special about a source: program_traits(). */
#define DRUPE_BUILD_TAKEN 1u /* it is taken, although DRUPE_INFO_LANGUAGES may not name its language */
#define DRUPE_BUILD_QUICK 2u /* it is built in less time than a look into the disk cache takes */

/* What every engine object begins with. */
typedef struct drupe_object {
    _Atomic(uint32_t) references;
    const drupe_backend *backend;
    void *native; /* size.x bytes, aligned to 16 */
} drupe_object;

static inline void *drupe_native(const void *object)
{
    return ((const drupe_object *)object)->native;
}

/* A submission as the backend sees it: nothing in it needs holding. */
typedef struct drupe_submit {
    drupe_queue *queue;
    drupe_event *const
        *waits; /* borrowed; events of this context, opened by this backend, maybe done by now */
    size_t nwaits;
    drupe_event *event; /* to be opened by this call; NULL if nobody will look */
    uint64_t number;    /* for drupe_core_began(); 0: nobody wants to know */
    /* With `takes_predecessor`: something before it on its in-order queue; when that fails, so does this.
     * Borrowed until the work is over; NULL: there is none. */
    drupe_event *predecessor;
    bool *done; /* (opt) may be set when the work is over, without failure, as the call returns */
    bool brief; /* a host function that the calling thread may run: see drupe_submission */
    bool sound; /* a copy or fill: its memory is sure to be there, so that a thread that waits may help */
    uint32_t copied; /* a host function's `user` is so many bytes, and it gets a copy: see drupe_host_call */
} drupe_submit;

/* A fault of a thread that works for a backend; see "Faults" below. */
typedef struct drupe_fault {
    int signal, code; /* as in siginfo_t */
    int access;       /* 1: a read, 2: a write, 0: unknown */
    uintptr_t address, instruction;
    const void *owner; /* as registered, with its index */
    uint32_t index;
    bool ended; /* the thread ends by itself, now: to be joined, which gives its stack back; else it is parked
                 */
} drupe_fault;

struct drupe_backend {
    const char *name;
    struct {
        size_t device, context, queue, event, program, kernel;
    } size;
    bool takes_predecessor; /* else the predecessor is among the waits */
    bool closes_failed; /* event_close() has nothing to do for work that did not fail, and need not be called
                         */
    /* event_state() may wait for threads of the device that the system has taken the processor from: it is
     * better asked of work that has been over for a while. */
    bool state_waits;
    bool tells_runs; /* calls drupe_core_began() and drupe_core_ran() for all work that is not done at once */
    /* A kernel that fails on a GPU takes its context along: nothing behind it on its queue completes. */
    bool gpu_faults_last;

    /* --- library --- */
    /* A cheap look, without opening the vendor library: can there be devices of this type at all? (opt: yes)
     */
    bool (*likely)(drupe_device_type type);
    /* Open the vendor library; DRUPE_E_UNAVAILABLE with what to install if it is absent. */
    drupe_status (*load)(void **state);
    void (*unload)(void *state);

    /* --- root devices --- */
    drupe_status (*device_count)(void *state, uint32_t *count);
    drupe_status (*device_open)(void *state, uint32_t index, drupe_device *device);
    void (*device_close)(drupe_device *device); /* (opt) */
    drupe_device_type (*device_type)(drupe_device *device);
    /* Any key of device_info.def: its number, or three; of a string or list the bytes, appended to the empty
     * `text`. DRUPE_E_UNSUPPORTED when it means nothing here. */
    drupe_status (*device_info)(drupe_device *device, drupe_info key, uint64_t number[3], drupe_text *text);
    /* (opt) `subs` are allocated by core with the parent set, `count` of them; fill their native state. */
    drupe_status (*device_split)(drupe_device *device, const drupe_partition *partition,
                                 drupe_device *const *subs, size_t count);
    /* (opt) How many sub-devices a division by affinity domain gives; DRUPE_E_UNSUPPORTED if fewer than 2. */
    drupe_status (*device_parts)(drupe_device *device, drupe_domain domain, size_t *count);

    /* (opt) A thread registered by this backend has faulted and is lost. DRUPE_OK: it was of this device,
     * whose work has failed by now, and the device works on; DRUPE_E_DEVICE_LOST: it was, and nothing can be
     * expected of the device any more; DRUPE_E_NOT_FOUND: not this device. On a thread of core. */
    drupe_status (*device_fault)(drupe_device *device, const drupe_fault *fault);

    /* (opt) Overwrite what work may have left on the device beside its memory (local memory); blocks for two
     * seconds at most. */
    drupe_status (*device_scrub)(drupe_device *device);

    /* --- contexts --- */
    drupe_status (*context_open)(drupe_context *context); /* (opt, both or none) */
    void (*context_close)(drupe_context *context);

    /* --- queues --- */
    drupe_status (*queue_open)(drupe_queue *queue, uint32_t flags);
    void (*queue_close)(drupe_queue *queue); /* after queue_wait() */
    /* (opt) Push submitted work to the hardware without waiting. */
    drupe_status (*queue_flush)(drupe_queue *queue);
    /* (opt) The driver's own handle; what is queued from then on may be others' work. */
    drupe_status (*queue_native)(drupe_queue *queue, void **handle);
    /* (opt) Whether the events of this queue have times though it was not opened with PROFILING, because they
     * cost next to nothing. */
    drupe_status (*queue_times)(drupe_queue *queue, bool *kept);
    /* (opt) From now on as if it had been opened with PROFILING: what is submitted next stands behind what it
     * has and gets times. Under the queue's lock, which others who use its events do not take. */
    drupe_status (*queue_time)(drupe_queue *queue);
    /* All work submitted so far; DRUPE_E_TIMEOUT. A failure of work without an event is returned here once.
     */
    drupe_status (*queue_wait)(drupe_queue *queue, uint64_t timeout_ns);
    /* (opt) That failure, without waiting. */
    drupe_status (*queue_fault)(drupe_queue *queue);
    /* (opt) Fail what was submitted and has not started, as if something before it had failed; in-order
     * queues only. The submission `begun` is taken to have started, and runs though its turn may just not have
     * come. */
    void (*queue_cancel)(drupe_queue *queue, uint64_t begun);

    /* --- events --- */
    void (*event_close)(drupe_event *event);
    /* Poll, never block. FAILED leaves the reason in the calling thread's error, and so does a status other
     * than DRUPE_OK, which counts as FAILED: both mean that the work touches nothing any more. */
    drupe_status (*event_state)(drupe_event *event, drupe_event_state *state);
    /* Until complete or failed (both DRUPE_OK); DRUPE_E_TIMEOUT. */
    drupe_status (*event_wait)(drupe_event *event, uint64_t timeout_ns);
    drupe_status (*event_times)(drupe_event *event, drupe_times *times);
    /* (opt) Have drupe_core_notify() called once the event is complete or failed. */
    drupe_status (*event_notify)(drupe_event *event);

    /* --- memory --- */
    drupe_status (*mem_alloc)(drupe_context *context, drupe_device *device, drupe_mem_kind kind, size_t size,
                              size_t align, void **pointer);
    void (*mem_free)(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer);
    /* (opt, both or none) Host memory that the context's devices copy to and from faster than other host
     * memory; DRUPE_E_UNSUPPORTED where there is no difference. */
    drupe_status (*mem_pin)(drupe_context *context, size_t size, void **pointer);
    void (*mem_unpin)(drupe_context *context, void *pointer);
    /* (opt) Overwrite with zeros a block that nothing uses, and return when that is done. */
    drupe_status (*mem_wipe)(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer,
                             size_t size);
    /* (opt) Name a block of mem_alloc() that nothing uses, for mem_import() in another process; asking twice
     * gives the same name. mem_free() ends it. */
    drupe_status (*mem_export)(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                               void *pointer, size_t size, unsigned char handle[DRUPE_IPC_BYTES]);
    /* (opt, both or none) The block behind a name, its kind and size; and the end of this view of it. */
    drupe_status (*mem_import)(drupe_context *context, drupe_device *device,
                               const unsigned char handle[DRUPE_IPC_BYTES], drupe_mem_kind *kind,
                               void **pointer, size_t *size);
    void (*mem_detach)(drupe_context *context, drupe_device *device, void *pointer, size_t size);

    /* --- programs --- */
    /* Always fill the log when there is one (malloc'ed text, taken by core). */
    drupe_status (*program_open)(drupe_program *program, const drupe_source *source, char **log);
    void (*program_close)(drupe_program *program);
    /* (opt) Names separated by ';', malloc'ed, taken by core. */
    drupe_status (*program_names)(drupe_program *program, char **names);
    drupe_status (*kernel_open)(drupe_kernel *kernel, const char *name);
    void (*kernel_close)(drupe_kernel *kernel); /* (opt) */
    drupe_status (*kernel_number)(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value);
    drupe_status (*kernel_arg)(drupe_kernel *kernel, size_t index, drupe_arg_info *info); /* (opt) */
    /* (opt) The built program as malloc'ed bytes (taken by core), which program_open() takes as
     * DRUPE_LANG_BINARY for the same device and driver, with the same options. May compile, and run beside
     * anything else. Core stores them with a checksum: no others reach program_open(). A SPIR-V module was
     * checked, and its specialisation constants are set in it. */
    drupe_status (*program_binary)(drupe_program *program, void **bytes, size_t *size);
    /* (opt) What makes this device take a language that it does not take now, as the end of a sentence that
     * says what to install; NULL if nothing does. Static text. */
    const char *(*program_advice)(drupe_device *device, drupe_language language);
    /* (opt) What decides a build from this language beside the device and its driver, such as a compiler that
     * is a program of the machine: text for the key of the disk cache, malloc'ed, taken by core; NULL if
     * nothing does. After a failure the cache is left alone. */
    drupe_status (*program_tools)(drupe_device *device, drupe_language language, char **tools);
    /* (opt) What is special about this source: a set of DRUPE_BUILD_*. */
    uint32_t (*program_traits)(drupe_device *device, const drupe_source *source);

    /* --- submissions --- */
    /* Core has checked what it can know: that arguments fit what kernel_arg() says and the device's limits,
     * that a given local size divides the global one and is allowed, and that nothing is empty. Arguments
     * travel with the call and are copied before it returns: no sticky state in the kernel object. */
    drupe_status (*submit_kernel)(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                  const drupe_arg *args, size_t nargs);
    drupe_status (*submit_copy)(const drupe_submit *s, void *dst, const void *src, size_t bytes);
    drupe_status (*submit_fill)(const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size,
                                size_t bytes);
    drupe_status (*submit_barrier)(const drupe_submit *s);
    /* (opt) Run fn on a thread of the backend; without it core holds the queue and runs fn on a thread of its
     * own. */
    drupe_status (*submit_host)(const drupe_submit *s, drupe_host_fn fn, void *user);
    /* (opt) Hints about USM of the queue's context; without them core queues a barrier. What the driver
     * cannot do for this memory is DRUPE_OK all the same, with the event in its place. */
    drupe_status (*submit_prefetch)(const drupe_submit *s, const void *pointer, size_t bytes);
    drupe_status (*submit_advise)(const drupe_submit *s, const void *pointer, size_t bytes, uint32_t advice);
};

/* The backends built into this library, in order of preference; ends with NULL. Defined in backend_list.c, so
 * that core names no backend. */
extern const drupe_backend *const drupe_backends[];
/* Tests put a layer before the backends: a table that stands for `base`, the backend number `slot`
 * (tests/layers). NULL otherwise; set before a backend is loaded. */
typedef drupe_status(drupe_layer_fn)(const drupe_backend *base, size_t slot, const drupe_backend **backend);
extern drupe_layer_fn *drupe_test_layer;
/* The table through which core calls `base`. DRUPE_LAYERS=check begins checked mode here. */
drupe_status drupe_layer_apply(const drupe_backend *base, size_t slot,
                               const drupe_backend **backend) DRUPE_MUST_CHECK;
/* Names that a filter may use though this library has no such backend; ends with NULL. */
extern const char *const drupe_backends_absent[];

#endif
