/* An executor without a language; the header has its statements. */
#include "fake_executor.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef enum outcome { CONTINUE, FAILED, INTERRUPTED, LATER } outcome;

typedef struct fake_cell {
    fake_executor *fake;
    jk_request *request;
    bool silent, stop_on_error;
} fake_cell;

static jk_bytes text_bytes(const char *text)
{
    return (jk_bytes){text, strlen(text)};
}

static void sleep_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR) continue;
}

static void wait_release(fake_executor *fake)
{
    while (sem_wait(&fake->releases) != 0 && errno == EINTR) continue;
}

void fake_executor_release(fake_executor *fake)
{
    sem_post(&fake->releases);
}

static void print(fake_cell *cell, jk_stream stream, const char *text)
{
    char line[4096];
    int size = snprintf(line, sizeof line, "%s\n", text);
    jk_stream_write(cell->fake->server, jk_request_parent(cell->request), stream, line, (size_t)size);
}

static outcome run_sleep(fake_cell *cell, long ms)
{
    for (long i = 0; i < ms; i++) {
        if (atomic_exchange(&cell->fake->interrupted, false)) return INTERRUPTED;
        sleep_ms(1);
    }
    return CONTINUE;
}

static outcome run_flood(fake_cell *cell, long count)
{
    char line[200];
    for (long i = 0; i < count; i++) {
        int used = snprintf(line, sizeof line, "%07ld", i);
        memset(line + used, 'x', 182);
        line[189] = '\n';
        jk_stream_write(cell->fake->server, jk_request_parent(cell->request), JK_STDOUT, line, 190);
    }
    return CONTINUE;
}

static outcome run_input(fake_cell *cell, const char *prompt)
{
    char content[512], *answer = NULL;
    size_t size = 0;
    snprintf(content, sizeof content, "{\"prompt\":\"%s\",\"password\":false}", prompt);
    if (jk_input_ask(cell->fake->server, cell->request, text_bytes(content)) != 0) return FAILED;
    int result = JK_INPUT_TIMEOUT;
    while (result == JK_INPUT_TIMEOUT) {
        if (atomic_exchange(&cell->fake->interrupted, false)) return INTERRUPTED;
        result = jk_input_wait(cell->fake->server, 50, &answer, &size);
    }
    if (result != 0) return FAILED;
    print(cell, JK_STDOUT, answer);
    free(answer);
    return CONTINUE;
}

static outcome run_fork(fake_cell *cell, const char *text)
{
    pid_t child = fork();
    if (child == 0) {
        print(cell, JK_STDOUT, text);
        _exit(jk_publish(cell->fake->server, NULL, "display_data", text_bytes("{}"), text_bytes(""), NULL,
                         0) == -1
                  ? 0
                  : 1);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? CONTINUE : FAILED;
}

static outcome run_display(fake_cell *cell, const char *text)
{
    char content[512];
    snprintf(content, sizeof content, "{\"data\":{\"text/plain\":\"%s\"},\"metadata\":{}}", text);
    jk_publish(cell->fake->server, jk_request_parent(cell->request), "display_data", text_bytes(content),
               text_bytes(""), NULL, 0);
    return CONTINUE;
}

static outcome run_statement(fake_cell *cell, const char *name, const char *rest)
{
    if (strcmp(name, "print") == 0) {
        print(cell, JK_STDOUT, rest);
    } else if (strcmp(name, "eprint") == 0) {
        print(cell, JK_STDERR, rest);
    } else if (strcmp(name, "write") == 0) {
        char line[512];
        int size = snprintf(line, sizeof line, "%s\n", rest);
        if (write(STDOUT_FILENO, line, (size_t)size) != size) return FAILED;
    } else if (strcmp(name, "cprint") == 0) {
        printf("%s\n", rest);
    } else if (strcmp(name, "display") == 0) {
        return run_display(cell, rest);
    } else if (strcmp(name, "flood") == 0) {
        return run_flood(cell, atol(rest));
    } else if (strcmp(name, "sleep") == 0) {
        return run_sleep(cell, atol(rest));
    } else if (strcmp(name, "stuck") == 0) {
        wait_release(cell->fake);
    } else if (strcmp(name, "later") == 0) {
        return LATER;
    } else if (strcmp(name, "input") == 0) {
        return run_input(cell, rest);
    } else if (strcmp(name, "fork") == 0) {
        return run_fork(cell, rest);
    } else if (*name) {
        return FAILED;
    }
    return CONTINUE;
}

static outcome run_code(fake_cell *cell, const char *code)
{
    outcome result = CONTINUE;
    while (result == CONTINUE && *code) {
        char line[1024], *rest;
        size_t size = strcspn(code, "\n");
        snprintf(line, sizeof line, "%.*s", (int)size, code);
        rest = line + strcspn(line, " ");
        if (*rest) *rest++ = '\0';
        result = run_statement(cell, line, rest);
        code += size + (code[size] == '\n');
    }
    return result;
}

static void finish(fake_cell *cell, outcome result)
{
    fake_executor *fake = cell->fake;
    char content[256];
    if (result == CONTINUE) {
        snprintf(content, sizeof content,
                 "{\"status\":\"ok\",\"execution_count\":%ld,\"payload\":[],\"user_expressions\":{}}",
                 atomic_load(&fake->count));
    } else {
        const char *name = result == INTERRUPTED ? "KeyboardInterrupt" : "Error";
        snprintf(content, sizeof content,
                 "{\"status\":\"error\",\"execution_count\":%ld,\"ename\":\"%s\",\"evalue\":\"\","
                 "\"traceback\":[]}",
                 atomic_load(&fake->count), name);
        if (!cell->silent) {
            jk_publish(fake->server, jk_request_parent(cell->request), "error", text_bytes(content),
                       text_bytes(""), NULL, 0);
        }
    }
    bool aborts = result != CONTINUE && cell->stop_on_error && !cell->silent;
    jk_request_reply(cell->request, text_bytes(content), text_bytes("{\"started\":\"now\"}"),
                     aborts ? JK_REPLY_ABORT_QUEUED : 0);
}

static void *finish_later(void *argument)
{
    fake_cell *kept = argument;
    wait_release(kept->fake);
    finish(kept, CONTINUE);
    free(kept);
    return NULL;
}

static void later_join(fake_executor *fake)
{
    if (fake->later_started) pthread_join(fake->later, NULL);
    fake->later_started = false;
}

static void execute(fake_executor *fake, jk_request *request, json_t *content)
{
    json_t *stop = json_object_get(content, "stop_on_error");
    const char *code = json_string_value(json_object_get(content, "code"));
    fake_cell cell = {fake, request, json_is_true(json_object_get(content, "silent")),
                      !stop || json_is_true(stop)};
    atomic_store(&fake->interrupted, false);
    atomic_fetch_add(&fake->executed, 1);
    if (!cell.silent) {
        long count = atomic_fetch_add(&fake->count, 1) + 1;
        jk_server_set_execution_count(fake->server, count);
        char input[64];
        snprintf(input, sizeof input, "{\"code\":\"\",\"execution_count\":%ld}", count);
        jk_publish(fake->server, jk_request_parent(request), "execute_input", text_bytes(input),
                   text_bytes(""), NULL, 0);
    }
    outcome result = run_code(&cell, code ? code : "error");
    if (result != LATER) {
        finish(&cell, result);
        return;
    }
    later_join(fake);
    fake_cell *kept = malloc(sizeof *kept);
    if (kept) *kept = cell;
    fake->later_started = kept && pthread_create(&fake->later, NULL, finish_later, kept) == 0;
    if (!fake->later_started) {
        finish(&cell, FAILED);
        free(kept);
    }
}

static void fake_handle(void *self, jk_request *request)
{
    const char *type = jk_request_type(request);
    if (strncmp(type, "comm_", 5) == 0 && strcmp(type, "comm_info_request") != 0) {
        jk_request_reply(request, text_bytes(""), text_bytes(""), JK_REPLY_NONE);
        return;
    }
    if (strcmp(type, "debug_request") == 0) {
        static const char text[] =
            "{\"type\":\"response\",\"success\":true,\"message\":\"from the executor\"}";
        jk_request_reply(request, text_bytes(text), text_bytes(""), 0);
        return;
    }
    if (strcmp(type, "execute_request") != 0) {
        char content[256];
        snprintf(content, sizeof content, "{\"status\":\"ok\",\"type\":\"%s\"}", type);
        jk_request_reply(request, text_bytes(content), text_bytes(""), 0);
        return;
    }
    jk_bytes bytes = jk_request_part(request, JK_CONTENT);
    json_error_t error;
    json_t *content = json_loadb(bytes.data, bytes.size, 0, &error);
    execute(self, request, content);
    json_decref(content);
}

static void fake_interrupt(void *self)
{
    fake_executor *fake = self;
    atomic_store(&fake->interrupted, true);
    atomic_fetch_add(&fake->interrupts, 1);
}

static void fake_shutdown(void *self, bool restart)
{
    fake_executor *fake = self;
    atomic_fetch_add(&fake->shutdowns, 1);
    if (restart) atomic_fetch_add(&fake->restarts, 1);
    atomic_store(&fake->stop, true);
    if (atomic_load(&fake->running)) jk_server_wake(fake->server);
}

static size_t fake_devices(void *self, char *json, size_t size)
{
    static const char devices[] = "[{\"name\":\"fake\",\"memory_used\":1}]";
    (void)self;
    if (size < sizeof devices) return 0;
    memcpy(json, devices, sizeof devices - 1);
    return sizeof devices - 1;
}

void fake_executor_init(fake_executor *fake)
{
    memset(fake, 0, sizeof *fake);
    sem_init(&fake->releases, 0, 0);
    fake->executor = (jk_executor){
        .self = fake,
        .kernel_info = "{\"implementation\":\"fake\"}",
        .interrupt = fake_interrupt,
        .shutdown = fake_shutdown,
        .devices = fake_devices,
    };
}

/* --- Subshells ---------------------------------------------------------------------------------------------
 */

typedef struct fake_shell {
    fake_executor *fake;
    jk_subshell *subshell;
} fake_shell;

static void *subshell_run(void *argument)
{
    fake_shell *shell = argument;
    struct pollfd item = {.fd = jk_subshell_fd(shell->subshell), .events = POLLIN};
    bool ended = false;
    while (!ended) {
        jk_request *request = jk_subshell_next(shell->subshell, &ended);
        if (request) {
            fake_handle(shell->fake, request);
        } else if (!ended) {
            poll(&item, 1, -1);
        }
    }
    jk_subshell_end(shell->subshell, "its thread has ended");
    jk_subshell_release(shell->subshell);
    free(shell);
    return NULL;
}

static int fake_subshell_open(void *self, jk_subshell *subshell)
{
    fake_executor *fake = self;
    int number = atomic_load(&fake->nsubshells);
    fake_shell *shell = malloc(sizeof *shell);
    if (!shell || atomic_load(&fake->refuses) || number == 64) {
        free(shell);
        return -1;
    }
    *shell = (fake_shell){fake, subshell};
    fake->subshells[number] = jk_subshell_retain(subshell);
    if (pthread_create(&fake->subshell_threads[number], NULL, subshell_run, shell) != 0) {
        jk_subshell_release(subshell);
        free(shell);
        return -1;
    }
    atomic_store(&fake->nsubshells, number + 1);
    return 0;
}

void fake_executor_with_subshells(fake_executor *fake)
{
    fake->executor.subshell_open = fake_subshell_open;
}

void fake_executor_with_debugger(fake_executor *fake)
{
    fake->executor.debugger_open = fake_subshell_open;
}

void fake_executor_run(fake_executor *fake)
{
    fake->main = pthread_self();
    atomic_store(&fake->running, true);
    struct pollfd item = {.fd = jk_server_request_fd(fake->server), .events = POLLIN};
    while (!atomic_load(&fake->stop)) {
        jk_request *request = jk_server_next(fake->server);
        if (request) {
            fake_handle(fake, request);
        } else {
            poll(&item, 1, -1);
        }
    }
    later_join(fake);
    for (int i = 0; i < atomic_load(&fake->nsubshells); i++) {
        jk_subshell_end(fake->subshells[i], "the executor has ended");
        pthread_join(fake->subshell_threads[i], NULL);
        jk_subshell_release(fake->subshells[i]);
    }
}
