/* Contexts and their memory: pieces from drivers, the handles that they are lent out as, pools, limits,
 * figures.
 *
 * Reading order: context.c -> memory.c (allocations) -> pool.c (pieces in size classes), use.c (what work in
 * flight uses, letting go), registry.c (which memory an address is in), marks.c -> limit.c, figures.c ->
 * memory_users.c (what upper rooms register), gate.h, gate.c (memory that is parked).
 *
 * Owns: contexts, pools, pieces, the registry, marks.
 *
 * Locks: a pool's lock guards its lists and where its pieces are, the registry's its table, that of marks.c
 * the marks, all_lock the list of contexts (pools are trimmed under it). They are leaves but for that. The
 * gate's lock is taken before all of these, and before queues' locks. No threads. */
#ifndef DRUPE_CORE_MEMORY_ROOM_H
#define DRUPE_CORE_MEMORY_ROOM_H

#include "core/memory/context.h"
#include "core/memory/gate.h"
#include "drupe/postpone.h"

typedef struct drupe_mark drupe_mark;

/* --- Pieces and handles --------------------------------------------------------------------------------- */

/* Bits of drupe_memory's `uses`: how many submissions in flight use it, and of which queue they are. Once its
 * handle is gone they are counted down under the pool's lock only. */
#define DRUPE_USES_COUNT   UINT64_C(0x7fffffff)
#define DRUPE_USES_ORPHAN  UINT64_C(0x80000000)
#define DRUPE_USES_SHIFT   32
#define DRUPE_USES_SEVERAL UINT32_MAX /* of several queues */

/* A piece of memory from the driver, and the handle that it is lent out as. A program has the handle: its
 * references are object.references, and with the last of them the handle is gone, while work in flight keeps
 * the piece by `uses`. A piece has one handle at a time, so both are one object; while it has none, lookups
 * do not find it. While it waits in a pool it stays in the registry: lending it changes neither. More than 20
 * members for the same reason: piece and handle are one. */
struct drupe_memory {
    drupe_object object;
    _Atomic(uint64_t) uses;
    void *base;
    size_t room;  /* bytes from the driver */
    size_t index; /* its size class */
    drupe_pool *pool;
    drupe_memory *next, **link; /* in a list of the pool; `link`: what points to it in an ordered one */
    bool imported;              /* another process's, or borrowed: not pooled, not counted */
    drupe_keep lender;          /* keeps the bytes of borrowed memory; else without a release */
    size_t redzone, behind, guard_bytes; /* in checked mode: see drupe_redzone_ops.plan() */
    drupe_memory *redzone_next;
    /* Until nothing uses it any more: */
    drupe_queue *queue;     /* inner reference; NULL while nobody has had it lent */
    drupe_context *context; /* that of the queue, which keeps it */
    /* While it is lent: */
    _Atomic(size_t) size; /* as asked for */
    drupe_mem_kind kind;
    uint32_t site, cell;    /* the observer's numbers, 0 = unknown */
    _Atomic(uint64_t) born; /* the latest submission of the process before this handle */
    /* The number of the queue that still used the piece when it was lent; 0: none. Others wait for that
     * queue's work up to submission `born`. */
    _Atomic(uint32_t) order;
    _Atomic(int32_t) awaited;   /* pieces of work that are held back and read it: see drupe/postpone.h */
    _Atomic(bool) exposed;      /* an address in it was given away: see drupe/postpone.h */
    _Atomic(bool) left;         /* and for good: see drupe/park.h */
    _Atomic(int32_t) views;     /* addresses that are lent now */
    _Atomic(drupe_mark *) mark; /* why it does not hold what a program expects; see mark.c */
    _Atomic(void *) parked;     /* malloc'ed: its bytes, while it has none on the device; see gate.h */
};

/* The work that is done with a piece: for one submission on `queue`. The caller has the handle. */
void drupe_uses_add(drupe_memory *memory, const drupe_queue *queue);
/* The end of that, as the release function of a drupe_keep, by which memory is known among them. */
void drupe_uses_drop(void *memory);
/* Nothing uses the piece and nobody has it: back to the pool, or the driver. */
void drupe_memory_retire(drupe_memory *memory);

/* A zeroed piece of this pool, without references; freed with free(). NULL without memory. */
drupe_memory *drupe_memory_new(drupe_pool *pool);

#define DRUPE_POOL_CLASSES 96
#define DRUPE_POOL_LARGE   DRUPE_POOL_CLASSES       /* the list of those too large for a class */
#define DRUPE_POOL_NEVER   (DRUPE_POOL_CLASSES + 1) /* goes back to the driver */

struct drupe_pool {
    pthread_mutex_t lock;
    drupe_context *context; /* borrowed: the pool is part of it */
    drupe_device *device;   /* borrowed: a member of the context */
    drupe_device *root;     /* of the device */
    drupe_mem_kind kind;
    bool served;         /* the device has this kind */
    uint64_t most, keep; /* bytes: one allocation at most; in the free lists at most */
    size_t idle;         /* bytes in the free lists */
    drupe_memory *free[DRUPE_POOL_LARGE + 1];
    /* What has no handle any more and is used by work of one queue, last in first: the next result on that
     * queue takes it without asking whether the work is over. */
    drupe_memory *ordered[DRUPE_POOL_LARGE + 1];
};

void drupe_pool_open(drupe_pool *pool, drupe_context *context, drupe_device *device, drupe_mem_kind kind);
void drupe_pool_close(drupe_pool *pool);
/* The pool of this kind for a queue's device. */
drupe_pool *drupe_pool_of(const drupe_queue *queue, drupe_mem_kind kind);
/* How the device serves a kind of memory. */
drupe_usm_support drupe_pool_support(drupe_device *device, drupe_mem_kind kind);
typedef struct drupe_pool_request {
    size_t bytes, align;
    uint32_t order; /* the number of the queue whose work may still use the piece; 0: of none */
    /* The pool's: */
    bool paced;   /* there can be such memory, and the driver was or will be asked */
    size_t index; /* the size class */
} drupe_pool_request;
/* A piece without references for a request: from the pool, or from the driver. Limits are checked here. May
 * be called again for a request that was `paced`, after room was made. */
drupe_status drupe_pool_take(drupe_pool *pool, drupe_pool_request *wanted,
                             drupe_memory **memory) DRUPE_MUST_CHECK;
/* Overwrite its bytes. */
drupe_status drupe_pool_wipe(drupe_memory *memory) DRUPE_MUST_CHECK;
/* Its handle is gone. True when nothing uses it: the caller retires it. */
bool drupe_pool_orphan(drupe_memory *memory);
/* A use of a piece without a handle is over. True when that was the last: the caller retires it. */
bool drupe_pool_unuse(drupe_memory *memory);
/* To the free list, or to the driver. It was orphaned. */
void drupe_pool_give(drupe_memory *memory);
/* Give memory that has no references and is in no list back to the driver. */
void drupe_pool_discard(drupe_memory *memory);
/* For parking: the driver has the piece's bytes back, while its handle lives on; and other bytes for it,
 * within the limit. The registry knows it by them. */
void drupe_pool_drain(drupe_memory *memory);
drupe_status drupe_pool_refill(drupe_memory *memory) DRUPE_MUST_CHECK;
/* Give free pieces back to the driver; the bytes given back. */
size_t drupe_pool_trim_one(drupe_pool *pool);

/* Count `size` bytes as reserved, or leave DRUPE_E_NO_MEMORY for a request of `asked` bytes. */
drupe_status drupe_limit_reserve(drupe_pool *pool, size_t size, size_t asked) DRUPE_MUST_CHECK;
void drupe_limit_return(drupe_pool *pool, size_t size);
uint64_t drupe_limit_get(drupe_device *root);
/* Bytes of it that could be had now, as far as is known: of the limit and of the device. */
uint64_t drupe_limit_free(drupe_device *root);
/* Most bytes to keep for reuse in one pool of the device. */
uint64_t drupe_limit_keep(drupe_device *root);
/* figures.c: drupe_memory_holders() of the memory that is chosen. */
typedef bool drupe_memory_choice(const drupe_memory *memory);
size_t drupe_memory_holders_of(drupe_device *device, drupe_memory_choice *chosen, bool merge,
                               drupe_holder *holders, size_t capacity);
/* Add who has the memory to the thread's DRUPE_E_NO_MEMORY. */
drupe_status drupe_memory_explain(drupe_device *root);

/* DRUPE_E_UNSUPPORTED for borrowed memory some of whose bytes are in the table already, but for those that
 * its own context has borrowed too. */
drupe_status drupe_registry_add(drupe_memory *memory) DRUPE_MUST_CHECK;
void drupe_registry_remove(drupe_memory *memory);
/* All memory that is lent, each retained, in a malloc'ed list that is *taken* by the caller; without memory
 * for the list there is none. Returns how many. */
size_t drupe_registry_lent(drupe_memory ***list);
/* The memory that [pointer, pointer + bytes) begins in, retained, or NULL when it is not the engine's.
 * DRUPE_E_OUT_OF_RANGE when the range runs past an allocation's end or into one. bytes 0: the address alone.
 */
drupe_status drupe_registry_find(const void *pointer, size_t bytes, const char *what,
                                 drupe_memory **memory) DRUPE_MUST_CHECK;

/* --- marks.c: handles whose contents are not what a program expects; see queue/mark.c --------------------
 */

#define DRUPE_MARK_ANY UINT64_MAX
/* What a mark begins with. */
struct drupe_mark {
    void (*free)(drupe_mark *mark);
    uint64_t born; /* of the handle that it belongs to; ANY: of whatever handle has it */
    bool passing;  /* nothing was changed: it lasts until its failure was reported */
};
/* Whether the mark is that of this handle; NULL is none. */
bool drupe_mark_is_of(const drupe_mark *mark, const drupe_memory *memory);
/* Mark the handle of that birth, if it is still there. An earlier mark stays: the first cause is what a
 * program wants to hear of; but a passing one gives way. Takes `fresh`. */
void drupe_mark_put(drupe_memory *memory, drupe_mark *fresh, uint64_t born);
drupe_mark *drupe_mark_take(drupe_memory *memory);
/* `read` is called with the handle's mark, if it has one, under the lock of the marks. */
bool drupe_mark_look(drupe_memory *memory, void (*read)(const drupe_mark *mark, void *user), void *user);
/* A passing mark has passed. */
void drupe_mark_pass(drupe_memory *memory);
/* The handle goes. */
void drupe_mark_free(drupe_memory *memory);
static inline void drupe_mark_drop(drupe_memory *memory)
{
    if (atomic_load_explicit(&memory->mark, memory_order_relaxed)) drupe_mark_free(memory);
}
/* How often a mark was set. */
extern _Atomic(unsigned) drupe_marks_version;

/* --- Checked mode -----------------------------------------------------------------------------------------
 */

/* What memory asks of checked mode; check/ registers itself when it is switched on. */
typedef struct drupe_redzone_ops {
    /* How `memory->room` bytes, aligned to `align`, are to lie in a block from the driver. */
    void (*plan)(drupe_memory *memory, size_t align);
    void (*open)(drupe_memory *memory);    /* fresh from the driver, in a block that was planned */
    void (*give)(drupe_memory *memory);    /* it was freed: look at it for the last time, keep it back */
    void (*leave)(drupe_memory *memory);   /* its bytes go, and its handle stays: look at it */
    void (*flush)(const drupe_pool *pool); /* give what was kept back to the driver */
    /* Before the driver gets memory with `guard_bytes`; false: it must not get it. */
    bool (*lower)(const drupe_memory *memory);
    drupe_status (*freed)(const drupe_memory *memory, const char *what, const void *address);
    void (*forget)(const void *base, size_t bytes); /* these bytes are nobody's any more */
} drupe_redzone_ops;
/* NULL before checked mode was on for the first time; it stays afterwards, as guarded memory does. */
extern _Atomic(const drupe_redzone_ops *) drupe_redzone_ops_now;
static inline const drupe_redzone_ops *drupe_redzone_ops_get(void)
{
    return atomic_load_explicit(&drupe_redzone_ops_now, memory_order_acquire);
}

#endif
