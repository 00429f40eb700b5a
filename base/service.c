/* See service.h. A wake-up that comes while a step runs is kept in `woken`, so none is lost. */
#include "base/service.h"
#include <stdatomic.h>

static _Atomic(unsigned) forks; /* that this process has come through */

static void fork_child(void)
{
    atomic_fetch_add(&forks, 1);
}

static void fork_watch(void)
{
    (void)pthread_atfork(NULL, NULL, fork_child);
}

/* In a forked child: forget the parent's thread. Its conditions may have had waiters, so others take their
 * place. */
static void look_for_fork(drupe_service *service)
{
    if (service->forks == atomic_load_explicit(&forks, memory_order_relaxed)) return;
    service->forks = atomic_load(&forks);
    service->prepared = service->running = service->stopping = service->over = service->joining = false;
}

static void prepare(drupe_service *service)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fork_watch);
    if (service->prepared) return;
    service->wake = service->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    service->prepared = true;
}

static void *service_main(void *user)
{
    drupe_service *service = user;
    pthread_mutex_lock(service->lock);
    unsigned serial = service->serial;
    while (service->serial == serial && (!service->stopping || service->finishes)) {
        /* Asked to end before a step that then has nothing to do: all is done. */
        bool ending = service->stopping;
        service->woken = false;
        uint64_t until = service->step(service->user);
        if (ending && until) break;
        while (service->serial == serial && until && !service->woken && !service->stopping) {
            if (!drupe_cond_wait_until(&service->wake, service->lock, until)) break;
        }
    }
    if (service->serial == serial) {
        service->over = true;
        pthread_cond_broadcast(&service->changed);
    }
    pthread_mutex_unlock(service->lock);
    return NULL;
}

drupe_status drupe_service_start(drupe_service *service)
{
    look_for_fork(service);
    if (service->stopping)
        return drupe_error_set(DRUPE_E_BUSY, "The thread '%s' is just being ended.", service->name);
    if (service->running) return DRUPE_OK;
    prepare(service);
    service->forks = atomic_load(&forks);
    service->serial++;
    service->over = false;
    DRUPE_TRY(drupe_thread_start(&service->thread, service_main, service, service->name));
    service->running = true;
    return DRUPE_OK;
}

static void rouse(drupe_service *service)
{
    pthread_cond_signal(&service->wake);
    if (service->rouse) service->rouse(service->user);
}

void drupe_service_wake(drupe_service *service)
{
    service->woken = true;
    if (drupe_service_runs(service)) rouse(service);
}

bool drupe_service_runs(drupe_service *service)
{
    look_for_fork(service);
    return service->running;
}

bool drupe_service_sleep(drupe_service *service, uint64_t deadline)
{
    bool in_time = true;
    while (in_time && !service->woken && !service->stopping)
        in_time = drupe_cond_wait_until(&service->wake, service->lock, deadline);
    service->woken = false;
    return in_time;
}

drupe_status drupe_service_end(drupe_service *service, uint64_t deadline)
{
    if (!drupe_service_runs(service)) return DRUPE_OK;
    if (pthread_equal(service->thread, pthread_self()))
        return drupe_error_set(DRUPE_E_INVALID, "The thread '%s' cannot wait for its own end.",
                               service->name);
    service->stopping = true;
    rouse(service);
    unsigned serial = service->serial;
    bool in_time = true;
    while (in_time && service->running && service->serial == serial && (!service->over || service->joining))
        in_time = drupe_cond_wait_until(&service->changed, service->lock, deadline);
    /* Another one that waited may have been first. */
    if (!service->running || service->serial != serial) return DRUPE_OK;
    if (!service->over || service->joining)
        return drupe_error_set(DRUPE_E_TIMEOUT, "The thread '%s' is still at work.", service->name);
    service->joining = true;
    pthread_mutex_unlock(service->lock);
    pthread_join(service->thread, NULL);
    pthread_mutex_lock(service->lock);
    service->running = service->over = service->stopping = service->joining = false;
    pthread_cond_broadcast(&service->changed);
    return DRUPE_OK;
}

void drupe_service_stop(drupe_service *service)
{
    drupe_status status = drupe_service_end(service, UINT64_MAX);
    (void)status;
}

void drupe_service_abandon(drupe_service *service)
{
    if (!drupe_service_runs(service)) return;
    if (service->joining) return; /* it has ended meanwhile */
    pthread_detach(service->thread);
    service->serial++;
    service->running = service->over = service->stopping = false;
    pthread_cond_broadcast(&service->changed);
}

void drupe_service_clear(drupe_service *service)
{
    if (!service->prepared) return;
    service->prepared = false;
    pthread_cond_destroy(&service->wake);
    pthread_cond_destroy(&service->changed);
}
