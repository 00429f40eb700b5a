/* A request while the executor has it, and the header that its outputs carry. */
#include "jkernel/server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

jk_parent *jk_parent_create(jk_bytes header)
{
    jk_parent *parent = jk_memory_take(sizeof *parent + header.size);
    if (!parent) return NULL;
    atomic_init(&parent->references, 1);
    atomic_init(&parent->silent, false);
    atomic_init(&parent->number, 0);
    parent->below = NULL;
    parent->size = header.size;
    if (header.size) memcpy(parent->header, header.data, header.size);
    return parent;
}

jk_parent *jk_parent_retain(jk_parent *parent)
{
    if (parent) atomic_fetch_add_explicit(&parent->references, 1, memory_order_relaxed);
    return parent;
}

void jk_parent_release(jk_parent *parent)
{
    if (parent && atomic_fetch_sub_explicit(&parent->references, 1, memory_order_acq_rel) == 1)
        jk_memory_release(parent);
}

jk_bytes jk_parent_header(const jk_parent *parent)
{
    return (jk_bytes){parent->header, parent->size};
}

void jk_parent_silence(jk_parent *parent, bool silent)
{
    atomic_store_explicit(&parent->silent, silent, memory_order_relaxed);
}

bool jk_parent_silent(const jk_parent *parent)
{
    return atomic_load_explicit(&parent->silent, memory_order_relaxed);
}

void jk_parent_set_number(jk_parent *parent, unsigned number)
{
    atomic_store_explicit(&parent->number, number, memory_order_relaxed);
}

unsigned jk_parent_number(const jk_parent *parent)
{
    return atomic_load_explicit(&parent->number, memory_order_relaxed);
}

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
    size_t held = atomic_fetch_sub(&server->held, request->cost) - request->cost;
    if (held <= JK_HELD_LIMIT && atomic_load(&server->full) && atomic_exchange(&server->full, false)) {
        jk_outbox_wake(&server->outbox);
    }
}

jk_request *jk_request_create(jk_server *server, jk_message *message, jk_channel channel)
{
    jk_request *request = calloc(1, sizeof *request);
    jk_parent *parent = jk_parent_create(jk_bytes_of(jk_message_header(message)));
    if (!request || !parent) {
        free(request);
        jk_parent_release(parent);
        jk_message_release(message);
        return NULL;
    }
    request->server = server;
    request->message = message;
    request->parent = parent;
    request->channel = channel;
    request->is_execute = strcmp(message->type, "execute_request") == 0;
    request->cost = request_cost(message);
    atomic_fetch_add(&server->held, request->cost);
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

jk_bytes jk_request_header(const jk_request *request)
{
    return jk_bytes_of(jk_message_header(request->message));
}

jk_bytes jk_request_parent_header(const jk_request *request)
{
    return jk_bytes_of(jk_message_parent_header(request->message));
}

jk_bytes jk_request_metadata(const jk_request *request)
{
    return jk_bytes_of(jk_message_metadata(request->message));
}

jk_bytes jk_request_content(const jk_request *request)
{
    return jk_bytes_of(jk_message_content(request->message));
}

size_t jk_request_buffer_count(const jk_request *request)
{
    return jk_message_buffer_count(request->message);
}

jk_bytes jk_request_buffer(const jk_request *request, size_t index)
{
    return jk_bytes_of(jk_message_buffer(request->message, index));
}
