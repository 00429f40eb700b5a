/* The executor's table: what the server calls. Everything here runs without the GIL and mostly on the
 * server's threads. */
#include <stdio.h>
#include <string.h>

#include "jkernel/pyexec/pyexec.h"

static char info[2048];

static const char *executor_kernel_info(void *self)
{
    (void)self;
    return info;
}

const char *jk_kernel_info(void)
{
    return info;
}

static void executor_handle(void *self, jk_request *request)
{
    (void)self;
    jk_kernel_park_request(request);
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
    snprintf(info, sizeof info,
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

int jk_executor_open(const char *connection_file, const char *features, char *problem, size_t problem_size)
{
    /* While a kernel is open, its threads read both. */
    if (!jk_kernel_is_open()) {
        kernel_describe(features);
        executor.debug = strstr(features, "\"debugger\"") ? jk_debug_push : NULL;
        executor.subshell_open = strstr(features, "\"kernel subshells\"") ? jk_executor_subshell_open : NULL;
    }
    return jk_kernel_open(connection_file, &executor, problem, problem_size);
}
