/* The watchdog ends the process when the main thread does not, after a shutdown. */
#include "jkernel/server/control/control_room.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define STARVED_MOST (8 * JK_SECOND)

int jk_watchdog_open(jk_watchdog *watchdog)
{
    if (jk_mutex_open(&watchdog->lock) != 0) return -1;
    return jk_condition_open(&watchdog->ended);
}

/* How long the main thread has waited for a processor, in ns. */
static int64_t starved_time(void)
{
    char text[96];
    long long computed, waited;
    if (jk_proc_read("self/schedstat", text, sizeof text) <= 0) return 0;
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

static void *watchdog_run(void *argument)
{
    jk_watchdog *watchdog = argument;
    bool in_time = true;
    pthread_mutex_lock(&watchdog->lock);
    while (!watchdog->cancelled && in_time) {
        in_time = jk_condition_wait(&watchdog->ended, &watchdog->lock, watchdog->deadline) ||
                  watchdog_extend(watchdog);
    }
    bool cancelled = watchdog->cancelled;
    int exit_code = watchdog->exit_code;
    pthread_mutex_unlock(&watchdog->lock);
    if (cancelled) return NULL;
    jk_log("the main thread did not end in time; ending the process");
    jk_children_signal(SIGKILL, false);
    _exit(exit_code);
}

void jk_watchdog_start(jk_watchdog *watchdog, int64_t patience, int exit_code)
{
    pthread_mutex_lock(&watchdog->lock);
    if (!watchdog->started && !watchdog->cancelled) {
        watchdog->deadline = jk_clock() + patience;
        watchdog->starved = starved_time();
        watchdog->exit_code = exit_code;
        watchdog->started = jk_thread_start(&watchdog->thread, watchdog_run, watchdog) == 0;
    }
    pthread_mutex_unlock(&watchdog->lock);
}

void jk_watchdog_clear(jk_watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
    watchdog->cancelled = true;
    pthread_cond_broadcast(&watchdog->ended);
    bool started = watchdog->started;
    pthread_mutex_unlock(&watchdog->lock);
    if (started) pthread_join(watchdog->thread, NULL);
    watchdog->started = false;
}
