/* What the transport alone costs: answers every message on a ROUTER socket with its own frames. The endpoint
 * is the only argument; the process ends when it is killed. */
#include <stdbool.h>
#include <zmq.h>

static void echo_all(void *socket)
{
    for (;;) {
        bool more = true;
        while (more) {
            zmq_msg_t frame;
            zmq_msg_init(&frame);
            if (zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0) return;
            more = zmq_msg_more(&frame);
            if (zmq_msg_send(&frame, socket, more ? ZMQ_SNDMORE : 0) < 0) return;
        }
    }
}

int main(int argc, char **argv)
{
    void *context = zmq_ctx_new();
    void *socket = context ? zmq_socket(context, ZMQ_ROUTER) : NULL;
    if (argc != 2 || !socket || zmq_bind(socket, argv[1]) != 0) return 1;
    zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
    while (zmq_poll(&item, 1, -1) >= 0) echo_all(socket);
    return 0;
}
