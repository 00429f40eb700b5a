/* Whether anything is submitted or built: what the background waits for. */
#include "core/program/program_room.h"

static _Atomic(uint64_t) builds; /* that have ended */
static _Atomic(uint32_t)
    running; /* now; what only looks into the cache is the background's and not counted */

void drupe_activity_begin(unsigned counts)
{
    atomic_fetch_add_explicit(&running, counts, memory_order_relaxed);
}

void drupe_activity_end(unsigned counts)
{
    atomic_fetch_add_explicit(&builds, counts, memory_order_relaxed);
    atomic_fetch_sub_explicit(&running, counts, memory_order_release);
}

uint64_t drupe_library_activity(void)
{
    /* Who sees that a build has ended counts it, too. */
    if (atomic_load_explicit(&running, memory_order_acquire)) return drupe_now_ns();
    return drupe_inflight_latest() + atomic_load_explicit(&builds, memory_order_relaxed);
}
