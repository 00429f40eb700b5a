/* From records of the ring to pending spans, and from pending spans to spans once their work is over.
 *
 * When something ran is known of what the engine runs itself and on profiling queues. Of other work only a
 * time is known in which it lies: it did not begin before it was submitted, nor, on an in-order queue, before
 * the end of what stands before it where that is known; it was over when it was found to be, and before what
 * stands behind it on an in-order queue began. That is an interval, no guess is made within it, and spans say
 * so (`exact`). Barriers are no work and take no time. */
#include "view/history.h"
#include <stdlib.h>
#include <string.h>

#define HOLE_NS        UINT64_C(2000000000) /* after which a number without a record is taken to have none */
#define UNSETTLED_PART 64u
#define FOLD_MOST      8u

drupe_history *drupe_history_new(void)
{
    return calloc(1, sizeof(drupe_history)); /* pages that are not touched cost nothing */
}

void drupe_history_free(drupe_history *history)
{
    free(history);
}

/* --- Pending spans -------------------------------------------------------------------------------------- */

/* How the work ended, from its record. */
static void end(drupe_history *history, drupe_pending_span *entry, const drupe_trace_record *record)
{
    drupe_view_span *span = &entry->span;
    entry->over = true;
    span->status = record->status;
    span->end_ns = record->seen_ns;
    drupe_clock *clock = &history->units[history->lines[entry->queue].device].clock;
    span->exact = drupe_clock_map(clock, record, &span->start_ns, &span->end_ns);
}

/* It is over, but how was not told. */
static void end_unseen(drupe_pending_span *entry, uint64_t ns)
{
    entry->over = true;
    entry->span.status = entry->gone ? DRUPE_TRACE_UNKNOWN : DRUPE_TRACE_PASSED;
    entry->span.end_ns = ns;
}

/* --- What is over --------------------------------------------------------------------------------------- */

/* From the last pending span to the first: on an in-order queue nothing ended later than what stands behind
 * it, and what ended well proves that all before it is over. Who waited for the last of them is just about to
 * look at the others, and may know their times: so that is believed at the second look. */
static void prove(drupe_history *history)
{
    for (size_t i = 0; i < DRUPE_QUEUES_MOST; i++) {
        drupe_line *line = &history->lines[i];
        line->proof_ns = 0;
        line->blocked = false;
    }
    for (size_t i = history->npending; i-- > 0;) {
        drupe_pending_span *entry = &history->pending[i];
        drupe_line *line = &history->lines[entry->queue];
        if (!line->ordered) continue;
        if (!entry->over && line->proof_ns && (entry->proven || entry->gone))
            end_unseen(entry, line->proof_ns);
        entry->proven = line->proof_ns != 0;
        if (!entry->over) continue;
        bool exact = entry->span.exact;
        if (!exact && line->proof_ns && entry->span.end_ns > line->proof_ns)
            entry->span.end_ns = line->proof_ns;
        if (drupe_went_well(entry->span.status))
            line->proof_ns = exact ? entry->span.start_ns : entry->span.end_ns;
    }
}

/* Work out the time of a pending span that is over, and pass it on. */
static void finish(drupe_history *history, drupe_pending_span *entry)
{
    drupe_line *line = &history->lines[entry->queue];
    drupe_view_span *span = &entry->span;
    if (!span->exact) span->start_ns = drupe_history_begin(history, entry);
    if (span->start_ns > span->end_ns) span->start_ns = span->end_ns;
    if (drupe_never_ran(span->status) || entry->kind < 0) {
        span->start_ns = span->end_ns;
        span->exact = true; /* it took no time */
    } else if (span->exact && span->end_ns > line->over_ns) {
        line->over_ns = span->end_ns;
    }
    span->busy_ns = span->exact ? span->end_ns - span->start_ns : 0;
    entry->longest_ns = (span->end_ns - span->start_ns) / span->count;
    line->pending--;
    if (entry->kind >= 0)
        line->waiting[entry->kind] -=
            line->waiting[entry->kind] < span->count ? line->waiting[entry->kind] : (uint32_t)span->count;
    drupe_account_ended(history, entry);
    if (entry->kind >= 0) drupe_spans_put(history, entry);
}

uint64_t drupe_history_begin(const drupe_history *history, const drupe_pending_span *entry)
{
    const drupe_line *line = &history->lines[entry->queue];
    return line->ordered && line->over_ns > entry->submitted_ns ? line->over_ns : entry->submitted_ns;
}

void drupe_history_settle(drupe_history *history)
{
    size_t kept = 0;
    bool changed = false;
    history->unsettled = 0;
    prove(history);
    for (size_t i = 0; i < history->npending; i++) {
        drupe_pending_span *entry = &history->pending[i];
        drupe_line *line = &history->lines[entry->queue];
        /* In order, or it would not be known when it began. */
        if (entry->over && !(line->blocked && drupe_went_well(entry->span.status))) {
            if (!changed) history->serial++;
            changed = true;
            finish(history, entry);
            continue;
        }
        line->blocked = line->ordered;
        if (kept != i) history->pending[kept] = *entry;
        kept++;
    }
    history->npending = kept;
}

/* --- Records -------------------------------------------------------------------------------------------- */

/* The class of a kind of work; -1: it is none, such as a barrier. */
static int class_of(uint8_t kind)
{
    switch ((drupe_work_kind)kind) {
    case DRUPE_WORK_KERNEL: return DRUPE_VIEW_KERNELS;
    case DRUPE_WORK_COPY:
    case DRUPE_WORK_FILL:
    case DRUPE_WORK_PREFETCH: return DRUPE_VIEW_COPIES;
    case DRUPE_WORK_HOST: return DRUPE_VIEW_HOST;
    default: return -1;
    }
}

/* Every member is set by itself, which takes half as long as to clear them first. */
static void fill(drupe_pending_span *entry, const drupe_trace_record *record, int kind, uint32_t queue)
{
    drupe_view_span *span = &entry->span;
    span->start_ns = entry->submitted_ns = record->submitted_ns;
    span->end_ns = span->busy_ns = entry->longest_ns = entry->changed = 0;
    span->id = entry->last = record->id;
    span->count = 1;
    span->bytes = record->bytes;
    span->items = record->items;
    span->lane = queue * DRUPE_VIEW_CLASS_COUNT + (uint32_t)(kind < 0 ? 0 : kind);
    span->cell = record->cell;
    span->site = record->site;
    span->status = DRUPE_TRACE_PENDING;
    span->exact = false;
    span->state = DRUPE_VIEW_OVER;
    memcpy(span->label, record->label, sizeof span->label);
    span->label[sizeof span->label - 1] = '\0';
    entry->queue = queue;
    entry->kind = (int8_t)kind;
    entry->over = entry->gone = entry->proven = false;
    entry->told = record->told;
}

/* The queue's. Queues whose work is over are in the way only until that is worked out, which is done early
 * where it costs a few steps for each record that is over. */
static drupe_line *line_of(drupe_history *history, const drupe_trace_record *record)
{
    drupe_line *line = drupe_line_of(history, record);
    if (line || history->unsettled * UNSETTLED_PART < history->npending) return line;
    drupe_history_settle(history);
    return drupe_line_of(history, record);
}

/* Of work that was found to be over at one time, all that is known is that it lies before that. Where spans
 * are merged anyway, a few share a pending span. */
static bool fold(drupe_history *history, const drupe_line *line, const drupe_trace_record *record, int kind)
{
    drupe_pending_span *last = history->npending > 0 ? &history->pending[history->npending - 1] : NULL;
    if (!history->grain || !last || !last->over || last->queue != (uint32_t)(line - history->lines))
        return false;
    drupe_view_span *span = &last->span;
    if (!line->ordered || kind < 0 || last->kind != kind || last->last >= record->id ||
        span->cell != record->cell || span->cell > history->last_cell || span->count >= FOLD_MOST)
        return false;
    if (span->exact || record->ended_ns || span->end_ns != record->seen_ns) return false;
    if (!drupe_went_well(span->status) || !drupe_went_well(record->status)) return false;
    if (record->status == DRUPE_TRACE_PASSED) span->status = DRUPE_TRACE_PASSED;
    span->count++;
    span->bytes += record->bytes;
    span->items += record->items;
    last->last = record->id;
    return true;
}

/* Nothing behind it can tell more of when it ran, and nothing before it is open. */
static bool final(const drupe_line *line, const drupe_pending_span *entry)
{
    return entry->over && entry->span.exact && (line->pending == 1 || !line->ordered);
}

/* Pending spans stand by id, or what is over would be worked out in the wrong order. */
static void sort_in(drupe_pending_span *list, size_t at)
{
    for (; at > 0 && list[at - 1].span.id > list[at].span.id; at--) {
        drupe_pending_span later = list[at - 1];
        list[at - 1] = list[at];
        list[at] = later;
    }
}

void drupe_history_add(drupe_history *history, const drupe_trace_record *record)
{
    drupe_line *line = line_of(history, record);
    int kind = class_of(record->kind);
    if (line && fold(history, line, record, kind)) {
        line->seen = record->id;
        line->waiting[kind]++;
        drupe_account_submitted(history, record->cell, kind, record->bytes);
        return;
    }
    if (!line || history->npending == DRUPE_PENDING_SPANS_MOST) {
        drupe_account_missed(history, record->cell, 1);
        return;
    }
    drupe_pending_span *entry = &history->pending[history->npending];
    fill(entry, record, kind, (uint32_t)(line - history->lines));
    if (record->status != DRUPE_TRACE_PENDING) end(history, entry, record);
    line->seen = record->id;
    line->pending++;
    if (kind >= 0) {
        line->used[kind] = true;
        line->waiting[kind]++;
    }
    drupe_account_submitted(history, record->cell, kind, record->bytes);
    if (final(line, entry)) {
        history->serial++;
        finish(history, entry);
        return;
    }
    history->unsettled += entry->over;
    sort_in(history->pending, history->npending++);
}

/* --- Reading -------------------------------------------------------------------------------------------- */

/* Records that were read again: many at a time where many have ended. */
typedef struct reread {
    size_t count, at, next; /* in the batch; how many to read the next time */
} reread;

static const drupe_trace_record *read_again(drupe_history *history, reread *again, uint64_t id)
{
    const drupe_trace_record *batch = history->batch;
    while (again->at < again->count && batch[again->at].id < id) again->at++;
    bool known = again->at < again->count && batch[again->at].id == id;
    if (known && batch[again->at].status != DRUPE_TRACE_PENDING) return &batch[again->at];
    again->next = again->at < again->count ? 1 : again->next * 4;
    if (again->next > DRUPE_BATCH) again->next = DRUPE_BATCH;
    again->count = drupe_trace_read(id - 1, history->batch, again->next);
    again->at = 0;
    return again->count > 0 && batch[0].id == id ? batch : NULL;
}

static bool look_again(drupe_history *history, reread *again, drupe_pending_span *entry)
{
    if (!drupe_trace_over(entry->span.id, &entry->gone)) return false;
    const drupe_trace_record *record = read_again(history, again, entry->span.id);
    entry->gone = record == NULL;
    if (record) end(history, entry, record);
    return entry->over;
}

size_t drupe_history_stale_queues(const drupe_history *history, uint32_t *numbers)
{
    bool asked[DRUPE_QUEUES_MOST] = {false};
    size_t count = 0;
    for (size_t i = 0; i < history->npending; i++) {
        const drupe_pending_span *entry = &history->pending[i];
        if (!entry->gone || entry->over || asked[entry->queue]) continue;
        asked[entry->queue] = true;
        numbers[count++] = history->lines[entry->queue].number;
    }
    return count;
}

void drupe_history_resolve(drupe_history *history, uint32_t number, uint64_t oldest, uint64_t latest,
                           uint64_t now)
{
    bool found = false;
    for (size_t i = 0; i < history->npending; i++) {
        drupe_pending_span *entry = &history->pending[i];
        bool mine = history->lines[entry->queue].number == number && entry->gone && !entry->over;
        if (!mine || entry->last > latest || entry->last >= oldest) continue;
        end_unseen(entry, now);
        found = true;
    }
    if (found)
        drupe_history_settle(history); /* else too early: what is over may still be read with its times */
}

static bool read_pending(drupe_history *history)
{
    reread again = {.next = 1};
    bool found = false;
    for (size_t i = 0; i < history->npending; i++) {
        drupe_pending_span *entry = &history->pending[i];
        bool folded = entry->over && entry->span.count > 1;
        if (!entry->gone && !folded && look_again(history, &again, entry)) found = true;
    }
    return found;
}

/* Look for the record of a number, and add it. One that may be written later is looked for again, for some
 * time. False: there is no news. */
static bool look_for(drupe_history *history, drupe_hole hole, uint64_t now)
{
    drupe_trace_record late;
    bool gone, over = drupe_trace_over(hole.id, &gone);
    if (!gone && drupe_trace_read(hole.id - 1, &late, 1) == 1 && late.id == hole.id) {
        drupe_history_add(history, &late);
        return true;
    }
    /* Whoever has come round may not have written there yet. */
    bool lost = hole.id + DRUPE_TRACE_RECORDS <= drupe_trace_latest();
    if (over && !lost) return false; /* it was no work */
    if (!lost && now - hole.since_ns <= HOLE_NS && history->nholes < DRUPE_HOLES_MOST) {
        history->holes[history->nholes++] = hole;
        return false;
    }
    drupe_account_missed(history, history->reading_cell, 1);
    return true;
}

static bool read_holes(drupe_history *history, uint64_t now)
{
    size_t count = history->nholes;
    bool found = false;
    history->nholes = 0; /* those that stay move up */
    for (size_t i = 0; i < count; i++) found |= look_for(history, history->holes[i], now);
    return found;
}

/* Records that came round before they were read, below `id`. */
static void count_missed(drupe_history *history, uint64_t id)
{
    uint64_t latest = drupe_trace_latest();
    uint64_t first = latest < DRUPE_TRACE_RECORDS ? 0 : latest - DRUPE_TRACE_RECORDS + 1;
    if (first > id) first = id;
    if (history->after + 1 >= first) return;
    drupe_account_missed(history, history->reading_cell, first - history->after - 1);
    history->after = first - 1;
}

/* One batch of what was submitted up to `latest`; false when there is nothing. */
static bool read_some(drupe_history *history, uint64_t latest, uint64_t now)
{
    if (history->after >= latest) return false;
    count_missed(history, UINT64_MAX);
    size_t count = drupe_trace_read(history->after, history->batch, DRUPE_BATCH);
    if (count) count_missed(history, history->batch[0].id);
    uint64_t expected = history->after + 1;
    for (size_t i = 0; i < count; i++) {
        const drupe_trace_record *record = &history->batch[i];
        for (; expected < record->id; expected++) (void)look_for(history, (drupe_hole){expected, now}, now);
        expected = record->id + 1;
        history->reading_cell = record->cell;
        drupe_history_add(history, record);
    }
    if (count < DRUPE_BATCH)
        for (; expected <= latest; expected++) (void)look_for(history, (drupe_hole){expected, now}, now);
    history->after = expected - 1;
    return true;
}

void drupe_history_read(drupe_history *history, uint64_t now)
{
    bool found = read_pending(history);
    if (read_holes(history, now)) found = true;
    /* Once more for what was submitted meanwhile: it may prove that what is read here was over earlier. */
    for (int turn = 0; turn < 2; turn++)
        for (uint64_t latest = drupe_trace_latest(); read_some(history, latest, now);) found = true;
    if (found) history->serial++;
    if (history->npending) drupe_history_settle(history);
}
