/* Copies that take several steps.
 *
 * Files: cross_context.c (an end lies in another context), pinned.c (which copies are made in pieces, and the
 * pinned memory for that), staged_copy.c (how they are made).
 *
 * Owns: the rings of pinned memory (lock of pinned.c, a leaf) and copies in pieces.
 *
 * Threads: those of queue/worker.c. */
#ifndef DRUPE_CORE_TRANSFER_ROOM_H
#define DRUPE_CORE_TRANSFER_ROOM_H

#include "core/queue/launch.h"

/* One end of a copy; memory NULL: host memory. */
typedef struct drupe_copy_end {
    void *pointer;
    drupe_memory *memory;
    bool foreign; /* it needs a queue of its own context */
} drupe_copy_end;

/* A copy with at least one foreign end, made of ordinary submissions. Takes the submission info's refs. */
drupe_status drupe_cross_context_copy(const drupe_submit_info *info, const drupe_copy_end *dst,
                                      const drupe_copy_end *src, size_t bytes,
                                      drupe_event **event) DRUPE_MUST_CHECK;

/* --- pinned.c ------------------------------------------------------------------------------------------- */

/* Have a large copy made in pieces where that is faster: `work` gets a body for core to run, and `refs` what
 * that needs. The ends' memory must be among them, and neither end is foreign. */
drupe_status drupe_pinned_plan(drupe_queue *queue, const drupe_copy_end *dst, const drupe_copy_end *src,
                               drupe_work *work, drupe_refs *refs) DRUPE_MUST_CHECK;
#define DRUPE_RING ((size_t)32 << 20) /* bytes of pinned memory */
/* Nothing is in flight in it. */
void drupe_ring_give_back(drupe_context *context, char *ring);

/* --- staged_copy.c -------------------------------------------------------------------------------------- */

#define DRUPE_STAGED_COPY_THREADS 12u

typedef struct drupe_staged_copy drupe_staged_copy;
/* The copy of `work` by so many threads; `queue` must outlive its run. Takes the ring, which may be NULL;
 * NULL: no memory, and the ring is not taken. */
drupe_staged_copy *drupe_staged_copy_new(char *ring, unsigned nthreads, drupe_queue *queue, bool to_device,
                                         const drupe_work *work);
void drupe_staged_copy_release(void *copy);
/* The body of the submission, a drupe_host_fn; once. Whatever happens, nothing is under way afterwards. */
drupe_status drupe_staged_copy_run(void *copy);

#endif
