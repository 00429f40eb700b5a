/* Tasks: their memory, what they wait for, how they end.
 *
 * The task at the end of an in-order queue is found in queue->tail. Whoever queues another one swaps itself
 * in and then tells its predecessor; a task that ends and finds nobody behind it although it is not the last
 * one any more waits for those few instructions to happen. On an unordered queue core names
 * all that a task waits for, so tasks pass as they come.
 *
 * Tasks of an in-order queue leave it in its order and are counted afterwards: when so many have been
 * counted, at least so many have left, and the submitter may use their records again, the oldest first.
 * Nobody has to hand them back. One that faults notes how many were issued by then: those fail, and see
 * it when their turn comes.
 *
 * An event has one word for its dependents and its end. Who ends it takes the list and leaves the mark that
 * says how. */
#include "backends/host/host.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* The submitter is held back, for a moment each time, while this many of its queue's tasks are not over. */
#define MANY    256u
#define HOLD_NS 100000u

/* --- Memory --------------------------------------------------------------------------------------------- */

/* The oldest of an in-order queue, if it is over. */
static drupe_host_task *take_finished(drupe_host_queue *queue)
{
    if (queue->seen == queue->taken_back)
        queue->seen = atomic_load_explicit(&queue->finished, memory_order_acquire) / 2;
    if (queue->seen == queue->taken_back) return NULL;
    drupe_host_task *oldest = queue->oldest;
    queue->oldest = oldest->later;
    if (!queue->oldest) queue->newest = NULL;
    queue->taken_back++;
    return oldest;
}

static drupe_host_task *pop_spare(drupe_host_queue *queue)
{
    drupe_host_task *spare = queue->spare;
    if (spare) queue->spare = spare->later;
    return spare;
}

/* The record after it will be wanted next, and a worker has written to it: let it come meanwhile. */
static drupe_host_task *take_record(drupe_host_queue *queue)
{
    drupe_host_task *record, *after;
    if (queue->unordered) {
        if (!queue->spare)
            queue->spare = atomic_exchange_explicit(&queue->returned, NULL, memory_order_acquire);
        record = pop_spare(queue);
        after = queue->spare;
    } else {
        record = take_finished(queue);
        if (!record) record = pop_spare(queue);
        after = queue->seen == queue->taken_back ? queue->spare : queue->oldest;
    }
    if (!record || !after) return record;
    drupe_prefetch_write(after);
    drupe_prefetch_write(&after->pending);
    drupe_prefetch_write(after->links_inline);
    return record;
}

drupe_status drupe_host_task_new(const drupe_submit *s, drupe_host_task **task)
{
    drupe_host_queue *queue = drupe_native(s->queue);
    drupe_host_task *fresh = take_record(queue);
    if (!fresh) fresh = aligned_alloc(64, sizeof *fresh);
    *task = fresh;
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a task of the host device.");
    /* All but what is only read where it was written. */
    fresh->queue = queue;
    fresh->tpool = &queue->sched->compute;
    fresh->event = s->event ? drupe_native(s->event) : NULL;
    fresh->predecessor = s->predecessor ? drupe_native(s->predecessor) : NULL;
    fresh->body = NULL;
    fresh->first = queue->device->first;
    fresh->count = queue->device->count;
    fresh->submission = s->number;
    fresh->round = atomic_load_explicit(&queue->round, memory_order_relaxed);
    fresh->kind = DRUPE_HOST_MOVE;
    atomic_init(&fresh->failed, false);
    atomic_init(&fresh->faulted, false);
    atomic_init(&fresh->stuck, false);
    fresh->sound = s->sound;
    fresh->wide = fresh->listed = fresh->more_links = fresh->more_args = false;
    atomic_init(&fresh->behind, NULL);
    fresh->later = NULL;
    fresh->items = 1;
    atomic_init(&fresh->error, NULL);
    return DRUPE_OK;
}

static void free_parts(drupe_host_task *task)
{
    if (atomic_load_explicit(&task->failed, memory_order_relaxed))
        free(atomic_load_explicit(&task->error, memory_order_relaxed));
    /* A thread that is parked inside of it may be looked at by others. */
    if (task->kind == DRUPE_HOST_KERNEL && task->code &&
        !atomic_load_explicit(&task->stuck, memory_order_relaxed))
        drupe_host_code_release(task->code);
    if (task->more_links) free(task->links);
    if (task->more_args) free(task->args);
}

void drupe_host_task_free(drupe_host_task *task)
{
    free_parts(task);
    task->later = task->queue->spare;
    task->queue->spare = task;
}

/* Of an unordered queue. */
static void give_back(drupe_host_queue *queue, drupe_host_task *task)
{
    task->later = atomic_load_explicit(&queue->returned, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&queue->returned, &task->later, task, memory_order_release,
                                                  memory_order_relaxed)) {}
}

static void free_list(drupe_host_task *list)
{
    while (list) {
        drupe_host_task *later = list->later;
        free(list);
        list = later;
    }
}

void drupe_host_task_forget(drupe_host_queue *queue)
{
    free_list(queue->spare);
    free_list(atomic_load(&queue->returned));
    free_list(queue->oldest);
}

drupe_status drupe_host_task_room(drupe_host_task *task, size_t count, size_t bytes, unsigned char **values)
{
    *values = task->values;
    task->args = task->args_inline;
    if (count <= DRUPE_HOST_ARGS && bytes <= DRUPE_HOST_VALUES) return DRUPE_OK;
    size_t table = drupe_round16(count * sizeof(void *));
    const void **args = malloc(table + bytes);
    if (!args) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu bytes of arguments.", bytes);
    task->args = args;
    task->more_args = true;
    *values = (unsigned char *)args + table;
    return DRUPE_OK;
}

/* --- Being set free --------------------------------------------------------------------------------------
 */

/* Tasks that are over without having run: a list instead of recursion keeps a long chain off the stack. */
typedef struct over_list {
    drupe_host_task *first;
} over_list;

static bool was_given_up(const drupe_host_task *task)
{
    drupe_host_queue *queue = task->queue;
    if (task->round == atomic_load_explicit(&queue->round, memory_order_acquire)) return false;
    /* Rounds are compared as numbers that begin anew. */
    return task->submission != atomic_load(&queue->begun) ||
           (int)(task->round - atomic_load(&queue->begun_since)) < 0;
}

/* Whether it has to fail because of what stands before it on its queue, or was given up. */
static bool must_fail(drupe_host_task *task)
{
    drupe_host_queue *queue = task->queue;
    if (was_given_up(task)) return true;
    if (task->number <= atomic_load_explicit(&queue->failed_up_to, memory_order_relaxed)) {
        if (queue->fate) atomic_store(&task->error, drupe_host_error_copy(queue->fate));
        return true;
    }
    drupe_host_event *predecessor = task->predecessor;
    return predecessor && atomic_load_explicit(&predecessor->end, memory_order_acquire) & DRUPE_HOST_FAILED;
}

/* Nothing is left to wait for. */
static void set_free(drupe_host_task *task, over_list *over)
{
    drupe_host_event *event = task->event;
    if (event) {
        if (drupe_host_profiling(task->queue)) event->submitted = drupe_now_ns();
        atomic_store_explicit(&event->stage, DRUPE_EVENT_SUBMITTED, memory_order_relaxed);
    }
    if (must_fail(task)) atomic_store_explicit(&task->failed, true, memory_order_relaxed);
    if (!atomic_load_explicit(&task->failed, memory_order_relaxed) && task->items) {
        drupe_host_task_ready(task);
        return;
    }
    task->next = over->first;
    over->first = task;
}

static void release(drupe_host_task *task, over_list *over)
{
    if (atomic_fetch_sub_explicit(&task->pending, 1, memory_order_acq_rel) == 1) set_free(task, over);
}

/* --- In-order queues -------------------------------------------------------------------------------------
 */

/* False: it stands behind another one, which may end at any time from now on. */
static bool enter_ordered(drupe_host_queue *queue, drupe_host_task *task)
{
    if (queue->newest)
        queue->newest->later = task;
    else
        queue->oldest = task;
    queue->newest = task;
    drupe_host_task *before = atomic_exchange_explicit(&queue->tail, task, memory_order_acq_rel);
    if (!before) return true;
    atomic_store_explicit(&before->behind, task, memory_order_release);
    return false;
}

/* What stands behind it, or NULL: then the queue has no end any more. */
static drupe_host_task *leave_ordered(drupe_host_queue *queue, drupe_host_task *task)
{
    drupe_host_task *behind = atomic_load_explicit(&task->behind, memory_order_acquire), *last = task;
    if (!behind && atomic_compare_exchange_strong_explicit(&queue->tail, &last, NULL, memory_order_acq_rel,
                                                           memory_order_relaxed)) {
        return NULL;
    }
    while (!behind) {
        sched_yield();
        behind = atomic_load_explicit(&task->behind, memory_order_acquire);
    }
    return behind;
}

/* --- Queueing ------------------------------------------------------------------------------------------- */

/* True when the event will release the task. */
static bool add_wait(drupe_host_event *wait, drupe_host_task *task, drupe_host_link *link)
{
    link->task = task;
    uintptr_t seen = atomic_load_explicit(&wait->end, memory_order_acquire);
    do {
        if (seen & DRUPE_HOST_FAILED) atomic_store_explicit(&task->failed, true, memory_order_relaxed);
        if (seen & DRUPE_HOST_OVER) return false;
        link->next = (drupe_host_link *)(seen & ~DRUPE_HOST_BITS);
    } while (!atomic_compare_exchange_weak_explicit(&wait->end, &seen,
                                                    (uintptr_t)link | (seen & DRUPE_HOST_BITS),
                                                    memory_order_acq_rel, memory_order_acquire));
    return true;
}

/* `pending` is stored before another thread can reach the task. It is one too high, so that the task does not
 * become ready before all its waits are linked. */
static void queue_task(const drupe_submit *s, drupe_host_task *task)
{
    drupe_host_queue *queue = task->queue;
    unsigned all = (unsigned)s->nwaits + 2, absent = 1;
    task->number = atomic_load_explicit(&queue->issued, memory_order_relaxed) + 1;
    atomic_store_explicit(&queue->issued, task->number, memory_order_release);
    atomic_init(&task->pending, all);
    drupe_host_link *links = task->more_links ? task->links : task->links_inline;
    for (size_t i = 0; i < s->nwaits; i++) absent += !add_wait(drupe_native(s->waits[i]), task, &links[i]);
    absent += queue->unordered || enter_ordered(queue, task);
    over_list over = {NULL};
    /* A task without waits is not known to any other thread, so it needs no atomic operation. */
    if (absent == all || atomic_fetch_sub_explicit(&task->pending, absent, memory_order_acq_rel) == absent)
        set_free(task, &over);
    if (over.first) drupe_host_task_finish(over.first);
}

/* Let the workers catch up, so that a submitter that never waits does not fill the memory. Never for long,
 * and not again where it was of no use: they may be waiting for what the submitter does next. */
static void hold_back(drupe_host_queue *queue)
{
    uint64_t issued = atomic_load_explicit(&queue->issued, memory_order_relaxed);
    if (issued - queue->seen <= MANY) return;
    queue->seen = atomic_load_explicit(&queue->finished, memory_order_acquire) / 2;
    uint64_t before = issued - queue->seen;
    if (before <= MANY || before == queue->stuck + 1) {
        queue->stuck = before;
        return;
    }
    uint64_t deadline = drupe_deadline(HOLD_NS);
    do sched_yield();
    while (drupe_host_queue_backlog(queue) > MANY - MANY / 8 && drupe_now_ns() < deadline);
    queue->stuck = drupe_host_queue_backlog(queue);
}

drupe_status drupe_host_task_queue(const drupe_submit *s, drupe_host_task *task)
{
    drupe_host_queue *queue = task->queue;
    bool function = task->kind == DRUPE_HOST_FUNCTION;
    drupe_status status = DRUPE_OK;
    if (s->nwaits > DRUPE_HOST_LINKS) {
        drupe_host_link *links = calloc(s->nwaits, sizeof *links);
        task->more_links = links != NULL;
        if (links)
            task->links = links;
        else
            status = drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu waits.", s->nwaits);
    }
    if (status == DRUPE_OK && !queue->started[function]) {
        status = drupe_host_tpool_start(task->tpool, task->first, function ? 1 : task->count);
        queue->started[function] = status == DRUPE_OK;
    }
    if (status != DRUPE_OK) {
        drupe_host_task_free(task);
        return status;
    }
    /* A thread that waits looks at the time between two shares, also where there is one worker only. */
    task->wide = task->items > 1 && task->items > task->grain && (task->count > 1 || task->sound);
    if (task->wide) {
        atomic_init(&task->cursor, 0);
        task->running = 0;
    }
    if (task->event) {
        task->event->self = s->event;
        if (drupe_host_profiling(queue)) task->event->queued = drupe_now_ns();
    }
    hold_back(queue);
    queue_task(s, task);
    return DRUPE_OK;
}

/* --- Finishing ------------------------------------------------------------------------------------------ */

/* It has faulted: what is behind it by now fails with the same error. */
static void fail_issued(drupe_host_queue *queue, drupe_host_task *task)
{
    const drupe_error *error = atomic_load(&task->error);
    /* The next one has its turn later: nobody reads it now. */
    free(queue->fate);
    queue->fate = error ? drupe_host_error_copy(error) : NULL;
    atomic_store_explicit(&queue->failed_up_to, atomic_load(&queue->issued), memory_order_relaxed);
}

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
    uint64_t before = 0;
    event->ended = drupe_now_ns();
    if (!event->submitted) event->submitted = event->ended;
    atomic_compare_exchange_strong(&event->started, &before, event->ended);
}

void drupe_host_event_close_complete(drupe_host_event *event)
{
    atomic_store_explicit(&event->end, DRUPE_HOST_OVER, memory_order_release);
}

static void settle_event(drupe_host_task *task, over_list *over)
{
    drupe_host_event *event = task->event;
    drupe_host_sched *sched = task->queue->sched;
    drupe_event *self = event->self;
    bool failed = atomic_load_explicit(&task->failed, memory_order_relaxed);
    if (drupe_host_profiling(task->queue)) stamp_end(event);
    if (failed) fail_event(task);
    uintptr_t mark = failed ? DRUPE_HOST_OVER | DRUPE_HOST_FAILED : DRUPE_HOST_OVER;
    uintptr_t end = atomic_exchange_explicit(&event->end, mark, memory_order_acq_rel);
    drupe_host_link *link = (drupe_host_link *)(end & ~DRUPE_HOST_BITS);
    while (link) {
        drupe_host_link *next = link->next;
        if (failed) atomic_store_explicit(&link->task->failed, true, memory_order_relaxed);
        release(link->task, over);
        link = next;
    }
    if (end & DRUPE_HOST_WAITED) drupe_host_sched_tell(sched);
    if (end & DRUPE_HOST_NOTIFY) drupe_core_notify(self);
}

/* The last access to the queue: once all its tasks are counted it may be closed, and the thread pools with
 * it. */
static void count_finished(drupe_host_queue *queue, drupe_host_sched *sched)
{
    bool waited = atomic_load_explicit(&queue->finished, memory_order_relaxed) & 1;
    /* The submitter writes to `issued` with every task, so it is loaded only while a thread waits. */
    uint64_t issued = waited ? atomic_load(&queue->issued) : 0;
    uint64_t before = atomic_fetch_add_explicit(&queue->finished, 2, memory_order_acq_rel);
    if (before & 1 && before / 2 + 1 >= issued) drupe_host_sched_tell(sched);
}

static void finish_one(drupe_host_task *task, over_list *over)
{
    drupe_host_queue *queue = task->queue;
    drupe_host_sched *sched = queue->sched;
    bool ordered = !queue->unordered;
    /* One that never began has no end either. */
    drupe_core_ran(task->submission);
    if (ordered && atomic_load_explicit(&task->faulted, memory_order_relaxed)) fail_issued(queue, task);
    /* Events are settled in order, because a thread that sees a later one complete takes this one for
     * complete. */
    if (task->event) settle_event(task, over);
    if (atomic_load_explicit(&task->faulted, memory_order_relaxed)) drupe_core_trouble(queue->self);
    free_parts(task);
    /* From here on the task may be reused, and later tasks may be counted before this one. */
    if (ordered) {
        drupe_host_task *behind = leave_ordered(queue, task);
        if (behind) release(behind, over);
    } else {
        give_back(queue, task);
    }
    count_finished(queue, sched);
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
