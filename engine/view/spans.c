/* The store of spans.
 *
 * When it is full, neighbours of one lane and cell are merged, first those that are short, until half of it
 * is free. The length that this took is kept as the grain: from then on work of that size is added to the
 * span before it at once, so that a storm of submissions does not fill the store again and again. A new cell
 * begins with the finest grain. */
#include "view/history.h"
#include <string.h>

#define GRAIN_FIRST 1000u /* ns */

static uint32_t *last_of(drupe_history *history, uint32_t lane)
{
    return &history->lines[lane / DRUPE_VIEW_CLASS_COUNT].last[lane % DRUPE_VIEW_CLASS_COUNT];
}

static int badness(uint8_t status)
{
    static const int8_t rank[DRUPE_TRACE_STATUS_COUNT] = {
        [DRUPE_TRACE_COMPLETE] = 0, [DRUPE_TRACE_PASSED] = 1,  [DRUPE_TRACE_UNKNOWN] = 2,
        [DRUPE_TRACE_PENDING] = 3,  [DRUPE_TRACE_SKIPPED] = 4, [DRUPE_TRACE_CANCELLED] = 5,
        [DRUPE_TRACE_FAILED] = 6,
    };
    return status < DRUPE_TRACE_STATUS_COUNT ? rank[status] : 0;
}

/* What failed stays a span of its own as long as there is room. What is known exactly is never mixed with
 * what is not. */
static bool alike(const drupe_view_span *a, const drupe_view_span *b)
{
    return a->cell == b->cell && a->exact == b->exact && a->state == b->state &&
           (a->status == b->status || (drupe_went_well(a->status) && drupe_went_well(b->status)));
}

bool drupe_spans_merge(drupe_pending_span *into, const drupe_pending_span *next, uint64_t grain)
{
    drupe_view_span *a = &into->span;
    const drupe_view_span *b = &next->span;
    uint64_t from = a->start_ns < b->start_ns ? a->start_ns : b->start_ns;
    uint64_t to = a->end_ns > b->end_ns ? a->end_ns : b->end_ns;
    if (!alike(a, b) || (grain != UINT64_MAX && to - from > grain)) return false;
    a->start_ns = from;
    a->end_ns = to;
    a->busy_ns += b->busy_ns;
    if (to && a->busy_ns > to - from) a->busy_ns = to - from;
    a->count += b->count;
    a->bytes += b->bytes;
    a->items += b->items;
    if (badness(b->status) > badness(a->status)) a->status = b->status;
    if (next->longest_ns > into->longest_ns) {
        into->longest_ns = next->longest_ns;
        memcpy(a->label, b->label, sizeof a->label);
        a->site = b->site;
    }
    if (b->id < a->id) a->id = b->id;
    if (next->last > into->last) into->last = next->last;
    if (next->changed > into->changed) into->changed = next->changed;
    return true;
}

/* One pass: what can be merged up to the grain is. The list stays in order. */
static size_t pass(drupe_pending_span *list, size_t count, uint32_t *lasts, uint64_t grain)
{
    size_t kept = 0;
    memset(lasts, 0, DRUPE_LANES_MOST * sizeof *lasts);
    for (size_t i = 0; i < count; i++) {
        uint32_t *last = &lasts[list[i].span.lane];
        if (*last && drupe_spans_merge(&list[*last - 1], &list[i], grain)) continue;
        if (kept != i) list[kept] = list[i];
        *last = (uint32_t)++kept;
    }
    return kept;
}

size_t drupe_spans_shrink(drupe_pending_span *list, size_t count, size_t most, uint32_t *lasts,
                          uint64_t *grain)
{
    uint64_t length = *grain ? *grain : GRAIN_FIRST;
    while (count > most) {
        count = pass(list, count, lasts, length);
        if (length == UINT64_MAX) break;
        *grain = length;
        length = length < UINT64_MAX / 2 ? length * 2 : UINT64_MAX;
    }
    return count;
}

static bool cell_is_known(const drupe_history *history, uint32_t cell)
{
    bool known = cell == 0;
    for (size_t i = 0; i < history->ncells && !known; i++) known = history->cells[i].cell.number == cell;
    return known;
}

/* Forget the first `excess` spans, if there are any also those of forgotten cells, and those of queues that
 * are given, by index; what is left moves up. */
static void forget(drupe_history *history, size_t excess, const bool *queues)
{
    size_t kept = 0;
    for (size_t i = 0; i < history->nspans; i++) {
        const drupe_pending_span *span = &history->spans[i];
        bool gone = i < excess || (queues && queues[span->queue]) ||
                    (excess && !cell_is_known(history, span->span.cell));
        if (!gone) history->spans[kept++] = *span;
    }
    history->nspans = kept;
    for (size_t i = 0; i < DRUPE_QUEUES_MOST; i++)
        memset(history->lines[i].last, 0, sizeof history->lines[i].last);
    for (size_t i = 0; i < history->nspans; i++)
        *last_of(history, history->spans[i].span.lane) = (uint32_t)i + 1;
    history->cleared = ++history->serial;
}

/* Of spans that nothing can be merged with, the oldest go. */
void drupe_spans_compact(drupe_history *history)
{
    const size_t most = DRUPE_VIEW_SPANS / 2;
    uint32_t lasts[DRUPE_LANES_MOST];
    size_t count = drupe_spans_shrink(history->spans, history->nspans, most, lasts, &history->grain);
    history->nspans = count;
    forget(history, count > most ? count - most : 0, NULL);
}

void drupe_spans_forget(drupe_history *history, const bool *queues)
{
    forget(history, 0, queues);
}

void drupe_spans_put(drupe_history *history, const drupe_pending_span *entry)
{
    uint32_t *last = last_of(history, entry->span.lane);
    if (entry->span.cell > history->last_cell) {
        history->last_cell = entry->span.cell;
        history->grain = 0;
    }
    drupe_pending_span *before = *last ? &history->spans[*last - 1] : NULL;
    if (before && history->grain && drupe_spans_merge(before, entry, history->grain)) {
        before->changed = history->serial;
        return;
    }
    if (history->nspans == DRUPE_VIEW_SPANS) drupe_spans_compact(history);
    history->spans[history->nspans] = *entry;
    history->spans[history->nspans++].changed = history->serial;
    *last = (uint32_t)history->nspans;
}
