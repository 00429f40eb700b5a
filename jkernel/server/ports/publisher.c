/* Subscribers: what each wants, how far behind it is, and what is left out for it. */
#include "base/base.h"
#include "jkernel/server/ports/peer.h"
#include "jkernel/server/ports/ports_room.h"

#include <poll.h>
#include <string.h>

#define FRAME_MOST  (64u << 10)  /* of a subscription */
#define WRITE_ABOVE (256u << 10) /* bytes queued for one, from which on it is written to at once */
#define DRAIN_LOOK  20           /* ms */

struct jk_publisher {
    jk_port port;
    jk_server *server; /* borrowed: for `calls` */
    const jk_publisher_calls *calls;
    size_t topics; /* bytes of all subscriptions */
};

typedef struct subscription {
    struct subscription *next;
    size_t count; /* how often it was made and not taken back */
    size_t size;
    char topic[];
} subscription;

typedef struct jk_subscriber {
    jk_peer peer;
    subscription *topics;
    size_t ntopics;
    bool several; /* the latest frame was not the whole message: it is no subscription */
    bool is_new;  /* it has subscribed since it was last told the state */
    bool told;    /* it has got a status, and missed none since */
    bool aside;
    bool lazy;   /* has taken too little in the last look */
    bool judged; /* is too far behind, and a look has begun for that */
    int64_t look_at;
    uint64_t look_taken;
    jk_gap gap;
} jk_subscriber;

static jk_subscriber *subscriber_of(jk_peer *peer)
{
    return (jk_subscriber *)peer;
}

static jk_publisher *publisher_of(jk_port *port)
{
    return (jk_publisher *)port;
}

/* --- Subscriptions ----------------------------------------------------------------------------------------
 */

/* What the limit of all subscriptions counts for one. */
static size_t topic_cost(size_t size)
{
    return size + sizeof(subscription);
}

/* Where the link to the subscription to just this topic is; it is NULL when there is none. */
static subscription **topic_find(jk_subscriber *subscriber, jk_bytes topic)
{
    subscription **link = &subscriber->topics;
    while (*link && ((*link)->size != topic.size || memcmp((*link)->topic, topic.data, topic.size) != 0))
        link = &(*link)->next;
    return link;
}

/* Whether one of the subscriptions is what `topic` begins with. */
static bool subscriber_wants(const jk_subscriber *subscriber, jk_bytes topic)
{
    if (subscriber->peer.gone || subscriber->peer.mute) return false;
    const subscription *wanted = subscriber->topics;
    while (wanted && (wanted->size > topic.size || memcmp(wanted->topic, topic.data, wanted->size) != 0))
        wanted = wanted->next;
    return wanted != NULL;
}

/* One that is not there yet. */
static bool topic_add(jk_publisher *publisher, jk_subscriber *subscriber, jk_bytes topic)
{
    if (topic.size > JK_TOPIC_MOST || subscriber->ntopics == JK_TOPICS_MOST ||
        publisher->topics + topic_cost(topic.size) > JK_TOPICS_TOTAL)
        return false;
    subscription *made = jk_memory_take(topic_cost(topic.size));
    if (!made) return false;
    *made = (subscription){.next = subscriber->topics, .count = 1, .size = topic.size};
    memcpy(made->topic, topic.data, topic.size);
    subscriber->topics = made;
    subscriber->ntopics++;
    publisher->topics += topic_cost(topic.size);
    return true;
}

static void topic_drop(jk_publisher *publisher, jk_subscriber *subscriber, subscription **link)
{
    subscription *dropped = *link;
    *link = dropped->next;
    subscriber->ntopics--;
    publisher->topics -= topic_cost(dropped->size);
    jk_memory_release(dropped);
}

/* Whoever subscribes and takes it back without end, and does not read, is not welcomed without end. */
static void on_subscribe(jk_port *port, jk_peer *peer, jk_bytes topic, bool on)
{
    jk_publisher *publisher = publisher_of(port);
    jk_subscriber *subscriber = subscriber_of(peer);
    subscription **before = topic_find(subscriber, topic);
    if (*before) {
        if (on) {
            (*before)->count++;
        } else if (--(*before)->count == 0) {
            topic_drop(publisher, subscriber, before);
        }
        return;
    }
    if (!on) return;
    if (!topic_add(publisher, subscriber, topic)) {
        jk_peer_leave(peer);
        return;
    }
    if (!drupe_utf8_valid(topic.data, topic.size)) return; /* a welcome could not name it */
    subscriber->is_new = true;
    if (peer->queued <= JK_WELCOME_BELOW) publisher->calls->welcome(publisher->server, peer->number, topic);
}

/* A message of one frame: 1 subscribes, 0 takes it back. Others mean nothing. */
static void on_frame(jk_port *port, jk_peer *peer, jk_bytes body)
{
    jk_subscriber *subscriber = subscriber_of(peer);
    bool whole = !subscriber->several && !peer->reader.more;
    subscriber->several = peer->reader.more;
    const char *data = body.data;
    if (!whole || body.size == 0 || (data[0] != 0 && data[0] != 1)) return;
    on_subscribe(port, peer, (jk_bytes){data + 1, body.size - 1}, data[0] == 1);
}

static void on_pause(jk_port *port, jk_peer *peer)
{
    jk_publisher *publisher = publisher_of(port);
    jk_subscriber *subscriber = subscriber_of(peer);
    if (!subscriber->is_new || peer->queued > JK_WELCOME_BELOW) return;
    subscriber->is_new = false;
    publisher->calls->again(publisher->server, peer->number, subscriber->told);
}

static void on_free(jk_port *port, jk_peer *peer)
{
    jk_publisher *publisher = publisher_of(port);
    jk_subscriber *subscriber = subscriber_of(peer);
    while (subscriber->topics) topic_drop(publisher, subscriber, &subscriber->topics);
    jk_parent_release(subscriber->gap.parent);
}

static const jk_port_kind kind = {
    .size = sizeof(jk_publisher),
    .socket = "XPUB",
    .fits = "SUB XSUB",
    .peer_size = sizeof(jk_subscriber),
    .frame_most = FRAME_MOST,
    .frame = on_frame,
    .subscribe = on_subscribe,
    .pause = on_pause,
    .free = on_free,
};

/* --- Who reads --------------------------------------------------------------------------------------------
 */

/* Whether somebody else reads what comes at once: who is behind holds its text up. */
static bool another_keeps_up(const jk_publisher *publisher, const jk_subscriber *subscriber)
{
    for (const jk_peer *peer = publisher->port.peers; peer; peer = peer->next) {
        const jk_subscriber *other = (const jk_subscriber *)peer;
        if (other == subscriber || peer->gone || peer->mute || other->aside || other->ntopics == 0) continue;
        if (peer->queued <= JK_IN_FLIGHT_LIMIT) return true;
    }
    return false;
}

static void look_begin(jk_subscriber *subscriber)
{
    subscriber->look_at = jk_clock();
    subscriber->look_taken = subscriber->peer.taken;
}

static void subscriber_look(const jk_publisher *publisher, jk_subscriber *subscriber)
{
    if (subscriber->peer.queued > 0 && jk_clock() - subscriber->look_at < JK_READING_LOOK) return;
    uint64_t taken = subscriber->peer.taken - subscriber->look_taken;
    bool slow = taken < JK_READING_PACE && subscriber->peer.queued > JK_IN_FLIGHT_LIMIT;
    subscriber->lazy = subscriber->peer.queued > 0 &&
                       (taken < JK_READING_LEAST || (slow && another_keeps_up(publisher, subscriber)));
    look_begin(subscriber);
}

static void gap_tell(jk_publisher *publisher, jk_subscriber *subscriber)
{
    jk_gap *gap = &subscriber->gap;
    if (!gap->bytes && !gap->messages) return;
    bool wanted = subscriber_wants(subscriber, (jk_bytes){JK_NOTE_TOPIC, strlen(JK_NOTE_TOPIC)});
    jk_wire_message *note = wanted ? publisher->calls->note(publisher->server, gap) : NULL;
    bool lost = wanted && (!note || jk_peer_queue(&subscriber->peer, note) != 0);
    jk_wire_message_release(note);
    if (lost) return; /* no memory: told with what is left out next */
    jk_parent_release(gap->parent);
    *gap = (jk_gap){0};
}

/* Whether one that is aside has no room for a message of so many bytes. */
static bool subscriber_full(const jk_subscriber *subscriber, size_t size)
{
    return subscriber->peer.queued > JK_KEPT_MOST + (size <= JK_SMALL ? JK_KEPT_SMALL : 0);
}

/* A note belongs to one cell, as long as there is room for one. */
static void gap_add(jk_publisher *publisher, jk_subscriber *subscriber, const jk_outgoing *outgoing)
{
    jk_gap *gap = &subscriber->gap;
    if (gap->parent != outgoing->parent && !subscriber_full(subscriber, 0)) gap_tell(publisher, subscriber);
    jk_parent *before = gap->parent;
    gap->parent = jk_parent_retain(outgoing->parent);
    jk_parent_release(before);
    gap->bytes += outgoing->text;
    gap->messages += outgoing->text == 0;
    if (outgoing->status) subscriber->told = false;
}

/* Whoever was aside and has taken all is one of those that read. */
static void settle(jk_publisher *publisher)
{
    for (jk_peer *peer = publisher->port.peers; peer; peer = peer->next) {
        jk_subscriber *subscriber = subscriber_of(peer);
        if (!subscriber->aside || peer->gone || peer->mute || peer->queued > 0) continue;
        bool missed = subscriber->gap.messages > 0;
        subscriber->aside = subscriber->lazy = false;
        gap_tell(publisher, subscriber);
        if (missed) publisher->calls->again(publisher->server, peer->number, subscriber->told);
        jk_peer_write(&publisher->port, peer);
    }
    jk_port_sweep(&publisher->port);
}

/* What its connection had room for when it fell behind is nothing that it has read: a new look begins there.
 */
static void subscriber_judge(const jk_publisher *publisher, jk_subscriber *subscriber)
{
    subscriber_look(publisher, subscriber);
    if (!subscriber->judged && !subscriber->lazy) look_begin(subscriber);
    subscriber->judged = true;
    subscriber->aside = subscriber->lazy;
}

size_t jk_publisher_behind(jk_publisher *publisher)
{
    size_t behind = 0;
    for (jk_peer *peer = publisher->port.peers; peer; peer = peer->next) {
        jk_subscriber *subscriber = subscriber_of(peer);
        if (peer->gone || subscriber->aside) continue;
        if (peer->queued > JK_IN_FLIGHT_LIMIT) {
            subscriber_judge(publisher, subscriber);
        } else {
            subscriber->judged = false;
        }
        if (!subscriber->aside && peer->queued > behind) behind = peer->queued;
    }
    return behind;
}

void jk_publisher_give_up(jk_publisher *publisher)
{
    for (jk_peer *peer = publisher->port.peers; peer; peer = peer->next)
        if (peer->queued > JK_IN_FLIGHT_LIMIT) subscriber_of(peer)->aside = true;
}

int jk_publisher_delay(jk_publisher *publisher)
{
    int delay = jk_port_delay(&publisher->port);
    for (jk_peer *peer = publisher->port.peers; peer; peer = peer->next) {
        const jk_subscriber *subscriber = subscriber_of(peer);
        if (subscriber->aside || peer->queued <= JK_IN_FLIGHT_LIMIT) continue;
        int64_t rest = subscriber->look_at + JK_READING_LOOK - jk_clock();
        int ms = rest > 0 ? (int)(rest / JK_MILLISECOND) + 1 : 1;
        if (delay < 0 || ms < delay) delay = ms;
    }
    return delay;
}

/* --- Sending ----------------------------------------------------------------------------------------------
 */

/* While too much is kept, the one that is aside and furthest behind loses what it has not begun to take, and
 * its connection if that is not enough. */
static void total_bound(jk_publisher *publisher)
{
    while (publisher->port.total > JK_TOTAL_MOST) {
        jk_subscriber *worst = NULL;
        for (jk_peer *peer = publisher->port.peers; peer; peer = peer->next) {
            jk_subscriber *subscriber = subscriber_of(peer);
            if (peer->gone || !subscriber->aside || (worst && worst->peer.queued >= peer->queued)) continue;
            worst = subscriber;
        }
        if (!worst) return;
        size_t messages = jk_peer_forget(&worst->peer);
        worst->gap.messages += messages;
        worst->told = false;
        if (messages == 0) jk_peer_drop(&worst->peer);
    }
}

static void subscriber_send(jk_publisher *publisher, jk_subscriber *subscriber, const jk_outgoing *outgoing,
                            jk_wire_message *wire)
{
    jk_peer *peer = &subscriber->peer;
    subscriber_look(publisher, subscriber);
    if (subscriber->aside) {
        if (outgoing->text || subscriber_full(subscriber, wire->size)) {
            gap_add(publisher, subscriber, outgoing);
            return;
        }
        gap_tell(publisher, subscriber);
    }
    if (outgoing->status) subscriber->told = true;
    if (jk_peer_queue(peer, wire) != 0) {
        jk_peer_leave(peer);
    } else if (!peer->blocked && peer->queued > WRITE_ABOVE) {
        jk_peer_write(&publisher->port, peer);
    }
}

jk_wire_message *jk_publisher_pack(jk_publisher *publisher, const jk_envelope *envelope)
{
    return jk_wire_message_pack(envelope, publisher->server->signer, &publisher->port.total);
}

size_t jk_publisher_kept(const jk_publisher *publisher)
{
    return atomic_load(&publisher->port.total);
}

int jk_publisher_send(jk_publisher *publisher, const jk_outgoing *outgoing)
{
    jk_wire_message *wire = jk_publisher_pack(publisher, &outgoing->envelope);
    if (!wire) return -1;
    for (jk_peer *peer = publisher->port.peers; peer; peer = peer->next) {
        if (outgoing->only && outgoing->only != peer->number) continue;
        jk_subscriber *subscriber = subscriber_of(peer);
        if (subscriber_wants(subscriber, outgoing->envelope.topic))
            subscriber_send(publisher, subscriber, outgoing, wire);
    }
    jk_wire_message_release(wire);
    total_bound(publisher);
    return 0;
}

void jk_publisher_flush(jk_publisher *publisher)
{
    for (jk_peer *peer = publisher->port.peers; peer; peer = peer->next)
        if (!peer->blocked && peer->head) jk_peer_write(&publisher->port, peer);
    settle(publisher);
}

void jk_publisher_serve(jk_publisher *publisher)
{
    jk_port_serve(&publisher->port);
    settle(publisher);
}

/* Whether somebody has taken all, or nobody listens; `*left`: somebody else has not, and may. */
static bool taken_by_one(const jk_publisher *publisher, bool *left)
{
    bool any = false, listened = false;
    *left = false;
    for (jk_peer *peer = publisher->port.peers; peer; peer = peer->next) {
        const jk_subscriber *subscriber = subscriber_of(peer);
        if (peer->gone || peer->mute || subscriber->ntopics == 0) continue;
        listened = true;
        any |= peer->queued == 0;
        *left |= peer->queued > 0 && !subscriber->aside;
    }
    return any || !listened;
}

bool jk_publisher_drain(jk_publisher *publisher, int64_t deadline)
{
    bool left;
    jk_publisher_flush(publisher);
    bool taken = taken_by_one(publisher, &left);
    while (left && jk_clock() < deadline) {
        struct pollfd item = {.fd = publisher->port.epoll, .events = POLLIN};
        poll(&item, 1, DRAIN_LOOK);
        jk_publisher_serve(publisher);
        jk_publisher_behind(publisher);
        taken = taken_by_one(publisher, &left);
    }
    return taken;
}

/* --- Life -------------------------------------------------------------------------------------------------
 */

jk_publisher *jk_publisher_create(jk_server *server, int listener)
{
    jk_publisher *publisher = (jk_publisher *)jk_port_open(&kind, listener);
    if (publisher) publisher->server = server;
    return publisher;
}

void jk_publisher_register(jk_publisher *publisher, const jk_publisher_calls *calls)
{
    publisher->calls = calls;
}

zmq_pollitem_t jk_publisher_item(const jk_publisher *publisher)
{
    return (zmq_pollitem_t){.fd = publisher->port.epoll, .events = ZMQ_POLLIN};
}

void jk_publisher_release(jk_publisher *publisher, int64_t linger)
{
    if (!publisher) return;
    jk_publisher_drain(publisher, jk_clock() + linger);
    jk_port_close(&publisher->port, 0);
    jk_memory_release(publisher);
}
