/* The heartbeat echoes whatever arrives, in its own context, so that no traffic can delay it. */
#include "jkernel/server/server.h"

#include <errno.h>

/* Move one frame back to its sender; returns false when the context ends. */
static bool frame_echo(void *socket)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    int result = zmq_msg_recv(&frame, socket, 0);
    if (result >= 0) {
        /* A ROUTER drops what it cannot deliver; there is nobody to tell. */
        result = zmq_msg_send(&frame, socket, zmq_msg_more(&frame) ? ZMQ_SNDMORE : 0);
    }
    bool go_on = result >= 0 || zmq_errno() != ETERM;
    zmq_msg_close(&frame);
    return go_on;
}

void *jk_heartbeat_run(void *argument)
{
    jk_server *server = argument;
    while (frame_echo(server->sockets[JK_HEARTBEAT])) continue;
    return NULL;
}
