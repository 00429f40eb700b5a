/* Messages from and to peers that have names. What comes is gathered per peer until a message is whole. */
#include "jkernel/server/ports/router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct routed {
    jk_peer peer;
    jk_frames frames;  /* of the message that comes */
    size_t bytes;      /* of these frames */
    size_t unfinished; /* what router->unfinished counts for it */
    bool skip;         /* it has too many frames: read to its end and drop */
} routed;

static void body_free(void *data, void *hint)
{
    (void)hint;
    jk_memory_release(data);
}

static int frame_make(jk_zmtp *reader, jk_bytes body, zmq_msg_t *frame)
{
    jk_buffer kept;
    if (reader && jk_zmtp_keep(reader, body, &kept)) {
        if (zmq_msg_init_data(frame, kept.data, kept.size, body_free, NULL) == 0) return 0;
        jk_buffer_clear(&kept);
        return -1;
    }
    if (zmq_msg_init_size(frame, body.size) != 0) return -1;
    if (body.size) memcpy(zmq_msg_data(frame), body.data, body.size);
    return 0;
}

static int frame_add(routed *from, jk_zmtp *reader, jk_bytes body)
{
    zmq_msg_t frame;
    if (frame_make(reader, body, &frame) != 0) return -1;
    int result = jk_frames_add(&from->frames, &frame);
    zmq_msg_close(&frame);
    return result;
}

/* --- Names ------------------------------------------------------------------------------------------------
 */

/* `except` (NULL: nobody) is not looked at. */
static jk_peer *peer_find(const jk_port *port, jk_bytes name, const jk_peer *except)
{
    for (jk_peer *peer = port->peers; peer; peer = peer->next) {
        const jk_zmtp *reader = &peer->reader;
        if (peer != except && !peer->gone && reader->ready && reader->identity_size == name.size &&
            memcmp(reader->identity, name.data, name.size) == 0)
            return peer;
    }
    return NULL;
}

/* A client that reconnects comes back with its old name and takes it from the connection before. That one may
 * live: if it were closed it would come back, too, and take the name again. */
static void on_ready(jk_port *port, jk_peer *peer)
{
    jk_zmtp *reader = &peer->reader;
    jk_bytes name = {reader->identity, reader->identity_size};
    jk_peer *before = name.size ? peer_find(port, name, peer) : NULL;
    if (before) jk_zmtp_rename(&before->reader, before->number);
    if (reader->identity_size == 0 || reader->identity[0] == 0) jk_zmtp_rename(reader, peer->number);
}

/* --- Receiving --------------------------------------------------------------------------------------------
 */

static void message_drop(routed *from)
{
    jk_frames_clear(&from->frames);
    from->bytes = 0;
}

static void message_end(jk_router *router, routed *from)
{
    jk_arrived *arrived = from->skip ? NULL : jk_memory_clear(sizeof *arrived);
    if (!arrived) {
        jk_log("dropped a message: %s", from->skip ? "it has too many frames" : "no memory for it");
        message_drop(from);
    } else {
        arrived->frames = from->frames;
        memset(&from->frames, 0, sizeof from->frames);
        if (router->tail) {
            router->tail->next = arrived;
        } else {
            router->head = arrived;
        }
        router->tail = arrived;
    }
    from->bytes = 0;
    from->skip = false;
}

static void on_frame(jk_port *port, jk_peer *peer, jk_bytes body)
{
    routed *from = (routed *)peer;
    jk_zmtp *reader = &peer->reader;
    if (!from->skip && from->frames.count == 0)
        from->skip = frame_add(from, NULL, (jk_bytes){reader->identity, reader->identity_size}) != 0;
    from->bytes += body.size + sizeof(zmq_msg_t);
    if (!from->skip && frame_add(from, reader, body) != 0) from->skip = true;
    if (from->skip) message_drop(from);
    if (!reader->more) message_end((jk_router *)port, from);
}

static void unfinished_set(jk_router *router, routed *from, size_t bytes)
{
    router->unfinished += bytes - from->unfinished;
    from->unfinished = bytes;
}

static void on_pause(jk_port *port, jk_peer *peer)
{
    jk_router *router = (jk_router *)port;
    routed *from = (routed *)peer;
    unfinished_set(router, from, from->bytes + (peer->reader.in_body ? peer->reader.frame.size : 0));
    while (router->unfinished > JK_UNFINISHED_MOST) {
        routed *worst = from;
        for (jk_peer *other = port->peers; other; other = other->next)
            if (((routed *)other)->unfinished > worst->unfinished) worst = (routed *)other;
        jk_log("disconnected a client whose message never ended");
        jk_peer_leave(&worst->peer);
        message_drop(worst);
        jk_zmtp_clear(&worst->peer.reader);
        unfinished_set(router, worst, 0);
    }
}

static void on_free(jk_port *port, jk_peer *peer)
{
    routed *from = (routed *)peer;
    message_drop(from);
    unfinished_set((jk_router *)port, from, 0);
}

/* --- Echoes -----------------------------------------------------------------------------------------------
 */

typedef struct echoed {
    jk_peer peer;
    jk_buffer bytes; /* of this turn: written at its end, so that a flood costs one write */
} echoed;

static void echo_frame(jk_port *port, jk_peer *peer, jk_bytes body)
{
    char head[JK_FRAME_HEAD];
    jk_buffer *bytes = &((echoed *)peer)->bytes;
    (void)port;
    jk_buffer_append(bytes, head, jk_zmtp_head(head, body.size, peer->reader.more));
    jk_buffer_append(bytes, body.data, body.size);
}

static void echo_pause(jk_port *port, jk_peer *peer)
{
    jk_buffer *bytes = &((echoed *)peer)->bytes;
    if (bytes->size) jk_peer_send(port, peer, bytes);
    if (peer->queued > JK_ECHOES_MOST || peer->links > JK_ECHOES_COUNT) jk_peer_leave(peer);
}

static void echo_free(jk_port *port, jk_peer *peer)
{
    (void)port;
    jk_buffer_clear(&((echoed *)peer)->bytes);
}

/* --- Life -------------------------------------------------------------------------------------------------
 */

static const jk_port_kind routing = {
    .size = sizeof(jk_router),
    .socket = "ROUTER",
    .fits = "DEALER REQ ROUTER",
    .peer_size = sizeof(routed),
    .frame_most = JK_UNFINISHED_MOST,
    .ready = on_ready,
    .frame = on_frame,
    .pause = on_pause,
    .free = on_free,
};

static const jk_port_kind echoing = {
    .size = sizeof(jk_router),
    .socket = "ROUTER",
    .fits = "DEALER REQ ROUTER",
    .peer_size = sizeof(echoed),
    .frame_most = JK_ECHO_MOST,
    .frame = echo_frame,
    .pause = echo_pause,
    .free = echo_free,
};

jk_router *jk_router_create(int listener, bool echoes)
{
    return (jk_router *)jk_port_open(echoes ? &echoing : &routing, listener);
}

static bool arrived_take(jk_router *router, jk_frames *frames)
{
    jk_arrived *arrived = router->head;
    if (!arrived) return false;
    router->head = arrived->next;
    if (!router->head) router->tail = NULL;
    *frames = arrived->frames;
    jk_memory_release(arrived);
    return true;
}

void jk_router_release(jk_router *router, int64_t linger)
{
    jk_frames frames;
    if (!router) return;
    jk_port_close(&router->port, linger);
    while (arrived_take(router, &frames)) jk_frames_clear(&frames);
    jk_memory_release(router);
}

/* --- Channels ---------------------------------------------------------------------------------------------
 */

zmq_pollitem_t jk_channel_item(const jk_server *server, jk_channel channel)
{
    const jk_router *router = server->ports->routers[channel];
    if (router) return (zmq_pollitem_t){.fd = router->port.epoll, .events = ZMQ_POLLIN};
    return (zmq_pollitem_t){.socket = server->ports->sockets[channel], .events = ZMQ_POLLIN};
}

int jk_channel_delay(const jk_server *server, jk_channel channel)
{
    return server->ports->routers[channel] ? jk_port_delay(&server->ports->routers[channel]->port) : -1;
}

void jk_channel_deafen(const jk_server *server, jk_channel channel, bool deaf, zmq_pollitem_t *item)
{
    jk_router *router = server->ports->routers[channel];
    if (router) {
        jk_port_deafen(&router->port, deaf);
    } else if (deaf) {
        item->events = 0;
    }
}

bool jk_channel_is_bounded(const jk_server *server, jk_channel channel)
{
    return server->ports->routers[channel] != NULL;
}

void jk_channel_read(jk_server *server, jk_channel channel)
{
    if (server->ports->routers[channel]) jk_port_serve(&server->ports->routers[channel]->port);
}

int jk_channel_receive(jk_server *server, jk_channel channel, jk_frames *frames)
{
    jk_router *router = server->ports->routers[channel];
    if (!router) return jk_frames_receive(server->ports->sockets[channel], frames);
    return arrived_take(router, frames) ? 1 : 0;
}

/* Returns 0 also when the peer is gone; errno is then EHOSTUNREACH. */
static int envelope_send(jk_server *server, jk_channel channel, const jk_envelope *envelope)
{
    jk_router *router = server->ports->routers[channel];
    if (!router) return jk_envelope_send(envelope, server->ports->sockets[channel], server->signer);
    jk_peer *peer = peer_find(&router->port, jk_message_identity(envelope->to, 0), NULL);
    if (!peer) {
        errno = EHOSTUNREACH;
        return 0;
    }
    jk_wire_message *wire = jk_wire_message_pack(envelope, server->signer, &router->port.total);
    int result = wire ? jk_peer_queue(peer, wire) : -1;
    jk_wire_message_release(wire);
    jk_peer_write(&router->port, peer);
    errno = result != 0 ? ENOMEM : peer->gone || peer->mute ? EHOSTUNREACH : 0;
    return result;
}

unsigned long jk_channel_send(jk_server *server, jk_channel channel, const char *type, struct timespec date,
                              jk_envelope *envelope)
{
    jk_buffer header = {0};
    unsigned long number = jk_session_header(server->session, type, date, &header);
    envelope->header = (jk_bytes){header.data, header.size};
    if (header.failed || envelope_send(server, channel, envelope) != 0) {
        jk_log("cannot send a %s: %s", type, zmq_strerror(zmq_errno()));
        number = 0;
    }
    int reason = errno;
    jk_buffer_clear(&header);
    errno = reason;
    return number;
}
