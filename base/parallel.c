/* See parallel.h. The parts of a loop are handed out by a counter, so that a thread that is slow, or has not
 * started, takes fewer of them. The caller works as well: a loop ends even when no helper ever wakes. */
#include "base/parallel.h"
#include "base/machine.h"
#include "base/service.h"
#include <stdatomic.h>

#define MOST_HELPERS 63

typedef struct loop {
    void (*part)(size_t i, void *user);
    void *user;
    size_t parts;
    _Atomic(size_t) next;
    size_t inside; /* helpers that work on it; guarded by the pool's lock */
} loop;

static struct {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t left;
    loop *current; /* the one that has the helpers, on its caller's stack */
    size_t prepared;
    drupe_service helpers[MOST_HELPERS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* Whether this thread is a helper at its part. A loop that begins there has this thread alone: it would wait for
 * helpers of which it is one. */
static _Thread_local bool helping;

static void work(loop *l)
{
    for (size_t i; (i = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed)) < l->parts;)
        l->part(i, l->user);
}

static uint64_t help(void *user)
{
    (void)user;
    loop *l = pool.current;
    if (!l) return UINT64_MAX;
    l->inside++;
    pthread_mutex_unlock(&pool.lock);
    helping = true;
    work(l);
    helping = false;
    pthread_mutex_lock(&pool.lock);
    if (--l->inside == 0) pthread_cond_broadcast(&pool.left);
    return UINT64_MAX;
}

size_t drupe_parallel_width(void)
{
    static _Atomic(size_t) width;
    size_t known = atomic_load_explicit(&width, memory_order_relaxed);
    if (known) return known;
    const unsigned cpus = drupe_machine_cpus();
    known = cpus < 1 ? 1 : cpus > MOST_HELPERS ? MOST_HELPERS + 1 : cpus;
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
    for (; pool.prepared < count; pool.prepared++)
        pool.helpers[pool.prepared] =
            (drupe_service){.name = "drupe-loop", .lock = &pool.lock, .step = help};
    for (size_t i = 0; i < count; i++)
        if (drupe_service_start(&pool.helpers[i]) == DRUPE_OK) drupe_service_wake(&pool.helpers[i]);
}

void drupe_parallel(size_t parts, void (*part)(size_t i, void *user), void *user)
{
    loop l = {.part = part, .user = user, .parts = parts};
    const size_t width = drupe_parallel_width();
    const size_t helpers = helping ? 0 : (parts < width ? parts : width) - (parts > 0);
    bool mine = false;
    if (helpers) {
        pthread_mutex_lock(&pool.lock);
        mine = !pool.current;
        if (mine) {
            pool.current = &l;
            wake_helpers(helpers);
        }
        pthread_mutex_unlock(&pool.lock);
    }
    work(&l);
    if (!mine) return;
    pthread_mutex_lock(&pool.lock);
    pool.current = NULL; /* who wakes from now on finds nothing */
    while (l.inside) pthread_cond_wait(&pool.left, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

void drupe_parallel_stop(void)
{
    pthread_mutex_lock(&pool.lock);
    for (size_t i = 0; i < pool.prepared; i++) drupe_service_stop(&pool.helpers[i]);
    pthread_mutex_unlock(&pool.lock);
}
