/* Stream text grows the last entry of the outbox. The entry is therefore the coalescing buffer, and anything
 * else that is enqueued seals it: no timer, no second buffer, no order to restore. */
#include "jkernel/server/outbox/outbox_room.h"

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
    jk_outbox *outbox = &server->output->outbox;
    const jk_cells *cells = &server->output->cells;
    int result = 0;
    pthread_mutex_lock(&outbox->lock);
    if (!parent) parent = cells->cell ? cells->cell : cells->last_cell;
    if (parent && jk_parent_silent(parent)) size = 0;
    while (size > 0 && result == 0) {
        jk_entry *tail = outbox->tail;
        if (!tail || tail->kind != JK_ENTRY_STREAM || tail->parent != parent || tail->stream != stream ||
            tail->content.size + 4 > JK_STREAM_MOST || jk_memory_frozen()) {
            tail = jk_entry_create(JK_ENTRY_STREAM, NULL, parent);
            if (tail) tail->stream = stream;
            result = jk_outbox_push_locked(outbox, tail);
            if (!tail || result != 0) break;
        }
        size_t part = text_cut(text, size, JK_STREAM_MOST - tail->content.size);
        jk_buffer_append(&tail->content, text, part);
        if (tail->content.failed) {
            tail->content.failed = false;
            tail->lost += part;
        }
        jk_outbox_grown_locked(outbox, tail);
        jk_record_text(server, text, part);
        text += part;
        size -= part;
    }
    jk_outbox_unlock(outbox);
    return result;
}
