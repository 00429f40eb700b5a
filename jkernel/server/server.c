/* The server's life, and the small tools its threads share.
 *
 * A closed server's struct is kept, empty, on a list: Python threads may still print while the interpreter
 * ends, and a late jk_stream_write() must find a closed server, not freed memory. */
#include "jkernel/server/crash.h"
#include "jkernel/server/usage.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOSE_FLUSH_MS 1000

/* --- Forks -------------------------------------------------------------------------------------------------
 */

static atomic_ulong generations;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void fork_child(void)
{
    atomic_fetch_add(&generations, 1);
    jk_ending_forget();
    jk_bound_close();
    jk_ending_resume();
}

static void fork_watch(void)
{
    pthread_atfork(jk_ending_hold, jk_ending_resume, fork_child);
}

bool jk_server_forked(const jk_server *server)
{
    return server->generation != atomic_load(&generations);
}

bool jk_server_alive(const jk_server *server)
{
    return !jk_server_forked(server) && !atomic_load(&server->closing);
}

bool jk_server_own_thread(const jk_server *server)
{
    pthread_t self = pthread_self();
    return pthread_equal(self, server->io) || pthread_equal(self, server->control) ||
           pthread_equal(self, server->heartbeat);
}

/* --- Tools -------------------------------------------------------------------------------------------------
 */

int jk_mutex_open(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0) return -1;
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    int result = pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return result == 0 ? 0 : -1;
}

void jk_event_raise(int eventfd)
{
    uint64_t one = 1;
    int reason = errno;
    ssize_t ignored = write(eventfd, &one, sizeof one);
    (void)ignored;
    errno = reason;
}

void jk_event_clear(int eventfd)
{
    uint64_t count;
    ssize_t ignored = read(eventfd, &count, sizeof count);
    (void)ignored;
}

typedef struct thread_start {
    void *(*body)(void *);
    void *argument;
} thread_start;

static void *thread_run(void *argument)
{
    thread_start start = *(thread_start *)argument;
    free(argument);
    jk_thread_guard();
    return start.body(start.argument);
}

void jk_server_note(const char *text)
{
    jk_log("%s", text);
}

int jk_thread_start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    thread_start *start = malloc(sizeof *start);
    if (!start) return -1;
    *start = (thread_start){body, argument};
    if (drupe_thread_start(thread, thread_run, start, NULL) == DRUPE_OK) return 0;
    free(start);
    return -1;
}

/* --- Open --------------------------------------------------------------------------------------------------
 */

static int parts_open(jk_server *server, char *problem, size_t problem_size)
{
    /* Every part is opened, so that every part may be cleared. */
    int result = jk_outbox_open(&server->outbox) | jk_inbox_open(&server->inbox) |
                 jk_subshells_open(&server->subshells) | jk_input_open(&server->input) |
                 jk_stdio_open(&server->stdio) | jk_replies_open(&server->replies) |
                 jk_watchdog_open(&server->watchdog) | jk_session_open(&server->session);
    jk_parent_watch_open(&server->watch);
    jk_debug_open(server);
    server->usage = jk_usage_create();
    if (!server->usage) result = -1;
    if (result != 0) {
        snprintf(problem, problem_size, "cannot start the kernel: %s", strerror(errno));
        return -1;
    }
    return 0;
}

static int trust_open(jk_server *server, char *problem, size_t problem_size)
{
    const jk_config *config = &server->config;
    if (jk_signer_create(config->scheme, config->key, config->key_size, &server->signer) != 0) {
        snprintf(problem, problem_size,
                 "signature_scheme \"%s\" in the connection file %s is not known; use \"hmac-sha256\"",
                 config->scheme, config->path);
        return -1;
    }
    if (config->key_size == 0) return 0;
    server->replay = jk_replay_create();
    if (!server->replay) {
        snprintf(problem, problem_size, "no memory to start the kernel");
        return -1;
    }
    return 0;
}

static int threads_start(jk_server *server, char *problem, size_t problem_size)
{
    server->io_started = jk_thread_start(&server->io, jk_io_run, server) == 0;
    server->control_started = jk_thread_start(&server->control, jk_control_run, server) == 0;
    server->heartbeat_started = jk_thread_start(&server->heartbeat, jk_heartbeat_run, server) == 0;
    if (server->io_started && server->control_started && server->heartbeat_started) return 0;
    snprintf(problem, problem_size, "cannot start the kernel's threads: %s", strerror(errno));
    return -1;
}

static void server_stop(jk_server *server);

/* Parts that were never opened must not be closed: nothing is made before the process is fit for all. */
static jk_server *server_create(const jk_executor *executor, char *problem, size_t problem_size)
{
    if (jk_process_prepare(problem, problem_size) != 0) return NULL;
    jk_server *server = calloc(1, sizeof *server);
    if (!server) {
        snprintf(problem, problem_size, "no memory to start the kernel");
        return NULL;
    }
    server->executor = executor;
    server->generation = atomic_load(&generations);
    server->heart_stop = -1;
    return server;
}

jk_server *jk_server_open(const char *connection_file, const jk_executor *executor, char *problem,
                          size_t problem_size)
{
    sigset_t before;
    pthread_once(&fork_once, fork_watch);
    jk_proc_choose();
    drupe_thread_signals(&before); /* for libzmq's threads */
    jk_server *server = server_create(executor, problem, problem_size);
    bool good = server && parts_open(server, problem, problem_size) == 0 &&
                jk_config_read(connection_file, &server->config, problem, problem_size) == 0 &&
                trust_open(server, problem, problem_size) == 0 &&
                jk_sockets_bind(server, problem, problem_size) == 0 &&
                threads_start(server, problem, problem_size) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (good) {
        jk_bound_remember(&server->config);
        jk_ending_watch(server->replies.wake);
        jk_record_open(server);
        jk_log("serving %s", connection_file);
        return server;
    }
    jk_line_clean(problem, strnlen(problem, problem_size));
    jk_log("%s", problem);
    if (!server) return NULL;
    atomic_store(&server->closing, true);
    server_stop(server);
    free(server);
    return NULL;
}

/* --- Close -------------------------------------------------------------------------------------------------
 */

static void threads_end(jk_server *server)
{
    atomic_store(&server->stopping, true);
    if (server->io_started) {
        jk_outbox_wake(&server->outbox);
        pthread_join(server->io, NULL);
    }
    if (server->control_started) {
        jk_event_raise(server->replies.wake);
        pthread_join(server->control, NULL);
    }
    if (server->heartbeat_started) {
        jk_event_raise(server->heart_stop);
        zmq_ctx_shutdown(server->heart_context);
        pthread_join(server->heartbeat, NULL);
    }
    server->io_started = server->control_started = server->heartbeat_started = false;
}

static void outbox_close(jk_outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->closed = true;
    pthread_cond_broadcast(&outbox->moved);
    pthread_mutex_unlock(&outbox->lock);
}

/* From here on nothing is accepted. Locks and conditions stay for late callers. */
static void server_stop(jk_server *server)
{
    jk_ending_forget();
    jk_crash_forget(server);
    outbox_close(&server->outbox);
    jk_input_close(&server->input);
    threads_end(server);
    jk_watchdog_clear(&server->watchdog);
    jk_sockets_close(server);
    jk_bound_remember(NULL);
    jk_inbox_clear(&server->inbox);
    jk_outbox_clear(&server->outbox);
    jk_replies_clear(&server->replies);
    jk_input_clear(&server->input);
    jk_stdio_clear(&server->stdio);
    jk_parent_watch_clear(&server->watch);
    jk_insist_clear(&server->insist);
    jk_signer_release(server->signer);
    jk_replay_release(server->replay);
    server->signer = NULL;
    server->replay = NULL;
    jk_record_close(server);
    jk_config_clear(&server->config);
    jk_usage_release(server->usage);
    server->usage = NULL;
}

void jk_server_close(jk_server *server)
{
    static pthread_mutex_t closed_lock = PTHREAD_MUTEX_INITIALIZER;
    static jk_server *closed;

    if (!server || !jk_server_alive(server)) return;
    jk_subshells_close(server);
    jk_stdio_restore(server);
    jk_outbox_hurry(&server->outbox);
    jk_server_flush(server, CLOSE_FLUSH_MS);
    atomic_store(&server->closing, true);
    if (atomic_load(&server->shutdown)) {
        jk_children_signal(SIGTERM, false);
        jk_children_end(atomic_load(&server->children_until));
    }
    server_stop(server);
    jk_log("closed");
    pthread_mutex_lock(&closed_lock);
    server->next_closed = closed;
    closed = server;
    pthread_mutex_unlock(&closed_lock);
}
