/* A timeline of divs.
 *
 * A span that has a column to itself is drawn where it was; columns that share are drawn as runs of one cell,
 * as high as they were busy. When that gets too much for a notebook that is saved with it, it is drawn again
 * with half as many columns. */
#include "bins.h"
#include "html.h"
#include <string.h>

#define COLUMNS_MOST  320u
#define COLUMNS_LEAST 5u
#define SIZE_MOST     32000u /* bytes of bars */
#define LANES_MOST    16u
#define KEYS_MOST     12u

/* Steps of an eighth, as in text: runs join more often. */
static double bin_height(const drupe_bin *bin)
{
    int level = (int)(bin->busy * 8.0) + 1;
    return bin->failed || !bin->known || level > 7 ? 100.0 : 12.5 * level;
}

static double percent(const drupe_bins *bins, uint64_t ns)
{
    if (ns <= bins->from_ns) return 0.0;
    double at = 100.0 * (double)(ns - bins->from_ns) / (double)(bins->to_ns - bins->from_ns);
    return at > 100.0 ? 100.0 : at;
}

/* How long it took, or between which times it did. */
static void title_time(const drupe_frame *frame, const drupe_view_span *span, drupe_text *title)
{
    const uint64_t zero = frame->sums.from_ns;
    uint64_t start = span->start_ns > zero ? span->start_ns - zero : 0;
    uint64_t end = drupe_frame_span_end(frame->view, span);
    uint64_t length = span->count == 1 ? end - span->start_ns : span->busy_ns;
    drupe_unit from = drupe_unit_time(start), to = drupe_unit_time(end > zero ? end - zero : 0);
    switch ((drupe_view_state)span->state) {
    case DRUPE_VIEW_WAITING: drupe_text_printf(title, " \u00b7 waiting since %s", from.text); break;
    case DRUPE_VIEW_SUBMITTED:
        drupe_text_printf(title, " \u00b7 submitted at %s; it is not known whether it has started",
                          from.text);
        break;
    case DRUPE_VIEW_RUNNING:
        drupe_text_printf(title, " \u00b7 %s so far at %s", drupe_unit_time(length).text, from.text);
        break;
    default:
        if (span->exact)
            drupe_text_printf(title, " \u00b7 %s at %s", drupe_unit_time(length).text, from.text);
        else
            drupe_text_printf(title, " \u00b7 ran at some time between %s and %s", from.text, to.text);
    }
}

static void title_make(const drupe_frame *frame, const drupe_view_span *span, uint64_t others,
                       drupe_text *title)
{
    const drupe_view *view = frame->view;
    drupe_label_html(title, span->label, 32);
    if (span->count > 1) drupe_text_printf(title, " and %s more", drupe_unit_count(span->count - 1).text);
    if (span->cell != 0) drupe_text_printf(title, " \u00b7 cell [%u]", span->cell);
    title_time(frame, span, title);
    if (span->bytes > 0 && view->lanes[span->lane].kind == DRUPE_VIEW_COPIES) {
        drupe_text_printf(title, " \u00b7 %s", drupe_unit_bytes(span->bytes).text);
        if (drupe_frame_span_ran(span))
            drupe_text_printf(title, ", %s", drupe_unit_rate(span->bytes, span->busy_ns).text);
    }
    if (span->status >= DRUPE_TRACE_FAILED)
        drupe_text_printf(title, " \u00b7 %s", drupe_trace_status_name((drupe_trace_status)span->status));
    if (others > 0) drupe_text_printf(title, " \u00b7 +%s beside it", drupe_unit_count(others).text);
}

/* The columns from `first` on that are drawn as one; returns the first behind them. */
static size_t run_end(const drupe_view *view, const drupe_bin *bins, size_t columns, size_t first)
{
    const drupe_bin *start = &bins[first];
    size_t end = first + 1;
    bool alone = start->count == 1;
    for (; end < columns && bins[end].span != DRUPE_BIN_EMPTY; end++) {
        const drupe_bin *bin = &bins[end];
        if (bin->failed != start->failed || bin->known != start->known) break;
        if (!bin->known && view->spans[bin->span].state != view->spans[start->span].state) break;
        if (bin->span == start->span && bin->count == 1 && alone) continue;
        if (alone && bin->span != start->span) break;
        if (view->spans[bin->span].cell != view->spans[start->span].cell) break;
        if (bin_height(bin) != bin_height(start)) break;
        alone = false;
    }
    return end;
}

/* The next columns with work from `*first` on, or false. */
static bool run_next(const drupe_view *view, const drupe_bin *bins, size_t columns, size_t *first,
                     size_t *end)
{
    while (*first < columns && bins[*first].span == DRUPE_BIN_EMPTY) ++*first;
    if (*first == columns) return false;
    *end = run_end(view, bins, columns, *first);
    return true;
}

static void run_append(const drupe_frame *frame, const drupe_bins *bins, const drupe_bin *lane, size_t first,
                       size_t end, drupe_text *html)
{
    drupe_text title = {0};
    uint64_t count = 0;
    size_t best = first;
    for (size_t i = first; i < end; i++) {
        if (lane[i].count > count) count = lane[i].count;
        if (lane[i].longest > lane[best].longest) best = i;
    }
    const drupe_view_span *span = &frame->view->spans[lane[best].span];
    double scale = 100.0 / (double)bins->columns;
    drupe_html_bar bar = {.left = scale * (double)first,
                          .width = scale * (double)(end - first),
                          .height = bin_height(&lane[best])};
    if (count == 1 && span->count == 1) {
        bar.left = percent(bins, span->start_ns);
        bar.width = percent(bins, drupe_frame_span_end(frame->view, span)) - bar.left;
        bar.height = 100.0;
    }
    bar.colour = lane[first].failed ? DRUPE_HTML_RED : drupe_view_colour(span->cell);
    if (!lane[first].failed && !lane[first].known)
        bar.look = span->state == DRUPE_VIEW_WAITING ? DRUPE_HTML_PALE : DRUPE_HTML_HATCHED;
    title_make(frame, span, count - 1, &title);
    bar.title = drupe_text_get(&title);
    drupe_html_bar_add(html, &bar);
    drupe_frame_part_end(html, &title);
}

static void lane_append(const drupe_frame *frame, const drupe_bins *bins, size_t lane, drupe_text *html)
{
    const drupe_view *view = frame->view;
    const drupe_bin *row = bins->bins + lane * bins->columns;
    drupe_text name = {0};
    const drupe_frame_lane *sum = &frame->sums.lanes[lane];
    drupe_label_lane(&name, view, lane);
    drupe_html_open(html, "display:flex;align-items:center;height:20px");
    drupe_html_part(html,
                    "width:184px;margin-right:6px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis",
                    &name);
    drupe_html_track(html, view->lanes[lane].kind == DRUPE_VIEW_KERNELS ? 16 : 10);
    size_t first = 0, end = 0;
    for (; run_next(view, row, bins->columns, &first, &end); first = end)
        run_append(frame, bins, row, first, end, html);
    drupe_html_close(html);
    drupe_html_number(html, "width:56px;text-align:right;white-space:nowrap",
                      drupe_unit_count(sum->count).text, 6);
    drupe_html_number(html, "width:76px;text-align:right;white-space:nowrap",
                      drupe_frame_time(sum->busy_ns, sum->maybe_ns).text, 8);
    drupe_html_close(html);
}

/* false: too long, and fewer columns would make it shorter. */
static bool lanes_append(const drupe_frame *frame, size_t columns, drupe_text *html)
{
    drupe_bins bins;
    size_t start = html->length, shown = 0, left = 0;
    if (drupe_bins_make(frame->view, frame->sums.from_ns, frame->sums.to_ns, columns, &bins) != DRUPE_OK) {
        html->failed = true;
        return true;
    }
    bool least = columns <= COLUMNS_LEAST;
    for (size_t lane = 0; lane < frame->view->nlanes; lane++) {
        if (!least && html->length - start > SIZE_MOST) break;
        if (frame->sums.lanes[lane].spans == 0 && frame->view->lanes[lane].waiting == 0) continue;
        if (shown < LANES_MOST)
            lane_append(frame, &bins, lane, html);
        else
            left++;
        shown++;
    }
    drupe_bins_clear(&bins);
    if (left > 0) drupe_html_more(html, left, "lane");
    if (html->failed || least || html->length - start <= SIZE_MOST) return true;
    html->length = start;
    html->data[start] = '\0';
    return false;
}

static void axis_append(const drupe_frame *frame, drupe_text *html)
{
    uint64_t length = frame->sums.to_ns - frame->sums.from_ns;
    drupe_html_open(html, "display:flex;height:16px;opacity:0.75;font-size:11px");
    drupe_html_open(html, "width:190px");
    drupe_html_close(html);
    drupe_html_open(html, "flex-grow:1;display:flex;justify-content:space-between");
    bool window = frame->sums.window;
    drupe_html_text(html, "width:80px;white-space:nowrap", window ? "the last minute" : "0");
    drupe_html_text(html, "width:80px;text-align:center", window ? "" : drupe_unit_time(length / 2).text);
    drupe_html_text(html, "width:80px;text-align:right", window ? "" : drupe_unit_time(length).text);
    drupe_html_close(html);
    drupe_html_open(html, "width:132px");
    drupe_html_close(html);
    drupe_html_close(html);
}

/* The highest number of a cell below `limit` that spans, or with `memory` amounts in use, are drawn in; or 0.
 */
static uint32_t cell_before(const drupe_view *view, bool memory, uint32_t limit)
{
    uint32_t best = 0;
    for (size_t i = 0; i < view->nspans; i++)
        if (view->spans[i].cell > best && view->spans[i].cell < limit) best = view->spans[i].cell;
    for (size_t d = 0; memory && d < view->ndevices; d++) {
        for (size_t i = 0; i < view->devices[d].nsamples; i++) {
            const drupe_view_sample *sample = &view->devices[d].samples[i];
            if (drupe_sample_used(sample) > 0 && sample->cell > best && sample->cell < limit)
                best = sample->cell;
        }
    }
    return best;
}

void drupe_frame_html_keys(const drupe_frame *frame, bool memory, drupe_text *html)
{
    uint32_t cells[KEYS_MOST], before = UINT32_MAX;
    size_t count = 0;
    while (count < KEYS_MOST && (before = cell_before(frame->view, memory, before)) != 0)
        cells[count++] = before;
    if (count == 0) return;
    drupe_html_open(html, "display:flex;flex-wrap:wrap;min-height:17px;font-size:11px;margin-left:190px");
    if (count == KEYS_MOST && cell_before(frame->view, memory, before) != 0)
        drupe_html_text(html, "margin-right:12px;opacity:0.75", "earlier ones,");
    while (count-- > 0)
        drupe_html_key(html, drupe_view_colour(cells[count]),
                       drupe_label_cells(cells[count], cells[count]).text);
    drupe_html_close(html);
}

void drupe_frame_html_lanes(const drupe_frame *frame, drupe_text *html)
{
    size_t columns = COLUMNS_MOST;
    if (frame->view->nspans == 0) return;
    drupe_html_open(html, "margin-top:4px");
    while (!lanes_append(frame, columns, html)) columns /= 2;
    axis_append(frame, html);
    drupe_html_close(html);
}
