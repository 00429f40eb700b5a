/* Frames for notebooks. Heights are fixed, so that nothing moves when one frame takes the place of another.
 */
#include "html.h"
#include "view_memory.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROW_HEIGHT 18u

/* A frame that will be replaced tells when it was made: where nobody replaces it any more, such as in a
 * notebook that was saved meanwhile, it is not now. */
static void html_live(const drupe_view *view, drupe_text *html)
{
    time_t seconds = (time_t)(view->unix_ns / 1000000000);
    struct tm local;
    char clock[16] = "";
    if (localtime_r(&seconds, &local) != NULL) (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
    drupe_html_text(html, "opacity:0.6;padding-left:12px;white-space:nowrap", clock);
    drupe_html_text(html, "opacity:0.6;padding-left:6px", "live");
}

static void html_head(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *html)
{
    drupe_text line = {0};
    drupe_frame_line(frame, kind, &line);
    drupe_html_open(html, "display:flex;min-height:20px");
    drupe_html_part(
        html, kind == DRUPE_FRAME_FOOTER ? "flex-grow:1;opacity:0.75" : "flex-grow:1;font-weight:600", &line);
    if (frame->style->live) html_live(frame->view, html);
    drupe_html_close(html);
}

/* --- The table -------------------------------------------------------------------------------------------
 */

static void table_cell(drupe_text *html, size_t column, const char *text)
{
    char style[64];
    snprintf(style, sizeof style, "width:%upx;text-align:right;white-space:nowrap",
             drupe_table_columns[column].pixels);
    drupe_html_text(html, style, text);
}

static void table_head(drupe_text *html)
{
    drupe_text_printf(html, "<div style=\"display:flex;height:%upx;opacity:0.75\">", ROW_HEIGHT);
    drupe_html_text(html, "flex-grow:1;min-width:190px", "label");
    for (size_t i = 0; i < DRUPE_TABLE_COLUMNS; i++) table_cell(html, i, drupe_table_columns[i].name);
    drupe_html_close(html);
}

/* The share as a bar, so that the eye finds the big ones. */
static void table_share(const drupe_frame_row *row, uint64_t total, drupe_text *html)
{
    double share = total > 0 ? 100.0 * (double)row->busy_ns / (double)total : 0.0;
    drupe_html_bar bar = {.width = share > 100.0 ? 100.0 : share, .height = 100.0, .colour = DRUPE_HTML_USE};
    drupe_html_track(html, 8);
    if (share > 0.0) drupe_html_bar_add(html, &bar);
    drupe_html_close(html);
}

static void table_label(const drupe_frame_row *row, drupe_text *html)
{
    drupe_text_printf(html, "<div style=\"display:flex;width:184px;margin-right:6px;white-space:nowrap\">"
                            "<div style=\"overflow:hidden;text-overflow:ellipsis\" title=\"");
    drupe_label_html(html, row->label, 56);
    drupe_text_printf(html, "\">");
    drupe_label_html(html, row->label, 56);
    drupe_html_close(html);
    if (row->failed > 0)
        drupe_text_printf(html, "<div style=\"color:#%06x;margin-left:6px\">%s failed</div>",
                          (unsigned)DRUPE_HTML_RED, drupe_unit_count(row->failed).text);
    drupe_html_close(html);
}

static void table_row(const drupe_frame_row *row, uint64_t total, drupe_text *html)
{
    drupe_unit cells[DRUPE_TABLE_COLUMNS];
    drupe_table_cells(row, total, cells);
    drupe_text_printf(
        html, "<div style=\"display:flex;align-items:center;height:%upx;border-top:1px solid #80808040\">",
        ROW_HEIGHT);
    table_label(row, html);
    table_share(row, total, html);
    for (size_t i = 0; i < DRUPE_TABLE_COLUMNS; i++) table_cell(html, i, cells[i].text);
    drupe_html_close(html);
}

static void html_table(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *html)
{
    const drupe_frame_sums *sums = &frame->sums;
    size_t count = drupe_table_rows(sums, kind);
    uint64_t total = drupe_table_total(sums);
    unsigned rows = frame->style->live ? DRUPE_TABLE_BUSIEST + 1 : 0;
    drupe_text_printf(html, "<div style=\"margin-top:6px;min-height:%upx\">", rows * (ROW_HEIGHT + 1));
    if (count > 0) table_head(html);
    for (size_t i = 0; i < count; i++) table_row(&sums->rows[i], total, html);
    if (sums->nrows > count) drupe_html_more(html, sums->nrows - count, "label");
    drupe_html_close(html);
}

static void html_lines(const char *style, drupe_text *lines, drupe_text *html)
{
    for (char *line = lines->data; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        drupe_html_text(html, style, line);
        line = end != NULL ? end + 1 : NULL;
    }
    drupe_frame_part_end(html, lines);
}

static void html_ends(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *html)
{
    drupe_text lines = {0};
    if (kind == DRUPE_FRAME_DASHBOARD) {
        drupe_frame_html_history(frame, html);
        drupe_frame_failures(frame, &lines);
        html_lines("color:#db2c2b", &lines, html);
    }
    drupe_frame_notes(frame, &lines);
    html_lines("opacity:0.75;font-size:11px", &lines, html);
}

void drupe_frame_render_html(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *html)
{
    drupe_html_open(html, "font-size:12px;line-height:17px;max-width:900px");
    html_head(frame, kind, html);
    if (kind == DRUPE_FRAME_DASHBOARD) drupe_frame_html_devices(frame, html);
    if (kind == DRUPE_FRAME_MEMORY) drupe_frame_html_memory(frame, html);
    if (kind == DRUPE_FRAME_EVENTS || kind == DRUPE_FRAME_DASHBOARD) drupe_frame_html_lanes(frame, html);
    if (kind != DRUPE_FRAME_TABLE && kind != DRUPE_FRAME_FOOTER)
        drupe_frame_html_keys(frame, kind != DRUPE_FRAME_EVENTS, html);
    if (kind != DRUPE_FRAME_MEMORY && kind != DRUPE_FRAME_FOOTER) {
        html_table(frame, kind, html);
        html_ends(frame, kind, html);
    }
    drupe_html_close(html);
}
