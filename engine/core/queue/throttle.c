/* How far a program may be ahead of its devices, in bytes and in submissions.
 *
 * What is given back on an in-order queue is used again at once, so most programs hold a handful of pieces
 * however far they are ahead. Others give back memory that several queues use, or that nobody may take in
 * order; that comes back when its work is over, and meanwhile new memory would be asked of the driver without
 * end. So who needs new memory while more than a share of what is free is in flight waits for some of it.
 *
 * A loop that submits much faster than its device computes is ahead by seconds or minutes, although it holds
 * little memory: what it prints about time is not true, and an interrupt comes too late. So who submits to a
 * queue with many unfinished submissions waits for some of these as well.
 *
 * The wait is the program's own, as it waits for results, since it may be interrupted and what it waits for
 * may be work that the program does itself. Where a thread must not wait, or nothing moves for a while, the
 * bound gives way: it saves memory, and is no reason to stand still. */
#include "core/queue/launch.h"
#include <unistd.h>

#define SHARE      8 /* of what is free */
#define AT_LEAST   (UINT64_C(64) << 20)
#define SLICE_NS   UINT64_C(2000000)
#define PATIENT_NS UINT64_C(1000000000) /* without anything coming back */
#define FRESH_NS   UINT64_C(20000000)   /* an answer about free memory is good for so long */
/* Submissions of a queue. %timeit looks for a number of rounds that takes 0.2 s: with 512 it finds the one
 * that it finds for NumPy where a round takes 0.3 ms or more. Where a submission takes 20 us it is 10 ms of
 * work, and each wait is over before that is done. */
#define MOST_AHEAD     512u
#define GO_ON          384u
#define COUNT_SLICE_NS UINT64_C(500000)
/* Large products take seconds when 512 of them wait: of these so many multiply-adds may be ahead, some tenths
 * of a second on a CPU and as long on other devices, which are faster. With less than two submissions a
 * device would wait for the program. */
#define HEAVY       UINT64_C(100000000) /* multiply-adds of one submission that are counted */
#define HEAVY_AHEAD UINT64_C(5000000000)
#define FASTER      100u
#define LEAST_AHEAD 2u
#define SLOWEST_NS  0.5  /* a multiply-add of a slow machine */
#define MOST_STEPS  1e13 /* that are waited for: more than an hour */

/* --- What is free --------------------------------------------------------------------------------------- */

/* The same, asked now and then: it is about shares, and asking reads files. */
static uint64_t free_lately(drupe_device *root)
{
    uint64_t now = drupe_now_ns(), asked = atomic_load(&root->free_asked);
    if (asked && now - asked < FRESH_NS) return atomic_load(&root->free_then);
    uint64_t bytes = drupe_limit_free(root);
    atomic_store(&root->free_then, bytes);
    atomic_store(&root->free_asked, now);
    return bytes;
}

/* Free lists are as good as free: they are emptied where they are in the way. */
static bool is_ahead(drupe_device *root, uint64_t bytes)
{
    uint64_t flying = atomic_load_explicit(&root->use.flying, memory_order_relaxed);
    if (flying == 0 || flying + bytes <= AT_LEAST) return false;
    uint64_t used = atomic_load(&root->use.used), reserved = atomic_load(&root->use.reserved);
    uint64_t idle = reserved > used + flying ? reserved - used - flying : 0;
    uint64_t most = (free_lately(root) + idle + flying) / SHARE;
    return flying + bytes > (most > AT_LEAST ? most : AT_LEAST);
}

/* --- Waiting -------------------------------------------------------------------------------------------- */

/* The oldest that is not deferred, else the oldest; NULL: nothing is in flight. */
static const drupe_inflight *oldest_entry(const drupe_queue *queue)
{
    const drupe_inflight *entry = queue->order.head;
    while (entry && entry->deferred) entry = entry->next;
    return entry ? entry : queue->order.head;
}

/* Whether what is oldest on the queue is the program's to end. */
static bool is_callers(const drupe_queue *queue)
{
    const drupe_inflight *entry = oldest_entry(queue);
    if (!entry || !entry->event) return false;
    if (entry->event->turn) return true;
    for (size_t i = 0; i < entry->nwaits; i++)
        if (!entry->waits[i]->queue && !drupe_phase_over(drupe_event_phase(entry->waits[i]))) return true;
    return false;
}

/* A queue of the device that is at work by itself, with an inner reference; NULL: none is. Drops what is over
 * on all of them. */
static drupe_queue *find_busy(drupe_device *root)
{
    drupe_queue *busy = NULL;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (queue->base.device->root != root) continue;
        drupe_queue_collect(queue);
        if (busy) continue;
        pthread_mutex_lock(&queue->lock);
        bool works = queue->order.head && !is_callers(queue);
        pthread_mutex_unlock(&queue->lock);
        if (!works) continue;
        drupe_queue_inner_retain(queue);
        busy = queue;
    }
    return busy;
}

/* DRUPE_OK, DRUPE_E_BUSY when this thread must not wait, or DRUPE_E_CANCELLED when it was interrupted. */
static drupe_status pause_for(drupe_queue *queue, uint64_t slice_ns, const char *what)
{
    drupe_status status = DRUPE_OK;
    uint64_t until = drupe_deadline(slice_ns);
    /* A driver that refuses to wait refuses at once, and would be asked without end. */
    if (!drupe_core_pause(queue, slice_ns, &status) && !drupe_queue_idle(queue, slice_ns) &&
        drupe_time_left(until) > 0)
        return DRUPE_E_BUSY;
    if (status != DRUPE_E_CANCELLED) return status;
    return drupe_error_set(status, "The program was interrupted while it waited for %s of %s.", what,
                           queue->base.device->filter);
}

/* Until something has come back; then `*moved`. */
static drupe_status await_some(drupe_device *root, bool *moved)
{
    uint64_t before = atomic_load(&root->use.flying), deadline = drupe_deadline(PATIENT_NS);
    drupe_status status = DRUPE_OK;
    *moved = false;
    if (drupe_thread_ours((int)gettid())) return DRUPE_OK; /* it serves those who wait */
    while (status == DRUPE_OK && !*moved && drupe_now_ns() < deadline) {
        drupe_queue *busy = find_busy(root);
        *moved = atomic_load(&root->use.flying) < before;
        if (!busy) break;
        if (!*moved) status = pause_for(busy, SLICE_NS, "memory");
        drupe_queue_inner_release(busy);
    }
    return status == DRUPE_E_BUSY ? DRUPE_OK : status;
}

drupe_status drupe_throttle(drupe_device *root, uint64_t bytes)
{
    bool moved = true;
    /* Where waiting did not help it is not tried again before something has come back. */
    uint64_t stuck = atomic_load(&root->stuck);
    if (stuck && atomic_load(&root->use.flying) >= stuck) return DRUPE_OK;
    while (moved && is_ahead(root, bytes)) DRUPE_TRY(await_some(root, &moved));
    atomic_store(&root->stuck, moved ? 0 : atomic_load(&root->use.flying));
    return DRUPE_OK;
}

drupe_status drupe_throttle_room(drupe_device *root, uint64_t deadline)
{
    bool moved = true;
    while (moved && drupe_now_ns() < deadline) DRUPE_TRY(await_some(root, &moved));
    return DRUPE_OK;
}

/* --- Submissions ---------------------------------------------------------------------------------------- */

/* How far ahead is too far, and until when it is waited for. */
typedef struct limits {
    size_t most, go_on;
    uint64_t patient_ns; /* without anything coming back */
} limits;

/* The number of the oldest submission; 0 without one. `*callers`: it is the program's to end. */
static uint64_t oldest(drupe_queue *queue, bool *callers)
{
    pthread_mutex_lock(&queue->lock);
    const drupe_inflight *entry = oldest_entry(queue);
    uint64_t number = entry ? entry->what.number : 0;
    *callers = is_callers(queue);
    pthread_mutex_unlock(&queue->lock);
    return number;
}

/* Wait until no more than `go_on` are in flight, if they are more than `most`. */
static drupe_status await_fewer(drupe_queue *queue, const limits *bound)
{
    bool callers = false;
    drupe_status status = DRUPE_OK;
    drupe_queue_collect(queue);
    size_t least = atomic_load(&queue->order.count), now = least;
    uint64_t first = oldest(queue, &callers), deadline = drupe_deadline(bound->patient_ns);
    if (now <= bound->most || drupe_device_loss(queue->base.device)) return DRUPE_OK;
    /* Where waiting did not help it is not tried again before something has come back. */
    if (first == atomic_load(&queue->stuck)) return DRUPE_OK;
    while (status == DRUPE_OK && now > bound->go_on && !callers && drupe_now_ns() < deadline) {
        status = pause_for(queue, COUNT_SLICE_NS, "earlier work");
        drupe_queue_collect(queue);
        now = atomic_load(&queue->order.count);
        if (now < least) deadline = drupe_deadline(bound->patient_ns);
        if (now < least) least = now;
        first = oldest(queue, &callers);
        if (drupe_device_loss(queue->base.device)) break;
    }
    atomic_store(&queue->stuck, status != DRUPE_E_CANCELLED && now > bound->go_on ? first : 0);
    return status == DRUPE_E_BUSY ? DRUPE_OK : status;
}

static inline drupe_status pace(drupe_queue *queue, const limits *bound)
{
    if (atomic_load_explicit(&queue->order.count, memory_order_relaxed) <= bound->most) return DRUPE_OK;
    DRUPE_TRY(drupe_core_check());
    return drupe_thread_ours((int)gettid()) ? DRUPE_OK : await_fewer(queue, bound);
}

drupe_status drupe_queue_pace(drupe_queue *queue)
{
    static const limits usual = {MOST_AHEAD, GO_ON, PATIENT_NS};
    return pace(queue, &usual);
}

drupe_status drupe_queue_pace_heavy(drupe_queue *queue, double steps)
{
    bool cpu = drupe_device_kind(queue->base.device) == DRUPE_DEVICE_CPU;
    if (steps < (double)HEAVY) return DRUPE_OK;
    if (!cpu) steps /= FASTER;
    double most = (double)HEAVY_AHEAD / steps;
    if (most >= MOST_AHEAD) return DRUPE_OK;
    size_t ahead = most > LEAST_AHEAD ? (size_t)most : LEAST_AHEAD;
    /* One of the largest takes longer than what is waited for others. */
    double patient = (double)PATIENT_NS + (steps < MOST_STEPS ? steps : MOST_STEPS) * SLOWEST_NS;
    const limits heavy = {ahead, ahead - 1, (uint64_t)patient};
    return pace(queue, &heavy);
}
