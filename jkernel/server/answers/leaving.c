/* A reply and a question leave, in their place among the outputs.
 *
 * A failed cell aborts what was sent before its error was known, which may still lie in the socket. So the
 * abort happens in the io thread, when the error reply is about to leave: the socket is read until it falls
 * silent, what is queued then is aborted, and whatever a client sends after it saw the error is not. Until
 * then no other cell may start (inbox.aborting). */
#include "jkernel/server/answers/answers_room.h"

static void shell_drain(jk_server *server)
{
    int64_t end = jk_clock() + JK_ABORT_GRACE * JK_MILLISECOND;
    zmq_pollitem_t item = jk_channel_item(server, JK_SHELL);
    do {
        if (zmq_poll(&item, 1, JK_ABORT_SILENCE) <= 0) return;
        jk_route_receive(server, JK_SHELL, 64);
    } while (jk_clock() < end);
}

/* Take the execute_requests that were sent to the same shell before the cell `failed` did, and answer them as
 * aborted. */
static void shell_abort(jk_server *server, const jk_request *failed)
{
    shell_drain(server);
    jk_requests_refuse(jk_inbox_take_cells(jk_inbox_of(failed)), NULL);
}

static void reply_leave(jk_server *server, jk_entry *entry)
{
    jk_input_end(server, entry->request);
    if (entry->flags & JK_REPLY_ABORT_QUEUED) shell_abort(server, entry->request);
    if (entry->request->channel == JK_CONTROL) {
        jk_replies_push(server, entry);
        return;
    }
    jk_reply_send(server, JK_SHELL, entry);
    jk_entry_release(entry);
}

const jk_leaving jk_answers_leaving = {.reply = reply_leave, .question = jk_input_send};
