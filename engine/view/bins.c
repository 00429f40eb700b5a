/* The columns of a timeline. However many spans there are, a row of a picture has as many columns as it has:
 * each says how much of its time had work, and whose most of it was. */
#include "bins.h"
#include <stdlib.h>

static double bin_share(uint64_t start, uint64_t end, uint64_t left, uint64_t right)
{
    uint64_t from = start > left ? start : left, to = end < right ? end : right;
    return to > from ? (double)(to - from) / (double)(right - left) : 0.0;
}

static uint64_t bin_edge(const drupe_bins *bins, size_t column)
{
    uint64_t length = bins->to_ns - bins->from_ns;
    return bins->from_ns + (uint64_t)((double)length * (double)column / (double)bins->columns);
}

static size_t bin_at(const drupe_bins *bins, uint64_t ns)
{
    if (ns <= bins->from_ns) return 0;
    double at = (double)(ns - bins->from_ns) / (double)(bins->to_ns - bins->from_ns) * (double)bins->columns;
    return at >= (double)bins->columns ? bins->columns - 1 : (size_t)at;
}

static void bin_add(drupe_bin *bin, const drupe_view_span *span, uint32_t index, double share)
{
    bool known = drupe_frame_span_ran(span);
    if (known) bin->busy += share;
    bin->count++;
    if (span->status == DRUPE_TRACE_FAILED) bin->failed = true;
    /* What is known comes before what is not. */
    if (bin->known && !known) return;
    if (known && !bin->known) bin->span = DRUPE_BIN_EMPTY;
    bin->known = known;
    /* Even the shortest is somebody's: a column with work never stays without an owner. */
    if (bin->span == DRUPE_BIN_EMPTY || share > bin->longest) {
        bin->span = index;
        bin->longest = share;
    }
}

static void bins_add(drupe_bins *bins, const drupe_view *view, uint32_t index)
{
    const drupe_view_span *span = &view->spans[index];
    uint64_t start = span->start_ns, end = drupe_frame_span_end(view, span);
    if (end < bins->from_ns || start > bins->to_ns) return;
    double length = (double)(end - start);
    double density = drupe_frame_span_ran(span) && span->count > 1 && (double)span->busy_ns < length
                         ? (double)span->busy_ns / length
                         : 1.0;
    size_t first = bin_at(bins, start), last = bin_at(bins, end);
    for (size_t column = first; column <= last; column++) {
        double share = bin_share(start, end, bin_edge(bins, column), bin_edge(bins, column + 1));
        if (share > 0.0 || column == first)
            bin_add(&bins->bins[span->lane * bins->columns + column], span, index, share * density);
    }
}

drupe_status drupe_bins_make(const drupe_view *view, uint64_t from_ns, uint64_t to_ns, size_t columns,
                             drupe_bins *bins)
{
    size_t count = view->nlanes * columns;
    *bins =
        (drupe_bins){.columns = columns, .from_ns = from_ns, .to_ns = to_ns > from_ns ? to_ns : from_ns + 1};
    bins->bins = calloc(count + 1, sizeof *bins->bins);
    if (bins->bins == NULL)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a picture of the timeline.");
    for (size_t i = 0; i < count; i++) bins->bins[i].span = DRUPE_BIN_EMPTY;
    for (size_t i = 0; i < view->nspans; i++) bins_add(bins, view, (uint32_t)i);
    for (size_t i = 0; i < count; i++)
        if (bins->bins[i].busy > 1.0) bins->bins[i].busy = 1.0;
    return DRUPE_OK;
}

void drupe_bins_clear(drupe_bins *bins)
{
    free(bins->bins);
    *bins = (drupe_bins){0};
}
