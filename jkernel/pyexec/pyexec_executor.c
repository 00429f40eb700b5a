/* The executor that the server is opened with: what it calls, mostly on its threads and without the GIL. */
#include <stdio.h>
#include <string.h>

#include "jkernel/pyexec/pyexec.h"

static void executor_shutdown(void *self, bool restart)
{
    jk_kernel_note_shutdown(restart);
    jk_sigint_send(self); /* a running cell makes way; harmless when idle */
    jk_server *server = jk_kernel_enter();
    if (!server) return;
    jk_server_wake(server);
    jk_kernel_leave();
}

static jk_executor executor = {
    .interrupt = jk_sigint_send,
    .shutdown = executor_shutdown,
    .devices = jk_link_usage,
    .answer = jk_link_answer,
    .holding = jk_holding,
};

int jk_executor_open(const char *connection_file, const char *info, char *problem, size_t problem_size)
{
    if (jk_kernel_is_open()) {
        snprintf(problem, problem_size, "the kernel is open already: a process can have only one");
        return -1;
    }
    if (info[0] != '{') {
        snprintf(problem, problem_size, "the language's part of kernel_info_reply must be a JSON object");
        return -1;
    }
    /* An earlier one stays: a server that ends may still answer from it. */
    const char *before = executor.kernel_info;
    const char *copy = before && strcmp(before, info) == 0 ? before : strdup(info);
    if (!copy) {
        snprintf(problem, problem_size, "no memory to start the kernel");
        return -1;
    }
    executor.kernel_info = copy;
    executor.debugger_open = strstr(info, "\"debugger\"") ? jk_workers_debugger_open : NULL;
    executor.subshell_open = strstr(info, "\"kernel subshells\"") ? jk_workers_subshell_open : NULL;
    return jk_kernel_open(connection_file, &executor, problem, problem_size);
}

const char *jk_executor_info(void)
{
    return executor.kernel_info ? executor.kernel_info : "";
}
