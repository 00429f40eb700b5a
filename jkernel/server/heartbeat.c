/* The heartbeat echoes whatever arrives, on a thread of its own, so that no traffic can delay it. */
#include "jkernel/server/server_room.h"

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
    if (!jk_channel_is_bounded(server, JK_HEARTBEAT)) {
        while (frame_echo(server->ports->sockets[JK_HEARTBEAT])) continue;
        return NULL;
    }
    zmq_pollitem_t items[] = {
        jk_channel_item(server, JK_HEARTBEAT),
        {.fd = server->ports->heart_stop, .events = ZMQ_POLLIN},
    };
    while (!jk_life_stopping(server)) {
        zmq_poll(items, 2, jk_channel_delay(server, JK_HEARTBEAT));
        jk_channel_read(server, JK_HEARTBEAT);
    }
    return NULL;
}
