/* The loader's functions, and native state behind the engine's objects. */
#ifndef DRUPE_OPENCL_STATE_H
#define DRUPE_OPENCL_STATE_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "backends/builtin.h"
#include "backends/services.h"
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

/* Probed once per device, sub-devices too. More than 20 members: cl_device.c fills it, and all else only
 * reads what it needs. */
typedef struct drupe_cl_caps {
    unsigned version;                 /* of the device: 10 * major + minor, at least 12 */
    unsigned tiers;                   /* drupe_cl_tier bits */
    bool intel_kinds[DRUPE_CL_KINDS]; /* which kinds the Intel extension serves, by drupe_mem_kind */
    bool builtin;                     /* runs functions of this process */
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
    _Atomic(uintptr_t) lender; /* the event that stands for `marker`, see cl_queue.c */
    _Atomic(bool) unflushed;   /* any thread; not beside the others, which compilers read as one */
} drupe_cl_queue;

typedef struct drupe_cl_event {
    drupe_cl_mark mark;
} drupe_cl_event;

typedef struct drupe_cl_program {
    const drupe_cl_api *api;
    const drupe_cl_device *device; /* borrowed: what it was built for, a member of its context */
    cl_program id;                 /* NULL where `builtin` */
    bool builtin;                  /* the engine's precompiled kernels, */
    bool inlines; /* of which the smallest run in the submitting thread where nothing is before them */
} drupe_cl_program;

#define DRUPE_CL_SET_MOST 16

/* What the native kernel that is launched was given last; asking a driver to set the same again costs as much
 * as setting it. */
typedef struct drupe_cl_param {
    bool set;
    bool pointed; /* to memory, since it was opened */
    uint8_t set_kind;
    uint16_t set_size;
    uint64_t freed; /* drupe_cl_mem_freed() then: an address may since have come to mean other memory */
    unsigned char value[DRUPE_CL_SET_MOST];
} drupe_cl_param;

typedef struct drupe_cl_kernel {
    const drupe_cl_api *api;
    const drupe_cl_device *device; /* borrowed, of the program */
    const drupe_builtin *builtin;  /* a precompiled kernel; `id` is NULL then */
    bool inlines;                  /* as its program says */
    cl_kernel id;                  /* for questions, from any thread */
    cl_kernel launched_id;         /* the same, or what drupe_cl_kernel_renew() opened */
    cl_uint nargs;
    drupe_cl_param *params; /* nargs of them */
    size_t max_group;       /* of this kernel on this device */
    size_t multiple;        /* preferred work-group multiple, at least 1 */
    size_t required[3];     /* reqd_work_group_size, zeros if none */
    uint64_t local_bytes;   /* declared inside the kernel */
    uint64_t private_bytes;
    bool launched;
    drupe_range settled; /* the last range that was found good, dims 0 = none, and what became of it */
    size_t settled_local[3];
    bool settled_by_driver;
} drupe_cl_kernel;

#endif
