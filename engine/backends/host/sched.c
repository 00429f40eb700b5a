/* What all devices of this backend share: chance, and a place to wait. */
#include "backends/host/host_sched.h"
#include <stdlib.h>

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

void drupe_host_sched_tell(drupe_host_sched *sched)
{
    pthread_mutex_lock(&sched->lock);
    pthread_cond_broadcast(&sched->done);
    pthread_mutex_unlock(&sched->lock);
}

drupe_error *drupe_host_error_copy(const drupe_error *error)
{
    drupe_error *copy = malloc(sizeof *copy);
    if (copy) *copy = *error;
    return copy;
}
