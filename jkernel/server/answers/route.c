/* Where a message that arrived goes: to an answer of C, to the debugger, or into the inbox of its shell. */
#include "jkernel/server/answers/answers_room.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static const char *no_subshell(const jk_server *server)
{
    return server->executor->subshell_open
               ? "there is no subshell with this subshell_id; create one, or send the request without it"
               : "this kernel runs without subshells; send the request without subshell_id";
}

static bool is_for_executor(const char *type)
{
    static const char *const types[] = {
        "execute_request",   "complete_request", "inspect_request", "history_request", "is_complete_request",
        "comm_info_request", "comm_open",        "comm_msg",        "comm_close"};
    size_t i = 0, count = sizeof types / sizeof types[0];
    while (i < count && strcmp(type, types[i]) != 0) i++;
    return i < count;
}

/* Nobody performs it, but its client hears that it came. */
static void ignore(jk_server *server, const jk_message *message)
{
    jk_parent *parent = jk_parent_create(message->parts[JK_HEADER]);
    if (!parent) return;
    jk_log("%s is not a request this kernel knows", message->type);
    jk_status_around(server, parent, NULL);
    jk_parent_release(parent);
}

/* Takes the message. */
static void queue(jk_server *server, jk_channel channel, jk_message *message)
{
    jk_inbox *inbox = &server->requests->inbox;
    jk_subshell *subshell = NULL;
    if (message->subshell && channel == JK_SHELL) {
        subshell = jk_subshell_find(server, message->subshell);
        inbox = subshell ? &subshell->inbox : NULL;
    }
    jk_request *request = jk_request_create(server, message, channel, subshell);
    if (!request) {
        jk_log("no memory for a request; it is lost");
        return;
    }
    bool main_shell = inbox == &server->requests->inbox;
    if (main_shell && channel == JK_SHELL) jk_shell_announce(server, request);
    if (inbox && jk_inbox_push(inbox, request)) return;
    if (main_shell) {
        jk_request_release(request);
    } else {
        jk_request_refuse(request, no_subshell(server));
    }
}

static void route(jk_server *server, jk_channel channel, jk_message *message)
{
    if (is_for_executor(message->type)) {
        queue(server, channel, message);
    } else if (strcmp(message->type, "debug_request") == 0) {
        jk_debug_request(server, channel, message);
    } else {
        if (!jk_answer_here(server, channel, message)) ignore(server, message);
        jk_message_release(message);
    }
}

int jk_route_receive(jk_server *server, jk_channel channel, int most)
{
    int count = 0;
    jk_channel_read(server, channel);
    if (jk_channel_is_bounded(server, channel)) most = INT_MAX; /* that was a part of what there is */
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
