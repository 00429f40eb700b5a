/* Failures that happen while nobody looks.
 *
 * A thread polls what is unfinished, ever more slowly, until nothing is, and offers each new failure to the
 * observer, which may show it where the work was submitted. It drops nothing of the caller's: cells are lent
 * to it by the observer, which takes them back on any thread. The failure itself stays unreported, so that
 * the next wait or check raises it. */
#include "base/service.h"
#include "core/services/services_room.h"

#define PAUSE_FIRST_NS 1000000u
#define PAUSE_LAST_NS  50000000u

static uint64_t look(void *unused);
static struct {
    pthread_mutex_t lock;
    drupe_service looker;
    uint64_t pause;
} poller = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .looker = {.name = "drupe-failures", .lock = &poller.lock, .step = look},
};

static size_t look_at_queues(void)
{
    size_t pending = 0;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        drupe_queue_settle(queue, true);
        pending += drupe_queue_pending(queue);
    }
    return pending;
}

static uint64_t look(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&poller.lock);
    size_t pending = look_at_queues();
    drupe_failures_offer();
    pthread_mutex_lock(&poller.lock);
    if (!pending) return UINT64_MAX;
    uint64_t until = drupe_deadline(poller.pause);
    poller.pause = poller.pause < PAUSE_LAST_NS ? poller.pause * 2 : PAUSE_LAST_NS;
    return until;
}

void drupe_failures_watch(void)
{
    if (drupe_core_check() != DRUPE_OK) return;
    size_t pending = 0;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        drupe_queue_collect(queue);
        pending += drupe_queue_pending(queue);
    }
    if (!pending) return;
    pthread_mutex_lock(&poller.lock);
    /* Without a thread the failures wait for the next look. */
    poller.pause = PAUSE_FIRST_NS;
    if (drupe_service_start(&poller.looker) == DRUPE_OK) drupe_service_wake(&poller.looker);
    pthread_mutex_unlock(&poller.lock);
}

void drupe_failure_poller_stop(void)
{
    pthread_mutex_lock(&poller.lock);
    drupe_service_stop(&poller.looker);
    pthread_mutex_unlock(&poller.lock);
}
