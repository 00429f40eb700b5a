/* The memory of events, which goes back to their queue for the next ones.
 *
 * So that neither end of an event's life touches a counter, the queue knows how many it has made, and while
 * it has handles nobody asks how many of these are still in use. When the last handle goes, those that are
 * get an inner reference each, and a bit beside the list to which events return tells them so. */
#include "core/queue/launch.h"
#include <stdlib.h>
#include <string.h>

/* A sanitizer shall see the use of an event that is gone. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEPS_SPARES false
#else
#define KEEPS_SPARES true
#endif

#define ALL_COUNTED ((uintptr_t)1) /* in `returned` */

static bool all_counted(const drupe_queue *queue)
{
    uintptr_t seen = atomic_load_explicit(&((drupe_queue *)queue)->store.returned, memory_order_relaxed);
    return !KEEPS_SPARES || seen & ALL_COUNTED;
}

/* What others have given back, as a list. */
static drupe_event *fetch_returned(drupe_queue *queue, uintptr_t leave)
{
    uintptr_t seen = atomic_exchange_explicit(&queue->store.returned, leave, memory_order_acq_rel);
    return (drupe_event *)(seen & ~ALL_COUNTED);
}

/* Out of the list, or NULL. */
static drupe_event *pop_spare(drupe_queue *queue)
{
    drupe_event_store *store = &queue->store;
    if (!store->spare && atomic_load_explicit(&store->returned, memory_order_relaxed))
        store->spare = fetch_returned(queue, 0);
    drupe_event *spare = store->spare;
    if (spare) store->spare = spare->next_spare;
    return spare;
}

void drupe_event_count_all(drupe_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    if (!all_counted(queue)) {
        /* Too many at first: others give theirs up as soon as they see the bit. */
        atomic_fetch_add(&queue->base.inner, (uint32_t)queue->store.uncounted);
        drupe_event *list = fetch_returned(queue, ALL_COUNTED), **end = &list;
        while (*end) end = &(*end)->next_spare;
        *end = queue->store.spare;
        queue->store.spare = list;
        uint32_t spare = 0;
        for (; list; list = list->next_spare) spare += !list->counted;
        atomic_fetch_sub(&queue->base.inner, spare);
    }
    pthread_mutex_unlock(&queue->lock);
}

void drupe_event_forget_spares(drupe_queue *queue)
{
    for (drupe_event *spare; (spare = pop_spare(queue));) free(spare);
}

void drupe_event_put_away(drupe_queue *queue, drupe_event *event, bool keep)
{
    bool counted = event->counted;
    uintptr_t seen = atomic_load_explicit(&queue->store.returned, memory_order_acquire);
    do {
        if (!keep && (counted || seen & ALL_COUNTED)) {
            free(event);
            break;
        }
        event->next_spare = (drupe_event *)(seen & ~ALL_COUNTED);
    } while (!atomic_compare_exchange_weak_explicit(&queue->store.returned, &seen,
                                                    (uintptr_t)event | (seen & ALL_COUNTED),
                                                    memory_order_acq_rel, memory_order_acquire));
    /* Where it is not counted the queue may be gone by now. */
    if (counted || seen & ALL_COUNTED) drupe_queue_inner_release(queue);
}

static drupe_status event_make(drupe_queue *queue, drupe_event **event)
{
    const drupe_backend *backend = queue->base.slot->backend;
    *event = drupe_object_new(NULL, backend, DRUPE_OBJECT_EVENT, sizeof **event, backend->size.event);
    if (!*event) return DRUPE_E_NO_MEMORY;
    (*event)->queue = queue;
    return DRUPE_OK;
}

drupe_status drupe_event_new(drupe_queue *queue, drupe_event **event)
{
    DRUPE_TRY(event_make(queue, event));
    drupe_queue_inner_retain(queue);
    (*event)->counted = true;
    return DRUPE_OK;
}

/* One that is nobody's, as if it was fresh. Its second line is (see drupe_event_release()). */
static void renew(drupe_event *event, size_t native)
{
    atomic_init(&event->object.references, 1);
    memset(&event->phase, 0, offsetof(drupe_event, number) - offsetof(drupe_event, phase));
    event->entry = NULL;
    for (size_t at = 0; at < native; at += 64) memset((char *)(event + 1) + at, 0, 64);
}

drupe_status drupe_event_next(drupe_queue *queue, drupe_event **event)
{
    if (all_counted(queue)) return drupe_event_new(queue, event);
    drupe_event *spare = pop_spare(queue), *after = queue->store.spare;
    if (after) {
        drupe_prefetch_write(after);
        drupe_prefetch_write(after + 1);
    }
    if (!spare || spare->counted) queue->store.uncounted++;
    *event = spare;
    if (!spare) {
        drupe_status status = event_make(queue, event);
        if (status != DRUPE_OK) queue->store.uncounted--;
        return status;
    }
    renew(spare, queue->base.slot->backend->size.event);
    return DRUPE_OK;
}
