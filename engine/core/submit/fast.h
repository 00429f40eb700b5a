/* The fast way onto a queue, for work that is checked in one go: kernels (fast_launch.c), calls (fast_call.c)
 * and copies that are over within the call (at_once.c). All of it is inline, because a call more is felt. */
#ifndef DRUPE_CORE_FAST_H
#define DRUPE_CORE_FAST_H

#include "core/queue/valid.h"
#include "core/submit/submit_room.h"

/* A submission that is being checked. */
typedef struct drupe_fast {
    const drupe_submission *s;
    drupe_work work; /* only what its kind has is set: to clear it takes as long as to check it */
    const char *label;
    drupe_operands uses;
    void (*hold)(void *object); /* one more reference to what is no memory */
    bool borrowed;              /* the caller's references keep what `refs` has; else it is kept here */
    drupe_keep refs[DRUPE_ARG_SUMMARY_MOST + 1];
    uint64_t words[DRUPE_ARG_SUMMARY_MOST];
} drupe_fast;

static inline void drupe_fast_begin(drupe_fast *one, const drupe_submission *s, const char *label,
                                    void (*hold)(void *object))
{
    one->s = s;
    one->label = label;
    one->hold = hold;
    const unsigned marks = atomic_load_explicit(&drupe_marks_version, memory_order_acquire);
    one->uses = (drupe_operands){.refs = one->refs, .marks_seen = marks};
}

/* Nothing about the queue takes more steps. */
static inline bool drupe_fast_open(const drupe_queue *queue)
{
    return !atomic_load_explicit(&drupe_core_forked, memory_order_relaxed) &&
           !drupe_queue_has_postponed(queue) && !drupe_gate_closed(queue->base.device->root);
}
/* Nor about the submission. */
static inline bool drupe_fast_possible(const drupe_submission *s)
{
    return !s->nkeeps && drupe_fast_open(s->queue);
}

/* Whether the submission may use it without waiting and without asking what it holds. */
static inline bool drupe_fast_at_hand(const drupe_memory *memory, const drupe_submission *s)
{
    return drupe_valid_memory(memory, s->queue) && !drupe_mark_possible(memory) &&
           !drupe_memory_elsewhere(memory, s->queue, s->ordered) && !drupe_memory_has_readers(memory);
}

/* It is among what the submission uses. */
static inline void drupe_fast_add(drupe_fast *one, drupe_memory *memory, drupe_touch touch)
{
    uint64_t own_bit = UINT64_C(1) << one->uses.nrefs;
    if (touch.writes) one->uses.written |= own_bit;
    if (touch.reads) one->uses.read |= own_bit;
    if (touch.replaces && !touch.reads) one->uses.replaced |= own_bit;
    one->refs[one->uses.nrefs++] = (drupe_keep){memory, drupe_uses_drop};
    one->uses.bytes += memory->size;
}

/* --- References -----------------------------------------------------------------------------------------
 *
 * Who launches the same kernel with the same memory again and again would count up and down once each time.
 * On an in-order queue an entry is dropped after those before it, so the references of the last one are
 * passed on to the next that needs the same. Work that is over when its launch returns needs none: the
 * caller's lasted as long. */

static inline void drupe_fast_retain(drupe_fast *one)
{
    for (size_t i = 0; one->borrowed && i < one->uses.nrefs; i++) {
        if (one->refs[i].release == drupe_uses_drop)
            drupe_uses_add(one->refs[i].object, one->s->queue);
        else
            one->hold(one->refs[i].object);
    }
    one->borrowed = false;
}

/* The last entry, if it has the same references, or NULL. The queue's lock is held. */
static inline drupe_inflight *drupe_fast_before(const drupe_fast *one)
{
    drupe_inflight *last = one->s->queue->order.tail;
    bool same = one->borrowed && last && last->what.nrefs == one->uses.nrefs;
    for (size_t i = 0; same && i < one->uses.nrefs; i++)
        same = last->what.refs[i].object == one->refs[i].object &&
               last->what.refs[i].release == one->refs[i].release;
    return same ? last : NULL;
}

/* `entry` keeps what it needs until it is over. Under the lock, so that nobody drops it before. */
static inline void drupe_fast_keep(drupe_fast *one, drupe_inflight *entry, drupe_inflight *before,
                                   bool needed)
{
    if (needed && before)
        drupe_inflight_pass(before);
    else if (needed)
        drupe_fast_retain(one);
    else if (one->borrowed)
        drupe_inflight_pass(entry);
}

/* --- The launch ----------------------------------------------------------------------------------------- */

/* Nothing on the queue asks for more than launching. Its lock is held. */
static inline bool drupe_fast_plain(const drupe_queue *queue, unsigned marks_seen)
{
    if (atomic_load_explicit(&drupe_marks_version, memory_order_relaxed) != marks_seen) return false;
    return !queue->order.deferred && !queue->names.last_fallible && !drupe_device_loss(queue->base.device) &&
           drupe_queue_works((drupe_queue *)queue);
}

static inline drupe_status drupe_fast_kernel(const drupe_submit *submit, const drupe_work *work)
{
    bool locked = drupe_kernel_lock(work->kernel, submit->queue);
    drupe_status status = submit->queue->base.slot->backend->submit_kernel(submit, work->kernel, work->range,
                                                                           work->args, work->nargs);
    drupe_kernel_unlock(work->kernel, locked);
    return status;
}

static inline drupe_status drupe_fast_give(const drupe_fast *one, drupe_inflight *entry, drupe_event **event,
                                           bool *over)
{
    drupe_queue *queue = one->s->queue;
    const drupe_work *work = &one->work;
    bool kernel = work->kind == DRUPE_WORK_KERNEL;
    drupe_inflight_trace(queue, entry, work, one->uses.bytes);
    /* A host function's fault is told by its event alone. */
    if (event || !kernel || drupe_queue_wants_event(queue, one->uses.bytes))
        DRUPE_TRY(drupe_inflight_attach(queue, entry));
    const drupe_submit submit = {.queue = queue,
                                 .event = entry->event,
                                 .done = queue->base.flags & DRUPE_QUEUE_PROFILING ? NULL : &entry->done,
                                 .number = entry->what.number,
                                 .copied = kernel ? 0 : (uint32_t)work->bytes};
    drupe_event_hand_over(submit.event);
    DRUPE_TRY(kernel ? drupe_fast_kernel(&submit, work)
                     : queue->base.slot->backend->submit_host(&submit, work->fn, work->user));
    drupe_inflight_launched(queue, entry);
    *over = !drupe_inflight_enlist(queue, entry, one->uses.bytes, false);
    if (event) *event = drupe_inflight_give_event(entry);
    return DRUPE_OK;
}

/* Submit to an in-order queue what waits for nothing. False: something is in its way, and `refs` are still
 * the caller's. */
static inline bool drupe_fast_submit(drupe_fast *one, drupe_event **event, drupe_status *status)
{
    drupe_queue *queue = one->s->queue;
    drupe_inflight *entry = NULL, *finished;
    void *cell = drupe_core_cell();
    bool over = false;
    pthread_mutex_lock(&queue->lock);
    finished = drupe_queue_reap_some(queue, one->uses.bytes);
    if (drupe_fast_plain(queue, one->uses.marks_seen) && one->uses.nrefs <= DRUPE_INFLIGHT_REFS &&
        drupe_inflight_new(queue, one->label, cell, &entry) == DRUPE_OK) {
        drupe_inflight *before = drupe_fast_before(one);
        drupe_inflight_fill(entry, one->s->site ? one->s->site : drupe_core_site(), &one->uses, &one->work);
        *status = drupe_fast_give(one, entry, event, &over);
        drupe_fast_keep(one, entry, before, *status == DRUPE_OK && !over);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!entry)
        drupe_core_cell_release(cell);
    else if (*status != DRUPE_OK)
        drupe_inflight_refuse(queue, entry);
    else if (over)
        drupe_inflight_drop(queue, entry);
    drupe_inflight_drop(queue, finished);
    return entry != NULL;
}

#endif
