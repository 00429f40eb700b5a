/* The trace ring.
 *
 * A record is two cache lines of eight words each. Its slot follows from its number, so writers share only
 * the counter of submissions. Word SEQUENCE is a sequence lock: it holds twice the number, plus one while the
 * record is written, so a reader that loads the same even value before and after has read one record. A
 * writer that is a whole ring late finds a later number there and gives up.
 *
 * The second words lie in an array of their own. They hold the device's times, and a label that is neither
 * the name of a kernel nor core's own for host functions and barriers. Records without these do not touch it.
 *
 * The end is stored by the thread that finds it, later and on any thread, with a compare-and-swap of one word
 * that holds the number until then. So the first of two threads wins, and no thread ends the record of a
 * later lap.
 *
 * When work ran is stored as ticks by the thread of the engine that runs it, in a third array, because
 * neither the submitter nor the thread that finds the end should share that cache line. The protocol is the
 * same: RUNNER says whose the words are, and OVER holds the number until the end is known. Work that was done
 * during its submission has no entry there: it ran between its other two times. */
#include "core/trace/trace_room.h"
#include <stdio.h>
#include <string.h>

enum {
    SEQUENCE,
    END, /* status in the highest byte; below it the number while PENDING, then the ticks */
    SUBMITTED,
    ORIGIN, /* cell, site */
    WHERE,  /* queue; TIMED, name, device, kind */
    BYTES,
    ITEMS,
    STARTED, /* with TIMED */
    WORDS,
    /* Second words: */
    ENDED = 0, /* with TIMED */
    LABEL,     /* without a name */
    /* When it ran: */
    RUNNER = 0, /* the number, plus CLAIMED while its words are written */
    BEGAN,
    OVER, /* the number until then */
    RAN_WORDS = 4
};

#define LABEL_WORDS (WORDS - LABEL)
_Static_assert(sizeof(((drupe_trace_record *)0)->label) == LABEL_WORDS * sizeof(uint64_t), "a label fits");

#define DEVICES_MOST 256u
#define DEVICE_SHIFT 8
#define NAMES_MOST   1024u
#define NAME_SHIFT   16
#define NAME_BITS    0x7fffu
#define TIMED        (UINT64_C(1) << 31) /* the device's times are there */
#define STATUS_SHIFT 56
#define AT_ONCE      0x80u /* beside the status: it ran between SUBMITTED and END */
#define AHEAD        2     /* submissions */
#define READ_AHEAD   8
#define BELOW        ((UINT64_C(1) << STATUS_SHIFT) - 1)
#define KIND_BITS    0x3fu
#define KIND_NONE    0x3fu
#define TOLD         0x40u /* beside the kind: who runs it tells when */
#define UNORDERED    0x80u
#define CLAIMED      (UINT64_C(1) << 63)
#define RAN          (UINT64_C(1) << 63) /* OVER are ticks */

static _Alignas(64) _Atomic(uint64_t) ring[DRUPE_TRACE_RECORDS][WORDS];
static _Alignas(64) _Atomic(uint64_t) second[DRUPE_TRACE_RECORDS][WORDS];
static _Alignas(64) _Atomic(uint64_t) runs[DRUPE_TRACE_RECORDS][RAN_WORDS];

/* Filter strings, and names of kernels and such, by small numbers; 0 has none. Entries are written before
 * they are counted, and stay. */
static char devices[DEVICES_MOST][32];
static _Atomic(uint32_t) ndevices = 1;
static char kernels[NAMES_MOST][LABEL_WORDS * sizeof(uint64_t)];
static _Atomic(uint32_t) nnames = 1;
static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;

/* The number of a text, cut to `size`, in a table; 0: there is no room. */
static uint32_t number_of(char *table, size_t size, uint32_t most, _Atomic(uint32_t) *count, const char *text)
{
    pthread_mutex_lock(&tables_lock);
    uint32_t used = atomic_load(count), found = 0;
    for (uint32_t i = 1; i < used && !found; i++) {
        if (strncmp(table + i * size, text, size - 1) == 0) found = i;
    }
    if (!found && used < most) {
        snprintf(table + used * size, size, "%s", text);
        found = used;
        atomic_store(count, used + 1);
    }
    pthread_mutex_unlock(&tables_lock);
    return found;
}

const char drupe_label_host[] = "host function", drupe_label_barrier[] = "barrier",
           drupe_label_copy[] = "copy";
static uint32_t host_name, barrier_name, copy_name; /* known before the first device is */
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static void names_start(void)
{
    host_name = drupe_trace_name(drupe_label_host);
    barrier_name = drupe_trace_name(drupe_label_barrier);
    copy_name = drupe_trace_name(drupe_label_copy);
}

uint32_t drupe_trace_device(const char *filter)
{
    drupe_ticks_start();
    pthread_once(&names_once, names_start);
    return number_of(devices[0], sizeof devices[0], DEVICES_MOST, &ndevices, filter);
}

uint32_t drupe_trace_name(const char *name)
{
    return number_of(kernels[0], sizeof kernels[0], NAMES_MOST, &nnames, name);
}

/* Of what core itself names, else 0. */
static inline uint32_t own_name(const char *label)
{
    if (label == drupe_label_host) return host_name;
    if (label == drupe_label_copy) return copy_name;
    return label == drupe_label_barrier ? barrier_name : 0;
}

/* --- Writing -------------------------------------------------------------------------------------------- */

static _Atomic(uint64_t) *slot_of(uint64_t number)
{
    return ring[number % DRUPE_TRACE_RECORDS];
}

static _Atomic(uint64_t) *more_of(uint64_t number)
{
    return second[number % DRUPE_TRACE_RECORDS];
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

static void put_label(uint64_t number, const char *label)
{
    uint64_t words[LABEL_WORDS] = {0};
    size_t length = strnlen(label, sizeof words - 1);
    memcpy(words, label, length);
    for (size_t i = 0; i <= length / sizeof *words; i++) put(more_of(number), LABEL + (int)i, words[i]);
}

/* False when a later record is there, or somebody writes. */
static inline bool slot_claim(_Atomic(uint64_t) *slot, uint64_t number)
{
    uint64_t seen = atomic_load_explicit(&slot[SEQUENCE], memory_order_relaxed);
    if (seen & 1 || seen >> 1 >= number) return false;
    return atomic_compare_exchange_strong_explicit(&slot[SEQUENCE], &seen, number << 1 | 1,
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline uint64_t end_word(uint64_t status, uint64_t ticks)
{
    return status << STATUS_SHIFT | (ticks & BELOW);
}

void drupe_trace_skip(uint64_t number)
{
    _Atomic(uint64_t) *slot = slot_of(number);
    if (!slot_claim(slot, number)) return;
    put(slot, END, end_word(DRUPE_TRACE_COMPLETE, 0));
    put(slot, WHERE, KIND_NONE);
    put(slot, SEQUENCE, number << 1);
}

static inline uint64_t where_of(const drupe_trace_queue *queue, uint32_t name, const drupe_trace_work *work)
{
    return (uint64_t)queue->number << 32 | (uint64_t)name << NAME_SHIFT |
           (uint64_t)queue->device << DEVICE_SHIFT | (queue->unordered ? UNORDERED : 0) |
           (work->told ? TOLD : 0) | (uint64_t)work->kind;
}

/* A record whose word END is this one. */
static inline void put_record(const drupe_trace_queue *queue, const drupe_subject *what,
                              const drupe_trace_work *work, uint64_t end)
{
    uint64_t number = what->number;
    uint32_t name = work->name ? work->name : own_name(what->label);
    _Atomic(uint64_t) *slot = slot_of(number);
    /* The ring does not stay in the caches, and the exchange below would wait for it. */
    drupe_prefetch_write((void *)slot_of(number + AHEAD));
    if (!name) drupe_prefetch_write((void *)more_of(number + AHEAD));
    if (!slot_claim(slot, number)) return;
    put(slot, END, end);
    put(slot, SUBMITTED, work->ticks ? work->ticks : drupe_ticks());
    put(slot, ORIGIN, (uint64_t)what->cell_number << 32 | what->site);
    put(slot, WHERE, where_of(queue, name, work));
    put(slot, BYTES, work->bytes);
    put(slot, ITEMS, work->items);
    if (!name) put_label(number, what->label);
    put(slot, SEQUENCE, number << 1);
    drupe_trace_made(number);
}

void drupe_trace_begin(const drupe_trace_queue *queue, const drupe_subject *what,
                       const drupe_trace_work *work)
{
    put_record(queue, what, work, what->number & BELOW);
}

void drupe_trace_at_once(const drupe_trace_queue *queue, const drupe_subject *what,
                         const drupe_trace_work *work)
{
    put_record(queue, what, work, end_word((uint64_t)DRUPE_TRACE_COMPLETE | AT_ONCE, drupe_ticks()));
}

void drupe_trace_barrier(const drupe_trace_queue *queue, uint64_t number, uint32_t site, uint32_t cell)
{
    const drupe_trace_work barrier = {.kind = DRUPE_WORK_BARRIER};
    _Atomic(uint64_t) *slot = slot_of(number);
    drupe_prefetch_write((void *)slot_of(number + AHEAD));
    if (!slot_claim(slot, number)) return;
    uint64_t ticks = drupe_ticks();
    put(slot, END, end_word(DRUPE_TRACE_COMPLETE, ticks));
    put(slot, SUBMITTED, ticks);
    put(slot, ORIGIN, (uint64_t)cell << 32 | site);
    put(slot, WHERE, where_of(queue, barrier_name, &barrier));
    put(slot, BYTES, 0);
    put(slot, ITEMS, 0);
    put(slot, SEQUENCE, number << 1);
    drupe_trace_made(number);
}

static void put_end(uint64_t number, uint64_t status, uint64_t ticks)
{
    uint64_t pending = number & BELOW, over = end_word(status, ticks);
    atomic_compare_exchange_strong_explicit(&slot_of(number)[END], &pending, over, memory_order_release,
                                            memory_order_relaxed);
}

void drupe_trace_end_at(uint64_t number, drupe_trace_status status, uint64_t ticks)
{
    put_end(number, (uint64_t)status, ticks);
}

void drupe_trace_end(uint64_t number, drupe_trace_status status)
{
    put_end(number, (uint64_t)status, drupe_ticks());
}

void drupe_trace_end_at_once(uint64_t number)
{
    put_end(number, (uint64_t)DRUPE_TRACE_COMPLETE | AT_ONCE, drupe_ticks());
}

void drupe_core_began(uint64_t number)
{
    _Atomic(uint64_t) *run = runs[number % DRUPE_TRACE_RECORDS];
    uint64_t seen = atomic_load_explicit(&run[RUNNER], memory_order_relaxed);
    /* A later one is there, or another thread has begun with this one. */
    if (!number || (seen & ~CLAIMED) >= number || seen & CLAIMED) return;
    if (!atomic_compare_exchange_strong_explicit(&run[RUNNER], &seen, number | CLAIMED, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    put(run, BEGAN, drupe_ticks());
    put(run, OVER, number);
    put(run, RUNNER, number);
}

void drupe_core_ran(uint64_t number)
{
    uint64_t open = number;
    if (!number) return;
    atomic_compare_exchange_strong_explicit(&runs[number % DRUPE_TRACE_RECORDS][OVER], &open,
                                            drupe_ticks() | RAN, memory_order_release, memory_order_relaxed);
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
    put(more_of(number), ENDED, times->ended);
    put(slot, WHERE, get(slot, WHERE) | TIMED);
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

static void read_label(uint64_t number, uint64_t where, char *label)
{
    uint32_t name = (uint32_t)where >> NAME_SHIFT & NAME_BITS;
    if (name) {
        memcpy(label, kernels[name < atomic_load(&nnames) ? name : 0], sizeof kernels[0]);
        return;
    }
    for (size_t i = 0; i < LABEL_WORDS; i++) {
        uint64_t word = get(more_of(number), LABEL + (int)i);
        memcpy(label + i * sizeof word, &word, sizeof word);
    }
    label[LABEL_WORDS * sizeof(uint64_t) - 1] = '\0';
}

/* False: nobody has told that it began. `*over` 0: it goes on. */
static bool read_run(uint64_t number, const drupe_ticks_scale *scale, uint64_t *began, uint64_t *over)
{
    _Atomic(uint64_t) *run = runs[number % DRUPE_TRACE_RECORDS];
    if (get(run, RUNNER) != number) return false;
    uint64_t from = get(run, BEGAN), to = get(run, OVER);
    *began = drupe_ticks_ns_by(scale, from);
    *over = to & RAN ? drupe_ticks_ns_by(scale, to & ~RAN) : 0;
    return get(run, RUNNER) == number;
}

/* When it ran: as who ran it has told, or the device. */
static void read_times(uint64_t number, uint64_t where, bool at_once, const drupe_ticks_scale *scale,
                       drupe_trace_record *record)
{
    uint64_t began = 0, over = 0;
    record->told = where & TOLD || at_once;
    /* A profiling queue shows what its events say. */
    record->own_clock = (where & TIMED) != 0;
    if (!at_once && !record->own_clock) (void)read_run(number, scale, &began, &over);
    record->started_ns = at_once ? record->submitted_ns : began;
    record->ended_ns = at_once ? record->seen_ns : over;
    if (!record->own_clock) return;
    record->started_ns = get(slot_of(number), STARTED);
    record->ended_ns = get(more_of(number), ENDED);
}

/* Every member is set by itself: to clear a record first takes as long as to read it. */
static bool read_one(uint64_t number, const drupe_ticks_scale *scale, drupe_trace_record *record)
{
    _Atomic(uint64_t) *slot = slot_of(number);
    if (get(slot, SEQUENCE) != number << 1) return false;
    uint64_t begin = get(slot, SUBMITTED), end = get(slot, END), origin = get(slot, ORIGIN),
             where = get(slot, WHERE);
    uint32_t device = (uint32_t)where >> DEVICE_SHIFT & (DEVICES_MOST - 1);
    if ((where & KIND_BITS) == KIND_NONE) return false;
    record->id = number;
    record->submitted_ns = drupe_ticks_ns_by(scale, begin);
    record->seen_ns = end >> STATUS_SHIFT ? drupe_ticks_ns_by(scale, whole_end(end & BELOW, begin)) : 0;
    /* Counters of two processors may differ by a hair. */
    if (record->seen_ns && record->seen_ns < record->submitted_ns) record->seen_ns = record->submitted_ns;
    read_times(number, where, end >> STATUS_SHIFT & AT_ONCE, scale, record);
    record->bytes = get(slot, BYTES);
    record->items = get(slot, ITEMS);
    record->queue = (uint32_t)(where >> 32);
    record->cell = (uint32_t)(origin >> 32);
    record->site = (uint32_t)origin;
    record->kind = (uint8_t)where & KIND_BITS;
    record->status = (uint8_t)(end >> STATUS_SHIFT & (AT_ONCE - 1));
    record->ordered = !(where & UNORDERED);
    memcpy(record->device, devices[device < atomic_load(&ndevices) ? device : 0], sizeof record->device);
    read_label(number, where, record->label);
    return get(slot, SEQUENCE) == number << 1;
}

bool drupe_trace_one(uint64_t number, drupe_trace_record *record)
{
    drupe_ticks_scale scale = drupe_ticks_scale_now();
    return read_one(number, &scale, record);
}

bool drupe_trace_ran(uint64_t id, uint64_t *began_ns, uint64_t *over_ns)
{
    drupe_ticks_scale scale = drupe_ticks_scale_now();
    return read_run(id, &scale, began_ns, over_ns);
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
    return drupe_inflight_latest();
}

size_t drupe_trace_read(uint64_t after, drupe_trace_record *records, size_t capacity)
{
    uint64_t last = drupe_trace_latest(), number = after + 1;
    size_t count = 0;
    if (after >= last) return 0;
    if (last >= DRUPE_TRACE_RECORDS && number <= last - DRUPE_TRACE_RECORDS)
        number = last - DRUPE_TRACE_RECORDS + 1;
    drupe_ticks_scale scale = drupe_ticks_scale_now();
    for (; number <= last && count < capacity; number++) {
        __builtin_prefetch((const void *)slot_of(number + READ_AHEAD));
        __builtin_prefetch((const void *)runs[(number + READ_AHEAD) % DRUPE_TRACE_RECORDS]);
        count += read_one(number, &scale, &records[count]);
    }
    return count;
}

const char *drupe_trace_status_name(drupe_trace_status status)
{
    static const char *const names[DRUPE_TRACE_STATUS_COUNT] = {
        [DRUPE_TRACE_PENDING] = "pending", [DRUPE_TRACE_COMPLETE] = "complete",
        [DRUPE_TRACE_PASSED] = "passed",   [DRUPE_TRACE_FAILED] = "failed",
        [DRUPE_TRACE_SKIPPED] = "skipped", [DRUPE_TRACE_CANCELLED] = "cancelled",
        [DRUPE_TRACE_UNKNOWN] = "unknown",
    };
    return (unsigned)status < DRUPE_TRACE_STATUS_COUNT ? names[status] : "unknown";
}
