/* The trace ring.
 *
 * A record is sixteen words, and its place follows from its number, so writers share nothing but the counter
 * of submissions. Word SEQUENCE holds twice the number, plus one while the record is being written: a reader
 * that finds the same even value before and after has read one record. A writer that comes a whole ring late
 * finds a later number there and gives up.
 *
 * The end is written by whoever finds it, long after and on any thread, in one word that holds the number
 * until then: of two that find it the first wins, and nobody ends the record of a later lap. */
#include "core/core.h"
#include <stdio.h>
#include <string.h>

enum {
    SEQUENCE,
    END, /* status in the highest byte; below it the number while PENDING, then the ticks */
    SUBMITTED,
    PLACE, /* cell, site */
    WHERE, /* queue, device, kind */
    BYTES,
    ITEMS,
    STARTED,
    ENDED,
    LABEL,
    WORDS = 16
};

_Static_assert(WORDS - LABEL == DRUPE_TITLE_WORDS, "a title fills the rest of a record");

#define DEVICES_MOST 256u
#define STATUS_SHIFT 56
#define AHEAD        2 /* submissions */
#define BELOW        ((UINT64_C(1) << STATUS_SHIFT) - 1)
#define KIND_BITS    0x7fu
#define KIND_NONE    0x7fu
#define UNORDERED    0x80u /* beside the kind */

static _Alignas(64) _Atomic(uint64_t) ring[DRUPE_TRACE_RECORDS][WORDS];

/* Filter strings by a small number; 0 has none. Entries are written before they are counted. */
static char devices[DEVICES_MOST][32];
static _Atomic(uint32_t) ndevices = 1;
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t drupe_trace_device(const char *filter)
{
    drupe_ticks_start();
    pthread_mutex_lock(&devices_lock);
    uint32_t count = atomic_load(&ndevices), found = 0;
    for (uint32_t i = 1; i < count && !found; i++) {
        if (strncmp(devices[i], filter, sizeof devices[i] - 1) == 0) found = i;
    }
    if (!found && count < DEVICES_MOST) {
        snprintf(devices[count], sizeof devices[count], "%s", filter);
        found = count;
        atomic_store(&ndevices, count + 1);
    }
    pthread_mutex_unlock(&devices_lock);
    return found;
}

/* --- Writing -------------------------------------------------------------------------------------------- */

static _Atomic(uint64_t) *slot_of(uint64_t number)
{
    return ring[number % DRUPE_TRACE_RECORDS];
}

/* Stores are ordered, or a reader could see a word before the odd sequence. */
static void put(_Atomic(uint64_t) *slot, int word, uint64_t value)
{
    atomic_store_explicit(&slot[word], value, memory_order_release);
}

static uint64_t get(_Atomic(uint64_t) *slot, int word)
{
    return atomic_load_explicit(&slot[word], memory_order_acquire);
}

void drupe_trace_title(const char *label, drupe_title *title)
{
    *title = (drupe_title){.count = 0};
    size_t length = strnlen(label, sizeof title->words - 1);
    memcpy(title->words, label, length);
    title->count = (uint32_t)(length / sizeof *title->words) + 1;
}

static inline void put_title(_Atomic(uint64_t) *slot, const drupe_title *title)
{
    for (uint32_t i = 0; i < title->count; i++) put(slot, LABEL + (int)i, title->words[i]);
}

/* A kernel has the words of its name ready. */
static inline void put_label(_Atomic(uint64_t) *slot, const char *label, const drupe_work *work)
{
    drupe_title title;
    if (work->kind == DRUPE_WORK_KERNEL && label == work->kernel->name) {
        put_title(slot, &work->kernel->title);
        return;
    }
    drupe_trace_title(label, &title);
    put_title(slot, &title);
}

static inline uint64_t items_of(const drupe_work *work)
{
    if (work->kind != DRUPE_WORK_KERNEL) return 0;
    uint64_t items = 1;
    for (uint32_t d = 0; d < work->range->dims; d++) items *= work->range->global[d];
    return items;
}

/* False when a later record is there, or somebody writes. */
static inline bool slot_claim(_Atomic(uint64_t) *slot, uint64_t number)
{
    uint64_t seen = atomic_load_explicit(&slot[SEQUENCE], memory_order_relaxed);
    if (seen & 1 || seen >> 1 >= number) return false;
    return atomic_compare_exchange_strong_explicit(&slot[SEQUENCE], &seen, number << 1 | 1,
                                                   memory_order_acquire, memory_order_relaxed);
}

void drupe_trace_skip(uint64_t number)
{
    _Atomic(uint64_t) *slot = slot_of(number);
    if (!slot_claim(slot, number)) return;
    put(slot, END, (uint64_t)DRUPE_TRACE_COMPLETE << STATUS_SHIFT);
    put(slot, WHERE, KIND_NONE);
    put(slot, SEQUENCE, number << 1);
}

void drupe_trace_begin(const drupe_queue *queue, const drupe_flight *flight, const drupe_work *work,
                       size_t used)
{
    uint64_t number = flight->number;
    uint64_t unordered = queue->flags & DRUPE_QUEUE_OUT_OF_ORDER ? UNORDERED : 0;
    _Atomic(uint64_t) *slot = slot_of(number), *soon = slot_of(number + AHEAD);
    /* The ring does not stay in the caches, and the exchange below would wait for it. */
    drupe_prefetch_write((void *)soon);
    drupe_prefetch_write((void *)(soon + WORDS / 2));
    if (!slot_claim(slot, number)) return;
    bool moves = work->kind == DRUPE_WORK_COPY || work->kind == DRUPE_WORK_FILL;
    put(slot, END, number & BELOW);
    put(slot, SUBMITTED, queue->ticks ? queue->ticks : drupe_ticks());
    put(slot, PLACE, (uint64_t)flight->cell_number << 32 | flight->site);
    put(slot, WHERE,
        (uint64_t)queue->number << 32 | (uint64_t)queue->trace_device << 8 | unordered |
            (uint64_t)work->kind);
    put(slot, BYTES, moves ? work->bytes : used);
    put(slot, ITEMS, items_of(work));
    put(slot, STARTED, 0);
    put(slot, ENDED, 0);
    put_label(slot, flight->label, work);
    put(slot, SEQUENCE, number << 1);
    drupe_trace_made(number);
}

void drupe_trace_end(uint64_t number, drupe_trace_status status)
{
    drupe_trace_end_at(number, status, drupe_ticks());
}

void drupe_trace_end_at(uint64_t number, drupe_trace_status status, uint64_t ticks)
{
    uint64_t pending = number & BELOW, over = (uint64_t)status << STATUS_SHIFT | (ticks & BELOW);
    atomic_compare_exchange_strong_explicit(&slot_of(number)[END], &pending, over, memory_order_release,
                                            memory_order_relaxed);
}

void drupe_trace_prefetch(uint64_t number)
{
    drupe_prefetch_write((void *)slot_of(number));
}

void drupe_trace_times(uint64_t number, const drupe_times *times)
{
    _Atomic(uint64_t) *slot = slot_of(number);
    uint64_t mine = number << 1;
    if (!atomic_compare_exchange_strong_explicit(&slot[SEQUENCE], &mine, mine | 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    put(slot, STARTED, times->started);
    put(slot, ENDED, times->ended);
    put(slot, SEQUENCE, mine & ~UINT64_C(1));
}

/* --- Reading -------------------------------------------------------------------------------------------- */

/* The end's upper bits are those of the beginning, or one more: the counter of a machine that runs for most
 * of a year needs them. */
static uint64_t whole_end(uint64_t low, uint64_t begin)
{
    uint64_t end = (begin & ~BELOW) | low;
    return end < begin && begin - end > BELOW / 2 ? end + BELOW + 1 : end;
}

static bool read_one(uint64_t number, const drupe_ticks_scale *scale, drupe_trace_record *record)
{
    _Atomic(uint64_t) *slot = slot_of(number);
    if (get(slot, SEQUENCE) != number << 1) return false;
    uint64_t begin = get(slot, SUBMITTED), end = get(slot, END), place = get(slot, PLACE),
             where = get(slot, WHERE);
    uint32_t device = where >> 8 & 0xffffff;
    if ((where & KIND_BITS) == KIND_NONE) return false;
    *record = (drupe_trace_record){
        .id = number,
        .submitted_ns = drupe_ticks_ns_by(scale, begin),
        .seen_ns = end >> STATUS_SHIFT ? drupe_ticks_ns_by(scale, whole_end(end & BELOW, begin)) : 0,
        .started_ns = get(slot, STARTED),
        .ended_ns = get(slot, ENDED),
        .bytes = get(slot, BYTES),
        .items = get(slot, ITEMS),
        .queue = (uint32_t)(where >> 32),
        .cell = (uint32_t)(place >> 32),
        .site = (uint32_t)place,
        .kind = (uint8_t)where & KIND_BITS,
        .ordered = !(where & UNORDERED),
        .status = (uint8_t)(end >> STATUS_SHIFT),
    };
    uint64_t label[WORDS - LABEL];
    for (int i = LABEL; i < WORDS; i++) label[i - LABEL] = get(slot, i);
    memcpy(record->label, label, sizeof record->label);
    /* Counters of two processors may differ by a hair. */
    if (record->seen_ns && record->seen_ns < record->submitted_ns) record->seen_ns = record->submitted_ns;
    record->label[sizeof record->label - 1] = '\0';
    if (device < atomic_load(&ndevices)) memcpy(record->device, devices[device], sizeof record->device);
    return get(slot, SEQUENCE) == number << 1;
}

bool drupe_trace_one(uint64_t number, drupe_trace_record *record)
{
    drupe_ticks_scale scale = drupe_ticks_scale_now();
    return read_one(number, &scale, record);
}

bool drupe_trace_over(uint64_t id, bool *gone)
{
    _Atomic(uint64_t) *slot = slot_of(id);
    uint64_t sequence = get(slot, SEQUENCE);
    *gone = sequence >> 1 != id;
    /* While it is written, the end may be that of the record before. */
    return sequence == id << 1 && get(slot, END) >> STATUS_SHIFT;
}

uint64_t drupe_trace_latest(void)
{
    return drupe_flight_latest();
}

size_t drupe_trace_read(uint64_t after, drupe_trace_record *records, size_t capacity)
{
    uint64_t last = drupe_trace_latest(), number = after + 1;
    size_t count = 0;
    if (after >= last) return 0;
    if (last >= DRUPE_TRACE_RECORDS && number <= last - DRUPE_TRACE_RECORDS)
        number = last - DRUPE_TRACE_RECORDS + 1;
    drupe_ticks_scale scale = drupe_ticks_scale_now();
    for (; number <= last && count < capacity; number++) count += read_one(number, &scale, &records[count]);
    return count;
}

const char *drupe_trace_status_name(drupe_trace_status status)
{
    static const char *const names[DRUPE_TRACE_STATUS_COUNT] = {
        [DRUPE_TRACE_PENDING] = "pending", [DRUPE_TRACE_COMPLETE] = "complete",
        [DRUPE_TRACE_PASSED] = "passed",   [DRUPE_TRACE_FAILED] = "failed",
        [DRUPE_TRACE_SKIPPED] = "skipped", [DRUPE_TRACE_CANCELLED] = "cancelled",
    };
    return (unsigned)status < DRUPE_TRACE_STATUS_COUNT ? names[status] : "unknown";
}
