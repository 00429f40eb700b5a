/* Frames for terminals: aligned, in 60 to 240 columns, block elements for bars. */
#include "frame.h"
#include <string.h>

/* The label takes what the other columns leave. */
static size_t label_width(const drupe_frame *frame)
{
    size_t used = 0, longest = 12;
    for (size_t i = 0; i < DRUPE_TABLE_COLUMNS; i++)
        if (frame->columns >= drupe_table_columns[i].columns) used += drupe_table_columns[i].width + 1;
    for (size_t i = 0; i < frame->sums.nrows; i++) {
        size_t width = drupe_label_width(frame->sums.rows[i].label);
        if (width > longest) longest = width;
    }
    size_t room = frame->columns - used;
    return longest < room ? longest : room;
}

static void row_append(const drupe_frame *frame, const char *label, size_t width,
                       const char *const cells[DRUPE_TABLE_COLUMNS], drupe_text *text)
{
    drupe_label_text(text, label, width, true);
    for (size_t i = 0; i < DRUPE_TABLE_COLUMNS; i++)
        if (frame->columns >= drupe_table_columns[i].columns) {
            drupe_text_append(text, " ", 1);
            drupe_label_right(text, cells[i], drupe_table_columns[i].width, " ");
        }
    drupe_text_append(text, "\n", 1);
}

static void text_table(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *text)
{
    const drupe_frame_sums *sums = &frame->sums;
    size_t count = drupe_table_rows(sums, kind), width = label_width(frame);
    uint64_t total = drupe_table_total(sums);
    const char *cells[DRUPE_TABLE_COLUMNS];
    if (count == 0) return;
    for (size_t i = 0; i < DRUPE_TABLE_COLUMNS; i++) cells[i] = drupe_table_columns[i].name;
    row_append(frame, "label", width, cells, text);
    for (size_t i = 0; i < count; i++) {
        drupe_unit units[DRUPE_TABLE_COLUMNS];
        drupe_table_cells(&sums->rows[i], total, units);
        for (size_t j = 0; j < DRUPE_TABLE_COLUMNS; j++) cells[j] = units[j].text;
        row_append(frame, sums->rows[i].label, width, cells, text);
    }
    if (sums->nrows > count) {
        drupe_label_more(text, sums->nrows - count, "label");
        drupe_text_append(text, "\n", 1);
    }
}

/* Append lines whose parts end in `between`, or at an end of line, broken where they get too long. */
static void wrap(const drupe_frame *frame, const char *lines, const char *between, drupe_text *text)
{
    size_t used = 0, gap = drupe_label_width(between);
    while (*lines != '\0') {
        const char *end = strstr(lines, between), *stop = strchr(lines, '\n');
        size_t skip = strlen(between);
        if (stop != NULL && (end == NULL || stop < end)) end = stop, skip = 1;
        drupe_text part = {0};
        drupe_text_append(&part, lines, end != NULL ? (size_t)(end - lines) : strlen(lines));
        size_t width = drupe_label_width(drupe_text_get(&part));
        if (used > 0 && used + gap + width > frame->columns) {
            drupe_text_append(text, "\n  ", 3);
            used = 2;
        } else if (used > 0) {
            drupe_text_append(text, between, strlen(between));
            used += gap;
        }
        drupe_label_text(text, drupe_text_get(&part), frame->columns - used, false);
        used = end == stop ? 0 : used + width;
        if (end == stop) drupe_text_append(text, "\n", 1);
        drupe_frame_part_end(text, &part);
        lines = end != NULL ? end + skip : "";
    }
}

void drupe_frame_render_text(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *text)
{
    drupe_text line = {0};
    drupe_frame_line(frame, kind, &line);
    drupe_text_append(&line, "\n", 1);
    wrap(frame, drupe_text_get(&line), " \u00b7 ", text);
    drupe_frame_part_end(text, &line);
    if (kind == DRUPE_FRAME_DASHBOARD) drupe_frame_text_devices(frame, text);
    if (kind == DRUPE_FRAME_MEMORY) drupe_frame_text_memory(frame, text);
    if (kind == DRUPE_FRAME_EVENTS || kind == DRUPE_FRAME_DASHBOARD) drupe_frame_text_lanes(frame, text);
    if (kind != DRUPE_FRAME_MEMORY && kind != DRUPE_FRAME_FOOTER) {
        text_table(frame, kind, text);
        if (kind == DRUPE_FRAME_DASHBOARD) drupe_frame_text_history(frame, text);
        if (kind == DRUPE_FRAME_DASHBOARD) drupe_frame_failures(frame, &line);
        drupe_frame_notes(frame, &line);
        wrap(frame, drupe_text_get(&line), " ", text);
        drupe_frame_part_end(text, &line);
    }
    /* The last line ends where the text does: what shows it adds a line end. */
    if (text->length > 0 && text->data[text->length - 1] == '\n') text->data[--text->length] = '\0';
}
