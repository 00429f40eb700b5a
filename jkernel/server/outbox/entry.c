/* One message on its way out. */
#include "jkernel/server/outbox/outbox_room.h"

#include <time.h>

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
    if (entry->request) entry->request_release(entry->request);
    jk_buffer_clear(&entry->content);
    jk_buffer_clear(&entry->metadata);
    jk_memory_release(entry->buffers);
    jk_memory_release(entry->type);
    jk_memory_release(entry);
}
