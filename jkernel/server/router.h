/* shell, control, stdin and heartbeat without encryption: ports of our own, which bound what a peer may make
 * us keep before its signature is seen. With encryption they are sockets of libzmq's; the jk_channel
 * functions know which it is. Each is used by the thread that owns the channel. */
#ifndef JK_ROUTER_H
#define JK_ROUTER_H

#include "jkernel/server/peer.h"
#include "jkernel/server/server.h"

/* Bytes of all messages of a channel that have not come to their end, beyond which the one that has most
 * loses its connection. */
#define JK_UNFINISHED_MOST ((size_t)512 << 20)
#define JK_ECHO_MOST       ((size_t)64 << 10) /* bytes of a heartbeat's frame */
#define JK_ECHOES_MOST     ((size_t)1 << 20)  /* bytes of echoes that a peer does not take */
#define JK_ECHOES_COUNT    1024               /* of these echoes: an empty one costs memory, too */

typedef struct jk_arrived { /* a message that is whole */
    struct jk_arrived *next;
    jk_frames frames; /* the first is the identity of its sender */
} jk_arrived;

typedef struct jk_router {
    jk_port port;
    size_t unfinished; /* bytes */
    jk_arrived *head, *tail;
} jk_router;

/* Take `listener`. NULL with errno. */
jk_router *jk_router_create(int listener);
/* For heartbeats: it echoes while it is served, and nothing arrives. */
jk_router *jk_router_create_echo(int listener);
/* Let the peers take what is queued for `linger` ns at most. NULL-safe. */
void jk_router_release(jk_router *router, int64_t linger);

/* As an item of zmq_poll(): then jk_channel_read(). */
zmq_pollitem_t jk_channel_item(const jk_server *server, jk_channel channel);
/* Before a poll: as jk_port_delay(). */
int jk_channel_delay(const jk_server *server, jk_channel channel);
/* Take what has come, and write what is queued. */
void jk_channel_read(jk_server *server, jk_channel channel);
/* The next message: as jk_frames_receive(). */
int jk_channel_receive(jk_server *server, jk_channel channel, jk_frames *frames);
/* As jk_envelope_send(); errno is EHOSTUNREACH when the peer is gone. */
int jk_channel_send(jk_server *server, jk_channel channel, const jk_envelope *envelope);

#endif
