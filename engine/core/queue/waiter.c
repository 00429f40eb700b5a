/* The waiter: one thread, started with the first deferred submission or watched event, which serves the
 * queues that hold work (deferred.c) and the watched events (watch.c); and who wakes it, or is woken by what
 * it does.
 *
 * It polls what deferred work waits for, and is woken early by drupe_deferred_kick(). Notices from drivers
 * are hints and never believed: every wake-up leads to a poll. It sleeps for good while nothing that it waits
 * for is a driver's, since core tells of everything else. It drops no references of the caller. */
#include "base/service.h"
#include "core/queue/launch.h"
#include <sched.h>

#define POLL_SHORTEST_NS 50000u
#define POLL_LONGEST_NS  2000000u
#define WATCH_NS         5000000u
#define STOP_LEAST_NS    200000000u /* the waiter gets to come by, however short the caller's time is */
#define STOP_MOST_NS     UINT64_C(20000000000) /* it may hang in a driver */

static uint64_t serve_round(void *unused);

static struct waiting {
    pthread_mutex_t lock;
    drupe_service service;
    pthread_cond_t changed;           /* for those who wait for deferred events */
    SLIST_HEAD(, drupe_queue) queues; /* with deferred work; each with an inner reference */
    _Atomic(unsigned) load;           /* these, and what else the waiter has to look after */
    unsigned begun, ended;            /* the waiter's rounds */
    unsigned closers;                 /* who wait for the end of a round */
    bool must_poll;                   /* the waiter's own: it has seen something that a driver will end */
    uint64_t pause;                   /* the waiter's own: between two polls */
    /* What it does in each round; NULL until somebody needs it. */
    _Atomic(drupe_serve_queue) serve_queue;
    _Atomic(drupe_serve_others) serve_others;
} waiter = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .service = {.name = "drupe-waiter", .lock = &waiter.lock, .step = serve_round},
    .pause = POLL_SHORTEST_NS,
};

/* --- Waking --------------------------------------------------------------------------------------------- */

void drupe_deferred_kick(void)
{
    if (atomic_load(&waiter.load) == 0) return;
    pthread_mutex_lock(&waiter.lock);
    drupe_service_wake(&waiter.service);
    pthread_mutex_unlock(&waiter.lock);
}

void drupe_core_notify(drupe_event *event)
{
    /* The event is not looked at: a late notice may name one that is gone. */
    (void)event;
    drupe_deferred_kick();
}

void drupe_deferred_announce(void)
{
    pthread_mutex_lock(&waiter.lock);
    pthread_cond_broadcast(&waiter.changed);
    drupe_service_wake(&waiter.service);
    pthread_mutex_unlock(&waiter.lock);
}

static bool deferred_or_running(const drupe_event *event)
{
    drupe_phase phase = drupe_event_phase(event);
    return phase == DRUPE_PHASE_DEFERRED || phase == DRUPE_PHASE_RUNNING;
}

/* Being woken takes as long as copying a megabyte. */
static void watch_briefly(const drupe_event *event, uint64_t deadline)
{
    uint64_t until = drupe_deadline(WATCH_NS);
    if (until > deadline) until = deadline;
    while (deferred_or_running(event) && drupe_now_ns() < until) sched_yield();
}

bool drupe_deferred_await(drupe_event *event, uint64_t deadline)
{
    bool in_time = true;
    if (event->spins) watch_briefly(event, deadline);
    pthread_mutex_lock(&waiter.lock);
    while (deferred_or_running(event) && in_time)
        in_time = drupe_cond_wait_until(&waiter.changed, &waiter.lock, deadline);
    bool over = !deferred_or_running(event);
    pthread_mutex_unlock(&waiter.lock);
    return over;
}

/* --- Its list ------------------------------------------------------------------------------------------- */

void drupe_waiter_queues(drupe_serve_queue serve)
{
    atomic_store(&waiter.serve_queue, serve);
}

void drupe_waiter_others(drupe_serve_others serve)
{
    atomic_store(&waiter.serve_others, serve);
}

void drupe_waiter_poll(void)
{
    waiter.must_poll = true;
}

/* Take the queue off the list if it holds nothing. */
static void retire(drupe_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    pthread_mutex_lock(&waiter.lock);
    bool idle = queue->order.deferred == NULL;
    if (idle) {
        SLIST_REMOVE(&waiter.queues, queue, drupe_queue, deferred);
        queue->on_deferred_list = false;
        atomic_fetch_sub(&waiter.load, 1);
        pthread_cond_broadcast(&waiter.changed);
    }
    pthread_mutex_unlock(&waiter.lock);
    pthread_mutex_unlock(&queue->lock);
    if (idle) drupe_queue_inner_release(queue);
}

/* Once over all queues; true when something moved. Queues join at the front, so the walk stays valid. */
static bool serve_all(void)
{
    drupe_serve_queue serve = atomic_load(&waiter.serve_queue);
    bool moved = false;
    pthread_mutex_lock(&waiter.lock);
    drupe_queue *queue = SLIST_FIRST(&waiter.queues);
    pthread_mutex_unlock(&waiter.lock);
    while (queue) {
        while (serve(queue)) moved = true;
        pthread_mutex_lock(&waiter.lock);
        drupe_queue *next = SLIST_NEXT(queue, deferred);
        pthread_mutex_unlock(&waiter.lock);
        retire(queue);
        queue = next;
    }
    return moved;
}

static uint64_t serve_round(void *unused)
{
    (void)unused;
    if (atomic_load(&waiter.load) == 0) return UINT64_MAX;
    waiter.must_poll = false;
    waiter.begun++;
    pthread_mutex_unlock(&waiter.lock);
    bool moved = serve_all();
    drupe_serve_others others = atomic_load(&waiter.serve_others);
    if (others && others(&waiter.must_poll)) moved = true;
    pthread_mutex_lock(&waiter.lock);
    waiter.ended = waiter.begun;
    if (waiter.closers) pthread_cond_broadcast(&waiter.changed);
    if (moved || waiter.service.woken) {
        waiter.pause = POLL_SHORTEST_NS;
        return 0;
    }
    uint64_t until = waiter.must_poll ? drupe_deadline(waiter.pause) : UINT64_MAX;
    waiter.pause = waiter.pause < POLL_LONGEST_NS ? waiter.pause * 2 : POLL_LONGEST_NS;
    return until;
}

/* --- Starting and stopping ------------------------------------------------------------------------------ */

drupe_status drupe_deferred_attend(void)
{
    pthread_mutex_lock(&waiter.lock);
    drupe_status status = drupe_service_start(&waiter.service);
    if (status == DRUPE_OK) atomic_fetch_add(&waiter.load, 1);
    pthread_mutex_unlock(&waiter.lock);
    return status;
}

void drupe_deferred_dismiss(size_t count)
{
    pthread_mutex_lock(&waiter.lock);
    atomic_fetch_sub(&waiter.load, (unsigned)count);
    pthread_mutex_unlock(&waiter.lock);
}

drupe_status drupe_deferred_add(drupe_queue *queue)
{
    pthread_mutex_lock(&waiter.lock);
    drupe_status status = drupe_service_start(&waiter.service);
    if (status == DRUPE_OK && !queue->on_deferred_list) {
        drupe_queue_inner_retain(queue);
        queue->on_deferred_list = true;
        SLIST_INSERT_HEAD(&waiter.queues, queue, deferred);
        atomic_fetch_add(&waiter.load, 1);
    }
    pthread_mutex_unlock(&waiter.lock);
    return status;
}

/* Queues that hold nothing any more stay on the list until the waiter comes by, which takes a while where the
 * system has no time for it. What is there after a whole round is deferred. */
static void let_retire_locked(uint64_t deadline)
{
    uint64_t least = drupe_deadline(STOP_LEAST_NS), most = drupe_deadline(STOP_MOST_NS);
    if (deadline < least) deadline = least;
    if (deadline > most) deadline = most;
    const unsigned wanted = waiter.begun + 1;
    waiter.closers++;
    drupe_service_wake(&waiter.service);
    while (drupe_service_runs(&waiter.service) && !SLIST_EMPTY(&waiter.queues) &&
           (int)(waiter.ended - wanted) < 0) {
        if (!drupe_cond_wait_until(&waiter.changed, &waiter.lock, deadline)) break;
    }
    waiter.closers--;
}

void drupe_deferred_stop(uint64_t deadline)
{
    pthread_mutex_lock(&waiter.lock);
    if (drupe_service_runs(&waiter.service) && !SLIST_EMPTY(&waiter.queues)) let_retire_locked(deadline);
    /* Work that is still deferred needs its thread; it stays and the library may be closed again later. */
    if (atomic_load(&waiter.load) == 0) drupe_service_stop(&waiter.service);
    pthread_mutex_unlock(&waiter.lock);
    drupe_worker_stop();
}
