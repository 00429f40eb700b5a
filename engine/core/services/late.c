/* Failures that happen while nobody looks.
 *
 * A thread polls what is unfinished, ever more slowly, until nothing is, and offers each new failure to the
 * observer, which may show it where the work was submitted. It drops nothing of the caller's: cells are lent
 * to it by the observer, which takes them back on any thread. The failure itself stays unreported, so that
 * the next wait or check raises it. */
#include "core/services/services_room.h"

#define PAUSE_FIRST_NS 1000000u
#define PAUSE_LAST_NS  50000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static pthread_t thread;
static bool conditions, started, stopping;
static unsigned asked; /* how often somebody asked for the watch */

static size_t look_at_queues(void)
{
    size_t pending = 0;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        drupe_queue_settle(queue, true);
        pending += drupe_queue_pending(queue);
    }
    return pending;
}

/* Until nothing is unfinished, or it is time to stop. Called and left with the lock held. */
static void look_until_over(void)
{
    uint64_t pause = PAUSE_FIRST_NS;
    size_t pending = 1;
    unsigned seen = asked;
    while (pending && !stopping) {
        pthread_mutex_unlock(&lock);
        pending = look_at_queues();
        drupe_failures_offer();
        pthread_mutex_lock(&lock);
        if (pending && !stopping) drupe_cond_wait_until(&wake, &lock, drupe_deadline(pause));
        pause = pause < PAUSE_LAST_NS ? pause * 2 : PAUSE_LAST_NS;
        if (seen == asked) continue;
        seen = asked;
        pause = PAUSE_FIRST_NS;
        pending = 1;
    }
}

static void *late_main(void *unused)
{
    (void)unused;
    unsigned served = 0;
    pthread_mutex_lock(&lock);
    while (!stopping) {
        if (served == asked) {
            drupe_cond_wait_until(&wake, &lock, UINT64_MAX);
            continue;
        }
        served = asked;
        look_until_over();
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static drupe_status start_locked(void)
{
    if (started) return DRUPE_OK;
    if (!conditions) DRUPE_TRY(drupe_cond_init(&wake));
    conditions = true;
    stopping = false;
    DRUPE_TRY(drupe_thread_start(&thread, late_main, NULL, "drupe-late"));
    started = true;
    return DRUPE_OK;
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
    pthread_mutex_lock(&lock);
    /* Without a thread the failures wait for the next look. */
    if (start_locked() == DRUPE_OK) {
        asked++;
        pthread_cond_signal(&wake);
    }
    pthread_mutex_unlock(&lock);
}

void drupe_late_stop(void)
{
    pthread_mutex_lock(&lock);
    bool stop = started;
    stopping = true;
    started = false;
    if (stop) pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    if (stop) pthread_join(thread, NULL);
}
