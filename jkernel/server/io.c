/* The io thread: it alone touches shell, stdin and iopub. It waits in zmq_poll() and never on a socket's own
 * descriptor, whose edges are lost when the socket also sends. */
#include "jkernel/server/crash.h"

#include <errno.h>

enum { WAKE, SHELL, IOPUB, STDIN, PIPES, ITEMS = PIPES + 2 };

#define TURN 64 /* messages read between two looks at the outbox */

/* Returns how many items to poll. The pipes are left alone while the outbox is full: the kernel blocks
 * whoever writes to them. */
static int items_fill(jk_server *server, zmq_pollitem_t items[ITEMS])
{
    jk_outbox *outbox = &server->outbox;
    items[WAKE] = (zmq_pollitem_t){.fd = outbox->wake, .events = ZMQ_POLLIN};
    short more = jk_shell_has_room(server) ? ZMQ_POLLIN : 0;
    items[SHELL] = (zmq_pollitem_t){.socket = server->sockets[JK_SHELL], .events = more};
    items[IOPUB] = jk_iopub_item(server);
    items[STDIN] = (zmq_pollitem_t){.socket = server->sockets[JK_STDIN], .events = ZMQ_POLLIN};
    int count = PIPES;
    if (!atomic_load(&server->stdio.active) || jk_outbox_crowded(server)) return count;
    for (int i = 0; i < 2; i++) {
        const jk_pipe *captured = &server->stdio.pipes[i];
        if (atomic_load(&captured->ended)) continue;
        items[count++] = (zmq_pollitem_t){.fd = captured->read_end, .events = ZMQ_POLLIN};
    }
    return count;
}

static void items_serve(jk_server *server, const zmq_pollitem_t items[ITEMS], int count)
{
    if (items[WAKE].revents) jk_event_clear(server->outbox.wake);
    if (items[IOPUB].revents) jk_iopub_receive(server);
    if (items[SHELL].revents) server->outbox.expecting = jk_route_receive(server, JK_SHELL, TURN) > 0;
    if (items[STDIN].revents) jk_input_receive(server);
    bool text = false;
    for (int i = PIPES; i < count; i++) text = text || items[i].revents;
    if (text) jk_stdio_leave(server, jk_stdio_enter(server));
}

void *jk_io_run(void *argument)
{
    jk_server *server = argument;
    while (!atomic_load(&server->stopping)) {
        zmq_pollitem_t items[ITEMS];
        int delay = jk_iopub_send(server);
        int resend = jk_input_resend(server);
        if (resend >= 0 && (delay < 0 || resend < delay)) delay = resend;
        int count = items_fill(server, items);
        int ready = zmq_poll(items, count, delay);
        if (ready < 0 && zmq_errno() == ETERM) break;
        jk_outbox_awake(server);
        jk_crash_look(server);
        if (ready > 0) items_serve(server, items, count);
    }
    return NULL;
}
