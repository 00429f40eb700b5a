/* Work with which nothing is wrong goes to the backend in one piece: kernels (fast_launch.c) and calls
 * (fast_call.c). */
#include "core/submit/fast.h"

/* --- References -----------------------------------------------------------------------------------------
 *
 * Who launches the same kernel with the same memory again and again would count up and down once each time.
 * On an in-order queue an entry is dropped after those before it, so the references of the last one are
 * passed on to the next that needs the same. Work that is over when its launch returns needs none: the
 * caller's lasted as long. */

void drupe_fast_retain(drupe_fast *one)
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
static inline drupe_inflight *same_before(const drupe_fast *one)
{
    drupe_inflight *last = one->s->queue->order.tail;
    bool same = one->borrowed && last && last->what.nrefs == one->uses.nrefs;
    for (size_t i = 0; same && i < one->uses.nrefs; i++)
        same = last->what.refs[i].object == one->refs[i].object &&
               last->what.refs[i].release == one->refs[i].release;
    return same ? last : NULL;
}

/* `entry` keeps what it needs until it is over. Under the lock, so that nobody drops it before. */
static inline void keep(drupe_fast *one, drupe_inflight *entry, drupe_inflight *before, bool needed)
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
static inline bool is_plain(const drupe_queue *queue, unsigned marks_seen)
{
    if (atomic_load_explicit(&drupe_marks_version, memory_order_relaxed) != marks_seen) return false;
    return !queue->order.deferred && !queue->names.last_fallible && !drupe_device_loss(queue->base.device) &&
           !atomic_load_explicit(&((drupe_queue *)queue)->base.cause, memory_order_acquire);
}

static inline drupe_status launch_kernel(const drupe_submit *submit, const drupe_work *work)
{
    bool locked = drupe_kernel_lock(work->kernel, submit->queue);
    drupe_status status = submit->queue->base.slot->backend->submit_kernel(submit, work->kernel, work->range,
                                                                           work->args, work->nargs);
    drupe_kernel_unlock(work->kernel, locked);
    return status;
}

static inline drupe_status launch(const drupe_fast *one, drupe_inflight *entry, drupe_event **event,
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
                                 .copied = kernel ? 0 : work->bytes};
    drupe_event_hand_over(submit.event);
    DRUPE_TRY(kernel ? launch_kernel(&submit, work)
                     : queue->base.slot->backend->submit_host(&submit, work->fn, work->user));
    drupe_inflight_launched(queue, entry);
    *over = !drupe_inflight_enlist(queue, entry, one->uses.bytes, false);
    if (event) *event = drupe_inflight_give_event(entry);
    return DRUPE_OK;
}

bool drupe_fast_submit(drupe_fast *one, drupe_event **event, drupe_status *status)
{
    drupe_queue *queue = one->s->queue;
    drupe_inflight *entry = NULL, *finished;
    void *cell = drupe_core_cell();
    bool over = false;
    pthread_mutex_lock(&queue->lock);
    finished = drupe_queue_reap_some(queue, one->uses.bytes);
    if (is_plain(queue, one->uses.marks_seen) && one->uses.nrefs <= DRUPE_INFLIGHT_REFS &&
        drupe_inflight_new(queue, one->label, cell, &entry) == DRUPE_OK) {
        drupe_inflight *before = same_before(one);
        drupe_inflight_fill(entry, one->s->site ? one->s->site : drupe_core_site(), &one->uses, &one->work);
        *status = launch(one, entry, event, &over);
        keep(one, entry, before, *status == DRUPE_OK && !over);
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
