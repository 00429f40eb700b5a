/* Devices that are lost.
 *
 * A root device is lost once and for good. Its unfinished events fail when they are next looked at (event.c),
 * so that causes keep the order of submission; the first of each queue is looked at here, because nobody may
 * be waiting. Where the driver may still write (`silent`), what unfinished work holds is never given back and
 * the driver is not called any more: leaking it is what keeps the rest of the process sound. */
#include "core/queue/launch.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOCK_TRIES    100
#define LOCK_PAUSE_NS 2000000

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

/* Later nobody can find out, so the driver is asked. */
static bool is_over(const drupe_queue *queue, const drupe_inflight *entry)
{
    uint64_t ticks = 0;
    if (entry->event && !drupe_inflight_over(queue, entry)) (void)drupe_event_ask(entry->event, &ticks);
    return drupe_inflight_over(queue, entry);
}

/* Whether a driver made this function of a kernel of that name: PoCL makes _pocl_kernel_NAME_workgroup. */
static bool made_of(const char *function, const char *label)
{
    size_t length = strlen(label);
    for (const char *at = strstr(function, label); length && at; at = strstr(at + 1, label)) {
        if ((at == function || at[-1] == '_') && (at[length] == '_' || !at[length])) return true;
    }
    return false;
}

/* What of a queue is with the backend and not known to be over. */
typedef struct suspects {
    drupe_inflight *first,
        *named; /* `named`: the first one whose kernel has become the function that faulted */
    size_t count;
} suspects;

/* `function`: "" when its name is not known. */
static suspects find_suspects(drupe_queue *queue, const char *function)
{
    suspects found = {NULL, NULL, 0};
    for (drupe_inflight *entry = queue->order.head; entry; entry = entry->next) {
        if (entry->deferred) continue;
        if (is_over(queue, entry)) {
            /* And with it what stands before it. */
            if (!drupe_queue_unordered(queue)) found = (suspects){NULL, NULL, 0};
            continue;
        }
        if (!found.first) found.first = entry;
        if (!found.named && made_of(function, entry->what.label)) found.named = entry;
        found.count++;
    }
    return found;
}

static void tell_suspects(const suspects *found, drupe_text *text)
{
    const drupe_inflight *entry = found->named ? found->named : found->first;
    drupe_text_printf(text, "%s'%s' (submission %llu)", text->length ? " or " : "", entry->what.label,
                      (unsigned long long)entry->what.number);
    if (!found->named && found->count > 1)
        drupe_text_printf(text, " or one of %zu behind it", found->count - 1);
}

void drupe_loss_suspects(const drupe_device *device, const char *function, drupe_text *text)
{
    bool named = false;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (queue->base.device->root != device->root || !lock_soon(queue)) continue;
        suspects found = find_suspects(queue, function);
        if (found.named && !named) drupe_text_clear(text);
        if (found.first && (found.named || !named)) tell_suspects(&found, text);
        named = named || found.named;
        pthread_mutex_unlock(&queue->lock);
    }
}

static void fail_first(drupe_queue *queue, const char *function, const drupe_error *error)
{
    suspects found = find_suspects(queue, function);
    drupe_inflight *entry = found.named ? found.named : found.first;
    if (!entry) return;
    if (entry->event) {
        drupe_event_poll_locked(entry->event);
        return;
    }
    drupe_cause *cause = drupe_cause_new(error, &entry->what, queue, entry->what.number);
    drupe_mark_inflight(entry, cause);
    /* It is only the first of those that nobody has seen the end of. */
    drupe_queue_set_cause(
        queue, cause, queue->proof.proven < entry->what.number ? queue->proof.proven : entry->what.number);
    drupe_cause_release(cause);
}

void drupe_core_device_lost(drupe_device *device, const drupe_error *error, bool silent)
{
    drupe_device_lose(device, "", error, silent);
}

void drupe_device_lose(drupe_device *device, const char *function, const drupe_error *error, bool silent)
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
        if (queue->base.device->root != device->root || !lock_soon(queue)) continue;
        fail_first(queue, function, error);
        pthread_mutex_unlock(&queue->lock);
    }
    atomic_store(&fresh->settled, true);
    drupe_deferred_kick();
    drupe_deferred_announce();
}
