/* The io thread's side of the outbox: what leaves when, and through which publisher. Without encryption that
 * is ours (publisher.c), with it libzmq's (xpub.c). While a subscriber that reads is too far behind, stream
 * text waits in the outbox, and what else is published, too, once it is far behind. Replies wait for nobody
 * but for what stands before them. */
#include "jkernel/server/crash.h"
#include "jkernel/server/publisher.h"
#include "jkernel/server/xpub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH      256 /* entries between two looks at the sockets */
#define LINE_PAUSE (2 * JK_MILLISECOND)

/* --- Handing over ------------------------------------------------------------------------------------------
 */

static void content_release(void *data, void *hint)
{
    (void)hint;
    jk_memory_release(data);
}

/* `content` may be taken. */
static int outgoing_send(jk_server *server, jk_outgoing *outgoing, jk_buffer *content)
{
    if (!server->publisher) return jk_xpub_send(server, &outgoing->envelope, content);
    if (content->size >= JK_COPIED_BELOW) {
        outgoing->envelope.content_free = content_release;
        memset(content, 0, sizeof *content);
    }
    return jk_publisher_send(server->publisher, outgoing);
}

/* Send `content`, which is taken, under the topic and header of `type`; `text`: as in jk_outgoing. */
static void publish(jk_server *server, const char *topic, const char *type, const jk_entry *entry,
                    jk_buffer *content, size_t text)
{
    jk_buffer header = {0};
    jk_session_header(&server->session, type, entry->date, &header);
    jk_outgoing outgoing = {
        .envelope =
            {
                .topic = {topic, strlen(topic)},
                .header = {header.data, header.size},
                .metadata = {entry->metadata.data, entry->metadata.size},
                .content = {content->data, content->size},
                .buffers = entry->buffers,
                .nbuffers = entry->nbuffers,
            },
        .parent = entry->parent,
        .text = text,
        .only = entry->only,
        .status = strcmp(type, "status") == 0,
    };
    if (entry->parent) outgoing.envelope.parent = (jk_slice){entry->parent->header, entry->parent->size};
    if (header.failed || content->failed) {
        jk_log("no memory for a %s message; it is lost", type);
    } else if (outgoing_send(server, &outgoing, content) != 0) {
        jk_log("cannot publish a %s message: %s", type, zmq_strerror(zmq_errno()));
    }
    jk_buffer_clear(content);
    jk_buffer_clear(&header);
}

static void stream_content(jk_buffer *content, jk_stream stream, const char *text, size_t size)
{
    jk_buffer_append_text(content, stream == JK_STDERR ? "{\"name\":\"stderr\",\"text\":"
                                                       : "{\"name\":\"stdout\",\"text\":");
    jk_buffer_append_json(content, text, size);
    jk_buffer_append(content, "}", 1);
}

static void publish_text(jk_server *server, const jk_entry *entry, jk_stream stream, const char *text,
                         size_t size)
{
    jk_buffer content = {0};
    stream_content(&content, stream, text, size);
    publish(server, stream == JK_STDERR ? "stream.stderr" : "stream.stdout", "stream", entry, &content, size);
}

static void publish_note(jk_server *server, const jk_entry *entry)
{
    char text[160];
    int size = snprintf(text, sizeof text,
                        "\n[%zu bytes of output were left out here: a client does not read]\n", entry->lost);
    publish_text(server, entry, JK_STDERR, text, (size_t)size);
}

static void pace_pay(jk_outbox *outbox)
{
    int64_t now = jk_clock();
    if (outbox->rate_since < now) outbox->rate_since = now;
    outbox->rate_since += JK_SECOND / JK_STREAM_RATE;
}

static void publish_stream(jk_server *server, const jk_entry *entry)
{
    jk_outbox *outbox = &server->outbox;
    publish_text(server, entry, entry->stream, entry->content.data, entry->content.size);
    if (entry->lost) publish_note(server, entry);
    jk_parent_retain(entry->parent);
    jk_parent_release(outbox->last_parent);
    outbox->last_parent = entry->parent;
    outbox->last_stream = entry->stream;
    outbox->last_sent = jk_clock();
    pace_pay(outbox);
}

static void publish_message(jk_server *server, jk_entry *entry)
{
    char topic[128];
    snprintf(topic, sizeof topic, "kernel.%s.%.64s", server->session.id, entry->type);
    publish(server, topic, entry->type, entry, &entry->content, 0);
}

static void reply_send(jk_server *server, jk_entry *entry)
{
    jk_input_end(server, entry->request);
    if (entry->flags & JK_REPLY_ABORT_QUEUED) jk_shell_abort(server, entry->request);
    if (entry->request->channel == JK_CONTROL) {
        jk_replies_push(server, entry);
        return;
    }
    jk_reply_send(server, JK_SHELL, entry);
    jk_entry_release(entry);
}

/* Takes the entry. What leaves on another channel leaves after the output that stands before it. */
static void entry_send(jk_server *server, jk_entry *entry)
{
    bool elsewhere = entry->kind == JK_ENTRY_REPLY || entry->kind == JK_ENTRY_INPUT;
    if (elsewhere && server->publisher) jk_publisher_flush(server->publisher);
    if (entry->kind == JK_ENTRY_REPLY) {
        reply_send(server, entry);
        return;
    }
    if (entry->kind == JK_ENTRY_INPUT) {
        jk_input_send(server, entry);
        return;
    }
    switch (entry->kind) {
    case JK_ENTRY_STREAM: publish_stream(server, entry); break;
    case JK_ENTRY_NOTE: publish_note(server, entry); break;
    default: publish_message(server, entry); break;
    }
    if (entry->kind != JK_ENTRY_PUBLISH) jk_record_sent(server, entry->content.size + entry->lost);
    jk_entry_release(entry);
}

/* --- When --------------------------------------------------------------------------------------------------
 */

static int delay_ms(int64_t delay)
{
    return (int)((delay + JK_MILLISECOND - 1) / JK_MILLISECOND);
}

/* How far the slowest of those that read is behind, which writers see, too. */
static size_t behind_look(jk_server *server)
{
    size_t behind = jk_publisher_behind(server->publisher);
    if (atomic_exchange(&server->outbox.flight, behind) > behind) atomic_fetch_add(&server->outbox.landed, 1);
    return behind;
}

/* ms that the head must wait because a subscriber is too far behind. */
static int stall_delay(jk_server *server, jk_entry *head)
{
    bool text = head->kind == JK_ENTRY_STREAM;
    if (!server->publisher) return text ? jk_xpub_stall(&server->outbox, head) : 0;
    if (!text && head->kind != JK_ENTRY_PUBLISH) return 0;
    size_t behind = behind_look(server), limit = text ? JK_FLIGHT_LIMIT : JK_KEPT_MOST;
    return behind > limit ? jk_publisher_delay(server->publisher) : 0;
}

/* How long the first text of a line waits for its end: print() writes the two apart, and they are one
 * message. */
static int line_delay(jk_outbox *outbox, const jk_entry *head)
{
    if (head->content.size > 0 && head->content.data[head->content.size - 1] == '\n') return 0;
    int64_t now = jk_clock();
    if (outbox->line != head) {
        outbox->line = head;
        outbox->line_since = now;
    }
    int64_t delay = outbox->line_since + LINE_PAUSE - now;
    return delay > 0 ? delay_ms(delay) : 0;
}

/* How long the next stream message waits so that no more than JK_STREAM_RATE a second leave, after a burst:
 * streams that alternate cannot be merged without losing their order. */
static int64_t pace_delay(const jk_outbox *outbox)
{
    int64_t delay = outbox->rate_since - JK_STREAM_BURST * JK_SECOND / JK_STREAM_RATE - jk_clock();
    return delay > 0 ? delay : 0;
}

/* ms until the head of the queue may leave; -1 when it is empty. */
static int head_delay(jk_server *server)
{
    jk_outbox *outbox = &server->outbox;
    jk_entry *head = outbox->head;
    if (!head) return -1;
    int stall = stall_delay(server, head);
    if (stall > 0 || head->kind != JK_ENTRY_STREAM) return stall;

    if (outbox->hurry) return 0;
    int64_t pace = pace_delay(outbox);
    bool may_grow =
        head == outbox->tail && outbox->pushed > outbox->urgent && head->content.size + 4 <= JK_STREAM_MOST;
    if (outbox->serving == 0 && outbox->others == 0) {
        /* Between cells all text waits together and leaves together. */
        int64_t quiet = outbox->pushed > outbox->urgent && outbox->last_sent
                            ? outbox->last_sent + JK_STREAM_PAUSE_BETWEEN - jk_clock()
                            : 0;
        if (quiet > 0) return delay_ms(quiet);
        if (!may_grow) outbox->urgent = outbox->pushed;
    }
    if (!may_grow || pace > 0) return delay_ms(pace);
    bool follows =
        outbox->last_sent && head->parent == outbox->last_parent && head->stream == outbox->last_stream;
    int64_t delay = follows ? outbox->last_sent + JK_STREAM_PAUSE - jk_clock() : 0;
    return delay > 0 ? delay_ms(delay) : line_delay(outbox, head);
}

/* Write what was handed over. Returns the ms until it must be looked at again; -1: when there is something.
 */
static int flush(jk_server *server)
{
    jk_publisher *publisher = server->publisher;
    jk_publisher_flush(publisher);
    behind_look(server);
    return jk_publisher_delay(publisher);
}

int jk_iopub_send(jk_server *server)
{
    jk_outbox *outbox = &server->outbox;
    int delay = 0, look = -1;
    uint64_t sent = 0;
    pthread_mutex_lock(&outbox->lock);
    outbox->sleeping = false;
    if (outbox->stalled && server->publisher) jk_publisher_give_up(server->publisher);
    if (outbox->stalled && (server->publisher || outbox->stalled_at != atomic_load(&outbox->landed)))
        outbox->stalled = false;
    if (outbox->waiting) pthread_cond_broadcast(&outbox->moved);
    for (int i = 0; i < BATCH; i++) {
        delay = head_delay(server);
        if (delay != 0) break;
        jk_entry *entry = jk_outbox_pop_locked(outbox);
        pthread_mutex_unlock(&outbox->lock);
        entry_send(server, entry);
        pthread_mutex_lock(&outbox->lock);
        sent++;
        if (outbox->waiting) pthread_cond_broadcast(&outbox->moved);
    }
    if (server->publisher) {
        pthread_mutex_unlock(&outbox->lock);
        look = flush(server);
        pthread_mutex_lock(&outbox->lock);
        delay = head_delay(server); /* more may have come */
        if (look >= 0 && (delay < 0 || look < delay)) delay = look;
    }
    outbox->sent += sent;
    if (outbox->waiting) pthread_cond_broadcast(&outbox->moved);
    if (outbox->expecting && (delay < 0 || delay > JK_LOOK_AGAIN)) delay = JK_LOOK_AGAIN;
    outbox->expecting = false;
    outbox->sleeping = delay != 0;
    outbox->look = delay < 0 ? INT64_MAX : jk_clock() + delay * JK_MILLISECOND;
    pthread_mutex_unlock(&outbox->lock);
    return delay;
}

void jk_iopub_send_all(jk_server *server)
{
    jk_outbox *outbox = &server->outbox;
    pthread_mutex_lock(&outbox->lock);
    for (uint64_t target = outbox->pushed; outbox->head && outbox->sent < target; outbox->sent++) {
        jk_entry *entry = jk_outbox_pop_locked(outbox);
        pthread_mutex_unlock(&outbox->lock);
        entry_send(server, entry);
        pthread_mutex_lock(&outbox->lock);
    }
    pthread_mutex_unlock(&outbox->lock);
}

/* --- Subscribers -------------------------------------------------------------------------------------------
 */

static void on_welcome(jk_server *server, uint64_t number, jk_slice topic)
{
    jk_buffer header = {0}, content = {0};
    jk_outgoing outgoing = {.envelope = jk_welcome_make(server, topic, &header, &content), .only = number};
    if (header.failed || content.failed || jk_publisher_send(server->publisher, &outgoing) != 0)
        jk_log("cannot welcome a subscriber");
    jk_buffer_clear(&header);
    jk_buffer_clear(&content);
}

/* Who comes before `starting` is said hears that. */
static void on_again(jk_server *server, uint64_t number, bool told)
{
    jk_status_again(server, atomic_load(&server->started), number, told);
}

static jk_bundle *on_note(jk_server *server, const jk_gap *gap)
{
    char text[200], more[64] = "";
    struct timespec now;
    jk_buffer header = {0}, content = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (gap->messages) snprintf(more, sizeof more, " and %zu messages", gap->messages);
    int size = snprintf(text, sizeof text,
                        "\n[%zu bytes of output%s were left out here: this client did not read]\n",
                        gap->bytes, more);
    jk_session_header(&server->session, "stream", now, &header);
    stream_content(&content, JK_STDERR, text, (size_t)size);
    jk_envelope envelope = {
        .topic = {JK_NOTE_TOPIC, strlen(JK_NOTE_TOPIC)},
        .header = {header.data, header.size},
        .content = {content.data, content.size},
    };
    if (gap->parent) envelope.parent = (jk_slice){gap->parent->header, gap->parent->size};
    jk_bundle *note = header.failed || content.failed
                          ? NULL
                          : jk_bundle_pack(&envelope, server->signer, &server->publisher->port.total);
    jk_buffer_clear(&header);
    jk_buffer_clear(&content);
    return note;
}

int jk_iopub_open(jk_server *server, int listener)
{
    server->publisher = jk_publisher_create(server, listener);
    if (!server->publisher) return -1;
    server->publisher->welcome = on_welcome;
    server->publisher->again = on_again;
    server->publisher->note = on_note;
    return 0;
}

void jk_iopub_receive(jk_server *server)
{
    if (server->publisher) {
        jk_publisher_serve(server->publisher);
    } else {
        jk_xpub_receive(server);
    }
}

zmq_pollitem_t jk_iopub_item(const jk_server *server)
{
    if (server->publisher) return (zmq_pollitem_t){.fd = server->publisher->port.epoll, .events = ZMQ_POLLIN};
    return (zmq_pollitem_t){.socket = server->sockets[JK_IOPUB], .events = ZMQ_POLLIN};
}
