/* Who uses memory, and guards it: what the rooms above have registered. */
#include "core/memory/memory_room.h"

_Atomic(const drupe_memory_users *) drupe_memory_users_now;
_Atomic(const drupe_redzone_ops *) drupe_redzone_ops_now;

const char *drupe_mem_kind_name(drupe_mem_kind kind)
{
    static const char *const names[] = {"device", "shared", "host"};
    return (unsigned)kind < DRUPE_COUNT_OF(names) ? names[kind] : "unknown";
}

void drupe_queue_inner_retain(drupe_queue *queue)
{
    atomic_fetch_add_explicit(&drupe_base(queue)->inner, 1, memory_order_relaxed);
}

void drupe_queue_inner_release(drupe_queue *queue)
{
    if (atomic_load_explicit(&drupe_core_forked, memory_order_relaxed)) return;
    if (atomic_fetch_sub_explicit(&drupe_base(queue)->inner, 1, memory_order_acq_rel) == 1)
        drupe_memory_users_get()->destroy(queue);
}
