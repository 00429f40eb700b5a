/* What all devices of this backend share: two crews, and a place to wait. */
#include "backends/host/host.h"
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MOST 64u

/* xorshift64*: good enough to shake the order of tasks, and repeatable from its seed. */
uint64_t drupe_host_pool_random(drupe_host_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->random ^= pool->random >> 12;
    pool->random ^= pool->random << 25;
    pool->random ^= pool->random >> 27;
    uint64_t random = pool->random * 2685821657736338717u;
    pthread_mutex_unlock(&pool->lock);
    return random;
}

static void read_shuffle(drupe_host_pool *pool)
{
    const char *seed = getenv("DRUPE_HOST_SHUFFLE");
    if (!seed || !*seed) return;
    pool->shuffle = true;
    pool->random = strtoull(seed, NULL, 10) * 2 + 88172645463325253u;
}

/* Functions get two workers even on one processor: they may wait for each other. */
static drupe_status open_crews(drupe_host_pool *pool)
{
    DRUPE_TRY(drupe_cond_init(&pool->done));
    pool->has_done = true;
    DRUPE_TRY(drupe_host_crew_open(&pool->compute, pool, "drupe-host", pool->nworkers, pool->nworkers));
    unsigned count = pool->nworkers < 2                    ? 2
                     : pool->nworkers > FUNCTIONS_MOST / 2 ? FUNCTIONS_MOST / 2
                                                           : pool->nworkers;
    return drupe_host_crew_open(&pool->functions, pool, "drupe-fn", count, FUNCTIONS_MOST);
}

drupe_status drupe_host_pool_open(drupe_host_pool **pool)
{
    *pool = NULL;
    drupe_host_pool *fresh = aligned_alloc(64, sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the host device.");
    memset(fresh, 0, sizeof *fresh);
    pthread_mutex_init(&fresh->lock, NULL);
    drupe_host_machine_probe(&fresh->machine);
    fresh->nworkers = fresh->machine.threads;
    drupe_host_topology_probe(&fresh->topology, fresh->nworkers);
    read_shuffle(fresh);
    drupe_status status = open_crews(fresh);
    if (status != DRUPE_OK) {
        drupe_host_pool_close(fresh);
        return status;
    }
    *pool = fresh;
    return DRUPE_OK;
}

void drupe_host_pool_close(drupe_host_pool *pool)
{
    if (!pool) return;
    drupe_host_crew_close(&pool->compute);
    drupe_host_crew_close(&pool->functions);
    drupe_host_topology_clear(&pool->topology);
    if (pool->has_done) pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Mostly it is only read: who searches has it. */
static void hurry(drupe_host_crew *crew)
{
    if (atomic_load_explicit(&crew->sleeping, memory_order_relaxed) == atomic_load(&crew->count)) return;
    atomic_store_explicit(&crew->hurried, true, memory_order_relaxed);
}

void drupe_host_pool_hurry(drupe_host_pool *pool)
{
    hurry(&pool->compute);
    hurry(&pool->functions);
}

void drupe_host_pool_tell(drupe_host_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->done);
    pthread_mutex_unlock(&pool->lock);
}
