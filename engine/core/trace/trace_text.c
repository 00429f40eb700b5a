/* The end of the trace as text, for the report of a crash: nothing here may allocate or take a lock. */
#include "core/trace/trace_room.h"
#include <string.h>

#define LINE_MOST 256u

struct line {
    char text[LINE_MOST];
    size_t size;
};

static void add(struct line *line, const char *text)
{
    size_t length = strlen(text), room = sizeof line->text - 1 - line->size;
    if (length > room) length = room;
    memcpy(line->text + line->size, text, length);
    line->size += length;
}

static void add_number(struct line *line, uint64_t number)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    add(line, digits + at);
}

/* "3.2 ms": two figures are enough to compare. */
static void add_time(struct line *line, uint64_t ns)
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units[] = {{1000000000, " s"}, {1000000, " ms"}, {1000, " us"}};
    size_t unit = 0;
    while (unit + 1 < DRUPE_COUNT_OF(units) && ns < units[unit].ns) unit++;
    add_number(line, ns / units[unit].ns);
    add(line, ".");
    add_number(line, ns % units[unit].ns / (units[unit].ns / 10));
    add(line, units[unit].name);
}

/* Labels come from kernels' sources and callers: control characters would break the lines. */
static void clean(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
    }
}

static void add_location(struct line *line, const drupe_trace_record *record)
{
    char location[96];
    drupe_trace_place(record->site, record->cell, location, sizeof location);
    if (!location[0]) return;
    add(line, ", ");
    add(line, location);
}

static void add_size(struct line *line, const drupe_trace_record *record)
{
    if (record->items) {
        add(line, ", ");
        add_number(line, record->items);
        add(line, " work-items");
    }
    if (!record->bytes) return;
    add(line, ", ");
    add_number(line, record->bytes);
    add(line, " bytes");
}

static uint64_t since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

static void write_record(struct line *line, drupe_trace_record *record, uint64_t now)
{
    clean(record->label);
    add(line, "#");
    add_number(line, record->id);
    add(line, record->kind == DRUPE_WORK_KERNEL ? " kernel '" : " '");
    add(line, record->label);
    add(line, "' on ");
    add(line, record->device[0] ? record->device : "a device");
    add(line, " (queue ");
    add_number(line, record->queue);
    add(line, ")");
    add_location(line, record);
    add_size(line, record);
    add(line, ": submitted ");
    add_time(line, since(now, record->submitted_ns));
    add(line, " ago, ");
    if (record->status == DRUPE_TRACE_PENDING) {
        add(line, "not known to be over");
    } else {
        add(line, drupe_trace_status_name((drupe_trace_status)record->status));
        add(line, " when looked at ");
        add_time(line, since(now, record->seen_ns));
        add(line, " ago");
    }
    line->text[line->size++] = '\n';
}

/* Latest first, from the end of the text: what does not fit is what is older. */
size_t drupe_trace_text(char *text, size_t size, size_t count)
{
    uint64_t last = drupe_trace_latest(), now = drupe_now_ns();
    size_t start = size, found = 0;
    for (uint64_t id = last; id > 0 && found < count && last - id < DRUPE_TRACE_RECORDS; id--) {
        drupe_trace_record record;
        struct line line = {.size = 0};
        if (!drupe_trace_one(id, &record)) continue;
        write_record(&line, &record, now);
        if (line.size > start) break;
        start -= line.size;
        memcpy(text + start, line.text, line.size);
        found++;
    }
    memmove(text, text + start, size - start);
    return size - start;
}
