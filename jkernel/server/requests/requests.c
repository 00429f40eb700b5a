/* The room of requests is opened and cleared. */
#include "jkernel/server/requests/requests_room.h"

int jk_requests_open(jk_server *server)
{
    jk_requests *requests = server->requests;
    int result = jk_inbox_open(&requests->inbox) | jk_input_open(&requests->input) |
                 jk_replies_open(&requests->replies);
    jk_mutex_open(&requests->subshells.lock);
    jk_lock_register(server, &requests->inbox.lock);
    jk_lock_register(server, &requests->subshells.lock);
    jk_lock_register(server, &requests->input.lock);
    jk_lock_register(server, &requests->replies.lock);
    return result;
}

void jk_requests_clear(jk_server *server)
{
    jk_requests *requests = server->requests;
    jk_requests_release(jk_inbox_clear(&requests->inbox));
    jk_replies_clear(&requests->replies);
    jk_input_clear(&requests->input);
}
