/* Unified shared memory (USM): allocations that a kernel and, for two kinds of three, the host address by
 * pointer.
 *
 * Source of the kinds: cl_intel_unified_shared_memory, SYCL 2020 section 4.8.
 * Threads: all functions may be called from any thread. */
#ifndef DRUPE_MEMORY_H
#define DRUPE_MEMORY_H

#include "drupe/submit.h"

typedef struct drupe_memory drupe_memory;

typedef enum drupe_mem_kind {
    DRUPE_MEM_DEVICE, /* lives on the device; the host must copy, even where it could address it */
    DRUPE_MEM_SHARED, /* moves between host and device on demand */
    DRUPE_MEM_HOST    /* lives in host memory, the device reads it there */
} drupe_mem_kind;

/* Allocate `bytes` (at least 1) for the queue's device in its context, from a pool where one of the size
 * class is free. `align` is 0 (at least 64) or a power of two up to 4096. The content is undefined unless
 * drupe_pool_set_wipe() was asked for. Retained; the last release gives the handle up, and the bytes go back
 * to the pool when no submission uses them. DRUPE_E_UNSUPPORTED when the device lacks the kind. Where there
 * is no room, references of finished work are dropped as by drupe_queue_collect(), free blocks go back to the
 * driver, and work in flight is waited for, two seconds at most; then DRUPE_E_NO_MEMORY tells size, use,
 * limit and the largest holders. */
DRUPE_API drupe_status drupe_memory_alloc(drupe_queue *queue, drupe_mem_kind kind, size_t bytes, size_t align,
                                          drupe_memory **memory) DRUPE_MUST_CHECK;
/* The same for a result of work: the caller's next call that has to do with the memory submits, on `queue`
 * and with `ordered`, what writes it. Then it may be memory that was given back while work of this queue
 * still uses it, since the queue's order puts the one behind the other: a loop that makes results and drops
 * them needs only a few pieces, however far the queue is behind. What uses such memory elsewhere waits for
 * that work: the engine's submissions by themselves, everybody else by drupe_memory_before_use(). */
DRUPE_API drupe_status drupe_memory_alloc_result(drupe_queue *queue, drupe_mem_kind kind, size_t bytes,
                                                 drupe_memory **memory) DRUPE_MUST_CHECK;
/* What has to be over before an address in the memory is used past the engine (by the host, a library,
 * another process), besides the work that the caller knows of: an event, retained; once it is over, however
 * it ended, the caller asks again. NULL when nothing has. DRUPE_E_BUSY behind a failure that nobody was told
 * of. */
DRUPE_API drupe_status drupe_memory_before_use(drupe_memory *memory, drupe_event **event) DRUPE_MUST_CHECK;
/* The same for an address that is lent, and comes back: from drupe_memory_view() with 1, called before
 * anything else can park the memory, to that with -1. */
DRUPE_API drupe_status drupe_memory_before_view(drupe_memory *memory, drupe_event **event) DRUPE_MUST_CHECK;
DRUPE_API void drupe_memory_view(drupe_memory *memory, int32_t by);
/* Whether the caller has the only reference, and what is in flight uses the memory on `queue` alone, which is
 * in order: then work that is submitted there may overwrite it. */
DRUPE_API bool drupe_memory_sole(const drupe_memory *memory, const drupe_queue *queue);
DRUPE_API drupe_memory *drupe_memory_retain(drupe_memory *memory); /* NULL-safe */
DRUPE_API void drupe_memory_release(drupe_memory *memory);         /* NULL-safe */

DRUPE_API void *drupe_memory_pointer(const drupe_memory *memory);
DRUPE_API size_t drupe_memory_size(const drupe_memory *memory); /* as asked for */
DRUPE_API drupe_mem_kind drupe_memory_kind(const drupe_memory *memory);
DRUPE_API drupe_queue *drupe_memory_queue(
    const drupe_memory *memory); /* borrowed: the queue it was made with */
DRUPE_API bool drupe_memory_host_accessible(const drupe_memory *memory);
DRUPE_API const char *drupe_mem_kind_name(drupe_mem_kind kind); /* "device", "shared", "host"; static */

/* The allocation that `pointer` points into, retained, or NULL; a pointer one past the end is not inside. */
DRUPE_API drupe_memory *drupe_memory_find(const void *pointer);

/* Whether work in flight uses it, as far as is known: what is over counts until it was collected. */
DRUPE_API bool drupe_memory_in_use(const drupe_memory *memory);
/* A keep by which work on `queue` has the memory's bytes, though its handle may be released: for host
 * functions that use the address. To be given to that submission; see `effects` there. */
DRUPE_API drupe_keep drupe_memory_keep(drupe_memory *memory, const drupe_queue *queue);

/* --- Contents -------------------------------------------------------------------------------------------
 */

/* DRUPE_OK, or why the memory does not hold what the program has had written there: the first cause of the
 * work that failed or did not run, as DRUPE_E_DEPENDENCY or DRUPE_E_CANCELLED. It says whether the earlier
 * value is still there. Submissions that would read it ask for themselves. To be asked once what was
 * submitted before is over, when bytes are looked at past the engine. */
DRUPE_API drupe_status drupe_memory_contents(drupe_memory *memory) DRUPE_MUST_CHECK;
/* Take the contents as they are. */
DRUPE_API void drupe_memory_accept(drupe_memory *memory);

/* --- Between processes --------------------------------------------------------------------------------- */

#define DRUPE_IPC_BYTES 128

/* A name for the memory that another process of the same user may give to drupe_memory_import(), valid as
 * long as the memory lives; it goes into `handle`. DRUPE_E_BUSY while work of any queue uses it.
 * DRUPE_E_UNSUPPORTED where the backend has no such names. */
DRUPE_API drupe_status drupe_memory_export(drupe_memory *memory,
                                           unsigned char handle[DRUPE_IPC_BYTES]) DRUPE_MUST_CHECK;
/* The memory behind a handle, at an address of this process. Retained. Its first `bytes` are accessible
 * (0: all). Not counted in the pool's figures. DRUPE_E_NOT_FOUND when the exporting process or its memory is
 * gone, DRUPE_E_INVALID for bytes that are no handle of this device's backend. */
DRUPE_API drupe_status drupe_memory_import(drupe_queue *queue, const unsigned char handle[DRUPE_IPC_BYTES],
                                           size_t bytes, drupe_memory **memory) DRUPE_MUST_CHECK;

/* --- Memory of others ---------------------------------------------------------------------------------- */

/* [pointer, pointer + bytes) of this process, which somebody else allocated, as memory of kind HOST for the
 * queue's context: kernels of its devices work on those bytes themselves. `keep` (taken, if it succeeds)
 * keeps them: it is released when nobody has the memory and no work uses it any more, on any thread that
 * finds that out, and must neither wait nor call the engine. Not counted in the pool's figures, never lent
 * again. Retained. Bytes inside of memory that the context has already are that memory, if they lie a
 * multiple of 16 bytes behind its start; `keep` is released at once then. DRUPE_E_UNSUPPORTED where a device
 * of the context cannot address memory of the process, or where another context or a pool has some of the
 * bytes: copy them. */
DRUPE_API drupe_status drupe_memory_borrow(drupe_queue *queue, void *pointer, size_t bytes,
                                           const drupe_keep *keep, drupe_memory **memory) DRUPE_MUST_CHECK;

/* --- Pools: everything per root device, over its contexts; a sub-device stands for its root ------------- */

typedef struct drupe_pool_use {
    uint64_t used;     /* bytes handed out: somebody holds them */
    uint64_t flying;   /* bytes that nobody holds any more, and which work in flight uses */
    uint64_t reserved; /* bytes taken from the driver, those two included */
    uint64_t peak;     /* most bytes ever handed out, since drupe_pool_reset_peak() */
    uint64_t count;    /* allocations handed out */
} drupe_pool_use;

typedef struct drupe_pool_stats {
    uint64_t used, flying, reserved, peak, count; /* over all kinds */
    uint64_t limit;                               /* most bytes that may be reserved */
    uint32_t wipe;                                /* bits of drupe_wipe */
    drupe_pool_use kinds[3];                      /* by drupe_mem_kind */
} drupe_pool_stats;

DRUPE_API void drupe_pool_stats_of(drupe_device *device, drupe_pool_stats *stats);
/* Begin a new peak at what is in use now. */
DRUPE_API void drupe_pool_reset_peak(drupe_device *device);

/* Reserve no more than so many bytes of the device; 0: what the environment says, else all of it. What is in
 * use above a new limit stays in use. DRUPE_MEMORY_LIMIT sets the first limit: "4G", "50%" (of the device's
 * memory), or "host=2G,opencl:gpu=50%" by the beginning of the filter; devices are listed and selected with
 * DRUPE_E_INVALID while it cannot be understood. */
DRUPE_API void drupe_pool_set_limit(drupe_device *device, uint64_t bytes);

/* When memory is overwritten with zeros, for machines that are shared. DRUPE_MEMORY_WIPE=alloc,free sets it
 * for all devices, and so does a hub or a broker (JUPYTERHUB_API_TOKEN, DRUPE_LEASE) unless that variable is
 * set. Both make the call wait for the device. */
typedef enum drupe_wipe {
    DRUPE_WIPE_ALLOC = 1, /* before it is handed out */
    DRUPE_WIPE_FREE = 2   /* when it comes back */
} drupe_wipe;
/* DRUPE_E_UNSUPPORTED when the backend cannot. */
DRUPE_API drupe_status drupe_pool_set_wipe(drupe_device *device, uint32_t when) DRUPE_MUST_CHECK;

/* Give free blocks back to the driver. Returns the bytes given back. DRUPE_MEMORY_KEEP=0 in the environment
 * has every block given back at once (DRUPE_MEMORY_KEEP=1G: at most so much kept by each pool). */
DRUPE_API size_t drupe_pool_trim(drupe_device *device);

/* --- Who holds what ------------------------------------------------------------------------------------- */

/* Allocations that are alive: one, or all of one device, kind and place in the program. */
typedef struct drupe_holder {
    char filter[64]; /* of the device they were made for */
    drupe_mem_kind kind;
    uint32_t site, cell; /* the observer's numbers, 0 = unknown */
    uint64_t bytes, count;
} drupe_holder;

/* The holders of a root device's memory (NULL: of every device's), those with most bytes first, at most
 * `capacity`. `merge`: one holder per device, kind, site and cell; else one per allocation. Returns how many
 * there are. */
DRUPE_API size_t drupe_memory_holders(drupe_device *device, bool merge, drupe_holder *holders,
                                      size_t capacity);

/* The memory of a root device. */
typedef struct drupe_device_use {
    char filter[64], name[128];      /* `name` is the filter until somebody has asked for the device's name */
    const char *backend;             /* static */
    uint64_t used, flying, reserved; /* as in drupe_pool_stats */
    uint64_t total;                  /* bytes of the device; 0: nobody has asked yet */
} drupe_device_use;

typedef struct drupe_device_figures {
    drupe_device_use use;
    uint64_t kinds[3];          /* bytes handed out, by drupe_mem_kind */
    uint64_t peak, allocations; /* see drupe_pool_stats */
    uint64_t limit;             /* 0: nobody has asked yet */
    bool used;                  /* memory of it was taken */
    bool lost;                  /* DRUPE_E_DEVICE_LOST */
} drupe_device_figures;

/* The devices of open backends, at most `capacity`. Loads nothing, asks no driver and waits for no lock: a
 * backend that is being opened or closed at this moment is left out. Any thread. Returns how many were
 * written. */
DRUPE_API size_t drupe_device_figures_of(drupe_device_figures *figures, size_t capacity);
/* Most bytes handed out on all devices together since the last call with `restart`, which is for one caller
 * only: the recorder of view.h. `*used`: now. */
DRUPE_API uint64_t drupe_memory_high(bool restart, uint64_t *used);

#endif
