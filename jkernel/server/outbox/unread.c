/* What subscribers have not taken. Where iopub is libzmq's, its threads tell what has landed. */
#include "jkernel/server/outbox/outbox_room.h"

void jk_unread_set(jk_server *server, size_t bytes)
{
    jk_unread *unread = &server->output->unread;
    if (atomic_exchange(&unread->bytes, bytes) > bytes) atomic_fetch_add(&unread->progress, 1);
}

void jk_unread_add(jk_server *server, size_t bytes)
{
    atomic_fetch_add(&server->output->unread.bytes, bytes);
}

void jk_unread_landed(jk_server *server, size_t bytes)
{
    jk_unread *unread = &server->output->unread;
    atomic_fetch_sub(&unread->bytes, bytes);
    atomic_fetch_add(&unread->progress, 1);
}

void jk_unread_watch(jk_server *server)
{
    atomic_store(&server->output->unread.watched, true);
}

void jk_unread_tell(jk_server *server)
{
    if (atomic_exchange(&server->output->unread.watched, false)) jk_outbox_wake(&server->output->outbox);
}
