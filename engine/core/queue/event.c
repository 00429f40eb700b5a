/* Events: how one submission ended.
 *
 * The memory of events goes back to their queue for the next ones. It has an inner reference to its queue,
 * also while it is spare: so neither end of an event's life touches a counter. When the last handle of the
 * queue goes, the spare ones give theirs up, and a bit beside the list to which events return tells the
 * others to do so as they come.
 *
 * An event's phase only moves forward. The thread that moves it to SETTLING writes down the error alone; all
 * others see it as unfinished until it is FAILED. Causes are looked for in the order of submission, because a
 * driver may fail a whole queue at once: polling an event that looks failed first settles everything before
 * it on its queue. */
#include "core/queue/launch.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* --- Memory --------------------------------------------------------------------------------------------- */

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

/* The last reference is gone, and what it pointed to; its second line is zeroed. `keep`: the backend may
 * still know of it, so its memory stays until the queue goes. */
static void put_away(drupe_queue *queue, drupe_event *event, bool keep)
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
    for (size_t at = 0; at < native; at += 64) memset((char *)(event + 1) + at, 0, 64);
}

drupe_status drupe_event_next(drupe_queue *queue, uint64_t number, drupe_inflight *entry, drupe_event **event)
{
    drupe_event *fresh = NULL;
    if (!is_closed(atomic_load_explicit(&queue->store.returned, memory_order_relaxed)))
        fresh = pop_spare(queue);
    *event = fresh;
    if (!fresh) DRUPE_TRY(event_new(queue, &fresh));
    if (*event) {
        drupe_event *after = queue->store.spare;
        if (after) {
            drupe_prefetch_write(after);
            drupe_prefetch_write(after + 1);
        }
        renew(fresh, queue->base.slot->backend->size.event);
    }
    fresh->number = number;
    fresh->entry = entry;
    *event = fresh;
    return DRUPE_OK;
}

drupe_event *drupe_event_alone(drupe_inflight *entry)
{
    drupe_event *event = drupe_object_new(NULL, NULL, sizeof *event, 0);
    if (!event) return NULL;
    event->number = entry->what.number;
    event->entry = entry;
    return event;
}

/* --- References ----------------------------------------------------------------------------------------- */

drupe_event *drupe_event_retain(drupe_event *event)
{
    if (event) drupe_object_retain(event);
    return event;
}

/* True when that was the last reference. Who has the only one need not write: nobody can make another. */
static bool let_go(drupe_event *event)
{
    if (atomic_load_explicit(&event->object.references, memory_order_acquire) != 1)
        return drupe_object_release(event);
    return !atomic_load_explicit(&drupe_core_forked, memory_order_relaxed);
}

static void forget_failure(drupe_event *event)
{
    if (event->cause && event->failure != &event->cause->what) free((void *)event->failure);
    drupe_cause_release(event->cause);
    event->failure = NULL;
    event->cause = NULL;
}

/* The last reference is gone: all but the memory goes. True: the backend may still know of that. */
static bool let_end(drupe_event *event)
{
    bool silent = event->opened && drupe_device_silent(event->queue->base.device);
    bool complete = drupe_event_phase(event) == DRUPE_PHASE_COMPLETE;
    const drupe_backend *backend = event->object.backend;
    if (event->opened && !silent && !(complete && backend->closes_failed)) backend->event_close(event);
    if (!complete) forget_failure(event);
    if (event->inserted) event->behind = 0;
    return silent;
}

void drupe_event_release(drupe_event *event)
{
    if (!event || !let_go(event)) return;
    bool silent = let_end(event);
    drupe_queue *queue = event->queue;
    if (!queue) {
        drupe_core_cell_release(event->entry->what.cell);
        free(event->entry);
    }
    if (queue)
        put_away(queue, event, silent);
    else
        drupe_object_free(NULL, event);
}

drupe_queue *drupe_event_queue(const drupe_event *event)
{
    return event->queue;
}

/* --- How it ends ---------------------------------------------------------------------------------------- */

bool drupe_event_leave(drupe_event *event, drupe_phase from, drupe_phase to)
{
    int expected = (int)from;
    return atomic_compare_exchange_strong(&event->phase, &expected, (int)to);
}

/* A thread that polls a native event has a reference to it or holds its queue's lock. If the only reference
 * is that of the in-flight entry, which the lock protects, no other thread can end the event, so a plain
 * store suffices. The count is loaded with acquire, and before the phase, so that this thread sees what
 * others stored into the phase before they released their references. */
static bool leave_native(drupe_event *event)
{
    const drupe_phase from = DRUPE_PHASE_NATIVE, to = DRUPE_PHASE_COMPLETE;
    if (atomic_load_explicit(&event->object.references, memory_order_acquire) != 1)
        return drupe_event_leave(event, from, to);
    if (drupe_event_phase(event) != from) return false;
    drupe_event_enter(event, to);
    return true;
}

/* Whoever waits for a deferred event sleeps in waiter.c; deferred work may wait for any event. */
static void tell_others(drupe_phase from)
{
    if (from == DRUPE_PHASE_NATIVE)
        drupe_deferred_kick();
    else
        drupe_deferred_announce();
}

static void trace_device_times(drupe_event *event)
{
    drupe_times times;
    if (event->object.backend->event_times(event, &times) != DRUPE_OK) return;
    drupe_trace_times(event->number, &times);
}

/* Once it is complete, a worker's event may be gone: only who polls a native one holds it. */
void drupe_event_complete_at(drupe_event *event, drupe_phase from, uint64_t ticks)
{
    uint64_t number = event->number;
    const drupe_queue *queue = event->queue;
    bool timed = queue && drupe_queue_timed(queue) && from == DRUPE_PHASE_NATIVE;
    bool ours = from == DRUPE_PHASE_NATIVE ? leave_native(event)
                                           : drupe_event_leave(event, from, DRUPE_PHASE_COMPLETE);
    if (!ours) return;
    /* Whoever reads that it is over reads the times, too. */
    if (timed) trace_device_times(event);
    if (queue) drupe_trace_end_at(number, DRUPE_TRACE_COMPLETE, ticks);
    tell_others(from);
}

void drupe_event_complete(drupe_event *event, drupe_phase from)
{
    drupe_event_complete_at(event, from, drupe_ticks());
}

/* The cause of the first wait that failed, retained, or NULL. What was told before the event was submitted is
 * told of it again, as a cause of its own; but not of what core puts between submissions. */
static drupe_cause *cause_of_waits(const drupe_event *event)
{
    drupe_inflight *entry = event->entry;
    for (size_t i = 0; i < entry->nwaits; i++) {
        const drupe_event *wait = entry->waits[i];
        if (drupe_event_phase(wait) != DRUPE_PHASE_FAILED) continue;
        if (event->behind) return drupe_cause_retain(wait->cause);
        return drupe_cause_of_wait(wait->cause, &entry->what, event->queue, event->number);
    }
    return NULL;
}

static drupe_cause *cause_before(const drupe_event *event)
{
    drupe_cause *cause = cause_of_waits(event);
    if (cause || !event->queue || drupe_queue_unordered(event->queue)) return cause;
    uint64_t at = event->behind ? event->behind + 1 : event->number;
    return drupe_queue_pending_failure_at(event->queue, at, event->number);
}

/* Takes `cause`. Without memory for a text of its own the event shows the cause's. */
static void set_dependent(drupe_event *event, drupe_cause *cause, const drupe_inflight *entry)
{
    bool own = cause->before && cause->queue == event->queue && cause->what.submission == event->number;
    drupe_failure *failure = own ? NULL : malloc(sizeof *failure);
    if (failure) drupe_cause_dependent(cause, &entry->what, event->queue, failure);
    event->failure = failure ? failure : &cause->what;
    event->cause = cause;
    drupe_failures_note_dependent(drupe_cause_first(cause)->note);
}

static drupe_trace_status ending_of(const drupe_error *error)
{
    if (error->status == DRUPE_E_DEPENDENCY) return DRUPE_TRACE_SKIPPED;
    return error->status == DRUPE_E_CANCELLED ? DRUPE_TRACE_CANCELLED : DRUPE_TRACE_FAILED;
}

/* The event is SETTLING and ours. */
static void write_down(drupe_event *event, drupe_phase from, const drupe_error *error)
{
    drupe_inflight *entry = event->entry;
    drupe_cause *cause = cause_before(event);
    if (cause) {
        set_dependent(event, cause, entry);
    } else {
        drupe_error told = *error;
        if (event->queue) drupe_failure_widen(&told, event->queue, event->number);
        event->cause = drupe_cause_new(&told, &entry->what, event->queue, event->number);
        event->failure = &event->cause->what;
    }
    if (event->queue) {
        drupe_mark_inflight(entry, event->cause);
        drupe_queue_set_cause(event->queue, event->cause, drupe_event_order(event));
        /* What waits for it by name did not run either, also where the queue has no new cause. */
        if (drupe_inflight_fallible(entry)) drupe_marks_ask(event->queue);
        drupe_trace_end(event->number, ending_of(&event->failure->error));
    }
    drupe_event_enter(event, DRUPE_PHASE_FAILED);
    tell_others(from);
}

void drupe_event_fail(drupe_event *event, drupe_phase from, const drupe_error *error)
{
    drupe_error kept = *error;
    if (drupe_event_leave(event, from, DRUPE_PHASE_SETTLING)) write_down(event, from, &kept);
}

static void fail_for(drupe_event *event, drupe_cause *cause, drupe_inflight *entry, drupe_trace_status ended)
{
    set_dependent(event, drupe_cause_retain(cause), entry);
    drupe_mark_inflight(entry, cause);
    drupe_trace_end(event->number, ended);
    drupe_event_enter(event, DRUPE_PHASE_FAILED);
}

void drupe_event_fail_behind(drupe_event *event, drupe_cause *cause, drupe_inflight *entry)
{
    fail_for(event, cause, entry, DRUPE_TRACE_SKIPPED);
}

void drupe_event_give_up(drupe_event *event, drupe_cause *cause)
{
    if (!drupe_event_leave(event, DRUPE_PHASE_DEFERRED, DRUPE_PHASE_SETTLING)) return;
    fail_for(event, cause, event->entry, DRUPE_TRACE_CANCELLED);
    tell_others(DRUPE_PHASE_DEFERRED);
}

/* --- Polling -------------------------------------------------------------------------------------------- */

/* True when the backend says that the event failed; its reason is then the thread's error. A driver that is
 * silent is not asked: what was over before it became so has been found out by then. */
bool drupe_event_looks_failed(drupe_event *event, drupe_event_state *state)
{
    *state = DRUPE_EVENT_SUBMITTED;
    drupe_status status = DRUPE_OK;
    if (!drupe_device_silent(event->queue->base.device))
        status = event->object.backend->event_state(event, state);
    if (status == DRUPE_OK && *state != DRUPE_EVENT_FAILED) {
        const drupe_loss *loss = drupe_device_loss(event->queue->base.device);
        if (!loss || *state == DRUPE_EVENT_COMPLETE) return false;
        event->abandoned = loss->silent;
        drupe_error_restore(&loss->error);
        return true;
    }
    if (drupe_error_last()->status == DRUPE_OK) {
        drupe_error_set(DRUPE_E_INTERNAL, "The driver reports a failure without a reason.");
    }
    return true;
}

/* Claim a wait of this event that failed in the backend and has not settled, or NULL. Waits that another
 * thread settles are waited for: waits name earlier work, so threads cannot wait for each other in a circle.
 */
static drupe_event *claim_failed_wait(const drupe_event *event)
{
    for (size_t i = 0; i < event->entry->nwaits; i++) {
        drupe_event *wait = event->entry->waits[i];
        drupe_event_state state;
        if (drupe_event_phase(wait) == DRUPE_PHASE_NATIVE && drupe_event_looks_failed(wait, &state) &&
            drupe_event_leave(wait, DRUPE_PHASE_NATIVE, DRUPE_PHASE_SETTLING)) {
            return wait;
        }
        while (drupe_event_phase(wait) == DRUPE_PHASE_SETTLING) sched_yield();
    }
    return NULL;
}

/* Settle a failed event after what it waited for. A list, not recursion: chains may be long. */
static void settle_failed(drupe_event *event)
{
    if (!drupe_event_leave(event, DRUPE_PHASE_NATIVE, DRUPE_PHASE_SETTLING)) return;
    event->settle_next = NULL;
    while (event) {
        drupe_event *wait = claim_failed_wait(event);
        if (wait) {
            wait->settle_next = event;
            event = wait;
            continue;
        }
        drupe_event_state state;
        drupe_event *next = event->settle_next;
        drupe_event_looks_failed(event, &state);
        drupe_error error = *drupe_error_last();
        write_down(event, DRUPE_PHASE_NATIVE, &error);
        event = next;
    }
}

bool drupe_event_ask(drupe_event *event, uint64_t *ticks)
{
    drupe_event_state state;
    if (drupe_event_phase(event) != DRUPE_PHASE_NATIVE) return false;
    if (drupe_event_looks_failed(event, &state)) return true;
    if (state != DRUPE_EVENT_COMPLETE) return false;
    if (!*ticks) *ticks = drupe_ticks();
    drupe_event_complete_at(event, DRUPE_PHASE_NATIVE, *ticks);
    return false;
}

drupe_phase drupe_event_poll_at(drupe_event *event, uint64_t *ticks)
{
    if (drupe_event_ask(event, ticks)) settle_failed(event);
    return drupe_event_phase(event);
}

drupe_phase drupe_event_poll_locked(drupe_event *event)
{
    uint64_t ticks = 0;
    return drupe_event_poll_at(event, &ticks);
}

uint64_t drupe_event_submission(const drupe_event *event)
{
    return event->number;
}

drupe_phase drupe_event_settled(const drupe_event *event)
{
    drupe_phase phase;
    while ((phase = drupe_event_phase(event)) == DRUPE_PHASE_SETTLING) sched_yield();
    return phase;
}

void drupe_event_ask_notify(drupe_event *event)
{
    const drupe_backend *backend = event->object.backend;
    if (drupe_event_phase(event) != DRUPE_PHASE_NATIVE || !backend->event_notify) return;
    if (atomic_exchange(&event->notified, true)) return;
    /* Without the notice the waiter finds out by polling. */
    if (backend->event_notify(event) != DRUPE_OK) return;
}
