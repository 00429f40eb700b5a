/* Checked mode: what may be wrong although the devices do not say so. See drupe/check.h.
 *
 * Files: check.c (the order of submissions, findings), redzone.c (guarded memory).
 *
 * Owns: the ring of checked submissions, guarded and freed memory. Registers itself with memory/
 * (drupe_redzone_ops) and queue/ (drupe_checker).
 *
 * Locks: check.c's and redzone.c's; while a finding is written down in redzone.c, leaves are taken. No
 * threads. */
#ifndef DRUPE_CORE_CHECK_ROOM_H
#define DRUPE_CORE_CHECK_ROOM_H

#include "core/fault/fault_room.h"
#include "core/queue/queue_room.h"
#include "drupe/check.h"

/* --- check.c: the order of submissions ------------------------------------------------------------------ */

/* One of the two places that a finding is about; all zero: unknown. */
typedef struct drupe_check_place {
    char label[64], device[64];
    uint32_t site, cell; /* the observer's numbers, 0 = unknown */
} drupe_check_place;

/* These bytes are nobody's any more. */
void drupe_check_forget(const void *base, size_t bytes);
/* The latest submission that may have written there; false when none is known. */
bool drupe_check_writer(const void *base, size_t bytes, drupe_check_place *location);
/* Where the calling thread's program is. It takes what the observer locks: no lock may be held. */
void drupe_check_here(drupe_check_place *location, const char *label);
/* Count a finding. */
void drupe_check_count(void);
/* The same, and return DRUPE_E_CHECK. `here`: the work that was refused, or the latest that may have done it;
 * `there`: where the memory was allocated, or what a `race` is with; NULL or zero: unknown. */
drupe_status drupe_check_found(bool race, const drupe_check_place *here, const drupe_check_place *there,
                               const char *format, ...) DRUPE_PRINTF(4, 5);

/* --- redzone.c: guarded memory -------------------------------------------------------------------------- */

/* What is registered with memory/. */
extern const drupe_redzone_ops drupe_redzones;
/* What the fault of a thread that works for a device has to do with guarded memory, appended to `text` of
 * `size` bytes; false: nothing. */
bool drupe_redzone_fault(const drupe_fault *fault, char *text, size_t size);
/* Look at the redzones of all memory, once per wait. */
drupe_status drupe_redzone_check(void) DRUPE_MUST_CHECK;
/* Give what was kept back to the driver; of one pool, or of all (NULL). */
void drupe_redzone_release(const drupe_pool *pool);

#endif
