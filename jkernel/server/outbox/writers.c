/* Writers wait: for room in the outbox, or until what they wrote has left. */
#include "jkernel/server/outbox/outbox_room.h"

static bool outbox_full(const jk_server *server)
{
    return server->output->outbox.bytes + atomic_load(&server->output->unread.bytes) > JK_OUTBOX_LIMIT;
}

bool jk_outbox_crowded(jk_server *server)
{
    pthread_mutex_lock(&server->output->outbox.lock);
    bool crowded = server->output->outbox.bytes > JK_OUTBOX_LIMIT;
    pthread_mutex_unlock(&server->output->outbox.lock);
    return crowded;
}

void jk_outbox_wait_room(jk_server *server)
{
    jk_outbox *outbox = &server->output->outbox;
    jk_writers *writers = &server->output->writers;
    pthread_mutex_lock(&outbox->lock);
    if (outbox_full(server)) {
        int64_t deadline = jk_clock() + JK_WRITER_WAIT;
        unsigned landed = atomic_load(&server->output->unread.progress);
        writers->waiting++;
        while (!outbox->closed && !writers->stalled && outbox_full(server)) {
            jk_unread_watch(server);
            /* The last of it may have landed before the flag was up. */
            if (!outbox_full(server)) break;
            if (drupe_cond_wait_until(&outbox->moved, &outbox->lock, (uint64_t)deadline)) continue;
            /* Who prints more at once than a slow client takes meanwhile goes on; the next one waits. */
            bool read = writers->apart && landed != atomic_load(&server->output->unread.progress);
            if (read && outbox->bytes <= JK_OUTBOX_MOST) break;
            writers->stalled = true;
            writers->stalled_at = atomic_load(&server->output->unread.progress);
        }
        writers->waiting--;
        if (writers->stalled && writers->apart)
            jk_outbox_wake_locked(outbox); /* for the io thread to set aside */
        if (writers->stalled && !writers->apart && outbox->bytes > JK_OUTBOX_LIMIT)
            jk_outbox_shed_locked(outbox);
    }
    pthread_mutex_unlock(&outbox->lock);
}

bool jk_server_has_room(jk_server *server)
{
    if (!jk_server_alive(server)) return true;
    pthread_mutex_lock(&server->output->outbox.lock);
    bool room = !outbox_full(server);
    pthread_mutex_unlock(&server->output->outbox.lock);
    return room;
}

int jk_server_flush(jk_server *server, int timeout_ms)
{
    if (!jk_server_alive(server)) return -1;
    jk_stdio_leave(server, jk_stdio_enter(server));
    jk_outbox *outbox = &server->output->outbox;
    jk_writers *writers = &server->output->writers;
    int64_t deadline = jk_clock() + timeout_ms * JK_MILLISECOND;
    pthread_mutex_lock(&outbox->lock);
    /* Text between cells keeps its pause; it is nobody's to wait for. */
    bool between = server->output->cells.serving == 0 && outbox->others == 0 && !outbox->hurry;
    uint64_t target = between ? 0 : outbox->pushed;
    if (!between) jk_outbox_urge_locked(outbox);
    if (outbox->sent < target) jk_outbox_wake_locked(outbox);
    writers->waiting++;
    bool in_time = true;
    while (!outbox->closed && outbox->sent < target && in_time) {
        in_time = drupe_cond_wait_until(&outbox->moved, &outbox->lock, (uint64_t)deadline);
    }
    writers->waiting--;
    int result = outbox->sent >= target ? 0 : -1;
    pthread_mutex_unlock(&outbox->lock);
    return result;
}

bool jk_writers_stalled_locked(jk_server *server)
{
    jk_writers *writers = &server->output->writers;
    bool stalled = writers->stalled;
    if (stalled && (writers->apart || writers->stalled_at != atomic_load(&server->output->unread.progress)))
        writers->stalled = false;
    return stalled;
}

void jk_writers_tell_locked(jk_server *server)
{
    if (server->output->writers.waiting) pthread_cond_broadcast(&server->output->outbox.moved);
}

void jk_writers_apart(jk_server *server)
{
    server->output->writers.apart = true;
}
