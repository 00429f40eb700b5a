/* The handshake with a launcher that gave a registration file: tell it the ports, wait until it has them. */
#include "jkernel/server/ports/ports_room.h"

#include <errno.h>
#include <stdio.h>

#define PATIENCE (5 * JK_SECOND)

/* Read until the acknowledgement; `*wrong` tells that something else came. Returns false at `deadline`. */
static bool acknowledgement_wait(jk_server *server, void *socket, int64_t deadline, bool *wrong)
{
    for (int64_t left; (left = deadline - jk_clock()) > 0;) {
        zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
        if (zmq_poll(&item, 1, (long)(left / JK_MILLISECOND) + 1) <= 0) continue;
        jk_frames frames;
        if (jk_frames_receive(socket, &frames) != 1) continue;
        bool good = jk_registration_acknowledged(&frames, server->signer);
        jk_frames_clear(&frames);
        if (good) return true;
        *wrong = true;
    }
    return false;
}

static void *launcher_connect(jk_server *server, const char *endpoint)
{
    int none = 0, v6 = 1;
    void *socket = zmq_socket(server->ports->context, ZMQ_DEALER);
    if (!socket) return NULL;
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    if (server->config->transport == JK_TCP) zmq_setsockopt(socket, ZMQ_IPV6, &v6, sizeof v6);
    if (zmq_connect(socket, endpoint) == 0) return socket;
    zmq_close(socket);
    return NULL;
}

int jk_server_register(jk_server *server)
{
    const jk_config *config = server->config;
    char endpoint[JK_ENDPOINT_SIZE];
    jk_endpoint_format(config->transport, config->registration_ip, config->registration_port, endpoint);
    void *socket = launcher_connect(server, endpoint);
    if (!socket || jk_registration_send(config, server->signer, socket) != 0) {
        jk_fail(
            "cannot connect to the launcher at %s: %s; check \"registration_ip\" in the registration file",
            endpoint, zmq_strerror(zmq_errno()));
        if (socket) zmq_close(socket);
        return -1;
    }
    bool wrong = false, good = acknowledgement_wait(server, socket, jk_clock() + PATIENCE, &wrong);
    zmq_close(socket);
    if (good) return 0;
    return jk_fail("the launcher at %s did not acknowledge the registration within 5 s%s", endpoint,
                   wrong ? ": what it sent is not signed with the key of the registration file"
                         : "; check that it is running and that \"registration_port\" is right");
}
