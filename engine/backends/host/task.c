/* Tasks: their memory, what they wait for, how they end. */
#include "backends/host/host.h"
#include <stdlib.h>
#include <string.h>

/* --- Memory --------------------------------------------------------------------------------------------- */

drupe_status drupe_host_task_new(const drupe_submit *s, drupe_host_task **task)
{
    drupe_host_queue *queue = drupe_native(s->queue);
    drupe_host_pool *pool = queue->pool;
    pthread_mutex_lock(&pool->lock);
    drupe_host_task *fresh = pool->spare;
    if (fresh) pool->spare = fresh->next;
    pthread_mutex_unlock(&pool->lock);
    if (!fresh) fresh = malloc(sizeof *fresh);
    *task = fresh;
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a task of the host device.");
    /* All but the values, which are only read where they were written. */
    memset(fresh, 0, offsetof(drupe_host_task, values));
    fresh->queue = queue;
    fresh->event = s->event ? drupe_native(s->event) : NULL;
    fresh->items = fresh->grain = 1;
    fresh->first = queue->device->first;
    fresh->count = queue->device->count;
    fresh->args = fresh->args_inline;
    fresh->links = fresh->links_inline;
    return DRUPE_OK;
}

static void task_recycle(drupe_host_pool *pool, drupe_host_task *task)
{
    if (task->args != task->args_inline) free(task->args);
    if (task->links != task->links_inline) free(task->links);
    free(task->error);
    task->next = pool->spare;
    pool->spare = task;
}

void drupe_host_task_free(drupe_host_task *task)
{
    drupe_host_pool *pool = task->queue->pool;
    pthread_mutex_lock(&pool->lock);
    task_recycle(pool, task);
    pthread_mutex_unlock(&pool->lock);
}

drupe_status drupe_host_task_room(drupe_host_task *task, size_t count, size_t bytes, unsigned char **values)
{
    *values = task->values;
    if (count <= DRUPE_HOST_ARGS && bytes <= DRUPE_HOST_VALUES) return DRUPE_OK;
    size_t table = (count * sizeof(void *) + 15) & ~(size_t)15;
    const void **args = malloc(table + bytes);
    if (!args) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu bytes of arguments.", bytes);
    task->args = args;
    *values = (unsigned char *)args + table;
    return DRUPE_OK;
}

/* --- Queueing ------------------------------------------------------------------------------------------- */

static void add_waits(const drupe_submit *s, drupe_host_task *task)
{
    for (size_t i = 0; i < s->nwaits; i++) {
        drupe_host_event *wait = drupe_native(s->waits[i]);
        int state = atomic_load(&wait->state);
        if (state == DRUPE_EVENT_FAILED) task->failed = true;
        if (state == DRUPE_EVENT_COMPLETE || state == DRUPE_EVENT_FAILED) continue;
        drupe_host_link *link = &task->links[i];
        link->task = task;
        link->next = wait->dependents;
        wait->dependents = link;
        task->pending++;
    }
}

static void submitted(drupe_host_pool *pool, drupe_host_task *task)
{
    if (task->event && task->event->state == DRUPE_EVENT_QUEUED) {
        if (task->queue->profiling) task->event->times.submitted = drupe_now_ns();
        atomic_store(&task->event->state, DRUPE_EVENT_SUBMITTED);
    }
    if (task->failed || task->items == 0)
        drupe_host_task_finish(pool, task);
    else
        drupe_host_pool_ready(pool, task);
}

static void queue_locked(const drupe_submit *s, drupe_host_task *task)
{
    drupe_host_queue *queue = task->queue;
    add_waits(s, task);
    if (queue->tail) {
        queue->tail->behind = task;
        task->pending++;
    }
    queue->tail = task;
    atomic_fetch_add(&queue->pending, 1);
    if (task->pending == 0) submitted(queue->pool, task);
}

drupe_status drupe_host_task_queue(const drupe_submit *s, drupe_host_task *task)
{
    drupe_host_pool *pool = task->queue->pool;
    drupe_status status = DRUPE_OK;
    if (s->nwaits > DRUPE_HOST_LINKS) {
        task->links = calloc(s->nwaits, sizeof *task->links);
        if (!task->links) status = drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu waits.", s->nwaits);
    }
    pthread_mutex_lock(&pool->lock);
    if (status == DRUPE_OK) status = drupe_host_pool_start(pool, task->first, task->count);
    if (task->event && status == DRUPE_OK) {
        task->event->pool = pool;
        task->event->self = s->event;
        if (task->queue->profiling) task->event->times.queued = drupe_now_ns();
    }
    if (status == DRUPE_OK)
        queue_locked(s, task);
    else
        task_recycle(pool, task);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* --- Finishing ------------------------------------------------------------------------------------------ */

/* Finishing a task that must not run finishes those behind it as well; a list instead of recursion keeps a
 * long chain off the stack. */
static void release_one(drupe_host_pool *pool, drupe_host_task *task, drupe_host_task **over)
{
    if (--task->pending) return;
    if (!task->failed && task->items) {
        submitted(pool, task);
        return;
    }
    task->next = *over;
    *over = task;
}

static void fail_event(drupe_host_task *task)
{
    drupe_host_event *event = task->event;
    event->error = task->error;
    task->error = NULL;
    if (event->error) return;
    event->error = calloc(1, sizeof *event->error);
    if (!event->error) return;
    event->error->status = DRUPE_E_DEPENDENCY;
    strcpy(event->error->backend, "host");
    strcpy(event->error->text, "Did not run, because something that it waited for failed.");
}

/* What never ran on a worker begins when it ends. */
static void stamp_end(drupe_times *times)
{
    times->ended = drupe_now_ns();
    if (!times->submitted) times->submitted = times->ended;
    if (!times->started) times->started = times->ended;
}

static void settle_event(drupe_host_pool *pool, drupe_host_task *task, drupe_host_task **over)
{
    drupe_host_event *event = task->event;
    if (task->queue->profiling) stamp_end(&event->times);
    for (drupe_host_link *link = event->dependents; link; link = link->next) {
        if (task->failed) link->task->failed = true;
        release_one(pool, link->task, over);
    }
    if (task->failed) fail_event(task);
    if (event->waited) pthread_cond_broadcast(&pool->done);
    drupe_event *notify = event->notify ? event->self : NULL;
    atomic_store_explicit(&event->state, task->failed ? DRUPE_EVENT_FAILED : DRUPE_EVENT_COMPLETE,
                          memory_order_release);
    if (notify) drupe_core_notify(notify);
}

static void finish_one(drupe_host_pool *pool, drupe_host_task *task, drupe_host_task **over)
{
    drupe_host_queue *queue = task->queue;
    if (task->behind && task->faulted) drupe_host_fault_spread(task, task->behind);
    if (task->behind)
        release_one(pool, task->behind, over);
    else
        queue->tail = NULL;
    if (task->event) settle_event(pool, task, over);
    bool dry = atomic_fetch_sub(&queue->pending, 1) == 1;
    if (dry && queue->waited) pthread_cond_broadcast(&pool->done);
    task_recycle(pool, task);
}

void drupe_host_task_finish(drupe_host_pool *pool, drupe_host_task *task)
{
    drupe_host_task *over = task;
    task->next = NULL;
    while (over) {
        drupe_host_task *one = over;
        over = one->next;
        finish_one(pool, one, &over);
    }
}
