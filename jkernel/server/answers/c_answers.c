/* Requests that C answers, whatever the language does. */
#include "jkernel/server/answers/answers_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void jk_answer(jk_server *server, jk_channel channel, const jk_message *message, jk_bytes content)
{
    char type[128];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    jk_reply_type(message->type, type, sizeof type);
    jk_envelope envelope = {.to = message, .parent = message->parts[JK_HEADER], .content = content};
    jk_channel_send(server, channel, type, now, &envelope);
}

/* Whether the request ends something, and was sent to end it in a kernel that is dead. Its client has been
 * waiting for the ports to be answered again: a manager that restarts a kernel sends an interrupt and a
 * shutdown_request to the old one first. */
static bool is_late(jk_server *server, const jk_message *message)
{
    bool ends =
        strcmp(message->type, "interrupt_request") == 0 || strcmp(message->type, "shutdown_request") == 0;
    if (!ends || !jk_life_not_ours(server, message)) return false;
    jk_log("dropped: %s was sent before this kernel began, to the one before", message->type);
    return true;
}

/* One request, on the thread that owns the socket of its channel. */
typedef struct asked {
    jk_server *server;
    jk_channel channel;
    const jk_message *message;
    jk_parent *parent;
} asked;

static void answer_text(const asked *call, const char *text)
{
    jk_answer(call->server, call->channel, call->message, (jk_bytes){text, strlen(text)});
}

/* Clears `content`. */
static void answer_buffer(const asked *call, jk_buffer *content)
{
    if (!content->failed)
        jk_answer(call->server, call->channel, call->message, (jk_bytes){content->data, content->size});
    jk_buffer_clear(content);
}

static void answer_kernel_info(const asked *call)
{
    const char *info = call->server->executor->kernel_info;
    jk_buffer content = {0};
    jk_buffer_append_text(&content, "{\"status\":\"ok\",\"protocol_version\":\"" JK_PROTOCOL_VERSION "\"");
    info += strcspn(info, "{") + 1;
    info += strspn(info, " \t\r\n");
    if (*info != '}') jk_buffer_append(&content, ",", 1);
    jk_buffer_append_text(&content, info);
    answer_buffer(call, &content);
}

static void answer_connect(const asked *call)
{
    const int *ports = call->server->config->ports;
    char text[200];
    snprintf(text, sizeof text,
             "{\"status\":\"ok\",\"shell_port\":%d,\"iopub_port\":%d,\"stdin_port\":%d,\"control_port\":%d,"
             "\"hb_port\":%d}",
             ports[JK_SHELL], ports[JK_IOPUB], ports[JK_STDIN], ports[JK_CONTROL], ports[JK_HEARTBEAT]);
    answer_text(call, text);
}

static void answer_shutdown(const asked *call)
{
    const char *text = jk_message_flag(call->message, "restart") ? "{\"status\":\"ok\",\"restart\":true}"
                                                                 : "{\"status\":\"ok\",\"restart\":false}";
    answer_text(call, text);
    jk_entry *copy = jk_entry_create(JK_ENTRY_PUBLISH, "shutdown_reply", call->parent);
    if (copy) jk_buffer_append_text(&copy->content, text);
    jk_outbox_push(call->server, copy);
}

static void answer_usage(const asked *call)
{
    const jk_executor *executor = call->server->executor;
    char devices[8192];
    size_t size = executor->devices ? executor->devices(executor->self, devices, sizeof devices) : 0;
    char *text = jk_usage_reply(call->server->usage, devices, size > sizeof devices ? 0 : size);
    if (text) answer_text(call, text);
    free(text);
}

static void answer_subshells(const asked *call)
{
    jk_buffer content = {0};
    jk_subshell_answer(call->server, call->message, &content);
    answer_buffer(call, &content);
}

static void answer_interrupt(const asked *call)
{
    jk_interrupt(call->server);
    answer_text(call, "{\"status\":\"ok\"}");
}

static const struct {
    const char *type;
    void (*answer)(const asked *call);
} answered[] = {
    {"kernel_info_request", answer_kernel_info},
    {"connect_request", answer_connect},
    {"interrupt_request", answer_interrupt},
    {"shutdown_request", answer_shutdown},
    {"usage_request", answer_usage},
    {"create_subshell_request", answer_subshells},
    {"delete_subshell_request", answer_subshells},
    {"list_subshell_request", answer_subshells},
};
#define ANSWERED (sizeof answered / sizeof answered[0])

bool jk_answer_here(jk_server *server, jk_channel channel, const jk_message *message)
{
    size_t i = 0;
    while (i < ANSWERED && strcmp(message->type, answered[i].type) != 0) i++;
    if (i == ANSWERED) return false;
    if (is_late(server, message)) return true;
    jk_parent *parent = jk_parent_create(message->parts[JK_HEADER]);
    if (!parent) return true;
    jk_status_busy(server, parent, false);
    answered[i].answer(&(asked){server, channel, message, parent});
    jk_status_idle(server, parent, NULL);
    if (answered[i].answer == answer_kernel_info && channel == JK_SHELL) jk_status_answered(server, parent);
    jk_parent_release(parent);
    /* Last: the executor may close the server at once. */
    if (answered[i].answer == answer_shutdown) jk_shutdown(server, jk_message_flag(message, "restart"), 0);
    return true;
}
