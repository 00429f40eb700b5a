/* From records of the ring to notes, and from notes to spans once their work is over.
 *
 * When something ran is known of what the engine runs itself and on profiling queues. Of other work only a
 * time is known in which it lies: it did not begin before it was submitted, nor, on an in-order queue, before
 * the end of what stands before it where that is known; it was over when it was found to be, and before what
 * stands behind it on an in-order queue began. That is an interval, no guess is made within it, and spans say
 * so (`exact`). Barriers are no work and take no time. */
#include "view/room.h"
#include <stdlib.h>
#include <string.h>

#define HOLE_NS        UINT64_C(2000000000) /* after which a number without a record is taken to have none */
#define SETTLE_EVERY   128u                 /* records: they are in the caches still */
#define SETTLE_PART    4u                   /* of the notes */
#define UNSETTLED_PART 64u
#define FOLD_MOST      8u

drupe_history *drupe_history_new(void)
{
    drupe_history *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return NULL;
    /* Pages that are not touched cost nothing. */
    fresh->spans = calloc(DRUPE_VIEW_SPANS, sizeof *fresh->spans);
    fresh->notes = calloc(DRUPE_NOTES_MOST, sizeof *fresh->notes);
    if (fresh->spans && fresh->notes) return fresh;
    drupe_history_free(fresh);
    return NULL;
}

void drupe_history_free(drupe_history *history)
{
    if (!history) return;
    for (size_t i = 0; i < history->npurses; i++) free(history->purses[i].samples);
    free(history->spans);
    free(history->notes);
    free(history);
}

/* --- Notes ---------------------------------------------------------------------------------------------- */

/* How the work ended, from its record. */
static void end(drupe_history *history, drupe_note *note, const drupe_trace_record *record)
{
    drupe_view_span *span = &note->span;
    note->over = true;
    span->status = record->status;
    span->end_ns = record->seen_ns;
    note->mute = record->status == DRUPE_TRACE_SKIPPED || record->status == DRUPE_TRACE_CANCELLED;
    drupe_clock *clock = &history->units[history->lines[note->queue].device].clock;
    span->exact = drupe_clock_map(clock, record, &span->start_ns, &span->end_ns);
}

/* It is over, but how was not told. */
static void end_unseen(drupe_note *note, uint64_t ns)
{
    note->over = true;
    note->span.status = note->gone ? DRUPE_TRACE_UNKNOWN : DRUPE_TRACE_PASSED;
    note->span.end_ns = ns;
}

/* The notes stand full of what is gone from the ring: the two oldest neighbours of a lane and cell are put
 * together. */
static void squeeze(drupe_history *history)
{
    size_t kept = 0;
    drupe_note *lasts[DRUPE_LANES_MOST] = {NULL};
    for (size_t i = 0; i < history->nnotes; i++) {
        drupe_note *note = &history->notes[i];
        drupe_note **last = note->kind < 0 ? NULL : &lasts[note->span.lane];
        bool joins = last && *last && note->gone && (*last)->gone && !note->over && !(*last)->over;
        if (joins && drupe_spans_merge(*last, note, UINT64_MAX)) {
            history->lines[note->queue].notes--;
            continue;
        }
        if (kept != i) history->notes[kept] = *note;
        if (last) *last = &history->notes[kept];
        kept++;
    }
    history->nnotes = kept;
}

/* Every member is set by itself, which takes half as long as to clear them first. */
void drupe_note_fill(drupe_note *note, const drupe_trace_record *record, int kind, uint32_t queue)
{
    drupe_view_span *span = &note->span;
    span->start_ns = note->submitted_ns = record->submitted_ns;
    span->end_ns = span->busy_ns = note->longest_ns = note->changed = 0;
    span->id = note->last = record->id;
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
    note->queue = queue;
    note->kind = (int8_t)kind;
    note->over = note->gone = note->proven = note->mute = false;
    note->told = record->told;
}

/* The queue's. Queues whose work is over are in the way only until that is worked out, which is done early
 * where it costs a few steps for each record that is over. */
static drupe_line *line_of(drupe_history *history, const drupe_trace_record *record)
{
    drupe_line *line = drupe_line_of(history, record);
    if (line || history->unsettled * UNSETTLED_PART < history->nnotes) return line;
    drupe_history_settle(history);
    return drupe_line_of(history, record);
}

/* Of work that was found to be over at one time, all that is known is that it lies before that. Where spans
 * are merged anyway, a few share a note. */
static bool fold(drupe_history *history, const drupe_line *line, const drupe_trace_record *record, int kind)
{
    drupe_note *last = history->nnotes > 0 ? &history->notes[history->nnotes - 1] : NULL;
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

void drupe_history_add(drupe_history *history, const drupe_trace_record *record)
{
    drupe_line *line = line_of(history, record);
    int kind = drupe_class_of(record->kind);
    if (line && fold(history, line, record, kind)) {
        line->seen = record->id;
        line->waiting[kind]++;
        drupe_account_submitted(history, record->cell, kind, record->bytes);
        return;
    }
    if (history->nnotes == DRUPE_NOTES_MOST) squeeze(history);
    if (!line || history->nnotes == DRUPE_NOTES_MOST) {
        drupe_account_missed(history, record->cell, 1);
        return;
    }
    drupe_note *note = &history->notes[history->nnotes++];
    drupe_note_fill(note, record, kind, (uint32_t)(line - history->lines));
    if (record->status != DRUPE_TRACE_PENDING) end(history, note, record);
    history->unsettled += note->over;
    line->seen = record->id;
    line->notes++;
    if (kind >= 0) {
        line->used[kind] = true;
        line->waiting[kind]++;
    }
    drupe_account_submitted(history, record->cell, kind, record->bytes);
}

/* --- What is over --------------------------------------------------------------------------------------- */

/* From the last note to the first: on an in-order queue nothing ended later than what stands behind it, and
 * what ended well proves that all before it is over. Who waited for the last of them is just about to look at
 * the others, and may know their times: so that is believed at the second look. */
static void prove(drupe_history *history)
{
    for (size_t i = 0; i < DRUPE_QUEUES_MOST; i++) {
        drupe_line *line = &history->lines[i];
        line->proof_ns = 0;
        line->blocked = false;
    }
    for (size_t i = history->nnotes; i-- > 0;) {
        drupe_note *note = &history->notes[i];
        drupe_line *line = &history->lines[note->queue];
        if (!line->ordered) continue;
        if (!note->over && line->proof_ns && (note->proven || note->gone)) end_unseen(note, line->proof_ns);
        note->proven = line->proof_ns != 0;
        if (!note->over) continue;
        bool exact = note->span.exact;
        if (!exact && line->proof_ns && note->span.end_ns > line->proof_ns)
            note->span.end_ns = line->proof_ns;
        if (drupe_went_well(note->span.status))
            line->proof_ns = exact ? note->span.start_ns : note->span.end_ns;
    }
}

/* Work out the time of a note that is over, and pass it on. */
static void finish(drupe_history *history, drupe_note *note)
{
    drupe_line *line = &history->lines[note->queue];
    drupe_view_span *span = &note->span;
    if (!span->exact) span->start_ns = drupe_history_begin(history, note);
    if (span->start_ns > span->end_ns) span->start_ns = span->end_ns;
    if (note->mute || note->kind < 0) {
        span->start_ns = span->end_ns;
        span->exact = true; /* it took no time */
    }
    if (span->exact && !note->mute && note->kind >= 0 && span->end_ns > line->over_ns)
        line->over_ns = span->end_ns;
    span->busy_ns = span->exact ? span->end_ns - span->start_ns : 0;
    note->longest_ns = (span->end_ns - span->start_ns) / span->count;
    line->notes--;
    if (note->kind >= 0)
        line->waiting[note->kind] -=
            line->waiting[note->kind] < span->count ? line->waiting[note->kind] : (uint32_t)span->count;
    drupe_account_ended(history, note);
    if (note->kind >= 0) drupe_spans_put(history, note);
}

uint64_t drupe_history_begin(const drupe_history *history, const drupe_note *note)
{
    const drupe_line *line = &history->lines[note->queue];
    return line->ordered && line->over_ns > note->submitted_ns ? line->over_ns : note->submitted_ns;
}

void drupe_history_settle(drupe_history *history)
{
    size_t kept = 0;
    bool changed = false;
    history->unsettled = 0;
    history->raised = false;
    prove(history);
    for (size_t i = 0; i < history->nnotes; i++) {
        drupe_note *note = &history->notes[i];
        drupe_line *line = &history->lines[note->queue];
        /* In order, or it would not be known when it began. */
        if (note->over && !(line->blocked && drupe_went_well(note->span.status))) {
            if (!changed) history->serial++;
            changed = true;
            finish(history, note);
            continue;
        }
        line->blocked = line->ordered;
        if (kept != i) history->notes[kept] = *note;
        kept++;
    }
    history->nnotes = kept;
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

static bool look_again(drupe_history *history, reread *again, drupe_note *note)
{
    if (!drupe_trace_over(note->span.id, &note->gone)) return false;
    const drupe_trace_record *record = read_again(history, again, note->span.id);
    note->gone = record == NULL;
    if (record) end(history, note, record);
    return note->over;
}

size_t drupe_history_doubts(const drupe_history *history, drupe_doubt *doubts)
{
    bool asked[DRUPE_QUEUES_MOST] = {false};
    size_t count = 0;
    for (size_t i = 0; i < history->nnotes; i++) {
        const drupe_note *note = &history->notes[i];
        if (!note->gone || note->over || asked[note->queue]) continue;
        asked[note->queue] = true;
        doubts[count++] = (drupe_doubt){note->queue, history->lines[note->queue].number, 0};
    }
    return count;
}

void drupe_history_resolve(drupe_history *history, const drupe_doubt *doubts, size_t count, uint64_t latest,
                           uint64_t now)
{
    uint64_t oldest[DRUPE_QUEUES_MOST] = {0};
    bool found = false;
    for (size_t i = 0; i < count; i++)
        if (history->lines[doubts[i].line].number == doubts[i].number)
            oldest[doubts[i].line] = doubts[i].oldest;
    for (size_t i = 0; i < history->nnotes; i++) {
        drupe_note *note = &history->notes[i];
        if (!note->gone || note->over || note->last > latest || note->last >= oldest[note->queue]) continue;
        end_unseen(note, now);
        found = true;
    }
    if (found) drupe_history_settle(history);
}

static bool read_notes(drupe_history *history)
{
    reread again = {.next = 1};
    bool found = false;
    for (size_t i = 0; i < history->nnotes; i++) {
        drupe_note *note = &history->notes[i];
        bool folded = note->over && note->span.count > 1;
        if (!note->gone && !folded && look_again(history, &again, note)) found = true;
    }
    return found;
}

enum hole { FOUND, NO_WORK, LATER, LOST };

/* Look for the record of a number, and add it. */
static enum hole look_for(drupe_history *history, uint64_t id)
{
    drupe_trace_record late;
    bool gone, over = drupe_trace_over(id, &gone);
    if (!gone && drupe_trace_read(id - 1, &late, 1) == 1 && late.id == id) {
        drupe_history_add(history, &late);
        return FOUND;
    }
    /* Whoever has come round may not have written there yet. */
    if (id + DRUPE_TRACE_RECORDS <= drupe_trace_latest()) return LOST;
    return over ? NO_WORK : LATER;
}

static void hole_note(drupe_history *history, uint64_t id, uint64_t now)
{
    enum hole what = look_for(history, id);
    bool full = history->nholes == DRUPE_HOLES_MOST;
    if (what == LOST || (what == LATER && full)) drupe_account_missed(history, history->reading_cell, 1);
    if (what != LATER || full) return;
    history->holes[history->nholes] = id;
    history->hole_ns[history->nholes++] = now;
}

/* Notes stand by id, or what is over would be worked out in the wrong order. */
static void sort_in(drupe_history *history)
{
    size_t at = history->nnotes - 1;
    drupe_note late = history->notes[at];
    while (at > 0 && history->notes[at - 1].span.id > late.span.id) at--;
    memmove(&history->notes[at + 1], &history->notes[at], (history->nnotes - 1 - at) * sizeof late);
    history->notes[at] = late;
}

/* Numbers whose records were not written when they were looked for. */
static bool read_holes(drupe_history *history, uint64_t now)
{
    size_t kept = 0;
    bool found = false;
    for (size_t i = 0; i < history->nholes; i++) {
        uint64_t id = history->holes[i], since = history->hole_ns[i];
        enum hole what = look_for(history, id);
        if (what == LATER && now - since <= HOLE_NS) {
            history->holes[kept] = id;
            history->hole_ns[kept++] = since;
            continue;
        }
        found = found || what != NO_WORK;
        if (what == LATER || what == LOST) drupe_account_missed(history, history->reading_cell, 1);
        if (what == FOUND && history->nnotes && history->notes[history->nnotes - 1].span.id == id)
            sort_in(history);
    }
    history->nholes = kept;
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
    /* A full batch leaves its last for the next one, where something stands behind it. */
    size_t taken = count < DRUPE_BATCH ? count : DRUPE_BATCH - 1;
    for (size_t i = 0; i < taken; i++) {
        const drupe_trace_record *record = &history->batch[i];
        for (; expected < record->id; expected++) hole_note(history, expected, now);
        expected = record->id + 1;
        history->reading_cell = record->cell;
        if (i + 1 < count && drupe_direct_take(history, record, record + 1)) continue;
        drupe_history_add(history, record);
    }
    if (count < DRUPE_BATCH)
        for (; expected <= latest; expected++) hole_note(history, expected, now);
    history->after = expected - 1;
    return true;
}

void drupe_history_read(drupe_history *history, uint64_t now)
{
    uint64_t latest = drupe_trace_latest();
    history->raised = false;
    bool found = read_notes(history);
    if (read_holes(history, now)) found = true;
    size_t settled = history->nnotes;
    while (read_some(history, latest, now)) {
        found = true;
        if (history->nnotes < settled + settled / SETTLE_PART + SETTLE_EVERY) continue;
        drupe_history_settle(history);
        settled = history->nnotes;
    }
    if (found) history->serial++;
    if (history->nnotes) drupe_history_settle(history);
}
