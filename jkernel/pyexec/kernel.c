/* The process's one kernel: the executor table that the server calls, and who may still use the server.
 *
 * Everything here runs without the GIL and mostly on the server's threads, so it is plain atomics. `users`
 * counts the threads inside a server function; closing swaps the pointer out first and then waits for them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "jkernel/pyexec/pyexec.h"

static struct {
    _Atomic(jk_server *) server;
    atomic_int users;
    atomic_int shutdown; /* as jk_kernel_shutdown_state() */
    jk_request *parked;  /* under the GIL */
    pthread_t main_thread;
    char info[2048];
} kernel;

static const char *executor_kernel_info(void *self)
{
    (void)self;
    return kernel.info;
}

const char *jk_kernel_info(void)
{
    return kernel.info;
}

static void executor_handle(void *self, jk_request *request)
{
    (void)self;
    kernel.parked = request;
}

/* The server signals the child processes itself. */
static void executor_interrupt(void *self)
{
    (void)self;
    jk_sigint_send(kernel.main_thread);
}

static void executor_shutdown(void *self, bool restart)
{
    (void)self;
    atomic_store(&kernel.shutdown, restart ? 2 : 1);
    jk_sigint_send(kernel.main_thread); /* a running cell makes way; harmless when idle */
    jk_server *server = jk_kernel_enter();
    if (server) {
        jk_server_wake(server);
        jk_kernel_leave();
    }
}

static size_t executor_devices(void *self, char *json, size_t size)
{
    (void)self;
    return jk_link_usage(json, size);
}

static size_t executor_answer(void *self, const char *command, const jk_arguments *arguments, char **json)
{
    (void)self;
    return jk_link_answer(command, arguments, json);
}

static jk_executor executor = {
    .self = NULL,
    .kernel_info = executor_kernel_info,
    .handle = executor_handle,
    .interrupt = executor_interrupt,
    .shutdown = executor_shutdown,
    .devices = executor_devices,
    .answer = executor_answer,
    .holding = jk_holding,
};

static void kernel_describe(const char *features)
{
    int length = (int)strcspn(PY_VERSION, "+ ");
    snprintf(kernel.info, sizeof kernel.info,
             "{\"implementation\":\"drupe\",\"implementation_version\":\"%s\","
             "\"language_info\":{\"name\":\"python\",\"version\":\"%.*s\",\"mimetype\":\"text/x-python\","
             "\"codemirror_mode\":{\"name\":\"ipython\",\"version\":3},\"pygments_lexer\":\"ipython3\","
             "\"nbconvert_exporter\":\"python\",\"file_extension\":\".py\"},"
             "\"banner\":\"Drupe %s: Python %.*s with devices\",\"help_links\":["
             "{\"text\":\"Python Reference\",\"url\":\"https://docs.python.org/%d.%d\"},"
             "{\"text\":\"IPython Reference\",\"url\":\"https://ipython.readthedocs.io/en/stable/\"},"
             "{\"text\":\"NumPy Reference\",\"url\":\"https://numpy.org/doc/stable/reference/\"}],"
             "\"supported_features\":[%s]}",
             DRUPE_VERSION, length, PY_VERSION, DRUPE_VERSION, length, PY_VERSION, PY_MAJOR_VERSION,
             PY_MINOR_VERSION, features);
}

int jk_kernel_open(const char *connection_file, const char *features, char *problem, size_t problem_size)
{
    if (atomic_load(&kernel.server)) {
        snprintf(problem, problem_size, "the kernel is open already: a process can have only one");
        return -1;
    }
    kernel_describe(features);
    executor.debug = strstr(features, "\"debugger\"") ? jk_debug_push : NULL;
    executor.subshell_open = strstr(features, "\"kernel subshells\"") ? jk_executor_subshell_open : NULL;
    kernel.main_thread = pthread_self();
    atomic_store(&kernel.shutdown, 0);
    jk_server *server = jk_server_open(connection_file, &executor, problem, problem_size);
    if (!server) return -1;
    atomic_store(&kernel.server, server);
    return 0;
}

void jk_kernel_close(void)
{
    jk_server *server = atomic_exchange(&kernel.server, NULL);
    if (!server) return;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 1000 && atomic_load(&kernel.users) > 0; i++) nanosleep(&pause, NULL);
    /* Someone stuck inside: its memory must stay, and the process is about to end. */
    if (atomic_load(&kernel.users) == 0) jk_server_close(server);
}

jk_server *jk_kernel_enter(void)
{
    atomic_fetch_add(&kernel.users, 1);
    jk_server *server = atomic_load(&kernel.server);
    if (!server) atomic_fetch_sub(&kernel.users, 1);
    return server;
}

void jk_kernel_leave(void)
{
    atomic_fetch_sub(&kernel.users, 1);
}

jk_request *jk_kernel_take_request(void)
{
    jk_request *request = kernel.parked;
    kernel.parked = NULL;
    return request;
}

void jk_kernel_interrupted(void)
{
    jk_server *server = jk_kernel_enter();
    if (!server) return;
    jk_server_interrupted(server);
    jk_kernel_leave();
}

pthread_t jk_kernel_main_thread(void)
{
    return kernel.main_thread;
}

int jk_kernel_shutdown_state(void)
{
    return atomic_load(&kernel.shutdown);
}
