/* The room of iopub: what leaves the outbox when, and through which publisher. Without encryption that is
 * ours (ports/publisher.c), with it libzmq's (iopub_curve.c). Stream text waits in the outbox while a
 * subscriber that reads is too far behind. Other iopub messages wait only while it is more than JK_KEPT_MOST
 * behind, with encryption never. Replies and questions wait for
 * nothing but what stands before them.
 *
 * Owns: the pace of stream text. Locks: none; the pace is written under outbox.lock or by the io thread
 * alone. Threads: the io thread's, but for opening. Replies and questions leave through jk_leaving, which the
 * rooms above register: their order among the outputs is this room's, what they do is not. */
#ifndef JK_IOPUB_ROOM_H
#define JK_IOPUB_ROOM_H

#include "jkernel/server/outbox/outbox_room.h"
#include "jkernel/server/ports/ports_room.h"

#define JK_STREAM_PAUSE (30 * JK_MILLISECOND)
/* Between cells: a client that waits for 0.2 s of silence must find them while a thread prints on. */
#define JK_STREAM_PAUSE_BETWEEN (300 * JK_MILLISECOND)
/* Stream messages that may go at once, and a second. jupyter_server drops what exceeds 3000 in 3 s. */
#define JK_STREAM_BURST 1000
#define JK_STREAM_RATE  600
#define JK_COPIED_BELOW 1024 /* bytes of content that are cheaper to copy than to hand over */

/* --- iopub_pace.c: when -------------------------------------------------------------------------------- */

typedef struct jk_pace {
    bool expecting;         /* requests were handed over: their busy and execute_input come at once */
    jk_parent *last_parent; /* of the latest stream message, retained */
    jk_stream last_stream;
    int64_t last_sent;    /* 0: none yet */
    int64_t rate_since;   /* stream messages are paid for up to this time */
    const jk_entry *line; /* the head that waits for the end of its line; compared, never followed */
    int64_t line_since;
} jk_pace;

/* A stream message leaves now. */
void jk_pace_pay(jk_server *server, const jk_entry *entry);
/* This was the head of the queue, and is not any more: its address may come again. */
void jk_pace_popped(jk_server *server, const jk_entry *entry);
/* ms until the head of the queue may leave; -1 when it is empty. Under outbox.lock. */
int jk_pace_head_delay(jk_server *server);
/* Write what was handed to the publisher of ours. Returns the ms until it must be looked at again; -1: when
 * there is something. */
int jk_pace_flush(jk_server *server);
/* Requests were handed over, or not, since the last poll. */
void jk_iopub_expect(jk_server *server, bool handed_over);
/* The delay before the next poll, which is shorter while something is expected. */
int jk_pace_poll_delay(jk_server *server, int delay);

/* --- iopub_curve.c: a socket of libzmq's. What each subscriber has not taken is not to be known here, only
 * what all have not. */

typedef struct jk_stall {
    int64_t since;
    unsigned progress;
} jk_stall;

/* Send on the socket. `content` is taken when it is large. Returns 0, or -1 with errno. */
int jk_xpub_send(jk_server *server, jk_envelope *envelope, jk_buffer *content);
/* ms that stream text at the head of the queue must wait because too much is in flight. Holds outbox.lock. */
int jk_xpub_stall(jk_server *server, jk_entry *head);
/* Take subscriptions from the socket and welcome each. */
void jk_xpub_receive(jk_server *server);

/* --- iopub_subscribers.c ------------------------------------------------------------------------------- */

/* Welcome a subscriber: our publisher's with this number; libzmq's whose own filter lets it through. */
void jk_iopub_welcome(jk_server *server, uint64_t number, jk_bytes topic);
/* Take subscriptions and welcome each. */
void jk_iopub_receive(jk_server *server);
/* As an item of zmq_poll(). */
zmq_pollitem_t jk_iopub_item(const jk_server *server);
/* The content of a stream message. */
void jk_stream_content(jk_buffer *content, jk_stream stream, const char *text, size_t size);

/* --- iopub.c ------------------------------------------------------------------------------------------- */

/* What the rooms above do with entries that leave on another channel. Each takes the entry. */
typedef struct jk_leaving {
    void (*reply)(jk_server *server, jk_entry *entry);
    void (*question)(jk_server *server, jk_entry *entry);
} jk_leaving;

/* The room's parts, each written by the file above that declares it. */
typedef struct jk_iopub {
    jk_pace pace;
    jk_stall stall;
    const jk_leaving *leaving; /* borrowed */
} jk_iopub;

/* Once the ports are open, before the threads are. */
void jk_iopub_open(jk_server *server, const jk_leaving *leaving);
void jk_iopub_clear(jk_server *server); /* after the io thread has ended */
/* Send what may leave now; returns the ms after which to call again, -1 for "when woken". */
int jk_iopub_send(jk_server *server);
/* Send what is queued, at once and in order, whatever is in flight. */
void jk_iopub_send_all(jk_server *server);

#endif
