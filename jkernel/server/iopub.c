/* The io thread's side of the outbox: what leaves when, and the iopub socket.
 *
 * libzmq counts messages, not bytes, and a full XPUB cannot be waited for (it always polls writable). So its
 * own limit is off, and the bytes it holds are counted here: content is handed over without a copy, and the
 * release callback tells when the last subscriber has it. Stream text waits in the outbox while too much is
 * in flight; everything else may always pass. */
#include "jkernel/server/crash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH        256  /* entries between two looks at the sockets */
#define COPIED_BELOW 1024 /* bytes of content that are cheaper to copy than to hand over */
#define STALL_LOOK   500  /* ms */
#define LINE_PAUSE   (2 * JK_MILLISECOND)

/* --- Handing over ------------------------------------------------------------------------------------------
 */

typedef struct cargo {
    jk_outbox *outbox;
    size_t size;
} cargo;

/* On a thread of the transport. */
static void cargo_landed(void *data, void *hint)
{
    cargo *landed = hint;
    jk_outbox *outbox = landed->outbox;
    atomic_fetch_sub(&outbox->flight, landed->size);
    atomic_fetch_add(&outbox->landed, 1);
    jk_memory_release(data);
    jk_memory_release(landed);
    if (atomic_exchange(&outbox->watched, false)) jk_outbox_wake(outbox);
}

/* A new subscriber is to be welcomed before it gets anything else, so the look at the subscriptions is the
 * last thing before the send: signing a large message takes long enough for one to arrive. One that libzmq
 * takes during the send itself gets that message first, and its welcome before any other. (ZMQ_XPUB_MANUAL
 * would leave no gap, but up to libzmq 4.3.4 a subscriber that has gone by then is used after it is freed.)
 */
static int parcel_publish(jk_server *server, const jk_envelope *envelope)
{
    jk_parcel parcel;
    if (jk_parcel_pack(&parcel, envelope, server->signer) != 0) return -1;
    jk_iopub_subscriptions(server);
    return jk_parcel_send(&parcel, server->sockets[JK_IOPUB]);
}

/* Send `content`, which is taken, under the topic and header of `type`. */
static void publish(jk_server *server, const char *topic, const char *type, const jk_entry *entry,
                    jk_buffer *content)
{
    jk_buffer header = {0};
    jk_session_header(&server->session, type, entry->date, &header);
    jk_envelope envelope = {
        .topic = {topic, strlen(topic)},
        .header = {header.data, header.size},
        .metadata = {entry->metadata.data, entry->metadata.size},
        .content = {content->data, content->size},
        .buffers = entry->buffers,
        .nbuffers = entry->nbuffers,
    };
    if (entry->parent) envelope.parent = (jk_slice){entry->parent->header, entry->parent->size};
    cargo *handed = content->size < COPIED_BELOW ? NULL : malloc(sizeof *handed);
    if (handed) {
        *handed = (cargo){&server->outbox, content->size};
        atomic_fetch_add(&server->outbox.flight, content->size);
        envelope.content_free = cargo_landed;
        envelope.hint = handed;
    }
    if (header.failed || content->failed) {
        jk_log("no memory for a %s message; it is lost", type);
        if (handed) cargo_landed(content->data, handed);
    } else if (parcel_publish(server, &envelope) != 0) {
        jk_log("cannot publish a %s message: %s", type, zmq_strerror(zmq_errno()));
    }
    if (handed) memset(content, 0, sizeof *content);
    jk_buffer_clear(content);
    jk_buffer_clear(&header);
}

static void publish_text(jk_server *server, const jk_entry *entry, jk_stream stream, const char *text,
                         size_t size)
{
    const char *name = stream == JK_STDERR ? "stderr" : "stdout";
    char topic[32];
    snprintf(topic, sizeof topic, "stream.%s", name);
    jk_buffer content = {0};
    jk_buffer_append_text(&content, "{\"name\":\"");
    jk_buffer_append_text(&content, name);
    jk_buffer_append_text(&content, "\",\"text\":");
    jk_buffer_append_json(&content, text, size);
    jk_buffer_append(&content, "}", 1);
    publish(server, topic, "stream", entry, &content);
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
    publish(server, topic, entry->type, entry, &entry->content);
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

/* Takes the entry. */
static void entry_send(jk_server *server, jk_entry *entry)
{
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

/* How long stream text at the head must wait because too much is in flight. Without any progress for the
 * writers' patience it gives way, so that one dead subscriber does not silence the others. */
static int stall_delay(jk_outbox *outbox, jk_entry *head)
{
    if (atomic_load(&outbox->flight) <= JK_FLIGHT_LIMIT) {
        outbox->stall_since = 0;
        return 0;
    }
    atomic_store(&outbox->watched, true);
    if (atomic_load(&outbox->flight) <= JK_FLIGHT_LIMIT) return 0;
    int64_t now = jk_clock();
    unsigned landed = atomic_load(&outbox->landed);
    if (outbox->stall_since == 0 || landed != outbox->stall_landed) {
        outbox->stall_since = now;
        outbox->stall_landed = landed;
    }
    int64_t rest = outbox->stall_since + outbox->patience - now;
    if (rest > 0) return rest < STALL_LOOK * JK_MILLISECOND ? delay_ms(rest) : STALL_LOOK;
    /* The others still see what is small, as they see statuses. */
    if (head->content.size >= COPIED_BELOW) jk_entry_give_way(outbox, head);
    return 0;
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
static int head_delay(jk_outbox *outbox)
{
    jk_entry *head = outbox->head;
    if (!head) return -1;
    if (head->kind != JK_ENTRY_STREAM) return 0;
    int stall = stall_delay(outbox, head);
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

int jk_iopub_send(jk_server *server)
{
    jk_outbox *outbox = &server->outbox;
    int delay = 0;
    pthread_mutex_lock(&outbox->lock);
    outbox->sleeping = false;
    if (outbox->stalled && outbox->stalled_at != atomic_load(&outbox->landed)) outbox->stalled = false;
    if (outbox->waiting) pthread_cond_broadcast(&outbox->moved);
    for (int i = 0; i < BATCH; i++) {
        delay = head_delay(outbox);
        if (delay != 0) break;
        jk_entry *entry = jk_outbox_pop_locked(outbox);
        pthread_mutex_unlock(&outbox->lock);
        entry_send(server, entry);
        pthread_mutex_lock(&outbox->lock);
        outbox->sent++;
        if (outbox->waiting) pthread_cond_broadcast(&outbox->moved);
    }
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

static void welcome(jk_server *server, const char *subscription, size_t size)
{
    jk_buffer header = {0}, content = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    jk_session_header(&server->session, "iopub_welcome", now, &header);
    jk_buffer_append_text(&content, "{\"subscription\":");
    jk_buffer_append_json(&content, subscription, size);
    jk_buffer_append(&content, "}", 1);
    jk_envelope envelope = {
        /* The new subscriber's own filter must let it through. */
        .topic = {subscription, size},
        .header = {header.data, header.size},
        .content = {content.data, content.size},
    };
    if (header.failed || content.failed ||
        jk_envelope_send(&envelope, server->sockets[JK_IOPUB], server->signer) != 0) {
        jk_log("cannot welcome a subscriber");
    }
    jk_buffer_clear(&header);
    jk_buffer_clear(&content);
}

void jk_iopub_subscriptions(jk_server *server)
{
    void *socket = server->sockets[JK_IOPUB];
    jk_frames frames;
    int result;
    bool welcomed = false, present = false; /* who comes before `starting` is said hears that */
    while ((result = jk_frames_receive(socket, &frames)) != 0) {
        if (result < 0 && zmq_errno() != EPROTO) break;
        if (result > 0 && frames.count == 1 && zmq_msg_size(&frames.items[0]) > 0) {
            const char *data = zmq_msg_data(&frames.items[0]);
            size_t size = zmq_msg_size(&frames.items[0]) - 1;
            if (data[0] == 1 && jk_utf8_valid(data + 1, size)) {
                welcomed = true;
                present |= atomic_load(&server->started);
                welcome(server, data + 1, size);
            }
        }
        jk_frames_clear(&frames);
    }
    if (welcomed) jk_status_again(server, present);
}
