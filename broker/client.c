/* Connections: who is there, what waits to be sent to them. One packet is one JSON object.
 *
 * Packets are sent at the end of a turn, when the journal is written. A client is closed when it does not
 * read: when too many bytes wait for it, or some for too long. */
#include "base/file.h"
#include "broker/broker_state.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define PACKETS_A_TURN 16
#define ACCEPTS_A_TURN 64
#define STALL_SECONDS  30.0
#define TURN_SECONDS   0.005 /* of the requests of one user, by all connections: a list of much takes a while \
                              */

/* --- Sending -------------------------------------------------------------------------------------------- */

static void packet_free(bk_client *client)
{
    bk_packet *packet = client->first;
    client->first = packet->next;
    if (!client->first) client->last = &client->first;
    client->waiting -= packet->size;
    free(packet);
}

static void poll_for(bk_broker *broker, bk_client *client, bool writing)
{
    if (client->polled == writing || client->fd < 0) return;
    client->polled = writing;
    struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = client};
    epoll_ctl(broker->epoll, EPOLL_CTL_MOD, client->fd, &event);
}

static void overflow_close(bk_broker *broker, bk_client *client)
{
    broker->counts.overflows++;
    bk_client_close(broker, client);
}

static void client_flush(bk_broker *broker, bk_client *client)
{
    if (client->overflown && !client->closed) overflow_close(broker, client);
    while (client->first && !client->closed && client->fd >= 0) {
        ssize_t sent =
            send(client->fd, client->first->bytes, client->first->size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) {
            poll_for(broker, client, true);
            if (client->stalled > 0) return;
            client->stalled = broker->now;
            broker->stall_due = fmin(broker->stall_due, broker->now + STALL_SECONDS);
            return;
        }
        if (sent < 0) {
            bk_client_close(broker, client);
            return;
        }
        client->stalled = 0;
        packet_free(client);
    }
    if (!client->closed) poll_for(broker, client, false);
}

static void stalled_close(bk_broker *broker)
{
    if (broker->now < broker->stall_due) return;
    broker->stall_due = INFINITY;
    for (bk_client *client = broker->first_client, *next; client; client = next) {
        next = client->next;
        if (client->stalled <= 0) continue;
        if (broker->now >= client->stalled + STALL_SECONDS)
            overflow_close(broker, client);
        else
            broker->stall_due = fmin(broker->stall_due, client->stalled + STALL_SECONDS);
    }
}

void bk_clients_flush(bk_broker *broker)
{
    while (broker->flush) {
        bk_client *client = broker->flush;
        broker->flush = client->fnext;
        client->queued = false;
        client_flush(broker, client);
    }
    stalled_close(broker);
}

/* --- Receiving ------------------------------------------------------------------------------------------ */

/* False at the end of what has come. */
static bool packet_take(bk_broker *broker, bk_client *client)
{
    char bytes[BK_PACKET_MOST + 1];
    ssize_t got = recv(client->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) return true;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got > 0)
        bk_request(broker, client, bytes, (size_t)got);
    else
        bk_client_close(broker, client);
    return got > 0;
}

static void client_ready(bk_broker *broker, bk_source *source, uint32_t events)
{
    bk_client *client = (bk_client *)source;
    bk_user *user = client->user;
    /* Not now: among what waits may be what this turn has changed, and the journal does not have that yet. */
    if (events & EPOLLOUT) bk_client_flush_later(broker, client);
    if (!(events & ~(uint32_t)EPOLLOUT)) return;
    if (user->turn != broker->turn) user->spent = 0;
    user->turn = broker->turn;
    /* EPOLLHUP alone: what it sent before it left is still there to be read. */
    for (unsigned i = 0; i < PACKETS_A_TURN && user->spent < TURN_SECONDS; i++) {
        if (client->closed || client->overflown) return;
        double begin = bk_seconds();
        bool more = packet_take(broker, client);
        user->spent += bk_seconds() - begin;
        if (!more) return;
    }
}

/* --- Coming and going ----------------------------------------------------------------------------------- */

bk_client *bk_client_new(bk_broker *broker, int fd, pid_t pid, uid_t uid)
{
    bk_user *user = bk_user_of(broker, uid);
    bool full = !user || broker->nclients >= broker->limits.clients_all ||
                (user->nclients >= broker->limits.clients && !user->admin);
    bk_client *client = full ? NULL : calloc(1, sizeof *client);
    if (!client) return NULL;
    *client = (bk_client){.source = {client_ready}, .fd = fd, .pid = pid, .uid = uid, .user = user};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (fd >= 0 && epoll_ctl(broker->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(client);
        return NULL;
    }
    client->last = &client->first;
    client->prev = &broker->first_client;
    client->next = broker->first_client;
    if (client->next) client->next->prev = &client->next;
    broker->first_client = client;
    broker->nclients++;
    user->nclients++;
    return client;
}

void bk_client_close(bk_broker *broker, bk_client *client)
{
    if (client->closed) return;
    client->closed = true;
    client->source.ready = NULL;
    if (client->fd >= 0) close(client->fd);
    client->fd = -1;
    while (client->links) bk_link_drop(client->links);
    for (bk_ticket *ticket = broker->first_ticket, *next; client->ntickets && ticket; ticket = next) {
        next = ticket->next;
        if (ticket->client == client) bk_ticket_drop(broker, ticket);
    }
    if (client->watches) broker->nwatchers--;
    while (client->first) packet_free(client);
    *client->prev = client->next;
    if (client->next) client->next->prev = client->prev;
    bk_holder_release(broker, client->holder);
    client->user->nclients--;
    broker->nclients--;
    client->next = broker->dead;
    broker->dead = client;
}

void bk_clients_bury(bk_broker *broker)
{
    while (broker->dead) {
        bk_client *client = broker->dead;
        broker->dead = client->next;
        free(client);
    }
    while (broker->dead_holders) {
        bk_holder *holder = broker->dead_holders;
        broker->dead_holders = holder->dead;
        free(holder);
    }
}

/* --- The socket ----------------------------------------------------------------------------------------- */

static void client_accept(bk_broker *broker, int fd)
{
    static const char full[] =
        "{\"ok\":false,\"code\":\"limit\",\"error\":\"The broker has as many connections as it "
        "takes, of all or of this user: close one.\"}";
    struct ucred peer;
    socklen_t size = sizeof peer;
    bk_client *client = NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
        client = bk_client_new(broker, fd, peer.pid, peer.uid);
    }
    if (!client) {
        send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(fd);
        return;
    }
    uid_t uid;
    if (!broker->peer_pidfds && !bk_process_read(peer.pid, &client->start, &uid)) client->start = UINT64_MAX;
}

static void listener_ready(bk_broker *broker, bk_source *source, uint32_t events)
{
    (void)source;
    (void)events;
    for (unsigned i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(broker->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            client_accept(broker, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EMFILE && errno != ENFILE) return;
        /* Else the listener would be ready for ever. A spare descriptor lets us turn one away. */
        if (broker->spare >= 0) close(broker->spare);
        fd = accept4(broker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) close(fd);
        broker->spare = dup(broker->epoll);
        return;
    }
}

/* Whether another broker answers there. */
static bool answers(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool there = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    if (fd >= 0) close(fd);
    return there;
}

static drupe_status failed(const char *what, const char *path)
{
    return drupe_error_set(DRUPE_E_UNAVAILABLE, "Cannot %s the socket %s: %s.", what, path, strerror(errno));
}

/* The socket's folder is open to all, who may enter but write nothing there. */
static drupe_status folder_make(const char *path)
{
    char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
    drupe_status status = DRUPE_OK;
    if (slash && slash > folder) {
        *slash = '\0';
        if (access(folder, F_OK) != 0) {
            status = drupe_folders_make(folder);
            if (status == DRUPE_OK && chmod(folder, 0755) != 0) status = failed("open the folder of", path);
        }
    }
    free(folder);
    return status;
}

drupe_status bk_listen(bk_broker *broker)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = broker->socket;
    if (strlen(path) >= sizeof address.sun_path) {
        return drupe_error_set(DRUPE_E_INVALID, "The socket's path %s is too long: %zu bytes are the most.",
                               path, sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    DRUPE_TRY(folder_make(path));
    if (answers(&address))
        return drupe_error_set(DRUPE_E_BUSY, "Another broker answers at %s: stop it first.", path);
    struct stat about;
    if (lstat(path, &about) == 0 && !S_ISSOCK(about.st_mode)) {
        return drupe_error_set(DRUPE_E_INVALID, "%s is there and is no socket: choose another path.", path);
    }
    unlink(path);
    broker->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (broker->listener < 0) return failed("make", path);
    if (bind(broker->listener, (struct sockaddr *)&address, sizeof address) != 0) return failed("make", path);
    int pidfd = -1;
    socklen_t size = sizeof pidfd;
    broker->peer_pidfds =
        !(getsockopt(broker->listener, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0 && errno == ENOPROTOOPT);
    if (pidfd >= 0) close(pidfd);
    /* Whoever asks is known by SO_PEERCRED: all may connect. */
    if (chmod(path, 0666) != 0 || listen(broker->listener, 4096) != 0) return failed("listen at", path);
    broker->listening.ready = listener_ready;
    broker->spare = dup(broker->epoll);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &broker->listening};
    if (epoll_ctl(broker->epoll, EPOLL_CTL_ADD, broker->listener, &event) != 0) return failed("watch", path);
    return DRUPE_OK;
}
