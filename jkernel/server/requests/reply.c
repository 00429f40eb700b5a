/* How a request ends: with the executor's reply, or refused. */
#include "jkernel/server/requests/requests_room.h"

#include <stdio.h>
#include <string.h>

/* An entry that owns `request`; NULL when memory is short, and the request stays the caller's. */
static jk_entry *reply_entry(jk_request *request, jk_bytes content, jk_bytes metadata, unsigned flags)
{
    char type[128];
    jk_reply_type(request->message->type, type, sizeof type);
    jk_entry *entry = jk_entry_create(JK_ENTRY_REPLY, type, request->parent);
    if (!entry) return NULL;
    jk_buffer_append(&entry->content, content.data, content.size);
    jk_buffer_append(&entry->metadata, metadata.data, metadata.size);
    if (entry->content.failed || entry->metadata.failed) {
        jk_entry_release(entry);
        return NULL;
    }
    entry->flags = flags;
    entry->request = request;
    entry->request_release = jk_request_release;
    return entry;
}

void jk_reply_send(jk_server *server, jk_channel channel, const jk_entry *entry)
{
    jk_envelope envelope = {
        .to = entry->request->message,
        .parent = {entry->parent->header, entry->parent->size},
        .metadata = {entry->metadata.data, entry->metadata.size},
        .content = {entry->content.data, entry->content.size},
    };
    jk_channel_send(server, channel, entry->type, entry->date, &envelope);
}

jk_inbox *jk_inbox_of(const jk_request *request)
{
    return request->subshell ? &request->subshell->inbox : &request->server->requests->inbox;
}

void jk_request_reply(jk_request *request, jk_bytes content, jk_bytes metadata, unsigned flags)
{
    jk_server *server = request->server;
    if (!jk_server_alive(server)) {
        jk_request_release(request);
        return;
    }
    if (!request->is_execute) flags &= ~JK_REPLY_ABORT_QUEUED;
    bool aborts = (flags & JK_REPLY_ABORT_QUEUED) != 0;
    jk_entry *reply = NULL;
    if (!(flags & JK_REPLY_NONE)) {
        reply = reply_entry(request, content, metadata, flags);
        if (!reply) jk_log("no memory for the reply to a %s", request->message->type);
    }
    jk_request *kept = reply ? NULL : request;
    jk_parent *parent = jk_parent_retain(request->parent);
    jk_subshell *subshell = jk_subshell_retain(request->subshell);
    jk_inbox *inbox = jk_inbox_of(request);
    uint64_t sequence = request->queued.sequence;
    /* From the push on, the io thread may abort and release: mark first, and do not look at `request` after.
     */
    if (reply && aborts) jk_inbox_abort(inbox);
    jk_stdio_flush(server);
    bool entered = jk_stdio_enter(server);
    jk_status_idle(server, parent, reply);
    jk_stdio_leave(server, entered);
    jk_inbox_end(inbox, sequence);
    jk_subshell_release(subshell);
    jk_parent_release(parent);
    jk_request_release(kept);
}

void jk_server_set_execution_count(jk_server *server, long count)
{
    atomic_store(&server->requests->execution_count, count);
    jk_record_count(server, count);
}

void jk_error_content(jk_buffer *content, const char *reason)
{
    jk_buffer_append_text(content, "{\"status\":\"error\",\"ename\":\"SubshellError\",\"evalue\":");
    jk_buffer_append_json(content, reason, strlen(reason));
    jk_buffer_append_text(content, ",\"traceback\":[],\"execution_count\":null}");
}

/* The same for a debug_request. */
static void debug_error_content(jk_buffer *content, const char *reason)
{
    jk_buffer_append_text(
        content, "{\"type\":\"response\",\"seq\":0,\"request_seq\":0,\"success\":false,\"message\":");
    jk_buffer_append_json(content, reason, strlen(reason));
    jk_buffer_append_text(content, ",\"body\":{}}");
}

void jk_request_refuse(jk_request *request, const char *reason)
{
    jk_server *server = request->server;
    jk_buffer content = {0};
    size_t length = strlen(request->message->type);
    bool replies = length > 8 && strcmp(request->message->type + length - 8, "_request") == 0;
    if (!reason) {
        char text[80];
        snprintf(text, sizeof text, "{\"status\":\"aborted\",\"execution_count\":%ld}",
                 atomic_load(&server->requests->execution_count));
        jk_buffer_append_text(&content, text);
    } else if (strcmp(request->message->type, "debug_request") == 0) {
        debug_error_content(&content, reason);
    } else {
        jk_error_content(&content, reason);
    }
    jk_parent *parent = jk_parent_retain(request->parent);
    jk_entry *reply = NULL;
    if (replies && !content.failed) {
        reply = reply_entry(request, (jk_bytes){content.data, content.size}, (jk_bytes){0}, 0);
    }
    if (!reply) jk_request_release(request);
    jk_status_around(server, parent, reply);
    jk_parent_release(parent);
    jk_buffer_clear(&content);
}

void jk_requests_refuse(jk_request *first, const char *reason)
{
    while (first) {
        jk_request *next = first->queued.next;
        jk_request_refuse(first, first->is_execute ? NULL : reason);
        first = next;
    }
}
