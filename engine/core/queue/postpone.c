/* Work that is held back by who builds on core, and when it can be held back no longer. */
#include "core/queue/launch.h"

static _Atomic(const drupe_postponer *) the_postponer;

void drupe_postpone_by(const drupe_postponer *postponer)
{
    atomic_store(&the_postponer, postponer);
}

void drupe_queue_postpone(drupe_queue *queue, bool some)
{
    atomic_store_explicit(&queue->postponed, some, memory_order_release);
}

drupe_status drupe_postponed_submit(drupe_queue *queue)
{
    const drupe_postponer *postponer = atomic_load_explicit(&the_postponer, memory_order_acquire);
    return postponer ? postponer->of_queue(queue) : DRUPE_OK;
}

drupe_status drupe_postponed_flush(drupe_queue *queue)
{
    DRUPE_TRY(drupe_queue_let_go(queue));
    drupe_queue_flush(queue);
    return DRUPE_OK;
}

drupe_status drupe_postponed_readers(drupe_memory *memory)
{
    const drupe_postponer *postponer = atomic_load_explicit(&the_postponer, memory_order_acquire);
    return postponer ? postponer->of_memory(memory) : DRUPE_OK;
}

drupe_status drupe_queue_pause(drupe_queue *queue, uint64_t timeout_ns)
{
    drupe_status status = DRUPE_OK;
    if (!drupe_core_pause(queue, timeout_ns, &status) || status == DRUPE_E_BUSY)
        (void)drupe_queue_idle(queue, timeout_ns);
    if (status != DRUPE_E_CANCELLED) return status;
    return drupe_error_set(status, "The program was interrupted while it waited for other work of %s.",
                           queue->base.device->filter);
}
