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

bool drupe_memory_sole(const drupe_memory *memory, const drupe_queue *queue)
{
    uint64_t uses = atomic_load_explicit(&((drupe_memory *)memory)->uses, memory_order_acquire);
    bool here = memory->queue == queue && !drupe_queue_unordered(queue) && !memory->imported;
    if (!here || (count_of(uses) && uses >> DRUPE_USES_SHIFT != queue->number)) return false;
    return atomic_load_explicit(&((drupe_memory *)memory)->object.references, memory_order_acquire) == 1;
}

/* --- What comes before ---------------------------------------------------------------------------------- */

/* Silent work is over when something behind it has proven that. */
static bool is_over(const drupe_queue *queue, const drupe_flight *flight)
{
    if (flight->number <= queue->proven) return true;
    return flight->event && drupe_phase_over(drupe_event_phase(flight->event));
}

/* An event that proves the end of silent work of an in-order queue: of work behind it that the driver has, or
 * of a barrier before what is held, which may be held for as long as the program likes. NULL: it is over.
 * What failed proves nothing. */
static drupe_status event_behind(drupe_queue *queue, const drupe_flight *silent, drupe_event **event)
{
    drupe_flight *at = silent->next;
    for (; at && at != queue->held; at = at->next) {
        drupe_phase phase = at->event ? drupe_event_phase(at->event) : DRUPE_PHASE_FAILED;
        if (phase == DRUPE_PHASE_COMPLETE) return DRUPE_OK;
        if (phase == DRUPE_PHASE_FAILED) continue;
        *event = drupe_event_retain(at->event);
        return DRUPE_OK;
    }
    DRUPE_TRY(drupe_queue_mark(queue, at, event));
    if (!*event || drupe_event_phase(*event) != DRUPE_PHASE_FAILED) return DRUPE_OK;
    drupe_event_release(*event);
    *event = NULL;
    return drupe_error_set(DRUPE_E_BUSY,
                           "Work of queue %u on %s may still use this memory, and a failure of later work on "
                           "that queue has not been reported yet. Wait for that queue first.",
                           queue->number, queue->device->filter);
}

static drupe_status before_ordered(drupe_queue *queue, uint64_t number,
                                   drupe_status (*add)(void *, drupe_event *), void *user, bool *found)
{
    const drupe_flight *last = NULL;
    for (const drupe_flight *at = queue->head; at && at->number <= number; at = at->next)
        if (!is_over(queue, at)) last = at;
    *found = last != NULL;
    if (!last) return DRUPE_OK;
    drupe_event *event = NULL;
    if (last->event)
        event = drupe_event_retain(last->event);
    else
        DRUPE_TRY(event_behind(queue, last, &event));
    drupe_queue_flush_locked(queue);
    *found = event != NULL;
    return event ? add(user, event) : DRUPE_OK;
}

static drupe_status before_unordered(const drupe_queue *queue, uint64_t number,
                                     drupe_status (*add)(void *, drupe_event *), void *user, bool *found)
{
    const drupe_flight *lists[] = {queue->head, queue->held};
    for (size_t i = 0; i < DRUPE_COUNT_OF(lists); i++) {
        for (const drupe_flight *at = lists[i]; at; at = at->next) {
            if (at->number > number || is_over(queue, at)) continue;
            *found = true;
            DRUPE_TRY(add(user, drupe_event_retain(at->event)));
        }
    }
    return DRUPE_OK;
}

drupe_status drupe_memory_before(drupe_memory *memory, drupe_status (*add)(void *user, drupe_event *event),
                                 void *user)
{
    drupe_queue *queue = memory->queue;
    uint64_t uses = atomic_load_explicit(&memory->uses, memory_order_acquire);
    bool found = false;
    drupe_status status = DRUPE_OK;
    if (!atomic_load_explicit(&memory->order, memory_order_relaxed)) return DRUPE_OK;
    if (count_of(uses)) {
        drupe_queue_settle(queue, true);
        pthread_mutex_lock(&queue->lock);
        status = drupe_queue_unordered(queue) ? before_unordered(queue, memory->born, add, user, &found)
                                              : before_ordered(queue, memory->born, add, user, &found);
        pthread_mutex_unlock(&queue->lock);
    }
    if (status == DRUPE_OK && !found) atomic_store_explicit(&memory->order, 0, memory_order_relaxed);
    return status;
}

/* The first one is enough: the caller asks again. */
static drupe_status keep_first(void *user, drupe_event *event)
{
    drupe_event **first = user;
    if (*first)
        drupe_event_release(event);
    else
        *first = event;
    return DRUPE_OK;
}

drupe_status drupe_memory_before_use(drupe_memory *memory, drupe_event **event)
{
    *event = NULL;
    DRUPE_TRY(drupe_core_check());
    return drupe_memory_before(memory, keep_first, event);
}
