/* Events: how one submission ended.
 *
 * An event's phase only moves forward. The thread that moves it to SETTLING writes down the error alone; all
 * others see it as unfinished until it is FAILED. Causes are looked for in the order of submission, because a
 * driver may fail a whole queue at once: polling an event that looks failed first settles everything before
 * it on its queue. */
#include "core/check.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    bool silent = event->opened && drupe_device_silent(event->queue->device);
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
        drupe_core_cell_release(event->flight->cell);
        free(event->flight);
    }
    if (queue)
        drupe_event_put_away(queue, event, silent);
    else
        drupe_object_free(NULL, event);
}

void drupe_event_release_to(drupe_event *event, drupe_event_bunch *bunch)
{
    if (!event || !let_go(event)) return;
    bool silent = let_end(event);
    if (silent || event->counted) {
        drupe_event_put_away(event->queue, event, silent);
        return;
    }
    event->next_spare = bunch->first;
    bunch->first = event;
    if (!bunch->last) bunch->last = event;
}

drupe_queue *drupe_event_queue(const drupe_event *event)
{
    return event->queue;
}

/* --- How it ends ---------------------------------------------------------------------------------------- */

static bool leave_phase(drupe_event *event, drupe_phase from, drupe_phase to)
{
    int expected = (int)from;
    return atomic_compare_exchange_strong(&event->phase, &expected, (int)to);
}

/* A thread that polls a native event has a reference to it or holds its queue's lock. If the only reference
 * is that of the in-flight entry, which the lock protects, no other thread can end the event, so a plain
 * store suffices. An entry that has passed its reference on is excluded, because threads that settle what
 * waits for it may end the event as well. The count is loaded with acquire, and before the phase, so that
 * this thread sees what others stored into the phase before they released their references. */
static bool leave_native(drupe_event *event)
{
    const drupe_phase from = DRUPE_PHASE_NATIVE, to = DRUPE_PHASE_COMPLETE;
    if (atomic_load_explicit(&event->object.references, memory_order_acquire) != 1 ||
        (event->flight && event->flight->event_passed))
        return leave_phase(event, from, to);
    if (drupe_event_phase(event) != from) return false;
    atomic_store_explicit(&event->phase, (int)to, memory_order_release);
    return true;
}

/* Whoever waits for a held event sleeps in hold.c; held work may wait for any event. */
static void tell_others(drupe_phase from)
{
    if (from == DRUPE_PHASE_NATIVE)
        drupe_hold_kick();
    else
        drupe_hold_announce();
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
    bool ours =
        from == DRUPE_PHASE_NATIVE ? leave_native(event) : leave_phase(event, from, DRUPE_PHASE_COMPLETE);
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
    drupe_flight *flight = event->flight;
    for (size_t i = 0; flight && i < flight->nwaits; i++) {
        const drupe_event *wait = flight->waits[i];
        if (drupe_event_phase(wait) != DRUPE_PHASE_FAILED) continue;
        if (event->behind || !event->queue) return drupe_cause_retain(wait->cause);
        return drupe_cause_of_wait(wait->cause, flight, event->queue, event->number);
    }
    return NULL;
}

static drupe_cause *cause_before(const drupe_event *event)
{
    drupe_cause *cause = cause_of_waits(event);
    if (cause || !event->queue || drupe_queue_unordered(event->queue)) return cause;
    return drupe_queue_doom_event(event->queue, event);
}

/* Takes `cause`. Without memory for a text of its own the event shows the cause's. */
static void set_dependent(drupe_event *event, drupe_cause *cause, const drupe_flight *flight)
{
    bool own = cause->before && cause->queue == event->queue && cause->what.submission == event->number;
    drupe_failure *failure = own ? NULL : malloc(sizeof *failure);
    if (failure) drupe_cause_dependent(cause, flight, event->queue, failure);
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
    drupe_flight *flight = event->flight;
    drupe_cause *cause = cause_before(event);
    if (cause) {
        set_dependent(event, cause, flight);
    } else {
        drupe_error told = *error;
        if (event->queue) drupe_failure_widen(&told, event->queue, event->number);
        event->cause = drupe_cause_new(&told, flight, event->queue, event->number);
        event->failure = &event->cause->what;
    }
    if (event->queue) {
        if (flight) drupe_mark_flight(flight, event->cause);
        drupe_queue_blame(event->queue, event->cause, drupe_event_place(event));
        drupe_trace_end(event->number, ending_of(&event->failure->error));
    }
    atomic_store_explicit(&event->phase, DRUPE_PHASE_FAILED, memory_order_release);
    tell_others(from);
}

void drupe_event_fail(drupe_event *event, drupe_phase from, const drupe_error *error)
{
    drupe_error kept = *error;
    if (leave_phase(event, from, DRUPE_PHASE_SETTLING)) write_down(event, from, &kept);
}

void drupe_event_fail_behind(drupe_event *event, drupe_cause *cause, drupe_flight *flight)
{
    set_dependent(event, drupe_cause_retain(cause), flight);
    drupe_mark_flight(flight, cause);
    drupe_trace_end(event->number, DRUPE_TRACE_SKIPPED);
    atomic_store_explicit(&event->phase, DRUPE_PHASE_FAILED, memory_order_release);
}

void drupe_event_give_up(drupe_event *event, drupe_cause *cause)
{
    if (!leave_phase(event, DRUPE_PHASE_HELD, DRUPE_PHASE_SETTLING)) return;
    set_dependent(event, drupe_cause_retain(cause), event->flight);
    drupe_mark_flight(event->flight, cause);
    drupe_trace_end(event->number, DRUPE_TRACE_CANCELLED);
    atomic_store_explicit(&event->phase, DRUPE_PHASE_FAILED, memory_order_release);
    tell_others(DRUPE_PHASE_HELD);
}

/* --- Polling -------------------------------------------------------------------------------------------- */

/* True when the backend says that the event failed; its reason is then the thread's error. A driver that is
 * silent is not asked: what was over before it became so has been found out by then. */
static bool looks_failed(drupe_event *event, drupe_event_state *state)
{
    *state = DRUPE_EVENT_SUBMITTED;
    drupe_status status = DRUPE_OK;
    if (!drupe_device_silent(event->queue->device)) status = event->object.backend->event_state(event, state);
    if (status == DRUPE_OK && *state != DRUPE_EVENT_FAILED) {
        const drupe_loss *loss = drupe_device_loss(event->queue->device);
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
    for (size_t i = 0; event->flight && i < event->flight->nwaits; i++) {
        drupe_event *wait = event->flight->waits[i];
        drupe_event_state state;
        if (drupe_event_phase(wait) == DRUPE_PHASE_NATIVE && looks_failed(wait, &state) &&
            leave_phase(wait, DRUPE_PHASE_NATIVE, DRUPE_PHASE_SETTLING)) {
            return wait;
        }
        while (drupe_event_phase(wait) == DRUPE_PHASE_SETTLING) sched_yield();
    }
    return NULL;
}

/* Settle a failed event after what it waited for. A list, not recursion: chains may be long. */
static void settle_failed(drupe_event *event)
{
    if (!leave_phase(event, DRUPE_PHASE_NATIVE, DRUPE_PHASE_SETTLING)) return;
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
        looks_failed(event, &state);
        drupe_error error = *drupe_error_last();
        write_down(event, DRUPE_PHASE_NATIVE, &error);
        event = next;
    }
}

drupe_phase drupe_event_poll_at(drupe_event *event, uint64_t *ticks)
{
    drupe_phase phase = drupe_event_phase(event);
    if (phase != DRUPE_PHASE_NATIVE) return phase;
    drupe_event_state state;
    if (looks_failed(event, &state)) {
        settle_failed(event);
    } else if (state == DRUPE_EVENT_COMPLETE) {
        if (!*ticks) *ticks = drupe_ticks();
        drupe_event_complete_at(event, DRUPE_PHASE_NATIVE, *ticks);
    } else {
        return phase;
    }
    return drupe_event_phase(event);
}

bool drupe_event_proves(drupe_event *event, uint64_t *ticks)
{
    drupe_phase phase = drupe_event_phase(event);
    drupe_event_state state;
    if (phase != DRUPE_PHASE_NATIVE) return phase == DRUPE_PHASE_COMPLETE;
    if (looks_failed(event, &state) || state != DRUPE_EVENT_COMPLETE) return false;
    if (!*ticks) *ticks = drupe_ticks();
    drupe_event_complete_at(event, DRUPE_PHASE_NATIVE, *ticks);
    return drupe_event_phase(event) == DRUPE_PHASE_COMPLETE;
}

drupe_phase drupe_event_poll_locked(drupe_event *event)
{
    uint64_t ticks = 0;
    return drupe_event_poll_at(event, &ticks);
}

drupe_phase drupe_event_poll(drupe_event *event)
{
    uint64_t ticks = 0;
    return drupe_event_poll_by(event, &ticks);
}

drupe_phase drupe_event_poll_by(drupe_event *event, uint64_t *ticks)
{
    drupe_phase phase = drupe_event_phase(event);
    if (phase != DRUPE_PHASE_NATIVE) return phase;
    drupe_event_state state;
    if (looks_failed(event, &state)) {
        /* Where order matters, what stands before it settles first. */
        if (!drupe_queue_unordered(event->queue)) drupe_queue_settle(event->queue, false);
        drupe_event_poll_locked(event);
        return drupe_event_phase(event);
    }
    if (state == DRUPE_EVENT_COMPLETE) {
        if (!*ticks) *ticks = drupe_ticks();
        drupe_event_complete_at(event, DRUPE_PHASE_NATIVE, *ticks);
    }
    return drupe_event_phase(event);
}

uint64_t drupe_event_submission(const drupe_event *event)
{
    return event->number;
}

drupe_event_state drupe_event_state_of(drupe_event *event)
{
    if (drupe_core_check() != DRUPE_OK) return DRUPE_EVENT_SUBMITTED;
    drupe_phase phase = drupe_event_poll(event);
    if (drupe_phase_over(phase) && drupe_check_on()) drupe_check_event(event);
    switch (phase) {
    case DRUPE_PHASE_HELD: return DRUPE_EVENT_QUEUED;
    case DRUPE_PHASE_RUNNING:
    case DRUPE_PHASE_SETTLING: return DRUPE_EVENT_RUNNING;
    case DRUPE_PHASE_COMPLETE: return DRUPE_EVENT_COMPLETE;
    case DRUPE_PHASE_FAILED: return DRUPE_EVENT_FAILED;
    case DRUPE_PHASE_NATIVE: break;
    }
    drupe_event_state state = DRUPE_EVENT_SUBMITTED;
    /* It may have ended since: then the next call says so. */
    if (looks_failed(event, &state) || state == DRUPE_EVENT_COMPLETE) return DRUPE_EVENT_RUNNING;
    return state;
}

/* --- Waiting -------------------------------------------------------------------------------------------- */

static drupe_status timed_out(void)
{
    return drupe_error_set(DRUPE_E_TIMEOUT, "The work is not done yet; wait again.");
}

/* One wait in the driver, in slices, since a device may be lost meanwhile. A driver that cannot wait fails
 * the event, or waiting would never end. */
static drupe_status await_native(drupe_event *event, uint64_t deadline)
{
    drupe_queue_flush(event->queue);
    uint64_t left = DRUPE_FOREVER;
    if (deadline != UINT64_MAX) {
        uint64_t now = drupe_now_ns();
        left = deadline > now ? deadline - now : 0;
    }
    drupe_status status =
        event->object.backend->event_wait(event, left < DRUPE_SLICE_NS ? left : DRUPE_SLICE_NS);
    if (status == DRUPE_E_TIMEOUT && left > DRUPE_SLICE_NS) return DRUPE_OK;
    if (status == DRUPE_OK || status == DRUPE_E_TIMEOUT) return status;
    drupe_event_fail(event, DRUPE_PHASE_NATIVE, drupe_error_last());
    return DRUPE_OK;
}

drupe_status drupe_event_await(drupe_event *event, uint64_t deadline)
{
    for (;;) {
        drupe_phase phase = drupe_event_poll(event);
        if (drupe_phase_over(phase)) return DRUPE_OK;
        if (phase == DRUPE_PHASE_NATIVE) {
            drupe_status status = await_native(event, deadline);
            if (status == DRUPE_E_TIMEOUT) {
                return drupe_phase_over(drupe_event_poll(event)) ? DRUPE_OK : timed_out();
            }
        } else if (phase == DRUPE_PHASE_SETTLING) {
            sched_yield();
        } else if (!drupe_hold_await(event, deadline)) {
            return timed_out();
        }
    }
}

/* What stopped a failed event, or NULL when it failed by itself. */
static const drupe_failure *cause_of(const drupe_event *event)
{
    const drupe_cause *above = drupe_cause_first(event->cause);
    bool itself = event->failure == &above->what || event->cause->cancels;
    return itself ? NULL : &above->what;
}

drupe_status drupe_event_wait(drupe_event *event, uint64_t timeout_ns)
{
    DRUPE_TRY(drupe_core_check());
    if (!event) return drupe_error_set(DRUPE_E_INVALID, "There is no event to wait for.");
    if (drupe_event_phase(event) == DRUPE_PHASE_COMPLETE && !drupe_check_on()) return DRUPE_OK;
    DRUPE_TRY(drupe_event_await(event, drupe_deadline(timeout_ns)));
    if (drupe_check_on()) drupe_check_event(event);
    if (drupe_event_phase(event) == DRUPE_PHASE_COMPLETE)
        return drupe_check_on() ? drupe_zone_check() : DRUPE_OK;
    drupe_marks_settle();
    drupe_cause_report(event->cause);
    drupe_failure_tell(event->failure, cause_of(event));
    return drupe_error_restore(&event->failure->error);
}

const drupe_error *drupe_event_error(drupe_event *event)
{
    if (drupe_core_check() != DRUPE_OK || drupe_event_poll(event) != DRUPE_PHASE_FAILED) return NULL;
    return &event->failure->error;
}

bool drupe_event_failure(drupe_event *event, drupe_failure *own, drupe_failure *cause)
{
    if (!drupe_event_error(event)) return false;
    drupe_failure_tell(event->failure, cause_of(event));
    drupe_error_restore(&event->failure->error);
    return drupe_failure_last(own, cause);
}

/* Of what core has run itself: the trace has them, as long as its ring has the record. */
static drupe_status own_times(const drupe_event *event, drupe_times *times)
{
    drupe_trace_record record;
    if (!drupe_trace_one(event->number, &record) || !record.ended_ns || record.own_clock) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "The times of this host task are no longer recorded: ask for them sooner.");
    }
    *times = (drupe_times){.queued = record.submitted_ns,
                           .submitted = record.submitted_ns,
                           .started = record.started_ns,
                           .ended = record.ended_ns};
    return DRUPE_OK;
}

drupe_status drupe_event_times(drupe_event *event, drupe_times *times)
{
    DRUPE_TRY(drupe_core_check());
    drupe_phase phase = drupe_event_poll(event);
    if (!event->queue || !(event->queue->flags & DRUPE_QUEUE_PROFILING)) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Only events of a profiling queue have times; open the "
                                                    "queue with profiling switched on.");
    }
    if (!drupe_phase_over(phase)) {
        return drupe_error_set(DRUPE_E_BUSY,
                               "The work is not finished; wait for it before asking for its times.");
    }
    if (phase == DRUPE_PHASE_FAILED)
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Work that failed has no times.");
    if (event->number < event->queue->timed_from) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "This work was submitted before its queue got profiling.");
    }
    if (!event->opened) return own_times(event, times);
    return event->object.backend->event_times(event, times);
}

/* --- Events that the caller ends ------------------------------------------------------------------------ */

drupe_status drupe_event_open(const char *label, uint32_t site, drupe_event **event)
{
    *event = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_hold_prepare());
    drupe_flight *flight = aligned_alloc(64, sizeof *flight);
    drupe_event *fresh = drupe_object_new(NULL, NULL, DRUPE_OBJECT_EVENT, sizeof *fresh, 0);
    if (!flight || !fresh) {
        free(flight);
        free(fresh);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for an event.");
    }
    memset(flight, 0, sizeof *flight);
    snprintf(flight->label_copy, sizeof flight->label_copy, "%s", label ? label : "event");
    flight->label = flight->label_copy;
    flight->site = site ? site : drupe_core_site();
    flight->cell = drupe_core_cell();
    flight->cell_number = drupe_core_cell_number(flight->cell);
    flight->brief.kind = DRUPE_WORK_HOST;
    flight->number = fresh->number = drupe_flight_next();
    drupe_trace_skip(fresh->number);
    fresh->flight = flight;
    *event = fresh;
    return DRUPE_OK;
}

drupe_status drupe_event_finish(drupe_event *event, const drupe_error *error)
{
    DRUPE_TRY(drupe_core_check());
    if (!event || (event->queue && !event->turn)) {
        return drupe_error_set(DRUPE_E_INVALID, "This event cannot be ended by the caller.");
    }
    drupe_phase phase = drupe_event_phase(event);
    if (phase == DRUPE_PHASE_HELD && event->turn && !error) {
        return drupe_error_set(DRUPE_E_INVALID, "The turn of this work has not come yet.");
    }
    if (event->turn) drupe_core_ran(event->number);
    /* Its turn may come just now. */
    for (; phase == DRUPE_PHASE_HELD || phase == DRUPE_PHASE_RUNNING; phase = drupe_event_phase(event)) {
        if (error)
            drupe_event_fail(event, phase, error);
        else
            drupe_event_complete(event, phase);
    }
    return DRUPE_OK;
}

drupe_status drupe_event_waits(drupe_event *event, drupe_event **waits, size_t capacity, size_t *count)
{
    *count = 0;
    DRUPE_TRY(drupe_core_check());
    drupe_queue *queue = event->queue;
    if (!queue) return DRUPE_OK;
    /* The lock keeps the flight of an unfinished event where it is. */
    pthread_mutex_lock(&queue->lock);
    bool over = drupe_phase_over(drupe_event_phase(event));
    for (size_t i = 0; !over && event->flight && i < event->flight->nwaits; i++) {
        drupe_event *wait = event->flight->waits[i];
        if (drupe_phase_over(drupe_event_phase(wait))) continue;
        if (*count < capacity) waits[*count] = drupe_event_retain(wait);
        ++*count;
    }
    pthread_mutex_unlock(&queue->lock);
    return DRUPE_OK;
}

void drupe_event_ask_notify(drupe_event *event)
{
    const drupe_backend *backend = event->object.backend;
    if (drupe_event_phase(event) != DRUPE_PHASE_NATIVE || !backend->event_notify) return;
    if (atomic_exchange(&event->notified, true)) return;
    /* Without the notice the waiter finds out by polling. */
    if (backend->event_notify(event) != DRUPE_OK) return;
}
