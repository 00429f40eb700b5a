/* Work that must wait for another context, another backend, a host function or the caller.
 *
 * One thread, started with the first held submission or watched event, is the only one to launch held work,
 * except that work of core's own threads begins at once where nothing stands before it: it polls what the
 * first held flight of each queue waits for (of an out-of-order queue, every held one) and the watched events
 * (watch.c), and is woken early by drupe_hold_kick(). Notices from drivers are hints and never believed:
 * every wake-up leads to a poll. It sleeps for good while nothing that it waits for is a driver's, since core
 * tells of everything else. It drops no references of the caller. */
#include "base/service.h"
#include "core/queue/launch.h"
#include <sched.h>
#include <stdlib.h>

#define POLL_SHORTEST_NS 50000u
#define POLL_LONGEST_NS  2000000u
#define WATCH_NS         5000000u
#define STOP_LEAST_NS    200000000u /* the waiter gets to come by, however short the caller's time is */
#define STOP_MOST_NS     UINT64_C(20000000000) /* it may hang in a driver */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t serve(void *unused);
static drupe_service waiter = {.name = "drupe-waiter", .lock = &lock, .step = serve};
static pthread_cond_t changed;    /* for those who wait for held events */
static bool prepared;             /* `changed` is */
static drupe_queue *queues;       /* with held work; each with an inner reference */
static _Atomic(unsigned) nqueues; /* of these */
static _Atomic(unsigned) nothers; /* what else the waiter has to look after */
static unsigned begun, ended;     /* the waiter's rounds */
static unsigned closers;          /* who wait for the end of a round */
static bool must_poll;            /* the waiter's own: it has seen something that a driver will end */

/* --- Waking --------------------------------------------------------------------------------------------- */

void drupe_hold_kick(void)
{
    if (atomic_load(&nqueues) + atomic_load(&nothers) == 0) return;
    pthread_mutex_lock(&lock);
    drupe_service_wake(&waiter);
    pthread_mutex_unlock(&lock);
}

void drupe_core_notify(drupe_event *event)
{
    /* The event is not looked at: a late notice may name one that is gone. */
    (void)event;
    drupe_hold_kick();
}

void drupe_hold_announce(void)
{
    pthread_mutex_lock(&lock);
    if (drupe_service_runs(&waiter)) {
        pthread_cond_broadcast(&changed);
        drupe_service_wake(&waiter);
    }
    pthread_mutex_unlock(&lock);
}

static bool held_or_running(const drupe_event *event)
{
    drupe_phase phase = drupe_event_phase(event);
    return phase == DRUPE_PHASE_HELD || phase == DRUPE_PHASE_RUNNING;
}

/* Being woken takes as long as copying a megabyte. */
static void watch_briefly(const drupe_event *event, uint64_t deadline)
{
    uint64_t until = drupe_deadline(WATCH_NS);
    if (until > deadline) until = deadline;
    while (held_or_running(event) && drupe_now_ns() < until) sched_yield();
}

bool drupe_hold_await(drupe_event *event, uint64_t deadline)
{
    bool in_time = true;
    if (event->brisk) watch_briefly(event, deadline);
    pthread_mutex_lock(&lock);
    /* Without threads nothing is held, and the condition may not exist yet. */
    while (prepared) {
        if (!held_or_running(event) || !in_time) break;
        in_time = drupe_cond_wait_until(&changed, &lock, deadline);
    }
    bool over = !held_or_running(event);
    pthread_mutex_unlock(&lock);
    return over;
}

void drupe_hold_let_pass(drupe_queue *queue)
{
    for (bool late = true; late;) {
        late = false;
        pthread_mutex_lock(&queue->lock);
        for (drupe_flight *at = queue->held; at && !late; at = at->next) {
            late = drupe_phase_over(drupe_event_phase(at->event));
            if (!drupe_queue_unordered(queue)) break;
        }
        pthread_mutex_unlock(&queue->lock);
        if (!late) break;
        drupe_hold_kick();
        sched_yield();
    }
}

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
            must_poll = true;
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
    bool first = queue->head == flight && flight->nwaits == 0 && !drupe_queue_unordered(queue);
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
        must_poll = true;
    }
}

/* Poll the waits of the first held flight. Only this thread takes flights from the held part, so the flight
 * stays while the lock is not held; polling may need the locks of other queues. */
static bool serve_one(drupe_queue *queue)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_serve(queue);
    pthread_mutex_lock(&queue->lock);
    drupe_flight *flight = queue->held;
    pthread_mutex_unlock(&queue->lock);
    if (!flight) return false;
    drupe_hold_poll(flight);
    pthread_mutex_lock(&queue->lock);
    bool moved = drupe_hold_advance(queue, flight);
    if (moved) {
        flight->held = false;
        queue->held = flight->next;
        drupe_queue_flush_locked(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    if (moved) drupe_hold_announce();
    return moved;
}

/* --- The waiter: its list ------------------------------------------------------------------------------- */

/* Take the queue off the list if it holds nothing. */
static void retire(drupe_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    pthread_mutex_lock(&lock);
    bool idle = queue->held == NULL;
    if (idle) {
        drupe_queue **link = &queues;
        while (*link != queue) link = &(*link)->hold_next;
        *link = queue->hold_next;
        queue->on_hold = false;
        atomic_fetch_sub(&nqueues, 1);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&queue->lock);
    if (idle) drupe_queue_inner_release(queue);
}

/* Once over all queues; true when something moved. Queues join at the front, so the walk stays valid. */
static bool serve_all(void)
{
    bool moved = false;
    pthread_mutex_lock(&lock);
    drupe_queue *queue = queues;
    pthread_mutex_unlock(&lock);
    while (queue) {
        while (serve_one(queue)) moved = true;
        pthread_mutex_lock(&lock);
        drupe_queue *next = queue->hold_next;
        pthread_mutex_unlock(&lock);
        retire(queue);
        queue = next;
    }
    return moved;
}

static uint64_t serve(void *unused)
{
    static uint64_t pause = POLL_SHORTEST_NS;
    (void)unused;
    if (!queues && atomic_load(&nothers) == 0) return UINT64_MAX;
    must_poll = false;
    begun++;
    pthread_mutex_unlock(&lock);
    bool moved = serve_all();
    if (drupe_watch_serve(&must_poll)) moved = true;
    pthread_mutex_lock(&lock);
    ended = begun;
    if (closers) pthread_cond_broadcast(&changed);
    if (moved || waiter.woken) {
        pause = POLL_SHORTEST_NS;
        return 0;
    }
    uint64_t until = must_poll ? drupe_deadline(pause) : UINT64_MAX;
    pause = pause < POLL_LONGEST_NS ? pause * 2 : POLL_LONGEST_NS;
    return until;
}

/* --- Starting and stopping ------------------------------------------------------------------------------ */

static drupe_status prepare_locked(void)
{
    if (!prepared) DRUPE_TRY(drupe_cond_init(&changed));
    prepared = true;
    return DRUPE_OK;
}

static drupe_status start_locked(void)
{
    DRUPE_TRY(prepare_locked());
    return drupe_service_start(&waiter);
}

drupe_status drupe_hold_prepare(void)
{
    pthread_mutex_lock(&lock);
    drupe_status status = prepare_locked();
    pthread_mutex_unlock(&lock);
    return status;
}

drupe_status drupe_hold_attend(int more)
{
    pthread_mutex_lock(&lock);
    drupe_status status = more > 0 ? start_locked() : DRUPE_OK;
    if (status == DRUPE_OK) atomic_fetch_add(&nothers, (unsigned)more);
    pthread_mutex_unlock(&lock);
    return status;
}

drupe_status drupe_hold_add(drupe_queue *queue)
{
    pthread_mutex_lock(&lock);
    drupe_status status = start_locked();
    if (status == DRUPE_OK && !queue->on_hold) {
        drupe_queue_inner_retain(queue);
        queue->on_hold = true;
        queue->hold_next = queues;
        queues = queue;
        atomic_fetch_add(&nqueues, 1);
    }
    drupe_service_wake(&waiter);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Queues that hold nothing any more stay on the list until the waiter comes by, which takes a while where the
 * system has no time for it. What is there after a whole round is held. */
static void let_retire_locked(uint64_t deadline)
{
    uint64_t least = drupe_deadline(STOP_LEAST_NS), most = drupe_deadline(STOP_MOST_NS);
    if (deadline < least) deadline = least;
    if (deadline > most) deadline = most;
    unsigned wanted = begun + 1;
    closers++;
    drupe_service_wake(&waiter);
    while (drupe_service_runs(&waiter) && queues && (int)(ended - wanted) < 0) {
        if (!drupe_cond_wait_until(&changed, &lock, deadline)) break;
    }
    closers--;
}

void drupe_hold_stop(uint64_t deadline)
{
    pthread_mutex_lock(&lock);
    if (drupe_service_runs(&waiter) && queues) let_retire_locked(deadline);
    /* Work that is still held needs its thread; it stays and the library may be closed again later. */
    if (!queues && atomic_load(&nothers) == 0) drupe_service_stop(&waiter);
    pthread_mutex_unlock(&lock);
    drupe_worker_stop();
}
