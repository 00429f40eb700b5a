/* The records of what a queue has submitted: what keeps it alive, and when it is over.
 *
 * In-order completion does most of the work: a completed event proves everything before it. A failed one
 * proves nothing about silent work before it, since drivers may fail a command before its turn comes.
 *
 * Work with an event is asked for its own, since drivers do not stop a queue because a command of it failed.
 * A kernel's fault on a GPU does stop it: there one that is complete answers for those before it, which are
 * not asked. To ask for one event takes NVIDIA's driver 1.5 us, a fifth of the whole submission. */
#include "core/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_MOST 128u /* flights among which a complete one is looked for */

_Atomic(uint64_t) drupe_flight_last;

uint64_t drupe_flight_next(void)
{
    /* Ordered before the look at the alarm in trace_look.c. */
    return atomic_fetch_add(&drupe_flight_last, 1) + 1;
}

/* What was used last comes first: it is in the caches. Nothing is walked over to join the lists. */
static void fetch_returned(drupe_queue *queue)
{
    drupe_flight *list = atomic_exchange_explicit(&queue->returned, NULL, memory_order_acquire);
    if (queue->spare) {
        queue->spare->older_spares = queue->older_spares;
        queue->older_spares = queue->spare;
    }
    queue->spare = list;
}

/* Out of the list, or NULL. */
static drupe_flight *pop_spare(drupe_queue *queue)
{
    drupe_flight *spare = queue->spare;
    if (!spare) return NULL;
    drupe_flight *after = spare->next;
    if (!after && queue->older_spares) {
        after = queue->older_spares;
        queue->older_spares = after->older_spares;
    }
    queue->spare = after;
    return spare;
}

void drupe_flight_forget_spares(drupe_queue *queue)
{
    if (atomic_load(&queue->returned)) fetch_returned(queue);
    for (drupe_flight *spare; (spare = pop_spare(queue));) free(spare);
}

/* What a kernel's launch writes to. A driver may be many submissions behind: then the caches have lost it. */
static inline void prefetch_record(drupe_flight *flight)
{
    char *begin = (char *)flight;
    drupe_prefetch_write(begin);
    drupe_prefetch_write(begin + 64);
    drupe_prefetch_write(&flight->brief.global);
    drupe_prefetch_write(&flight->brief.bits);
    drupe_prefetch_write(flight->refs_inline);
}

drupe_status drupe_flight_new(drupe_queue *queue, drupe_flight **flight)
{
    /* Only the holder of the lock takes records. */
    if (atomic_load_explicit(&queue->returned, memory_order_relaxed)) fetch_returned(queue);
    drupe_flight *fresh = pop_spare(queue);
    if (fresh) {
        if (queue->spare) prefetch_record(queue->spare);
    } else {
        fresh = aligned_alloc(64, sizeof *fresh);
        *flight = NULL;
        if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for a submission.");
        fresh->refs = fresh->refs_inline;
        fresh->refs_capacity = DRUPE_FLIGHT_REFS;
        fresh->waits = fresh->waits_inline;
        fresh->waits_capacity = DRUPE_FLIGHT_WAITS;
    }
    fresh->next = NULL;
    fresh->event = NULL;
    fresh->number = drupe_flight_next();
    fresh->cell = NULL;
    fresh->label = "work";
    fresh->site = fresh->cell_number = 0;
    fresh->brief.kind = DRUPE_WORK_BARRIER;
    fresh->held = fresh->fallible = fresh->early = fresh->done = fresh->passed = fresh->event_passed = false;
    fresh->nrefs = fresh->nwaits = 0;
    atomic_store_explicit(&fresh->written, 0, memory_order_relaxed);
    fresh->replaced = 0;
    fresh->doom = NULL;
    fresh->work_copy = NULL;
    fresh->marker = NULL;
    *flight = fresh;
    return DRUPE_OK;
}

/* Room for `count` elements of `size` bytes; the first `inlined` live in the record itself. */
static void *larger(void *old, void *inlined, size_t count, size_t size)
{
    if (old != inlined) free(old);
    return malloc(count * size);
}

static drupe_status make_room(drupe_flight *flight, size_t nrefs, size_t nwaits)
{
    if (nrefs > flight->refs_capacity) {
        flight->refs = larger(flight->refs, flight->refs_inline, nrefs, sizeof *flight->refs);
        flight->refs_capacity = flight->refs ? (uint32_t)nrefs : 0;
    }
    if (nwaits > flight->waits_capacity) {
        flight->waits = larger(flight->waits, flight->waits_inline, nwaits, sizeof *flight->waits);
        flight->waits_capacity = flight->waits ? (uint32_t)nwaits : 0;
    }
    if (flight->refs && flight->waits && nrefs + nwaits <= UINT32_MAX) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for a submission with %zu objects.",
                           nrefs + nwaits);
}

drupe_status drupe_flight_load(drupe_flight *flight, const drupe_ticket *ticket, size_t more)
{
    DRUPE_TRY(make_room(flight, ticket->nrefs, ticket->nwaits + more));
    for (size_t i = 0; i < ticket->nwaits; i++) {
        drupe_event *wait = ticket->waits[i];
        if (!wait || drupe_event_phase(wait) == DRUPE_PHASE_COMPLETE) continue;
        flight->waits[flight->nwaits++] = drupe_event_retain(wait);
    }
    if (ticket->nrefs) memcpy(flight->refs, ticket->refs, ticket->nrefs * sizeof *flight->refs);
    flight->nrefs = (uint32_t)ticket->nrefs;
    atomic_store_explicit(&flight->written, ticket->written, memory_order_relaxed);
    flight->replaced = ticket->replaced;
    flight->doom = ticket->doom;
    flight->label = ticket->label;
    flight->site = ticket->site;
    if (!ticket->label_static) {
        snprintf(flight->label_copy, sizeof flight->label_copy, "%s", ticket->label);
        flight->label = flight->label_copy;
    }
    return DRUPE_OK;
}

bool drupe_flight_reuse(drupe_queue *queue, drupe_flight *flight)
{
    bool empty = flight->nrefs + flight->nwaits == 0 && !flight->cell && !flight->event;
    bool small = flight->refs == flight->refs_inline && flight->waits == flight->waits_inline;
    if (!flight->done || !empty || !small || drupe_check_on()) return false;
    flight->next = queue->spare;
    queue->spare = flight;
    return true;
}

void drupe_flight_add_wait(drupe_flight *flight, drupe_event *wait)
{
    flight->waits[flight->nwaits++] = drupe_event_retain(wait);
}

void drupe_flight_append(drupe_queue *queue, drupe_flight *flight)
{
    if (queue->tail)
        queue->tail->next = flight;
    else
        queue->head = flight;
    queue->tail = flight;
    drupe_queue_count(queue, 1);
}

/* --- Copies for held work ------------------------------------------------------------------------------- */

static size_t arg_size(const drupe_arg *arg)
{
    if (arg->kind == DRUPE_ARG_LOCAL) return 0;
    return arg->kind == DRUPE_ARG_POINTER ? sizeof(void *) : arg->size;
}

/* One piece of memory: range, argument table, values. */
static drupe_status copy_kernel(drupe_flight *flight, const drupe_work *work)
{
    size_t table = drupe_round16(sizeof(drupe_range)),
           values = table + drupe_round16(work->nargs * sizeof(drupe_arg));
    size_t size = values;
    for (size_t i = 0; i < work->nargs; i++) size += drupe_round16(arg_size(&work->args[i]));
    char *copy = malloc(size);
    if (!copy) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to hold a kernel's arguments.");
    memcpy(copy, work->range, sizeof(drupe_range));
    drupe_arg *args = (drupe_arg *)(void *)(copy + table);
    for (size_t i = 0; i < work->nargs; i++) {
        args[i] = work->args[i];
        if (arg_size(&args[i]) == 0) continue;
        memcpy(copy + values, args[i].value, arg_size(&args[i]));
        args[i].value = copy + values;
        values += drupe_round16(arg_size(&args[i]));
    }
    flight->work_copy = copy;
    flight->work.words = NULL;
    flight->work.range = (drupe_range *)(void *)copy;
    flight->work.args = args;
    return DRUPE_OK;
}

drupe_status drupe_flight_copy_work(drupe_flight *flight, const drupe_work *work)
{
    flight->work = *work;
    if (work->kind == DRUPE_WORK_KERNEL) return copy_kernel(flight, work);
    if (work->kind != DRUPE_WORK_FILL) return DRUPE_OK;
    flight->work_copy = malloc(work->pattern_size);
    if (!flight->work_copy)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to hold a fill's pattern.");
    memcpy(flight->work_copy, work->src, work->pattern_size);
    flight->work.src = flight->work_copy;
    return DRUPE_OK;
}

/* --- The end -------------------------------------------------------------------------------------------- */

bool drupe_queue_leaps(const drupe_queue *queue)
{
    const drupe_backend *backend = queue->slot->backend;
    /* Layers may fail what they like, and times are asked of each event as it ends. */
    bool plain = backend == queue->slot->base && !(queue->flags & DRUPE_QUEUE_PROFILING);
    return plain && backend->gpu_faults_last && queue->device->type == DRUPE_DEVICE_GPU &&
           !drupe_queue_unordered(queue);
}

/* Nothing but a fault can fail it now. */
static bool answered_for(const drupe_flight *flight)
{
    uint8_t kind = flight->brief.kind;
    if (flight->nwaits || flight->fallible) return false;
    return kind == DRUPE_WORK_KERNEL || kind == DRUPE_WORK_BARRIER || kind == DRUPE_WORK_MARK;
}

/* Who may answer for `flight`: one further on that is known to be complete, unless the look is `hasty`, or
 * else the last with an event among the next `most`. */
static drupe_flight *ahead(const drupe_queue *queue, drupe_flight *flight, unsigned most, bool hasty)
{
    const unsigned known = hasty ? 0 : KNOWN_MOST;
    drupe_flight *last = flight, *complete = NULL;
    for (unsigned i = 0; (i < most || i < known) && flight; i++, flight = flight->next) {
        if (flight == queue->held || !answered_for(flight)) break;
        if (flight->event && i < most) last = flight;
        if (flight->event && i < known && drupe_event_phase(flight->event) == DRUPE_PHASE_COMPLETE)
            complete = flight;
    }
    return complete ? complete : last;
}

drupe_phase drupe_flight_poll(const drupe_queue *queue, drupe_flight *flight, drupe_asking *asking)
{
    drupe_phase phase = drupe_event_phase(flight->event);
    if (phase != DRUPE_PHASE_NATIVE) return phase;
    uint64_t *ticks = asking->ticks;
    drupe_flight *target = flight;
    if (queue->leaps) target = ahead(queue, flight, asking->span, asking->hasty);
    if (target == flight) return drupe_event_poll_at(flight->event, ticks);
    if (!drupe_event_proves(target->event, ticks)) {
        asking->span /= 2;
        return asking->hasty ? phase : drupe_event_poll_at(flight->event, ticks);
    }
    if (!*ticks) *ticks = drupe_ticks();
    for (drupe_flight *at = flight; at != target; at = at->next) {
        if (at->event) drupe_event_complete_at(at->event, DRUPE_PHASE_NATIVE, *ticks);
    }
    return drupe_event_phase(flight->event);
}

/* Silent work is proven by an event behind it: until the first of these is over there is nothing to find. */
static bool all_unproven(const drupe_queue *queue, drupe_asking *asking)
{
    const drupe_flight *first = drupe_flight_unlooked(queue);
    if (!first || first->event || first->number <= queue->proven) return false;
    if (queue->unmarked >= queue->flights) return true;
    return queue->gate && !drupe_phase_over(drupe_flight_poll(queue, queue->gate, asking));
}

/* The last flight of the finished beginning, or NULL; looking at `most` that were not. `gap`: silent work
 * that nothing has proven yet. */
static drupe_flight *finished_until(drupe_queue *queue, size_t most, bool hasty)
{
    drupe_flight *cut = queue->looked, *flight = drupe_flight_unlooked(queue);
    drupe_asking asking = {.span = DRUPE_FLIGHT_SPAN, .hasty = hasty, .ticks = &queue->ticks};
    bool gap = false;
    if (all_unproven(queue, &asking)) return cut;
    queue->gate = NULL;
    for (; flight && flight != queue->held && most; flight = flight->next, most--) {
        if (!flight->event) {
            if (flight->number <= queue->proven)
                cut = flight;
            else
                gap = true;
            continue;
        }
        if (flight->next && flight->next->event) {
            drupe_event_prefetch(flight->next->event);
            drupe_trace_prefetch(flight->next->number);
        }
        drupe_phase phase = drupe_flight_poll(queue, flight, &asking);
        if (!drupe_phase_over(phase) || flight->event->abandoned) {
            queue->gate = flight;
            break;
        }
        if (phase == DRUPE_PHASE_COMPLETE || flight->number <= queue->proven) gap = false;
        if (!gap) cut = flight;
    }
    return cut;
}

drupe_flight *drupe_flight_reap(drupe_queue *queue, size_t most, bool hasty)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_reap(queue, queue->flights);
    queue->ticks = 0;
    drupe_flight *cut = finished_until(queue, most, hasty), *list = queue->head;
    if (!cut) return NULL;
    drupe_marks_settle_locked(queue);
    if (!queue->ticks) queue->ticks = drupe_ticks();
    uint64_t now = queue->ticks;
    for (drupe_flight *flight = list;; flight = flight->next) {
        if (flight->event && flight->event == queue->guard) queue->guard = NULL;
        if (flight->event && flight->event == queue->fetch) queue->fetch = NULL;
        if (!flight->event) drupe_trace_end_at(flight->number, DRUPE_TRACE_PASSED, now);
        drupe_queue_count(queue, -1);
        if (--most == 0) cut = flight;
        if (flight == queue->looked) queue->looked = NULL;
        if (flight == cut) break;
    }
    queue->head = cut->next;
    if (!queue->head) {
        queue->tail = NULL;
        queue->unmarked = queue->unmarked_bytes = 0;
    }
    cut->next = NULL;
    return list;
}

bool drupe_flight_look(drupe_queue *queue, size_t most)
{
    queue->ticks = 0;
    drupe_flight *flight = drupe_flight_unlooked(queue), *cut = finished_until(queue, most, false);
    if (cut == queue->looked) return false;
    uint64_t now = drupe_ticks();
    size_t count = 1;
    for (;; flight = flight->next, count++) {
        if (!flight->event) drupe_trace_end_at(flight->number, DRUPE_TRACE_PASSED, now);
        if (flight == cut) break;
    }
    queue->looked = cut;
    return count > most / 2; /* the last ones may not be proven yet */
}

void drupe_keeps_drop(const drupe_keep *keeps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keeps[i].release) keeps[i].release(keeps[i].object);
    }
}

static void drop_one(drupe_flight *flight, drupe_event_bunch *events)
{
    for (size_t i = 0; i < flight->nwaits; i++) drupe_event_release(flight->waits[i]);
    if (!flight->passed) drupe_keeps_drop(flight->refs, flight->nrefs);
    drupe_event_release(flight->marker);
    if (!flight->event_passed) drupe_event_release_to(flight->event, events);
    drupe_core_cell_release(flight->cell);
    free(flight->work_copy);
    if (flight->refs != flight->refs_inline) free(flight->refs);
    if (flight->waits != flight->waits_inline) free(flight->waits);
    flight->refs = flight->refs_inline;
    flight->refs_capacity = DRUPE_FLIGHT_REFS;
    flight->waits = flight->waits_inline;
    flight->waits_capacity = DRUPE_FLIGHT_WAITS;
}

void drupe_flight_drop(drupe_queue *queue, drupe_flight *list)
{
    drupe_cause_bury();
    if (!list) return;
    drupe_flight *last = NULL;
    drupe_event_bunch events = {NULL, NULL};
    for (drupe_flight *flight = list; flight; flight = flight->next) {
        if (drupe_check_on()) drupe_check_dropped(flight->number);
        drop_one(flight, &events);
        last = flight;
    }
    drupe_event_put_back(queue, &events);
    last->next = atomic_load_explicit(&queue->returned, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&queue->returned, &last->next, list, memory_order_release,
                                                  memory_order_relaxed)) {}
}
