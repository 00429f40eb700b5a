/* Sums over the spans of a view: the axis, device time per device, and one row per label. */
#include "frame.h"
#include "view/history.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_STEP_NS UINT64_C(10000000000) /* a window that moved at every look would blur */

/* --- The axis --------------------------------------------------------------------------------------------
 */

static void axis_of_spans(const drupe_view *view, uint64_t *from, uint64_t *to)
{
    *from = UINT64_MAX;
    *to = 0;
    for (size_t i = 0; i < view->nspans; i++) {
        uint64_t end = drupe_frame_span_end(view, &view->spans[i]);
        if (view->spans[i].start_ns < *from) *from = view->spans[i].start_ns;
        if (end > *to) *to = end;
    }
}

static void sums_axis(const drupe_view *view, bool live, bool window, drupe_frame_sums *sums)
{
    uint64_t from = 0, to = 0;
    const drupe_view_cell *cell = view->ncells == 1 ? view->cells : NULL;
    axis_of_spans(view, &from, &to);
    if (cell != NULL && cell->began_ns != 0) {
        uint64_t ended = cell->ended_ns != 0 ? cell->ended_ns : cell->running ? view->now_ns : 0;
        if (cell->began_ns < from) from = cell->began_ns;
        uint64_t over = ended > to ? ended : to;
        if (!live) to = over;
        /* Work goes on after the code that has submitted it. */
        sums->wall_ns = ended > cell->began_ns ? over - cell->began_ns : 0;
    }
    if (from >= to) {
        from = view->from_ns;
        to = view->to_ns > from ? view->to_ns : from + 1;
    }
    if (sums->wall_ns == 0) sums->wall_ns = to - from;
    sums->window = live && window && to - from > DRUPE_FRAME_WINDOW_NS;
    if (sums->window) {
        to = (to + WINDOW_STEP_NS - 1) / WINDOW_STEP_NS * WINDOW_STEP_NS;
        from = to - DRUPE_FRAME_WINDOW_NS;
    } else if (live) {
        to = from + drupe_unit_round(to - from);
    }
    sums->from_ns = from;
    sums->to_ns = to;
}

/* --- Device time -----------------------------------------------------------------------------------------
 */

/* A change of how busy a device is: a span that stands for several submissions was busy a part of its time
 * only, and is taken to be so evenly. */
typedef struct edge {
    uint64_t ns;
    double share; /* negative where it ends */
} edge;

static int edge_compare(const void *a, const void *b)
{
    const edge *left = a, *right = b;
    return left->ns < right->ns ? -1 : left->ns > right->ns;
}

/* Of spans that ran at known times, or of the others. */
static size_t edges_of(const drupe_view *view, const char *device, bool known, edge *edges)
{
    size_t count = 0;
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        const drupe_view_lane *lane = &view->lanes[span->lane];
        uint64_t end = drupe_frame_span_end(view, span);
        bool waits = span->state == DRUPE_VIEW_WAITING || drupe_frame_span_ran(span) != known;
        if (waits || strcmp(lane->device, device) != 0 || end == span->start_ns) continue;
        if (!drupe_class_occupies(device, (int)lane->kind)) continue;
        double length = (double)(end - span->start_ns);
        double share =
            known && span->count > 1 && (double)span->busy_ns < length ? (double)span->busy_ns / length : 1;
        edges[count++] = (edge){span->start_ns, share};
        edges[count++] = (edge){end, -share};
    }
    qsort(edges, count, sizeof *edges, edge_compare);
    return count;
}

/* Time with work: shares that overlap add up to one at most. */
static uint64_t edges_busy(const edge *edges, size_t count)
{
    double share = 0.0, busy = 0.0;
    for (size_t i = 0; i + 1 < count; i++) {
        share += edges[i].share;
        double now = share > 1.0 ? 1.0 : share < 1e-9 ? 0.0 : share;
        busy += now * (double)(edges[i + 1].ns - edges[i].ns);
    }
    return (uint64_t)(busy + 0.5);
}

/* Whether the spans themselves are shown. */
static bool drawn(drupe_frame_kind kind)
{
    return kind != DRUPE_FRAME_MEMORY && kind != DRUPE_FRAME_FOOTER;
}

static drupe_status sums_busy(const drupe_view *view, drupe_frame_kind kind, drupe_frame_sums *sums)
{
    edge *edges = malloc((2 * view->nspans + 1) * sizeof *edges);
    if (edges == NULL) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a picture of the timeline.");
    for (size_t i = 0; i < view->nlanes && sums->nbusy < DRUPE_FRAME_DEVICES; i++) {
        const char *device = view->lanes[i].device;
        if (sums->nbusy > 0 && strcmp(sums->busy[sums->nbusy - 1].device, device) == 0) continue;
        drupe_frame_busy *busy = &sums->busy[sums->nbusy++];
        *busy = (drupe_frame_busy){.device = device};
        if (!drawn(kind)) continue;
        busy->busy_ns = edges_busy(edges, edges_of(view, device, true, edges));
        busy->maybe_ns = edges_busy(edges, edges_of(view, device, false, edges));
    }
    free(edges);
    /* What the recorder counted is exact, and merged spans are not. */
    if (view->ncells == 1 && sums->nbusy == 1 && view->cells->waiting == 0) {
        sums->busy[0].busy_ns = view->cells->busy_ns;
        sums->busy[0].maybe_ns = view->cells->maybe_ns;
    }
    return DRUPE_OK;
}

/* The time of a device that did nothing is 0. */
static drupe_frame_busy busy_of(const drupe_frame_sums *sums, const char *device)
{
    for (size_t i = 0; i < sums->nbusy; i++)
        if (strcmp(sums->busy[i].device, device) == 0) return sums->busy[i];
    return (drupe_frame_busy){.device = device};
}

double drupe_frame_share(const drupe_frame *frame, const drupe_view_device *device, double *maybe)
{
    *maybe = device->maybe;
    if (frame->style->live) return device->busy;
    drupe_frame_busy busy = busy_of(&frame->sums, device->use.filter);
    double wall = (double)frame->sums.wall_ns, share = (double)busy.busy_ns / wall;
    if (share > 1.0) share = 1.0;
    *maybe = (double)busy.maybe_ns / wall;
    if (*maybe > 1.0 - share) *maybe = 1.0 - share;
    return share;
}

void drupe_frame_share_text(double busy, double maybe, double whole, drupe_text *text)
{
    double most = busy + maybe > whole ? whole : busy + maybe;
    drupe_frame_range_text(drupe_unit_share(busy, whole), drupe_unit_share(most, whole), busy > 0.0,
                           maybe > 0.0, text);
}

void drupe_frame_range_text(drupe_unit least, drupe_unit most, bool busy, bool maybe, drupe_text *text)
{
    if (!maybe)
        drupe_text_printf(text, "%s", least.text);
    else if (!busy)
        drupe_text_printf(text, "at most %s", most.text);
    else
        drupe_text_printf(text, "%s to %s", least.text, most.text);
}

drupe_unit drupe_frame_signed(const char *sign, drupe_unit number)
{
    drupe_unit whole;
    snprintf(whole.text, sizeof whole.text, "%s%.16s", sign, number.text);
    return whole;
}

drupe_unit drupe_frame_most_share(double busy, double maybe)
{
    drupe_unit share = drupe_unit_share(busy + maybe > 1.0 ? 1.0 : busy + maybe, 1.0);
    bool below = share.text[0] == '<'; /* which is a most already */
    return maybe > 0.0 && !below ? drupe_frame_signed("\u2264", share) : share;
}

drupe_unit drupe_frame_time(uint64_t busy_ns, uint64_t maybe_ns)
{
    drupe_unit time = drupe_unit_time(busy_ns + maybe_ns);
    return maybe_ns > 0 ? drupe_frame_signed("\u2264 ", time) : time;
}

/* --- Rows ------------------------------------------------------------------------------------------------
 */

static void row_add(drupe_frame_row *row, const drupe_view_span *span)
{
    bool ran = !drupe_never_ran(span->status);
    if (row->count == 0 || span->cell < row->first_cell) row->first_cell = span->cell;
    if (span->cell > row->last_cell) row->last_cell = span->cell;
    row->count += span->count;
    if (ran) row->busy_ns += span->busy_ns;
    if (ran && !span->exact && span->state == DRUPE_VIEW_OVER) {
        row->untimed += span->count;
        row->maybe_ns += span->end_ns - span->start_ns;
    }
    row->bytes += span->bytes;
    if (span->status == DRUPE_TRACE_FAILED) row->failed++;
}

static drupe_frame_row *row_find(drupe_map *map, drupe_frame_sums *sums, const drupe_view_span *span,
                                 drupe_view_class kind)
{
    char key[sizeof span->label + 1];
    size_t length = strnlen(span->label, sizeof span->label);
    key[0] = (char)kind;
    memcpy(key + 1, span->label, length);
    drupe_frame_row *row = drupe_map_get(map, key, length + 1);
    if (row != NULL) return row;
    row = &sums->rows[sums->nrows];
    if (drupe_map_put(map, key, length + 1, row, NULL) != DRUPE_OK) return NULL;
    *row = (drupe_frame_row){.label = span->label, .kind = kind};
    sums->nrows++;
    return row;
}

static int row_compare(const void *a, const void *b)
{
    const drupe_frame_row *left = a, *right = b;
    uint64_t most = left->busy_ns + left->maybe_ns, other = right->busy_ns + right->maybe_ns;
    if (most != other) return most < other ? 1 : -1;
    if (left->kind != right->kind) return left->kind < right->kind ? -1 : 1;
    return strcmp(left->label, right->label);
}

static drupe_status sums_rows(const drupe_view *view, drupe_frame_sums *sums)
{
    drupe_map map = {0};
    drupe_status status = DRUPE_OK;
    if (view->nspans == 0) return DRUPE_OK;
    sums->rows = malloc(view->nspans * sizeof *sums->rows);
    if (sums->rows == NULL) status = drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a table of labels.");
    for (size_t i = 0; status == DRUPE_OK && i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        drupe_frame_row *row = row_find(&map, sums, span, view->lanes[span->lane].kind);
        if (row == NULL)
            status = DRUPE_E_NO_MEMORY;
        else
            row_add(row, span);
    }
    drupe_map_clear(&map);
    if (status == DRUPE_OK) qsort(sums->rows, sums->nrows, sizeof *sums->rows, row_compare);
    return status;
}

/* --- Counts ----------------------------------------------------------------------------------------------
 */

static void counts_of_cells(const drupe_view *view, drupe_view_cell *all)
{
    for (size_t i = 0; i < view->ncells; i++) {
        const drupe_view_cell *cell = &view->cells[i];
        for (int kind = 0; kind < DRUPE_VIEW_CLASS_COUNT; kind++) {
            all->count[kind] += cell->count[kind];
            all->bytes[kind] += cell->bytes[kind];
            all->class_ns[kind] += cell->class_ns[kind];
            all->untimed[kind] += cell->untimed[kind];
        }
        for (int state = 0; state < DRUPE_VIEW_STATE_COUNT; state++) all->open[state] += cell->open[state];
        all->waiting += cell->waiting;
        all->failed += cell->failed;
        all->skipped += cell->skipped;
        all->cancelled += cell->cancelled;
        all->missed += cell->missed;
    }
}

/* Where the cells are forgotten, or the view has only spans. */
static void count_span(const drupe_view_span *span, drupe_view_class kind, drupe_view_cell *all)
{
    all->count[kind] += span->count;
    all->bytes[kind] += span->bytes;
    all->class_ns[kind] += span->busy_ns;
    all->untimed[kind] += !span->exact && span->state == DRUPE_VIEW_OVER ? span->count : 0;
    all->open[span->state] += span->count;
    all->waiting += span->end_ns == 0;
    all->failed += span->status == DRUPE_TRACE_FAILED;
    all->skipped += span->status == DRUPE_TRACE_SKIPPED;
    all->cancelled += span->status == DRUPE_TRACE_CANCELLED;
}

static void counts_of_spans(const drupe_view *view, drupe_frame_sums *sums)
{
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        if (span->count > 1) sums->merged += span->count;
        if (span->count > 1) sums->merged_into++;
        if (!span->exact) sums->inexact++;
        if (view->ncells == 0) count_span(span, view->lanes[span->lane].kind, &sums->all);
    }
}

static void sums_lanes(const drupe_view *view, drupe_frame_sums *sums)
{
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        drupe_frame_lane *lane = &sums->lanes[span->lane];
        lane->spans++;
        lane->count += span->count;
        lane->busy_ns += span->busy_ns;
        if (span->exact) continue;
        /* They stand by their start. */
        uint64_t end = drupe_frame_span_end(view, span);
        uint64_t from = span->start_ns > lane->covered_ns ? span->start_ns : lane->covered_ns;
        if (end > from) lane->maybe_ns += end - from;
        if (end > lane->covered_ns) lane->covered_ns = end;
    }
}

drupe_status drupe_frame_sums_make(const drupe_view *view, drupe_frame_kind kind, bool live,
                                   drupe_frame_sums *sums)
{
    *sums = (drupe_frame_sums){0};
    sums_axis(view, live, kind == DRUPE_FRAME_DASHBOARD, sums);
    counts_of_cells(view, &sums->all);
    counts_of_spans(view, sums);
    sums_lanes(view, sums);
    drupe_status status = sums_busy(view, kind, sums);
    if (status == DRUPE_OK && drawn(kind)) status = sums_rows(view, sums);
    if (status != DRUPE_OK) drupe_frame_sums_clear(sums);
    return status;
}

void drupe_frame_sums_clear(drupe_frame_sums *sums)
{
    free(sums->rows);
    *sums = (drupe_frame_sums){0};
}
