/* The threads of a thread pool: started, woken, replaced.
 *
 * Host functions may wait for each other. A thread pool of them that has work and has taken none of it for a
 * while is taken for stuck and gets one more worker. */
#include "backends/host/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STUCK_NS 10000000u

static _Thread_local drupe_host_worker *self;

drupe_host_worker *drupe_host_worker_self(void)
{
    return self;
}

/* --- Starting and waking ---------------------------------------------------------------------------------
 */

static void *thread_main(void *user)
{
    drupe_host_worker *worker = self = user;
    worker->tpool->run(worker);
    return NULL;
}

/* tpool->lock. Counts as searching from now on. */
static drupe_status start_thread(drupe_host_worker *worker)
{
    char name[16];
    snprintf(name, sizeof name, "%s-%u", worker->tpool->name, worker->index % 1000);
    atomic_fetch_add(&worker->tpool->searching, 1);
    drupe_status status = drupe_thread_start(&worker->thread, thread_main, worker, name);
    worker->started = status == DRUPE_OK;
    if (!worker->started) atomic_fetch_sub(&worker->tpool->searching, 1);
    drupe_host_worker_bind(worker);
    return status;
}

/* tpool->lock. */
static bool rouse(drupe_host_tpool *tpool, drupe_host_worker *worker)
{
    if (!worker->started) {
        if (start_thread(worker) != DRUPE_OK) return false;
        atomic_fetch_sub(&tpool->sleeping, 1);
        return true;
    }
    if (!worker->sleeping) return false;
    worker->sleeping = false;
    atomic_fetch_sub(&tpool->sleeping, 1);
    atomic_fetch_add(&tpool->searching, 1);
    pthread_cond_signal(&worker->wake);
    return true;
}

bool drupe_host_tpool_wake(drupe_host_tpool *tpool, unsigned first, unsigned count)
{
    bool woken = false;
    pthread_mutex_lock(&tpool->lock);
    unsigned all = atomic_load(&tpool->count);
    if (count > all - first) count = all - first;
    /* Threads that there are come before new ones. */
    for (int fresh = 0; fresh < 2 && !woken; fresh++) {
        for (unsigned i = first; i < first + count && !woken; i++) {
            if (tpool->workers[i].started != fresh) woken = rouse(tpool, &tpool->workers[i]);
        }
    }
    pthread_mutex_unlock(&tpool->lock);
    return woken;
}

bool drupe_host_tpool_attends(drupe_host_tpool *tpool)
{
    /* A worker stores that it sleeps, and looks once more, before it sleeps: so it finds a task that was
     * handed over before these loads. */
    if (!atomic_load(&tpool->napping)) return false;
    return atomic_load(&tpool->sleeping) < atomic_load_explicit(&tpool->count, memory_order_relaxed);
}

bool drupe_host_tpool_asleep(drupe_host_tpool *tpool)
{
    return atomic_load_explicit(&tpool->sleeping, memory_order_relaxed) &&
           !atomic_load_explicit(&tpool->searching, memory_order_relaxed);
}

drupe_status drupe_host_tpool_start(drupe_host_tpool *tpool, unsigned first, unsigned count)
{
    drupe_status status = DRUPE_OK;
    bool started = false;
    pthread_mutex_lock(&tpool->lock);
    for (unsigned i = first; i < first + count; i++) started = started || tpool->workers[i].started;
    if (!started) status = start_thread(&tpool->workers[first]);
    if (!started && status == DRUPE_OK) atomic_fetch_sub(&tpool->sleeping, 1);
    pthread_mutex_unlock(&tpool->lock);
    return status;
}

void drupe_host_worker_replace(drupe_host_worker *worker, bool ended)
{
    drupe_host_tpool *tpool = worker->tpool;
    pthread_mutex_lock(&tpool->lock);
    if (ended)
        pthread_join(worker->thread, NULL);
    else
        pthread_detach(worker->thread);
    atomic_store(&worker->busy, 0);
    /* Without a thread it counts as one that can still be started. */
    if (start_thread(worker) != DRUPE_OK) atomic_fetch_add(&tpool->sleeping, 1);
    pthread_mutex_unlock(&tpool->lock);
}

/* --- Getting unstuck -------------------------------------------------------------------------------------
 */

static uint64_t tasks_taken(drupe_host_tpool *tpool)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < tpool->most; i++)
        sum += atomic_load_explicit(&tpool->workers[i].taken, memory_order_relaxed);
    return sum;
}

/* Whoever is not in a function will see to what is ready. */
static bool all_in_functions(drupe_host_tpool *tpool)
{
    for (unsigned i = 0; i < atomic_load(&tpool->count); i++) {
        if (!atomic_load_explicit(&tpool->workers[i].busy, memory_order_acquire)) return false;
    }
    return true;
}

bool drupe_host_tpool_backlog(drupe_host_tpool *tpool)
{
    for (unsigned i = 0, count = atomic_load(&tpool->count); i < count; i++) {
        if (drupe_host_worker_listed(&tpool->workers[i])) return true;
    }
    return false;
}

/* tpool->lock. */
static void enlarge(drupe_host_tpool *tpool)
{
    unsigned count = atomic_load(&tpool->count);
    if (count < tpool->most && all_in_functions(tpool) && start_thread(&tpool->workers[count]) == DRUPE_OK)
        atomic_store(&tpool->count, count + 1);
}

static uint64_t watch(void *user)
{
    drupe_host_tpool *tpool = user;
    if (!atomic_load(&tpool->alarmed)) return UINT64_MAX;
    uint64_t taken = tasks_taken(tpool);
    (void)drupe_service_sleep(&tpool->watcher, drupe_deadline(STUCK_NS));
    atomic_store(&tpool->alarmed, false);
    if (!drupe_host_tpool_backlog(tpool)) return 0;
    atomic_store(&tpool->alarmed, true);
    if (taken == tasks_taken(tpool)) enlarge(tpool);
    return 0;
}

void drupe_host_tpool_alarm(drupe_host_tpool *tpool)
{
    if (atomic_load(&tpool->alarmed)) return;
    pthread_mutex_lock(&tpool->lock);
    atomic_store(&tpool->alarmed, true);
    if (drupe_service_start(&tpool->watcher) == DRUPE_OK) drupe_service_wake(&tpool->watcher);
    pthread_mutex_unlock(&tpool->lock);
}

/* --- Opening and closing ---------------------------------------------------------------------------------
 */

static void close_conditions(drupe_host_tpool *tpool, unsigned count)
{
    drupe_service_clear(&tpool->watcher);
    for (unsigned i = 0; i < count; i++) pthread_cond_destroy(&tpool->workers[i].wake);
}

static drupe_status open_conditions(drupe_host_tpool *tpool, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        drupe_status status = drupe_cond_init(&tpool->workers[i].wake);
        if (status == DRUPE_OK) continue;
        close_conditions(tpool, i);
        return status;
    }
    return DRUPE_OK;
}

drupe_status drupe_host_tpool_open(drupe_host_tpool *tpool, drupe_host_sched *sched,
                                   void (*run)(drupe_host_worker *worker), const char *name, unsigned count,
                                   unsigned most)
{
    tpool->workers = aligned_alloc(64, most * sizeof *tpool->workers);
    if (!tpool->workers) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %u workers.", most);
    memset(tpool->workers, 0, most * sizeof *tpool->workers);
    drupe_status status = open_conditions(tpool, most);
    if (status != DRUPE_OK) {
        free(tpool->workers);
        return status;
    }
    tpool->sched = sched;
    tpool->run = run;
    tpool->name = name;
    tpool->most = most;
    tpool->grows = most > count;
    atomic_init(&tpool->count, count);
    atomic_init(&tpool->sleeping, count);
    pthread_mutex_init(&tpool->lock, NULL);
    tpool->watcher =
        (drupe_service){.name = "drupe-watcher", .lock = &tpool->lock, .step = watch, .user = tpool};
    for (unsigned i = 0; i < most; i++) {
        drupe_host_worker *worker = &tpool->workers[i];
        worker->tpool = tpool;
        worker->index = i;
        pthread_mutex_init(&worker->lock, NULL);
    }
    tpool->opened = true;
    return DRUPE_OK;
}

void drupe_host_tpool_close(drupe_host_tpool *tpool)
{
    if (!tpool->opened) return;
    pthread_mutex_lock(&tpool->lock);
    tpool->stopping = true;
    for (unsigned i = 0; i < tpool->most; i++) pthread_cond_signal(&tpool->workers[i].wake);
    drupe_service_stop(&tpool->watcher);
    pthread_mutex_unlock(&tpool->lock);
    /* They look into each other's lists until the last of them has ended. */
    for (unsigned i = 0; i < tpool->most; i++) {
        if (tpool->workers[i].started) pthread_join(tpool->workers[i].thread, NULL);
    }
    for (unsigned i = 0; i < tpool->most; i++) pthread_mutex_destroy(&tpool->workers[i].lock);
    close_conditions(tpool, tpool->most);
    pthread_mutex_destroy(&tpool->lock);
    free(tpool->workers);
}
