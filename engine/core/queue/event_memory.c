/* The memory of events, which goes back to their queue for the next ones.
 *
 * The memory has an inner reference to its queue, also while it is spare: so neither end of an event's life
 * touches a counter. When the last handle of the queue goes, the spare ones give theirs up, and a bit beside
 * the list to which events return tells the others to do so as they come. */
#include "core/queue/launch.h"
#include <stdlib.h>
#include <string.h>

/* A sanitizer shall see the use of an event that is gone. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEPS_SPARES false
#else
#define KEEPS_SPARES true
#endif

#define CLOSED ((uintptr_t)1) /* in `returned`: nothing is kept any more */

static bool is_closed(uintptr_t returned)
{
    return !KEEPS_SPARES || returned & CLOSED;
}

/* What others have given back, as a list. */
static drupe_event *fetch_returned(drupe_queue *queue, uintptr_t leave)
{
    uintptr_t seen = atomic_exchange_explicit(&queue->store.returned, leave, memory_order_acq_rel);
    return (drupe_event *)(seen & ~CLOSED);
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

void drupe_event_keep_no_more(drupe_queue *queue)
{
    uint32_t spare = 0;
    pthread_mutex_lock(&queue->lock);
    if (!is_closed(atomic_load(&queue->store.returned))) {
        drupe_event *list = fetch_returned(queue, CLOSED), **end = &list;
        while (*end) end = &(*end)->next_spare;
        *end = queue->store.spare;
        queue->store.spare = list;
        for (; list; list = list->next_spare) spare++;
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
    uintptr_t seen = atomic_load_explicit(&queue->store.returned, memory_order_acquire);
    do {
        if (!keep && is_closed(seen)) {
            free(event);
            break;
        }
        event->next_spare = (drupe_event *)(seen & ~CLOSED);
    } while (!atomic_compare_exchange_weak_explicit(&queue->store.returned, &seen,
                                                    (uintptr_t)event | (seen & CLOSED), memory_order_acq_rel,
                                                    memory_order_acquire));
    /* Otherwise the queue may be gone by now. */
    if (is_closed(seen)) drupe_queue_inner_release(queue);
}

/* One whose memory is new. */
static drupe_status event_new(drupe_queue *queue, drupe_event **event)
{
    const drupe_backend *backend = queue->base.slot->backend;
    *event = drupe_object_new(NULL, backend, sizeof **event, backend->size.event);
    if (!*event) return DRUPE_E_NO_MEMORY;
    (*event)->queue = queue;
    drupe_queue_inner_retain(queue);
    return DRUPE_OK;
}

/* One that is nobody's, as if it was fresh. Its second line is (see drupe_event_release()). */
static void renew(drupe_event *event, size_t native)
{
    atomic_init(&event->object.references, 1);
    memset(&event->phase, 0, offsetof(drupe_event, number) - offsetof(drupe_event, phase));
    event->entry = NULL;
    event->number = 0;
    for (size_t at = 0; at < native; at += 64) memset((char *)(event + 1) + at, 0, 64);
}

drupe_status drupe_event_next(drupe_queue *queue, drupe_event **event)
{
    drupe_event *spare = NULL;
    if (!is_closed(atomic_load_explicit(&queue->store.returned, memory_order_relaxed)))
        spare = pop_spare(queue);
    if (!spare) return event_new(queue, event);
    drupe_event *after = queue->store.spare;
    if (after) {
        drupe_prefetch_write(after);
        drupe_prefetch_write(after + 1);
    }
    renew(spare, queue->base.slot->backend->size.event);
    *event = spare;
    return DRUPE_OK;
}
