/* The io thread: it alone touches shell, stdin and iopub. It waits in zmq_poll() and never on a socket's own
 * descriptor, whose edges are lost when the socket also sends. */
#include "jkernel/server/server_room.h"

enum { WAKE, SHELL, IOPUB, STDIN, PIPES, ITEMS = PIPES + 2 };

#define TURN 64 /* messages read between two looks at the outbox */

/* Returns how many items to poll. The pipes are left alone while the outbox is full: the kernel blocks
 * whoever writes to them. */
static int items_fill(jk_server *server, zmq_pollitem_t items[ITEMS])
{
    items[WAKE] = (zmq_pollitem_t){.fd = server->output->outbox.wake, .events = ZMQ_POLLIN};
    items[SHELL] = jk_channel_item(server, JK_SHELL);
    jk_channel_deafen(server, JK_SHELL, !jk_shell_has_room(server), &items[SHELL]);
    items[IOPUB] = jk_iopub_item(server);
    items[STDIN] = jk_channel_item(server, JK_STDIN);
    int count = PIPES;
    if (!atomic_load(&server->output->stdio.active) || jk_outbox_crowded(server)) return count;
    for (int i = 0; i < 2; i++) {
        const jk_pipe *captured = &server->output->stdio.pipes[i];
        if (atomic_load(&captured->ended)) continue;
        items[count++] = (zmq_pollitem_t){.fd = captured->read_end, .events = ZMQ_POLLIN};
    }
    return count;
}

static void items_serve(jk_server *server, const zmq_pollitem_t items[ITEMS], int count)
{
    if (items[WAKE].revents) jk_event_clear(server->output->outbox.wake);
    if (items[IOPUB].revents) jk_iopub_receive(server);
    if (items[SHELL].revents) jk_iopub_expect(server, jk_route_receive(server, JK_SHELL, TURN) > 0);
    if (items[STDIN].revents) jk_input_receive(server);
    bool text = false;
    for (int i = PIPES; i < count; i++) text = text || items[i].revents;
    if (text) jk_stdio_leave(server, jk_stdio_enter(server));
}

void *jk_io_run(void *argument)
{
    jk_server *server = argument;
    while (!jk_life_stopping(server)) {
        zmq_pollitem_t items[ITEMS];
        int due = jk_status_due(server);
        int delay = jk_iopub_send(server);
        const int others[] = {due, jk_input_resend(server), jk_channel_delay(server, JK_SHELL),
                              jk_channel_delay(server, JK_STDIN)};
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            if (others[i] >= 0 && (delay < 0 || others[i] < delay)) delay = others[i];
        int count = items_fill(server, items);
        int ready = zmq_poll(items, count, delay);
        if (ready < 0 && zmq_errno() == ETERM) break;
        jk_outbox_awake(server);
        jk_crash_look(server);
        if (ready > 0) items_serve(server, items, count);
    }
    return NULL;
}
