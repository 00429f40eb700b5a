/* What threads of the engine run has times of the machine's clock. Devices tell times of one of their own.
 * How far it is from CLOCK_MONOTONIC follows from the work itself: nothing began before it was submitted, so
 * each beginning gives a bound, and the greatest of them is that of the work that waited least. The clocks
 * may drift apart, so a bound gives way slowly with its age.
 */
#include "view/view_room.h"

#define DRIFT 10000 /* one part in so many */

/* Counters of two processors may differ by a hair. */
static bool cut(const drupe_trace_record *record, uint64_t *start, uint64_t *end)
{
    if (*start < record->submitted_ns) *start = record->submitted_ns;
    if (*start > record->seen_ns) *start = record->seen_ns;
    if (*end > record->seen_ns) *end = record->seen_ns;
    if (*end < *start) *end = *start;
    return true;
}

bool drupe_clock_map(drupe_clock *clock, const drupe_trace_record *record, uint64_t *start, uint64_t *end)
{
    if (!record->ended_ns || record->started_ns > record->ended_ns || !record->seen_ns) return false;
    if (!record->own_clock) {
        *start = record->started_ns;
        *end = record->ended_ns;
        return cut(record, start, end);
    }
    int64_t least = (int64_t)(record->submitted_ns - record->started_ns);
    int64_t most = (int64_t)(record->seen_ns - record->ended_ns);
    if (clock->same) {
        clock->offset = 0;
    } else {
        int64_t age = (int64_t)(record->seen_ns - clock->at_ns);
        int64_t offset = clock->known ? clock->offset - (age > 0 ? age / DRIFT : 0) : least;
        if (offset < least) offset = least;
        if (offset > most) offset = most;
        clock->offset = offset;
        clock->at_ns = record->seen_ns;
        clock->known = true;
    }
    *start = record->started_ns + (uint64_t)clock->offset;
    *end = record->ended_ns + (uint64_t)clock->offset;
    return cut(record, start, end);
}
