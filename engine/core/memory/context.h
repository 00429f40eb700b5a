/* Contexts, and what the rooms below queue/ know of a queue. */
#ifndef DRUPE_CORE_CONTEXT_H
#define DRUPE_CORE_CONTEXT_H

#include "core/device/device_room.h"

typedef struct drupe_cause drupe_cause;
typedef struct drupe_pool drupe_pool;

struct drupe_context {
    drupe_object object;
    drupe_slot *slot;
    drupe_device **devices; /* retained */
    size_t ndevices;
    bool is_default; /* a part points to it; library lock */
    bool opened;
    drupe_pool *pools;                          /* one per device and kind */
    char *ring;                                 /* pinned memory for the next large copy; pinned.c's lock */
    void (*ring_close)(drupe_context *context); /* gives up the one that there is; set with the first */
    drupe_context *next, **link;                /* all contexts, context.c's lock */
};

/* Give up the pinned memory that contexts with a part of the device keep for copies. */
void drupe_context_rings_close(const drupe_device *root);
/* The index of the member that is `device` or an ancestor of it, or -1. */
long drupe_context_member(const drupe_context *context, const drupe_device *device);

/* What a queue begins with. */
typedef struct drupe_queue_base {
    _Alignas(64) drupe_object object; /* references: the caller's handles */
    _Atomic(uint32_t) inner; /* events, memory, the waiter, and one for all handles: keeps the struct */
    drupe_slot *slot;
    drupe_context *context;  /* retained */
    drupe_device *device;    /* retained */
    _Atomic(uint32_t) flags; /* drupe_queue_flags; TIMED and PROFILING may be added later */
    uint32_t number;         /* process-wide, from 1 */
    /* Failures, failure.c's: */
    _Atomic(drupe_cause *) cause; /* the latest failure, retained; set under the failure lock */
    uint64_t cause_from;          /* what was submitted after this stands behind it; failure lock */
    uint64_t cause_at;            /* the latest submission when it came; failure lock */
    _Atomic(bool) unheard;        /* work has failed that nobody may have asked about yet: see mark.c */
    _Atomic(unsigned) marks_due; /* how often it was blamed since what stands behind was marked: see mark.c */
} drupe_queue_base;

static inline drupe_queue_base *drupe_base(const drupe_queue *queue)
{
    return (drupe_queue_base *)(uintptr_t)queue;
}
static inline bool drupe_queue_unordered(const drupe_queue *queue)
{
    return (drupe_base(queue)->flags & DRUPE_QUEUE_OUT_OF_ORDER) != 0;
}

/* What memory asks of those who use it. queue/ registers itself when the first queue is opened: without one
 * there is no memory. */
typedef struct drupe_memory_users {
    void (*destroy)(drupe_queue *queue);       /* its last inner reference is gone */
    void (*collect)(const drupe_device *root); /* drop what is over; NULL: on all devices */
    /* Before `bytes` more are asked of the driver: wait while too much is in flight. DRUPE_E_CANCELLED when
     * the program was interrupted. No lock is held. */
    drupe_status (*pace)(drupe_device *root, uint64_t bytes);
    /* Wait for what is in flight, as long as something comes back. */
    drupe_status (*room)(drupe_device *root, uint64_t deadline);
} drupe_memory_users;
extern _Atomic(const drupe_memory_users *) drupe_memory_users_now;
static inline const drupe_memory_users *drupe_memory_users_get(void)
{
    return atomic_load_explicit(&drupe_memory_users_now, memory_order_acquire);
}

void drupe_queue_inner_retain(drupe_queue *queue);
void drupe_queue_inner_release(drupe_queue *queue);

#endif
