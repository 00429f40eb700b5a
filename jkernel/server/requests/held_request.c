/* A request from its arrival until it is replied to, and what all of them hold. */
#include "jkernel/server/requests/requests_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the request takes while it waits; the parts that libzmq allocates are estimated. */
static size_t request_cost(const jk_message *message)
{
    size_t cost = sizeof(jk_request) + sizeof *message + 1024;
    for (size_t i = 0; i < message->frames.count; i++) {
        cost += sizeof(zmq_msg_t) + zmq_msg_size(&message->frames.items[i]);
    }
    return cost;
}

static void request_uncount(jk_request *request)
{
    jk_server *server = request->server;
    size_t held = atomic_fetch_sub(&server->requests->held.bytes, request->cost) - request->cost;
    if (held <= JK_HELD_LIMIT && atomic_load(&server->requests->held.full) &&
        atomic_exchange(&server->requests->held.full, false)) {
        jk_outbox_wake(&server->output->outbox);
    }
}

jk_request *jk_request_create(jk_server *server, jk_message *message, jk_channel channel,
                              jk_subshell *subshell)
{
    jk_request *request = calloc(1, sizeof *request);
    jk_parent *parent = jk_parent_create(message->parts[JK_HEADER]);
    if (!request || !parent) {
        free(request);
        jk_parent_release(parent);
        jk_message_release(message);
        jk_subshell_release(subshell);
        return NULL;
    }
    request->server = server;
    request->message = message;
    request->parent = parent;
    request->channel = channel;
    request->subshell = subshell;
    request->is_execute = strcmp(message->type, "execute_request") == 0;
    request->cost = request_cost(message);
    atomic_fetch_add(&server->requests->held.bytes, request->cost);
    return request;
}

void jk_request_release(jk_request *request)
{
    if (!request) return;
    request_uncount(request);
    jk_message_release(request->message);
    jk_parent_release(request->parent);
    jk_subshell_release(request->subshell);
    free(request);
}

void jk_requests_release(jk_request *first)
{
    while (first) {
        jk_request *next = first->queued.next;
        jk_request_release(first);
        first = next;
    }
}

void jk_reply_type(const char *request_type, char *type, size_t size)
{
    size_t length = strlen(request_type);
    if (length > 8 && strcmp(request_type + length - 8, "_request") == 0) length -= 8;
    snprintf(type, size, "%.*s_reply", (int)length, request_type);
}

const char *jk_request_type(const jk_request *request)
{
    return request->message->type;
}
jk_parent *jk_request_parent(const jk_request *request)
{
    return request->parent;
}

jk_bytes jk_request_part(const jk_request *request, jk_part part)
{
    return request->message->parts[part];
}

size_t jk_request_buffer_count(const jk_request *request)
{
    return jk_message_buffer_count(request->message);
}

jk_bytes jk_request_buffer(const jk_request *request, size_t index)
{
    return jk_message_buffer(request->message, index);
}

bool jk_shell_has_room(jk_server *server)
{
    if (atomic_load(&server->requests->held.bytes) <= JK_HELD_LIMIT) return true;
    atomic_store(&server->requests->held.full, true);
    /* The last of it may have gone before the flag was up. */
    return atomic_load(&server->requests->held.bytes) <= JK_HELD_LIMIT;
}
