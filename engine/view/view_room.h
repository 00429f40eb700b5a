/* What the files of this room share: the recorder's memory of what the devices did.
 *
 * A reading tour: recorder.c (the thread, and who may touch the history when) -> history.c (records become
 * pending spans, pending spans become spans when their work is over) -> spans.c (the store, which merges when
 * it is full), account.c (sums of cells, busy devices), intervals.c (unions of times), samples.c (memory) ->
 * view_take.c (a view is a copy of all that) -> json.c and the frames for people.
 *
 * Locks: a history belongs to whoever holds recorder.c's `lock`; its `life` is taken first. live.c has a lock
 * of its own. Threads: drupe-recorder (recorder.c), drupe-live (live.c). */
#ifndef DRUPE_VIEW_ROOM_H
#define DRUPE_VIEW_ROOM_H

#include "base/base.h"
#include "drupe/view.h"
#include <string.h>
#include <time.h>

#define DRUPE_QUEUES_MOST        64u
#define DRUPE_LANES_MOST         (DRUPE_QUEUES_MOST * DRUPE_VIEW_CLASS_COUNT)
#define DRUPE_BATCH              64u /* they stay in the first cache */
#define DRUPE_DEVICES_MOST       32u
#define DRUPE_PENDING_SPANS_MOST (8u * DRUPE_TRACE_RECORDS) /* unfinished; more are counted as missed */
#define DRUPE_HOLES_MOST         1024u

/* --- intervals.c: the union of intervals of time -------------------------------------------------------- */

#define DRUPE_INTERVALS 48u

typedef struct drupe_interval {
    uint64_t from, to;
} drupe_interval;

/* The latest intervals, disjoint and in order, and the sum of those before them. Exact as long as nothing
 * arrives later than DRUPE_INTERVALS gaps after its time. Zeroed = empty. */
typedef struct drupe_union {
    uint64_t settled_ns;
    uint64_t settled_to;   /* the end of the last one that is summed up */
    uint32_t first, count; /* of `list` */
    drupe_interval list[2 * DRUPE_INTERVALS];
} drupe_union;

/* True when an interval left the list for the sum: it goes into `*settled`. */
bool drupe_union_add(drupe_union *all, uint64_t from, uint64_t to, drupe_interval *settled);
uint64_t drupe_union_sum(const drupe_union *all);

/* How much of the last second a device was busy: a union, and what left it by sixteenths of a second. */
#define DRUPE_LOAD_SLOTS   32u
#define DRUPE_LOAD_SLOT_NS UINT64_C(62500000)
#define DRUPE_LOAD_NS      (16 * DRUPE_LOAD_SLOT_NS)

typedef struct drupe_load {
    drupe_union all;
    uint64_t slots[DRUPE_LOAD_SLOTS], slot_at[DRUPE_LOAD_SLOTS]; /* ns; the number of the slot */
} drupe_load;

void drupe_load_add(drupe_load *load, uint64_t from, uint64_t to);
/* 0 to 1. */
double drupe_load_share(const drupe_load *load, uint64_t now);

/* --- clock.c: a device's own time ----------------------------------------------------------------------- */

typedef struct drupe_clock {
    bool known, same; /* the device's time is CLOCK_MONOTONIC */
    int64_t offset;   /* to be added to the device's time */
    uint64_t at_ns;
} drupe_clock;

/* When the work of a record with times began and ended, within the time from its submission until it was seen
 * to be over; false when it has none. */
bool drupe_clock_map(drupe_clock *clock, const drupe_trace_record *record, uint64_t *start, uint64_t *end);

/* What this thread has computed: time in which others had the processor costs nobody anything. */
static inline uint64_t drupe_thread_cpu_ns(void)
{
    struct timespec spent = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (uint64_t)spent.tv_sec * UINT64_C(1000000000) + (uint64_t)spent.tv_nsec;
}

static inline uint64_t drupe_sample_used(const drupe_view_sample *sample)
{
    return sample->used[0] + sample->used[1] + sample->used[2];
}

/* --- json.c */

/* A text that JSON allows, quoted, or a number. `before` is what stands before the value, such as ",\"id\":".
 */
void drupe_json_put_text(drupe_text *text, const char *before, const char *utf8);
void drupe_json_put_number(drupe_text *text, const char *before, uint64_t number);
/* A text that is whole goes to the caller, in `*result`; it is cleared in every case. */
drupe_status drupe_view_give(drupe_text *text, char **result, size_t *size) DRUPE_MUST_CHECK;

#endif
