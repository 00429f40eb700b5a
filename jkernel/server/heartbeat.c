/* The heartbeat echoes whatever arrives, on a thread of its own, so that no traffic can delay it. */
#include "jkernel/server/server_room.h"

void *jk_heartbeat_run(void *argument)
{
    jk_server *server = argument;
    if (!jk_channel_is_bounded(server, JK_HEARTBEAT)) {
        void *socket = server->ports->sockets[JK_HEARTBEAT];
        /* Until its context ends: setuid() and the like send a signal to every thread. */
        while (zmq_proxy(socket, socket, NULL) != 0 && zmq_errno() != ETERM) continue;
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
