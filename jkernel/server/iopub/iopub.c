/* The io thread's side of the outbox: what leaves when, and through which publisher. Without encryption that
 * is ours (publisher.c), with it libzmq's (iopub_curve.c). While a subscriber that reads is too far behind,
 * stream text waits in the outbox, and what else is published, too, once it is far behind. Replies wait for
 * nobody but for what stands before them. */
#include "jkernel/server/iopub/iopub_room.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BATCH 256 /* entries between two looks at the sockets */

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
    if (!server->ports->publisher) return jk_xpub_send(server, &outgoing->envelope, content);
    if (content->size >= JK_COPIED_BELOW) {
        outgoing->envelope.content_free = content_release;
        memset(content, 0, sizeof *content);
    }
    return jk_publisher_send(server->ports->publisher, outgoing);
}

/* Send `content`, which is taken, under the topic and header of `type`; `text`: as in jk_outgoing. */
static void publish(jk_server *server, const char *topic, const char *type, const jk_entry *entry,
                    jk_buffer *content, size_t text)
{
    jk_buffer header = {0};
    jk_session_header(server->session, type, entry->date, &header);
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
    if (entry->parent) outgoing.envelope.parent = (jk_bytes){entry->parent->header, entry->parent->size};
    if (header.failed || content->failed) {
        jk_log("no memory for a %s message; it is lost", type);
    } else if (outgoing_send(server, &outgoing, content) != 0) {
        jk_log("cannot publish a %s message: %s", type, zmq_strerror(zmq_errno()));
    }
    jk_buffer_clear(content);
    jk_buffer_clear(&header);
}

static void publish_text(jk_server *server, const jk_entry *entry, jk_stream stream, const char *text,
                         size_t size)
{
    jk_buffer content = {0};
    jk_stream_content(&content, stream, text, size);
    publish(server, stream == JK_STDERR ? "stream.stderr" : "stream.stdout", "stream", entry, &content, size);
}

static void publish_note(jk_server *server, const jk_entry *entry)
{
    char text[160];
    int size = snprintf(text, sizeof text,
                        "\n[%zu bytes of output were left out here: a client does not read]\n", entry->lost);
    publish_text(server, entry, JK_STDERR, text, (size_t)size);
}

static void publish_stream(jk_server *server, const jk_entry *entry)
{
    publish_text(server, entry, entry->stream, entry->content.data, entry->content.size);
    if (entry->lost) publish_note(server, entry);
    jk_pace_pay(server, entry);
}

static void publish_message(jk_server *server, jk_entry *entry)
{
    char topic[128];
    snprintf(topic, sizeof topic, "kernel.%s.%.64s", server->session->id, entry->type);
    publish(server, topic, entry->type, entry, &entry->content, 0);
}

/* Takes the entry. What leaves on another channel leaves after the output that stands before it. */
static void entry_send(jk_server *server, jk_entry *entry)
{
    const jk_leaving *leaving = server->iopub->leaving;
    bool elsewhere = entry->kind == JK_ENTRY_REPLY || entry->kind == JK_ENTRY_INPUT;
    if (elsewhere && server->ports->publisher) jk_publisher_flush(server->ports->publisher);
    switch (entry->kind) {
    case JK_ENTRY_REPLY: leaving->reply(server, entry); return;
    case JK_ENTRY_INPUT: leaving->question(server, entry); return;
    case JK_ENTRY_STREAM: publish_stream(server, entry); break;
    case JK_ENTRY_NOTE: publish_note(server, entry); break;
    case JK_ENTRY_PUBLISH: publish_message(server, entry); break;
    }
    if (entry->kind != JK_ENTRY_PUBLISH) jk_record_sent(server, entry->content.size + entry->lost);
    jk_entry_release(entry);
}

/* Under outbox.lock, which is given up meanwhile. */
static void head_send_locked(jk_server *server)
{
    jk_outbox *outbox = &server->output->outbox;
    jk_entry *entry = jk_outbox_pop_locked(outbox);
    jk_pace_popped(server, entry);
    pthread_mutex_unlock(&outbox->lock);
    entry_send(server, entry);
    pthread_mutex_lock(&outbox->lock);
}

int jk_iopub_send(jk_server *server)
{
    jk_outbox *outbox = &server->output->outbox;
    int delay = 0, look = -1;
    uint64_t sent = 0;
    pthread_mutex_lock(&outbox->lock);
    jk_outbox_awake_locked(outbox);
    if (jk_writers_stalled_locked(server) && server->ports->publisher)
        jk_publisher_give_up(server->ports->publisher);
    jk_writers_tell_locked(server);
    for (int i = 0; i < BATCH; i++) {
        delay = jk_pace_head_delay(server);
        if (delay != 0) break;
        head_send_locked(server);
        sent++;
        jk_writers_tell_locked(server);
    }
    if (server->ports->publisher) {
        pthread_mutex_unlock(&outbox->lock);
        look = jk_pace_flush(server);
        pthread_mutex_lock(&outbox->lock);
        delay = jk_pace_head_delay(server); /* more may have come */
        if (look >= 0 && (delay < 0 || look < delay)) delay = look;
    }
    jk_outbox_sent_locked(outbox, sent);
    jk_writers_tell_locked(server);
    delay = jk_pace_poll_delay(server, delay);
    jk_outbox_sleep_locked(outbox, delay);
    pthread_mutex_unlock(&outbox->lock);
    return delay;
}

void jk_iopub_send_all(jk_server *server)
{
    jk_outbox *outbox = &server->output->outbox;
    pthread_mutex_lock(&outbox->lock);
    for (uint64_t target = outbox->pushed; outbox->head && outbox->sent < target;
         jk_outbox_sent_locked(outbox, 1)) {
        head_send_locked(server);
    }
    pthread_mutex_unlock(&outbox->lock);
}
