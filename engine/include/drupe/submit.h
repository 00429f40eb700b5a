/* Submissions: what queues are given to do. drupe/queue.h says in which order it is done, how it fails, what
 * is kept alive meanwhile, and from which threads: from any. */
#ifndef DRUPE_SUBMIT_H
#define DRUPE_SUBMIT_H

#include "drupe/queue.h"

/* Something to keep alive until the work is done: release(object) is called once, see Keep-alive in
 * drupe/queue.h. */
typedef struct drupe_keep {
    void *object;
    void (*release)(void *object);
} drupe_keep;

/* Bytes that work reads or writes, for checked mode (drupe/check.h). */
typedef struct drupe_access {
    const void *pointer;
    size_t bytes;
    bool writes;
} drupe_access;

/* What becomes of the memory of a kernel's argument i, or of a host function's keeps[i] (one made by
 * drupe_memory_keep()), in bit i. */
typedef struct drupe_effects {
    uint64_t reads, writes;
    uint64_t replaces; /* work that does not read it writes all of the allocation */
} drupe_effects;

typedef struct drupe_submission {
    drupe_queue *queue;
    drupe_event *const *waits; /* borrowed; NULL entries are skipped */
    size_t nwaits;
    const drupe_keep *keeps; /* each object is taken, also when the call fails */
    size_t nkeeps;
    const char *label; /* borrowed: what to call it in messages; NULL = the kernel's name, "copy", ... */
    uint32_t site;     /* the caller's number for the place in its program; 0 = unknown */
    bool ordered;      /* an out-of-order queue too runs it behind all before it and ahead of all after it */
    /* A host function takes microseconds, calls nothing of the engine and does not fault: where nothing is
     * before it, the calling thread may run it within the call. */
    bool brief;
    /* A host function that fails with DRUPE_E_OUT_OF_RANGE or DRUPE_E_INVALID has written nothing: once that
     * was reported, what it was to change counts as it was. */
    bool checks_first;
    /* The host memory of a copy is kept for it, and sure to be there: any thread may touch it. */
    bool sound : 1;
    bool faults_only : 1;         /* a host function that answers DRUPE_OK whenever it comes back */
    const drupe_access *accesses; /* borrowed: all that a kernel or host function touches */
    size_t naccesses;             /* 0 = unknown */
    /* Borrowed: for each argument of a kernel, or for the target and the source of a copy, the memory that its
     * pointer lies in, where the caller has that at hand; NULL entries are looked for by address, as all are
     * without the list. */
    struct drupe_memory *const *memories;
    /* Borrowed. NULL: a kernel reads what its pointers point to and writes it unless the compiler calls it
     * const; a host function reads and writes all that it keeps. */
    const drupe_effects *effects;
} drupe_submission;

/* Work-items per dimension in OpenCL's order (dimension 0 varies fastest). local[0] == 0: the backend
 * chooses. */
typedef struct drupe_range {
    uint32_t dims; /* 1 to 3 */
    size_t global[3], local[3], offset[3];
} drupe_range;

typedef enum drupe_arg_kind {
    DRUPE_ARG_POINTER, /* value points to a `void *` into USM, or to NULL */
    DRUPE_ARG_VALUE,   /* `size` bytes at `value`, copied */
    DRUPE_ARG_LOCAL    /* `size` bytes of local memory */
} drupe_arg_kind;

typedef struct drupe_arg {
    drupe_arg_kind kind;
    size_t size;
    const void *value;
} drupe_arg;

/* All of these check their arguments, queue the work and return at once. `event` may be NULL (cheaper); else
 * it receives a retained event. Pointers are checked against the engine's allocations: a range that crosses
 * the end of one is DRUPE_E_OUT_OF_RANGE, USM of another context is DRUPE_E_INVALID for kernels. */

DRUPE_API drupe_status drupe_submit_kernel(const drupe_submission *s, drupe_kernel *kernel,
                                           const drupe_range *range, const drupe_arg *args, size_t nargs,
                                           drupe_event **event) DRUPE_MUST_CHECK;
/* The same for a kernel with drupe_kernel_words(), and quicker: each word holds the pointer or the bytes of
 * the value in its first bytes, the rest of it being 0. */
DRUPE_API drupe_status drupe_submit_words(const drupe_submission *s, drupe_kernel *kernel,
                                          const drupe_range *range, const uint64_t *words,
                                          drupe_event **event) DRUPE_MUST_CHECK;
/* Between any two of: USM of this context, USM of another context or backend (staged through the host), host
 * memory (which must stay valid until done: use `keeps`). The ranges must not overlap. */
DRUPE_API drupe_status drupe_submit_copy(const drupe_submission *s, void *dst, const void *src, size_t bytes,
                                         drupe_event **event) DRUPE_MUST_CHECK;
/* Make a copy within the call, where the queue has nothing in flight, the device's memory is the host's and
 * the copy is small: that takes a third of the time of drupe_submit_copy(), which tries it first. False:
 * nothing has happened, and that is the way. The event, if wanted, is complete. Keeps are not looked at and
 * stay the caller's, waits have the answer be false. */
DRUPE_API bool drupe_copy_at_once(const drupe_submission *s, void *dst, const void *src, size_t bytes,
                                  drupe_event **event) DRUPE_MUST_CHECK;
/* Repeat a pattern of 1, 2, 4, 8 or 16 bytes, copied, over `bytes`, a multiple of its size. */
DRUPE_API drupe_status drupe_submit_fill(const drupe_submission *s, void *dst, const void *pattern,
                                         size_t pattern_size, size_t bytes,
                                         drupe_event **event) DRUPE_MUST_CHECK;
/* Hints that touch no contents: move `bytes` of USM to the queue's device ahead of their use; tell the driver
 * how they will be used, in its own numbers (0 takes earlier advice back). Where the device has no such thing
 * they only take their place on the queue. */
DRUPE_API drupe_status drupe_submit_prefetch(const drupe_submission *s, const void *pointer, size_t bytes,
                                             drupe_event **event) DRUPE_MUST_CHECK;
DRUPE_API drupe_status drupe_submit_advise(const drupe_submission *s, const void *pointer, size_t bytes,
                                           uint32_t advice, drupe_event **event) DRUPE_MUST_CHECK;
/* An event for "everything before this, and the waits". */
DRUPE_API drupe_status drupe_submit_barrier(const drupe_submission *s, drupe_event **event) DRUPE_MUST_CHECK;
/* Run fn(user) on a thread of the engine when its turn comes; not run when a wait failed. A result other than
 * DRUPE_OK fails the event with the error that fn left on its thread. fn must not wait for this queue. Up to
 * 64 host functions run at a time, so that some may wait for others. */
typedef drupe_status (*drupe_host_fn)(void *user);
DRUPE_API drupe_status drupe_submit_host(const drupe_submission *s, drupe_host_fn fn, void *user,
                                         drupe_event **event) DRUPE_MUST_CHECK;
/* A host function over bytes of its own, of which it gets a copy. It fails by a fault alone: what it answers
 * is not looked at. `memories` have no entry that is NULL, and `effects` of the submission has their bits. */
typedef struct drupe_host_call {
    drupe_host_fn fn;
    void *bytes; /* borrowed; aligned to 16, as the copy is */
    uint32_t size;
    struct drupe_memory *const *memories; /* borrowed: what it works on */
    size_t nmemories;
    const char *name; /* borrowed; lives as long as `object` */
    void *object;     /* borrowed: what hold() keeps for the submission, until drop() */
    void (*hold)(void *object);
    void (*drop)(void *object);
} drupe_host_call;
/* Queue a call where nothing is in its way and the backend has threads for host functions: that takes half
 * the time of drupe_submit_host(). False: nothing has happened, and that is the way. `*status` as of a
 * submission. Of `s` only queue, site and effects count; with anything else the answer is false. */
DRUPE_API bool drupe_submit_host_call(const drupe_submission *s, const drupe_host_call *call,
                                      drupe_event **event, drupe_status *status) DRUPE_MUST_CHECK;
/* A place on the queue for work that the caller does itself, on a thread of its choice. When its turn comes
 * the event is RUNNING, and drupe_watch_turn() hands it out; the caller then does the work and ends it with
 * drupe_event_finish(). It may be failed before its turn, and fails by itself when a wait failed. */
DRUPE_API drupe_status drupe_submit_turn(const drupe_submission *s, drupe_event **event) DRUPE_MUST_CHECK;

/* What a submission does. */
typedef enum drupe_work_kind {
    DRUPE_WORK_KERNEL,
    DRUPE_WORK_COPY,
    DRUPE_WORK_FILL,
    DRUPE_WORK_BARRIER,
    DRUPE_WORK_HOST,
    DRUPE_WORK_PREFETCH,
    DRUPE_WORK_ADVISE,
    DRUPE_WORK_MARK /* nothing but an event in its place, such as a copy of no bytes */
} drupe_work_kind;

#endif
