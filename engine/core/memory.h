/* Memory as core sees it: pieces from drivers, their handles, pools, limits and marks.
 *
 * Part of core.h, which includes it. Locks: a pool's lock guards its lists and where its pieces are, the
 * registry's its table, mark.c's the marks; none of them is held while another is taken. */
#ifndef DRUPE_CORE_MEMORY_H
#define DRUPE_CORE_MEMORY_H

/* --- Pieces and handles --------------------------------------------------------------------------------- */

/* Where a piece is; its pool's lock. */
typedef enum drupe_place_of_piece {
    DRUPE_PIECE_LENT,     /* somebody has its handle */
    DRUPE_PIECE_IDLE,     /* in a free list: nothing uses it */
    DRUPE_PIECE_ORDERED,  /* its handle is gone; work of one queue uses it, behind which it may be used again
                           */
    DRUPE_PIECE_IN_FLIGHT /* its handle is gone, and work uses it */
} drupe_place_of_piece;

/* Bits of drupe_memory's `uses`: how many submissions in flight use it, and of which queue they are. Once its
 * handle is gone they are counted down under the pool's lock only. */
#define DRUPE_USES_COUNT   UINT64_C(0x7fffffff)
#define DRUPE_USES_ORPHAN  UINT64_C(0x80000000)
#define DRUPE_USES_SHIFT   32
#define DRUPE_USES_SEVERAL UINT32_MAX /* of several queues */

/* A piece of memory from the driver, and the handle that it is lent out as. A program has the handle: its
 * references are object.references, and with the last of them the handle is gone, while work in flight keeps
 * the piece by `uses`. A piece has one handle at a time, so both are one object; while it has none, lookups
 * do not find it. While it waits in a pool it stays in the registry: lending it changes neither. */
struct drupe_memory {
    drupe_object object;
    _Atomic(uint64_t) uses;
    void *base;
    size_t room;  /* bytes from the driver */
    size_t index; /* its size class */
    drupe_pool *pool;
    drupe_place_of_piece place;
    drupe_memory *next, *prev;  /* in a list of the pool; `prev` among the ordered ones only */
    bool imported;              /* another process's: not pooled, not counted */
    size_t zone, behind, fence; /* in checked mode: see drupe_zone_plan() */
    drupe_memory *zone_next;
    /* Until nothing uses it any more: */
    drupe_queue *queue;     /* inner reference; NULL while nobody has had it lent */
    drupe_context *context; /* that of the queue, which keeps it */
    /* While it is lent: */
    _Atomic(size_t) size; /* as asked for */
    drupe_mem_kind kind;
    uint32_t site, cell;    /* the observer's numbers, 0 = unknown */
    _Atomic(uint64_t) born; /* the latest submission of the process before this handle */
    /* The queue that still used the piece when it was lent, 0: none. Who uses it elsewhere waits for what
     * that queue was given up to `born`. */
    _Atomic(uint32_t) order;
    _Atomic(drupe_mark *) mark; /* why it does not hold what a program expects; see mark.c */
};

/* The work that is done with a piece: for one submission on `queue`. The caller has the handle. */
void drupe_uses_add(drupe_memory *memory, const drupe_queue *queue);
/* The end of that, as the release function of a drupe_keep, by which memory is known among them. */
void drupe_uses_drop(void *memory);
/* Give `add` what has to be over before the bytes are used out of the order in which they were handed on:
 * each event retained. Ends the order when there is nothing. No queue's lock may be held; `add` is called
 * with one. */
drupe_status drupe_memory_before(drupe_memory *memory, drupe_status (*add)(void *user, drupe_event *event),
                                 void *user) DRUPE_MUST_CHECK;
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
    _Atomic(bool) asked; /* the next three are known */
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
/* A piece of at least `bytes`, aligned to `align`, without references; limits are checked here. `order`: the
 * number of a queue whose work may still use it, 0: nothing may. */
drupe_status drupe_pool_take(drupe_pool *pool, size_t bytes, size_t align, uint32_t order,
                             drupe_memory **memory) DRUPE_MUST_CHECK;
/* Its handle is gone. True when nothing uses it: the caller retires it. */
bool drupe_pool_orphan(drupe_memory *memory);
/* A use of a piece without a handle is over. True when that was the last: the caller retires it. */
bool drupe_pool_unuse(drupe_memory *memory);
/* To the free list, or to the driver. It was orphaned. */
void drupe_pool_give(drupe_memory *memory);
/* Give memory that has no references and is in no list back to the driver. */
void drupe_pool_discard(drupe_memory *memory);
/* Give free pieces back to the driver; the bytes given back. */
size_t drupe_pool_trim_one(drupe_pool *pool);

/* DRUPE_OK, or what is wrong in a variable about memory: a limit that is not understood is not none. */
drupe_status drupe_limit_check(void) DRUPE_MUST_CHECK;
/* Count `size` bytes as reserved, or leave DRUPE_E_NO_MEMORY for a request of `asked` bytes. */
drupe_status drupe_limit_reserve(drupe_pool *pool, size_t size, size_t asked) DRUPE_MUST_CHECK;
void drupe_limit_return(drupe_pool *pool, size_t size);
/* Make room on a device, each step more costly than the one before. `*more` false: there is no such step.
 * DRUPE_E_CANCELLED when the program was interrupted. */
drupe_status drupe_limit_make_room(drupe_device *root, unsigned step, bool *more) DRUPE_MUST_CHECK;
/* Add to the thread's error what is in use and who holds it. */
drupe_status drupe_limit_explain(drupe_device *root) DRUPE_MUST_CHECK;
uint64_t drupe_limit_get(drupe_device *root);
/* Bytes of it that could be had now, as far as is known: of the limit and of the device. */
uint64_t drupe_limit_free(drupe_device *root);
/* Before `bytes` more are asked of the driver: wait while too much is in flight. DRUPE_E_CANCELLED when the
 * program was interrupted. No lock is held. */
drupe_status drupe_pace(drupe_device *root, uint64_t bytes) DRUPE_MUST_CHECK;
/* Wait for what is in flight, as long as something comes back. */
drupe_status drupe_pace_room(drupe_device *root, uint64_t deadline) DRUPE_MUST_CHECK;
/* Most bytes to keep for reuse in one pool of the device. */
uint64_t drupe_limit_keep(drupe_device *root);
#define DRUPE_WIPE_ASKED 0x80000000u
uint32_t drupe_limit_wipe(drupe_device *root);

drupe_status drupe_registry_add(drupe_memory *memory) DRUPE_MUST_CHECK;
void drupe_registry_remove(drupe_memory *memory);
void drupe_registry_clear(void);
/* All memory that is lent, each retained, in a malloc'ed list that is *taken* by the caller; without memory
 * for the list there is none. Returns how many. */
size_t drupe_registry_lent(drupe_memory ***list);
/* The memory that [pointer, pointer + bytes) begins in, retained, or NULL when it is not the engine's.
 * DRUPE_E_OUT_OF_RANGE when the range runs past an allocation's end or into one. bytes 0: the address alone.
 */
drupe_status drupe_registry_find(const void *pointer, size_t bytes, const char *what,
                                 drupe_memory **memory) DRUPE_MUST_CHECK;

/* Whether any driver may read and write it as if it were plain host memory. */
bool drupe_memory_plain(const drupe_memory *memory);

/* --- mark.c: handles whose contents are not what a program expects ---------------------------------------
 *
 * Work that does not run, or fails, leaves what it would have written as it was, which is nobody's result.
 * The handles are marked with the cause, before anybody is told of it; reading or computing from them is
 * refused until something replaces all of their bytes. Without a queue's lock, unless told otherwise. */

/* Work behind `queue`'s cause is still to be marked, which drupe_marks_settle() does. Any lock may be held.
 */
void drupe_marks_ask(drupe_queue *queue);
/* Mark what all queues owe. Before anybody is told of a failure and before marks are looked at. */
void drupe_marks_settle(void);
/* The same for this queue, whose lock is held. */
void drupe_marks_settle_locked(drupe_queue *queue);
/* Mark what this flight would have written, once: what is found out about it later, when a program may have
 * accepted or replaced the contents, counts for nothing. Its references cannot go meanwhile. Any lock may be
 * held. */
void drupe_mark_flight(drupe_flight *flight, drupe_cause *cause);
/* Take the marks off what a flight is about to replace, and put them back when it was refused after all. Its
 * queue's lock is held. */
drupe_mark *drupe_marks_lift(const drupe_flight *flight);
void drupe_marks_lifted(drupe_mark *list, bool replaced);
/* The handle goes. */
void drupe_mark_free(drupe_memory *memory);
static inline void drupe_mark_drop(drupe_memory *memory)
{
    if (atomic_load_explicit(&memory->mark, memory_order_relaxed)) drupe_mark_free(memory);
}
/* Queues that owe marks, and how often a mark was set. */
extern _Atomic(unsigned) drupe_marks_owed, drupe_marks_version;
/* drupe_memory_contents() for a submission that would read it: as long as nobody was told of the failure, the
 * submission is made and fails with what it stands behind. Then the answer is DRUPE_OK, and `*doom`, unless
 * it is set already, the cause, retained. */
drupe_status drupe_mark_read(drupe_memory *memory, drupe_cause **doom) DRUPE_MUST_CHECK;
/* The same of those among `refs` that are `read`, for who holds the lock of the queue. */
drupe_status drupe_marks_read(const drupe_keep *refs, size_t nrefs, uint64_t read,
                              drupe_cause **doom) DRUPE_MUST_CHECK;
/* A glance: false means that the handle has no mark. */
static inline bool drupe_mark_possible(const drupe_memory *memory)
{
    /* The count is loaded first: a queue takes itself off the count only after it has stored its marks. */
    return atomic_load_explicit(&drupe_marks_owed, memory_order_acquire) ||
           atomic_load_explicit(&((drupe_memory *)memory)->mark, memory_order_acquire);
}

#endif
