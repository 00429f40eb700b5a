/* The short way of a record: from the ring into the store and the sums, without a pending span.
 *
 * A storm of short work is over when it is read, record by record. Then nothing has to be worked out, if on
 * an in-order queue nothing is unfinished before it, and either its times are known, or what stands behind it
 * was submitted after its end: then nothing can have proven it over earlier. */
#include "view/history.h"

static bool is_final(const drupe_line *line, const drupe_trace_record *record, const drupe_trace_record *next)
{
    if (!line || line->number != record->queue || line->pending > 0 || !line->ordered) return false;
    if (!drupe_went_well(record->status)) return false;
    if (record->ended_ns) return !record->own_clock;
    return next->queue == record->queue && next->submitted_ns >= record->seen_ns;
}

static void put_new(drupe_history *history, const drupe_trace_record *record, int kind, uint32_t queue,
                    const drupe_interval *when, bool exact)
{
    drupe_pending_span entry;
    drupe_pending_span_fill(&entry, record, kind, queue);
    entry.over = true;
    entry.span.status = record->status;
    entry.span.start_ns = when->from;
    entry.span.end_ns = when->to;
    entry.span.exact = exact;
    entry.longest_ns = when->to - when->from;
    entry.span.busy_ns = exact ? entry.longest_ns : 0;
    drupe_spans_put(history, &entry);
}

bool drupe_direct_take(drupe_history *history, const drupe_trace_record *record,
                       const drupe_trace_record *next)
{
    drupe_line *line = history->line;
    int kind = drupe_class_of(record->kind);
    if (kind < 0 || !is_final(line, record, next)) return false;
    uint64_t begin = line->over_ns > record->submitted_ns ? line->over_ns : record->submitted_ns;
    drupe_interval when = {begin < record->seen_ns ? begin : record->seen_ns, record->seen_ns};
    bool exact = drupe_clock_map(&history->units[line->device].clock, record, &when.from, &when.to);
    uint32_t queue = (uint32_t)(line - history->lines);
    if (!history->raised) history->serial++;
    history->raised = true;
    if (exact && when.to > line->over_ns) line->over_ns = when.to;
    line->seen = record->id;
    line->used[kind] = true;
    drupe_account_direct(history, record, kind, line, &when, exact);
    if (!drupe_spans_extend(history, queue * DRUPE_VIEW_CLASS_COUNT + (uint32_t)kind, record, &when, exact))
        put_new(history, record, kind, queue, &when, exact);
    return true;
}
