/* Queues: opening, waiting, letting go.
 *
 * A queue has two counts. Handles are the caller's: when the last one goes, the queue is drained on that
 * thread, which is where references may be dropped. Inner references belong to events, memory and the waiter:
 * they keep the struct, and the last of them may go anywhere, since a drained queue holds nothing of the
 * caller's. A handle may come back (the queue of an event); then the queue simply lives again. */
#include "core/queue/launch.h"
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static drupe_queue *all;
static _Atomic(uint32_t) last_number;
static _Atomic(bool) profile_all;
static pthread_once_t profile_once = PTHREAD_ONCE_INIT;

/* --- Life ----------------------------------------------------------------------------------------------- */

static void leave_all(drupe_queue *queue)
{
    pthread_mutex_lock(&all_lock);
    if (queue->prev)
        queue->prev->next = queue->next;
    else if (all == queue)
        all = queue->next;
    if (queue->next) queue->next->prev = queue->prev;
    pthread_mutex_unlock(&all_lock);
}

static void queue_destroy(drupe_queue *queue)
{
    leave_all(queue);
    if (queue->is_default) {
        drupe_library_lock();
        if (queue->base.device->queue == queue) queue->base.device->queue = NULL;
        drupe_library_unlock();
    }
    if (queue->opened && !drupe_device_silent(queue->base.device)) {
        /* Nothing is left; the driver is told to wait because its interface asks for that. */
        if (queue->base.slot->backend->queue_wait(queue, DRUPE_FOREVER) != DRUPE_OK) queue->silent = false;
        queue->base.slot->backend->queue_close(queue);
    }
    if (atomic_exchange(&queue->base.marks_due, 0)) atomic_fetch_sub(&drupe_marks_owed, 1);
    drupe_flight_forget_spares(queue);
    drupe_event_forget_spares(queue);
    drupe_cause_release(atomic_exchange(&queue->base.cause, NULL));
    drupe_cause_release(queue->breach);
    pthread_mutex_destroy(&queue->lock);
    drupe_slot *slot = queue->base.slot;
    drupe_device_release(queue->base.device);
    drupe_context_release(queue->base.context);
    drupe_object_free(&slot->live, queue);
}

_Atomic(const drupe_checker *) drupe_checker_now;

static void collect_all(const drupe_device *root)
{
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (!root || queue->base.device->root == root) drupe_queue_collect(queue);
    }
}

static const drupe_memory_users users = {queue_destroy, collect_all, drupe_pace, drupe_pace_room};

static void profile_ask(void)
{
    const char *wanted = getenv("DRUPE_PROFILE");
    if (wanted && *wanted && strcmp(wanted, "0") != 0) atomic_store(&profile_all, true);
}

static drupe_status check_open(const drupe_context *context, const drupe_device *device, uint32_t flags)
{
    const uint32_t priorities = DRUPE_QUEUE_PRIORITY_LOW | DRUPE_QUEUE_PRIORITY_HIGH;
    const uint32_t known = DRUPE_QUEUE_PROFILING | DRUPE_QUEUE_OUT_OF_ORDER | priorities;
    if (flags & ~known) return drupe_error_set(DRUPE_E_INVALID, "Unknown queue flags 0x%x.", flags);
    if ((flags & priorities) == priorities) {
        return drupe_error_set(DRUPE_E_INVALID, "A queue has a low or a high priority, not both.");
    }
    if (drupe_context_member(context, device) < 0) {
        return drupe_error_set(DRUPE_E_INVALID, "The device %s does not belong to this context.",
                               device->filter);
    }
    return DRUPE_OK;
}

drupe_status drupe_queue_open(drupe_context *context, drupe_device *device, uint32_t flags,
                              drupe_queue **queue)
{
    *queue = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(check_open(context, device, flags));
    drupe_memory_serve(&users);
    drupe_contain_tell(drupe_fault_spread);
    pthread_once(&profile_once, profile_ask);
    if (atomic_load(&profile_all)) flags |= DRUPE_QUEUE_PROFILING;
    DRUPE_TRY(drupe_loss_check(device));
    drupe_slot *slot = context->slot;
    drupe_queue *fresh = drupe_object_new(&slot->live, slot->backend, DRUPE_OBJECT_QUEUE, sizeof *fresh,
                                          slot->backend->size.queue);
    if (!fresh) return DRUPE_E_NO_MEMORY;
    atomic_init(&fresh->base.inner, 1);
    fresh->base.slot = slot;
    fresh->base.context = drupe_context_retain(context);
    fresh->base.device = drupe_device_retain(device);
    fresh->base.flags = flags;
    fresh->base.number = atomic_fetch_add(&last_number, 1) + 1;
    fresh->trace_device = drupe_trace_device(device->filter);
    pthread_mutex_init(&fresh->lock, NULL);
    fresh->opened = true;
    drupe_status status = slot->backend->queue_open(fresh, flags);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        drupe_queue_inner_release(fresh);
        return drupe_error_restore(&kept);
    }
    bool timed = false;
    if (slot->backend->queue_times && slot->backend->queue_times(fresh, &timed) == DRUPE_OK && timed)
        fresh->base.flags |= DRUPE_QUEUE_TIMED;
    fresh->leaps = drupe_queue_leaps(fresh);
    pthread_mutex_lock(&all_lock);
    fresh->next = all;
    if (all) all->prev = fresh;
    all = fresh;
    pthread_mutex_unlock(&all_lock);
    *queue = fresh;
    return DRUPE_OK;
}

drupe_queue *drupe_queue_retain(drupe_queue *queue)
{
    if (queue && atomic_fetch_add(&queue->base.object.references, 1) == 0) drupe_queue_inner_retain(queue);
    return queue;
}

static void release(drupe_queue *queue, bool told)
{
    if (!queue || !drupe_object_release(queue)) return;
    drupe_queue_finish(queue, UINT64_MAX);
    const drupe_checker *checker = drupe_checking();
    if (checker && told) checker->queue(queue, UINT64_MAX);
    if (checker) checker->closed(queue);
    drupe_event_count_all(queue);
    drupe_queue_inner_release(queue);
}

void drupe_queue_release(drupe_queue *queue)
{
    release(queue, true);
}

void drupe_queue_release_inside(drupe_queue *queue)
{
    release(queue, false);
}

bool drupe_queue_last(const drupe_queue *queue)
{
    return atomic_load_explicit(&((drupe_queue *)queue)->base.object.references, memory_order_relaxed) == 1;
}

drupe_device *drupe_queue_device(const drupe_queue *queue)
{
    return queue->base.device;
}

drupe_context *drupe_queue_context(const drupe_queue *queue)
{
    return queue->base.context;
}

uint32_t drupe_queue_flags_of(const drupe_queue *queue)
{
    return queue->base.flags & ~DRUPE_QUEUE_TIMED;
}

uint32_t drupe_queue_number(const drupe_queue *queue)
{
    return queue->base.number;
}

drupe_queue *drupe_queue_walk(drupe_queue *queue)
{
    pthread_mutex_lock(&all_lock);
    drupe_queue *next = queue ? queue->next : all;
    for (; next; next = next->next) {
        uint32_t seen = atomic_load(&next->base.inner);
        while (seen && !atomic_compare_exchange_weak(&next->base.inner, &seen, seen + 1)) {}
        if (seen) break;
    }
    pthread_mutex_unlock(&all_lock);
    if (queue) drupe_queue_inner_release(queue);
    return next;
}

size_t drupe_queue_list(drupe_queue **queues, size_t capacity)
{
    size_t count = 0;
    if (atomic_load(&drupe_core_forked)) return 0;
    pthread_mutex_lock(&all_lock);
    for (drupe_queue *queue = all; queue && count < capacity; queue = queue->next) {
        if (drupe_object_try_retain(queue)) queues[count++] = queue;
    }
    pthread_mutex_unlock(&all_lock);
    return count;
}

/* What others have the native queue of stays as it is, and so does what a driver cannot change. */
static void profile_one(drupe_queue *queue)
{
    const drupe_backend *backend = queue->base.slot->backend;
    pthread_mutex_lock(&queue->lock);
    bool possible = !queue->shared && backend->queue_time && !drupe_device_loss(queue->base.device);
    if (possible && !(queue->base.flags & DRUPE_QUEUE_PROFILING) && backend->queue_time(queue) == DRUPE_OK) {
        queue->timed_from = drupe_flight_latest() + 1;
        queue->base.flags |= DRUPE_QUEUE_PROFILING;
        queue->leaps = drupe_queue_leaps(queue);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool drupe_queue_profile(bool all_queues)
{
    pthread_once(&profile_once, profile_ask);
    bool before = atomic_exchange(&profile_all, all_queues);
    if (!all_queues || drupe_core_check() != DRUPE_OK) return before;
    drupe_error kept = *drupe_error_last();
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue))
        profile_one(queue);
    drupe_error_restore(&kept);
    return before;
}

drupe_event *drupe_queue_newest(const drupe_queue *queue)
{
    return queue->tail && !queue->held ? queue->tail->event : NULL;
}

/* --- Looking -------------------------------------------------------------------------------------------- */

size_t drupe_queue_blockers(drupe_queue *queue, drupe_event **events, size_t capacity)
{
    size_t count = 0;
    pthread_mutex_lock(&queue->lock);
    for (const drupe_flight *flight = queue->head; flight && count == 0; flight = flight->next) {
        for (size_t i = 0; i < flight->nwaits && count < capacity; i++) {
            if (!drupe_phase_over(drupe_event_phase(flight->waits[i])))
                events[count++] = drupe_event_retain(flight->waits[i]);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return count;
}

void drupe_queue_settle(drupe_queue *queue, bool leaping)
{
    pthread_mutex_lock(&queue->lock);
    drupe_queue_flush_locked(queue);
    drupe_flight *flight = queue->head;
    uint64_t ticks = 0;
    drupe_asking asking = {.span = leaping ? DRUPE_FLIGHT_SPAN : 1, .ticks = &ticks};
    if (drupe_queue_unordered(queue)) {
        drupe_unordered_settle(queue);
        flight = NULL;
    }
    for (; flight && flight != queue->held; flight = flight->next) {
        if (flight->event && !drupe_phase_over(drupe_flight_poll(queue, flight, &asking))) break;
    }
    pthread_mutex_unlock(&queue->lock);
}

void drupe_queue_flush(drupe_queue *queue)
{
    if (!queue->base.slot->backend->queue_flush) return;
    pthread_mutex_lock(&queue->lock);
    drupe_queue_flush_locked(queue);
    pthread_mutex_unlock(&queue->lock);
}

size_t drupe_queue_pending(drupe_queue *queue)
{
    if (drupe_core_check() != DRUPE_OK) return 0;
    size_t pending = 0;
    if (drupe_device_loss(queue->base.device)) return 0;
    pthread_mutex_lock(&queue->lock);
    bool unordered = drupe_queue_unordered(queue);
    if (unordered) pending = drupe_unordered_pending(queue);
    /* Silent work counts until something behind it is known to be complete. */
    for (drupe_flight *flight = unordered ? NULL : queue->head; flight; flight = flight->next) {
        drupe_phase phase = flight->event ? drupe_event_phase(flight->event) : DRUPE_PHASE_NATIVE;
        if (phase == DRUPE_PHASE_COMPLETE || flight->what.number <= queue->proven)
            pending = 0;
        else if (phase != DRUPE_PHASE_FAILED)
            pending++;
    }
    pthread_mutex_unlock(&queue->lock);
    return pending;
}

void drupe_queue_collect(drupe_queue *queue)
{
    if (!queue || drupe_core_check() != DRUPE_OK) return;
    drupe_event *mark = NULL;
    drupe_queue_inner_retain(queue); /* its last handle may go with what is dropped here */
    pthread_mutex_lock(&queue->lock);
    /* Silent work at the end would stay unproven until the next wait. Without a mark it does. */
    if (queue->unmarked && drupe_queue_mark(queue, NULL, &mark) != DRUPE_OK) mark = NULL;
    drupe_queue_flush_locked(queue);
    drupe_flight *finished = drupe_flight_reap(queue, SIZE_MAX, false);
    pthread_mutex_unlock(&queue->lock);
    drupe_event_release(mark);
    drupe_flight_drop(queue, finished);
    drupe_queue_inner_release(queue);
}

/* --- Waiting -------------------------------------------------------------------------------------------- */

static uint64_t time_left(uint64_t deadline)
{
    if (deadline == UINT64_MAX) return DRUPE_FOREVER;
    uint64_t now = drupe_now_ns();
    return deadline > now ? deadline - now : 0;
}

/* After the last submission `number` is over: establish that all before it are, and hear of silent failures.
 */
static drupe_status prove(drupe_queue *queue, uint64_t number, bool complete, uint64_t deadline)
{
    drupe_status status = DRUPE_OK;
    pthread_mutex_lock(&queue->lock);
    if (queue->silent || !complete) {
        /* When work was added meanwhile the driver may still be busy, which proves nothing and harms nothing.
         */
        uint64_t left = complete ? 0 : time_left(deadline);
        status = queue->base.slot->backend->queue_wait(queue, left < DRUPE_SLICE_NS ? left : DRUPE_SLICE_NS);
        if (status != DRUPE_E_TIMEOUT) queue->silent = false;
        if (status == DRUPE_E_TIMEOUT && complete) status = DRUPE_OK;
    }
    if (status != DRUPE_OK && status != DRUPE_E_TIMEOUT) {
        drupe_cause *trouble = drupe_queue_trouble(queue);
        if (!trouble) {
            trouble = drupe_cause_silent(queue, number);
            drupe_queue_blame(queue, trouble, queue->proven);
        }
        drupe_cause_release(trouble);
        status = DRUPE_OK;
    }
    if (status == DRUPE_OK && queue->proven < number) queue->proven = number;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* DRUPE_OK when all is over, however it ended; or DRUPE_E_TIMEOUT, or why no mark could be made. */
static drupe_status await_all(drupe_queue *queue, uint64_t deadline)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_await(queue, deadline);
    drupe_event *mark = NULL;
    pthread_mutex_lock(&queue->lock);
    drupe_status status = drupe_queue_mark(queue, NULL, &mark);
    uint64_t number = queue->tail ? queue->tail->what.number : queue->proven;
    bool silent = queue->silent; /* what is over may have failed unheard */
    pthread_mutex_unlock(&queue->lock);
    if (status != DRUPE_OK || (!mark && !silent)) return status;
    if (mark) status = drupe_event_await(mark, deadline);
    bool proven = status != DRUPE_OK;
    while (!proven) {
        bool complete = !mark || drupe_event_phase(mark) == DRUPE_PHASE_COMPLETE;
        status = drupe_loss_check(queue->base.device);
        if (status == DRUPE_OK) status = prove(queue, number, complete, deadline);
        proven = status != DRUPE_E_TIMEOUT || time_left(deadline) == 0;
    }
    drupe_event_release(mark);
    if (status == DRUPE_OK) drupe_hold_let_pass(queue);
    return status;
}

drupe_status drupe_queue_native(drupe_queue *queue, void **handle)
{
    *handle = NULL;
    DRUPE_TRY(drupe_core_check());
    if (!queue) return drupe_error_set(DRUPE_E_INVALID, "There is no queue to take a handle from.");
    if (!queue->base.slot->backend->queue_native) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "A queue on '%s' has no handle of a driver: queue a host function instead.",
                               drupe_device_filter(queue->base.device));
    }
    drupe_hold_let_pass(queue);
    pthread_mutex_lock(&queue->lock);
    drupe_status status =
        queue->held
            ? drupe_error_set(DRUPE_E_BUSY, "Work of this queue waits for another device, and what the "
                                            "driver is given now would overtake it. Wait for the queue "
                                            "first.")
            : queue->base.slot->backend->queue_native(queue, handle);
    queue->shared = queue->shared || status == DRUPE_OK;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

drupe_status drupe_queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    DRUPE_TRY(drupe_core_check());
    if (!queue) return drupe_error_set(DRUPE_E_INVALID, "There is no queue to wait for.");
    uint64_t latest = drupe_flight_latest();
    drupe_status status = await_all(queue, drupe_deadline(timeout_ns));
    if (status != DRUPE_OK && !drupe_device_loss(queue->base.device)) return status;
    drupe_queue_settle(queue, true);
    const drupe_checker *checker = drupe_checking();
    if (checker) checker->queue(queue, latest);
    DRUPE_TRY(drupe_queue_report(queue));
    DRUPE_TRY(drupe_loss_check(queue->base.device));
    return checker ? checker->memory() : DRUPE_OK;
}

bool drupe_queue_idle(drupe_queue *queue, uint64_t timeout_ns)
{
    drupe_error kept = *drupe_error_last();
    bool over = drupe_core_check() == DRUPE_OK && !drupe_device_loss(queue->base.device) &&
                await_all(queue, drupe_deadline(timeout_ns)) == DRUPE_OK;
    if (over) drupe_queue_settle(queue, true);
    drupe_error_restore(&kept);
    return over;
}

void drupe_queue_finish(drupe_queue *queue, uint64_t deadline)
{
    /* Without a mark (no memory) the driver itself is asked; held work cannot be waited for then. */
    if (await_all(queue, deadline) != DRUPE_OK && drupe_error_last()->status != DRUPE_E_TIMEOUT) {
        if (drupe_device_silent(queue->base.device)) return;
        if (queue->base.slot->backend->queue_wait(queue, time_left(deadline)) != DRUPE_OK) return;
    }
    pthread_mutex_lock(&queue->lock);
    drupe_flight *finished = drupe_flight_reap(queue, SIZE_MAX, false);
    pthread_mutex_unlock(&queue->lock);
    drupe_flight_drop(queue, finished);
}

void drupe_kernel_share(drupe_kernel *kernel, const drupe_queue *queue)
{
    uint32_t sole = atomic_load_explicit(&kernel->sole, memory_order_acquire);
    if (sole == 0 && atomic_compare_exchange_strong(&kernel->sole, &sole, queue->base.number)) return;
    /* A launch on the other queue ends before its lock can be had. */
    for (drupe_queue *other = drupe_queue_walk(NULL); other; other = drupe_queue_walk(other)) {
        if (other->base.number != sole) continue;
        pthread_mutex_lock(&other->lock);
        atomic_store_explicit(&kernel->sole, DRUPE_KERNEL_SHARED, memory_order_release);
        pthread_mutex_unlock(&other->lock);
    }
    atomic_store_explicit(&kernel->sole, DRUPE_KERNEL_SHARED, memory_order_release);
}
