/* What all devices of this backend share: two thread pools, and a place to wait. */
#include "backends/host/host.h"
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MOST 64u

/* xorshift64*: good enough to shake the order of tasks, and repeatable from its seed. */
uint64_t drupe_host_sched_random(drupe_host_sched *sched)
{
    pthread_mutex_lock(&sched->lock);
    sched->random ^= sched->random >> 12;
    sched->random ^= sched->random << 25;
    sched->random ^= sched->random >> 27;
    uint64_t random = sched->random * 2685821657736338717u;
    pthread_mutex_unlock(&sched->lock);
    return random;
}

static void read_shuffle(drupe_host_sched *sched)
{
    const char *seed = getenv("DRUPE_HOST_SHUFFLE");
    if (!seed || !*seed) return;
    sched->shuffle = true;
    sched->random = strtoull(seed, NULL, 10) * 2 + 88172645463325253u;
}

/* Functions get two workers even on one processor: they may wait for each other. */
static drupe_status open_tpools(drupe_host_sched *sched)
{
    DRUPE_TRY(drupe_cond_init(&sched->done));
    sched->has_done = true;
    DRUPE_TRY(drupe_host_tpool_open(&sched->compute, sched, "drupe-host", sched->nworkers, sched->nworkers));
    unsigned count = sched->nworkers < 2                    ? 2
                     : sched->nworkers > FUNCTIONS_MOST / 2 ? FUNCTIONS_MOST / 2
                                                            : sched->nworkers;
    return drupe_host_tpool_open(&sched->functions, sched, "drupe-fn", count, FUNCTIONS_MOST);
}

drupe_status drupe_host_sched_open(drupe_host_sched **sched)
{
    *sched = NULL;
    drupe_host_sched *fresh = aligned_alloc(64, sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the host device.");
    memset(fresh, 0, sizeof *fresh);
    pthread_mutex_init(&fresh->lock, NULL);
    drupe_host_machine_probe(&fresh->machine);
    fresh->nworkers = fresh->machine.threads;
    drupe_host_topology_probe(&fresh->topology, fresh->nworkers);
    read_shuffle(fresh);
    drupe_status status = open_tpools(fresh);
    if (status != DRUPE_OK) {
        drupe_host_sched_close(fresh);
        return status;
    }
    *sched = fresh;
    return DRUPE_OK;
}

void drupe_host_sched_close(drupe_host_sched *sched)
{
    if (!sched) return;
    drupe_host_tpool_close(&sched->compute);
    drupe_host_tpool_close(&sched->functions);
    drupe_host_topology_clear(&sched->topology);
    if (sched->has_done) pthread_cond_destroy(&sched->done);
    pthread_mutex_destroy(&sched->lock);
    free(sched);
}

/* Mostly it is only read: who searches has it. */
static void hurry(drupe_host_tpool *tpool)
{
    if (atomic_load_explicit(&tpool->sleeping, memory_order_relaxed) == atomic_load(&tpool->count)) return;
    atomic_store_explicit(&tpool->hurried, true, memory_order_relaxed);
}

void drupe_host_sched_hurry(drupe_host_sched *sched)
{
    hurry(&sched->compute);
    hurry(&sched->functions);
}

void drupe_host_sched_tell(drupe_host_sched *sched)
{
    pthread_mutex_lock(&sched->lock);
    pthread_cond_broadcast(&sched->done);
    pthread_mutex_unlock(&sched->lock);
}
