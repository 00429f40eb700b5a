/* Parking: drupe/park.h says what it does.
 *
 * Reading order: look.c (what there is, and what stands in the way) -> bytes.c (a piece's bytes, to host
 * memory and back) -> park.c (all of them, or none).
 *
 * Owns nothing: which pieces are parked is memory's, since those who use memory ask (core/memory/gate.h).
 *
 * Locks: that of the gate, for all of a parking and all of an unparking; in it any of memory/ and queue/.
 * Handles are let go of outside of it, since the last of a parked piece takes it. No threads. */
#ifndef DRUPE_CORE_PARK_ROOM_H
#define DRUPE_CORE_PARK_ROOM_H

#include "core/queue/launch.h"

/* --- look.c --------------------------------------------------------------------------------------------- */

/* The pieces of a root device that are lent. */
typedef struct park_list {
    drupe_memory **all; /* malloc'ed: of every device, each retained */
    size_t nall;
    drupe_memory **pieces; /* those that move, in the same memory */
    size_t count;
} park_list;

/* Fill the list and the report. DRUPE_E_BUSY, and why, where something stands in the way. `held`: a call has
 * addresses in hand. The list is to be cleared in any case, without the gate's lock. */
drupe_status drupe_park_look(drupe_device *root, bool held, park_list *list,
                             drupe_park_report *report) DRUPE_MUST_CHECK;
void drupe_park_list_clear(park_list *list);

/* --- bytes.c -------------------------------------------------------------------------------------------- */

/* Who copies for the pieces of one context; zeroed at first. */
typedef struct park_copier {
    drupe_queue *queue; /* of its own; NULL: none was needed yet */
} park_copier;

#define DRUPE_PARK_HUGE ((size_t)2 << 20) /* a huge page: copies of several begin at one */
/* Host memory that is about to be filled, which takes longer page by page. */
void drupe_park_untouched(void *memory, size_t bytes);
/* Copy all bytes of the piece to `host`, or back. Nobody uses either. */
drupe_status drupe_park_save(park_copier *copier, const drupe_memory *memory, void *host) DRUPE_MUST_CHECK;
drupe_status drupe_park_restore(park_copier *copier, const drupe_memory *memory,
                                const void *host) DRUPE_MUST_CHECK;
void drupe_park_copier_close(park_copier *copier);

#endif
