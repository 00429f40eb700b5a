/* When the head of the outbox leaves. */
#include "jkernel/server/iopub/iopub_room.h"

#define LINE_PAUSE (2 * JK_MILLISECOND)

void jk_pace_pay(jk_server *server, const jk_entry *entry)
{
    jk_pace *pace = &server->iopub->pace;
    int64_t now = jk_clock();
    jk_parent_retain(entry->parent);
    jk_parent_release(pace->last_parent);
    pace->last_parent = entry->parent;
    pace->last_stream = entry->stream;
    pace->last_sent = now;
    if (pace->rate_since < now) pace->rate_since = now;
    pace->rate_since += JK_SECOND / JK_STREAM_RATE;
}

void jk_pace_popped(jk_server *server, const jk_entry *entry)
{
    jk_pace *pace = &server->iopub->pace;
    if (pace->line == entry) pace->line = NULL;
}

void jk_iopub_expect(jk_server *server, bool handed_over)
{
    server->iopub->pace.expecting = handed_over;
}

int jk_pace_poll_delay(jk_server *server, int delay)
{
    jk_pace *pace = &server->iopub->pace;
    if (pace->expecting && (delay < 0 || delay > JK_LOOK_AGAIN)) delay = JK_LOOK_AGAIN;
    pace->expecting = false;
    return delay;
}

static int delay_ms(int64_t delay)
{
    return (int)((delay + JK_MILLISECOND - 1) / JK_MILLISECOND);
}

/* How far the slowest of those that read is behind, which writers see, too. */
static size_t behind_look(jk_server *server)
{
    size_t behind = jk_publisher_behind(server->ports->publisher);
    jk_unread_set(server, behind);
    return behind;
}

/* ms that the head must wait because a subscriber is too far behind. */
static int stall_delay(jk_server *server, jk_entry *head)
{
    bool text = head->kind == JK_ENTRY_STREAM;
    if (!server->ports->publisher) return text ? jk_xpub_stall(server, head) : 0;
    if (!text && head->kind != JK_ENTRY_PUBLISH) return 0;
    size_t behind = behind_look(server), limit = text ? JK_IN_FLIGHT_LIMIT : JK_KEPT_MOST;
    return behind > limit ? jk_publisher_delay(server->ports->publisher) : 0;
}

/* How long the first text of a line waits for its end: print() writes the two apart, and they are one
 * message. */
static int line_delay(jk_pace *pace, const jk_entry *head)
{
    if (head->content.size > 0 && head->content.data[head->content.size - 1] == '\n') return 0;
    int64_t now = jk_clock();
    if (pace->line != head) {
        pace->line = head;
        pace->line_since = now;
    }
    int64_t delay = pace->line_since + LINE_PAUSE - now;
    return delay > 0 ? delay_ms(delay) : 0;
}

/* How long the next stream message waits so that no more than JK_STREAM_RATE a second leave, after a burst:
 * streams that alternate cannot be merged without losing their order. */
static int64_t pace_delay(const jk_pace *pace)
{
    int64_t delay = pace->rate_since - JK_STREAM_BURST * JK_SECOND / JK_STREAM_RATE - jk_clock();
    return delay > 0 ? delay : 0;
}

/* ms until the head of the queue may leave; -1 when it is empty. */
int jk_pace_head_delay(jk_server *server)
{
    jk_outbox *outbox = &server->output->outbox;
    jk_pace *pace = &server->iopub->pace;
    jk_entry *head = outbox->head;
    if (!head) return -1;
    int stall = stall_delay(server, head);
    if (stall > 0 || head->kind != JK_ENTRY_STREAM) return stall;

    if (outbox->hurry) return 0;
    int64_t paced = pace_delay(pace);
    bool may_grow =
        head == outbox->tail && outbox->pushed > outbox->urgent && head->content.size + 4 <= JK_STREAM_MOST;
    if (server->output->cells.serving == 0 && outbox->others == 0) {
        /* Between cells all text waits together and leaves together. */
        int64_t quiet = outbox->pushed > outbox->urgent && pace->last_sent
                            ? pace->last_sent + JK_STREAM_PAUSE_BETWEEN - jk_clock()
                            : 0;
        if (quiet > 0) return delay_ms(quiet);
        if (!may_grow) jk_outbox_urge_locked(outbox);
    }
    if (!may_grow || paced > 0) return delay_ms(paced);
    bool follows = pace->last_sent && head->parent == pace->last_parent && head->stream == pace->last_stream;
    int64_t delay = follows ? pace->last_sent + JK_STREAM_PAUSE - jk_clock() : 0;
    return delay > 0 ? delay_ms(delay) : line_delay(pace, head);
}

/* Write what was handed over. Returns the ms until it must be looked at again; -1: when there is something.
 */
int jk_pace_flush(jk_server *server)
{
    jk_publisher *publisher = server->ports->publisher;
    jk_publisher_flush(publisher);
    behind_look(server);
    return jk_publisher_delay(publisher);
}
