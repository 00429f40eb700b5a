/* The workers.
 *
 * A ready task stays in the list while shares of it are left, so that several workers find it there. Each
 * worker sleeps on a condition of its own: with one for all, a wake-up meant for a sub-device's worker could
 * be swallowed by another. */
#include "backends/host/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- Choosing ------------------------------------------------------------------------------------------- */

static bool may_run(const drupe_host_worker *worker, const drupe_host_task *task)
{
    return worker->index - task->first < task->count;
}

/* xorshift64*: good enough to shake the order of tasks, and repeatable from its seed. */
static uint64_t next_random(drupe_host_pool *pool)
{
    pool->random ^= pool->random >> 12;
    pool->random ^= pool->random << 25;
    pool->random ^= pool->random >> 27;
    return pool->random * 2685821657736338717u;
}

static drupe_host_task *choose(const drupe_host_worker *worker)
{
    drupe_host_pool *pool = worker->pool;
    size_t candidates = 0;
    drupe_host_task *chosen = NULL;
    for (drupe_host_task *task = pool->first; task; task = task->next) {
        if (!may_run(worker, task)) continue;
        if (!pool->shuffle) return task;
        if (next_random(pool) % ++candidates == 0) chosen = task;
    }
    return chosen;
}

static void unlist(drupe_host_pool *pool, drupe_host_task *task)
{
    drupe_host_task *before = NULL;
    for (drupe_host_task *at = pool->first; at != task; at = at->next) before = at;
    if (before)
        before->next = task->next;
    else
        pool->first = task->next;
    if (pool->last == task) pool->last = before;
    task->listed = false;
    pool->nready--;
}

/* --- Working -------------------------------------------------------------------------------------------- */

static void stamp_start(drupe_host_task *task)
{
    if (!task->event || task->running) return;
    if (task->queue->profiling) task->event->times.started = drupe_now_ns();
    atomic_store_explicit(&task->event->state, DRUPE_EVENT_RUNNING, memory_order_relaxed);
}

static void run_shares(drupe_host_worker *worker, drupe_host_task *task)
{
    size_t begin;
    worker->task = task;
    while ((begin = atomic_fetch_add_explicit(&task->cursor, task->grain, memory_order_relaxed)) <
           task->items) {
        size_t end = task->items - begin < task->grain ? task->items : begin + task->grain;
        atomic_store_explicit(&worker->begin, begin, memory_order_relaxed);
        atomic_store_explicit(&worker->end, end, memory_order_relaxed);
        atomic_store_explicit(&worker->busy, 1, memory_order_release);
        task->body(task, begin, end);
        atomic_store_explicit(&worker->busy, 0, memory_order_release);
    }
}

static void shuffle_delay(drupe_host_pool *pool)
{
    struct timespec pause = {.tv_nsec = (long)(next_random(pool) % 200000)};
    pthread_mutex_unlock(&pool->lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&pool->lock);
}

void drupe_host_pool_leave(drupe_host_worker *worker, drupe_host_task *task)
{
    if (task->listed) unlist(worker->pool, task);
    if (--task->running == 0) drupe_host_task_finish(worker->pool, task);
}

static void work_on(drupe_host_worker *worker, drupe_host_task *task)
{
    drupe_host_pool *pool = worker->pool;
    stamp_start(task);
    task->running++;
    if (pool->shuffle) shuffle_delay(pool);
    pthread_mutex_unlock(&pool->lock);
    run_shares(worker, task);
    pthread_mutex_lock(&pool->lock);
    drupe_host_pool_leave(worker, task);
}

static void *worker_main(void *user)
{
    drupe_host_worker *worker = user;
    drupe_host_pool *pool = worker->pool;
    drupe_core_adopt(pool, worker->index, &worker->busy);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        drupe_host_task *task = choose(worker);
        if (task) {
            work_on(worker, task);
            continue;
        }
        if (pool->stopping) break;
        worker->idle = true;
        drupe_cond_wait_until(&worker->wake, &pool->lock, UINT64_MAX);
        worker->idle = false;
    }
    pthread_mutex_unlock(&pool->lock);
    drupe_core_disown();
    return NULL;
}

void drupe_host_pool_ready(drupe_host_pool *pool, drupe_host_task *task)
{
    task->next = NULL;
    task->listed = true;
    if (pool->last)
        pool->last->next = task;
    else
        pool->first = task;
    pool->last = task;
    pool->nready++;
    size_t shares = (task->items + task->grain - 1) / task->grain;
    for (unsigned i = task->first; shares && i < task->first + task->count; i++) {
        drupe_host_worker *worker = &pool->workers[i];
        if (!worker->idle) continue;
        /* Not idle any more: the next task shall wake another one. */
        worker->idle = false;
        pthread_cond_signal(&worker->wake);
        shares--;
    }
}

drupe_status drupe_host_pool_start(drupe_host_pool *pool, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        drupe_host_worker *worker = &pool->workers[i];
        if (worker->started) continue;
        char name[16];
        snprintf(name, sizeof name, i < pool->nworkers ? "drupe-host-%u" : "drupe-host-fn", i);
        drupe_status status = drupe_thread_start(&worker->thread, worker_main, worker, name);
        worker->started = status == DRUPE_OK;
        /* Fewer workers than CPUs do; none would never finish. */
        if (!worker->started) return i > first ? DRUPE_OK : status;
        drupe_host_worker_bind(worker);
    }
    return DRUPE_OK;
}

/* --- Opening and closing -------------------------------------------------------------------------------- */

static void read_shuffle(drupe_host_pool *pool)
{
    const char *seed = getenv("DRUPE_HOST_SHUFFLE");
    if (!seed || !*seed) return;
    pool->shuffle = true;
    pool->random = strtoull(seed, NULL, 10) * 2 + 88172645463325253u;
}

static drupe_status open_workers(drupe_host_pool *pool)
{
    DRUPE_TRY(drupe_cond_init(&pool->done));
    pool->has_done = true;
    drupe_host_worker *workers = calloc(pool->nworkers + 1, sizeof *workers);
    if (!workers) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %u workers.", pool->nworkers);
    for (unsigned i = 0; i <= pool->nworkers; i++) {
        workers[i].pool = pool;
        workers[i].index = i;
        pthread_cond_init(&workers[i].wake, NULL);
    }
    pool->workers = workers;
    return DRUPE_OK;
}

drupe_status drupe_host_pool_open(drupe_host_pool **pool)
{
    *pool = NULL;
    drupe_host_pool *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the host device.");
    pthread_mutex_init(&fresh->lock, NULL);
    drupe_host_machine_probe(&fresh->machine);
    fresh->nworkers = fresh->machine.threads;
    drupe_host_topology_probe(&fresh->topology, fresh->nworkers);
    read_shuffle(fresh);
    drupe_status status = open_workers(fresh);
    if (status != DRUPE_OK) {
        drupe_host_pool_close(fresh);
        return status;
    }
    *pool = fresh;
    return DRUPE_OK;
}

static void stop_workers(drupe_host_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    for (unsigned i = 0; i <= pool->nworkers; i++) pthread_cond_signal(&pool->workers[i].wake);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i <= pool->nworkers; i++) {
        if (pool->workers[i].started) pthread_join(pool->workers[i].thread, NULL);
        pthread_cond_destroy(&pool->workers[i].wake);
    }
}

void drupe_host_pool_close(drupe_host_pool *pool)
{
    if (!pool) return;
    if (pool->workers) stop_workers(pool);
    free(pool->workers);
    drupe_host_topology_clear(&pool->topology);
    while (pool->spare) {
        drupe_host_task *task = pool->spare;
        pool->spare = task->next;
        free(task);
    }
    if (pool->has_done) pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
