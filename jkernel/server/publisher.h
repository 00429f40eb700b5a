/* iopub without encryption: the server's own port, which knows of every subscriber what it has taken.
 *
 * Each subscriber has a queue of its own, of messages that all queues share. Who is more than JK_FLIGHT_LIMIT
 * behind must show that it reads: it takes JK_READING_LEAST in JK_READING_LOOK, or, while another subscriber
 * keeps up, JK_READING_PACE. Then writers wait for it; else it is *set aside*, alone. Nobody waits for one
 * that is aside. It gets no stream text, but all other messages as long as it has less than JK_KEPT_MOST to
 * take (of small ones, such as statuses, JK_KEPT_SMALL more), and a note at each place where something is
 * left out. Once it has taken everything it is served again as before. All queues together hold
 * JK_TOTAL_MOST: beyond it, the one that is aside and furthest behind loses what is queued for it.
 *
 * All on the io thread, but for opening and closing. */
#ifndef JK_PUBLISHER_H
#define JK_PUBLISHER_H

#include "jkernel/server/peer.h"
#include "jkernel/server/server.h"

#define JK_READING_LEAST (64u << 10)
#define JK_READING_LOOK  (2 * JK_SECOND)
#define JK_READING_PACE  (2u << 20) /* a queue of JK_FLIGHT_LIMIT in half a minute */
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

typedef struct jk_publisher {
    jk_port port;
    jk_server *server;
    size_t topics; /* bytes of all subscriptions */
    /* The subscriber `number` has subscribed to this, as it had not before; about what a gap says, for a
     * note. */
    void (*welcome)(jk_server *server, uint64_t number, jk_slice topic);
    /* It has subscribed to something new, or has missed messages. `told`: the latest status was sent to it.
     */
    void (*again)(jk_server *server, uint64_t number, bool told);
    jk_bundle *(*note)(jk_server *server, const jk_gap *gap);
} jk_publisher;

/* Take `listener`. The functions are set by the caller before anything is served. NULL with errno. */
jk_publisher *jk_publisher_create(jk_server *server, int listener);
/* Give the subscribers a last chance to take what is queued, `linger` ns at most, and hang up. NULL-safe. */
void jk_publisher_release(jk_publisher *publisher, int64_t linger);
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
