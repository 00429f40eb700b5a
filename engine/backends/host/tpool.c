/* The threads of a thread pool: starting, searching, sleeping, being replaced.
 *
 * Who makes a task ready wakes nobody while some worker is searching, and a worker that stops searching
 * because it found something wakes the next one if there is more: so a stream of tiny tasks costs no system
 * call, and a few long ones still reach every worker. A worker says that it sleeps before it looks a last
 * time, and a task is in its list before its maker looks for sleepers: one of the two sees the other.
 *
 * While tasks are quicker than a wake-up, more workers only take cache lines and processors away from those
 * who submit. Then one worker searches and the others sleep at once, and nobody is woken as long as one is
 * awake. Should the next task take long after all, what stands behind it is found by the one that naps.
 *
 * Host functions may wait for each other. A thread pool of them that has work and has taken none of it for a
 * while is taken for stuck and gets one more worker. */
#include "backends/host/host.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEARCH_NS    20000u
#define QUICK_NS     2000u   /* a task */
#define NAP_NS       200000u /* half of what a task may be late by when the one before it is not quick */
#define SPELL        64u     /* tasks until it is looked whether they are quick */
#define STUCK_NS     10000000u
#define PAUSES       8
#define LOOK_NS      2000u  /* between two looks, and up to */
#define LOOK_MOST_NS 16000u /* when each has found several tasks */

static _Thread_local drupe_host_worker *self;

drupe_host_worker *drupe_host_worker_self(void)
{
    return self;
}

/* --- Working -------------------------------------------------------------------------------------------- */

static void stamp_start(drupe_host_task *task)
{
    drupe_core_began(task->submission);
    if (!task->event) return;
    if (drupe_host_profiling(task->queue)) {
        uint64_t before = 0;
        atomic_compare_exchange_strong(&task->event->started, &before, drupe_now_ns());
    }
    atomic_store_explicit(&task->event->stage, DRUPE_EVENT_RUNNING, memory_order_relaxed);
}

/* The stores around it let a fault find out what it hit. */
static void run_body(drupe_host_worker *worker, drupe_host_task *task, size_t begin, size_t end)
{
    atomic_store_explicit(&worker->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&worker->end, end, memory_order_relaxed);
    atomic_store_explicit(&worker->busy, 1, memory_order_release);
    task->body(task, begin, end);
    atomic_store_explicit(&worker->busy, 0, memory_order_release);
}

static void run_shares(drupe_host_worker *worker, drupe_host_task *task)
{
    size_t begin;
    while ((begin = atomic_fetch_add_explicit(&task->cursor, task->grain, memory_order_relaxed)) <
           task->items) {
        size_t end = task->items - begin < task->grain ? task->items : begin + task->grain;
        run_body(worker, task, begin, end);
    }
}

static void shuffle_delay(drupe_host_sched *sched)
{
    struct timespec pause = {.tv_nsec = (long)(drupe_host_sched_random(sched) % 200000)};
    nanosleep(&pause, NULL);
}

/* Whether the tasks of a spell were quick. One that was not says little: the system may have stopped the
 * thread meanwhile. A share of a wide task says that all are wanted for the next. */
static void judge(drupe_host_worker *worker, bool wide)
{
    drupe_host_tpool *tpool = worker->tpool;
    uint64_t now = drupe_now_ns();
    bool slow = now - worker->spell_began >= (uint64_t)QUICK_NS * worker->spell;
    bool quick = !slow && !wide && !tpool->sched->shuffle;
    bool sure = quick || wide || worker->slow;
    if (sure && quick != atomic_load_explicit(&tpool->quick, memory_order_relaxed))
        atomic_store(&tpool->quick, quick);
    worker->slow = slow;
    worker->spell_began = now;
    worker->spell = 0;
}

static void work_on(drupe_host_worker *worker, drupe_host_task *task)
{
    uint64_t taken = atomic_load_explicit(&worker->taken, memory_order_relaxed);
    atomic_store_explicit(&worker->taken, taken + 1, memory_order_relaxed);
    stamp_start(task);
    if (worker->tpool->sched->shuffle) shuffle_delay(worker->tpool->sched);
    worker->task = task;
    drupe_host_worker_prepare(worker, task);
    bool wide = task->wide;
    if (wide)
        run_shares(worker, task);
    else
        run_body(worker, task, 0, task->items);
    drupe_host_worker_leave(task);
    if (++worker->spell >= SPELL || wide) judge(worker, wide);
}

/* --- Searching and sleeping ------------------------------------------------------------------------------
 */

/* Nobody looks too often: that takes the inboxes away from those who fill them. While much comes, much may
 * come together; but not when somebody has begun to wait. */
static void choose_interval(drupe_host_worker *worker)
{
    uint64_t taken = atomic_load_explicit(&worker->taken, memory_order_relaxed);
    uint64_t found = taken - worker->taken_before;
    uint64_t searches = atomic_load_explicit(&worker->searches, memory_order_relaxed);
    atomic_store_explicit(&worker->searches, searches + 1, memory_order_relaxed);
    worker->taken_before = taken;
    if (found >= 4 && worker->interval < LOOK_MOST_NS) worker->interval *= 2;
    if (found < 2 || worker->interval < LOOK_NS) worker->interval = LOOK_NS;
}

static void pause_until(drupe_host_worker *worker, uint64_t time)
{
    _Atomic(bool) *hurried = &worker->tpool->hurried;
    do {
        for (int i = 0; i < PAUSES; i++) drupe_cpu_relax();
        if (!atomic_load_explicit(hurried, memory_order_relaxed)) continue;
        atomic_store_explicit(hurried, false, memory_order_relaxed);
        worker->interval = LOOK_NS;
        return;
    } while (drupe_now_ns() < time);
}

static drupe_host_task *search(drupe_host_worker *worker)
{
    uint64_t now = drupe_now_ns(), deadline = now + SEARCH_NS;
    choose_interval(worker);
    while (now < deadline) {
        drupe_host_task *task = drupe_host_worker_find(worker);
        if (task) return task;
        /* Those who wait for what was just done may need this processor; better now than in the middle of
         * what comes next. */
        sched_yield();
        pause_until(worker, now + worker->interval);
        now = drupe_now_ns();
    }
    return NULL;
}

/* Of a quick thread pool one is enough. */
static drupe_host_task *search_alone(drupe_host_worker *worker)
{
    drupe_host_tpool *tpool = worker->tpool;
    if (!atomic_load_explicit(&tpool->quick, memory_order_relaxed)) return search(worker);
    if (atomic_exchange(&tpool->spinning, true)) return NULL;
    drupe_host_task *task = search(worker);
    atomic_store(&tpool->spinning, false);
    return task;
}

/* How a thread pool gets on: tasks taken, and how often somebody had nothing to do. */
typedef struct progress {
    uint64_t taken, searches;
} progress;

static progress progress_of(drupe_host_tpool *tpool)
{
    progress sum = {0, 0};
    for (unsigned i = 0; i < tpool->most; i++) {
        sum.taken += atomic_load_explicit(&tpool->workers[i].taken, memory_order_relaxed);
        sum.searches += atomic_load_explicit(&tpool->workers[i].searches, memory_order_relaxed);
    }
    return sum;
}

/* Until woken, but for looks in between as long as others of a quick thread pool get on: it joins them when
 * they had something to do all the while. tpool->lock. A task that came up, or NULL. */
static drupe_host_task *doze(drupe_host_worker *worker)
{
    drupe_host_tpool *tpool = worker->tpool;
    drupe_host_task *task = NULL;
    bool naps = atomic_load(&tpool->quick) && !atomic_load(&tpool->napping);
    if (naps) atomic_store(&tpool->napping, true);
    progress now = naps ? progress_of(tpool) : (progress){0, 0};
    while (worker->sleeping && !tpool->stopping && naps && !task) {
        if (drupe_cond_wait_until(&worker->wake, &tpool->lock, drupe_deadline(NAP_NS))) continue;
        progress before = now;
        now = progress_of(tpool);
        naps = now.taken != before.taken && atomic_load(&tpool->quick);
        if (naps && now.searches != before.searches) continue;
        /* Those who relied on it have handed their tasks over before. */
        if (!naps) atomic_store(&tpool->quick, false);
        if (!naps) atomic_store(&tpool->napping, false);
        if (worker->sleeping) task = drupe_host_worker_find(worker);
    }
    if (naps) atomic_store(&tpool->napping, false);
    while (worker->sleeping && !tpool->stopping && !task) pthread_cond_wait(&worker->wake, &tpool->lock);
    return task;
}

/* Sleep until woken; the worker is searching before and afterwards. A task that came up, or NULL. */
static drupe_host_task *rest(drupe_host_worker *worker, bool *stop)
{
    drupe_host_tpool *tpool = worker->tpool;
    pthread_mutex_lock(&tpool->lock);
    worker->sleeping = true;
    atomic_fetch_add(&tpool->sleeping, 1);
    atomic_fetch_sub(&tpool->searching, 1);
    drupe_host_task *task = drupe_host_worker_find(worker);
    if (!task) task = doze(worker);
    if (task && worker->sleeping) {
        worker->sleeping = false;
        atomic_fetch_sub(&tpool->sleeping, 1);
        atomic_fetch_add(&tpool->searching, 1);
    }
    *stop = worker->sleeping;
    pthread_mutex_unlock(&tpool->lock);
    return task;
}

bool drupe_host_tpool_attends(drupe_host_tpool *tpool)
{
    /* A worker stores that it sleeps, and looks once more, before it sleeps: so it finds a task that was
     * handed over before these loads. */
    if (!atomic_load(&tpool->napping)) return false;
    return atomic_load(&tpool->sleeping) < atomic_load_explicit(&tpool->count, memory_order_relaxed);
}

/* The last one that was searching has found something; there may be more. */
static void pass_on(drupe_host_tpool *tpool)
{
    if (atomic_fetch_sub(&tpool->searching, 1) != 1 || !drupe_host_tpool_backlog(tpool)) return;
    if (drupe_host_tpool_attends(tpool)) return;
    bool woken = atomic_load(&tpool->sleeping) && drupe_host_tpool_wake(tpool, 0, tpool->most);
    if (!woken && tpool->grows) drupe_host_tpool_alarm(tpool);
}

static void work(drupe_host_worker *worker, bool searching)
{
    drupe_host_tpool *tpool = worker->tpool;
    for (bool stop = false; !stop;) {
        drupe_host_task *task = drupe_host_worker_find(worker);
        if (!task && !searching) {
            if (worker->spell) judge(worker, false);
            atomic_fetch_add(&tpool->searching, 1);
            searching = true;
        }
        if (!task) task = search_alone(worker);
        if (!task) task = rest(worker, &stop);
        if (!task) continue;
        if (searching) {
            pass_on(tpool);
            worker->spell_began = drupe_now_ns();
        }
        searching = false;
        work_on(worker, task);
    }
}

static void *worker_main(void *user)
{
    drupe_host_worker *worker = self = user;
    drupe_host_worker_receive(worker);
    drupe_core_register_thread(worker->tpool, worker->index, &worker->busy, &worker->recovery);
    /* A fault comes back here as often as one happens; nobody who works searches. */
    if (setjmp(worker->landing)) {
        drupe_host_worker_recover(worker);
        work(worker, false);
    } else {
        work(worker, true);
    }
    drupe_core_disown();
    return NULL;
}

/* --- Starting and waking ---------------------------------------------------------------------------------
 */

/* tpool->lock. Counts as searching from now on. */
static drupe_status start_thread(drupe_host_worker *worker)
{
    char name[16];
    snprintf(name, sizeof name, "%s-%u", worker->tpool->name, worker->index % 1000);
    atomic_fetch_add(&worker->tpool->searching, 1);
    drupe_status status = drupe_thread_start(&worker->thread, worker_main, worker, name);
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

/* Whoever is not in a function will see to what is ready. */
static bool all_in_functions(drupe_host_tpool *tpool)
{
    for (unsigned i = 0; i < atomic_load(&tpool->count); i++) {
        if (!atomic_load_explicit(&tpool->workers[i].busy, memory_order_acquire)) return false;
    }
    return true;
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
    uint64_t taken = progress_of(tpool).taken;
    (void)drupe_service_sleep(&tpool->watcher, drupe_deadline(STUCK_NS));
    atomic_store(&tpool->alarmed, false);
    if (!drupe_host_tpool_backlog(tpool)) return 0;
    atomic_store(&tpool->alarmed, true);
    if (taken == progress_of(tpool).taken) enlarge(tpool);
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

drupe_status drupe_host_tpool_open(drupe_host_tpool *tpool, drupe_host_sched *sched, const char *name,
                                   unsigned count, unsigned most)
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
