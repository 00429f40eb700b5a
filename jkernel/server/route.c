/* What happens to a request that arrived: some are answered here, on the thread that owns the socket and
 * without the language, so that they are answered while the language is stuck; the others go to the executor.
 */
#include "jkernel/server/router.h"
#include "jkernel/server/usage.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef enum duty {
    TO_EXECUTOR,
    KERNEL_INFO,
    CONNECT,
    INTERRUPT,
    SHUTDOWN,
    USAGE,
    SUBSHELLS,
    DEBUG,
    UNKNOWN
} duty;

static duty duty_of(const char *type)
{
    static const struct {
        const char *type;
        duty duty;
    } duties[] = {
        {"execute_request", TO_EXECUTOR},
        {"complete_request", TO_EXECUTOR},
        {"inspect_request", TO_EXECUTOR},
        {"history_request", TO_EXECUTOR},
        {"is_complete_request", TO_EXECUTOR},
        {"comm_info_request", TO_EXECUTOR},
        {"comm_open", TO_EXECUTOR},
        {"comm_msg", TO_EXECUTOR},
        {"comm_close", TO_EXECUTOR},
        {"kernel_info_request", KERNEL_INFO},
        {"connect_request", CONNECT},
        {"interrupt_request", INTERRUPT},
        {"shutdown_request", SHUTDOWN},
        {"usage_request", USAGE},
        {"debug_request", DEBUG},
        {"create_subshell_request", SUBSHELLS},
        {"delete_subshell_request", SUBSHELLS},
        {"list_subshell_request", SUBSHELLS},
    };
    for (size_t i = 0; i < sizeof duties / sizeof duties[0]; i++) {
        if (strcmp(type, duties[i].type) == 0) return duties[i].duty;
    }
    return UNKNOWN;
}

void jk_answer(jk_server *server, jk_channel channel, const jk_message *message, jk_slice content)
{
    char type[128];
    struct timespec now;
    jk_buffer header = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    jk_reply_type(message->type, type, sizeof type);
    jk_session_header(&server->session, type, now, &header);
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

static void answer_kernel_info(jk_server *server, jk_channel channel, const jk_message *message)
{
    const char *info = server->executor->kernel_info(server->executor->self);
    jk_buffer content = {0};
    jk_buffer_append_text(&content, "{\"status\":\"ok\",\"protocol_version\":\"" JK_PROTOCOL_VERSION "\"");
    info += strcspn(info, "{") + 1;
    info += strspn(info, " \t\r\n");
    if (*info != '}') jk_buffer_append(&content, ",", 1);
    jk_buffer_append_text(&content, info);
    if (!content.failed) jk_answer(server, channel, message, (jk_slice){content.data, content.size});
    jk_buffer_clear(&content);
}

static void answer_connect(jk_server *server, jk_channel channel, const jk_message *message)
{
    const int *ports = server->config.ports;
    char text[200];
    snprintf(text, sizeof text,
             "{\"status\":\"ok\",\"shell_port\":%d,\"iopub_port\":%d,\"stdin_port\":%d,\"control_port\":%d,"
             "\"hb_port\":%d}",
             ports[JK_SHELL], ports[JK_IOPUB], ports[JK_STDIN], ports[JK_CONTROL], ports[JK_HEARTBEAT]);
    answer_text(server, channel, message, text);
}

static bool answer_shutdown(jk_server *server, jk_channel channel, const jk_message *message,
                            jk_parent *parent)
{
    bool restart = jk_message_flag(message, "restart");
    const char *text =
        restart ? "{\"status\":\"ok\",\"restart\":true}" : "{\"status\":\"ok\",\"restart\":false}";
    answer_text(server, channel, message, text);
    jk_entry *copy = jk_entry_create(JK_ENTRY_PUBLISH, "shutdown_reply", parent);
    if (copy) jk_buffer_append_text(&copy->content, text);
    jk_outbox_push(server, copy);
    return restart;
}

static void answer_usage(jk_server *server, jk_channel channel, const jk_message *message)
{
    const jk_executor *executor = server->executor;
    char devices[8192];
    jk_buffer content = {0};
    size_t size = executor->devices ? executor->devices(executor->self, devices, sizeof devices) : 0;
    jk_buffer_append_text(&content, "{\"status\":\"ok\",");
    jk_usage_write(server->usage, (jk_slice){devices, size > sizeof devices ? 0 : size}, &content);
    jk_buffer_append(&content, "}", 1);
    if (!content.failed) jk_answer(server, channel, message, (jk_slice){content.data, content.size});
    jk_buffer_clear(&content);
}

static void answer_subshells(jk_server *server, jk_channel channel, const jk_message *message)
{
    jk_buffer content = {0};
    jk_subshell_answer(server, message, &content);
    if (!content.failed) jk_answer(server, channel, message, (jk_slice){content.data, content.size});
    jk_buffer_clear(&content);
}

/* Answer between busy and idle. */
static void serve(jk_server *server, jk_channel channel, const jk_message *message, duty what)
{
    jk_parent *parent = jk_parent_create(jk_bytes_of(jk_message_header(message)));
    if (!parent) return;
    bool restart = false;
    jk_status_busy(server, parent, false);
    switch (what) {
    case KERNEL_INFO: answer_kernel_info(server, channel, message); break;
    case CONNECT: answer_connect(server, channel, message); break;
    case INTERRUPT:
        jk_interrupt(server);
        answer_text(server, channel, message, "{\"status\":\"ok\"}");
        break;
    case SHUTDOWN: restart = answer_shutdown(server, channel, message, parent); break;
    case USAGE: answer_usage(server, channel, message); break;
    case SUBSHELLS: answer_subshells(server, channel, message); break;
    case DEBUG:
    case TO_EXECUTOR:
    case UNKNOWN: jk_log("%s is not a request this kernel knows", message->type); break;
    }
    jk_status_idle(server, parent, NULL);
    if (what == KERNEL_INFO && channel == JK_SHELL) jk_status_answered(server, parent);
    jk_parent_release(parent);
    /* Last: the executor may close the server at once. */
    if (what == SHUTDOWN) jk_shutdown(server, restart, 0);
}

static const char *no_subshell(const jk_server *server)
{
    return server->executor->subshell_open
               ? "there is no subshell with this subshell_id; create one, or send the request without it"
               : "this kernel runs without subshells; send the request without subshell_id";
}

static void route(jk_server *server, jk_channel channel, jk_message *message)
{
    duty what = duty_of(message->type);
    if (what == DEBUG) {
        jk_debug_request(server, channel, message);
        return;
    }
    if (what != TO_EXECUTOR) {
        serve(server, channel, message, what);
        jk_message_release(message);
        return;
    }
    jk_request *request = jk_request_create(server, message, channel);
    if (!request) {
        jk_log("no memory for a request; it is lost");
        return;
    }
    jk_inbox *inbox = &server->inbox;
    if (message->subshell && channel == JK_SHELL) {
        request->subshell = jk_subshell_find(server, message->subshell);
        inbox = request->subshell ? &request->subshell->inbox : NULL;
    }
    if (inbox == &server->inbox && channel == JK_SHELL) jk_shell_announce(server, request);
    if (inbox && jk_inbox_push(inbox, request)) return;
    if (inbox == &server->inbox) {
        jk_request_release(request);
    } else {
        jk_request_refuse(request, no_subshell(server));
    }
}

int jk_route_receive(jk_server *server, jk_channel channel, int most)
{
    int count = 0;
    jk_channel_read(server, channel);
    if (server->routers[channel]) most = INT_MAX; /* that was a part of what there is */
    while (count < most) {
        jk_frames frames;
        int result = jk_channel_receive(server, channel, &frames);
        if (result == 0 || (result < 0 && zmq_errno() == ETERM)) break;
        count++;
        if (result < 0) {
            jk_log("%s: dropped a message: %s", jk_channel_name(channel), zmq_strerror(zmq_errno()));
            continue;
        }
        const char *problem;
        jk_message *message = jk_message_parse(&frames, server->signer, server->replay, &problem);
        if (message) {
            route(server, channel, message);
        } else {
            jk_log("%s: dropped a message: %s", jk_channel_name(channel), problem);
        }
    }
    return count;
}
