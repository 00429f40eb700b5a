/* The one queue of everything that leaves: statuses, streams, results, errors, replies and questions. Whoever
 * publishes only enqueues here; the io thread alone sends, so the order of the calls is the order on the
 * wire.
 *
 * Stream text grows the last entry instead of adding one. The entry is therefore the coalescing buffer, and
 * anything else that is enqueued seals it: no timer, no second buffer, no order to restore. */
#include "jkernel/server/crash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int jk_outbox_open(jk_outbox *outbox)
{
    outbox->patience = JK_WRITER_WAIT;
    outbox->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (outbox->wake < 0) return -1;
    if (jk_mutex_open(&outbox->lock) != 0) return -1;
    return jk_condition_open(&outbox->moved);
}

void jk_outbox_clear(jk_outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock); /* against late callers */
    while (outbox->head) {
        jk_entry *entry = outbox->head;
        outbox->head = entry->next;
        jk_entry_release(entry);
    }
    outbox->tail = NULL;
    outbox->bytes = 0;
    while (outbox->cell) {
        jk_parent *cell = outbox->cell;
        outbox->cell = cell->below;
        jk_parent_release(cell);
    }
    jk_parent_release(outbox->last_cell);
    jk_parent_release(outbox->last_parent);
    for (int i = 0; i < JK_ANSWERED_MOST; i++) {
        jk_parent_release(outbox->answered[i].parent);
        outbox->answered[i].parent = NULL;
    }
    outbox->last_cell = outbox->last_parent = NULL;
    if (outbox->wake >= 0) close(outbox->wake);
    outbox->wake = -1;
    pthread_mutex_unlock(&outbox->lock);
}

jk_entry *jk_entry_create(jk_entry_kind kind, const char *type, jk_parent *parent)
{
    jk_entry *entry = jk_memory_clear(sizeof *entry);
    if (!entry) return NULL;
    entry->kind = kind;
    clock_gettime(CLOCK_REALTIME, &entry->date);
    if (type && !(entry->type = jk_memory_text(type))) {
        jk_memory_release(entry);
        return NULL;
    }
    entry->parent = jk_parent_retain(parent);
    return entry;
}

void jk_entry_release(jk_entry *entry)
{
    if (!entry || jk_memory_frozen()) return;
    jk_parent_release(entry->parent);
    jk_request_release(entry->request);
    jk_buffer_clear(&entry->content);
    jk_buffer_clear(&entry->metadata);
    jk_memory_release(entry->buffers);
    jk_memory_release(entry->type);
    jk_memory_release(entry);
}

static void entry_account(jk_outbox *outbox, jk_entry *entry)
{
    size_t cost = sizeof *entry + entry->content.capacity + entry->metadata.capacity;
    for (size_t i = 0; i < entry->nbuffers; i++) cost += entry->buffers[i].size;
    outbox->bytes += cost - entry->cost;
    entry->cost = cost;
}

static bool entry_is_text(const jk_entry *entry)
{
    return entry->kind == JK_ENTRY_STREAM || entry->kind == JK_ENTRY_NOTE;
}

/* For all. */
static bool entry_is_status(const jk_entry *entry)
{
    return entry->type && !entry->only && strcmp(entry->type, "status") == 0;
}

static void wake_locked(jk_outbox *outbox)
{
    if (!outbox->sleeping || outbox->closed) return;
    outbox->sleeping = false;
    jk_event_raise(outbox->wake);
}

/* The same at jk_outbox_unlock(). A quick cell so wakes the io thread once, for all that it brings. */
static void call_locked(jk_outbox *outbox, bool patient)
{
    if (!outbox->sleeping || outbox->closed) return;
    if (patient && outbox->look <= jk_clock() + JK_LOOK_AGAIN * JK_MILLISECOND) return;
    outbox->sleeping = false;
    outbox->calling = true;
}

void jk_outbox_unlock(jk_outbox *outbox)
{
    int wake = outbox->calling ? outbox->wake : -1;
    outbox->calling = false;
    pthread_mutex_unlock(&outbox->lock);
    if (wake >= 0) jk_event_raise(wake);
}

void jk_outbox_wake(jk_outbox *outbox)
{
    jk_event_raise(outbox->wake);
}

void jk_outbox_awake(jk_server *server)
{
    pthread_mutex_lock(&server->outbox.lock);
    server->outbox.sleeping = false;
    pthread_mutex_unlock(&server->outbox.lock);
}

int jk_outbox_push_locked(jk_outbox *outbox, jk_entry *entry)
{
    if (!entry) {
        jk_log("no memory for a message; it is lost");
        return -1;
    }
    if (outbox->closed || entry->content.failed || entry->metadata.failed) {
        jk_entry_release(entry);
        return -1;
    }
    if (outbox->tail) {
        outbox->tail->next = entry;
    } else {
        outbox->head = entry;
    }
    outbox->tail = entry;
    outbox->pushed++;
    if (!entry_is_text(entry)) outbox->others++;
    outbox->statuses += entry_is_status(entry);
    entry_account(outbox, entry);
    call_locked(outbox, entry->patient);
    return 0;
}

jk_entry *jk_outbox_pop_locked(jk_outbox *outbox)
{
    jk_entry *head = outbox->head;
    outbox->head = head->next;
    if (!outbox->head) outbox->tail = NULL;
    head->next = NULL;
    outbox->bytes -= head->cost;
    if (!entry_is_text(head)) outbox->others--;
    outbox->statuses -= entry_is_status(head);
    if (outbox->line == head) outbox->line = NULL;
    return head;
}

void jk_outbox_hurry(jk_outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->hurry = true;
    pthread_mutex_unlock(&outbox->lock);
}

int jk_outbox_push(jk_server *server, jk_entry *entry)
{
    pthread_mutex_lock(&server->outbox.lock);
    int result = jk_outbox_push_locked(&server->outbox, entry);
    jk_outbox_unlock(&server->outbox);
    return result;
}

/* How much of `text` fits into `room` bytes without cutting a character. */
static size_t text_cut(const char *text, size_t size, size_t room)
{
    if (size <= room) return size;
    size_t cut = room;
    while (cut > 0 && room - cut < 4 && ((unsigned char)text[cut] & 0xc0) == 0x80) cut--;
    return cut > 0 ? cut : room;
}

int jk_outbox_stream(jk_server *server, jk_parent *parent, jk_stream stream, const char *text, size_t size)
{
    jk_outbox *outbox = &server->outbox;
    int result = 0;
    pthread_mutex_lock(&outbox->lock);
    if (!parent) parent = outbox->cell ? outbox->cell : outbox->last_cell;
    if (parent && jk_parent_silent(parent)) size = 0;
    while (size > 0 && result == 0) {
        jk_entry *tail = outbox->tail;
        if (!tail || tail->kind != JK_ENTRY_STREAM || tail->parent != parent || tail->stream != stream ||
            tail->content.size + 4 > JK_STREAM_MOST || jk_memory_frozen()) {
            tail = jk_entry_create(JK_ENTRY_STREAM, NULL, parent);
            if (tail) tail->stream = stream;
            result = jk_outbox_push_locked(outbox, tail);
            if (result != 0) break;
        }
        size_t part = text_cut(text, size, JK_STREAM_MOST - tail->content.size);
        jk_buffer_append(&tail->content, text, part);
        if (tail->content.failed) {
            tail->content.failed = false;
            tail->lost += part;
        }
        entry_account(outbox, tail);
        jk_record_text(server, text, part);
        text += part;
        size -= part;
    }
    if (outbox->tail && outbox->tail->content.size + 4 > JK_STREAM_MOST) call_locked(outbox, false);
    jk_outbox_unlock(outbox);
    return result;
}

/* --- The limit --------------------------------------------------------------------------------------------
 */

void jk_entry_give_way(jk_outbox *outbox, jk_entry *entry)
{
    entry->lost += entry->content.size;
    jk_buffer_clear(&entry->content);
    entry->kind = JK_ENTRY_NOTE;
    entry_account(outbox, entry);
}

static void oldest_text_give_way(jk_outbox *outbox)
{
    jk_entry *before = NULL;
    for (jk_entry *entry = outbox->head; entry && outbox->bytes > JK_OUTBOX_LIMIT / 4 * 3;
         entry = entry->next) {
        if (entry->kind == JK_ENTRY_STREAM) jk_entry_give_way(outbox, entry);
        if (entry->kind == JK_ENTRY_NOTE && before && before->kind == JK_ENTRY_NOTE &&
            before->parent == entry->parent && entry != outbox->tail) {
            before->lost += entry->lost;
            before->next = entry->next;
            outbox->bytes -= entry->cost;
            outbox->sent++;
            jk_entry_release(entry);
            entry = before;
            continue;
        }
        before = entry;
    }
}

static bool outbox_full(const jk_outbox *outbox)
{
    return outbox->bytes + atomic_load(&outbox->flight) > JK_OUTBOX_LIMIT;
}

bool jk_outbox_crowded(jk_server *server)
{
    pthread_mutex_lock(&server->outbox.lock);
    bool crowded = server->outbox.bytes > JK_OUTBOX_LIMIT;
    pthread_mutex_unlock(&server->outbox.lock);
    return crowded;
}

void jk_outbox_wait_room(jk_server *server)
{
    jk_outbox *outbox = &server->outbox;
    pthread_mutex_lock(&outbox->lock);
    if (outbox_full(outbox)) {
        int64_t deadline = jk_clock() + outbox->patience;
        unsigned landed = atomic_load(&outbox->landed);
        outbox->waiting++;
        while (!outbox->closed && !outbox->stalled && outbox_full(outbox)) {
            atomic_store(&outbox->watched, true);
            /* The last of it may have landed before the flag was up. */
            if (!outbox_full(outbox)) break;
            if (jk_condition_wait(&outbox->moved, &outbox->lock, deadline)) continue;
            /* Who prints more at once than a slow client takes meanwhile goes on; the next one waits. */
            bool read = server->publisher && landed != atomic_load(&outbox->landed);
            if (read && outbox->bytes <= JK_OUTBOX_MOST) break;
            outbox->stalled = true;
            outbox->stalled_at = atomic_load(&outbox->landed);
        }
        outbox->waiting--;
        if (outbox->stalled && server->publisher) wake_locked(outbox); /* for the io thread to set aside */
        if (outbox->stalled && !server->publisher && outbox->bytes > JK_OUTBOX_LIMIT)
            oldest_text_give_way(outbox);
    }
    pthread_mutex_unlock(&outbox->lock);
}

bool jk_server_has_room(jk_server *server)
{
    if (!jk_server_alive(server)) return true;
    pthread_mutex_lock(&server->outbox.lock);
    bool room = !outbox_full(&server->outbox);
    pthread_mutex_unlock(&server->outbox.lock);
    return room;
}

int jk_server_flush(jk_server *server, int timeout_ms)
{
    if (!jk_server_alive(server)) return -1;
    jk_stdio_leave(server, jk_stdio_enter(server));
    jk_outbox *outbox = &server->outbox;
    int64_t deadline = jk_clock() + timeout_ms * JK_MILLISECOND;
    pthread_mutex_lock(&outbox->lock);
    /* Text between cells keeps its pause; it is nobody's to wait for. */
    bool between = outbox->serving == 0 && outbox->others == 0 && !outbox->hurry;
    uint64_t target = between ? 0 : outbox->pushed;
    if (outbox->urgent < target) outbox->urgent = target;
    if (outbox->sent < target) wake_locked(outbox);
    outbox->waiting++;
    bool in_time = true;
    while (!outbox->closed && outbox->sent < target && in_time) {
        in_time = jk_condition_wait(&outbox->moved, &outbox->lock, deadline);
    }
    outbox->waiting--;
    int result = outbox->sent >= target ? 0 : -1;
    pthread_mutex_unlock(&outbox->lock);
    return result;
}
