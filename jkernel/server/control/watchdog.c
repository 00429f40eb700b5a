/* The watchdog ends the process when the main thread does not, after a shutdown. */
#include "jkernel/server/control/control_room.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define STARVED_MOST (8 * JK_SECOND)

/* How long the main thread has waited for a processor, in ns. */
static int64_t starved_time(void)
{
    char text[96];
    long long computed, waited;
    if (drupe_proc_read("self/schedstat", text, sizeof text) <= 0) return 0;
    return sscanf(text, "%lld %lld", &computed, &waited) == 2 ? waited : 0;
}

/* On a busy machine the exit hooks take their time: what the main thread waits for a processor is added to
 * the deadline. Returns whether there was any. The lock is held. */
static bool watchdog_extend(jk_watchdog *watchdog)
{
    int64_t starved = starved_time() - watchdog->starved;
    if (starved > STARVED_MOST) starved = STARVED_MOST;
    if (starved - watchdog->given < 10 * JK_MILLISECOND) return false;
    watchdog->deadline += starved - watchdog->given;
    watchdog->given = starved;
    return true;
}

static uint64_t watchdog_look(void *user)
{
    jk_watchdog *watchdog = user;
    jk_thread_signal_stack();
    if (jk_clock() < watchdog->deadline || watchdog_extend(watchdog)) return (uint64_t)watchdog->deadline;
    int exit_code = watchdog->exit_code;
    pthread_mutex_unlock(&watchdog->lock);
    jk_log("the main thread did not end in time; ending the process");
    jk_children_signal(SIGKILL, false);
    _exit(exit_code);
}

void jk_watchdog_open(jk_watchdog *watchdog)
{
    watchdog->service = (drupe_service){
        .name = "drupe-watchdog", .lock = &watchdog->lock, .step = watchdog_look, .user = watchdog};
    jk_mutex_open(&watchdog->lock);
}

void jk_watchdog_start(jk_watchdog *watchdog, int64_t patience, int exit_code)
{
    pthread_mutex_lock(&watchdog->lock);
    if (!drupe_service_runs(&watchdog->service) && !watchdog->cancelled) {
        watchdog->deadline = jk_clock() + patience;
        watchdog->starved = starved_time();
        watchdog->exit_code = exit_code;
        if (drupe_service_start(&watchdog->service) != DRUPE_OK) jk_log("%s", drupe_error_last()->text);
    }
    pthread_mutex_unlock(&watchdog->lock);
}

void jk_watchdog_clear(jk_watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
    watchdog->cancelled = true;
    drupe_service_stop(&watchdog->service);
    pthread_mutex_unlock(&watchdog->lock);
}
