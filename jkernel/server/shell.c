/* Requests on their way to the executor and their replies, for the main shell and for subshells.
 *
 * A failed cell aborts what was sent before its error was known, which may still lie in the socket. So the
 * abort happens in the io thread, when the error reply is about to leave: the socket is read until it falls
 * silent, what is queued then is aborted, and whatever a client sends after it saw the error is not. Until
 * then no other cell may start (inbox.aborting). */
#include "jkernel/server/crash.h"
#include "jkernel/server/router.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int jk_inbox_open(jk_inbox *inbox)
{
    inbox->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return inbox->ready < 0 ? -1 : jk_mutex_open(&inbox->lock);
}

void jk_inbox_clear(jk_inbox *inbox)
{
    /* A signal handler may be in jk_inbox_signal() and takes no lock. */
    atomic_store(&inbox->shut, true);
    while (atomic_load(&inbox->signallers) > 0) sched_yield();
    jk_request *request = jk_inbox_close(inbox);
    while (request) {
        jk_request *next = request->next;
        jk_request_release(request);
        request = next;
    }
    if (inbox->ready >= 0) close(inbox->ready);
    inbox->ready = -1;
}

static void lane_push(jk_lane *lane, jk_request *request)
{
    if (lane->tail) {
        lane->tail->next = request;
    } else {
        lane->head = request;
    }
    lane->tail = request;
}

static jk_request *lane_pop(jk_lane *lane)
{
    jk_request *request = lane->head;
    lane->head = request->next;
    if (!lane->head) lane->tail = NULL;
    request->next = NULL;
    return request;
}

/* The lane with the earlier head; NULL when both are empty. */
static jk_lane *lane_earlier(jk_lane *one, jk_lane *other)
{
    if (!one->head) return other->head ? other : NULL;
    if (!other->head) return one;
    return one->head->arrival < other->head->arrival ? one : other;
}

jk_request *jk_inbox_close(jk_inbox *inbox)
{
    jk_lane all = {0}, *lane;
    pthread_mutex_lock(&inbox->lock);
    inbox->closed = true;
    while ((lane = lane_earlier(&inbox->cells, &inbox->others))) lane_push(&all, lane_pop(lane));
    pthread_mutex_unlock(&inbox->lock);
    return all.head;
}

void jk_inbox_signal(jk_inbox *inbox)
{
    atomic_fetch_add(&inbox->signallers, 1);
    if (!atomic_load(&inbox->shut) && !atomic_exchange(&inbox->signalled, true)) jk_event_raise(inbox->ready);
    atomic_fetch_sub(&inbox->signallers, 1);
}

bool jk_inbox_push(jk_inbox *inbox, jk_request *request)
{
    pthread_mutex_lock(&inbox->lock);
    bool closed = inbox->closed;
    if (!closed) {
        request->arrival = ++inbox->arrivals;
        lane_push(request->is_execute ? &inbox->cells : &inbox->others, request);
    }
    pthread_mutex_unlock(&inbox->lock);
    if (!closed) jk_inbox_signal(inbox);
    return !closed;
}

/* Before the language is up nothing can run, so the first cell to come is the next to run, and its busy need
 * not wait: some clients take the idle of an earlier request for the end of the cell that they have just
 * sent. */
void jk_shell_announce(jk_server *server, jk_request *request)
{
    jk_inbox *inbox = &server->inbox;
    pthread_mutex_lock(&inbox->lock);
    bool first = request->is_execute && !inbox->dispatched && !inbox->announced;
    if (first) inbox->announced = true;
    pthread_mutex_unlock(&inbox->lock);
    if (first) jk_status_busy(server, request->parent, true);
}

/* Where the first request that may start is; NULL: nowhere. */
static jk_lane *lane_ready(jk_inbox *inbox)
{
    bool cell_may = !inbox->executing && inbox->aborting == 0;
    if (!cell_may) return inbox->others.head ? &inbox->others : NULL;
    return lane_earlier(&inbox->cells, &inbox->others);
}

/* The first request that may start, or NULL; `*more` tells whether another one may start beside it. */
static jk_request *inbox_take(jk_inbox *inbox, bool *more)
{
    jk_lane *lane = lane_ready(inbox);
    *more = false;
    if (!lane) return NULL;
    jk_request *request = lane_pop(lane);
    request->ticket = ++inbox->tickets;
    if (request->is_execute) inbox->executing = request->ticket;
    *more = lane_ready(inbox) != NULL;
    return request;
}

const char *jk_server_session(const jk_server *server)
{
    return server->session.id;
}

const char *jk_server_connection_file(const jk_server *server)
{
    return server->config.path;
}

int jk_server_request_fd(const jk_server *server)
{
    return server->inbox.ready;
}

void jk_server_wake(jk_server *server)
{
    if (jk_server_alive(server)) jk_inbox_signal(&server->inbox);
}

jk_request *jk_inbox_next(jk_server *server, jk_inbox *inbox)
{
    if (!jk_server_alive(server)) return NULL;
    /* The descriptor is cleared first, so that a request which is signalled in between is found in the queue.
     */
    jk_event_clear(inbox->ready);
    atomic_store(&inbox->signalled, false);

    bool more;
    pthread_mutex_lock(&inbox->lock);
    inbox->dispatched = true;
    jk_request *request = inbox_take(inbox, &more);
    pthread_mutex_unlock(&inbox->lock);
    if (more) jk_inbox_signal(inbox);
    if (!request) return NULL;

    bool entered = jk_stdio_enter(server);
    jk_status_busy(server, request->parent, request->is_execute);
    jk_stdio_leave(server, entered);
    return request;
}

bool jk_server_dispatch(jk_server *server)
{
    jk_request *request = jk_inbox_next(server, &server->inbox);
    if (!request) return false;
    server->executor->handle(server->executor->self, request);
    return true;
}

bool jk_shell_has_room(jk_server *server)
{
    if (atomic_load(&server->held) <= JK_HELD_LIMIT) return true;
    atomic_store(&server->full, true);
    /* The last of it may have gone before the flag was up. */
    return atomic_load(&server->held) <= JK_HELD_LIMIT;
}

/* --- Replies -----------------------------------------------------------------------------------------------
 */

/* An entry that owns `request`; NULL when memory is short, and the request stays the caller's. */
static jk_entry *reply_entry(jk_request *request, jk_slice content, jk_slice metadata, unsigned flags)
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
    return entry;
}

void jk_reply_send(jk_server *server, jk_channel channel, const jk_entry *entry)
{
    jk_buffer header = {0};
    jk_session_header(&server->session, entry->type, entry->date, &header);
    jk_envelope envelope = {
        .to = entry->request->message,
        .header = {header.data, header.size},
        .parent = {entry->parent->header, entry->parent->size},
        .metadata = {entry->metadata.data, entry->metadata.size},
        .content = {entry->content.data, entry->content.size},
    };
    if (header.failed || jk_channel_send(server, channel, &envelope) != 0) {
        jk_log("cannot send a %s: %s", entry->type, zmq_strerror(zmq_errno()));
    }
    jk_buffer_clear(&header);
}

static jk_inbox *inbox_of(const jk_request *request)
{
    return request->subshell ? &request->subshell->inbox : &request->server->inbox;
}

static void executing_end(jk_inbox *inbox, uint64_t ticket)
{
    pthread_mutex_lock(&inbox->lock);
    if (inbox->executing == ticket) inbox->executing = 0;
    bool waiting = inbox->cells.head || inbox->others.head;
    pthread_mutex_unlock(&inbox->lock);
    if (waiting) jk_inbox_signal(inbox);
}

static void aborting_add(jk_inbox *inbox, int change)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->aborting += (unsigned)change;
    pthread_mutex_unlock(&inbox->lock);
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
        reply = reply_entry(request, jk_slice_of(content), jk_slice_of(metadata), flags);
        if (!reply) jk_log("no memory for the reply to a %s", request->message->type);
    }
    jk_request *kept = reply ? NULL : request;
    jk_parent *parent = jk_parent_retain(request->parent);
    jk_subshell *subshell = jk_subshell_retain(request->subshell);
    jk_inbox *inbox = inbox_of(request);
    uint64_t ticket = request->ticket;
    /* From the push on, the io thread may abort and release: mark first, and do not look at `request` after.
     */
    if (reply && aborts) aborting_add(inbox, 1);
    jk_stdio_flush(server);
    bool entered = jk_stdio_enter(server);
    jk_status_idle(server, parent, reply);
    jk_stdio_leave(server, entered);
    executing_end(inbox, ticket);
    jk_subshell_release(subshell);
    jk_parent_release(parent);
    jk_request_release(kept);
}

void jk_server_set_execution_count(jk_server *server, long count)
{
    atomic_store(&server->execution_count, count);
    jk_record_count(server, count);
}

/* --- Abort -------------------------------------------------------------------------------------------------
 */

static void shell_drain(jk_server *server)
{
    int64_t end = jk_clock() + JK_ABORT_GRACE * JK_MILLISECOND;
    zmq_pollitem_t item = jk_channel_item(server, JK_SHELL);
    do {
        if (zmq_poll(&item, 1, JK_ABORT_SILENCE) <= 0) return;
        jk_route_receive(server, JK_SHELL, 64);
    } while (jk_clock() < end);
}

static jk_request *executes_take(jk_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    jk_request *first = inbox->cells.head;
    inbox->cells = (jk_lane){0};
    inbox->aborting--;
    pthread_mutex_unlock(&inbox->lock);
    return first;
}

void jk_shell_abort(jk_server *server, const jk_request *failed)
{
    shell_drain(server);
    jk_request *request = executes_take(inbox_of(failed));
    while (request) {
        jk_request *next = request->next;
        jk_request_refuse(request, NULL);
        request = next;
    }
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
                 atomic_load(&server->execution_count));
        jk_buffer_append_text(&content, text);
    } else {
        jk_error_content(&content, reason);
    }
    jk_parent *parent = jk_parent_retain(request->parent);
    request->next = NULL;
    jk_entry *reply = NULL;
    if (replies && !content.failed) {
        reply = reply_entry(request, (jk_slice){content.data, content.size}, (jk_slice){0}, 0);
    }
    if (!reply) jk_request_release(request);
    jk_status_around(server, parent, reply);
    jk_parent_release(parent);
    jk_buffer_clear(&content);
}
