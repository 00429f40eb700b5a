/* See parallel.h. The parts of a loop are handed out by a counter, so that a thread that is slow, or has not
 * started, takes fewer of them. The caller works as well: a loop ends even when no helper ever wakes.
 *
 * A caller that faults in its own part never comes back to take its loop away. So the helpers are had by the
 * next loop as soon as nothing of the last one is left to do. The loop stays where it is: a thread that ran
 * unknown code is parked with its stack. */
#include "base/parallel.h"
#include "base/machine.h"
#include "base/service.h"
#include <stdatomic.h>

typedef struct loop {
    void (*part)(size_t i, void *user);
    void *user;
    size_t parts;
    _Atomic(size_t) next;
    bool contained; /* faults of its caller are */
    size_t inside;  /* helpers that work on it; guarded by the pool's lock, as is the next */
    unsigned fault; /* 0, or 1 more than the number of a helper that faulted */
} loop;

typedef struct helper {
    drupe_service service;
    _Atomic(int) busy; /* not 0: its faults are contained */
    loop *at;          /* what it works on */
    bool lost;         /* it has faulted, and no other thread has its number yet */
} helper;

static struct {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t left;
    loop *current; /* the one that has the helpers, on its caller's stack */
    size_t prepared;
    helper helpers[DRUPE_PARALLEL_HELPERS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* Whether this thread is a helper at its part. A loop that begins there has this thread alone: it would wait
 * for helpers of which it is one. */
static _Thread_local bool helping;
static _Thread_local bool entered; /* the guard knows this thread */

static _Atomic(const drupe_parallel_guard *) guard;

static void work(loop *l)
{
    for (size_t i; (i = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed)) < l->parts;)
        l->part(i, l->user);
}

static void enter(helper *self)
{
    const drupe_parallel_guard *known = atomic_load_explicit(&guard, memory_order_acquire);
    if (entered || !known) return;
    known->enter((unsigned)(self - pool.helpers), &self->busy);
    entered = true;
}

/* Asked to end: the last step of the thread. */
static void leave(const helper *self)
{
    if (!self->service.stopping || !entered) return;
    atomic_load(&guard)->leave();
    entered = false;
}

static uint64_t help(void *user)
{
    helper *self = user;
    loop *l = pool.current;
    if (!l || self->service.stopping) {
        leave(self);
        return UINT64_MAX;
    }
    l->inside++;
    self->at = l;
    pthread_mutex_unlock(&pool.lock);
    enter(self);
    helping = true;
    atomic_store(&self->busy, l->contained);
    work(l);
    atomic_store(&self->busy, 0);
    helping = false;
    pthread_mutex_lock(&pool.lock);
    self->at = NULL;
    if (--l->inside == 0) pthread_cond_broadcast(&pool.left);
    return UINT64_MAX;
}

size_t drupe_parallel_width(void)
{
    static _Atomic(size_t) width;
    size_t known = atomic_load_explicit(&width, memory_order_relaxed);
    if (known) return known;
    const unsigned cpus = drupe_machine_cpus();
    known = cpus < 1 ? 1 : cpus > DRUPE_PARALLEL_HELPERS ? DRUPE_PARALLEL_HELPERS + 1 : cpus;
    atomic_store_explicit(&width, known, memory_order_relaxed);
    return known;
}

size_t drupe_parallel_parts(size_t n, size_t grain)
{
    const size_t most = n / (grain ? grain : 1), width = drupe_parallel_width();
    return most < 1 ? 1 : most < width ? most : width;
}

/* A helper that cannot be started is one that never helps. */
static void wake_helpers(size_t count)
{
    for (; pool.prepared < count; pool.prepared++) {
        helper *one = &pool.helpers[pool.prepared];
        one->service = (drupe_service){
            .name = "drupe-loop", .lock = &pool.lock, .step = help, .user = one, .finishes = true};
    }
    for (size_t i = 0; i < count; i++)
        if (drupe_service_start(&pool.helpers[i].service) == DRUPE_OK)
            drupe_service_wake(&pool.helpers[i].service);
}

/* Have the helpers, unless another loop has something left for them. */
static bool take_helpers(loop *l, size_t count)
{
    pthread_mutex_lock(&pool.lock);
    const loop *other = pool.current;
    const bool mine = !other || (!other->inside && atomic_load(&other->next) >= other->parts);
    if (mine) {
        pool.current = l;
        wake_helpers(count);
    }
    pthread_mutex_unlock(&pool.lock);
    return mine;
}

void drupe_parallel(size_t parts, void (*part)(size_t i, void *user), void *user)
{
    loop l = {.part = part, .user = user, .parts = parts};
    const size_t width = drupe_parallel_width();
    const size_t helpers = helping ? 0 : (parts < width ? parts : width) - (parts > 0);
    const drupe_parallel_guard *known = atomic_load_explicit(&guard, memory_order_acquire);
    if (helpers && known) l.contained = known->contained();
    const bool mine = helpers && take_helpers(&l, helpers);
    work(&l);
    if (!mine) return;
    pthread_mutex_lock(&pool.lock);
    if (pool.current == &l) pool.current = NULL; /* who wakes from now on finds nothing */
    while (l.inside) pthread_cond_wait(&pool.left, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    if (l.fault && known) known->share(l.fault - 1);
}

void drupe_parallel_guard_set(const drupe_parallel_guard *fresh)
{
    atomic_store_explicit(&guard, fresh, memory_order_release);
}

void drupe_parallel_lost(unsigned number)
{
    pthread_mutex_lock(&pool.lock);
    helper *self = &pool.helpers[number];
    loop *l = self->at;
    self->at = NULL;
    self->lost = true;
    if (l) {
        l->fault = number + 1;
        atomic_store(&l->next, l->parts);
        if (--l->inside == 0) pthread_cond_broadcast(&pool.left);
    }
    pthread_mutex_unlock(&pool.lock);
}

void drupe_parallel_replace(unsigned number)
{
    pthread_mutex_lock(&pool.lock);
    drupe_service_abandon(&pool.helpers[number].service);
    pool.helpers[number].lost = false;
    pthread_mutex_unlock(&pool.lock);
}

void drupe_parallel_stop(void)
{
    pthread_mutex_lock(&pool.lock);
    for (size_t i = 0; i < pool.prepared; i++) {
        helper *one = &pool.helpers[i];
        if (one->lost)
            drupe_service_abandon(&one->service);
        else
            drupe_service_stop(&one->service);
        one->lost = false;
    }
    pthread_mutex_unlock(&pool.lock);
}
