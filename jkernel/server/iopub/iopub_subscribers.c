/* What subscribers are told of themselves: a welcome, the present status, what was left out for them. */
#include "jkernel/server/iopub/iopub_room.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

void jk_stream_content(jk_buffer *content, jk_stream stream, const char *text, size_t size)
{
    jk_buffer_append_text(content, stream == JK_STDERR ? "{\"name\":\"stderr\",\"text\":"
                                                       : "{\"name\":\"stdout\",\"text\":");
    jk_buffer_append_json(content, text, size);
    jk_buffer_append(content, "}", 1);
}

void jk_iopub_welcome(jk_server *server, uint64_t number, jk_bytes topic)
{
    struct timespec now;
    jk_buffer header = {0}, content = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    jk_session_header(server->session, "iopub_welcome", now, &header);
    jk_buffer_append_text(&content, "{\"subscription\":");
    jk_buffer_append_json(&content, topic.data, topic.size);
    jk_buffer_append(&content, "}", 1);
    jk_outgoing outgoing = {.envelope = {.topic = topic,
                                         .header = {header.data, header.size},
                                         .content = {content.data, content.size}},
                            .only = number};
    int result = -1;
    if (!header.failed && !content.failed && server->ports->publisher)
        result = jk_publisher_send(server->ports->publisher, &outgoing);
    else if (!header.failed && !content.failed)
        result = jk_envelope_send(&outgoing.envelope, server->ports->sockets[JK_IOPUB], server->signer);
    if (result != 0) jk_log("cannot welcome a subscriber");
    jk_buffer_clear(&header);
    jk_buffer_clear(&content);
}

/* Who comes before `starting` is said hears that. */
static void on_again(jk_server *server, uint64_t number, bool told)
{
    jk_status_again(server, atomic_load(&server->output->cells.started), number, told);
}

static jk_wire_message *on_note(jk_server *server, const jk_gap *gap)
{
    char text[200], more[64] = "";
    struct timespec now;
    jk_buffer header = {0}, content = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (gap->messages) snprintf(more, sizeof more, " and %zu messages", gap->messages);
    int size = snprintf(text, sizeof text,
                        "\n[%zu bytes of output%s were left out here: this client did not read]\n",
                        gap->bytes, more);
    jk_session_header(server->session, "stream", now, &header);
    jk_stream_content(&content, JK_STDERR, text, (size_t)size);
    jk_envelope envelope = {
        .topic = {JK_NOTE_TOPIC, strlen(JK_NOTE_TOPIC)},
        .header = {header.data, header.size},
        .content = {content.data, content.size},
    };
    if (gap->parent) envelope.parent = (jk_bytes){gap->parent->header, gap->parent->size};
    jk_wire_message *note =
        header.failed || content.failed ? NULL : jk_publisher_pack(server->ports->publisher, &envelope);
    jk_buffer_clear(&header);
    jk_buffer_clear(&content);
    return note;
}

void jk_iopub_open(jk_server *server, const jk_leaving *leaving)
{
    static const jk_publisher_calls calls = {jk_iopub_welcome, on_again, on_note};
    server->iopub->leaving = leaving;
    if (!server->ports->publisher) return;
    jk_publisher_register(server->ports->publisher, &calls);
    jk_writers_apart(server);
}

void jk_iopub_clear(jk_server *server)
{
    jk_parent_release(server->iopub->pace.last_parent);
    server->iopub->pace.last_parent = NULL;
}

void jk_iopub_receive(jk_server *server)
{
    if (server->ports->publisher) {
        jk_publisher_serve(server->ports->publisher);
    } else {
        jk_xpub_receive(server);
    }
}

zmq_pollitem_t jk_iopub_item(const jk_server *server)
{
    if (server->ports->publisher) return jk_publisher_item(server->ports->publisher);
    return (zmq_pollitem_t){.socket = server->ports->sockets[JK_IOPUB], .events = ZMQ_POLLIN};
}
