/* ZMTP 3.0, the protocol of ZeroMQ's connections, as the side that listens, with the mechanism NULL:
 * greeting, READY, then frames. No sockets and no threads of its own; everything that arrives is untrusted.
 *
 * Source: ZeroMQ RFC 23 (ZMTP 3.0); PING, PONG, SUBSCRIBE and CANCEL are those of RFC 37 (3.1),
 * which clients send to 3.0, too.
 */
#ifndef JK_ZMTP_H
#define JK_ZMTP_H

#include "jkernel/wire/wire.h"

#define JK_GREETING_SIZE 64
#define JK_FRAME_HEAD    9 /* bytes before a frame, at most */

typedef enum jk_zmtp_event {
    JK_ZMTP_WANTS,     /* all is read; more bytes are wanted */
    JK_ZMTP_READY,     /* the peer has told its socket type: `kind` */
    JK_ZMTP_FRAME,     /* of a message: `body`, `more` */
    JK_ZMTP_PING,      /* to be answered with jk_zmtp_pong(); `body` is what to send back */
    JK_ZMTP_SUBSCRIBE, /* a command of 3.1: `body` is the topic */
    JK_ZMTP_CANCEL,    /* it is taken back */
    JK_ZMTP_BROKEN,    /* not ZMTP 3, another mechanism, a frame that is too long, or no memory: hang up */
} jk_zmtp_event;

/* What has been read of one connection. Set `frame_most`, zero the rest. */
typedef struct jk_zmtp {
    size_t frame_most; /* bytes */
    char kind[16];     /* the peer's socket type, "SUB" */
    char identity[255];
    size_t identity_size; /* 0: it told none */
    bool more;            /* the latest frame is not the last one of its message */
    /* The reader's own. */
    bool greeted, ready, command, in_body;
    unsigned char head[JK_GREETING_SIZE];
    size_t have;     /* bytes of `head` */
    size_t size;     /* of the frame whose body is read */
    jk_buffer frame; /* of it, what came in earlier reads */
} jk_zmtp;

/* Read on: what is used up is cut off `rest`. `body` is borrowed until the next call. */
jk_zmtp_event jk_zmtp_read(jk_zmtp *reader, jk_bytes *rest, jk_bytes *body);
/* Take over the memory of the latest body if it was gathered; returns false when it was not. */
bool jk_zmtp_keep(jk_zmtp *reader, jk_bytes body, jk_buffer *kept);
void jk_zmtp_clear(jk_zmtp *reader);

/* Append our greeting and READY for a socket of this type. */
void jk_zmtp_greet(jk_buffer *out, const char *kind);
void jk_zmtp_pong(jk_buffer *out, jk_bytes context);
/* Write what stands before a frame of `size` bytes; returns how many bytes that are. */
size_t jk_zmtp_head(char head[JK_FRAME_HEAD], size_t size, bool more);

/* --- Messages to several peers ---------------------------------------------------------------------------
 */

#define JK_WIRE_MESSAGE_PARTS 3

/* A signed message as it goes over the wire, shared by the queues of those who are to get it. One thread. */
typedef struct jk_wire_message {
    size_t references;
    size_t size;
    atomic_size_t *total; /* counts the bytes of all wire messages that are kept; NULL: nobody counts */
    jk_bytes parts[JK_WIRE_MESSAGE_PARTS]; /* empty ones last */
    jk_buffer head, tail;
    jk_bytes content; /* *taken*: released through this */
    void (*content_free)(void *data, void *hint);
    void *hint;
} jk_wire_message;

/* Pack `envelope`. The first identity of its `to` is left out: it is what the peer is found by. Returns one
 * reference, or NULL: no memory. */
jk_wire_message *jk_wire_message_pack(const jk_envelope *envelope, const jk_signer *signer,
                                      atomic_size_t *total);
/* Bytes for one peer: `bytes` is taken and left empty. */
jk_wire_message *jk_wire_message_of(jk_buffer *bytes, atomic_size_t *total);
jk_wire_message *jk_wire_message_retain(jk_wire_message *wire);
void jk_wire_message_release(jk_wire_message *wire); /* NULL-safe */

/* Give the peer a name that begins with a zero, as no client's may, and that no other `number` gets. */
void jk_zmtp_rename(jk_zmtp *reader, uint64_t number);

#endif
