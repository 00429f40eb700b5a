/* What work in flight uses.
 *
 * On an in-order queue the order of submissions is the order of uses. So a piece whose handle is gone may be
 * written by the next work of the queue that still uses it, and nobody has to know when that use ends.
 * Whatever leaves this order has to wait for it: here is told for what. */
#include "core/core.h"

static uint64_t count_of(uint64_t uses)
{
    return uses & DRUPE_USES_COUNT;
}

void drupe_uses_add(drupe_memory *memory, const drupe_queue *queue)
{
    uint64_t seen = atomic_load_explicit(&memory->uses, memory_order_relaxed), wanted;
    do {
        uint64_t whose = queue->number;
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

/* --- What comes before ---------------------------------------------------------------------------------- */

/* The last flight of an in-order queue that was submitted up to `number`, or NULL: all of them are over. */
static drupe_flight *last_until(const drupe_queue *queue, uint64_t number)
{
    drupe_flight *last = NULL;
    if (queue->proven >= number) return NULL;
    for (drupe_flight *flight = queue->head; flight && flight->number <= number; flight = flight->next)
        last = flight;
    return last;
}

/* An event that tells the end of `flight`: its own or one soon behind it; retained, or NULL when it is over.
 * What failed proves nothing about silent work before it. The lock is held. */
static drupe_status event_behind(drupe_queue *queue, drupe_flight *flight, drupe_event **event)
{
    *event = NULL;
    for (drupe_flight *at = flight; at; at = at->next) {
        drupe_event *found = at != flight && at->marker ? at->marker : at->event;
        if (!found) continue;
        drupe_phase phase = drupe_event_phase(found);
        if (phase == DRUPE_PHASE_COMPLETE) return DRUPE_OK;
        if (phase == DRUPE_PHASE_FAILED) continue;
        *event = drupe_event_retain(found);
        return DRUPE_OK;
    }
    return drupe_queue_mark(queue, NULL, event);
}

static drupe_status before_unordered(drupe_queue *queue, drupe_event **event)
{
    const drupe_submission barrier = {.queue = queue};
    return drupe_submit_barrier(&barrier, event);
}

static drupe_status before_ordered(drupe_queue *queue, uint64_t number, drupe_event **event)
{
    drupe_status status = DRUPE_OK;
    pthread_mutex_lock(&queue->lock);
    drupe_flight *last = last_until(queue, number);
    if (last) status = event_behind(queue, last, event);
    if (*event) drupe_queue_flush_locked(queue);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

drupe_status drupe_memory_before_use(drupe_memory *memory, drupe_event **event)
{
    *event = NULL;
    drupe_queue *queue = memory->queue;
    uint64_t seen = atomic_load_explicit(&memory->uses, memory_order_acquire);
    if (!atomic_load_explicit(&memory->order, memory_order_relaxed)) return DRUPE_OK;
    if (count_of(seen) && drupe_queue_unordered(queue)) {
        DRUPE_TRY(before_unordered(queue, event));
    } else if (count_of(seen)) {
        DRUPE_TRY(before_ordered(queue, memory->born, event));
    }
    if (*event && drupe_phase_over(drupe_event_poll(*event))) {
        drupe_event_release(*event);
        *event = NULL;
    }
    if (!*event) atomic_store_explicit(&memory->order, 0, memory_order_relaxed);
    return DRUPE_OK;
}
