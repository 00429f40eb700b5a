/* Requests on their way from an inbox to the executor. */
#include "jkernel/server/requests/requests_room.h"

/* Before the language is up nothing can run, so the first cell to come is the next to run, and its busy need
 * not wait: some clients take the idle of an earlier request for the end of the cell that they have just
 * sent. */
void jk_shell_announce(jk_server *server, jk_request *request)
{
    if (jk_inbox_announce(&server->requests->inbox, request)) jk_status_busy(server, request->parent, true);
}

int jk_server_request_fd(const jk_server *server)
{
    return server->requests->inbox.ready;
}

void jk_server_wake(jk_server *server)
{
    if (jk_server_alive(server)) jk_inbox_signal(&server->requests->inbox);
}

jk_request *jk_inbox_next(jk_server *server, jk_inbox *inbox)
{
    if (!jk_server_alive(server)) return NULL;
    jk_request *request = jk_inbox_take(inbox);
    if (!request) return NULL;
    bool entered = jk_stdio_enter(server);
    jk_status_busy(server, request->parent, request->is_execute);
    jk_stdio_leave(server, entered);
    return request;
}

jk_request *jk_server_next(jk_server *server)
{
    return jk_inbox_next(server, &server->requests->inbox);
}
