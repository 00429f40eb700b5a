/* Threads for host functions of backends that have none.
 *
 * Host functions may wait for each other by means that the engine does not see, so a job never waits for a
 * busy worker as long as another can be started. Workers stay until the library closes: a sleeping thread
 * costs little, and starting one for every job would cost more than most jobs. One that faults in its job is
 * parked by fault_isolation.c, and another thread takes its number. */
#include "core/queue/launch.h"

#define MOST    64u
#define CALM_NS UINT64_C(200000000)

struct worker {
    pthread_t thread;
    bool started;
    _Atomic(int) busy;
    drupe_job *job;
};

/* All but what a worker writes in its own record changes under the lock. */
static struct pool {
    pthread_mutex_t lock;
    pthread_cond_t some; /* there are jobs, or an end */
    pthread_cond_t calm; /* all are idle, and somebody wants to know */
    bool stopping, closing;
    struct worker workers[MOST];
    unsigned count, idle;
    unsigned gone; /* of these: they faulted, and no other thread could be had in their place */
    size_t queued;
    STAILQ_HEAD(, drupe_job) jobs;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .some = PTHREAD_COND_INITIALIZER,
          .calm = PTHREAD_COND_INITIALIZER,
          .jobs = STAILQ_HEAD_INITIALIZER(pool.jobs)};

static bool is_calm(void)
{
    return STAILQ_EMPTY(&pool.jobs) && pool.idle + pool.gone == pool.count;
}

static drupe_job *next_job(void)
{
    pool.idle++;
    if (pool.closing && is_calm()) pthread_cond_broadcast(&pool.calm);
    while (STAILQ_EMPTY(&pool.jobs) && !pool.stopping)
        drupe_cond_wait_until(&pool.some, &pool.lock, UINT64_MAX);
    pool.idle--;
    drupe_job *job = STAILQ_FIRST(&pool.jobs);
    if (!job) return NULL;
    STAILQ_REMOVE_HEAD(&pool.jobs, next);
    pool.queued--;
    return job;
}

static void *worker_main(void *user)
{
    struct worker *self = user;
    drupe_core_register_thread(pool.workers, (uint32_t)(self - pool.workers), &self->busy, NULL);
    pthread_mutex_lock(&pool.lock);
    for (drupe_job *job = next_job(); job; job = next_job()) {
        pthread_mutex_unlock(&pool.lock);
        self->job = job;
        job->busy = &self->busy;
        job->run(job);
        pthread_mutex_lock(&pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    drupe_core_disown();
    return NULL;
}

static drupe_status start_at(struct worker *worker)
{
    drupe_status status = drupe_thread_start(&worker->thread, worker_main, worker, "drupe-worker");
    worker->started = status == DRUPE_OK;
    return status;
}

/* In the place of one that is gone, if there is one. */
static drupe_status start_one(void)
{
    unsigned at = 0;
    while (at < pool.count && pool.workers[at].started) at++;
    DRUPE_TRY(start_at(&pool.workers[at]));
    if (at < pool.count)
        pool.gone--;
    else
        pool.count++;
    return DRUPE_OK;
}

bool drupe_worker_fault(const drupe_fault *fault)
{
    if (fault->owner != pool.workers) return false;
    struct worker *worker = &pool.workers[fault->index];
    char what[512];
    drupe_status status = drupe_core_fault_text(fault, what, sizeof what);
    drupe_error_set_native(status, NULL, fault->signal, NULL,
                           "%she %s faulted: %s. The thread that ran it is given up and another one started; "
                           "the queue works on. "
                           "Check the pointers that it was given.",
                           status == DRUPE_E_CHECK ? "Out of bounds: t" : "T", worker->job->what, what);
    worker->job->fail(worker->job);
    pthread_mutex_lock(&pool.lock);
    pthread_detach(worker->thread);
    atomic_store(&worker->busy, 0);
    worker->started = false;
    pool.gone++;
    (void)start_one(); /* without another one those that are left serve */
    pthread_mutex_unlock(&pool.lock);
    return true;
}

drupe_status drupe_worker_start(void)
{
    pthread_mutex_lock(&pool.lock);
    drupe_status status = pool.count > pool.gone ? DRUPE_OK : start_one();
    pthread_mutex_unlock(&pool.lock);
    return status;
}

void drupe_worker_post(drupe_job *job, void (*run)(drupe_job *), void (*fail)(drupe_job *), const char *what)
{
    *job = (drupe_job){.run = run, .fail = fail, .what = what};
    pthread_mutex_lock(&pool.lock);
    STAILQ_INSERT_TAIL(&pool.jobs, job, next);
    pool.queued++;
    /* A thread that has just been started counts as busy until it has looked around: then there is one too
     * many, which does no harm. Where no more can be had, the job waits for one of those that there are. */
    if (pool.queued > pool.idle && pool.count - pool.gone < MOST) (void)start_one();
    pthread_cond_signal(&pool.some);
    pthread_mutex_unlock(&pool.lock);
}

/* Somebody who waits for it does it; the thread that was woken finds nothing. */
bool drupe_worker_take(drupe_job *job)
{
    static _Atomic(int) nobodys;
    drupe_job *at;
    pthread_mutex_lock(&pool.lock);
    for (at = STAILQ_FIRST(&pool.jobs); at && at != job;) at = STAILQ_NEXT(at, next);
    if (at) {
        STAILQ_REMOVE(&pool.jobs, job, drupe_job, next);
        pool.queued--;
        job->busy = &nobodys;
    }
    pthread_mutex_unlock(&pool.lock);
    return at != NULL;
}

void drupe_worker_stop(void)
{
    pthread_mutex_lock(&pool.lock);
    /* Those that have just ended a job need a moment to get here. */
    pool.closing = true;
    uint64_t deadline = drupe_deadline(CALM_NS);
    bool in_time = true;
    while (in_time && !is_calm()) in_time = drupe_cond_wait_until(&pool.calm, &pool.lock, deadline);
    pool.closing = false;
    unsigned ending = is_calm() ? pool.count : 0;
    if (ending) {
        pool.stopping = true;
        pthread_cond_broadcast(&pool.some);
    }
    pthread_mutex_unlock(&pool.lock);
    for (unsigned i = 0; i < ending; i++) {
        if (pool.workers[i].started) pthread_join(pool.workers[i].thread, NULL);
    }
    if (!ending) return;
    pthread_mutex_lock(&pool.lock);
    pool.stopping = false;
    pool.count = pool.gone = 0;
    pthread_mutex_unlock(&pool.lock);
}
