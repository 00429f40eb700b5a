/* Threads that help in a loop of the host: their faults are those of whoever began the loop.
 *
 * A part of a loop is code of the function that called it, on another thread. That thread is parked like any
 * that ran code of which nothing is known. Its caller waits for it: it learns of the fault from the thread
 * that serves faults, takes it over, and is parked and told of in its place. So all that is known of faulting
 * functions holds for their parts, too. */
#include "base/parallel.h"
#include "core/fault/fault_room.h"

/* Of each helper, and by its address their owner. Written before the caller is woken. */
static drupe_fault noted[DRUPE_PARALLEL_HELPERS];

static void enter(unsigned helper, const _Atomic(int) *busy)
{
    drupe_core_register_thread(noted, helper, busy, NULL);
}

static void share(unsigned helper)
{
    const drupe_fault fault = noted[helper];
    drupe_parallel_replace(helper);
    drupe_isolation_share(&fault);
}

void drupe_loop_faults_open(void)
{
    static const drupe_parallel_guard guard = {enter, drupe_core_disown, drupe_isolation_contains, share};
    drupe_parallel_guard_set(&guard);
}

bool drupe_loop_fault(const drupe_fault *fault)
{
    if (fault->owner != noted) return false;
    noted[fault->index] = *fault;
    drupe_parallel_lost(fault->index);
    return true;
}
