/* Events as their callers see them: asking, waiting, and ending those that the caller ends. */
#include "core/queue/launch.h"
#include <sched.h>
#include <stdlib.h>

/* --- Asking --------------------------------------------------------------------------------------------- */

drupe_phase drupe_event_poll(drupe_event *event)
{
    uint64_t ticks = 0;
    if (!drupe_event_ask(event, &ticks)) return drupe_event_phase(event);
    /* Where order matters, what stands before it settles first. */
    if (!drupe_queue_unordered(event->queue)) drupe_queue_settle(event->queue, false);
    return drupe_event_poll_locked(event);
}

drupe_event_state drupe_event_state_of(drupe_event *event)
{
    if (drupe_core_check() != DRUPE_OK) return DRUPE_EVENT_SUBMITTED;
    drupe_phase phase = drupe_event_poll(event);
    const drupe_checker *checker = drupe_checking();
    if (checker && drupe_phase_over(phase)) checker->event(event);
    if (phase == DRUPE_PHASE_DEFERRED) return DRUPE_EVENT_QUEUED;
    if (phase == DRUPE_PHASE_COMPLETE) return DRUPE_EVENT_COMPLETE;
    if (phase == DRUPE_PHASE_FAILED) return DRUPE_EVENT_FAILED;
    if (phase != DRUPE_PHASE_NATIVE) return DRUPE_EVENT_RUNNING;
    drupe_event_state state = DRUPE_EVENT_SUBMITTED;
    /* It may have ended since: then the next call says so. */
    if (drupe_event_looks_failed(event, &state) || state == DRUPE_EVENT_COMPLETE) return DRUPE_EVENT_RUNNING;
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
    uint64_t left = drupe_time_left(deadline);
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
        } else if (!drupe_deferred_help(event->queue, deadline) && !drupe_deferred_await(event, deadline)) {
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
    const drupe_checker *checker = drupe_checking();
    if (checker) checker->event(event);
    if (drupe_event_phase(event) == DRUPE_PHASE_COMPLETE) return checker ? checker->memory() : DRUPE_OK;
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
    if (!drupe_trace_one(event->number, &record) || !record.ended_ns) {
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
    if (!event->queue || !(event->queue->base.flags & DRUPE_QUEUE_PROFILING)) {
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
    drupe_inflight *entry = drupe_inflight_alone(label ? label : "event", site ? site : drupe_core_site());
    *event = entry ? drupe_event_alone(entry) : NULL;
    if (entry) drupe_trace_skip(entry->what.number);
    if (*event) return DRUPE_OK;
    if (entry) drupe_core_cell_release(entry->what.cell);
    free(entry);
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for an event.");
}

drupe_status drupe_event_finish(drupe_event *event, const drupe_error *error)
{
    DRUPE_TRY(drupe_core_check());
    if (!event || (event->queue && !event->turn)) {
        return drupe_error_set(DRUPE_E_INVALID, "This event cannot be ended by the caller.");
    }
    drupe_phase phase = drupe_event_phase(event);
    if (phase == DRUPE_PHASE_DEFERRED && event->turn && !error) {
        return drupe_error_set(DRUPE_E_INVALID, "The turn of this work has not come yet.");
    }
    if (event->turn) drupe_core_ran(event->number);
    /* Its turn may come just now. */
    for (; phase == DRUPE_PHASE_DEFERRED || phase == DRUPE_PHASE_RUNNING; phase = drupe_event_phase(event)) {
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
    /* The lock keeps the entry of an unfinished event where it is. */
    pthread_mutex_lock(&queue->lock);
    bool over = drupe_phase_over(drupe_event_phase(event));
    for (size_t i = 0; !over && i < event->entry->nwaits; i++) {
        drupe_event *wait = event->entry->waits[i];
        if (drupe_phase_over(drupe_event_phase(wait))) continue;
        if (*count < capacity) waits[*count] = drupe_event_retain(wait);
        ++*count;
    }
    pthread_mutex_unlock(&queue->lock);
    return DRUPE_OK;
}
