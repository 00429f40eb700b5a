/* The five sockets, ours or, with encryption, libzmq's: made, bound and named by the main thread before the
 * threads that own them start. */
#include "jkernel/server/ports/router.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LINGER_MS  1000
#define FRAME_MOST ((int64_t)1 << 30) /* bytes that a peer may make us hold for one frame */
#define SMALL_MOST ((int64_t)1 << 16) /* of a subscription or a heartbeat */
#define BIND_TRIES 50
#define BIND_PAUSE 20 /* ms */
#define IPC_PORTS  65535

static int option_set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value);
}

/* The outbox bounds what is sent, so the transport itself must not drop. */
static int socket_prepare(const jk_config *config, jk_channel channel, void *socket)
{
    int64_t frame_most = channel == JK_IOPUB || channel == JK_HEARTBEAT ? SMALL_MOST : FRAME_MOST;
    int result = option_set(socket, ZMQ_LINGER, LINGER_MS) | option_set(socket, ZMQ_SNDHWM, 0) |
                 option_set(socket, ZMQ_RCVHWM, JK_RECEIVED_MOST) |
                 zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_most, sizeof frame_most);
    if (channel == JK_IOPUB) {
        /* Verbose: every subscriber is welcomed, not only the first of a topic. */
        result |= option_set(socket, ZMQ_XPUB_VERBOSE, 1) | option_set(socket, ZMQ_XPUB_NODROP, 1);
    } else {
        /* A client that reconnects comes back with its old identity. */
        result |= option_set(socket, ZMQ_ROUTER_HANDOVER, 1);
        /* A question to nobody must be noticed; a reply to nobody is dropped. */
        if (channel == JK_STDIN) result |= option_set(socket, ZMQ_ROUTER_MANDATORY, 1);
    }
    if (config->transport == JK_TCP && strchr(config->ip, ':')) result |= option_set(socket, ZMQ_IPV6, 1);
    if (config->curve_secret[0]) {
        result |= option_set(socket, ZMQ_CURVE_SERVER, 1);
        result |= zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, config->curve_public, JK_KEY_Z85);
        result |= zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, config->curve_secret, JK_KEY_Z85);
    }
    return result == 0 ? 0 : -1;
}

/* Serve a channel that is not encrypted through `listener`, which is then *taken*. */
static int channel_serve(jk_server *server, jk_channel channel, int listener)
{
    if (channel == JK_IOPUB) {
        server->ports->publisher = jk_publisher_create(server, listener);
        return server->ports->publisher ? 0 : -1;
    }
    jk_router *router = jk_router_create(listener, channel == JK_HEARTBEAT);
    server->ports->routers[channel] = router;
    return router ? 0 : -1;
}

/* A Unix socket of ours goes to libzmq where the channel has a socket. */
static int ipc_bind(jk_server *server, jk_channel channel, const char *endpoint, bool replace)
{
    const char *path = endpoint + strlen("ipc://");
    void *socket = server->ports->sockets[channel];
    int fd = jk_ipc_claim(path, replace);
    if (fd < 0) return -1;
    if (!socket && channel_serve(server, channel, fd) == 0) return 0;
    if (socket && zmq_setsockopt(socket, ZMQ_USE_FD, &fd, sizeof fd) == 0 && zmq_bind(socket, endpoint) == 0)
        return 0;
    int reason = zmq_errno();
    unlink(path);
    close(fd);
    errno = reason;
    return -1;
}

static int tcp_open(jk_server *server, jk_channel channel, int *port)
{
    int fd = jk_tcp_listen(server->config->ip, port);
    if (fd < 0 || channel_serve(server, channel, fd) == 0) return fd < 0 ? -1 : 0;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static int tcp_bind(void *socket, const char *endpoint, int *port)
{
    char bound[256] = "";
    size_t size = sizeof bound;
    if (zmq_bind(socket, endpoint) != 0) return -1;
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size) != 0) return -1;
    const char *colon = strrchr(bound, ':');
    *port = colon ? (int)strtol(colon + 1, NULL, 10) : 0;
    return *port > 0 ? 0 : -1;
}

/* `*port` of 0 is replaced by the one chosen. */
static int port_bind(jk_server *server, jk_channel channel, int *port, char endpoint[JK_ENDPOINT_SIZE])
{
    const jk_config *config = server->config;
    void *socket = server->ports->sockets[channel];
    jk_endpoint_format(config->transport, config->ip, *port, endpoint);
    if (config->transport == JK_TCP)
        return socket ? tcp_bind(socket, endpoint, port) : tcp_open(server, channel, port);
    if (*port) return ipc_bind(server, channel, endpoint, true);
    for (int number = 1; number <= IPC_PORTS; number++) {
        jk_endpoint_format(JK_IPC, config->ip, number, endpoint);
        if (ipc_bind(server, channel, endpoint, false) == 0) {
            *port = number;
            return 0;
        }
        if (zmq_errno() != EADDRINUSE) return -1;
    }
    return -1;
}

static int socket_bind(jk_server *server, jk_channel channel, char endpoint[JK_ENDPOINT_SIZE])
{
    return port_bind(server, channel, &server->config->ports[channel], endpoint);
}

static const char *bind_advice(int reason)
{
    switch (reason) {
    case EADDRINUSE: return "another program has this port: start the kernel again, or set the port to 0";
    case EEXIST: return "something that is not a socket is there: remove it, or choose another \"ip\"";
    case EACCES: return "this user may not use the port or the folder: choose another one";
    default: return "check \"ip\" in the connection file";
    }
}

/* A port is found by the launcher and free for a moment before we take it: somebody may be leaving it. */
static int channel_bind(jk_server *server, jk_channel channel)
{
    char endpoint[JK_ENDPOINT_SIZE];
    int reason = 0;
    for (int i = 0; i < BIND_TRIES; i++) {
        if (socket_bind(server, channel, endpoint) == 0) {
            server->ports->bound[channel] = true;
            return 0;
        }
        reason = zmq_errno();
        if (reason != EADDRINUSE) break;
        struct timespec pause = {.tv_nsec = BIND_PAUSE * JK_MILLISECOND};
        nanosleep(&pause, NULL);
    }
    return jk_fail("cannot bind the %s socket to %s: %s; %s", jk_channel_name(channel), endpoint,
                   zmq_strerror(reason), bind_advice(reason));
}

static int channel_open(jk_server *server, jk_channel channel)
{
    if (!server->config->curve_secret[0]) return channel_bind(server, channel);
    void *context = channel == JK_HEARTBEAT ? server->ports->heart_context : server->ports->context;
    void *socket = zmq_socket(context, channel == JK_IOPUB ? ZMQ_XPUB : ZMQ_ROUTER);
    server->ports->sockets[channel] = socket;
    if (!socket || socket_prepare(server->config, channel, socket) != 0)
        return jk_fail("cannot make the %s socket: %s", jk_channel_name(channel), zmq_strerror(zmq_errno()));
    return channel_bind(server, channel);
}

void jk_ports_open(jk_ports *ports)
{
    ports->heart_stop = -1;
}

int jk_sockets_bind(jk_server *server)
{
    bool chosen = false;
    server->ports->context = zmq_ctx_new();
    server->ports->heart_context = zmq_ctx_new();
    server->ports->heart_stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!server->ports->context || !server->ports->heart_context || server->ports->heart_stop < 0)
        return jk_fail("cannot start libzmq: %s", zmq_strerror(zmq_errno()));
    for (int i = 0; i < JK_CHANNELS; i++) {
        chosen = chosen || server->config->ports[i] == 0;
        if (channel_open(server, (jk_channel)i) != 0) return -1;
    }
    if (!server->config->kernel_id) {
        return chosen ? jk_config_write(server->config) : 0;
    }
    if (jk_server_register(server) != 0) return -1;
    /* The launcher has what it needs; without a file only other clients miss something. */
    if (jk_config_write(server->config) != 0) jk_log("%s", drupe_error_last()->text);
    return 0;
}

static void context_end(void **context)
{
    if (!*context) return;
    while (zmq_ctx_term(*context) != 0 && zmq_errno() == EINTR) continue;
    *context = NULL;
}

/* While they are still bound: from then on another kernel may take the names. */
static void files_remove(const jk_server *server)
{
    const jk_config *config = server->config;
    if (config->own_file) unlink(config->path);
    for (int i = 0; i < JK_CHANNELS && config->transport == JK_IPC; i++) {
        char endpoint[JK_ENDPOINT_SIZE];
        jk_endpoint_format(JK_IPC, config->ip, config->ports[i], endpoint);
        if (server->ports->bound[i]) unlink(endpoint + strlen("ipc://"));
    }
}

static int64_t linger_until(int64_t end)
{
    int64_t rest = end - jk_clock();
    return rest > 0 ? rest : 0;
}

void jk_heartbeat_stop(jk_server *server)
{
    jk_event_raise(server->ports->heart_stop);
    if (server->ports->heart_context) zmq_ctx_shutdown(server->ports->heart_context);
}

void jk_sockets_close(jk_server *server)
{
    files_remove(server);
    for (int i = 0; i < JK_CHANNELS; i++) {
        if (server->ports->sockets[i]) zmq_close(server->ports->sockets[i]);
        server->ports->sockets[i] = NULL;
    }
    int64_t end = jk_clock() + LINGER_MS * JK_MILLISECOND; /* for all of them together */
    for (int i = 0; i < JK_CHANNELS; i++) {
        jk_router_release(server->ports->routers[i], i == JK_HEARTBEAT ? 0 : linger_until(end));
        server->ports->routers[i] = NULL;
    }
    if (server->ports->heart_stop >= 0) close(server->ports->heart_stop);
    server->ports->heart_stop = -1;
    jk_publisher_release(server->ports->publisher, linger_until(end));
    server->ports->publisher = NULL;
    context_end(&server->ports->heart_context);
    context_end(&server->ports->context);
}
