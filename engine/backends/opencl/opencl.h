/* The OpenCL backend's own types: the function table, native state behind each engine object, and what its
 * files offer each other.
 *
 * Memory comes in tiers, chosen per context by what all its devices can do: Intel's USM extension, fine-grain
 * SVM (serves all three kinds), coarse-grain SVM (serves the device kind only; the host never maps it), none.
 *
 * Threads: as backend.h says; core serialises calls on one queue and one kernel. */
#ifndef DRUPE_OPENCL_OPENCL_H
#define DRUPE_OPENCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "backends/backend.h"
#include "base/file.h"
#include "driver/driver.h"
#include "driver/guarded.h"
#include <CL/cl.h>
#include <CL/cl_ext.h>

#define DRUPE_CL_NAME "opencl"
/* The environment variable that names the loader library (or one driver) to open instead of libOpenCL.so.1.
 */
#define DRUPE_CL_LIBRARY_ENV "DRUPE_OPENCL_LIBRARY"

/* Every member is a function pointer named as in functions.def; optional ones may be NULL. */
typedef struct drupe_cl_api {
#define DRUPE_CL_FN(name, optional) __typeof__(cl##name) *name;
#include "functions.def"
#undef DRUPE_CL_FN
} drupe_cl_api;

/* Intel's USM extension; all set or all NULL, but for the hints. */
typedef struct drupe_cl_intel {
    clHostMemAllocINTEL_fn alloc_host;
    clDeviceMemAllocINTEL_fn alloc_device;
    clSharedMemAllocINTEL_fn alloc_shared;
    clMemFreeINTEL_fn mem_free;
    clSetKernelArgMemPointerINTEL_fn set_arg;
    clEnqueueMemcpyINTEL_fn copy;
    clEnqueueMemFillINTEL_fn fill;
    clEnqueueMigrateMemINTEL_fn migrate; /* or NULL */
    clEnqueueMemAdviseINTEL_fn advise;   /* or NULL */
} drupe_cl_intel;

#define DRUPE_CL_KINDS 3 /* of memory, drupe_mem_kind */

/* Values are bits in drupe_cl_caps.tiers; a lower value is preferred. */
typedef enum drupe_cl_tier {
    DRUPE_CL_TIER_NONE = 0,
    DRUPE_CL_TIER_INTEL = 1,
    DRUPE_CL_TIER_FINE = 2,
    DRUPE_CL_TIER_COARSE = 4
} drupe_cl_tier;

/* --- Native state --------------------------------------------------------------------------------------- */

typedef struct drupe_cl_root {
    cl_platform_id platform;
    cl_device_id id;
} drupe_cl_root;

/* What load() gives: the loader and the root devices of all platforms, in platform order. */
typedef struct drupe_cl_library {
    void *handle;
    drupe_cl_api api;
    drupe_cl_root *roots;
    uint32_t count;
} drupe_cl_library;

/* Probed once per device, sub-devices too. */
typedef struct drupe_cl_caps {
    unsigned version;                 /* of the device: 10 * major + minor, at least 12 */
    unsigned tiers;                   /* drupe_cl_tier bits */
    bool intel_kinds[DRUPE_CL_KINDS]; /* which kinds the Intel extension serves, by drupe_mem_kind */
    bool cpu, compiler, fp16, fp64, atomic64, profiling, spirv;
    bool times_free;            /* times of events cost next to nothing */
    bool unordered, priorities; /* kinds of queues */
    unsigned bitcode;           /* the LLVM version whose bitcode it takes as a binary, or 0 */
    uint64_t partition_kinds, partition_domains; /* DRUPE_FLAG()s of drupe_partition_kind, drupe_domain */
    cl_uint units;
    size_t group_multiple; /* preferred work-group multiple, 0 where only kernels know */
    size_t max_group, max_items[3];
    uint64_t local_bytes, max_alloc, global_bytes;
    drupe_cl_intel intel;
} drupe_cl_caps;

typedef struct drupe_cl_device {
    drupe_cl_library *library; /* borrowed from core's state */
    cl_platform_id platform;
    cl_device_id id;
    bool sub; /* `id` is ours to release */
    drupe_cl_caps caps;
} drupe_cl_device;

/* Guarded memory of one kind, from the driver. */
typedef struct drupe_cl_area {
    drupe_guarded guarded; /* without `take`: there is none */
    struct drupe_cl_context *context;
    const drupe_cl_device *device;
    drupe_mem_kind kind;
} drupe_cl_area;

typedef struct drupe_cl_context {
    const drupe_cl_api *api;
    cl_context id;
    drupe_cl_tier tier;
    drupe_cl_intel intel;
    bool lock_ready;
    pthread_mutex_t lock;
    drupe_cl_area areas[DRUPE_CL_KINDS]; /* of a CPU */
    drupe_map shifted;       /* pointer handed out -> start of the driver's block, where they differ */
    drupe_map pinned;        /* pointer handed out -> cl_mem that is mapped there */
    cl_command_queue helper; /* to wipe and to map, opened when first needed; under the lock */
} drupe_cl_context;

/* The meeting of a waiter and the driver's completion callback. Two references: the mark's, and the
 * callback's, which some drivers never call when the work fails; that one is then lost with the watch (about
 * 100 bytes). */
typedef struct drupe_cl_watch {
    _Atomic(uint32_t) references;
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done;           /* the callback came; says nothing about success */
    drupe_event *notify; /* borrowed: cleared when the event closes */
} drupe_cl_watch;

/* A native event that can be waited for with a timeout: an engine event, or a queue's own marker. */
typedef struct drupe_cl_mark {
    const drupe_cl_api *api;
    cl_event id;                  /* NULL while there is none */
    struct drupe_cl_queue *queue; /* borrowed: the event's, or the one whose marker it is */
    _Atomic(drupe_cl_watch *) watch;
    _Atomic(bool) complete; /* it was so when the driver was asked; never again false */
} drupe_cl_mark;

typedef struct drupe_cl_queue {
    const drupe_cl_api *api;
    const drupe_cl_device *device; /* borrowed: the engine's queue holds them */
    const drupe_cl_context *context;
    _Atomic(cl_command_queue) id; /* the lock of the engine's queue guards it; others flush */
    cl_command_queue before;      /* what `id` was before drupe_cl_queue_time(), or NULL */
    _Atomic(bool) timed;          /* the driver keeps times, */
    _Atomic(bool) profiling;      /* because somebody asked for them */
    bool unordered;
    bool dirty;                /* work was enqueued after `marker` */
    drupe_cl_mark marker;      /* the last command that has an event, or one made to be waited for */
    _Atomic(uintptr_t) lender; /* the event that stands for `marker`, see queue.c */
    _Atomic(bool) unflushed;   /* any thread; not beside the others, which compilers read as one */
} drupe_cl_queue;

typedef struct drupe_cl_event {
    drupe_cl_mark mark;
} drupe_cl_event;

typedef struct drupe_cl_program {
    const drupe_cl_api *api;
    const drupe_cl_device *device; /* borrowed: what it was built for, a member of its context */
    cl_program id;
} drupe_cl_program;

#define DRUPE_CL_SET_MOST 16

/* What a launch checks; some drivers check neither and crash or read past the value. */
typedef struct drupe_cl_param {
    bool known;    /* the driver tells about its arguments */
    uint8_t kind;  /* drupe_arg_kind */
    uint16_t size; /* of a VALUE in bytes, 0 = unknown */
    /* What the kernel's own native kernel was given last; asking a driver to set the same again costs as much
     * as setting it. */
    bool set;
    uint8_t set_kind;
    uint16_t set_size;
    uint64_t freed; /* drupe_cl_mem_freed() then: an address may since have come to mean other memory */
    unsigned char value[DRUPE_CL_SET_MOST];
} drupe_cl_param;

/* A further native kernel for launches in which just these arguments are NULL; see drupe_cl_kernel_pick(). */
typedef struct drupe_cl_variant {
    uint64_t nulls; /* bit i = argument i */
    cl_kernel id;
} drupe_cl_variant;

#define DRUPE_CL_VARIANTS 8
#define DRUPE_CL_WORDS    12

typedef struct drupe_cl_kernel {
    const drupe_cl_api *api;
    const drupe_cl_device *device; /* borrowed, of the program */
    cl_kernel id;
    cl_uint nargs;
    drupe_cl_param *params; /* nargs of them */
    size_t max_group;       /* of this kernel on this device */
    size_t multiple;        /* preferred work-group multiple, at least 1 */
    size_t required[3];     /* reqd_work_group_size, zeros if none */
    uint64_t local_bytes;   /* declared inside the kernel */
    uint64_t private_bytes;
    bool launched;
    /* What drupe_submit.words said when all arguments were set last; valid while `worded`. */
    bool worded;
    uint64_t words_freed; /* as drupe_cl_param.freed */
    uint64_t words[DRUPE_CL_WORDS];
    drupe_range settled; /* the last range that was found good, dims 0 = none, and what became of it */
    size_t settled_local[3];
    bool settled_by_driver;
    drupe_cl_variant variants[DRUPE_CL_VARIANTS]; /* id NULL = free */
    unsigned next_variant;                        /* which one makes room for a new one */
} drupe_cl_kernel;

/* --- error.c -------------------------------------------------------------------------------------------- */

/* "CL_OUT_OF_RESOURCES"; "CL_ERROR" for a code without a name. */
const char *drupe_cl_error_name(cl_int code);
/* Record "<format> failed: NAME (code). hint" under the status that errors.def gives the code. */
drupe_status drupe_cl_fail(cl_int code, const char *format, ...) DRUPE_PRINTF(2, 3) DRUPE_MUST_CHECK;
/* The same under a status of the caller's choice, and with its own sentence instead of the hint. */
drupe_status drupe_cl_fail_as(drupe_status status, cl_int code, const char *format, ...)
    DRUPE_PRINTF(3, 4) DRUPE_MUST_CHECK;
/* Record the failure that a negative execution status of an event stands for. */
drupe_status drupe_cl_fail_event(cl_int status) DRUPE_MUST_CHECK;

/* --- library.c ------------------------------------------------------------------------------------------ */

bool drupe_cl_likely(drupe_device_type type);
drupe_status drupe_cl_load(void **state);
void drupe_cl_unload(void *state);
drupe_status drupe_cl_device_count(void *state, uint32_t *count);
/* 10 * major + minor of the device's OpenCL version, or 0. */
unsigned drupe_cl_version_of(const drupe_cl_api *api, cl_device_id id);

/* --- device.c ------------------------------------------------------------------------------------------- */

drupe_status drupe_cl_device_open(void *state, uint32_t index, drupe_device *device);
void drupe_cl_device_close(drupe_device *device);
drupe_status drupe_cl_device_fault(drupe_device *device, const drupe_fault *fault);
drupe_device_type drupe_cl_device_type(drupe_device *device);
drupe_status drupe_cl_device_split(drupe_device *device, const drupe_partition *partition,
                                   drupe_device *const *subs, size_t count);
drupe_status drupe_cl_device_parts(drupe_device *device, drupe_domain domain, size_t *count);
/* A device's string property, malloc'ed, or NULL. */
char *drupe_cl_device_string(const drupe_cl_device *device, cl_device_info key);
/* Whether a list of words separated by blanks, which may be NULL, has this one. */
bool drupe_cl_has_word(const char *list, const char *word);

/* --- info.c --------------------------------------------------------------------------------------------- */

drupe_status drupe_cl_device_info(drupe_device *device, drupe_info key, void *value, size_t size,
                                  size_t *needed);

/* --- context.c, usm.c ----------------------------------------------------------------------------------- */

drupe_status drupe_cl_context_open(drupe_context *context);
void drupe_cl_context_close(drupe_context *context);
/* The member of the context that `device` is, or lies in; `device` itself where there is none. Borrowed. */
drupe_device *drupe_cl_context_member(drupe_context *context, drupe_device *device);
drupe_status drupe_cl_mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                size_t size, size_t align, void **pointer);
void drupe_cl_mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer);
drupe_status drupe_cl_mem_pin(drupe_context *context, size_t size, void **pointer);
void drupe_cl_mem_unpin(drupe_context *context, void *pointer);
/* How many blocks were given back so far. */
uint64_t drupe_cl_mem_freed(void);
drupe_status drupe_cl_mem_wipe(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                               void *pointer, size_t size);
/* How a device serves a kind, judged alone. */
drupe_usm_support drupe_cl_usm_support(const drupe_cl_caps *caps, drupe_mem_kind kind);

/* --- watch.c -------------------------------------------------------------------------------------------- */

/* Ask the driver. `*status` is the execution status: 3 queued ... 0 complete, negative = failed. A query that
 * fails itself counts as a failure with the query's code. */
void drupe_cl_mark_status(drupe_cl_mark *mark, cl_int *status);
/* Push the work up to the mark to the device, where that was not done since. */
void drupe_cl_mark_flush(const drupe_cl_mark *mark);
/* Until complete or failed; DRUPE_E_TIMEOUT. */
drupe_status drupe_cl_mark_wait(drupe_cl_mark *mark, uint64_t timeout_ns);
/* Have drupe_core_notify(event) called when the driver says that it is over. */
drupe_status drupe_cl_mark_notify(drupe_cl_mark *mark, drupe_event *event);
/* Release the event; the mark is empty then. No notification starts after it returns. */
void drupe_cl_mark_clear(drupe_cl_mark *mark);

/* usm.c: have memory lie between pages that fault, where the processor that computes is this machine's. */
void drupe_cl_mem_guard(drupe_cl_context *context, const drupe_cl_device *only);
void drupe_cl_mem_guard_end(drupe_cl_context *context);

/* --- retire.c ------------------------------------------------------------------------------------------- */

/* Finish `id`, which was opened for this queue, and release it, later, on another thread. *Taken*. */
void drupe_cl_retire(const drupe_cl_queue *queue, cl_command_queue id);
/* Until all of them are released, at most so long: a driver may never finish. False: some are not. */
bool drupe_cl_retire_wait(uint64_t timeout_ns);

/* --- queue.c, event.c ----------------------------------------------------------------------------------- */

drupe_status drupe_cl_queue_open(drupe_queue *queue, uint32_t flags);
void drupe_cl_queue_close(drupe_queue *queue);
drupe_status drupe_cl_queue_times(drupe_queue *queue, bool *kept);
drupe_status drupe_cl_queue_time(drupe_queue *queue);
drupe_status drupe_cl_queue_flush(drupe_queue *queue);
drupe_status drupe_cl_queue_native(drupe_queue *queue, void **handle);
drupe_status drupe_cl_queue_wait(drupe_queue *queue, uint64_t timeout_ns);
/* A command was enqueued, with the native event `own` (taken), or that of `event`, or none. */
void drupe_cl_queue_note(drupe_queue *queue, cl_event own, drupe_cl_event *event);
/* Make `marker` the queue's own where it is lent; the queue's lock. */
void drupe_cl_queue_own(drupe_cl_queue *queue);
/* The event closes: what it lent goes over to its queue. Any thread. */
void drupe_cl_queue_inherit(drupe_cl_event *event);
void drupe_cl_event_close(drupe_event *event);
drupe_status drupe_cl_event_state(drupe_event *event, drupe_event_state *state);
drupe_status drupe_cl_event_wait(drupe_event *event, uint64_t timeout_ns);
drupe_status drupe_cl_event_times(drupe_event *event, drupe_times *times);
drupe_status drupe_cl_event_notify(drupe_event *event);

/* --- program.c, translate.c, kernel.c ------------------------------------------------------------------- */

drupe_status drupe_cl_program_open(drupe_program *program, const drupe_source *source, char **log);
void drupe_cl_program_close(drupe_program *program);
drupe_status drupe_cl_program_names(drupe_program *program, char **names);
drupe_status drupe_cl_program_binary(drupe_program *program, void **bytes, size_t *size);
const char *drupe_cl_program_advice(drupe_device *device, drupe_language language);
/* The LLVM version that a platform's driver is made with, when its devices take bitcode instead of SPIR-V; or
 * 0. */
unsigned drupe_cl_bitcode_version(const drupe_cl_api *api, cl_platform_id platform, const char *extensions);
/* The program that turns SPIR-V into bitcode of that version, malloc'ed, or NULL. DRUPE_LLVM_SPIRV names one.
 */
char *drupe_cl_translator(unsigned llvm);
/* Translate the SPIR-V of `source` for the device. */
drupe_status drupe_cl_translate(const drupe_cl_device *device, const drupe_source *source,
                                drupe_text *bitcode) DRUPE_MUST_CHECK;
drupe_status drupe_cl_kernel_open(drupe_kernel *kernel, const char *name);
void drupe_cl_kernel_close(drupe_kernel *kernel);
drupe_status drupe_cl_kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value);
drupe_status drupe_cl_kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info);
/* The native kernel to launch with these arguments, borrowed. With coarse-grain SVM on NVIDIA an argument
 * that was once set to an SVM pointer cannot become NULL again: one way of setting it keeps the old pointer
 * silently, the other makes the launch fail. So there each pattern of NULL arguments gets a native kernel of
 * its own. */
drupe_status drupe_cl_kernel_pick(drupe_kernel *kernel, drupe_cl_tier tier, const drupe_arg *args,
                                  size_t nargs, cl_kernel *id);
/* Read a type as the compiler writes it ("float4*", "uint") into scalar and lanes. */
void drupe_cl_parse_type(const char *text, drupe_scalar_type *scalar, uint32_t *lanes);

/* --- range.c -------------------------------------------------------------------------------------------- */

/* Check a range against the kernel's and device's limits and settle its local size, which the kernel
 * remembers.
 *
 * With local[0] == 0 the local size is chosen from powers of two that divide the global size, so that a
 * just-in-time compiler sees few different sizes: at most 256 work-items, halved until every compute unit has
 * work. `*by_driver` is set where a GPU's driver should choose, because no useful power of two divides. On a
 * CPU such a range runs with local size 1: round the global size up and check the bound in the kernel. */
drupe_status drupe_cl_range_settle(drupe_cl_kernel *kernel, const drupe_range *range, size_t local[3],
                                   bool *by_driver);
/* Whether it is the one that was settled last. */
static inline bool drupe_cl_range_again(const drupe_cl_kernel *kernel, const drupe_range *range)
{
    const drupe_range *last = &kernel->settled;
    if (last->dims != range->dims) return false;
    for (uint32_t d = 0; d < range->dims; d++) {
        if (last->global[d] != range->global[d] || last->local[d] != range->local[d]) return false;
    }
    return true;
}

/* --- submit.c ------------------------------------------------------------------------------------------- */

drupe_status drupe_cl_submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                    const drupe_arg *args, size_t nargs);
drupe_status drupe_cl_submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes);
drupe_status drupe_cl_submit_fill(const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size,
                                  size_t bytes);
drupe_status drupe_cl_submit_barrier(const drupe_submit *s);
drupe_status drupe_cl_submit_prefetch(const drupe_submit *s, const void *pointer, size_t bytes);
drupe_status drupe_cl_submit_advise(const drupe_submit *s, const void *pointer, size_t bytes,
                                    uint32_t advice);

#endif
