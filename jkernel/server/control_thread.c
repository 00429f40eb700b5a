/* The control thread. Nothing here waits for the language. */
#include "jkernel/server/server_room.h"

#define PARENT_LOOK 1000 /* ms */

enum { WAKE, CONTROL, PARENT, ITEMS };

void *jk_control_run(void *argument)
{
    jk_server *server = argument;
    jk_parent_watch *watch = &server->control->parent;
    jk_record_sweep(server);
    while (!jk_life_stopping(server)) {
        zmq_pollitem_t items[ITEMS] = {
            [WAKE] = {.fd = server->requests->replies.wake, .events = ZMQ_POLLIN},
            [CONTROL] = jk_channel_item(server, JK_CONTROL),
            [PARENT] = {.fd = watch->pidfd, .events = ZMQ_POLLIN},
        };
        bool watching = watch->named != 0;
        int count = watching && watch->pidfd >= 0 ? ITEMS : PARENT;
        int delay = jk_channel_delay(server, JK_CONTROL), stuck_cell = jk_stuck_cell_look(server);
        if (delay < 0 || (stuck_cell >= 0 && stuck_cell < delay)) delay = stuck_cell;
        if (watching && watch->pidfd < 0 && (delay < 0 || delay > PARENT_LOOK)) delay = PARENT_LOOK;
        if (zmq_poll(items, count, delay) < 0) continue;
        if (items[WAKE].revents) jk_event_clear(server->requests->replies.wake);
        jk_replies_send(server);
        int ended_by = jk_ending_asked();
        if (ended_by) {
            jk_log("ending on signal %d", ended_by);
            jk_shutdown(server, false, 128 + ended_by);
        }
        if (items[CONTROL].revents) jk_route_receive(server, JK_CONTROL, 64);
        if (jk_parent_watch_gone(watch)) jk_shutdown(server, false, 1);
    }
    jk_replies_send(server);
    return NULL;
}
