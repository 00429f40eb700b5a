/* What the frames of a view share: numbers and labels for people, sums over spans, columns of a timeline.
 *
 * Text and HTML are two renderings of the same sums (drupe_frame_sums), so that they always say the same. */
#ifndef DRUPE_VIEW_FRAME_H
#define DRUPE_VIEW_FRAME_H

#include "base/base.h"
#include "view/view_room.h"

/* --- label.c: text of others -----------------------------------------------------------------------------
 */

/* Append at most `width` columns of `label`, padded to that many with spaces if `pad`. What is no UTF-8 or
 * would steer a terminal becomes U+FFFD; what is cut ends in an ellipsis. */
void drupe_label_text(drupe_text *text, const char *label, size_t width, bool pad);
/* The same for text and attributes of HTML, without padding. */
void drupe_label_html(drupe_text *text, const char *label, size_t width);
/* The columns that a terminal uses for UTF-8 text that is well-formed. */
size_t drupe_label_width(const char *utf8);
/* Append right-aligned in `width` columns; `space` is " ", or U+2007 in HTML, where digits keep their place.
 */
void drupe_label_right(drupe_text *text, const char *utf8, size_t width, const char *space);
/* "[7]", "[3-7]" or "-"; a number stands for a cell as In[7] does. */
drupe_unit drupe_label_cells(uint32_t first, uint32_t last);
/* A device for people: "GPU" when it is the view's only one of that type, else its filter. */
void drupe_label_device(drupe_text *text, const drupe_view *view, const char *filter);
/* "GPU queue 3 kernels" */
void drupe_label_lane(drupe_text *text, const drupe_view *view, size_t lane);
/* A column of text that is so full, 0 to 1. */
void drupe_label_block(drupe_text *text, double share);
/* "and 3 more labels", without a line end. */
void drupe_label_more(drupe_text *text, size_t more, const char *what);

/* --- sums.c ----------------------------------------------------------------------------------------------
 */

/* One label in one class. */
typedef struct drupe_frame_row {
    const char *label; /* borrowed from the view */
    drupe_view_class kind;
    uint32_t first_cell, last_cell;
    uint64_t count, busy_ns, bytes, failed;
    uint64_t untimed, maybe_ns; /* submissions that are over and have no times; the sum of their intervals */
} drupe_frame_row;

typedef struct drupe_frame_busy {
    const char *device; /* filter; borrowed */
    uint64_t busy_ns;   /* with at least one span, as far as that is known */
    uint64_t maybe_ns;  /* with spans of which nobody knows when in it they ran */
} drupe_frame_busy;

/* The spans of one lane. */
typedef struct drupe_frame_lane {
    uint64_t spans, count, busy_ns, maybe_ns;
    uint64_t covered_ns; /* by intervals, up to this time */
} drupe_frame_lane;

#define DRUPE_FRAME_DEVICES 16u
#define DRUPE_FRAME_RATED   (UINT64_C(64) << 10) /* smaller copies have no rate worth telling */

/* Over 20 members with those of the cell: sums.c writes them all, and a picture reads what it shows. */
typedef struct drupe_frame_sums {
    uint64_t from_ns, to_ns; /* the axis; to_ns > from_ns */
    bool window;             /* it is the last DRUPE_FRAME_WINDOW_NS alone */
    uint64_t
        wall_ns; /* what shares are of: the cell's code and its work where one cell is shown, else the axis */
    drupe_view_cell all; /* how much work: the cells, or the spans of a view without cells, added up */
    uint64_t merged, merged_into; /* submissions that share a span, and those spans */
    uint64_t inexact;             /* spans that are intervals */
    drupe_frame_busy busy[DRUPE_FRAME_DEVICES];
    size_t nbusy;
    drupe_frame_lane lanes[DRUPE_LANES_MOST];
    drupe_frame_row *rows; /* the longest first; of frames with a table */
    size_t nrows;
} drupe_frame_sums;

/* How long a live dashboard looks back. */
#define DRUPE_FRAME_WINDOW_NS UINT64_C(60000000000)

/* What a frame of this kind needs. Zeroed = empty; give it to drupe_frame_sums_clear(). */
drupe_status drupe_frame_sums_make(const drupe_view *view, drupe_frame_kind kind, bool live,
                                   drupe_frame_sums *sums) DRUPE_MUST_CHECK;
void drupe_frame_sums_clear(drupe_frame_sums *sums);
/* "61 %", "at most 61 %" or "12 % to 61 %": what is busy, and what may be. Of intervals `busy` knows nothing.
 */
void drupe_frame_share_text(double busy, double maybe, double whole, drupe_text *text);
/* The same of any numbers, `least` and `most`, of which one counts where only `busy` or only `maybe` is true.
 */
void drupe_frame_range_text(drupe_unit least, drupe_unit most, bool busy, bool maybe, drupe_text *text);
/* The same of 1 in six columns: "61 %" or "\u226461 %". */
drupe_unit drupe_frame_most_share(double busy, double maybe);
/* A number behind a sign, such as "\u2264 ". */
drupe_unit drupe_frame_signed(const char *sign, drupe_unit number);
/* "1.82 s", or "\u2264 1.82 s" where a part of it is only an interval. */
drupe_unit drupe_frame_time(uint64_t busy_ns, uint64_t maybe_ns);
/* Until when a span is drawn. */
static inline uint64_t drupe_frame_span_end(const drupe_view *view, const drupe_view_span *span)
{
    uint64_t end = span->end_ns != 0                   ? span->end_ns
                   : span->state == DRUPE_VIEW_RUNNING ? span->start_ns + span->busy_ns
                                                       : view->now_ns;
    return end < span->start_ns ? span->start_ns : end;
}
/* It is known that it ran between its times, or runs; else it lies there, or waits. */
static inline bool drupe_frame_span_ran(const drupe_view_span *span)
{
    return span->exact && span->state <= DRUPE_VIEW_RUNNING;
}

/* " · 34 kernels · 512 MiB copied at 21.3 GB/s · 3 host functions · 2 waiting · 1 failed": headline.c. */
void drupe_frame_work(const drupe_view_cell *cell, bool rate, bool host, drupe_text *text);

/* --- table.c: one row per label --------------------------------------------------------------------------
 */

#define DRUPE_TABLE_COLUMNS 6u
#define DRUPE_TABLE_BUSIEST 5u /* rows under a timeline */
#define DRUPE_TABLE_MOST    40u

typedef struct drupe_table_column {
    const char *name;
    uint32_t width;   /* columns of text */
    uint32_t columns; /* shown from so many columns of text on */
    uint32_t pixels;  /* wide in HTML */
} drupe_table_column;

extern const drupe_table_column drupe_table_columns[DRUPE_TABLE_COLUMNS];
/* The device time that shares are of; 0: not all of it is known. */
uint64_t drupe_table_total(const drupe_frame_sums *sums);
void drupe_table_cells(const drupe_frame_row *row, uint64_t total, drupe_unit cells[DRUPE_TABLE_COLUMNS]);
/* How many rows are shown. */
size_t drupe_table_rows(const drupe_frame_sums *sums, drupe_frame_kind kind);

/* --- The two renderings ----------------------------------------------------------------------------------
 */

typedef struct drupe_frame {
    const drupe_view *view;
    const drupe_frame_style *style;
    drupe_frame_sums sums;
    uint32_t columns;
} drupe_frame;

/* Forget a part that was appended to the whole, which fails with it. */
static inline void drupe_frame_part_end(drupe_text *whole, drupe_text *part)
{
    whole->failed |= part->failed;
    drupe_text_clear(part);
}

/* How busy a device of the view is, and may be beside that: in the last second while it is live, else in the
 * time that is shown. */
double drupe_frame_share(const drupe_frame *frame, const drupe_view_device *device, double *maybe);

/* Append the frame; the text is never empty afterwards. */
void drupe_frame_render_text(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *text);
void drupe_frame_render_html(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *text);
/* Parts of them. */
void drupe_frame_text_lanes(const drupe_frame *frame, drupe_text *text);   /* text_lanes.c */
void drupe_frame_text_memory(const drupe_frame *frame, drupe_text *text);  /* text_memory.c */
void drupe_frame_text_devices(const drupe_frame *frame, drupe_text *text); /* text_memory.c */
void drupe_frame_text_history(const drupe_frame *frame, drupe_text *text); /* text_memory.c */
void drupe_frame_html_lanes(const drupe_frame *frame, drupe_text *html);   /* html_lanes.c */
/* The hues of the cells, the latest, with `memory` also of those that its amounts are drawn in: html_lanes.c.
 */
void drupe_frame_html_keys(const drupe_frame *frame, bool memory, drupe_text *html);
void drupe_frame_html_memory(const drupe_frame *frame, drupe_text *html);  /* html_memory.c */
void drupe_frame_html_devices(const drupe_frame *frame, drupe_text *html); /* html_memory.c */
void drupe_frame_html_history(const drupe_frame *frame, drupe_text *html); /* html_memory.c */
/* What a reader must know not to be misled, one line each, or nothing: headline.c. */
void drupe_frame_notes(const drupe_frame *frame, drupe_text *text);
/* The work that failed last, one line each, or nothing: headline.c. */
void drupe_frame_failures(const drupe_frame *frame, drupe_text *text);
/* Lines of plain text that both forms have: headline.c, footer.c. */
void drupe_frame_line(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *text);
void drupe_frame_footer(const drupe_frame *frame, drupe_text *text);

#endif
