/* Races: which submissions are known to be over before which, and what they touch.
 *
 * The last WINDOW submissions of the process stand in a ring, by their number. Each knows, as a set of places
 * in the ring, what is over before it starts: what it waits for, what its queue puts before it, and what was
 * over before those. Only what the program asked for counts, never what happened to be over already, so that
 * a missing wait is found however the devices are timed. What the host has waited for is over for everything
 * that comes after.
 *
 * A finding has to be true: what a kernel touches beyond its first elements is a guess, so two guesses that
 * begin at different addresses are compared as far as one element per work-item goes and no further. */
#include "core/check/check_room.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 1024u
#define WORDS  (WINDOW / 64)
#define RANGES 12

typedef struct range {
    uintptr_t from, to;
    bool writes, host; /* host: not the engine's memory */
} range;

typedef struct record {
    uint64_t number; /* 0: none */
    const drupe_queue *queue;
    bool ordered, barrier;
    bool over; /* the host knows */
    bool kept; /* its host memory lives as long as it keeps it alive, and may be another's then */
    drupe_check_place location;
    size_t nranges;
    range ranges[RANGES];
    uint64_t before[WORDS];
} record;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static record *ring; /* WINDOW of them; lock */
static _Atomic(uint64_t) findings;

/* --- Places ----------------------------------------------------------------------------------------------
 */

#define TEXT_SIZE     900 /* of a finding, */
#define LOCATION_SIZE 150 /* and what each place may have of it */

void drupe_check_here(drupe_check_place *location, const char *label)
{
    location->site = drupe_core_site();
    location->cell = drupe_core_cell_here();
    snprintf(location->label, sizeof location->label, "%s", label);
}

static void append_location(drupe_error *error, const char *title, const drupe_check_place *location)
{
    char where[100] = "";
    size_t length = strlen(error->text);
    if (location) drupe_trace_place(location->site, location->cell, where, sizeof where);
    if (!where[0]) return;
    snprintf(error->text + length, sizeof error->text - length, " %s: '%.20s', %s.", title, location->label,
             where);
}

/* --- Findings ------------------------------------------------------------------------------------------- */

drupe_status drupe_check_found(bool race, const drupe_check_place *here, const drupe_check_place *there,
                               const char *format, ...)
{
    va_list list;
    drupe_error error = {.status = DRUPE_E_CHECK};
    va_start(list, format);
    vsnprintf(error.text, TEXT_SIZE - 2 * LOCATION_SIZE, format, list);
    va_end(list);
    append_location(&error, race ? "This one" : "The work", here);
    append_location(&error, race ? "The other" : "The memory", there);
    drupe_check_count();
    return drupe_error_restore(&error);
}

void drupe_check_count(void)
{
    atomic_fetch_add(&findings, 1);
}

uint64_t drupe_check_findings(void)
{
    return atomic_load(&findings);
}

/* --- The ring ------------------------------------------------------------------------------------------- */

static bool has(const uint64_t *set, size_t slot)
{
    return set[slot / 64] >> slot % 64 & 1;
}

static record *find(uint64_t number)
{
    if (!ring || !number) return NULL;
    record *found = &ring[number % WINDOW];
    return found->number == number ? found : NULL;
}

static void add_before(uint64_t *set, const record *earlier)
{
    size_t slot = earlier->number % WINDOW;
    set[slot / 64] |= UINT64_C(1) << slot % 64;
    for (size_t w = 0; w < WORDS; w++) set[w] |= earlier->before[w];
}

/* Put it in the place of its number; nobody stands behind what was there before. */
static record *insert_record(const record *fresh)
{
    size_t slot = fresh->number % WINDOW;
    for (size_t i = 0; i < WINDOW; i++) ring[i].before[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    ring[slot] = *fresh;
    return &ring[slot];
}

static void set_over(record *one, bool all)
{
    one->over = true;
    for (size_t i = 0; all && i < WINDOW; i++) {
        if (has(one->before, i)) ring[i].over = true;
    }
}

/* --- What a submission touches -------------------------------------------------------------------------- */

static void touch(record *one, const void *pointer, size_t bytes, bool writes)
{
    uintptr_t from = (uintptr_t)pointer;
    if (one->nranges == RANGES || bytes == 0) return;
    drupe_memory *memory = NULL;
    bool ours = drupe_registry_find(pointer, 0, "check", &memory) == DRUPE_OK && memory;
    drupe_memory_release(memory);
    one->ranges[one->nranges++] = (range){from, from + bytes, writes, !ours};
}

static drupe_status misaligned(const record *one, size_t index, const drupe_arg_info *info,
                               const char *pointer)
{
    return drupe_check_found(
        false, &one->location, NULL,
        "Argument %zu of '%s' (%s %s) is the address %p, which is no multiple of the %zu bytes of "
        "what it points to: such accesses fail on some devices and are slow on others.",
        index, one->location.label, info->type_name, info->name, (const void *)pointer,
        drupe_args_element(info));
}

/* One element per work-item, as far as the allocation goes. */
static drupe_status touch_argument(record *one, const drupe_work *work, size_t index)
{
    const drupe_arg_info *info = work->kernel->args ? &work->kernel->args[index] : NULL;
    char *pointer;
    drupe_memory *memory;
    memcpy(&pointer, work->args[index].value, sizeof pointer);
    if (!pointer) return DRUPE_OK;
    size_t size = info ? drupe_args_element(info) : 0, items = 1;
    if (size && (uintptr_t)pointer % size) return misaligned(one, index, info, pointer);
    DRUPE_TRY(drupe_registry_find(pointer, 0, one->location.label, &memory));
    assert(memory); /* the submission keeps it where it is */
    size_t rest = memory->size - (size_t)(pointer - (char *)memory->base), most = rest;
    for (uint32_t d = 0; d < work->range->dims; d++)
        if (!drupe_size_times(items, work->range->global[d], &items)) items = DRUPE_SIZE_MOST;
    if (size && items < rest / size) most = items * size;
    drupe_memory_release(memory);
    touch(one, pointer, most, !(info && info->reads_only));
    return DRUPE_OK;
}

/* Whether what the work says it touches is there. */
static drupe_status inside(const record *one, const drupe_access *access)
{
    drupe_memory *memory;
    drupe_status status = drupe_registry_find(access->pointer, access->bytes, one->location.label, &memory);
    if (status == DRUPE_OK) drupe_memory_release(memory);
    if (status != DRUPE_E_OUT_OF_RANGE && status != DRUPE_E_INVALID) return status;
    drupe_error error = *drupe_error_last();
    return drupe_check_found(false, &one->location, NULL, "Out of bounds: %.800s", error.text);
}

static drupe_status touch_all(record *one, const drupe_submit_info *info, const drupe_work *work)
{
    if (work->kind == DRUPE_WORK_COPY) {
        touch(one, work->src, work->bytes, false);
        touch(one, work->dst, work->bytes, true);
    } else if (work->kind == DRUPE_WORK_FILL) {
        touch(one, work->dst, work->bytes, true);
    } else if (work->kind == DRUPE_WORK_KERNEL && info->naccesses == 0) {
        for (size_t i = 0; i < work->nargs; i++) {
            if (work->args[i].kind == DRUPE_ARG_POINTER) DRUPE_TRY(touch_argument(one, work, i));
        }
    }
    for (size_t i = 0; i < info->naccesses; i++) {
        const drupe_access *access = &info->accesses[i];
        if (access->bytes) DRUPE_TRY(inside(one, access));
        touch(one, access->pointer, access->bytes, access->writes);
    }
    return DRUPE_OK;
}

/* --- Order ---------------------------------------------------------------------------------------------- */

static void order(record *one, const drupe_submit_info *info)
{
    for (size_t i = 0; i < WINDOW; i++) {
        const record *earlier = &ring[i];
        if (earlier == one || !earlier->number || earlier->queue != one->queue) continue;
        if (one->ordered || one->barrier || earlier->barrier) add_before(one->before, earlier);
    }
    for (size_t i = 0; i < info->nwaits; i++) {
        const record *wait = info->waits[i] ? find(info->waits[i]->number) : NULL;
        if (wait && wait != one) add_before(one->before, wait);
    }
}

/* One that was forgotten is empty, and nowhere. */
static bool meet(const range *one, uintptr_t from, uintptr_t to)
{
    return one->from < one->to && from < to && one->from < to && from < one->to;
}

/* The first range of `a` that collides with one of `b`, or NULL. */
static const range *collision(const record *a, const record *b, const range **other)
{
    for (size_t i = 0; i < a->nranges; i++) {
        for (size_t k = 0; k < b->nranges; k++) {
            const range *x = &a->ranges[i], *y = &b->ranges[k];
            if (!meet(x, y->from, y->to) || !(x->writes || y->writes)) continue;
            *other = y;
            return x;
        }
    }
    return NULL;
}

static drupe_status race(const record *one, const record *other, const range *mine, const range *theirs)
{
    uintptr_t from = mine->from > theirs->from ? mine->from : theirs->from;
    uintptr_t to = mine->to < theirs->to ? mine->to : theirs->to;
    bool same = one->queue == other->queue;
    return drupe_check_found(true, &one->location, &other->location,
                             "Race: '%s' on %s would %s %zu bytes at %p that '%s' (submission %llu) on %s "
                             "%s, and nothing orders the two%s. "
                             "Have it wait for that submission's event, or put both on one in-order queue.",
                             one->location.label, one->location.device, mine->writes ? "write" : "read",
                             (size_t)(to - from), (void *)from, other->location.label,
                             (unsigned long long)other->number, other->location.device,
                             theirs->writes ? "may still be writing" : "may still be reading",
                             same ? ": the queue is out-of-order" : "");
}

/* The first submission that collides with `one` and that nothing puts before it, or NULL. */
static const record *find_race(const record *one, const range **mine, const range **theirs)
{
    for (size_t i = 0; i < WINDOW; i++) {
        const record *other = &ring[i];
        if (other == one || !other->number || other->over || has(one->before, i)) continue;
        *mine = collision(one, other, theirs);
        if (*mine) return other;
    }
    return NULL;
}

static drupe_status check_locked(const record *fresh, const drupe_submit_info *info)
{
    record *one = insert_record(fresh);
    order(one, info);
    const range *mine, *theirs;
    const record *other = find_race(one, &mine, &theirs);
    if (!other) return DRUPE_OK;
    one->number = 0;
    return race(one, other, mine, theirs);
}

static drupe_status check_submission(const drupe_submit_info *info, const drupe_inflight *entry,
                                     const drupe_work *work)
{
    const drupe_queue *queue = info->queue;
    record fresh = {.number = entry->what.number, .queue = queue};
    fresh.ordered = !(queue->base.flags & DRUPE_QUEUE_OUT_OF_ORDER);
    fresh.barrier = drupe_submit_info_is_barrier(info, work);
    fresh.kept = info->kept;
    fresh.location.site = entry->what.site;
    fresh.location.cell = entry->what.cell_number;
    snprintf(fresh.location.label, sizeof fresh.location.label, "%s", entry->what.label);
    snprintf(fresh.location.device, sizeof fresh.location.device, "%s", queue->base.device->filter);
    /* Looking memory up may drop its last reference, which comes back here. */
    DRUPE_TRY(touch_all(&fresh, info, work));
    pthread_mutex_lock(&lock);
    drupe_status status = ring ? check_locked(&fresh, info) : DRUPE_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

/* --- What is over --------------------------------------------------------------------------------------- */

static void end_of(uint64_t number, bool complete)
{
    pthread_mutex_lock(&lock);
    record *one = find(number);
    if (one) set_over(one, complete);
    pthread_mutex_unlock(&lock);
}

static void check_event(const drupe_event *event)
{
    end_of(event->number, drupe_event_phase(event) == DRUPE_PHASE_COMPLETE);
}

static void check_queue(const drupe_queue *queue, uint64_t number)
{
    pthread_mutex_lock(&lock);
    /* The latest first: on an in-order queue it knows of all the others. */
    for (uint64_t n = number; n && number - n < WINDOW; n--) {
        record *one = find(n);
        if (one && one->queue == queue && !one->over) set_over(one, true);
    }
    pthread_mutex_unlock(&lock);
}

static void check_closed(const drupe_queue *queue)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; ring && i < WINDOW; i++) {
        if (ring[i].queue == queue) ring[i].queue = NULL;
    }
    pthread_mutex_unlock(&lock);
}

static void check_skipped(uint64_t number)
{
    end_of(number, false);
}

static void check_dropped(uint64_t number)
{
    pthread_mutex_lock(&lock);
    record *one = find(number);
    for (size_t k = 0; one && one->kept && k < one->nranges; k++) {
        if (one->ranges[k].host) one->ranges[k].to = one->ranges[k].from;
    }
    pthread_mutex_unlock(&lock);
}

void drupe_check_forget(const void *base, size_t bytes)
{
    uintptr_t from = (uintptr_t)base, to = from + bytes;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; ring && i < WINDOW; i++) {
        for (size_t k = 0; k < ring[i].nranges; k++) {
            range *one = &ring[i].ranges[k];
            if (meet(one, from, to)) one->to = one->from;
        }
    }
    pthread_mutex_unlock(&lock);
}

bool drupe_check_writer(const void *base, size_t bytes, drupe_check_place *location)
{
    uintptr_t from = (uintptr_t)base, to = from + bytes;
    const record *latest = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; ring && i < WINDOW; i++) {
        for (size_t k = 0; k < ring[i].nranges; k++) {
            const range *one = &ring[i].ranges[k];
            if (!one->writes || !meet(one, from, to)) continue;
            if (!latest || ring[i].number > latest->number) latest = &ring[i];
        }
    }
    if (latest) *location = latest->location;
    pthread_mutex_unlock(&lock);
    return latest != NULL;
}

/* --- The host ------------------------------------------------------------------------------------------- */

static drupe_status check_host_locked(const record *host)
{
    const range *mine, *theirs;
    const record *other = find_race(host, &mine, &theirs);
    if (!other) return DRUPE_OK;
    return drupe_check_found(
        true, &host->location, &other->location,
        "Race: the host would %s memory that '%s' (submission %llu) on %s %s. Wait for its "
        "event or its queue first.",
        mine->writes ? "write" : "read", other->location.label, (unsigned long long)other->number,
        other->location.device, theirs->writes ? "may still be writing" : "may still be reading");
}

drupe_status drupe_check_host(const void *pointer, size_t bytes, bool writes)
{
    if (!drupe_check_on()) return DRUPE_OK;
    record host = {.number = 0};
    drupe_check_here(&host.location, "host");
    touch(&host, pointer, bytes, writes);
    pthread_mutex_lock(&lock);
    drupe_status status = ring ? check_host_locked(&host) : DRUPE_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

/* --- On and off ----------------------------------------------------------------------------------------- */

static const drupe_checker checker = {check_submission,    check_event,        check_queue,
                                      check_closed,        check_skipped,      check_dropped,
                                      drupe_redzone_check, drupe_redzone_fault};

void drupe_check_begin(void)
{
    atomic_store(&drupe_redzone_ops_now, &drupe_redzones);
    atomic_store(&drupe_checker_now, &checker);
    pthread_mutex_lock(&lock);
    /* Without memory for the ring there is no order to look at; everything else is still checked. */
    if (atomic_load(&drupe_check_depth) == 0) ring = calloc(WINDOW, sizeof *ring);
    atomic_fetch_add(&drupe_check_depth, 1);
    pthread_mutex_unlock(&lock);
}

void drupe_check_end(void)
{
    pthread_mutex_lock(&lock);
    unsigned depth = atomic_load(&drupe_check_depth);
    if (depth) atomic_store(&drupe_check_depth, depth - 1);
    if (depth == 1) {
        free(ring);
        ring = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (depth == 1) drupe_redzone_release(NULL);
}

bool drupe_check_active(void)
{
    return drupe_check_on();
}
