/* Tasks: their memory, what they wait for, how they end.
 *
 * The task at the end of an in-order queue is found in queue->tail. Whoever queues another one swaps itself
 * in and then tells its predecessor; a task that ends and finds nobody behind it although it is not the last
 * one any more waits for those few instructions to happen. An unordered queue lets tasks pass as they come
 * until a barrier has to wait: that and what stands behind it is parked.
 *
 * An event's list of dependents is closed when its task ends, by a mark that says how. */
#include "backends/host/host.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* The submitter is held back, for a moment each time, while this many of its queue's tasks are not over. */
#define MANY    1024u
#define HOLD_NS 100000u

static drupe_host_link closed[2]; /* marks: complete, failed */

/* --- Memory --------------------------------------------------------------------------------------------- */

/* The record after it will be wanted next, and a worker has written to it: let it come meanwhile. */
static void take_spare(drupe_host_queue *queue, drupe_host_task *spare)
{
    drupe_host_task *after = queue->spare = spare->next;
    for (size_t at = 0; after && at < offsetof(drupe_host_task, links_inline); at += 64)
        drupe_prefetch_write((char *)after + at);
}

drupe_status drupe_host_task_new(const drupe_submit *s, drupe_host_task **task)
{
    drupe_host_queue *queue = drupe_native(s->queue);
    drupe_prefetch_write(&queue->tail); /* a worker has it */
    if (!queue->spare) queue->spare = atomic_exchange_explicit(&queue->returned, NULL, memory_order_acquire);
    drupe_host_task *fresh = queue->spare;
    if (fresh)
        take_spare(queue, fresh);
    else
        fresh = aligned_alloc(64, (sizeof *fresh + 63) & ~(size_t)63);
    *task = fresh;
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a task of the host device.");
    /* All but what is only read where it was written. */
    memset(fresh, 0, offsetof(drupe_host_task, links_inline));
    atomic_init(&fresh->cursor, 0);
    fresh->queue = queue;
    fresh->round = atomic_load_explicit(&queue->round, memory_order_relaxed);
    fresh->crew = &queue->pool->compute;
    fresh->event = s->event ? drupe_native(s->event) : NULL;
    fresh->items = fresh->grain = 1;
    fresh->first = queue->device->first;
    fresh->count = queue->device->count;
    fresh->links = fresh->links_inline;
    fresh->args = fresh->args_inline;
    fresh->running = 0;
    return DRUPE_OK;
}

static void free_parts(drupe_host_task *task)
{
    if (task->args != task->args_inline) free(task->args);
    if (task->links != task->links_inline) free(task->links);
    free(atomic_load_explicit(&task->error, memory_order_relaxed));
}

void drupe_host_task_free(drupe_host_task *task)
{
    free_parts(task);
    task->next = task->queue->spare;
    task->queue->spare = task;
}

static void give_back(drupe_host_queue *queue, drupe_host_task *task)
{
    free_parts(task);
    task->next = atomic_load_explicit(&queue->returned, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&queue->returned, &task->next, task, memory_order_release,
                                                  memory_order_relaxed)) {}
}

void drupe_host_task_list_free(drupe_host_task *list)
{
    while (list) {
        drupe_host_task *next = list->next;
        free(list);
        list = next;
    }
}

drupe_status drupe_host_task_room(drupe_host_task *task, size_t count, size_t bytes, unsigned char **values)
{
    *values = task->values;
    if (count <= DRUPE_HOST_ARGS && bytes <= DRUPE_HOST_VALUES) return DRUPE_OK;
    size_t table = drupe_round16(count * sizeof(void *));
    const void **args = malloc(table + bytes);
    if (!args) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu bytes of arguments.", bytes);
    task->args = args;
    *values = (unsigned char *)args + table;
    return DRUPE_OK;
}

/* --- Being set free --------------------------------------------------------------------------------------
 */

/* Tasks that are over without having run: a list instead of recursion keeps a long chain off the stack. */
typedef struct over_list {
    drupe_host_task *first;
} over_list;

static void release(drupe_host_task *task, over_list *over)
{
    if (atomic_fetch_sub_explicit(&task->pending, 1, memory_order_acq_rel) != 1) return;
    drupe_host_event *event = task->event;
    if (event) {
        if (task->queue->profiling) event->times.submitted = drupe_now_ns();
        atomic_store_explicit(&event->stage, DRUPE_EVENT_SUBMITTED, memory_order_relaxed);
    }
    if (task->round != atomic_load_explicit(&task->queue->round, memory_order_relaxed))
        atomic_store_explicit(&task->failed, true, memory_order_relaxed);
    if (!atomic_load_explicit(&task->failed, memory_order_relaxed) && task->items) {
        drupe_host_task_ready(task);
        return;
    }
    task->next = over->first;
    over->first = task;
}

/* --- Unordered queues; queue->lock -----------------------------------------------------------------------
 */

/* Whether the task has its turn now. */
static bool admit(drupe_host_queue *queue, const drupe_host_task *task)
{
    if (queue->closed || (task->barrier && queue->running)) return false;
    queue->running++;
    queue->closed = task->barrier;
    return true;
}

static bool enter_unordered(drupe_host_queue *queue, drupe_host_task *task)
{
    pthread_mutex_lock(&queue->lock);
    bool turn = !queue->parked && admit(queue, task);
    if (!turn) {
        task->next = NULL;
        if (queue->parked)
            queue->parked_last->next = task;
        else
            queue->parked = task;
        queue->parked_last = task;
    }
    pthread_mutex_unlock(&queue->lock);
    return turn;
}

static void leave_unordered(drupe_host_queue *queue, const drupe_host_task *task, over_list *over)
{
    drupe_host_task *first = NULL, **last = &first;
    pthread_mutex_lock(&queue->lock);
    queue->running--;
    if (task->barrier) queue->closed = false;
    while (queue->parked && admit(queue, queue->parked)) {
        *last = queue->parked;
        last = &queue->parked->next;
        queue->parked = queue->parked->next;
    }
    *last = NULL;
    pthread_mutex_unlock(&queue->lock);
    while (first) {
        drupe_host_task *next = first->next;
        release(first, over);
        first = next;
    }
}

/* --- In-order queues -------------------------------------------------------------------------------------
 */

/* False: it stands behind another one, which may end at any time from now on. */
static bool enter_ordered(drupe_host_queue *queue, drupe_host_task *task)
{
    drupe_host_task *before = atomic_exchange_explicit(&queue->tail, task, memory_order_acq_rel);
    if (!before) return true;
    atomic_store_explicit(&before->behind, task, memory_order_release);
    return false;
}

static void leave_ordered(drupe_host_queue *queue, drupe_host_task *task, over_list *over)
{
    drupe_host_task *behind = atomic_load_explicit(&task->behind, memory_order_acquire), *last = task;
    if (!behind && atomic_compare_exchange_strong_explicit(&queue->tail, &last, NULL, memory_order_acq_rel,
                                                           memory_order_relaxed)) {
        return;
    }
    while (!behind) {
        sched_yield();
        behind = atomic_load_explicit(&task->behind, memory_order_acquire);
    }
    if (atomic_load_explicit(&task->faulted, memory_order_relaxed)) drupe_host_fault_spread(task, behind);
    release(behind, over);
}

/* --- Queueing ------------------------------------------------------------------------------------------- */

/* True when the event will release the task. */
static bool add_wait(drupe_host_event *wait, drupe_host_task *task, drupe_host_link *link)
{
    link->task = task;
    drupe_host_link *seen = atomic_load_explicit(&wait->dependents, memory_order_acquire);
    do {
        if (seen == &closed[1]) atomic_store_explicit(&task->failed, true, memory_order_relaxed);
        if (seen == &closed[0] || seen == &closed[1]) return false;
        link->next = seen;
    } while (!atomic_compare_exchange_weak_explicit(&wait->dependents, &seen, link, memory_order_acq_rel,
                                                    memory_order_acquire));
    return true;
}

/* Counted in before anything can release it; one too many keeps it here until all is in place. */
static void queue_task(const drupe_submit *s, drupe_host_task *task)
{
    drupe_host_queue *queue = task->queue;
    unsigned absent = 0;
    atomic_init(&task->pending, (unsigned)s->nwaits + 2);
    atomic_fetch_add_explicit(&queue->pending, 2, memory_order_relaxed);
    for (size_t i = 0; i < s->nwaits; i++)
        absent += !add_wait(drupe_native(s->waits[i]), task, &task->links[i]);
    absent += queue->unordered ? enter_unordered(queue, task) : enter_ordered(queue, task);
    over_list over = {NULL};
    if (absent) atomic_fetch_sub_explicit(&task->pending, absent, memory_order_acq_rel);
    release(task, &over);
    if (over.first) drupe_host_task_finish(over.first);
}

/* Let the workers catch up, so that a submitter that never waits does not fill the memory. Never for long,
 * and not again where it was of no use: they may be waiting for what the submitter does next. */
static void hold_back(drupe_host_queue *queue)
{
    size_t before = atomic_load_explicit(&queue->pending, memory_order_relaxed);
    if (before <= 2 * MANY || before == queue->stuck + 2) {
        queue->stuck = before;
        return;
    }
    uint64_t deadline = drupe_deadline(HOLD_NS);
    do sched_yield();
    while (atomic_load_explicit(&queue->pending, memory_order_relaxed) > 2 * MANY - 2 * MANY / 8 &&
           drupe_now_ns() < deadline);
    queue->stuck = atomic_load_explicit(&queue->pending, memory_order_relaxed);
}

drupe_status drupe_host_task_queue(const drupe_submit *s, drupe_host_task *task)
{
    drupe_host_queue *queue = task->queue;
    bool function = task->fn != NULL;
    drupe_status status = DRUPE_OK;
    if (s->nwaits > DRUPE_HOST_LINKS) {
        task->links = calloc(s->nwaits, sizeof *task->links);
        if (!task->links) {
            task->links = task->links_inline;
            status = drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu waits.", s->nwaits);
        }
    }
    if (status == DRUPE_OK && !queue->started[function]) {
        status = drupe_host_crew_start(task->crew, task->first, function ? 1 : task->count);
        queue->started[function] = status == DRUPE_OK;
    }
    if (status != DRUPE_OK) {
        drupe_host_task_free(task);
        return status;
    }
    task->wide = task->items > task->grain && task->count > 1;
    if (task->event) {
        task->event->pool = queue->pool;
        task->event->self = s->event;
        if (queue->profiling) task->event->times.queued = drupe_now_ns();
    }
    hold_back(queue);
    queue_task(s, task);
    return DRUPE_OK;
}

/* --- Finishing ------------------------------------------------------------------------------------------ */

static void fail_event(drupe_host_task *task)
{
    drupe_host_event *event = task->event;
    const drupe_error *error = atomic_load(&task->error);
    event->error = calloc(1, sizeof *event->error);
    if (!event->error) return;
    if (error) {
        *event->error = *error;
        return;
    }
    event->error->status = DRUPE_E_DEPENDENCY;
    strcpy(event->error->backend, "host");
    strcpy(event->error->text, "Did not run, because something that it waited for failed.");
}

/* What never ran on a worker begins when it ends. */
static void stamp_end(drupe_host_event *event)
{
    drupe_times *times = &event->times;
    times->ended = drupe_now_ns();
    times->started = atomic_load(&event->started);
    if (!times->submitted) times->submitted = times->ended;
    if (!times->started) times->started = times->ended;
}

void drupe_host_event_close_complete(drupe_host_event *event)
{
    atomic_store_explicit(&event->dependents, &closed[0], memory_order_relaxed);
    atomic_store_explicit(&event->end, DRUPE_HOST_OVER, memory_order_release);
}

static void settle_event(drupe_host_task *task, over_list *over)
{
    drupe_host_event *event = task->event;
    drupe_host_pool *pool = event->pool;
    bool failed = atomic_load_explicit(&task->failed, memory_order_relaxed);
    if (task->queue->profiling) stamp_end(event);
    if (failed) fail_event(task);
    drupe_host_link *link =
        atomic_exchange_explicit(&event->dependents, &closed[failed], memory_order_acq_rel);
    while (link) {
        drupe_host_link *next = link->next;
        if (failed) atomic_store_explicit(&link->task->failed, true, memory_order_relaxed);
        release(link->task, over);
        link = next;
    }
    drupe_event *self = event->self;
    unsigned end = atomic_fetch_or_explicit(&event->end, DRUPE_HOST_OVER | (failed ? DRUPE_HOST_FAILED : 0),
                                            memory_order_acq_rel);
    if (end & DRUPE_HOST_WAITED) drupe_host_pool_tell(pool);
    if (end & DRUPE_HOST_NOTIFY) drupe_core_notify(self);
}

static void finish_one(drupe_host_task *task, over_list *over)
{
    drupe_host_queue *queue = task->queue;
    drupe_host_pool *pool = queue->pool;
    /* Whoever sees a later event complete relies on this one being so: it comes first. After a fault it comes
     * last, so that what is submitted once the failure is known does not stand behind it. */
    bool faulted = atomic_load_explicit(&task->faulted, memory_order_relaxed);
    if (task->event && !faulted) settle_event(task, over);
    if (queue->unordered)
        leave_unordered(queue, task, over);
    else
        leave_ordered(queue, task, over);
    if (task->event && faulted) settle_event(task, over);
    give_back(queue, task);
    /* The last touch: a queue that has run dry may be closed. */
    if (atomic_fetch_sub_explicit(&queue->pending, 2, memory_order_acq_rel) == 3) drupe_host_pool_tell(pool);
}

void drupe_host_task_finish(drupe_host_task *task)
{
    over_list over = {task};
    task->next = NULL;
    while (over.first) {
        drupe_host_task *one = over.first;
        over.first = one->next;
        finish_one(one, &over);
    }
}
