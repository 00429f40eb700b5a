/* The executor's table: what the server calls. Everything here runs without the GIL and mostly on the
 * server's threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jkernel/pyexec/pyexec.h"

static jk_executor executor; /* below */

const char *jk_kernel_info(void)
{
    return executor.kernel_info;
}

/* The server signals the child processes itself. */
static void executor_interrupt(void *self)
{
    (void)self;
    jk_sigint_send(jk_kernel_main_thread());
}

static void executor_shutdown(void *self, bool restart)
{
    (void)self;
    jk_kernel_set_shutdown(restart);
    jk_sigint_send(jk_kernel_main_thread()); /* a running cell makes way; harmless when idle */
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
    .interrupt = executor_interrupt,
    .shutdown = executor_shutdown,
    .devices = executor_devices,
    .answer = executor_answer,
    .holding = jk_holding,
};

int jk_executor_open(const char *connection_file, const char *info, char *problem, size_t problem_size)
{
    /* While a kernel is open, its threads read the table. */
    if (!jk_kernel_is_open()) {
        free((char *)(uintptr_t)executor.kernel_info);
        executor.kernel_info = strdup(info);
        executor.debugger_open = strstr(info, "\"debugger\"") ? jk_executor_debugger_open : NULL;
        executor.subshell_open = strstr(info, "\"kernel subshells\"") ? jk_executor_subshell_open : NULL;
    }
    if (executor.kernel_info) return jk_kernel_open(connection_file, &executor, problem, problem_size);
    snprintf(problem, problem_size, "no memory to start the kernel");
    return -1;
}
