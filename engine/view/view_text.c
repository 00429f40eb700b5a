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
    if (sums->nrows > count)
        drupe_text_printf(text, "and %zu more label%s\n", sums->nrows - count,
                          sums->nrows - count == 1 ? "" : "s");
}

/* Long lines are broken between their parts. */
static void line_append(const drupe_frame *frame, const char *line, drupe_text *text)
{
    size_t used = 0;
    while (*line != '\0') {
        const char *end = strstr(line, " \u00b7 ");
        drupe_text part = {0};
        drupe_text_append(&part, line, end != NULL ? (size_t)(end - line) : strlen(line));
        size_t width = drupe_label_width(drupe_text_get(&part));
        if (used > 0 && used + 3 + width > frame->columns) {
            drupe_text_append(text, "\n  ", 3);
            used = 2;
        } else if (used > 0) {
            drupe_text_append(text, " \u00b7 ", 4);
            used += 3;
        }
        drupe_label_text(text, drupe_text_get(&part), frame->columns - used, false);
        used += width;
        drupe_frame_part_end(text, &part);
        line = end != NULL ? end + 4 : "";
    }
    drupe_text_append(text, "\n", 1);
}

/* Lines of words, broken where they get too long. */
static void words_append(const drupe_frame *frame, const char *words, drupe_text *text)
{
    size_t used = 0;
    while (*words != '\0') {
        size_t size = strcspn(words, " \n");
        if (used > 0 && used + 1 + size > frame->columns) {
            drupe_text_append(text, "\n  ", 3);
            used = 2;
        } else if (used > 0) {
            drupe_text_append(text, " ", 1);
            used++;
        }
        drupe_text_append(text, words, size);
        used += size;
        words += size;
        if (*words == '\n') {
            drupe_text_append(text, "\n", 1);
            used = 0;
        }
        words += *words != '\0';
    }
}

void drupe_frame_render_text(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *text)
{
    drupe_text line = {0};
    drupe_frame_line(frame, kind, &line);
    line_append(frame, drupe_text_get(&line), text);
    drupe_frame_part_end(text, &line);
    if (kind == DRUPE_FRAME_DASHBOARD) drupe_frame_text_devices(frame, text);
    if (kind == DRUPE_FRAME_MEMORY) drupe_frame_text_memory(frame, text);
    if (kind == DRUPE_FRAME_EVENTS || kind == DRUPE_FRAME_DASHBOARD) drupe_frame_text_lanes(frame, text);
    if (kind != DRUPE_FRAME_MEMORY && kind != DRUPE_FRAME_FOOTER) {
        text_table(frame, kind, text);
        if (kind == DRUPE_FRAME_DASHBOARD) drupe_frame_text_history(frame, text);
        if (kind == DRUPE_FRAME_DASHBOARD) drupe_frame_failures(frame, &line);
        drupe_frame_notes(frame, &line);
        words_append(frame, drupe_text_get(&line), text);
        drupe_frame_part_end(text, &line);
    }
    /* The last line ends where the text does: what shows it adds a line end. */
    if (text->length > 0 && text->data[text->length - 1] == '\n') text->data[--text->length] = '\0';
}
