/* What a worker's thread does: it searches for work, does it, and sleeps when there is none.
 *
 * Who makes a task ready wakes nobody while some worker is searching, and a worker that stops searching
 * because it found something wakes the next one if there is more: so a stream of tiny tasks costs no system
 * call, and a few long ones still reach every worker. A worker says that it sleeps before it looks a last
 * time, and a task is in its list before its maker looks for sleepers: one of the two sees the other.
 *
 * While tasks are quicker than a wake-up, more workers only take cache lines and processors away from those
 * who submit. Then one worker searches and the others sleep at once, and nobody is woken as long as one is
 * awake. Should the next task take long after all, what stands behind it is found by the one that naps. A
 * million tiny tasks on eight queues take 1.6 us of processor time each with that on 16 processors, and 4.5
 * without (tests/bench/engine_tasks.c); on two processors there is no difference. */
#include "backends/host/host.h"
#include <sched.h>
#include <time.h>

#define SEARCH_NS 20000u  /* before it sleeps: being woken costs as much */
#define QUICK_NS  2000u   /* a task */
#define NAP_NS    200000u /* half of what a task may be late by when the one before it is not quick */
#define SPELL     64u     /* tasks until it is looked whether they are quick */
#define LOOK_NS   2000u   /* between two looks, which take the inboxes away from those who fill them */

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

static void call_one(drupe_host_task *task)
{
    drupe_host_tpool *tpool = task->tpool;
    if (atomic_load_explicit(&tpool->sleeping, memory_order_relaxed))
        (void)drupe_host_tpool_wake(tpool, task->first, task->count);
}

static void run_shares(drupe_host_worker *worker, drupe_host_task *task)
{
    size_t begin;
    bool first = task->kind == DRUPE_HOST_MOVE;
    while ((begin = atomic_fetch_add_explicit(&task->cursor, task->grain, memory_order_relaxed)) <
           task->items) {
        size_t end = task->items - begin < task->grain ? task->items : begin + task->grain;
        run_body(worker, task, begin, end);
        /* Whoever waits for it is there by now. */
        if (first && drupe_host_task_wants(task)) call_one(task);
        first = false;
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
    const bool wide = task->wide;
    if (wide)
        run_shares(worker, task);
    else
        run_body(worker, task, 0, task->items);
    if (drupe_host_worker_leave(task)) drupe_host_task_finish(task);
    if (++worker->spell >= SPELL || wide) judge(worker, wide);
}

void drupe_host_task_help(drupe_host_task *task, uint64_t deadline)
{
    size_t begin = 0;
    stamp_start(task);
    if (!task->wide) task->body(task, 0, task->items);
    while (task->wide && drupe_now_ns() < deadline &&
           (begin = atomic_fetch_add_explicit(&task->cursor, task->grain, memory_order_relaxed)) <
               task->items)
        task->body(task, begin, task->items - begin < task->grain ? task->items : begin + task->grain);
    /* It gives up: the worker that was woken may be busy with something else. */
    if (task->wide && atomic_load_explicit(&task->cursor, memory_order_relaxed) < task->items) call_one(task);
    if (drupe_host_worker_leave(task)) drupe_host_task_finish(task);
}

/* --- Searching and sleeping ------------------------------------------------------------------------------
 */

static drupe_host_task *search(drupe_host_worker *worker)
{
    uint64_t now = drupe_now_ns(), deadline = now + SEARCH_NS;
    uint64_t searches = atomic_load_explicit(&worker->searches, memory_order_relaxed);
    atomic_store_explicit(&worker->searches, searches + 1, memory_order_relaxed);
    while (now < deadline) {
        drupe_host_task *task = drupe_host_worker_find(worker);
        if (task) return task;
        /* Those who wait for what was just done may need this processor; better now than in the middle of
         * what comes next. */
        sched_yield();
        for (uint64_t until = now + LOOK_NS; (now = drupe_now_ns()) < until;) drupe_cpu_relax();
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

/* The last one that was searching has found something; there may be more. */
static void pass_on(drupe_host_tpool *tpool)
{
    if (atomic_fetch_sub(&tpool->searching, 1) != 1 || !drupe_host_tpool_backlog(tpool)) return;
    if (drupe_host_tpool_attends(tpool) || !drupe_host_tpool_wanting(tpool)) return;
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

void drupe_host_worker_run(drupe_host_worker *worker)
{
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
}
