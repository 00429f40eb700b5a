/* The five sockets: made, bound and named by the main thread before the threads that own them start. */
#include "jkernel/server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINGER_MS  1000
#define FRAME_MOST ((int64_t)1 << 30) /* bytes that a peer may make us hold for one frame */
#define SMALL_MOST ((int64_t)1 << 16) /* of a subscription or a heartbeat */
#define BIND_TRIES 50
#define BIND_PAUSE 20 /* ms */

static int option_set(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value);
}

/* The outbox bounds what is sent, so the transport itself must not drop. */
static int socket_prepare(const jk_config *config, jk_channel channel, void *socket)
{
    int64_t frame_most = channel == JK_IOPUB || channel == JK_HEARTBEAT ? SMALL_MOST : FRAME_MOST;
    int result = option_set(socket, ZMQ_LINGER, LINGER_MS) | option_set(socket, ZMQ_SNDHWM, 0) |
                 zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_most, sizeof frame_most);
    if (channel == JK_IOPUB) {
        /* Verbose: every subscriber is welcomed, not only the first of a topic. */
        result |= option_set(socket, ZMQ_XPUB_VERBOSE, 1) | option_set(socket, ZMQ_XPUB_NODROP, 1);
    } else {
        /* A client that reconnects comes back with its old identity. */
        result |= option_set(socket, ZMQ_ROUTER_HANDOVER, 1);
    }
    if (strchr(config->ip, ':')) result |= option_set(socket, ZMQ_IPV6, 1);
    if (config->curve_secret[0]) {
        result |= option_set(socket, ZMQ_CURVE_SERVER, 1);
        result |= zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, config->curve_public, JK_KEY_Z85);
        result |= zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, config->curve_secret, JK_KEY_Z85);
    }
    return result == 0 ? 0 : -1;
}

static void endpoint_format(const jk_config *config, jk_channel channel, char *endpoint, size_t size)
{
    bool v6 = strchr(config->ip, ':') != NULL;
    char port[16] = "*";
    if (config->ports[channel]) snprintf(port, sizeof port, "%d", config->ports[channel]);
    snprintf(endpoint, size, "tcp://%s%s%s:%s", v6 ? "[" : "", config->ip, v6 ? "]" : "", port);
}

/* A port is found by the launcher and free for a moment before we take it: somebody may be leaving it. */
static int socket_bind(void *socket, const char *endpoint)
{
    for (int i = 0; i < BIND_TRIES; i++) {
        if (zmq_bind(socket, endpoint) == 0) return 0;
        if (zmq_errno() != EADDRINUSE) return -1;
        struct timespec pause = {.tv_nsec = BIND_PAUSE * JK_MILLISECOND};
        nanosleep(&pause, NULL);
    }
    errno = EADDRINUSE;
    return -1;
}

static int port_learn(void *socket, int *port)
{
    char endpoint[256] = "";
    size_t size = sizeof endpoint;
    if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) != 0) return -1;
    const char *colon = strrchr(endpoint, ':');
    if (!colon) return -1;
    *port = (int)strtol(colon + 1, NULL, 10);
    return *port > 0 ? 0 : -1;
}

static int channel_open(jk_server *server, jk_channel channel, char *problem, size_t problem_size)
{
    void *context = channel == JK_HEARTBEAT ? server->heart_context : server->context;
    void *socket = zmq_socket(context, channel == JK_IOPUB ? ZMQ_XPUB : ZMQ_ROUTER);
    server->sockets[channel] = socket;
    if (!socket || socket_prepare(&server->config, channel, socket) != 0) {
        snprintf(problem, problem_size, "cannot make the %s socket: %s", jk_channel_name(channel),
                 zmq_strerror(zmq_errno()));
        return -1;
    }
    char endpoint[128];
    endpoint_format(&server->config, channel, endpoint, sizeof endpoint);
    if (socket_bind(socket, endpoint) == 0 && port_learn(socket, &server->config.ports[channel]) == 0)
        return 0;
    const char *advice = zmq_errno() == EADDRINUSE
                             ? "another program has this port: start the kernel again, or set the port to 0"
                             : "check \"ip\" in the connection file";
    snprintf(problem, problem_size, "cannot bind the %s socket to %s: %s; %s", jk_channel_name(channel),
             endpoint, zmq_strerror(zmq_errno()), advice);
    return -1;
}

int jk_sockets_bind(jk_server *server, char *problem, size_t problem_size)
{
    bool chosen = false;
    server->context = zmq_ctx_new();
    server->heart_context = zmq_ctx_new();
    if (!server->context || !server->heart_context) {
        snprintf(problem, problem_size, "cannot start libzmq: %s", zmq_strerror(zmq_errno()));
        return -1;
    }
    for (int i = 0; i < JK_CHANNELS; i++) {
        chosen = chosen || server->config.ports[i] == 0;
        if (channel_open(server, (jk_channel)i, problem, problem_size) != 0) return -1;
    }
    return chosen ? jk_config_write(&server->config, problem, problem_size) : 0;
}

static void context_end(void **context)
{
    if (!*context) return;
    while (zmq_ctx_term(*context) != 0 && zmq_errno() == EINTR) continue;
    *context = NULL;
}

void jk_sockets_close(jk_server *server)
{
    for (int i = 0; i < JK_CHANNELS; i++) {
        if (server->sockets[i]) zmq_close(server->sockets[i]);
        server->sockets[i] = NULL;
    }
    context_end(&server->heart_context);
    context_end(&server->context);
}
