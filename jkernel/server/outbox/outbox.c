/* The one queue of everything that leaves: statuses, streams, results, errors, replies and questions. Whoever
 * publishes only enqueues here; the io thread alone sends, so the order of the calls is the order on the
 * wire.
 */
#include "jkernel/server/outbox/outbox_room.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int jk_outbox_open(jk_outbox *outbox)
{
    outbox->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    jk_mutex_open(&outbox->lock);
    outbox->moved = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    return outbox->wake < 0 ? -1 : 0;
}

void jk_outbox_close(jk_outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->closed = true;
    pthread_cond_broadcast(&outbox->moved);
    pthread_mutex_unlock(&outbox->lock);
}

void jk_outbox_clear_locked(jk_outbox *outbox)
{
    while (outbox->head) {
        jk_entry *entry = outbox->head;
        outbox->head = entry->next;
        jk_entry_release(entry);
    }
    outbox->tail = NULL;
    outbox->bytes = 0;
    if (outbox->wake >= 0) close(outbox->wake);
    outbox->wake = -1;
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

void jk_outbox_wake_locked(jk_outbox *outbox)
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

void jk_outbox_sleep_locked(jk_outbox *outbox, int delay)
{
    outbox->sleeping = delay != 0;
    outbox->look = delay < 0 ? INT64_MAX : jk_clock() + delay * JK_MILLISECOND;
}

void jk_outbox_awake_locked(jk_outbox *outbox)
{
    outbox->sleeping = false;
}

void jk_outbox_awake(jk_server *server)
{
    pthread_mutex_lock(&server->output->outbox.lock);
    server->output->outbox.sleeping = false;
    pthread_mutex_unlock(&server->output->outbox.lock);
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
    return head;
}

void jk_outbox_hurry(jk_outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->hurry = true;
    pthread_mutex_unlock(&outbox->lock);
}

void jk_outbox_grown_locked(jk_outbox *outbox, jk_entry *entry)
{
    entry_account(outbox, entry);
    if (entry->content.size + 4 > JK_STREAM_MOST) call_locked(outbox, false);
}

void jk_outbox_sent_locked(jk_outbox *outbox, uint64_t count)
{
    outbox->sent += count;
}

void jk_outbox_urge_locked(jk_outbox *outbox)
{
    if (outbox->urgent < outbox->pushed) outbox->urgent = outbox->pushed;
}

int jk_outbox_push(jk_server *server, jk_entry *entry)
{
    pthread_mutex_lock(&server->output->outbox.lock);
    int result = jk_outbox_push_locked(&server->output->outbox, entry);
    jk_outbox_unlock(&server->output->outbox);
    return result;
}

void jk_entry_give_way(jk_outbox *outbox, jk_entry *entry)
{
    entry->lost += entry->content.size;
    jk_buffer_clear(&entry->content);
    entry->kind = JK_ENTRY_NOTE;
    entry_account(outbox, entry);
}

void jk_outbox_shed_locked(jk_outbox *outbox)
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
