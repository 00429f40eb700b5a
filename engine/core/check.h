/* Checked mode inside of core: what the steps of a submission tell it. See drupe/check.h. */
#ifndef DRUPE_CORE_CHECK_H
#define DRUPE_CORE_CHECK_H

#include "core/core.h"
#include "drupe/check.h"

extern _Atomic(unsigned) drupe_check_depth;

static inline bool drupe_check_on(void)
{
    return __builtin_expect(atomic_load_explicit(&drupe_check_depth, memory_order_relaxed) != 0, 0);
}

/* --- check.c: the order of submissions ------------------------------------------------------------------ */

/* Before the work of a loaded flight is launched; the queue's lock is held. */
drupe_status drupe_check_submission(const drupe_ticket *ticket, const drupe_flight *flight,
                                    const drupe_work *work) DRUPE_MUST_CHECK;
/* The caller knows that the event is over, and with it all that it waited for unless it failed. */
void drupe_check_event(const drupe_event *event);
/* The same for what was submitted to the queue up to `number`. */
void drupe_check_queue(const drupe_queue *queue, uint64_t number);
/* The queue is gone; another may get its address. */
void drupe_check_closed(const drupe_queue *queue);
/* A submission did not run. */
void drupe_check_skipped(uint64_t number);
/* A submission is over and gives up what it kept alive: its host memory may be another's now. */
void drupe_check_dropped(uint64_t number);
/* These bytes are nobody's any more. */
void drupe_check_forget(const void *base, size_t bytes);
/* The latest submission that may have written there; false when none is known. */
bool drupe_check_writer(const void *base, size_t bytes, drupe_check_place *place);
/* Where the calling thread's program is. It takes what the observer locks: no lock may be held. */
void drupe_check_here(drupe_check_place *place, const char *label);
/* Count a finding. */
void drupe_check_count(void);
/* The same, keep it for the thread and return DRUPE_E_CHECK. */
drupe_status drupe_check_found(const drupe_finding *finding, const char *format, ...) DRUPE_PRINTF(2, 3);

/* --- zone.c: guarded memory ----------------------------------------------------------------------------- */

#define DRUPE_ZONE 4096u

/* How `memory->room` bytes, aligned to `align`, are to lie in a block from the driver: `zone` bytes of it
 * come before and `behind` behind them, and `fence` of each, at the outside, are pages that nobody may touch.
 */
void drupe_zone_plan(drupe_memory *memory, size_t align);
/* Memory fresh from the driver, in a block that was planned. */
void drupe_zone_open(drupe_memory *memory);
/* What the fault of a thread that works for a device has to do with guarded memory, appended to `text` of
 * `size` bytes; false: nothing. */
bool drupe_zone_fault(const drupe_fault *fault, char *text, size_t size);
/* Look at the zones of all memory, once per wait. */
drupe_status drupe_zone_check(void) DRUPE_MUST_CHECK;
/* It was freed: look at it for the last time and keep it back; older memory gives way. */
void drupe_zone_give(drupe_memory *memory);
/* Give what was kept back to the driver; of one pool, or of all (NULL). */
void drupe_zone_flush(const drupe_pool *pool);
/* DRUPE_E_CHECK for an address in memory that was freed. The registry's lock is held. */
drupe_status drupe_zone_freed(const drupe_memory *memory, const char *what, const void *address);

/* --- fence.c: pages that fault -------------------------------------------------------------------------- */

/* Bytes of them on each side of an allocation: more than a stray index usually strays. */
#define DRUPE_FENCE (64u << 10)

/* contain.c: whether the faults of adopted threads are, or will be, contained. */
bool drupe_contain_active(void);
/* Whether memory of this pool can have them: faults are contained, and the device works in host memory. */
bool drupe_fence_possible(const drupe_pool *pool);
/* Make the fence of memory in a block unreachable. When the system has no more maps it becomes a part of the
 * zones. */
void drupe_fence_raise(drupe_memory *memory);
/* Make it ordinary memory again, before the driver gets the block back. False: it must not get it. */
bool drupe_fence_lower(const drupe_memory *memory);

#endif
