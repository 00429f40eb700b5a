/* The control thread and what ends the process. Nothing here waits for the language. */
#include "jkernel/server/crash.h"
#include "jkernel/server/router.h"
#include "jkernel/server/usage.h"

#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SHUTDOWN_PATIENCE (2 * JK_SECOND)
#define ORPHAN_PATIENCE   (3 * JK_SECOND / 2) /* with the second of a poll still close to two */
#define CHILDREN_PATIENCE (JK_SECOND)         /* for descendants to clean up */
#define STARVED_MOST      (8 * JK_SECOND)
#define PARENT_LOOK       1000 /* ms */

/* --- Replies that the executor made for control requests --------------------------------------------------
 */

int jk_replies_open(jk_replies *replies)
{
    replies->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return replies->wake < 0 ? -1 : jk_mutex_open(&replies->lock);
}

static jk_entry *replies_take(jk_replies *replies)
{
    pthread_mutex_lock(&replies->lock);
    jk_entry *entry = replies->head;
    replies->head = replies->tail = NULL;
    pthread_mutex_unlock(&replies->lock);
    return entry;
}

void jk_replies_clear(jk_replies *replies)
{
    jk_entry *entry = replies_take(replies);
    while (entry) {
        jk_entry *next = entry->next;
        jk_entry_release(entry);
        entry = next;
    }
    if (replies->wake >= 0) close(replies->wake);
    replies->wake = -1;
}

void jk_replies_push(jk_server *server, jk_entry *entry)
{
    jk_replies *replies = &server->replies;
    pthread_mutex_lock(&replies->lock);
    if (replies->tail) {
        replies->tail->next = entry;
    } else {
        replies->head = entry;
    }
    replies->tail = entry;
    pthread_mutex_unlock(&replies->lock);
    jk_event_raise(replies->wake);
}

static void replies_send(jk_server *server)
{
    jk_entry *entry = replies_take(&server->replies);
    while (entry) {
        jk_entry *next = entry->next;
        jk_reply_send(server, JK_CONTROL, entry);
        jk_entry_release(entry);
        entry = next;
    }
}

/* --- Interrupt and end -------------------------------------------------------------------------------------
 */

void jk_interrupt(jk_server *server)
{
    /* Those that are there now: the interrupt may end the cell before they are told, and what the next cell
     * starts is not meant. */
    jk_processes children;
    jk_descendants(&children);
    server->executor->interrupt(server->executor->self);
    /* As a terminal does: processes that left our group asked to be left alone. */
    jk_processes_signal(&children, SIGINT, true);
}

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
    jk_thread_guard();
    if (jk_clock() < watchdog->deadline || watchdog_extend(watchdog)) return (uint64_t)watchdog->deadline;
    int exit_code = watchdog->exit_code;
    pthread_mutex_unlock(&watchdog->lock);
    jk_log("the main thread did not end in time; ending the process");
    jk_children_signal(SIGKILL, false);
    _exit(exit_code);
}

int jk_watchdog_open(jk_watchdog *watchdog)
{
    watchdog->service = (drupe_service){
        .name = "drupe-watchdog", .lock = &watchdog->lock, .step = watchdog_look, .user = watchdog};
    return jk_mutex_open(&watchdog->lock);
}

static void watchdog_start(jk_watchdog *watchdog, int64_t patience, int exit_code)
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

void jk_shutdown(jk_server *server, bool restart, int exit_code)
{
    if (atomic_exchange(&server->shutdown, true)) return;
    if (server->record) atomic_store(&server->record->ending, true);
    jk_children_adopt();
    atomic_store(&server->children_until, jk_clock() + CHILDREN_PATIENCE);
    watchdog_start(&server->watchdog, exit_code ? ORPHAN_PATIENCE : SHUTDOWN_PATIENCE, exit_code);
    jk_input_close(&server->input);
    jk_subshells_close(server);
    server->executor->shutdown(server->executor->self, restart);
    jk_children_signal(SIGTERM, false);
}

void jk_server_leave(jk_server *server)
{
    if (jk_server_alive(server)) jk_shutdown(server, false, 0);
}

/* --- The thread --------------------------------------------------------------------------------------------
 */

enum { WAKE, CONTROL, PARENT, ITEMS };

void *jk_control_run(void *argument)
{
    jk_server *server = argument;
    jk_parent_watch *watch = &server->watch;
    jk_record_sweep(server);
    while (!atomic_load(&server->stopping)) {
        zmq_pollitem_t items[ITEMS] = {
            [WAKE] = {.fd = server->replies.wake, .events = ZMQ_POLLIN},
            [CONTROL] = jk_channel_item(server, JK_CONTROL),
            [PARENT] = {.fd = watch->pidfd, .events = ZMQ_POLLIN},
        };
        bool watching = watch->named && !watch->reported;
        int count = watching && watch->pidfd >= 0 ? ITEMS : PARENT;
        int delay = jk_channel_delay(server, JK_CONTROL), insist = jk_insist_look(server);
        if (delay < 0 || (insist >= 0 && insist < delay)) delay = insist;
        if (watching && watch->pidfd < 0 && (delay < 0 || delay > PARENT_LOOK)) delay = PARENT_LOOK;
        if (zmq_poll(items, count, delay) < 0) continue;
        if (items[WAKE].revents) jk_event_clear(server->replies.wake);
        replies_send(server);
        int ended_by = jk_ending_asked();
        if (ended_by) {
            jk_log("ending on signal %d", ended_by);
            jk_shutdown(server, false, 128 + ended_by);
        }
        if (items[CONTROL].revents) jk_route_receive(server, JK_CONTROL, 64);
        if (watching && jk_parent_watch_gone(watch)) {
            watch->reported = true;
            jk_log("the parent process %ld has ended", watch->named);
            jk_shutdown(server, false, 1);
        }
    }
    replies_send(server);
    return NULL;
}
