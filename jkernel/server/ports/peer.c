/* Connections, read and written without waiting. */
#include "jkernel/server/ports/peer.h"
#include "jkernel/server/ports/ports_room.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define BACKLOG    100
#define READ_SIZE  (16u << 10)
#define READS      16   /* of one peer in a turn */
#define TURN_MOST  1024 /* frames and commands of one peer, beyond which its turn ends with what was read */
#define EVENTS     64
#define CLOSE_LOOK 20 /* ms */
#define SLICES     48 /* of one write */
/* Bytes that a connection takes and has not sent: with megabytes of them, who reads slowly would be seen to
 * take nothing for seconds, and then much. */
#define UNSENT_MOST    (128 << 10)
#define HANDSHAKE_MOST (64u << 10)            /* bytes of a stranger's command */
#define HANDSHAKE_TIME (30 * JK_SECOND)       /* for what is no ZMTP peer, as in libzmq */
#define PORTS          5                      /* one for each channel and iopub */
#define NO_DESCRIPTORS (100 * JK_MILLISECOND) /* until accept() is tried again */

/* --- Queues -----------------------------------------------------------------------------------------------
 */

int jk_peer_queue(jk_peer *peer, jk_wire_message *wire)
{
    if (peer->mute) return 0;
    jk_link *link = jk_memory_take(sizeof *link);
    if (!link) return -1;
    *link = (jk_link){NULL, jk_wire_message_retain(wire)};
    if (peer->tail) {
        peer->tail->next = link;
    } else {
        peer->head = link;
    }
    peer->tail = link;
    peer->queued += wire->size;
    peer->links++;
    return 0;
}

static void head_drop(jk_peer *peer)
{
    jk_link *head = peer->head;
    peer->head = head->next;
    if (!peer->head) peer->tail = NULL;
    peer->queued -= head->wire->size - peer->head_sent;
    peer->head_sent = 0;
    peer->links--;
    jk_wire_message_release(head->wire);
    jk_memory_release(head);
}

size_t jk_peer_forget(jk_peer *peer)
{
    jk_link *begun = peer->head_sent > 0 ? peer->head : NULL;
    jk_link *link = begun ? begun->next : peer->head;
    size_t count = 0;
    for (jk_link *next; link; link = next, count++) {
        next = link->next;
        peer->queued -= link->wire->size;
        jk_wire_message_release(link->wire);
        jk_memory_release(link);
    }
    if (begun) begun->next = NULL;
    peer->head = peer->tail = begun;
    peer->links -= count;
    peer->pong_at = 0;
    return count;
}

static void queue_drop(jk_peer *peer)
{
    while (peer->head) head_drop(peer);
}

void jk_peer_leave(jk_peer *peer)
{
    peer->gone = true;
}

void jk_peer_drop(jk_peer *peer)
{
    peer->gone = true;
    queue_drop(peer);
}

/* Returns how many slices what is queued begins with. */
static int slices_fill(const jk_peer *peer, struct iovec slices[SLICES])
{
    int count = 0;
    size_t sent = peer->head_sent;
    for (const jk_link *link = peer->head; link; link = link->next) {
        for (int i = 0; i < JK_WIRE_MESSAGE_PARTS; i++) {
            jk_bytes part = link->wire->parts[i];
            size_t skip = sent < part.size ? sent : part.size;
            sent -= skip;
            if (part.size == skip) continue;
            if (count == SLICES) return count;
            slices[count++] = (struct iovec){(char *)(uintptr_t)part.data + skip, part.size - skip};
        }
    }
    return count;
}

static void sent_account(jk_peer *peer, size_t sent)
{
    peer->taken += sent;
    peer->queued -= sent;
    sent += peer->head_sent;
    while (peer->head && sent >= peer->head->wire->size) {
        sent -= peer->head->wire->size;
        peer->head_sent = peer->head->wire->size;
        head_drop(peer);
    }
    peer->head_sent = sent;
}

/* Have epoll tell what is to be told of this peer. */
static void peer_watch(const jk_port *port, jk_peer *peer)
{
    struct epoll_event event = {.data.ptr = peer};
    if (!port->deaf) event.events |= EPOLLIN;
    if (peer->blocked) event.events |= EPOLLOUT;
    if (epoll_ctl(port->epoll, EPOLL_CTL_MOD, peer->fd, &event) != 0) peer->gone = true;
}

static void blocked_set(jk_port *port, jk_peer *peer, bool blocked)
{
    if (peer->blocked == blocked) return;
    peer->blocked = blocked;
    peer_watch(port, peer);
}

void jk_port_deafen(jk_port *port, bool deaf)
{
    if (port->deaf == deaf) return;
    port->deaf = deaf;
    for (jk_peer *peer = port->peers; peer; peer = peer->next)
        if (!peer->gone) peer_watch(port, peer);
}

/* It takes nothing any more. What it said before may still have to be read: recv() tells its end. */
static void peer_mute(jk_peer *peer)
{
    peer->mute = true;
    queue_drop(peer);
    shutdown(peer->fd, SHUT_WR); /* who goes on sending learns of it */
}

void jk_peer_write(jk_port *port, jk_peer *peer)
{
    struct iovec slices[SLICES];
    while (!peer->gone && peer->head) {
        struct msghdr message = {.msg_iov = slices, .msg_iovlen = (size_t)slices_fill(peer, slices)};
        ssize_t sent = sendmsg(peer->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            sent_account(peer, (size_t)sent);
        } else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
            blocked_set(port, peer, true);
            return;
        } else if (errno != EINTR) {
            peer_mute(peer);
        }
    }
    if (!peer->gone) blocked_set(port, peer, false);
}

/* --- Peers ------------------------------------------------------------------------------------------------
 */

void jk_peer_send(jk_port *port, jk_peer *peer, jk_buffer *bytes)
{
    jk_wire_message *wire = jk_wire_message_of(bytes, &port->total);
    if (!wire || jk_peer_queue(peer, wire) != 0) peer->gone = true;
    jk_wire_message_release(wire);
    jk_peer_write(port, peer);
}

static void peer_add(jk_port *port, int fd)
{
    int on = 1, unsent = UNSENT_MOST;
    struct epoll_event event = {.events = port->deaf ? 0u : (unsigned)EPOLLIN};
    jk_peer *peer = jk_memory_clear(port->kind->peer_size);
    event.data.ptr = peer;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
               sizeof on); /* fails on a Unix socket, which waits for nothing */
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on); /* who vanished gives its place up, in hours */
    if (!peer || epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        jk_memory_release(peer);
        close(fd);
        return;
    }
    peer->fd = fd;
    peer->number = ++port->numbers;
    peer->since = jk_clock();
    peer->reader.frame_most = HANDSHAKE_MOST;
    peer->next = port->peers;
    port->peers = peer;
    jk_buffer greeting = {0};
    jk_zmtp_greet(&greeting, port->kind->socket);
    jk_peer_send(port, peer, &greeting);
}

static void listen_for(jk_port *port, bool accepting)
{
    struct epoll_event event = {.events = accepting ? EPOLLIN : 0u};
    epoll_ctl(port->epoll, EPOLL_CTL_MOD, port->listener, &event);
    port->listen_again = accepting ? 0 : jk_clock() + NO_DESCRIPTORS;
}

/* Whoever began no handshake in time is not wanted when somebody else comes. */
static void strangers_drop(jk_port *port)
{
    int64_t before = jk_clock() - HANDSHAKE_TIME;
    for (jk_peer *peer = port->peers; peer; peer = peer->next)
        if (!peer->reader.ready && peer->since < before) peer->gone = true;
}

/* A program may have closed one of the standard descriptors and be about to open it again: that place is its.
 */
static int descriptor_lift(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return lifted;
}

/* How many more may come. */
static int room_count(const jk_port *port)
{
    struct rlimit limit;
    int room = JK_PEERS_MOST;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 / PORTS < JK_PEERS_MOST)
        room = (int)(limit.rlim_cur / 4 / PORTS);
    for (const jk_peer *peer = port->peers; peer; peer = peer->next) room -= !peer->gone;
    return room;
}

static void accept_all(jk_port *port)
{
    strangers_drop(port);
    int room = room_count(port);
    for (int i = 0; i < BACKLOG; i++) {
        int fd = descriptor_lift(accept4(port->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd >= 0 && room-- > 0) {
            peer_add(port, fd);
        } else if (fd >= 0) {
            close(fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            listen_for(port, false);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

static bool kind_fits(const char *fits, const char *kind)
{
    size_t length = strlen(kind);
    const char *at = strstr(fits, kind);
    return at && (at == fits || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
}

/* Whoever takes no PONG gets no second one: it may ask without end. */
static void pong_send(jk_port *port, jk_peer *peer, jk_bytes context)
{
    jk_buffer answer = {0};
    if (peer->pong_at > peer->taken) return;
    jk_zmtp_pong(&answer, context);
    peer->pong_at = peer->taken + peer->queued + answer.size;
    jk_peer_send(port, peer, &answer);
}

static void subscribe(jk_port *port, jk_peer *peer, jk_bytes topic, bool on)
{
    if (port->kind->subscribe) port->kind->subscribe(port, peer, topic, on);
}

/* Returns how many frames and commands that were. */
static int bytes_read(jk_port *port, jk_peer *peer, jk_bytes bytes)
{
    jk_bytes body;
    int count = 0;
    for (; !peer->gone; count++) {
        switch (jk_zmtp_read(&peer->reader, &bytes, &body)) {
        case JK_ZMTP_WANTS: return count;
        case JK_ZMTP_READY:
            peer->gone = !kind_fits(port->kind->fits, peer->reader.kind);
            peer->reader.frame_most = port->kind->frame_most;
            if (!peer->gone && port->kind->ready) port->kind->ready(port, peer);
            break;
        case JK_ZMTP_FRAME: port->kind->frame(port, peer, body); break;
        case JK_ZMTP_PING: pong_send(port, peer, body); break;
        case JK_ZMTP_SUBSCRIBE: subscribe(port, peer, body, true); break;
        case JK_ZMTP_CANCEL: subscribe(port, peer, body, false); break;
        case JK_ZMTP_BROKEN: peer->gone = true; break;
        }
    }
    return count;
}

static void peer_read(jk_port *port, jk_peer *peer)
{
    char room[READ_SIZE];
    int count = 0;
    for (int i = 0; i < READS && count < TURN_MOST && !peer->gone; i++) {
        ssize_t size = recv(peer->fd, room, sizeof room, MSG_DONTWAIT);
        if (size > 0) {
            count += bytes_read(port, peer, (jk_bytes){room, (size_t)size});
            if ((size_t)size < sizeof room) break;
        } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
            peer->gone = true;
        } else if (errno == EAGAIN) {
            break;
        }
    }
    if (!peer->gone) port->kind->pause(port, peer);
}

static void peer_free(jk_port *port, jk_peer *peer)
{
    epoll_ctl(port->epoll, EPOLL_CTL_DEL, peer->fd, NULL);
    close(peer->fd);
    port->kind->free(port, peer);
    jk_peer_drop(peer);
    jk_zmtp_clear(&peer->reader);
    jk_memory_release(peer);
}

void jk_port_sweep(jk_port *port)
{
    for (jk_peer **link = &port->peers; *link;) {
        jk_peer *peer = *link;
        if (!peer->gone) {
            link = &peer->next;
            continue;
        }
        *link = peer->next;
        peer_free(port, peer);
    }
}

/* --- The port ---------------------------------------------------------------------------------------------
 */

jk_port *jk_port_open(const jk_port_kind *kind, int listener)
{
    struct epoll_event event = {.events = EPOLLIN};
    jk_port *port = jk_memory_clear(kind->size);
    if (!port) return NULL;
    port->kind = kind;
    port->listener = listener;
    port->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (port->epoll >= 0 && epoll_ctl(port->epoll, EPOLL_CTL_ADD, listener, &event) == 0) return port;
    int reason = errno;
    if (port->epoll >= 0) close(port->epoll);
    jk_memory_release(port);
    errno = reason;
    return NULL;
}

static bool queued_any(const jk_port *port)
{
    const jk_peer *peer = port->peers;
    while (peer && (peer->gone || !peer->head)) peer = peer->next;
    return peer != NULL;
}

void jk_port_close(jk_port *port, int64_t linger)
{
    int64_t deadline = jk_clock() + linger;
    jk_port_deafen(port, true);
    while (linger && queued_any(port) && jk_clock() < deadline) {
        struct pollfd item = {.fd = port->epoll, .events = POLLIN};
        poll(&item, 1, CLOSE_LOOK);
        jk_port_serve(port);
    }
    for (jk_peer *peer = port->peers; peer; peer = peer->next) peer->gone = true;
    jk_port_sweep(port);
    close(port->epoll);
    close(port->listener);
}

int jk_port_delay(jk_port *port)
{
    if (port->listen_again == 0) return -1;
    int64_t delay = port->listen_again - jk_clock();
    if (delay > 0) return (int)(delay / JK_MILLISECOND) + 1;
    listen_for(port, true);
    return -1;
}

void jk_port_serve(jk_port *port)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(port->epoll, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        jk_peer *peer = events[i].data.ptr;
        if (!peer) {
            accept_all(port);
            continue;
        }
        if (events[i].events & ~(unsigned)EPOLLOUT) peer_read(port, peer);
        if (events[i].events & EPOLLOUT) jk_peer_write(port, peer);
    }
    jk_port_sweep(port);
}
