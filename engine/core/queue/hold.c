/* Work that must wait for another context, another backend, a host function or the caller.
 *
 * The waiter (waiter.c) is the only one to launch held work, except that work of core's own threads begins at
 * once where nothing stands before it: it polls what the first held flight of each queue waits for (of an
 * out-of-order queue, every held one). */
#include "core/queue/launch.h"
#include <stdlib.h>

/* --- Host functions that core runs ---------------------------------------------------------------------- */

static void run_job(drupe_job *job)
{
    drupe_flight *flight = (drupe_flight *)(void *)((char *)job - offsetof(drupe_flight, job));
    drupe_event *event = flight->event;
    drupe_core_began(flight->what.number);
    atomic_store(job->busy, 1);
    drupe_status status = flight->work.fn(flight->work.user);
    atomic_store(job->busy, 0);
    drupe_core_ran(flight->what.number);
    if (status == DRUPE_OK) {
        drupe_event_complete(event, DRUPE_PHASE_RUNNING);
        return;
    }
    if (drupe_error_last()->status != status) {
        drupe_error_set(status, "The host function answered %s without a reason.", drupe_status_name(status));
    }
    drupe_event_fail(event, DRUPE_PHASE_RUNNING, drupe_error_last());
}

static void fail_job(drupe_job *job)
{
    drupe_flight *flight = (drupe_flight *)(void *)((char *)job - offsetof(drupe_flight, job));
    drupe_core_ran(flight->what.number);
    drupe_event_fail(flight->event, DRUPE_PHASE_RUNNING, drupe_error_last());
}

/* --- The waiter: one step of one queue, under the queue's lock -------------------------------------------
 */

static void fail(drupe_flight *flight)
{
    drupe_event_fail(flight->event, DRUPE_PHASE_HELD, drupe_error_last());
}

/* That all before the flight on its queue is over, which the driver knows by an event. */
static drupe_readiness marker_ready(drupe_queue *queue, drupe_flight *flight)
{
    for (;;) {
        if (!flight->marker) {
            if (drupe_queue_mark(queue, flight, &flight->marker) != DRUPE_OK) {
                fail(flight); /* no other work did: the reason is its own */
                return DRUPE_DOOMED;
            }
            if (!flight->marker) return DRUPE_READY;
            drupe_queue_flush_locked(queue);
            drupe_event_ask_notify(flight->marker);
        }
        drupe_phase phase = drupe_event_poll_locked(flight->marker);
        if (phase == DRUPE_PHASE_COMPLETE) return DRUPE_READY;
        if (phase != DRUPE_PHASE_FAILED) {
            drupe_waiter_poll();
            return DRUPE_BLOCKED;
        }
        if (drupe_cause_dooms(flight->marker->cause, flight->what.number, queue)) return DRUPE_DOOMED;
        /* Why it failed was told before the flight was submitted, so the queue works on; but what failed
         * marks nothing. */
        drupe_event_release(flight->marker);
        flight->marker = NULL;
    }
}

/* A host function runs after all it waits for, since no driver waits in its place, and after everything
 * before it on its queue. */
static drupe_readiness host_ready(drupe_queue *queue, drupe_flight *flight)
{
    for (size_t i = 0; i < flight->nwaits; i++) {
        if (!drupe_phase_over(drupe_event_phase(flight->waits[i]))) return DRUPE_BLOCKED;
    }
    return drupe_queue_unordered(queue) ? DRUPE_READY : marker_ready(queue, flight);
}

/* Whether the flight stands behind a failure on its own in-order queue. */
static bool stands_behind(drupe_queue *queue, const drupe_flight *flight)
{
    if (drupe_queue_unordered(queue)) return false;
    drupe_cause *cause = drupe_queue_standing(queue, flight->what.number);
    drupe_cause_release(cause);
    return cause != NULL;
}

static void fail_dependent(drupe_flight *flight)
{
    drupe_error_set(DRUPE_E_DEPENDENCY, "Something before '%s' failed.", flight->what.label);
    fail(flight);
}

bool drupe_hold_advance(drupe_queue *queue, drupe_flight *flight)
{
    drupe_phase phase = drupe_event_phase(flight->event);
    if (drupe_phase_over(phase)) return true;
    if (phase != DRUPE_PHASE_HELD) return false;
    drupe_readiness readiness =
        stands_behind(queue, flight) ? DRUPE_DOOMED : drupe_flight_ready(queue, flight);
    bool emulated = drupe_work_emulated(queue, &flight->work);
    if (readiness == DRUPE_READY && emulated) readiness = host_ready(queue, flight);
    if (readiness == DRUPE_BLOCKED) return false;
    if (readiness == DRUPE_DOOMED) {
        fail_dependent(flight);
        return true;
    }
    if (emulated) {
        int held = DRUPE_PHASE_HELD; /* the caller may fail it just now */
        if (!atomic_compare_exchange_strong(&flight->event->phase, &held, DRUPE_PHASE_RUNNING)) return false;
        if (flight->event->turn) return false;
        flight->job.run = run_job;
        flight->job.fail = fail_job;
        flight->job.what = "host function";
        drupe_worker_post(&flight->job);
        /* Behind the copy itself, which finds a thread first. */
        if (flight->work.kind == DRUPE_WORK_COPY) {
            drupe_pieces *pieces = flight->work.user;
            pieces->hurry(pieces);
        }
        return false;
    }
    if (drupe_flight_launch(queue, flight, &flight->work) != DRUPE_OK) fail(flight);
    return true;
}

void drupe_hold_begin(drupe_queue *queue, drupe_flight *flight)
{
    bool first = queue->order.head == flight && flight->nwaits == 0 && !drupe_queue_unordered(queue);
    if (!first || flight->event->turn || !drupe_work_emulated(queue, &flight->work)) return;
    /* What is over stays on the held part until the waiter comes by. */
    bool over = drupe_hold_advance(queue, flight);
    (void)over;
}

void drupe_hold_poll(const drupe_flight *flight)
{
    for (size_t i = 0; i < flight->nwaits; i++) {
        if (drupe_event_poll(flight->waits[i]) != DRUPE_PHASE_NATIVE) continue;
        drupe_event_ask_notify(flight->waits[i]);
        drupe_waiter_poll();
    }
}

/* Poll the waits of the first held flight. Only this thread takes flights from the held part, so the flight
 * stays while the lock is not held; polling may need the locks of other queues. */
bool drupe_hold_serve(drupe_queue *queue)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_serve(queue);
    pthread_mutex_lock(&queue->lock);
    drupe_flight *flight = queue->order.held;
    pthread_mutex_unlock(&queue->lock);
    if (!flight) return false;
    drupe_hold_poll(flight);
    pthread_mutex_lock(&queue->lock);
    bool moved = drupe_hold_advance(queue, flight);
    if (moved) {
        flight->held = false;
        queue->order.held = flight->next;
        drupe_queue_flush_locked(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    if (moved) drupe_hold_announce();
    return moved;
}
