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

#define SPAN       32u  /* that one may answer for */
#define KNOWN_MOST 128u /* entries among which a complete one is looked for */

#define POLL_KNOWN  4u
#define POLL_EVERY  8u
#define POLL_SELDOM 64u /* a multiple of it: while few bytes are kept alive */
#define POLL_BYTES  (1u << 20)

/* Out of the list, or NULL. Only the holder of the lock takes records. */
static drupe_inflight *pop_spare(drupe_queue *queue)
{
    drupe_records *records = &queue->records;
    if (!records->spare && atomic_load_explicit(&records->returned, memory_order_relaxed))
        records->spare = atomic_exchange_explicit(&records->returned, NULL, memory_order_acquire);
    drupe_inflight *spare = records->spare;
    if (spare) records->spare = spare->next;
    return spare;
}

void drupe_inflight_forget_spares(drupe_queue *queue)
{
    for (drupe_inflight *spare; (spare = pop_spare(queue));) free(spare);
}

/* What a kernel's launch writes to. A driver may be many submissions behind: then the caches have lost it. */
static inline void prefetch_record(drupe_inflight *entry)
{
    char *begin = (char *)entry;
    drupe_prefetch_write(begin);
    drupe_prefetch_write(begin + 64);
    drupe_prefetch_write(&entry->summary.global);
    drupe_prefetch_write(&entry->summary.bits);
    drupe_prefetch_write(entry->refs_inline);
}

static drupe_inflight *make(void)
{
    drupe_inflight *fresh = aligned_alloc(64, sizeof *fresh);
    if (!fresh) return NULL;
    memset(fresh, 0, sizeof *fresh);
    fresh->what.refs = fresh->refs_inline;
    fresh->what.summary = &fresh->summary;
    fresh->refs_capacity = DRUPE_INFLIGHT_REFS;
    fresh->waits = fresh->waits_inline;
    fresh->waits_capacity = DRUPE_INFLIGHT_WAITS;
    return fresh;
}

static inline void begin(drupe_inflight *entry, const char *label, void *cell)
{
    entry->what.number = drupe_inflight_next();
    entry->what.cell = cell;
    entry->what.cell_number = drupe_core_cell_number(cell);
    entry->what.label = label;
}

drupe_inflight *drupe_inflight_alone(const char *label, uint32_t site)
{
    drupe_inflight *entry = make();
    if (!entry) return NULL;
    begin(entry, entry->label_copy, drupe_core_cell());
    snprintf(entry->label_copy, sizeof entry->label_copy, "%s", label);
    entry->what.site = site;
    entry->summary.kind = DRUPE_WORK_HOST;
    return entry;
}

drupe_status drupe_inflight_new(drupe_queue *queue, const char *label, void *cell, drupe_inflight **entry)
{
    drupe_inflight *fresh = pop_spare(queue);
    if (!fresh)
        fresh = make();
    else if (queue->records.spare)
        prefetch_record(queue->records.spare);
    *entry = fresh;
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for a submission.");
    begin(fresh, label, cell);
    fresh->next = NULL;
    fresh->event = NULL;
    fresh->what.site = 0;
    fresh->summary.kind = DRUPE_WORK_BARRIER;
    fresh->deferred = fresh->done = fresh->passed = fresh->checks_first = false;
    fresh->what.nrefs = fresh->nwaits = 0;
    atomic_store_explicit(&fresh->written, 0, memory_order_relaxed);
    fresh->replaced = 0;
    return DRUPE_OK;
}

/* Of a record with room for what lives in it. */
static drupe_status make_room(drupe_inflight *entry, size_t nrefs, size_t nwaits)
{
    bool counted = nrefs + nwaits <= UINT32_MAX;
    if (counted && nrefs > entry->refs_capacity) {
        entry->what.refs = malloc(nrefs * sizeof *entry->what.refs);
        entry->refs_capacity = entry->what.refs ? (uint32_t)nrefs : 0;
    }
    if (counted && nwaits > entry->waits_capacity) {
        entry->waits = malloc(nwaits * sizeof *entry->waits);
        entry->waits_capacity = entry->waits ? (uint32_t)nwaits : 0;
    }
    if (counted && entry->what.refs && entry->waits) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for a submission with %zu objects.",
                           nrefs + nwaits);
}

drupe_status drupe_inflight_load(drupe_inflight *entry, const drupe_submit_info *info, const drupe_work *work,
                                 size_t more)
{
    DRUPE_TRY(make_room(entry, info->uses.nrefs, info->nwaits + more));
    for (size_t i = 0; i < info->nwaits; i++) {
        drupe_event *wait = info->waits[i];
        if (!wait || drupe_event_phase(wait) == DRUPE_PHASE_COMPLETE) continue;
        entry->waits[entry->nwaits++] = drupe_event_retain(wait);
    }
    drupe_inflight_fill(entry, info->site, &info->uses, work);
    if (!info->label_static) {
        snprintf(entry->label_copy, sizeof entry->label_copy, "%s", info->label);
        entry->what.label = entry->label_copy;
    }
    return DRUPE_OK;
}

void drupe_inflight_put_back(drupe_queue *queue, drupe_inflight *entry)
{
    entry->next = queue->records.spare;
    queue->records.spare = entry;
}

void drupe_inflight_add_wait(drupe_inflight *entry, drupe_event *wait)
{
    entry->waits[entry->nwaits++] = drupe_event_retain(wait);
}

drupe_status drupe_inflight_attach(drupe_queue *queue, drupe_inflight *entry)
{
    /* A deferred entry has one that others may be looking at. */
    return entry->event ? DRUPE_OK : drupe_event_next(queue, entry->what.number, entry, &entry->event);
}

/* --- The list ------------------------------------------------------------------------------------------- */

/* Nobody else changes the number. */
static inline void count(drupe_queue *queue, int more)
{
    size_t before = atomic_load_explicit(&queue->order.count, memory_order_relaxed);
    atomic_store_explicit(&queue->order.count, before + (size_t)more, memory_order_release);
}

void drupe_inflight_append(drupe_queue *queue, drupe_inflight *entry, bool deferred)
{
    if (queue->order.tail)
        queue->order.tail->next = entry;
    else
        queue->order.head = entry;
    queue->order.tail = entry;
    entry->deferred = deferred;
    if (deferred && !queue->order.deferred) queue->order.deferred = entry;
    count(queue, 1);
}

void drupe_inflight_insert(drupe_queue *queue, drupe_inflight *after, drupe_inflight *entry)
{
    entry->next = after->next;
    after->next = entry;
    if (queue->order.tail == after) queue->order.tail = entry;
    queue->order.first_open = NULL;
    count(queue, 1);
}

void drupe_inflight_detach(drupe_queue *queue, drupe_inflight *before, drupe_inflight **list)
{
    drupe_inflight **link = before ? &before->next : &queue->order.head, *entry = *link;
    *link = entry->next;
    if (queue->order.tail == entry) queue->order.tail = before;
    entry->next = *list;
    *list = entry;
    count(queue, -1);
}

void drupe_inflight_admit(drupe_queue *queue, drupe_inflight *entry)
{
    entry->deferred = false;
    while (queue->order.deferred && !queue->order.deferred->deferred)
        queue->order.deferred = queue->order.deferred->next;
}

void drupe_inflight_launched(drupe_queue *queue, drupe_inflight *entry)
{
    if (entry->done) {
        /* It is over and nobody else has seen it. */
        drupe_trace_end_at_once(entry->what.number);
        if (entry->event) drupe_event_enter(entry->event, DRUPE_PHASE_COMPLETE);
        return;
    }
    queue->order.unflushed = queue->base.slot->backend->queue_flush != NULL;
    if (!entry->event) {
        queue->proof.unmarked++;
        atomic_store_explicit(&queue->proof.silent, true, memory_order_relaxed);
        return;
    }
    queue->proof.unmarked = queue->proof.unmarked_bytes = 0;
    drupe_event_enter(entry->event, DRUPE_PHASE_NATIVE);
}

void drupe_queue_flush_locked(drupe_queue *queue)
{
    if (!queue->order.unflushed || drupe_device_silent(queue->base.device)) return;
    queue->order.unflushed = false;
    /* A queue that cannot be flushed shows it in its events. */
    if (queue->base.slot->backend->queue_flush(queue) != DRUPE_OK) return;
}

void drupe_queue_flush(drupe_queue *queue)
{
    if (!queue->base.slot->backend->queue_flush) return;
    pthread_mutex_lock(&queue->lock);
    drupe_queue_flush_locked(queue);
    pthread_mutex_unlock(&queue->lock);
}

/* --- The end -------------------------------------------------------------------------------------------- */

/* Nothing but a fault can fail it now. */
static bool answered_for(const drupe_inflight *entry)
{
    uint8_t kind = entry->summary.kind;
    bool plain = kind == DRUPE_WORK_KERNEL || kind == DRUPE_WORK_BARRIER || kind == DRUPE_WORK_MARK;
    return plain && !entry->nwaits;
}

/* Who may answer for `entry`: one further on that is known to be complete, unless the look is `hasty`, or
 * else the last with an event among the next `most`. */
static drupe_inflight *ahead(const drupe_queue *queue, drupe_inflight *entry, unsigned most, bool hasty)
{
    const unsigned known = hasty ? 0 : KNOWN_MOST;
    drupe_inflight *last = entry, *complete = NULL;
    for (unsigned i = 0; (i < most || i < known) && entry; i++, entry = entry->next) {
        if (entry == queue->order.deferred || !answered_for(entry)) break;
        if (entry->event && i < most) last = entry;
        if (entry->event && i < known && drupe_event_phase(entry->event) == DRUPE_PHASE_COMPLETE)
            complete = entry;
    }
    return complete ? complete : last;
}

/* A walk over entries in the order of submission that asks how far they are. */
typedef struct poll_walk {
    unsigned span; /* one may answer for so many; SPAN at first */
    bool hasty;    /* what none has answered for may be asked the next time */
    uint64_t *ticks;
} poll_walk;

static drupe_phase inflight_poll(const drupe_queue *queue, drupe_inflight *entry, poll_walk *walk)
{
    drupe_phase phase = drupe_event_phase(entry->event);
    if (phase != DRUPE_PHASE_NATIVE) return phase;
    uint64_t *ticks = walk->ticks;
    drupe_inflight *target = entry;
    if (queue->infers) target = ahead(queue, entry, walk->span, walk->hasty);
    if (target == entry) return drupe_event_poll_at(entry->event, ticks);
    (void)drupe_event_ask(target->event, ticks);
    if (drupe_event_phase(target->event) != DRUPE_PHASE_COMPLETE) {
        walk->span /= 2;
        return walk->hasty ? phase : drupe_event_poll_at(entry->event, ticks);
    }
    if (!*ticks) *ticks = drupe_ticks();
    for (drupe_inflight *at = entry; at != target; at = at->next) {
        if (at->event) drupe_event_complete_at(at->event, DRUPE_PHASE_NATIVE, *ticks);
    }
    return drupe_event_phase(entry->event);
}

/* Silent work is proven by an event behind it: until the first of these is over there is nothing to find. */
static bool all_unproven(const drupe_queue *queue, poll_walk *walk)
{
    const drupe_inflight *first = drupe_inflight_unlooked(queue);
    if (!first || first->event || first->what.number <= queue->proof.proven) return false;
    if (queue->proof.unmarked >= queue->order.count) return true;
    return queue->order.first_open && !drupe_phase_over(inflight_poll(queue, queue->order.first_open, walk));
}

/* The last entry of the finished beginning, or NULL; looking at `most` that were not. `gap`: silent work
 * that nothing has proven yet. */
drupe_inflight *drupe_inflight_finished(drupe_queue *queue, size_t most, bool hasty)
{
    drupe_inflight *cut = queue->order.looked, *entry = drupe_inflight_unlooked(queue);
    poll_walk walk = {.span = SPAN, .hasty = hasty, .ticks = &queue->polling.ticks};
    bool gap = false;
    if (all_unproven(queue, &walk)) return cut;
    queue->order.first_open = NULL;
    for (; entry && entry != queue->order.deferred && most; entry = entry->next, most--) {
        if (!entry->event) {
            if (entry->what.number <= queue->proof.proven)
                cut = entry;
            else
                gap = true;
            continue;
        }
        if (entry->next && entry->next->event) {
            drupe_event_prefetch(entry->next->event);
            drupe_trace_prefetch(entry->next->what.number);
        }
        drupe_phase phase = inflight_poll(queue, entry, &walk);
        if (!drupe_phase_over(phase) || entry->event->abandoned) {
            queue->order.first_open = entry;
            break;
        }
        if (phase == DRUPE_PHASE_COMPLETE || entry->what.number <= queue->proof.proven) gap = false;
        if (!gap) cut = entry;
    }
    return cut;
}

drupe_inflight *drupe_inflight_cut(drupe_queue *queue, drupe_inflight *last, size_t most)
{
    drupe_inflight *list = queue->order.head;
    if (!queue->polling.ticks) queue->polling.ticks = drupe_ticks();
    uint64_t now = queue->polling.ticks;
    for (drupe_inflight *entry = list;; entry = entry->next) {
        drupe_names_forget(queue, entry);
        if (!entry->event) drupe_trace_end_at(entry->what.number, DRUPE_TRACE_PASSED, now);
        count(queue, -1);
        if (--most == 0) last = entry;
        if (entry == queue->order.looked) queue->order.looked = NULL;
        if (entry == last) break;
    }
    queue->order.head = last->next;
    if (!queue->order.head) {
        queue->order.tail = NULL;
        queue->proof.unmarked = queue->proof.unmarked_bytes = 0;
    }
    last->next = NULL;
    return list;
}

bool drupe_inflight_look(drupe_queue *queue, size_t most)
{
    queue->polling.ticks = 0;
    drupe_inflight *entry = drupe_inflight_unlooked(queue),
                   *cut = drupe_inflight_finished(queue, most, false);
    if (cut == queue->order.looked) return false;
    uint64_t now = drupe_ticks();
    size_t found = 1;
    for (;; entry = entry->next, found++) {
        if (!entry->event) drupe_trace_end_at(entry->what.number, DRUPE_TRACE_PASSED, now);
        if (entry == cut) break;
    }
    queue->order.looked = cut;
    return found > most / 2; /* the last ones may not be proven yet */
}

/* `known`: the first is over. */
static bool time_to_look(drupe_queue *queue, bool known, bool small)
{
    if (++queue->polling.polls % (known ? POLL_KNOWN : POLL_EVERY) && !(known && !small)) return false;
    bool seldom = queue->base.slot->backend->state_waits && !drupe_queue_unordered(queue) && small && !known;
    if (seldom && queue->polling.polls % POLL_SELDOM) return false;
    queue->polling.unlooked_bytes = 0;
    return true;
}

bool drupe_inflight_due(drupe_queue *queue, size_t bytes, bool *small)
{
    drupe_inflight *head = queue->order.head;
    queue->polling.ticks = 0;
    queue->polling.unlooked_bytes += bytes;
    if (!head) return false;
    bool known = head->event && drupe_phase_over(drupe_event_phase(head->event));
    *small = queue->polling.unlooked_bytes < POLL_BYTES;
    return time_to_look(queue, known, *small);
}

void drupe_keeps_drop(const drupe_keep *keeps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keeps[i].release) keeps[i].release(keeps[i].object);
    }
}

static void drop_one(drupe_inflight *entry)
{
    for (size_t i = 0; i < entry->nwaits; i++) drupe_event_release(entry->waits[i]);
    if (!entry->passed) drupe_keeps_drop(entry->what.refs, entry->what.nrefs);
    drupe_event_release(entry->event);
    drupe_core_cell_release(entry->what.cell);
    drupe_deferral_drop(&entry->deferral);
    if (entry->what.refs != entry->refs_inline) free(entry->what.refs);
    if (entry->waits != entry->waits_inline) free(entry->waits);
    entry->what.refs = entry->refs_inline;
    entry->refs_capacity = DRUPE_INFLIGHT_REFS;
    entry->waits = entry->waits_inline;
    entry->waits_capacity = DRUPE_INFLIGHT_WAITS;
}

void drupe_inflight_drop(drupe_queue *queue, drupe_inflight *list)
{
    drupe_cause_free_deferred();
    if (!list) return;
    drupe_inflight *last = NULL;
    const drupe_checker *checker = drupe_checking();
    for (drupe_inflight *entry = list; entry; entry = entry->next) {
        if (checker) checker->dropped(entry->what.number);
        drop_one(entry);
        last = entry;
    }
    last->next = atomic_load_explicit(&queue->records.returned, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&queue->records.returned, &last->next, list,
                                                  memory_order_release, memory_order_relaxed)) {}
}

void drupe_queue_settle_locked(drupe_queue *queue, bool inferring)
{
    uint64_t ticks = 0;
    poll_walk walk = {.span = inferring ? SPAN : 1, .ticks = &ticks};
    bool unordered = drupe_queue_unordered(queue);
    drupe_queue_flush_locked(queue);
    for (drupe_inflight *entry = queue->order.head; entry; entry = entry->next) {
        if (entry->event && !drupe_phase_over(inflight_poll(queue, entry, &walk)) && !unordered) break;
    }
}

void drupe_queue_settle(drupe_queue *queue, bool inferring)
{
    pthread_mutex_lock(&queue->lock);
    drupe_queue_settle_locked(queue, inferring);
    pthread_mutex_unlock(&queue->lock);
}

size_t drupe_queue_unfinished(const drupe_queue *queue)
{
    size_t count = 0;
    bool unordered = drupe_queue_unordered(queue);
    for (const drupe_inflight *entry = queue->order.head; entry; entry = entry->next) {
        drupe_phase phase = entry->event ? drupe_event_phase(entry->event) : DRUPE_PHASE_NATIVE;
        /* Silent work counts until something behind it is known to be complete. */
        bool proves = phase == DRUPE_PHASE_COMPLETE || entry->what.number <= queue->proof.proven;
        if (proves && !unordered)
            count = 0;
        else
            count += !drupe_phase_over(phase);
    }
    return count;
}

void drupe_queue_blame(drupe_queue *queue, uint64_t number)
{
    drupe_cause *trouble = drupe_queue_trouble(queue);
    if (!trouble) {
        trouble = drupe_cause_silent(queue, number);
        drupe_queue_set_cause(queue, trouble, queue->proof.proven);
    }
    drupe_cause_release(trouble);
}

drupe_status drupe_queue_prove(drupe_queue *queue, uint64_t number, bool complete, uint64_t left_ns)
{
    drupe_status status = DRUPE_OK;
    pthread_mutex_lock(&queue->lock);
    if (queue->proof.silent || !complete) {
        /* When work was added meanwhile, also by others, the driver may still be busy, which proves nothing
         * and harms nothing. Otherwise it is about to be idle, and what it has to report is waited for. */
        bool added = queue->shared || (queue->order.tail && queue->order.tail->what.number > number);
        uint64_t left = complete && added ? 0 : left_ns;
        status = queue->base.slot->backend->queue_wait(queue, left < DRUPE_SLICE_NS ? left : DRUPE_SLICE_NS);
        if (status != DRUPE_E_TIMEOUT)
            atomic_store_explicit(&queue->proof.silent, false, memory_order_release);
        if (status == DRUPE_E_TIMEOUT && complete) status = DRUPE_OK;
    }
    if (status != DRUPE_OK && status != DRUPE_E_TIMEOUT) {
        drupe_queue_blame(queue, number);
        status = DRUPE_OK;
    }
    if (status == DRUPE_OK) drupe_queue_proven(queue, number);
    pthread_mutex_unlock(&queue->lock);
    return status;
}
