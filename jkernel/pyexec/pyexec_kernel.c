/* The process's one kernel, who may still use its server, and what the server calls.
 *
 * Everything here runs without the GIL and mostly on the server's threads, so it is plain atomics. `users`
 * counts the threads inside a server function; closing swaps the pointer out first and then waits for them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jkernel/pyexec/pyexec.h"

static struct {
    _Atomic(jk_server *) server;
    atomic_int users;
    atomic_int shutdown; /* as jk_kernel_shutdown_state() */
    char *info;          /* the language's part of kernel_info_reply; NULL before the first opening */
    pthread_t main_thread;
} kernel;

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

const char *jk_kernel_info(void)
{
    return kernel.info ? kernel.info : "";
}

/* --- The executor's table: what the server calls, mostly on its threads ------------------------------------
 */

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
    .interrupt = executor_interrupt,
    .shutdown = executor_shutdown,
    .devices = executor_devices,
    .answer = executor_answer,
    .holding = jk_holding,
};

/* --- Opening -----------------------------------------------------------------------------------------------
 */

int jk_kernel_open(const char *connection_file, const char *info, char *problem, size_t problem_size)
{
    if (atomic_load(&kernel.server)) {
        snprintf(problem, problem_size, "the kernel is open already: a process can have only one");
        return -1;
    }
    if (info[0] != '{') {
        snprintf(problem, problem_size, "the language's part of kernel_info_reply must be a JSON object");
        return -1;
    }
    /* An earlier one stays: a server that ends may still answer from it. */
    if (!kernel.info || strcmp(kernel.info, info) != 0) kernel.info = strdup(info);
    if (!kernel.info) {
        snprintf(problem, problem_size, "no memory to start the kernel");
        return -1;
    }
    executor.kernel_info = kernel.info;
    executor.debugger_open = strstr(info, "\"debugger\"") ? jk_executor_debugger_open : NULL;
    executor.subshell_open = strstr(info, "\"kernel subshells\"") ? jk_executor_subshell_open : NULL;
    kernel.main_thread = pthread_self();
    atomic_store(&kernel.shutdown, 0);
    jk_server *server = jk_server_open(connection_file, &executor, problem, problem_size);
    if (!server) return -1;
    atomic_store(&kernel.server, server);
    return 0;
}
