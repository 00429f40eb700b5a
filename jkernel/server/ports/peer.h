/* Inside the room of ports: connections that the server reads and writes itself: a port that listens, and the
 * peers that came. What libzmq would do for a socket, with what it does not tell: what each peer has taken,
 * and when.
 *
 * A port belongs to one thread. Nothing here waits. A peer that has gone, or broke the
 * protocol, is marked `gone` and freed by jk_port_sweep(), so that a pointer to one stays good meanwhile. */
#ifndef JK_PEER_H
#define JK_PEER_H

#include "jkernel/wire/zmtp.h"

#include "jkernel/server/tools/tools_room.h"

#include <stdatomic.h>

typedef struct jk_link { /* in a peer's queue */
    struct jk_link *next;
    jk_wire_message *wire; /* one reference */
} jk_link;

/* Over 20 members with those of its reader, which is a part of each connection. The reader is written by
 * wire/zmtp.c, the rest by peer.c. */
typedef struct jk_peer {
    struct jk_peer *next;
    uint64_t number; /* never used again for another one */
    int fd;
    int64_t since; /* when it came */
    bool gone;     /* nothing more is read or written */
    bool mute;     /* a write failed: nothing more is queued, and what has come is still read */
    bool blocked;  /* its connection takes nothing now; epoll tells when it does */
    jk_zmtp reader;
    jk_link *head, *tail;
    size_t head_sent; /* bytes of the head's that the connection has taken */
    size_t queued;    /* bytes that it has not taken */
    size_t links;     /* of the queue */
    uint64_t taken;   /* bytes that it took, ever */
    uint64_t pong_at; /* what `taken` is when it has taken the latest PONG; 0: none is queued */
} jk_peer;

typedef struct jk_port jk_port;

typedef struct jk_port_kind {
    size_t size;        /* of the struct that begins with a jk_port */
    const char *socket; /* our type, "XPUB" */
    const char *fits;   /* those of peers, "SUB XSUB" */
    size_t peer_size;   /* of the struct that begins with a jk_peer */
    size_t frame_most;
    /* It is one of those that fit. NULL: nobody has to know. */
    void (*ready)(jk_port *port, jk_peer *peer);
    /* A frame of a message; `peer->reader.more`: another one follows. */
    void (*frame)(jk_port *port, jk_peer *peer, jk_bytes body);
    /* A command of ZMTP 3.1: subscribe to this topic, or take that back. NULL: it means nothing. */
    void (*subscribe)(jk_port *port, jk_peer *peer, jk_bytes topic, bool on);
    /* All that could be read now is read. */
    void (*pause)(jk_port *port, jk_peer *peer);
    void (*free)(jk_port *port, jk_peer *peer);
} jk_port_kind;

struct jk_port {
    const jk_port_kind *kind;
    int listener, epoll;
    bool deaf; /* nothing is read for now */
    jk_peer *peers;
    uint64_t numbers;
    atomic_size_t total;  /* bytes of all wire messages that are kept; any thread may look */
    int64_t listen_again; /* no descriptors were left: until then nobody is accepted; 0: somebody may be */
};

/* Connections of a port. All ports together have no more than a quarter of the descriptors that the process
 * may have. */
#define JK_PEERS_MOST 512

/* A socket that listens on TCP; `*port` of 0 is replaced by the one chosen. `ip`: a number or "*".
 * Returns a descriptor, or -1 with errno. */
int jk_tcp_listen(const char *ip, int *port);

/* Begin to accept: a struct of `kind->size` bytes, zeroed behind the port. Takes `listener`, which does not
 * block. NULL with errno: `listener` is still the caller's. */
jk_port *jk_port_open(const jk_port_kind *kind, int listener);
/* Hang up, after what is queued was taken, or `linger` ns. What has come by then is read; then the port is
 * the caller's to free. */
void jk_port_close(jk_port *port, int64_t linger);
/* Read nothing for now, or read again. Whoever comes is accepted, and what is queued is written. */
void jk_port_deafen(jk_port *port, bool deaf);
/* Queue these bytes for one peer and write: `bytes` is taken and left empty. */
void jk_peer_send(jk_port *port, jk_peer *peer, jk_buffer *bytes);
/* Accept, read and write what can be now; port->epoll is readable when there is something. */
void jk_port_serve(jk_port *port);
/* Queue; the caller keeps its reference. Written by the next jk_peer_write(). Returns 0, or -1: no memory.
 * Nothing is queued for one that is mute. */
int jk_peer_queue(jk_peer *peer, jk_wire_message *wire);
/* Write what the connection takes. */
void jk_peer_write(jk_port *port, jk_peer *peer);
/* Drop what is queued and not begun. Returns the number of wire messages. */
size_t jk_peer_forget(jk_peer *peer);
/* Mark as gone. */
void jk_peer_leave(jk_peer *peer);
/* Mark as gone and drop all that is queued. */
void jk_peer_drop(jk_peer *peer);
/* Free those that are gone. */
void jk_port_sweep(jk_port *port);
/* Before a poll: ms until this is to be called again, because nobody could be accepted; -1: no need. */
int jk_port_delay(jk_port *port);

#endif
