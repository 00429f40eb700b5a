/* The short way of a record: from the ring into the store and the sums, without a note.
 *
 * A storm of short work is over when it is read, record by record. Then nothing has to be worked out, if on
 * an in-order queue nothing is unfinished before it and what stands behind it was submitted after its end:
 * nothing can have proven it over earlier, and nobody shares its end. */
#include "view/room.h"

static bool is_final(const drupe_line *line, const drupe_trace_record *record, const drupe_trace_record *next)
{
    if (!line || line->number != record->queue || line->notes > 0 || !line->ordered) return false;
    if (!drupe_went_well(record->status) || record->ended_ns) return false;
    return next->queue == record->queue && next->submitted_ns >= record->seen_ns;
}

static void put_new(drupe_history *history, const drupe_trace_record *record, int kind, uint32_t queue,
                    const drupe_stretch *when)
{
    drupe_note note;
    drupe_note_fill(&note, record, kind, queue);
    note.over = true;
    note.span.status = record->status;
    note.span.start_ns = when->from;
    note.span.end_ns = when->to;
    note.span.busy_ns = note.longest_ns = when->to - when->from;
    drupe_spans_put(history, &note);
}

bool drupe_direct_take(drupe_history *history, const drupe_trace_record *record,
                       const drupe_trace_record *next)
{
    drupe_line *line = history->line;
    int kind = drupe_class_of(record->kind);
    if (kind < 0 || !is_final(line, record, next)) return false;
    uint64_t begin = line->over_ns > record->submitted_ns ? line->over_ns : record->submitted_ns;
    const drupe_stretch when = {begin < record->seen_ns ? begin : record->seen_ns, record->seen_ns};
    uint32_t queue = (uint32_t)(line - history->lines);
    if (!history->raised) history->serial++;
    history->raised = true;
    if (when.to > line->over_ns) line->over_ns = when.to;
    line->seen = record->id;
    line->used[kind] = true;
    drupe_account_direct(history, record, kind, line, &when);
    if (!drupe_spans_extend(history, queue * DRUPE_VIEW_CLASS_COUNT + (uint32_t)kind, record, &when))
        put_new(history, record, kind, queue, &when);
    return true;
}
