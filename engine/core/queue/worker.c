/* Threads for host functions of backends that have none.
 *
 * Host functions may wait for each other by means that the engine does not see, so a job never waits for a
 * busy worker as long as another can be started. Workers stay until the library closes: a sleeping thread
 * costs little, and starting one for every job would cost more than most jobs. One that faults in its job is
 * parked by fault_isolation.c, and another thread takes its number. */
#include "core/queue/launch.h"

#define MOST    64u
#define CALM_NS UINT64_C(200000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some; /* there are jobs, or an end */
static pthread_cond_t calm; /* all are idle, and somebody wants to know */
static bool prepared, stopping, closing;
static struct worker {
    pthread_t thread;
    bool started;
    _Atomic(int) busy;
    drupe_job *job;
} workers[MOST];
static unsigned count, idle;
static size_t queued;
static drupe_job *first, *last;

static drupe_job *next_job(void)
{
    idle++;
    if (closing && idle == count) pthread_cond_broadcast(&calm);
    while (!first && !stopping) drupe_cond_wait_until(&some, &lock, UINT64_MAX);
    idle--;
    drupe_job *job = first;
    if (!job) return NULL;
    first = job->next;
    if (!first) last = NULL;
    queued--;
    return job;
}

static void *worker_main(void *user)
{
    struct worker *self = user;
    drupe_core_register_thread(workers, (uint32_t)(self - workers), &self->busy, NULL);
    pthread_mutex_lock(&lock);
    for (drupe_job *job = next_job(); job; job = next_job()) {
        pthread_mutex_unlock(&lock);
        self->job = job;
        job->busy = &self->busy;
        job->run(job);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    drupe_core_disown();
    return NULL;
}

static drupe_status start_at(struct worker *worker)
{
    drupe_status status = drupe_thread_start(&worker->thread, worker_main, worker, "drupe-worker");
    worker->started = status == DRUPE_OK;
    return status;
}

static drupe_status start_one(void)
{
    drupe_status status = start_at(&workers[count]);
    count += status == DRUPE_OK;
    return status;
}

bool drupe_worker_fault(const drupe_fault *fault)
{
    if (fault->owner != workers) return false;
    struct worker *worker = &workers[fault->index];
    char what[512];
    drupe_status status = drupe_core_fault_text(fault, what, sizeof what);
    drupe_error_set_native(status, NULL, fault->signal, NULL,
                           "%she %s faulted: %s. The thread that ran it is given up and another one started; "
                           "the queue works on. "
                           "Check the pointers that it was given.",
                           status == DRUPE_E_CHECK ? "Out of bounds: t" : "T", worker->job->what, what);
    worker->job->fail(worker->job);
    pthread_mutex_lock(&lock);
    pthread_detach(worker->thread);
    atomic_store(&worker->busy, 0);
    /* Without another one those that are left serve. */
    if (start_at(worker) != DRUPE_OK) worker->job = NULL;
    pthread_mutex_unlock(&lock);
    return true;
}

static drupe_status start_locked(void)
{
    if (!prepared) {
        DRUPE_TRY(drupe_cond_init(&some));
        drupe_status status = drupe_cond_init(&calm);
        if (status != DRUPE_OK) pthread_cond_destroy(&some);
        DRUPE_TRY(status);
    }
    prepared = true;
    return count ? DRUPE_OK : start_one();
}

drupe_status drupe_worker_start(void)
{
    pthread_mutex_lock(&lock);
    drupe_status status = start_locked();
    pthread_mutex_unlock(&lock);
    return status;
}

void drupe_worker_post(drupe_job *job)
{
    pthread_mutex_lock(&lock);
    job->next = NULL;
    if (last)
        last->next = job;
    else
        first = job;
    last = job;
    queued++;
    /* A thread that has just been started counts as busy until it has looked around: then there is one too
     * many, which does no harm. Where no more can be had, the job waits for one of those that there are. */
    bool grown = queued <= idle || count == MOST || start_one() == DRUPE_OK;
    (void)grown;
    pthread_cond_signal(&some);
    pthread_mutex_unlock(&lock);
}

void drupe_worker_stop(void)
{
    pthread_mutex_lock(&lock);
    /* Those that have just ended a job need a moment to get here. */
    closing = true;
    uint64_t deadline = drupe_deadline(CALM_NS);
    bool in_time = prepared;
    while (in_time && (first || idle < count)) in_time = drupe_cond_wait_until(&calm, &lock, deadline);
    closing = false;
    unsigned ending = first || idle < count ? 0 : count;
    if (ending) {
        stopping = true;
        pthread_cond_broadcast(&some);
    }
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < ending; i++) {
        if (workers[i].started) pthread_join(workers[i].thread, NULL);
    }
    if (!ending) return;
    pthread_mutex_lock(&lock);
    stopping = false;
    count = 0;
    pthread_mutex_unlock(&lock);
}
