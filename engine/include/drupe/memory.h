/* Unified shared memory (USM): allocations that a kernel and, for two kinds of three, the host address by
 * pointer.
 *
 * Source of the kinds: cl_intel_unified_shared_memory, SYCL 2020 section 4.8.
 * Threads: all functions may be called from any thread. */
#ifndef DRUPE_MEMORY_H
#define DRUPE_MEMORY_H

#include "drupe/queue.h"

typedef struct drupe_memory drupe_memory;

typedef enum drupe_mem_kind {
    DRUPE_MEM_DEVICE, /* lives on the device; the host must copy, even where it could address it */
    DRUPE_MEM_SHARED, /* moves between host and device on demand */
    DRUPE_MEM_HOST    /* lives in host memory, the device reads it there */
} drupe_mem_kind;

/* Allocate `bytes` (at least 1) for the queue's device in its context, from a pool where one of the size
 * class is free. `align` is 0 (at least 64) or a power of two up to 4096. The content is undefined. Retained;
 * the last release gives it back to the pool, so it may only happen when no work uses it: submissions keep
 * what they use. DRUPE_E_NO_MEMORY tells size and limit; DRUPE_E_UNSUPPORTED when the device lacks the kind.
 */
DRUPE_API drupe_status drupe_memory_alloc(drupe_queue *queue, drupe_mem_kind kind, size_t bytes, size_t align,
                                          drupe_memory **memory) DRUPE_MUST_CHECK;
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

typedef struct drupe_pool_stats {
    uint64_t used;     /* bytes handed out */
    uint64_t reserved; /* bytes taken from the driver, used ones included */
    uint64_t peak;     /* most bytes ever handed out */
    uint64_t count;    /* allocations handed out */
} drupe_pool_stats;

/* Figures over all kinds of one root device (a sub-device counts for its root). */
DRUPE_API void drupe_pool_stats_of(drupe_device *device, drupe_pool_stats *stats);
/* A root device that memory was taken from. */
typedef struct drupe_device_use {
    char filter[64], name[128]; /* `name` is the filter until somebody has asked for the device's name */
    const char *backend;        /* static */
    uint64_t used, reserved;    /* as in drupe_pool_stats */
    uint64_t total;             /* bytes of the device; 0: nobody has asked yet */
} drupe_device_use;

/* The devices in use, at most `capacity`. Loads nothing, asks no driver and waits for no lock: a backend that
 * is being opened or closed at this moment is left out. Any thread. Returns how many were written. */
DRUPE_API size_t drupe_device_uses(drupe_device_use *uses, size_t capacity);

/* Give free blocks back to the driver. Returns the bytes given back. */
DRUPE_API size_t drupe_pool_trim(drupe_device *device);

#endif
