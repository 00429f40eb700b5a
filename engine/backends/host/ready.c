/* Ready tasks: into whose inbox they go, and where a worker looks for them.
 *
 * An inbox is a stack that anybody may push to and that is only ever taken as a whole, so it needs no lock;
 * its content is turned round into the list. A wide task, which several workers share, stays in the list
 * until its last share has been taken.
 *
 * To wake a thread takes whoever does it 2 to 8 us, in which it could copy up to half a megabyte, and the
 * woken one is there no sooner. So copies and fills have no more threads woken than they are worth; one of
 * these is the thread that waits, which takes part. Should none wait, he who came calls the next. */
#include "backends/host/host.h"

#define CHAIN_MOST 64u /* then the list has its turn */

static bool may_run(const drupe_host_worker *worker, const drupe_host_task *task)
{
    return worker->index - task->first < task->count;
}

/* --- Lists; worker->lock ---------------------------------------------------------------------------------
 */

static void list_insert(drupe_host_worker *worker, drupe_host_task *task, drupe_host_task *before)
{
    task->next = before;
    task->prev = before ? before->prev : worker->last;
    if (task->prev)
        task->prev->next = task;
    else
        worker->first = task;
    if (before)
        before->prev = task;
    else
        worker->last = task;
    if (task->wide) task->home = worker;
    task->listed = true;
    atomic_fetch_add(&worker->listed, 1); /* stored before its maker loads `sleeping` */
}

static void list_remove(drupe_host_worker *worker, drupe_host_task *task)
{
    if (task->prev)
        task->prev->next = task->next;
    else
        worker->first = task->next;
    if (task->next)
        task->next->prev = task->prev;
    else
        worker->last = task->prev;
    task->listed = false;
    atomic_fetch_sub_explicit(&worker->listed, 1, memory_order_relaxed);
}

static void list_add(drupe_host_worker *worker, drupe_host_task *task)
{
    list_insert(worker, task, task->queue->urgent ? worker->first : NULL);
}

static void empty_inbox(drupe_host_worker *worker)
{
    if (!atomic_load_explicit(&worker->inbox, memory_order_relaxed)) return;
    atomic_fetch_add(&worker->listed,
                     1); /* there is something all the while: see drupe_host_worker_listed() */
    drupe_host_task *newest = atomic_exchange(&worker->inbox, NULL), *oldest = NULL;
    while (newest) {
        drupe_host_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        drupe_host_task *next = oldest->next;
        list_add(worker, oldest);
        oldest = next;
    }
    atomic_fetch_sub_explicit(&worker->listed, 1, memory_order_relaxed);
}

static bool has_shares(drupe_host_task *task)
{
    return !task->wide || atomic_load_explicit(&task->cursor, memory_order_relaxed) < task->items;
}

static drupe_host_task *choose(const drupe_host_worker *worker, const drupe_host_worker *owner)
{
    drupe_host_sched *sched = worker->tpool->sched;
    size_t candidates = 0;
    drupe_host_task *chosen = NULL;
    for (drupe_host_task *task = owner->first; task; task = task->next) {
        if (!may_run(worker, task) || !has_shares(task)) continue;
        if (!sched->shuffle) return task;
        if (drupe_host_sched_random(sched) % ++candidates == 0) chosen = task;
    }
    return chosen;
}

static drupe_host_task *take(const drupe_host_worker *worker, drupe_host_worker *owner)
{
    pthread_mutex_lock(&owner->lock);
    empty_inbox(owner);
    drupe_host_task *task = choose(worker, owner);
    if (task && task->wide)
        task->running++;
    else if (task)
        list_remove(owner, task);
    pthread_mutex_unlock(&owner->lock);
    return task;
}

bool drupe_host_worker_leave(drupe_host_task *task)
{
    bool last = true;
    if (task->wide) {
        drupe_host_worker *home = task->home;
        pthread_mutex_lock(&home->lock);
        const bool left = has_shares(task); /* by one who gave it up before */
        if (task->listed && !left) list_remove(home, task);
        last = --task->running == 0 && !left;
        pthread_mutex_unlock(&home->lock);
    }
    return last;
}

drupe_host_task *drupe_host_worker_find(drupe_host_worker *worker)
{
    drupe_host_task *task = worker->next;
    worker->next = NULL;
    if (task) return task;
    worker->chain = 0;
    drupe_host_tpool *tpool = worker->tpool;
    unsigned count = atomic_load(&tpool->count);
    for (unsigned i = 0; i < count && !task; i++) {
        unsigned at = worker->index + i < count ? worker->index + i : worker->index + i - count;
        drupe_host_worker *owner = &tpool->workers[at];
        if (drupe_host_worker_listed(owner)) task = take(worker, owner);
    }
    return task;
}

/* --- Handing over ----------------------------------------------------------------------------------------
 */

/* Whose inbox: that of one worker for all tasks of a queue, which then find their data in its caches. */
static drupe_host_worker *home_of(const drupe_host_queue *queue, drupe_host_tpool *tpool, unsigned first,
                                  unsigned most)
{
    unsigned count = atomic_load_explicit(&tpool->count, memory_order_relaxed);
    if (count > most) count = most;
    unsigned at = tpool->sched->shuffle ? 0 : (unsigned)((uint64_t)queue->home * count >> 32);
    return &tpool->workers[first + at];
}

/* How many threads should be at what is left of it; of a wide one. */
static size_t wanted(drupe_host_task *task)
{
    size_t taken = atomic_load_explicit(&task->cursor, memory_order_relaxed);
    size_t left = taken < task->items ? task->items - taken : 0;
    size_t most = left / task->worth + (left % task->worth != 0);
    return most < task->count ? most : task->count;
}

bool drupe_host_task_wants(drupe_host_task *task)
{
    pthread_mutex_lock(&task->home->lock);
    bool wants = task->running < wanted(task);
    pthread_mutex_unlock(&task->home->lock);
    return wants;
}

/* A copy or fill is seen to by who is at it. */
static bool list_wanting(drupe_host_worker *worker)
{
    bool wanting = false;
    if (atomic_load(&worker->inbox)) return true;
    pthread_mutex_lock(&worker->lock);
    for (drupe_host_task *task = worker->first; task && !wanting; task = task->next) {
        bool attended = task->wide && task->running && task->kind == DRUPE_HOST_MOVE;
        wanting = !attended && (!task->wide || task->running < wanted(task));
    }
    pthread_mutex_unlock(&worker->lock);
    return wanting;
}

bool drupe_host_tpool_wanting(drupe_host_tpool *tpool)
{
    for (unsigned i = 0, count = atomic_load(&tpool->count); i < count; i++) {
        drupe_host_worker *worker = &tpool->workers[i];
        if (drupe_host_worker_listed(worker) && list_wanting(worker)) return true;
    }
    return false;
}

/* How many to wake for it: who waits for a copy or fill is one of those who are wanted. */
static size_t to_wake(drupe_host_task *task)
{
    size_t threads = wanted(task);
    return task->kind == DRUPE_HOST_MOVE && task->sound && threads > 1 ? threads - 1 : threads;
}

static void wake_for(drupe_host_tpool *tpool, unsigned first, unsigned count, size_t threads)
{
    unsigned all = atomic_load_explicit(&tpool->count, memory_order_relaxed);
    /* Whoever is searching finds it, unless only some may run it. */
    if (count >= all && threads == 1 && (drupe_host_tpool_attends(tpool) || atomic_load(&tpool->searching)))
        return;
    while (threads && atomic_load(&tpool->sleeping) && drupe_host_tpool_wake(tpool, first, count)) threads--;
    if (tpool->grows && threads) drupe_host_tpool_alarm(tpool);
}

void drupe_host_task_ready(drupe_host_task *task)
{
    drupe_host_tpool *tpool = task->tpool;
    drupe_host_worker *self = drupe_host_worker_self();
    bool mine = self && self->tpool == tpool && may_run(self, task) && !tpool->sched->shuffle;
    if (mine && !task->wide && !self->next && self->chain < CHAIN_MOST) {
        self->chain++;
        self->next = task;
        return;
    }
    /* Once it can be seen, another worker may finish it. */
    unsigned first = task->first, count = task->count;
    size_t threads = task->wide ? to_wake(task) : 1;
    drupe_host_worker *owner = mine ? self : home_of(task->queue, tpool, first, count);
    if (mine) {
        pthread_mutex_lock(&owner->lock);
        list_add(owner, task);
        pthread_mutex_unlock(&owner->lock);
    } else {
        drupe_host_task *seen = atomic_load_explicit(&owner->inbox, memory_order_relaxed);
        do task->next = seen;
        while (!atomic_compare_exchange_weak(&owner->inbox, &seen, task));
    }
    wake_for(tpool, first, count, threads);
}

/* --- Help from who waits ---------------------------------------------------------------------------------
 */

drupe_host_task *drupe_host_task_find_move(drupe_host_queue *queue)
{
    drupe_host_worker *home =
        home_of(queue, &queue->sched->compute, queue->device->first, queue->device->count);
    if (!queue->inlines || !drupe_host_worker_listed(home)) return NULL;
    pthread_mutex_lock(&home->lock);
    empty_inbox(home);
    drupe_host_task *task = home->first;
    while (task && !(task->queue == queue && task->sound && has_shares(task))) task = task->next;
    if (task && task->wide)
        task->running++;
    else if (task)
        list_remove(home, task);
    pthread_mutex_unlock(&home->lock);
    return task;
}
