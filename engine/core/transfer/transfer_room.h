/* Copies that take several steps.
 *
 * Files: stage.c (an end lies in another context), pinned.c (which copies are made in pieces, and the
 * pinned memory for that), crossing.c (how they are made).
 *
 * Owns: the rings of pinned memory (lock of pinned.c, a leaf) and copies in pieces.
 *
 * Threads: those of queue/worker.c. */
#ifndef DRUPE_CORE_TRANSFER_ROOM_H
#define DRUPE_CORE_TRANSFER_ROOM_H

#include "core/queue/launch.h"

/* One end of a copy; memory NULL: host memory. */
typedef struct drupe_place {
    void *pointer;
    drupe_memory *memory;
    bool foreign; /* it needs a queue of its own context */
} drupe_place;

/* A copy with at least one foreign end, made of ordinary submissions. Takes the ticket's refs. */
drupe_status drupe_stage_copy(const drupe_ticket *ticket, const drupe_place *dst, const drupe_place *src,
                              size_t bytes, drupe_event **event) DRUPE_MUST_CHECK;

/* --- pinned.c ------------------------------------------------------------------------------------------- */

/* Have a large copy made in pieces where that is faster: `work` gets a body for core to run, and `refs` what
 * that needs. The ends' memory must be among them. */
drupe_status drupe_pinned_plan(drupe_queue *queue, const drupe_place *dst, const drupe_place *src,
                               drupe_work *work, drupe_refs *refs) DRUPE_MUST_CHECK;
#define DRUPE_RING ((size_t)32 << 20) /* bytes of pinned memory */
char *drupe_ring_buffers(const drupe_ring *ring);
void drupe_ring_give_back(drupe_ring *ring); /* NULL-safe; nothing is in flight */

/* --- crossing.c ----------------------------------------------------------------------------------------- */

#define DRUPE_CROSSING_HANDS 12u

typedef struct drupe_crossing drupe_crossing;
/* A copy by so many threads. Takes the ring, which may be NULL; NULL: no memory, and the ring is not taken.
 */
drupe_crossing *drupe_crossing_new(drupe_ring *ring, unsigned nhands);
/* Which copy; `queue` must outlive its run. */
void drupe_crossing_load(drupe_crossing *crossing, drupe_queue *queue, bool to_device,
                         const drupe_work *work);
void drupe_crossing_release(void *crossing);
/* The body of the submission, a drupe_host_fn; once. Whatever happens, nothing is under way afterwards. */
drupe_status drupe_crossing_run(void *crossing);

#endif
