/* What the executor publishes, and the statuses around requests. */
#include "jkernel/server/crash.h"

#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWERED_SIZE 4096 /* bytes of a header that is kept beyond its request */

/* --- Status ------------------------------------------------------------------------------------------------
 */

static jk_entry *status_entry(jk_parent *parent, const char *state)
{
    jk_entry *entry = jk_entry_create(JK_ENTRY_PUBLISH, "status", parent);
    if (!entry) return NULL;
    jk_buffer_append_text(&entry->content, "{\"execution_state\":\"");
    jk_buffer_append_text(&entry->content, state);
    jk_buffer_append_text(&entry->content, "\"}");
    return entry;
}

void jk_server_started(jk_server *server)
{
    if (jk_server_alive(server) && !atomic_exchange(&server->started, true)) {
        jk_outbox_push(server, status_entry(NULL, "starting"));
    }
}

static bool cell_runs_locked(const jk_outbox *outbox, const jk_parent *parent)
{
    const jk_parent *cell = outbox->cell;
    while (cell && cell != parent) cell = cell->below;
    return cell != NULL;
}

void jk_status_busy(jk_server *server, jk_parent *parent, bool cell)
{
    jk_outbox *outbox = &server->outbox;
    pthread_mutex_lock(&outbox->lock);
    if (cell && cell_runs_locked(outbox, parent)) { /* announced */
        pthread_mutex_unlock(&outbox->lock);
        return;
    }
    jk_entry *busy = status_entry(parent, "busy");
    if (busy) busy->patient = true;
    jk_outbox_push_locked(outbox, busy);
    outbox->serving++;
    if (cell) {
        jk_record_cell(server, true);
        jk_parent_release(outbox->last_cell);
        outbox->last_cell = jk_parent_retain(parent);
        parent->below = outbox->cell;
        outbox->cell = jk_parent_retain(parent);
    }
    jk_outbox_unlock(outbox);
}

static void cell_end_locked(jk_outbox *outbox, jk_parent *parent)
{
    jk_parent **link = &outbox->cell;
    while (*link && *link != parent) link = &(*link)->below;
    if (!*link) return;
    *link = parent->below;
    parent->below = NULL;
    jk_parent_release(parent);
}

/* Clients take any idle for the kernel's: while a cell runs, its busy is said again in the same step. */
static void idle_locked(jk_server *server, jk_parent *parent)
{
    jk_outbox *outbox = &server->outbox;
    cell_end_locked(outbox, parent);
    jk_record_cell(server, outbox->cell != NULL);
    jk_outbox_push_locked(outbox, status_entry(parent, "idle"));
    if (outbox->cell) jk_outbox_push_locked(outbox, status_entry(outbox->cell, "busy"));
}

void jk_status_idle(jk_server *server, jk_parent *parent, jk_entry *reply)
{
    jk_outbox *outbox = &server->outbox;
    pthread_mutex_lock(&outbox->lock);
    if (reply) jk_outbox_push_locked(outbox, reply);
    if (outbox->serving > 0) outbox->serving--;
    idle_locked(server, parent);
    jk_outbox_unlock(outbox);
}

void jk_status_around(jk_server *server, jk_parent *parent, jk_entry *reply)
{
    jk_outbox *outbox = &server->outbox;
    jk_parent_retain(parent);
    pthread_mutex_lock(&outbox->lock);
    jk_outbox_push_locked(outbox, status_entry(parent, "busy"));
    if (reply) jk_outbox_push_locked(outbox, reply);
    idle_locked(server, parent);
    jk_outbox_unlock(outbox);
    jk_parent_release(parent);
}

void jk_status_answered(jk_server *server, jk_parent *parent)
{
    if (parent->size > ANSWERED_SIZE) return;
    jk_answered *place = &server->outbox.answered[server->outbox.answers++ % JK_ANSWERED_MOST];
    jk_parent_release(place->parent);
    *place = (jk_answered){jk_parent_retain(parent), jk_clock()};
}

/* For one subscriber. */
static void say_locked(jk_outbox *outbox, jk_parent *parent, const char *state, uint64_t only)
{
    jk_entry *entry = status_entry(parent, state);
    if (entry) entry->only = only;
    jk_outbox_push_locked(outbox, entry);
}

/* Returns whether there was one. */
static bool answered_again_locked(jk_outbox *outbox, uint64_t only)
{
    bool any = false;
    int64_t since = jk_clock() - JK_ANSWERED_FOR;
    for (unsigned i = 0; i < JK_ANSWERED_MOST; i++) {
        jk_answered *answered = &outbox->answered[(outbox->answers + i) % JK_ANSWERED_MOST];
        if (!answered->parent || answered->at < since) continue;
        say_locked(outbox, answered->parent, "idle", only);
        any = true;
    }
    return any;
}

/* With encryption all hear what is said: that a cell runs is no news to them, and who has just come asks. */
void jk_status_again(jk_server *server, bool present, uint64_t only, bool told)
{
    jk_outbox *outbox = &server->outbox;
    if (!jk_server_alive(server) || jk_memory_frozen()) return;
    pthread_mutex_lock(&outbox->lock);
    told |= outbox->statuses > 0; /* it will get those */
    bool busy = outbox->cell || outbox->serving > 0;
    bool behind = answered_again_locked(outbox, only);
    if (present && (behind || (!told && (only || !busy))))
        say_locked(outbox, outbox->cell, busy ? "busy" : "idle", only);
    jk_outbox_unlock(outbox);
}

/* --- Output ------------------------------------------------------------------------------------------------
 */

jk_parent *jk_server_current_cell(jk_server *server)
{
    if (!jk_server_alive(server)) return NULL;
    pthread_mutex_lock(&server->outbox.lock);
    jk_parent *cell = jk_parent_retain(server->outbox.cell);
    pthread_mutex_unlock(&server->outbox.lock);
    return cell;
}

bool jk_server_cell_runs(jk_server *server, const jk_parent *cell)
{
    if (!jk_server_alive(server)) return false;
    pthread_mutex_lock(&server->outbox.lock);
    const jk_parent *at = server->outbox.cell;
    while (at && at != cell) at = at->below;
    pthread_mutex_unlock(&server->outbox.lock);
    return at != NULL;
}

static int entry_add_buffers(jk_entry *entry, const jk_bytes *buffers, size_t nbuffers)
{
    if (nbuffers == 0) return 0;
    size_t total = nbuffers * sizeof(jk_slice);
    for (size_t i = 0; i < nbuffers; i++) total += buffers[i].size;
    entry->buffers = jk_memory_take(total);
    if (!entry->buffers) return -1;
    entry->nbuffers = nbuffers;
    char *at = (char *)(entry->buffers + nbuffers);
    for (size_t i = 0; i < nbuffers; i++) {
        if (buffers[i].size) memcpy(at, buffers[i].data, buffers[i].size);
        entry->buffers[i] = (jk_slice){at, buffers[i].size};
        at += buffers[i].size;
    }
    return 0;
}

/* What became of the kernel before this one is said once, at the head of the first cell's output. */
static void notice_publish(jk_server *server, jk_parent *parent)
{
    char *notice = atomic_exchange(&server->notice, NULL);
    if (notice) jk_outbox_stream(server, parent, JK_STDERR, notice, strlen(notice));
    free(notice);
}

int jk_publish(jk_server *server, jk_parent *parent, const char *msg_type, jk_bytes content,
               jk_bytes metadata, const jk_bytes *buffers, size_t nbuffers)
{
    if (!jk_server_alive(server)) return -1;
    if (parent && jk_parent_silent(parent) && strncmp(msg_type, "comm_", 5) != 0) return 0;
    jk_entry *entry = jk_entry_create(JK_ENTRY_PUBLISH, msg_type, parent);
    if (!entry) return -1;
    jk_buffer_append(&entry->content, content.data, content.size);
    jk_buffer_append(&entry->metadata, metadata.data, metadata.size);
    if (entry_add_buffers(entry, buffers, nbuffers) != 0) {
        jk_entry_release(entry);
        return -1;
    }
    entry->patient = strcmp(msg_type, "execute_input") == 0;
    jk_outbox_wait_room(server);
    bool entered = jk_stdio_enter(server);
    int result = jk_outbox_push(server, entry);
    if (atomic_load_explicit(&server->notice, memory_order_relaxed) && strcmp(msg_type, "execute_input") == 0)
        notice_publish(server, parent);
    jk_stdio_leave(server, entered);
    return result;
}

/* C's stdout gathers a line before it writes, so that lines of several children do not mix. */
static int child_write(jk_stream stream, const char *text, size_t size)
{
    if (stream == JK_STDOUT) return fwrite(text, 1, size, stdout) == size ? 0 : -1;
    while (size > 0) {
        ssize_t done = write(STDERR_FILENO, text, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        text += done;
        size -= (size_t)done;
    }
    return 0;
}

int jk_stream_write(jk_server *server, jk_parent *parent, jk_stream stream, const char *text, size_t size)
{
    if (jk_server_forked(server)) return child_write(stream, text, size);
    if (!jk_server_alive(server)) return -1;
    if (__fpending(stdout) > 0) jk_stdio_flush(server); /* a printf() before a print() stays before it */
    jk_outbox_wait_room(server);
    bool entered = jk_stdio_enter(server);
    int result = jk_outbox_stream(server, parent, stream, text, size);
    jk_stdio_leave(server, entered);
    return result;
}
