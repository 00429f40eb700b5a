/* What the executor publishes. */
#include "base/file.h"
#include "jkernel/server/outbox/outbox_room.h"

#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int entry_add_buffers(jk_entry *entry, const jk_bytes *buffers, size_t nbuffers)
{
    if (nbuffers == 0) return 0;
    size_t total = nbuffers * sizeof(jk_bytes);
    for (size_t i = 0; i < nbuffers; i++) total += buffers[i].size;
    entry->buffers = jk_memory_take(total);
    if (!entry->buffers) return -1;
    entry->nbuffers = nbuffers;
    char *at = (char *)(entry->buffers + nbuffers);
    for (size_t i = 0; i < nbuffers; i++) {
        if (buffers[i].size) memcpy(at, buffers[i].data, buffers[i].size);
        entry->buffers[i] = (jk_bytes){at, buffers[i].size};
        at += buffers[i].size;
    }
    return 0;
}

/* What became of the kernel before this one is said once, at the head of the first cell's output. */
static void notice_publish(jk_server *server, jk_parent *parent)
{
    char *notice = jk_record_take_notice(server);
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
    if (jk_record_has_notice(server) && strcmp(msg_type, "execute_input") == 0)
        notice_publish(server, parent);
    jk_stdio_leave(server, entered);
    return result;
}

/* C's stdout gathers a line before it writes, so that lines of several children do not mix. */
static int child_write(jk_stream stream, const char *text, size_t size)
{
    if (stream == JK_STDOUT) return fwrite(text, 1, size, stdout) == size ? 0 : -1;
    return drupe_write_all(STDERR_FILENO, text, size) ? 0 : -1;
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
