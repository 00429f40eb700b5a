/* What work in flight uses.
 *
 * On an in-order queue the order of submissions is the order of uses. So a piece whose handle is gone may be
 * written by the next work of the queue that still uses it, and nobody has to know when that use ends.
 * Whatever leaves this order has to wait for it: here is told for what. */
#include "core/memory/memory_room.h"
#include <stdlib.h>

static uint64_t count_of(uint64_t uses)
{
    return uses & DRUPE_USES_COUNT;
}

void drupe_uses_add(drupe_memory *memory, const drupe_queue *queue)
{
    uint64_t seen = atomic_load_explicit(&memory->uses, memory_order_relaxed), wanted;
    do {
        uint64_t whose = drupe_base(queue)->number;
        if (count_of(seen) && seen >> DRUPE_USES_SHIFT != whose) whose = DRUPE_USES_SEVERAL;
        wanted = whose << DRUPE_USES_SHIFT | (uint32_t)(seen + 1);
    } while (!atomic_compare_exchange_weak_explicit(&memory->uses, &seen, wanted, memory_order_acq_rel,
                                                    memory_order_relaxed));
}

void drupe_uses_drop(void *object)
{
    drupe_memory *memory = object;
    if (atomic_load_explicit(&drupe_core_forked, memory_order_relaxed)) return;
    uint64_t seen = atomic_load_explicit(&memory->uses, memory_order_relaxed);
    while (!(seen & DRUPE_USES_ORPHAN)) {
        if (atomic_compare_exchange_weak_explicit(&memory->uses, &seen, seen - 1, memory_order_acq_rel,
                                                  memory_order_relaxed))
            return;
    }
    if (drupe_pool_unuse(memory)) drupe_memory_retire(memory);
}

drupe_keep drupe_memory_keep(drupe_memory *memory, const drupe_queue *queue)
{
    drupe_uses_add(memory, queue);
    return (drupe_keep){memory, drupe_uses_drop};
}

bool drupe_memory_in_use(const drupe_memory *memory)
{
    return count_of(atomic_load_explicit(&((drupe_memory *)memory)->uses, memory_order_acquire)) > 0;
}

void drupe_memory_postpone(drupe_memory *memory, int32_t by)
{
    atomic_fetch_add_explicit(&memory->awaited, by, memory_order_acq_rel);
}

bool drupe_memory_exposed(const drupe_memory *memory)
{
    return memory->imported || atomic_load_explicit(&((drupe_memory *)memory)->exposed, memory_order_relaxed);
}

void drupe_memory_view(drupe_memory *memory, int32_t by)
{
    atomic_fetch_add(&memory->views, by);
}

bool drupe_memory_sole(const drupe_memory *memory, const drupe_queue *queue)
{
    return drupe_memory_only(memory, 1, queue);
}

bool drupe_memory_only(const drupe_memory *memory, uint32_t count, const drupe_queue *queue)
{
    uint64_t uses = atomic_load_explicit(&((drupe_memory *)memory)->uses, memory_order_acquire);
    bool here = memory->queue == queue && !drupe_queue_unordered(queue) && !memory->imported;
    if (!here || (count_of(uses) && uses >> DRUPE_USES_SHIFT != drupe_base(queue)->number)) return false;
    return atomic_load_explicit(&((drupe_memory *)memory)->object.references, memory_order_acquire) == count;
}

/* --- Letting go ----------------------------------------------------------------------------------------- */

void drupe_memory_retire(drupe_memory *memory)
{
    drupe_queue *queue = memory->queue;
    memory->queue = NULL;
    memory->context = NULL;
    if (drupe_gate_drop(memory)) {
        drupe_queue_inner_release(queue);
        return;
    }
    if (drupe_check_on()) {
        const drupe_redzone_ops *ops = drupe_redzone_ops_get();
        if (ops) ops->forget(memory->base, memory->room);
    }
    /* What cannot be overwritten is not kept: the driver gets it back. */
    bool wiped = atomic_load_explicit(&memory->pool->root->wipe, memory_order_relaxed) & DRUPE_WIPE_FREE;
    if (wiped && !memory->imported && drupe_pool_wipe(memory) != DRUPE_OK) memory->index = DRUPE_POOL_NEVER;
    drupe_pool_give(memory);
    drupe_queue_inner_release(queue);
}

drupe_memory *drupe_memory_retain(drupe_memory *memory)
{
    if (memory) drupe_object_retain(memory);
    return memory;
}

void drupe_memory_release(drupe_memory *memory)
{
    if (!memory || !drupe_object_release(memory)) return;
    drupe_mark_drop(memory);
    atomic_store_explicit(&memory->order, 0, memory_order_relaxed);
    if (drupe_pool_orphan(memory)) drupe_memory_retire(memory);
}
