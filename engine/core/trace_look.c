/* Waking the thread that follows the trace, and looking at the queues for it.
 *
 * Submitters compare their number with `alarm_at`, which the waiting thread sets and which is UINT64_MAX
 * while it is awake. The first submitter that reaches it takes it away and wakes the thread, so a wait costs
 * one submitter a system call. If the submission with that number is made just before `alarm_at` is set, its
 * submitter wakes nobody. Therefore the thread compares with the latest submission again before it sleeps.
 * Each side stores first and loads the other's value afterwards, sequentially consistent, so at least one of
 * the two sees the other. */
#include "core/core.h"
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MOST 1024u /* with a queue's lock */

static _Alignas(64) _Atomic(uint64_t) alarm_at = UINT64_MAX;
static _Alignas(64) _Atomic(uint32_t) calls; /* the futex: counts the wakings */
static uint32_t heard;                       /* the waiting thread's: those before its last wait */

void drupe_trace_wake(void)
{
    atomic_fetch_add(&calls, 1);
    syscall(SYS_futex, &calls, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void ring_alarm(uint64_t number)
{
    uint64_t at = atomic_load(&alarm_at);
    while (number >= at) {
        if (!atomic_compare_exchange_weak(&alarm_at, &at, UINT64_MAX)) continue;
        drupe_trace_wake();
        return;
    }
}

void drupe_trace_made(uint64_t number)
{
    if (number >= atomic_load(&alarm_at)) ring_alarm(number);
}

void drupe_trace_await(uint64_t number, uint64_t timeout_ns)
{
    atomic_store(&alarm_at, number);
    uint32_t seen = atomic_load(&calls);
    if (seen == heard && drupe_flight_latest() < number) {
        struct timespec span = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                                .tv_nsec = (long)(timeout_ns % 1000000000)};
        syscall(SYS_futex, &calls, FUTEX_WAIT_PRIVATE, seen, timeout_ns == DRUPE_FOREVER ? NULL : &span, NULL,
                0);
    }
    heard = atomic_load(&calls);
    atomic_store(&alarm_at, UINT64_MAX);
}

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
    if (queue->unmarked && drupe_queue_mark(queue, NULL, &mark) != DRUPE_OK) mark = NULL;
    drupe_queue_flush_locked(queue);
    bool unordered = drupe_queue_unordered(queue);
    if (unordered) drupe_unordered_settle(queue);
    /* Submitters come between. */
    while (!unordered && drupe_flight_look(queue, LOOK_MOST)) {
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
        if (!drupe_device_silent(queue->device)) look_at(queue);
    }
}

static bool known_over(const drupe_queue *queue, const drupe_flight *flight)
{
    if (flight->event) return drupe_phase_over(drupe_event_phase(flight->event));
    return flight->number <= queue->proven;
}

/* The list is in the order of numbers, but for barriers that core has put between. */
static uint64_t oldest_ordered(const drupe_queue *queue)
{
    uint64_t oldest = UINT64_MAX;
    for (const drupe_flight *flight = drupe_flight_unlooked(queue); flight; flight = flight->next) {
        if (known_over(queue, flight)) continue;
        if (flight->number < oldest) oldest = flight->number;
        if (!flight->event || !flight->event->behind) break;
    }
    return oldest;
}

static uint64_t oldest_unordered(const drupe_queue *queue)
{
    uint64_t oldest = UINT64_MAX;
    const drupe_flight *lists[] = {queue->head, queue->held};
    for (size_t i = 0; i < DRUPE_COUNT_OF(lists); i++) {
        for (const drupe_flight *flight = lists[i]; flight; flight = flight->next) {
            if (!known_over(queue, flight) && flight->number < oldest) oldest = flight->number;
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
        if (queue->number == number) oldest = oldest_of(queue);
    }
    return oldest;
}

/* Looked for in the queue's list only: whoever asks keeps nothing of it alive. */
static drupe_trace_start start_on(drupe_queue *queue, uint64_t id)
{
    drupe_trace_start start = DRUPE_TRACE_BEGUN;
    pthread_mutex_lock(&queue->lock);
    const drupe_flight *flight = queue->head;
    while (flight && flight->number != id) flight = flight->next;
    drupe_event *event = flight ? flight->event : NULL;
    if (event && drupe_event_phase(event) == DRUPE_PHASE_HELD) start = DRUPE_TRACE_BEHIND;
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
        if (queue->number != number || drupe_device_silent(queue->device)) continue;
        start = start_on(queue, id);
        device = queue->device;
    }
    if (start != DRUPE_TRACE_PREPARING) return start;
    while ((queue = drupe_queue_walk(queue)) != NULL)
        if (queue->device == device && oldest_of(queue) < id) start = DRUPE_TRACE_BEHIND;
    return start;
}

void drupe_trace_place(uint32_t site, uint32_t cell, char *text, size_t size)
{
    drupe_core_site_text(site, cell, text, size);
}
