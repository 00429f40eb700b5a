/* A timeline in block elements: the height is the share of the column's time with work. Shades stand where
 * work may have run, dots where it waits. */
#include "bins.h"
#include <string.h>

#define SUM_WIDTH   20u /* " 12 345    1.82 s" */
#define TITLE_MOST  30u
#define CHART_LEAST 16u

static size_t title_width(const drupe_view *view, drupe_text *text)
{
    size_t most = 0;
    for (size_t i = 0; i < view->nlanes; i++) {
        drupe_text title = {0};
        drupe_label_lane(&title, view, i);
        size_t width = drupe_label_width(drupe_text_get(&title));
        if (width > most) most = width;
        drupe_frame_part_end(text, &title);
    }
    return most < TITLE_MOST ? most : TITLE_MOST;
}

static void chart_append(const drupe_view *view, const drupe_bin *bins, size_t columns, drupe_text *text)
{
    for (size_t i = 0; i < columns; i++) {
        if (bins[i].span == DRUPE_BIN_EMPTY)
            drupe_text_append(text, " ", 1);
        else if (bins[i].failed)
            drupe_text_append(text, "!", 1);
        else if (!bins[i].known && view->spans[bins[i].span].state == DRUPE_VIEW_WAITING)
            drupe_text_append(text, "\u00b7", 2);
        else if (!bins[i].known)
            drupe_text_append(text, "\u2591", 3);
        else
            drupe_label_block(text, bins[i].busy);
    }
}

static void sum_append(const drupe_frame_lane *lane, drupe_text *text)
{
    drupe_label_right(text, drupe_unit_count(lane->count).text, 8, " ");
    drupe_label_right(text, drupe_frame_time(lane->busy_ns, lane->maybe_ns).text, SUM_WIDTH - 9, " ");
}

/* The cell whose work comes first in each column, named where it changes and there is room. */
static void cells_append(const drupe_frame *frame, const drupe_bins *bins, size_t title, drupe_text *text)
{
    const drupe_view *view = frame->view;
    uint32_t last = 0;
    size_t used = 0;
    drupe_label_text(text, "cell", title + 1, true);
    for (size_t column = 0; column < bins->columns; column++) {
        uint32_t cell = 0;
        for (size_t lane = 0; lane < view->nlanes && cell == 0; lane++) {
            uint32_t span = bins->bins[lane * bins->columns + column].span;
            if (span != DRUPE_BIN_EMPTY) cell = view->spans[span].cell;
        }
        if (cell == 0 || cell == last) continue;
        last = cell;
        drupe_unit name = drupe_label_cells(cell, cell);
        if (column < used || column + strlen(name.text) > bins->columns) continue;
        for (; used < column; used++) drupe_text_append(text, " ", 1);
        drupe_text_append(text, name.text, strlen(name.text));
        used += strlen(name.text);
    }
    drupe_text_append(text, "\n", 1);
}

static void axis_append(const drupe_bins *bins, bool window, size_t title, drupe_text *text)
{
    uint64_t length = bins->to_ns - bins->from_ns;
    drupe_unit middle = drupe_unit_time(length / 2), end = drupe_unit_time(length);
    size_t left = bins->columns / 2, room = bins->columns - left - drupe_label_width(middle.text);
    drupe_label_text(text, "", title + 1, true);
    if (window) {
        drupe_text_printf(text, "the last minute\n");
        return;
    }
    drupe_label_text(text, "0", left, true);
    drupe_label_text(text, middle.text, drupe_label_width(middle.text), false);
    drupe_label_right(text, end.text, room, " ");
    drupe_text_append(text, "\n", 1);
}

void drupe_frame_text_lanes(const drupe_frame *frame, drupe_text *text)
{
    const drupe_view *view = frame->view;
    size_t most = frame->columns - SUM_WIDTH - 2 - CHART_LEAST, title = title_width(view, text);
    if (title > most) title = most;
    size_t chart = frame->columns - title - SUM_WIDTH - 2;
    drupe_bins bins;
    if (view->nspans == 0) return;
    if (drupe_bins_make(view, frame->sums.from_ns, frame->sums.to_ns, chart, &bins) != DRUPE_OK) {
        text->failed = true;
        return;
    }
    for (size_t lane = 0; lane < view->nlanes; lane++) {
        drupe_text name = {0};
        if (frame->sums.lanes[lane].spans == 0 && view->lanes[lane].waiting == 0) continue;
        drupe_label_lane(&name, view, lane);
        drupe_label_text(text, drupe_text_get(&name), title, true);
        drupe_text_append(text, "\u2595", 3);
        chart_append(view, bins.bins + lane * chart, chart, text);
        drupe_text_append(text, "\u258f", 3);
        sum_append(&frame->sums.lanes[lane], text);
        drupe_text_append(text, "\n", 1);
        drupe_frame_part_end(text, &name);
    }
    cells_append(frame, &bins, title, text);
    axis_append(&bins, frame->sums.window, title, text);
    drupe_bins_clear(&bins);
}
