/* Devices that are lost.
 *
 * A root device is lost once and for good. Its unfinished events fail when they are next looked at (event.c),
 * so that causes keep the order of submission; the first of each queue is looked at here, because nobody may
 * be waiting. Where the driver may still write (`silent`), what unfinished work holds is never given back and
 * the driver is not called any more: leaking it is what keeps the rest of the process sound. */
#include "core/core.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOCK_TRIES    100
#define LOCK_PAUSE_NS 2000000

drupe_status drupe_loss_check(const drupe_device *device)
{
    const drupe_loss *loss = drupe_device_loss(device);
    if (!loss) return DRUPE_OK;
    return drupe_error_set_native(DRUPE_E_DEVICE_LOST, loss->error.backend, loss->error.native,
                                  loss->error.native_name, "The device %s is lost: %.900s", device->filter,
                                  loss->error.text);
}

/* A thread that waits in a driver for a kernel that never ends may hold the lock; it finds out by itself. */
static bool lock_soon(drupe_queue *queue)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (pthread_mutex_trylock(&queue->lock) == 0) return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* The first submission that is with the backend and not known to be over. */
static drupe_flight *first_unfinished(drupe_queue *queue)
{
    drupe_flight *first = NULL;
    for (drupe_flight *flight = queue->head; flight && flight != queue->held; flight = flight->next) {
        drupe_event_state state = DRUPE_EVENT_SUBMITTED;
        drupe_event *event = flight->event;
        bool over = flight->number <= queue->proven;
        if (event && !over) {
            over = drupe_phase_over(drupe_event_phase(event)) ||
                   (event->object.backend->event_state(event, &state) == DRUPE_OK &&
                    state == DRUPE_EVENT_COMPLETE);
        }
        if (over)
            first = NULL; /* and what stands before it is over as well */
        else if (!first)
            first = flight;
    }
    return first;
}

void drupe_loss_suspects(const drupe_device *device, char *text, size_t size)
{
    size_t length = 0;
    *text = '\0';
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (queue->device->root != device->root || !lock_soon(queue)) continue;
        const drupe_flight *flight = first_unfinished(queue);
        if (flight && length + 32 < size) {
            length += (size_t)snprintf(text + length, size - length, "%s'%s' (submission %llu)",
                                       length ? ", " : "", flight->label, (unsigned long long)flight->number);
        }
        pthread_mutex_unlock(&queue->lock);
        if (length >= size) length = size - 1;
    }
}

bool drupe_loss_readable(const drupe_place *dst, const drupe_place *src)
{
    if (dst->memory || !src->memory) return false;
    const drupe_device *device = src->memory->pool->device;
    return drupe_device_silent(device) && device->type == DRUPE_DEVICE_CPU;
}

drupe_status drupe_loss_copy(drupe_queue *queue, void *dst, const void *src, size_t bytes,
                             drupe_event **event)
{
    if (event) {
        DRUPE_TRY(drupe_event_new(queue, event));
        atomic_store(&(*event)->phase, DRUPE_PHASE_COMPLETE);
    }
    memcpy(dst, src, bytes);
    return DRUPE_OK;
}

static void fail_first(drupe_queue *queue, const drupe_error *error)
{
    drupe_flight *flight = first_unfinished(queue);
    if (!flight) return;
    if (flight->event) {
        drupe_event_poll_locked(flight->event);
        return;
    }
    drupe_cause *cause = drupe_cause_new(error, flight, queue, flight->number);
    drupe_queue_blame(queue, cause, flight->number);
    drupe_cause_release(cause);
}

void drupe_core_device_lost(drupe_device *device, const drupe_error *error, bool silent)
{
    drupe_loss *fresh = malloc(sizeof *fresh), *none = NULL;
    if (!fresh) return; /* nothing can be said; work on the device stays unfinished */
    *fresh = (drupe_loss){.error = *error, .silent = silent};
    if (!atomic_compare_exchange_strong(&device->root->loss, &none, fresh)) {
        free(fresh);
        return;
    }
    for (drupe_queue *queue = silent ? drupe_queue_walk(NULL) : NULL; queue;
         queue = drupe_queue_walk(queue)) {
        if (queue->device->root != device->root || !lock_soon(queue)) continue;
        fail_first(queue, error);
        pthread_mutex_unlock(&queue->lock);
    }
    drupe_hold_kick();
    drupe_hold_announce();
}
