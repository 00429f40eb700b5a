/* The io thread's part of a crash report.
 *
 * Nothing is given back to the allocator here, and the long texts live in this file's own memory: the thread
 * that crashed may have crashed inside malloc(). The content is padded beyond the transport's batch size, so
 * that its release tells that it was written to the network and not only queued. */
#include "jkernel/server/crash/crash_room.h"

#include <stdio.h>
#include <string.h>

#define CONTENT_ROOM (160u << 10)
#define HEADER_ROOM  2048u
#define PADDING      (24u << 10)
#define DRAIN_MOST   JK_SECOND

static char content_room[CONTENT_ROOM], header_room[HEADER_ROOM];

/* It lies in this file's own memory. */
static void report_kept(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

/* On a thread of libzmq's: every subscriber has it. */
static void report_landed(void *data, void *hint)
{
    (void)data;
    (void)hint;
    jk_crash_published(true);
}

static void lines_append(jk_buffer *content, const char *text)
{
    while (*text) {
        size_t size = strcspn(text, "\n");
        jk_buffer_append(content, ",", 1);
        jk_buffer_append_json(content, text, size);
        text += size + (text[size] == '\n');
    }
}

/* The last line of `text`, up to an empty one, that begins with `start`; its size, 0: there is none. */
static size_t last_line(const char *text, const char *start, const char **line)
{
    size_t found = 0;
    while (*text && *text != '\n') {
        size_t size = strcspn(text, "\n");
        if (size > strlen(start) && strncmp(text, start, strlen(start)) == 0) {
            *line = text + strspn(text, " ");
            found = size - (size_t)(*line - text);
        }
        text += size + (text[size] == '\n');
    }
    return found;
}

/* The line about the last device operation that was noted; 0: there was none. */
static size_t last_work(const jk_crash_report *record, const char **line)
{
    const char *notes = strstr(record->detail, JK_CRASH_NOTES);
    return notes ? last_line(notes + strlen(JK_CRASH_NOTES), "#", line) : 0;
}

/* The innermost line of a cell, and what the devices did last. */
static void where_write(const jk_crash_report *record, jk_buffer *content)
{
    char line[400];
    const char *cell = "", *work = "";
    size_t cell_size = last_line(record->detail, "  Cell In[", &cell), work_size = last_work(record, &work);
    if (!cell_size && !work_size) return;
    int size = snprintf(line, sizeof line, "Where: %.*s%s%.*s", (int)(cell_size < 150 ? cell_size : 150),
                        cell, cell_size && work_size ? "; the last device operation: " : "",
                        (int)(work_size < 200 ? work_size : 200), work);
    jk_buffer_append(content, ",", 1);
    jk_buffer_append_json(content, line, (size_t)size);
}

/* What happened, where, and what to do come first; the details are for those who want them. */
static void report_write(const jk_crash_report *record, bool running, jk_buffer *content)
{
    char line[JK_CRASH_SUMMARY + 200], end[40];
    const char *work, *advice = "", *name = record->call[0] ? "KernelExit" : "KernelCrash";
    snprintf(end, sizeof end, "status %d", record->status);
    if (!record->call[0] && last_work(record, &work))
        advice = " Next: run the device work again inside `with drupe.checked():`, which tells what reads or "
                 "writes out of bounds.";
    jk_buffer_append_text(content, "{\"ename\":");
    jk_buffer_append_json(content, name, strlen(name));
    jk_buffer_append_text(content, ",\"evalue\":");
    jk_buffer_append_json(content, record->summary, strlen(record->summary));
    jk_buffer_append_text(content, ",\"traceback\":[");
    snprintf(line, sizeof line, "%s: %s", name, record->summary);
    jk_buffer_append_json(content, line, strlen(line));
    where_write(record, content);
    snprintf(line, sizeof line, "%sThe kernel's process ends with %s now; its variables are lost.%s",
             running ? "" : "No cell was running. ",
             record->call[0] ? end : jk_signal_name(atomic_load(&record->signal)), advice);
    lines_append(content, line);
    if (record->detail[0]) lines_append(content, "Details:");
    lines_append(content, record->detail);
    jk_buffer_append(content, "]", 1);
    memset(content->data + content->size, ' ', PADDING);
    content->size += PADDING;
    jk_buffer_append(content, "}", 1);
}

void jk_crash_publish(jk_server *server)
{
    bool running;
    jk_stdio_take(server);
    jk_iopub_send_all(server);
    jk_parent *parent = jk_cells_latest(server, &running);
    if (!parent) { /* no cell to show it in: the next kernel tells */
        jk_crash_published(false);
        return;
    }
    char topic[128];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(topic, sizeof topic, "kernel.%s.error", server->session->id);
    jk_buffer header = {.data = header_room, .capacity = sizeof header_room};
    jk_buffer content = {.data = content_room, .capacity = sizeof content_room};
    jk_session_header(server->session, "error", now, &header);
    report_write(&jk_record_of(server)->crash, running, &content);
    jk_envelope envelope = {
        .topic = {topic, strlen(topic)},
        .header = {header.data, header.size},
        .parent = {parent->header, parent->size},
        .content = {content.data, content.size},
        .content_free = server->ports->publisher ? report_kept : report_landed,
    };
    if (server->ports->publisher) {
        const jk_outgoing report = {.envelope = envelope, .parent = parent};
        bool packed = jk_publisher_send(server->ports->publisher, &report) == 0;
        jk_crash_published(packed && jk_publisher_drain(server->ports->publisher, jk_clock() + DRAIN_MOST));
    } else if (jk_envelope_send(&envelope, server->ports->sockets[JK_IOPUB], server->signer) != 0) {
        jk_crash_published(false);
    }
}
