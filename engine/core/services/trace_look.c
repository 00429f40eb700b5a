/* What those need who follow the trace: to have the queues looked at. */
#include "core/services/services_room.h"

#define LOOK_MOST 1024u /* with a queue's lock */

void drupe_trace_update(void)
{
    if (drupe_core_check() != DRUPE_OK) return;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        drupe_queue_collect(queue);
    }
}

/* As drupe_queue_collect() does, but what is over stays in the list. */
static void look_at(drupe_queue *queue)
{
    drupe_event *mark = NULL;
    pthread_mutex_lock(&queue->lock);
    if (queue->proof.unmarked && drupe_queue_mark(queue, NULL, &mark) != DRUPE_OK) mark = NULL;
    drupe_queue_flush_locked(queue);
    bool unordered = drupe_queue_unordered(queue);
    if (unordered) drupe_unordered_settle(queue);
    /* Submitters come between. */
    while (!unordered && drupe_inflight_look(queue, LOOK_MOST)) {
        pthread_mutex_unlock(&queue->lock);
        pthread_mutex_lock(&queue->lock);
    }
    pthread_mutex_unlock(&queue->lock);
    drupe_event_release(mark);
}

void drupe_trace_look(void)
{
    if (drupe_core_check() != DRUPE_OK) return;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (!drupe_device_silent(queue->base.device)) look_at(queue);
    }
}

static bool known_over(const drupe_queue *queue, const drupe_inflight *entry)
{
    if (entry->event) return drupe_phase_over(drupe_event_phase(entry->event));
    return entry->what.number <= queue->proof.proven;
}

/* The list is in the order of numbers, but for barriers that core has put between. */
static uint64_t oldest_ordered(const drupe_queue *queue)
{
    uint64_t oldest = UINT64_MAX;
    for (const drupe_inflight *entry = drupe_inflight_unlooked(queue); entry; entry = entry->next) {
        if (known_over(queue, entry)) continue;
        if (entry->what.number < oldest) oldest = entry->what.number;
        if (!entry->event || !entry->event->behind) break;
    }
    return oldest;
}

static uint64_t oldest_unordered(const drupe_queue *queue)
{
    uint64_t oldest = UINT64_MAX;
    const drupe_inflight *lists[] = {queue->order.head, queue->order.deferred};
    for (size_t i = 0; i < DRUPE_COUNT_OF(lists); i++) {
        for (const drupe_inflight *entry = lists[i]; entry; entry = entry->next) {
            if (!known_over(queue, entry) && entry->what.number < oldest) oldest = entry->what.number;
        }
    }
    return oldest;
}

static uint64_t oldest_of(drupe_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t oldest = drupe_queue_unordered(queue) ? oldest_unordered(queue) : oldest_ordered(queue);
    pthread_mutex_unlock(&queue->lock);
    return oldest;
}

uint64_t drupe_trace_oldest(uint32_t number)
{
    uint64_t oldest = UINT64_MAX;
    if (drupe_core_check() != DRUPE_OK) return oldest;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (queue->base.number == number) oldest = oldest_of(queue);
    }
    return oldest;
}

static const drupe_inflight *find(const drupe_inflight *list, uint64_t id)
{
    while (list && list->what.number != id) list = list->next;
    return list;
}

/* Looked for in the queue's lists only: whoever asks keeps nothing of it alive. What an out-of-order queue
 * holds has a list of its own. */
static drupe_trace_start start_on(drupe_queue *queue, uint64_t id)
{
    drupe_trace_start start = DRUPE_TRACE_BEGUN;
    pthread_mutex_lock(&queue->lock);
    const drupe_inflight *entry = find(queue->order.head, id);
    if (!entry) entry = find(queue->order.deferred, id);
    drupe_event *event = entry ? entry->event : NULL;
    if (event && drupe_event_phase(event) == DRUPE_PHASE_DEFERRED) start = DRUPE_TRACE_BEHIND;
    if (event && drupe_event_phase(event) == DRUPE_PHASE_NATIVE) {
        drupe_event_state state = DRUPE_EVENT_RUNNING;
        drupe_status status = event->object.backend->event_state(event, &state);
        bool waits = state == DRUPE_EVENT_QUEUED || state == DRUPE_EVENT_SUBMITTED;
        if (status == DRUPE_OK && waits) start = DRUPE_TRACE_PREPARING;
    }
    pthread_mutex_unlock(&queue->lock);
    return start;
}

drupe_trace_start drupe_trace_start_of(uint32_t number, uint64_t id)
{
    const drupe_device *device = NULL; /* compared only */
    drupe_queue *queue = NULL;
    drupe_trace_start start = DRUPE_TRACE_BEGUN;
    if (drupe_core_check() != DRUPE_OK) return start;
    while ((queue = drupe_queue_walk(queue)) != NULL) {
        if (queue->base.number != number || drupe_device_silent(queue->base.device)) continue;
        start = start_on(queue, id);
        device = queue->base.device;
    }
    if (start != DRUPE_TRACE_PREPARING) return start;
    while ((queue = drupe_queue_walk(queue)) != NULL)
        if (queue->base.device == device && oldest_of(queue) < id) start = DRUPE_TRACE_BEHIND;
    return start;
}
