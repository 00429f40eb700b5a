/* The roof: the rooms are opened and closed.
 *
 * A closed server's struct is kept, empty, on a list: Python threads may still print while the interpreter
 * ends, and a late jk_stream_write() must find a closed server, not freed memory. */
#include "jkernel/server/server_room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_FLUSH_MS 1000

/* --- Forks -------------------------------------------------------------------------------------------------
 */

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void fork_child(void)
{
    jk_life_forked();
    jk_ending_forget();
    jk_bound_close();
    jk_ending_resume();
}

static void fork_watch(void)
{
    pthread_atfork(jk_ending_hold, jk_ending_resume, fork_child);
}

/* --- What others ask of a server ---------------------------------------------------------------------------
 */

const char *jk_server_session(const jk_server *server)
{
    return server->session->id;
}

const char *jk_server_connection_file(const jk_server *server)
{
    return server->config->path;
}

void jk_server_note(const char *text)
{
    jk_log("%s", text);
}

/* --- Open --------------------------------------------------------------------------------------------------
 */

static int parts_open(jk_server *server)
{
    /* Every part is opened, so that every part may be cleared. */
    jk_ports_open(server->ports);
    int result = jk_output_open(server) | jk_requests_open(server) | jk_session_open(server->session);
    jk_control_open(server);
    jk_mutex_open(&server->usage->lock);
    jk_cell_names_open(server);
    if (result != 0) return jk_fail("cannot start the kernel: %s", strerror(errno));
    return 0;
}

static int trust_open(jk_server *server)
{
    const jk_config *config = server->config;
    if (jk_signer_create(config->scheme, config->key, config->key_size, &server->signer) != 0)
        return jk_fail("signature_scheme \"%s\" in the connection file %s is not known; use \"hmac-sha256\"",
                       config->scheme, config->path);
    if (config->key_size == 0) return 0;
    server->replay = jk_replay_create();
    if (!server->replay) return jk_fail("no memory to start the kernel");
    return 0;
}

static int threads_start(jk_server *server)
{
    bool io = jk_own_thread_start(server, JK_THREAD_IO, jk_io_run),
         control = jk_own_thread_start(server, JK_THREAD_CONTROL, jk_control_run),
         heartbeat = jk_own_thread_start(server, JK_THREAD_HEARTBEAT, jk_heartbeat_run);
    if (io && control && heartbeat) return 0;
    return jk_fail("cannot start the kernel's threads: %s", strerror(errno));
}

static void server_stop(jk_server *server);

/* What the rooms own, in one block; `server` comes first. Each member is written by its room. */
typedef struct whole {
    jk_server server;
    jk_config config;
    jk_session session;
    jk_life life;
    jk_usage usage;
    jk_ports ports;
    jk_record_keeper keeper;
    jk_output output;
    jk_iopub iopub;
    jk_requests requests;
    jk_control control;
    jk_answers answers;
} whole;

/* Parts that were never opened must not be closed: nothing is made before the process is fit for all. */
static jk_server *server_create(const jk_executor *executor)
{
    if (jk_process_prepare() != 0) return NULL;
    whole *all = calloc(1, sizeof *all);
    if (!all) {
        jk_fail("no memory to start the kernel");
        return NULL;
    }
    all->server = (jk_server){
        .executor = executor,
        .config = &all->config,
        .session = &all->session,
        .life = &all->life,
        .usage = &all->usage,
        .ports = &all->ports,
        .keeper = &all->keeper,
        .output = &all->output,
        .iopub = &all->iopub,
        .requests = &all->requests,
        .control = &all->control,
        .answers = &all->answers,
    };
    jk_life_begin(&all->server);
    return &all->server;
}

jk_server *jk_server_open(const char *connection_file, const jk_executor *executor, char *problem,
                          size_t problem_size)
{
    sigset_t before;
    pthread_once(&fork_once, fork_watch);
    drupe_proc_choose(getenv("DRUPE_TEST_PROC")); /* while nobody can change the environment under our feet */
    drupe_thread_signals(&before);                /* for libzmq's threads */
    jk_server *server = server_create(executor);
    bool good = server && parts_open(server) == 0 && jk_config_read(connection_file, server->config) == 0 &&
                trust_open(server) == 0 && jk_sockets_bind(server) == 0;
    if (good) {
        jk_iopub_open(server, &jk_answers_leaving);
        jk_record_open(server); /* before a cell may come: its begin is noted there */
        good = threads_start(server) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (good) {
        jk_bound_remember(server->config);
        jk_ending_watch(server->requests->replies.wake);
        jk_log("serving %s", connection_file);
        return server;
    }
    snprintf(problem, problem_size, "%s", drupe_error_last()->text);
    jk_log("%s", problem);
    if (!server) return NULL;
    jk_life_close(server);
    server_stop(server);
    free(server);
    return NULL;
}

/* --- Close -------------------------------------------------------------------------------------------------
 */

static void threads_end(jk_server *server)
{
    jk_life_stop(server);
    jk_outbox_wake(&server->output->outbox);
    jk_own_thread_join(server, JK_THREAD_IO);
    jk_replies_wake(server); /* with the last replies that io has left to it */
    jk_own_thread_join(server, JK_THREAD_CONTROL);
    jk_heartbeat_stop(server);
    jk_own_thread_join(server, JK_THREAD_HEARTBEAT);
}

/* From here on nothing is accepted. Locks and conditions stay for late callers. */
static void server_stop(jk_server *server)
{
    jk_ending_forget();
    jk_crash_forget(server);
    jk_outbox_close(&server->output->outbox);
    jk_input_close(&server->requests->input);
    threads_end(server);
    jk_watchdog_clear(&server->control->watchdog);
    jk_sockets_close(server);
    jk_bound_remember(NULL);
    jk_iopub_clear(server);
    jk_output_clear(server);
    jk_requests_clear(server);
    jk_control_clear(server);
    jk_signer_release(server->signer);
    jk_replay_release(server->replay);
    server->signer = NULL;
    server->replay = NULL;
    jk_record_close(server);
    jk_config_clear(server->config);
}

void jk_server_close(jk_server *server)
{
    static pthread_mutex_t closed_lock = PTHREAD_MUTEX_INITIALIZER;
    static jk_server *closed;

    if (!server || !jk_server_alive(server)) return;
    jk_server_end_shells(server);
    jk_stdio_restore(server);
    jk_outbox_hurry(&server->output->outbox);
    jk_server_flush(server, CLOSE_FLUSH_MS);
    jk_life_close(server);
    if (jk_life_shutting_down(server)) jk_shutdown_children(server);
    server_stop(server);
    jk_log("closed");
    pthread_mutex_lock(&closed_lock);
    server->next_closed = closed;
    closed = server;
    pthread_mutex_unlock(&closed_lock);
}
