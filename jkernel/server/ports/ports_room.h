/* The room of the ports: the five channels as byte streams and messages, without a thought about what they
 * say. Without encryption they are ports of ours (peer.c, router.c, publisher.c), which bound what a peer may
 * make us keep before its signature is seen and know what each peer has taken. With encryption they are
 * sockets of libzmq's, which alone speaks CURVE. The jk_channel functions know which it is.
 *
 * Owns: sockets, listeners, connections and their queues. What only files of this room need is in peer.h.
 * Locks: none. Threads: a channel belongs to one thread, which alone calls its functions: shell, stdin and
 * iopub to io, control and heartbeat to the threads of their names. Nothing here waits, but opening and
 * closing. Called back, on the io thread: jk_publisher_calls, which the room of output registers. */
#ifndef JK_PORTS_ROOM_H
#define JK_PORTS_ROOM_H

#include "jkernel/server/life/life_room.h"
#include "jkernel/wire/zmtp.h"

#define JK_IN_FLIGHT_LIMIT                                                                                   \
    (32u << 20) /* bytes that a subscriber has not taken, above which stream text stays in the queue */
#define JK_RECEIVED_MOST                                                                                     \
    64 /* messages of one client that libzmq takes beyond what is held, with encryption */

typedef struct jk_publisher jk_publisher;
typedef struct jk_router jk_router;

/* sockets.c writes it. */
typedef struct jk_ports {
    void *context, *heart_context;
    void *sockets[JK_CHANNELS]; /* NULL: not encrypted */
    bool bound[JK_CHANNELS];
    jk_publisher *publisher;         /* NULL: encrypted */
    jk_router *routers[JK_CHANNELS]; /* all but iopub; NULL: encrypted */
    int heart_stop;                  /* eventfd: the heartbeat's thread is to end */
} jk_ports;

/* --- sockets.c ----------------------------------------------------------------------------------------- */

/* Before jk_sockets_bind(): what jk_sockets_close() needs to find. */
void jk_ports_open(jk_ports *ports);
/* Bind all sockets; ports of 0 are chosen and written back, or told to the launcher that gave a registration
 * file. Returns 0, or -1 by jk_fail(). */
int jk_sockets_bind(jk_server *server);
void jk_sockets_close(jk_server *server);
/* Have the heartbeat's thread end. */
void jk_heartbeat_stop(jk_server *server);

/* --- register.c ---------------------------------------------------------------------------------------- */

/* Tell the launcher the ports and wait for its acknowledgement, 5 s at most. Returns 0, or -1 by jk_fail().
 */
int jk_server_register(jk_server *server);

/* --- ipc.c --------------------------------------------------------------------------------------------- */

/* A Unix socket that listens at `path`, for its owner alone. `replace`: what a process that has ended left
 * there is removed. Returns a descriptor, or -1 with errno: EADDRINUSE when somebody listens there, EEXIST
 * when it is no socket. */
int jk_ipc_claim(const char *path, bool replace);

/* --- router.c: all but iopub --------------------------------------------------------------------------- */

/* As an item of zmq_poll(): then jk_channel_read(). */
zmq_pollitem_t jk_channel_item(const jk_server *server, jk_channel channel);
/* Before a poll: as jk_port_delay(). */
int jk_channel_delay(const jk_server *server, jk_channel channel);
/* Read nothing from a channel for now, or read again, whatever `item` polls for. */
void jk_channel_deafen(const jk_server *server, jk_channel channel, bool deaf, zmq_pollitem_t *item);
/* Whether jk_channel_read() bounds what jk_channel_receive() finds. */
bool jk_channel_is_bounded(const jk_server *server, jk_channel channel);
/* Take what has come, and write what is queued. */
void jk_channel_read(jk_server *server, jk_channel channel);
/* The next message: as jk_frames_receive(). */
int jk_channel_receive(jk_server *server, jk_channel channel, jk_frames *frames);
/* Give `envelope` a header of this type and date and send it. Returns the number of the message, also when
 * the peer is gone (errno is then EHOSTUNREACH); 0, which the log tells of, when it cannot be sent. */
unsigned long jk_channel_send(jk_server *server, jk_channel channel, const char *type, struct timespec date,
                              jk_envelope *envelope);

/* --- publisher.c: iopub without encryption ---------------------------------------------------------------
 *
 * Each subscriber has a queue of its own, of messages that all queues share. Who is more than
 * JK_IN_FLIGHT_LIMIT behind must show that it reads: it takes JK_READING_LEAST in JK_READING_LOOK, or, while
 * another subscriber keeps up, JK_READING_PACE. Then writers wait for it; else it is *set aside*, alone.
 * Nobody waits for one that is aside. It gets no stream text, but all other messages as long as it has less
 * than JK_KEPT_MOST to take (of small ones, such as statuses, JK_KEPT_SMALL more), and a note at each place
 * where something is left out. Once it has taken everything it is served again as before. All queues together
 * hold JK_TOTAL_MOST: beyond it, the one that is aside and furthest behind loses what is queued for it. */

#define JK_READING_LEAST (64u << 10)
#define JK_READING_LOOK  (2 * JK_SECOND)
#define JK_READING_PACE  (2u << 20) /* a queue of JK_IN_FLIGHT_LIMIT in half a minute */
#define JK_KEPT_MOST     (96u << 20)
#define JK_SMALL         (4u << 10)
#define JK_KEPT_SMALL    (16u << 20)
#define JK_TOTAL_MOST    (256u << 20)
#define JK_NOTE_TOPIC    "stream.stderr"
#define JK_TOPIC_MOST    1024         /* bytes of a subscription */
#define JK_TOPICS_MOST   512          /* subscriptions of one; two that are the same count once */
#define JK_TOPICS_TOTAL  (64u << 20)  /* bytes of all */
#define JK_WELCOME_BELOW (256u << 10) /* bytes that one has not taken, beyond which it is not welcomed */

/* What a subscriber has missed since the last note. */
typedef struct jk_gap {
    jk_parent *parent; /* retained: of the latest that was left out; NULL: none */
    size_t bytes;      /* of stream text */
    size_t messages;   /* of other kinds */
} jk_gap;

typedef struct jk_outgoing {
    jk_envelope envelope;
    jk_parent *parent; /* NULL: none */
    size_t text;       /* bytes of stream text; 0: another kind of message */
    uint64_t only;     /* the number of the one who is to get it; 0: all */
    bool status;
} jk_outgoing;

/* What the room of output says to subscribers, whom only this room sees come. */
typedef struct jk_publisher_calls {
    /* The subscriber `number` has subscribed to this, as it had not before. */
    void (*welcome)(jk_server *server, uint64_t number, jk_bytes topic);
    /* It has subscribed to something new, or has missed messages. `told`: the latest status was sent to it.
     */
    void (*again)(jk_server *server, uint64_t number, bool told);
    jk_wire_message *(*note)(jk_server *server, const jk_gap *gap);
} jk_publisher_calls;

/* Take `listener`. NULL with errno. */
jk_publisher *jk_publisher_create(jk_server *server, int listener);
/* Before anything is served. */
void jk_publisher_register(jk_publisher *publisher, const jk_publisher_calls *calls);
/* Give the subscribers a last chance to take what is queued, `linger` ns at most, and hang up. NULL-safe. */
void jk_publisher_release(jk_publisher *publisher, int64_t linger);
/* As an item of zmq_poll(). */
zmq_pollitem_t jk_publisher_item(const jk_publisher *publisher);
/* Pack a message that counts as kept by this publisher. NULL: no memory. */
jk_wire_message *jk_publisher_pack(jk_publisher *publisher, const jk_envelope *envelope);
/* Bytes of all messages that are kept. Any thread. */
size_t jk_publisher_kept(const jk_publisher *publisher);
/* Queue for all that have subscribed; the content is *taken* when it has a content_free. Returns 0, or -1. */
int jk_publisher_send(jk_publisher *publisher, const jk_outgoing *outgoing);
/* Accept, read, write. */
void jk_publisher_serve(jk_publisher *publisher);
/* Write what the connections take. */
void jk_publisher_flush(jk_publisher *publisher);
/* Set aside who does not read; returns how many bytes the slowest of those that are waited for is behind. */
size_t jk_publisher_behind(jk_publisher *publisher);
/* A writer has waited long enough: set aside all that are too far behind. */
void jk_publisher_give_up(jk_publisher *publisher);
/* ms until the next jk_publisher_serve() though nothing is readable; -1: none is needed. */
int jk_publisher_delay(jk_publisher *publisher);
/* Write until `deadline`. Returns whether somebody has taken all, or nobody listens. */
bool jk_publisher_drain(jk_publisher *publisher, int64_t deadline);

#endif
