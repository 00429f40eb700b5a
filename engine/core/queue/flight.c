/* The records of what a queue has submitted: what keeps it alive, and when it is over.
 *
 * In-order completion does most of the work: a completed event proves everything before it. A failed one
 * proves nothing about silent work before it, since drivers may fail a command before its turn comes.
 *
 * Work with an event is asked for its own, since drivers do not stop a queue because a command of it failed.
 * A kernel's fault on a GPU does stop it: there one that is complete answers for those before it, which are
 * not asked. To ask for one event takes NVIDIA's driver 1.5 us, a fifth of the whole submission. */
#include "core/queue/launch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_MOST 128u /* flights among which a complete one is looked for */

/* What was used last comes first: it is in the caches. Nothing is walked over to join the lists. */
static void fetch_returned(drupe_queue *queue)
{
    drupe_flight *list = atomic_exchange_explicit(&queue->records.returned, NULL, memory_order_acquire);
    if (queue->records.spare) {
        queue->records.spare->older_spares = queue->records.older;
        queue->records.older = queue->records.spare;
    }
    queue->records.spare = list;
}

/* Out of the list, or NULL. */
static drupe_flight *pop_spare(drupe_queue *queue)
{
    drupe_flight *spare = queue->records.spare;
    if (!spare) return NULL;
    drupe_flight *after = spare->next;
    if (!after && queue->records.older) {
        after = queue->records.older;
        queue->records.older = after->older_spares;
    }
    queue->records.spare = after;
    return spare;
}

void drupe_flight_forget_spares(drupe_queue *queue)
{
    if (atomic_load(&queue->records.returned)) fetch_returned(queue);
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
    if (atomic_load_explicit(&queue->records.returned, memory_order_relaxed)) fetch_returned(queue);
    drupe_flight *fresh = pop_spare(queue);
    if (fresh) {
        if (queue->records.spare) prefetch_record(queue->records.spare);
    } else {
        fresh = aligned_alloc(64, sizeof *fresh);
        *flight = NULL;
        if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for a submission.");
        fresh->what.refs = fresh->refs_inline;
        fresh->what.brief = &fresh->brief;
        fresh->refs_capacity = DRUPE_FLIGHT_REFS;
        fresh->waits = fresh->waits_inline;
        fresh->waits_capacity = DRUPE_FLIGHT_WAITS;
    }
    fresh->next = NULL;
    fresh->event = NULL;
    fresh->what.number = drupe_flight_next();
    fresh->what.cell = NULL;
    fresh->what.label = "work";
    fresh->what.site = fresh->what.cell_number = 0;
    fresh->brief.kind = DRUPE_WORK_BARRIER;
    fresh->held = fresh->fallible = fresh->early = fresh->done = fresh->passed = fresh->event_passed = false;
    fresh->what.nrefs = fresh->nwaits = 0;
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
        flight->what.refs = larger(flight->what.refs, flight->refs_inline, nrefs, sizeof *flight->what.refs);
        flight->refs_capacity = flight->what.refs ? (uint32_t)nrefs : 0;
    }
    if (nwaits > flight->waits_capacity) {
        flight->waits = larger(flight->waits, flight->waits_inline, nwaits, sizeof *flight->waits);
        flight->waits_capacity = flight->waits ? (uint32_t)nwaits : 0;
    }
    if (flight->what.refs && flight->waits && nrefs + nwaits <= UINT32_MAX) return DRUPE_OK;
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
    if (ticket->nrefs) memcpy(flight->what.refs, ticket->refs, ticket->nrefs * sizeof *flight->what.refs);
    flight->what.nrefs = (uint32_t)ticket->nrefs;
    atomic_store_explicit(&flight->written, ticket->written, memory_order_relaxed);
    flight->replaced = ticket->replaced;
    flight->doom = ticket->doom;
    flight->what.label = ticket->label;
    flight->what.site = ticket->site;
    if (!ticket->label_static) {
        snprintf(flight->label_copy, sizeof flight->label_copy, "%s", ticket->label);
        flight->what.label = flight->label_copy;
    }
    return DRUPE_OK;
}

void drupe_flight_put_back(drupe_queue *queue, drupe_flight *flight)
{
    flight->next = queue->records.spare;
    queue->records.spare = flight;
}

bool drupe_flight_reuse(drupe_queue *queue, drupe_flight *flight)
{
    bool empty = flight->what.nrefs + flight->nwaits == 0 && !flight->what.cell && !flight->event;
    bool small = flight->what.refs == flight->refs_inline && flight->waits == flight->waits_inline;
    if (!flight->done || !empty || !small || drupe_check_on()) return false;
    drupe_flight_put_back(queue, flight);
    return true;
}

void drupe_flight_add_wait(drupe_flight *flight, drupe_event *wait)
{
    flight->waits[flight->nwaits++] = drupe_event_retain(wait);
}

void drupe_flight_append(drupe_queue *queue, drupe_flight *flight)
{
    if (queue->order.tail)
        queue->order.tail->next = flight;
    else
        queue->order.head = flight;
    queue->order.tail = flight;
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
    const drupe_backend *backend = queue->base.slot->backend;
    /* Layers may fail what they like, and times are asked of each event as it ends. */
    bool plain = backend == queue->base.slot->base && !(queue->base.flags & DRUPE_QUEUE_PROFILING);
    return plain && backend->gpu_faults_last && queue->base.device->type == DRUPE_DEVICE_GPU &&
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
        if (flight == queue->order.held || !answered_for(flight)) break;
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
    if (queue->proof.leaps) target = ahead(queue, flight, asking->span, asking->hasty);
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
    if (!first || first->event || first->what.number <= queue->proof.proven) return false;
    if (queue->proof.unmarked >= queue->order.count) return true;
    return queue->order.gate && !drupe_phase_over(drupe_flight_poll(queue, queue->order.gate, asking));
}

/* The last flight of the finished beginning, or NULL; looking at `most` that were not. `gap`: silent work
 * that nothing has proven yet. */
static drupe_flight *finished_until(drupe_queue *queue, size_t most, bool hasty)
{
    drupe_flight *cut = queue->order.looked, *flight = drupe_flight_unlooked(queue);
    drupe_asking asking = {.span = DRUPE_FLIGHT_SPAN, .hasty = hasty, .ticks = &queue->polling.ticks};
    bool gap = false;
    if (all_unproven(queue, &asking)) return cut;
    queue->order.gate = NULL;
    for (; flight && flight != queue->order.held && most; flight = flight->next, most--) {
        if (!flight->event) {
            if (flight->what.number <= queue->proof.proven)
                cut = flight;
            else
                gap = true;
            continue;
        }
        if (flight->next && flight->next->event) {
            drupe_event_prefetch(flight->next->event);
            drupe_trace_prefetch(flight->next->what.number);
        }
        drupe_phase phase = drupe_flight_poll(queue, flight, &asking);
        if (!drupe_phase_over(phase) || flight->event->abandoned) {
            queue->order.gate = flight;
            break;
        }
        if (phase == DRUPE_PHASE_COMPLETE || flight->what.number <= queue->proof.proven) gap = false;
        if (!gap) cut = flight;
    }
    return cut;
}

drupe_flight *drupe_flight_reap(drupe_queue *queue, size_t most, bool hasty)
{
    if (drupe_queue_unordered(queue)) return drupe_unordered_reap(queue, queue->order.count);
    queue->polling.ticks = 0;
    drupe_flight *cut = finished_until(queue, most, hasty), *list = queue->order.head;
    if (!cut) return NULL;
    drupe_marks_settle_locked(queue);
    if (!queue->polling.ticks) queue->polling.ticks = drupe_ticks();
    uint64_t now = queue->polling.ticks;
    for (drupe_flight *flight = list;; flight = flight->next) {
        if (flight->event && flight->event == queue->names.guard) queue->names.guard = NULL;
        if (flight->event && flight->event == queue->names.fetch) queue->names.fetch = NULL;
        if (!flight->event) drupe_trace_end_at(flight->what.number, DRUPE_TRACE_PASSED, now);
        drupe_queue_count(queue, -1);
        if (--most == 0) cut = flight;
        if (flight == queue->order.looked) queue->order.looked = NULL;
        if (flight == cut) break;
    }
    queue->order.head = cut->next;
    if (!queue->order.head) {
        queue->order.tail = NULL;
        queue->proof.unmarked = queue->proof.unmarked_bytes = 0;
    }
    cut->next = NULL;
    return list;
}

bool drupe_flight_look(drupe_queue *queue, size_t most)
{
    queue->polling.ticks = 0;
    drupe_flight *flight = drupe_flight_unlooked(queue), *cut = finished_until(queue, most, false);
    if (cut == queue->order.looked) return false;
    uint64_t now = drupe_ticks();
    size_t count = 1;
    for (;; flight = flight->next, count++) {
        if (!flight->event) drupe_trace_end_at(flight->what.number, DRUPE_TRACE_PASSED, now);
        if (flight == cut) break;
    }
    queue->order.looked = cut;
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
    if (!flight->passed) drupe_keeps_drop(flight->what.refs, flight->what.nrefs);
    drupe_event_release(flight->marker);
    if (!flight->event_passed) drupe_event_release_to(flight->event, events);
    drupe_core_cell_release(flight->what.cell);
    free(flight->work_copy);
    if (flight->what.refs != flight->refs_inline) free(flight->what.refs);
    if (flight->waits != flight->waits_inline) free(flight->waits);
    flight->what.refs = flight->refs_inline;
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
    const drupe_checker *checker = drupe_checking();
    for (drupe_flight *flight = list; flight; flight = flight->next) {
        if (checker) checker->dropped(flight->what.number);
        drop_one(flight, &events);
        last = flight;
    }
    drupe_event_put_back(queue, &events);
    last->next = atomic_load_explicit(&queue->records.returned, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&queue->records.returned, &last->next, list,
                                                  memory_order_release, memory_order_relaxed)) {}
}

void drupe_queue_settle(drupe_queue *queue, bool leaping)
{
    pthread_mutex_lock(&queue->lock);
    drupe_queue_flush_locked(queue);
    drupe_flight *flight = queue->order.head;
    uint64_t ticks = 0;
    drupe_asking asking = {.span = leaping ? DRUPE_FLIGHT_SPAN : 1, .ticks = &ticks};
    if (drupe_queue_unordered(queue)) {
        drupe_unordered_settle(queue);
        flight = NULL;
    }
    for (; flight && flight != queue->order.held; flight = flight->next) {
        if (flight->event && !drupe_phase_over(drupe_flight_poll(queue, flight, &asking))) break;
    }
    pthread_mutex_unlock(&queue->lock);
}
