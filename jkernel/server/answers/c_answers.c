/* Requests that C answers, whatever the language does. */
#include "jkernel/server/answers/answers_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void jk_answer(jk_server *server, jk_channel channel, const jk_message *message, jk_slice content)
{
    char type[128];
    struct timespec now;
    jk_buffer header = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    jk_reply_type(message->type, type, sizeof type);
    jk_session_header(server->session, type, now, &header);
    jk_envelope envelope = {
        .to = message,
        .header = {header.data, header.size},
        .parent = jk_message_header(message),
        .content = content,
    };
    if (header.failed || jk_channel_send(server, channel, &envelope) != 0) {
        jk_log("cannot send a %s: %s", type, zmq_strerror(zmq_errno()));
    }
    jk_buffer_clear(&header);
}

static void answer_text(jk_server *server, jk_channel channel, const jk_message *message, const char *text)
{
    jk_answer(server, channel, message, (jk_slice){text, strlen(text)});
}

/* Clears `content`. */
static void answer_buffer(jk_server *server, jk_channel channel, const jk_message *message,
                          jk_buffer *content)
{
    if (!content->failed) jk_answer(server, channel, message, (jk_slice){content->data, content->size});
    jk_buffer_clear(content);
}

static void answer_kernel_info(jk_server *server, jk_channel channel, const jk_message *message,
                               jk_parent *parent)
{
    (void)parent;
    const char *info = server->executor->kernel_info;
    jk_buffer content = {0};
    jk_buffer_append_text(&content, "{\"status\":\"ok\",\"protocol_version\":\"" JK_PROTOCOL_VERSION "\"");
    info += strcspn(info, "{") + 1;
    info += strspn(info, " \t\r\n");
    if (*info != '}') jk_buffer_append(&content, ",", 1);
    jk_buffer_append_text(&content, info);
    answer_buffer(server, channel, message, &content);
}

static void answer_connect(jk_server *server, jk_channel channel, const jk_message *message,
                           jk_parent *parent)
{
    (void)parent;
    const int *ports = server->config->ports;
    char text[200];
    snprintf(text, sizeof text,
             "{\"status\":\"ok\",\"shell_port\":%d,\"iopub_port\":%d,\"stdin_port\":%d,\"control_port\":%d,"
             "\"hb_port\":%d}",
             ports[JK_SHELL], ports[JK_IOPUB], ports[JK_STDIN], ports[JK_CONTROL], ports[JK_HEARTBEAT]);
    answer_text(server, channel, message, text);
}

static void answer_shutdown(jk_server *server, jk_channel channel, const jk_message *message,
                            jk_parent *parent)
{
    const char *text = jk_message_flag(message, "restart") ? "{\"status\":\"ok\",\"restart\":true}"
                                                           : "{\"status\":\"ok\",\"restart\":false}";
    answer_text(server, channel, message, text);
    jk_entry *copy = jk_entry_create(JK_ENTRY_PUBLISH, "shutdown_reply", parent);
    if (copy) jk_buffer_append_text(&copy->content, text);
    jk_outbox_push(server, copy);
}

static void answer_usage(jk_server *server, jk_channel channel, const jk_message *message, jk_parent *parent)
{
    (void)parent;
    const jk_executor *executor = server->executor;
    char devices[8192];
    size_t size = executor->devices ? executor->devices(executor->self, devices, sizeof devices) : 0;
    char *text = jk_usage_reply(server->usage, devices, size > sizeof devices ? 0 : size);
    if (text) answer_text(server, channel, message, text);
    free(text);
}

static void answer_subshells(jk_server *server, jk_channel channel, const jk_message *message,
                             jk_parent *parent)
{
    (void)parent;
    jk_buffer content = {0};
    jk_subshell_answer(server, message, &content);
    answer_buffer(server, channel, message, &content);
}

static void answer_interrupt(jk_server *server, jk_channel channel, const jk_message *message,
                             jk_parent *parent)
{
    (void)parent;
    jk_interrupt(server);
    answer_text(server, channel, message, "{\"status\":\"ok\"}");
}

static const struct {
    const char *type;
    void (*answer)(jk_server *server, jk_channel channel, const jk_message *message, jk_parent *parent);
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
    jk_parent *parent = jk_parent_create(jk_bytes_of(jk_message_header(message)));
    if (!parent) return true;
    jk_status_busy(server, parent, false);
    answered[i].answer(server, channel, message, parent);
    jk_status_idle(server, parent, NULL);
    if (answered[i].answer == answer_kernel_info && channel == JK_SHELL) jk_status_answered(server, parent);
    jk_parent_release(parent);
    /* Last: the executor may close the server at once. */
    if (answered[i].answer == answer_shutdown) jk_shutdown(server, jk_message_flag(message, "restart"), 0);
    return true;
}
