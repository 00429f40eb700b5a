/* The steps of a submission on its queue. */
#ifndef DRUPE_CORE_LAUNCH_H
#define DRUPE_CORE_LAUNCH_H

#include "core/queue/waiter.h"

/* --- Kernels on several queues: launch.c ------------------------------------------------------------------
 */

/* Most kernels are launched on one queue, whose lock is held during a launch and protects the kernel too.
 * `sole` is the number of that queue, or 0 before the first launch. With the first launch on another queue it
 * becomes SHARED for good, and each launch takes the kernel's lock as well. Called without a lock, before the
 * queue's lock is taken for a launch. */
#define DRUPE_KERNEL_SHARED UINT32_MAX
void drupe_kernel_share(drupe_kernel *kernel, const drupe_queue *queue);
static inline void drupe_kernel_enter(drupe_kernel *kernel, const drupe_queue *queue)
{
    uint32_t sole = atomic_load_explicit(&kernel->sole, memory_order_acquire);
    if (sole != queue->base.number && sole != DRUPE_KERNEL_SHARED) drupe_kernel_share(kernel, queue);
}
/* Around a launch, with the queue's lock. */
static inline bool drupe_kernel_lock(drupe_kernel *kernel, const drupe_queue *queue)
{
    if (atomic_load_explicit(&kernel->sole, memory_order_relaxed) == queue->base.number) return false;
    pthread_mutex_lock(&kernel->lock);
    return true;
}
static inline void drupe_kernel_unlock(drupe_kernel *kernel, bool locked)
{
    if (locked) pthread_mutex_unlock(&kernel->lock);
}

/* --- enqueue.c, launch.c: from a submission info to the backend ----------------------------------------- */

/* Queue the work: natively, deferred, or failed at once when it stands behind a failure. `event` may be NULL.
 * The submission info's refs are taken, also on failure. */
drupe_status drupe_queue_submit(const drupe_submit_info *info, const drupe_work *work,
                                drupe_event **event) DRUPE_MUST_CHECK;

typedef enum drupe_readiness { DRUPE_READY, DRUPE_BLOCKED, DRUPE_MUST_FAIL } drupe_readiness;

/* The following need the queue's lock. */
/* Whether the entry's waits let its work be launched; MUST_FAIL when one of them failed. */
drupe_readiness drupe_inflight_ready(const drupe_queue *queue, const drupe_inflight *entry,
                                     const drupe_work *work);
/* Whether the driver may read the source at once: see enqueue.c. */
static inline bool drupe_work_leaves_early(const drupe_queue *queue, const drupe_work *work)
{
    return work->kind == DRUPE_WORK_COPY && work->from_host && queue->base.device->type != DRUPE_DEVICE_CPU;
}
/* Whether core runs this work itself. */
static inline bool drupe_work_emulated(const drupe_queue *queue, const drupe_work *work)
{
    if (work->kind != DRUPE_WORK_HOST) return work->fn != NULL; /* a copy in pieces */
    return !work->fn || !queue->base.slot->backend->submit_host;
}
/* Begin the record of an entry that is about to be launched or deferred; `used`: bytes of memory that it
 * keeps alive. */
static inline void drupe_inflight_trace(const drupe_queue *queue, const drupe_inflight *entry,
                                        const drupe_work *work, size_t used)
{
    bool kernel = work->kind == DRUPE_WORK_KERNEL;
    const char *label = entry->what.label;
    drupe_trace_work what = {.kind = work->kind, .ticks = queue->polling.ticks, .bytes = used};
    what.told = queue->base.slot->backend->tells_runs || drupe_work_emulated(queue, work);
    if (kernel && label == work->kernel->name) what.name = work->kernel->trace_name;
    if (work->kind == DRUPE_WORK_COPY || work->kind == DRUPE_WORK_FILL) what.bytes = work->bytes;
    what.items = kernel;
    for (uint32_t d = 0; kernel && d < work->range->dims; d++) what.items *= work->range->global[d];
    drupe_trace_begin(&queue->traced, &entry->what, &what);
}
/* An entry that is being submitted fails for `cause`, that of one of its waits or of what it reads: what that
 * is to it, retained. NULL-safe. */
drupe_cause *drupe_inflight_fails_for(drupe_queue *queue, drupe_inflight *entry, drupe_cause *cause);
/* Look at the queue's last fallible submission, and mark what its failure leaves without a result. */
void drupe_names_look_closely(drupe_queue *queue);
static inline void drupe_names_look(drupe_queue *queue)
{
    bool due = queue->names.last_fallible ||
               atomic_load_explicit(&queue->base.marks_due, memory_order_acquire);
    if (due) drupe_names_look_closely(queue);
}
/* drupe_queue_pending_failure() after that. */
drupe_cause *drupe_queue_standing(drupe_queue *queue, uint64_t number);
/* Whether the next submission stands behind no failure: there was none, or it was told and all is marked. */
bool drupe_queue_works_again(drupe_queue *queue);
static inline bool drupe_queue_works(drupe_queue *queue)
{
    return !atomic_load_explicit(&queue->base.cause, memory_order_acquire) || drupe_queue_works_again(queue);
}
/* The last fallible submission is the last one up to this place in the order. */
void drupe_names_recall(drupe_queue *queue, uint64_t from);
/* Copies from plain host memory wait for this one to it. */
static inline void drupe_names_fetch(drupe_queue *queue, const drupe_inflight *entry)
{
    queue->names.fetch = entry->event;
}
/* The entry leaves the list. */
static inline void drupe_names_forget(drupe_queue *queue, const drupe_inflight *entry)
{
    if (entry->event && entry->event == queue->names.last_fallible) queue->names.last_fallible = NULL;
    if (entry->event && entry->event == queue->names.fetch) queue->names.fetch = NULL;
}
/* Whether work that keeps so many bytes alive gets an event although nobody asked for it. */
bool drupe_queue_wants_event(const drupe_queue *queue, size_t bytes);
/* Hand the work to the backend. */
drupe_status drupe_inflight_launch(drupe_queue *queue, drupe_inflight *entry,
                                   const drupe_work *work) DRUPE_MUST_CHECK;
/* An event at the end of the queue, retained: of the last deferred work that is not over, or else the last
 * entry's own, or that of a barrier put behind it; NULL when there is no entry. `before`: a deferred entry;
 * then the end of what stands before it. */
drupe_status drupe_queue_mark(drupe_queue *queue, drupe_inflight *before,
                              drupe_event **event) DRUPE_MUST_CHECK;
/* Without the lock: the thread's last error refused this entry, which is dropped. */
void drupe_inflight_refuse(drupe_queue *queue, drupe_inflight *entry);

/* --- unordered.c, unordered_submit.c: out-of-order queues ----------------------------------------------- */

/* The following four need the queue's lock. */
/* The last barrier failed for `cause` (NULL: that counts no more). */
void drupe_unordered_breach(drupe_queue *queue, drupe_cause *cause);
/* The last barrier is this one; `event` NULL: its entry is about to go, or it has failed. */
void drupe_unordered_fence(drupe_queue *queue, drupe_event *event);
/* Launch or defer it; `*over` when it failed at once, as for `unwritten` (NULL: nothing), and the caller
 * drops it. Its event is attached. */
drupe_status drupe_unordered_submit(const drupe_submit_info *info, drupe_inflight *entry,
                                    const drupe_work *work, drupe_cause *unwritten,
                                    bool *over) DRUPE_MUST_CHECK;
/* Detach what is over, looking at `most` entries only. */
drupe_inflight *drupe_unordered_reap(drupe_queue *queue, size_t most);
/* Until everything submitted so far is over. */
drupe_status drupe_unordered_await(drupe_queue *queue, uint64_t deadline) DRUPE_MUST_CHECK;
/* The waiter's step: launch what can be. True when something moved. */
bool drupe_unordered_serve(drupe_queue *queue);

/* --- postpone.c: work that is held back by who builds on core ---------------------------------------------
 */

drupe_status drupe_postponed_submit(drupe_queue *queue) DRUPE_MUST_CHECK;
drupe_status drupe_postponed_readers(drupe_memory *memory) DRUPE_MUST_CHECK;
static inline bool drupe_queue_has_postponed(const drupe_queue *queue)
{
    return atomic_load_explicit(&((drupe_queue *)queue)->postponed, memory_order_acquire);
}
static inline bool drupe_memory_has_readers(const drupe_memory *memory)
{
    return atomic_load_explicit(&((drupe_memory *)memory)->awaited, memory_order_acquire) != 0;
}
/* Before anything that must stand behind it. No lock may be held. */
static inline drupe_status drupe_queue_let_go(drupe_queue *queue)
{
    return drupe_queue_has_postponed(queue) ? drupe_postponed_submit(queue) : DRUPE_OK;
}
static inline drupe_status drupe_memory_let_go(drupe_memory *memory)
{
    return drupe_memory_has_readers(memory) ? drupe_postponed_readers(memory) : DRUPE_OK;
}

/* --- before.c ------------------------------------------------------------------------------------------- */

/* Whether a submission has to wait for other work before it may touch the piece: where the queue's order does
 * not see to it. `ordered`: it is a barrier to an out-of-order queue. */
static inline bool drupe_memory_elsewhere(const drupe_memory *memory, const drupe_queue *queue, bool ordered)
{
    uint32_t order = atomic_load_explicit(&((drupe_memory *)memory)->order, memory_order_relaxed);
    return order && (order != queue->base.number || (drupe_queue_unordered(queue) && !ordered));
}

/* Call `add` for each event that must be over before work outside this piece's queue order may use its bytes;
 * each is retained. Without any, clear the piece's order. No queue's lock may be held; `add` is
 * called with one. */
drupe_status drupe_memory_before(drupe_memory *memory, drupe_status (*add)(void *user, drupe_event *event),
                                 void *user) DRUPE_MUST_CHECK;

/* --- refs.c --------------------------------------------------------------------------------------------- */

/* The references that a submission gathers while it is checked. refs.c's. */
typedef struct drupe_refs {
    drupe_operands all; /* `refs`: `fixed`, or malloc'ed; `pending_failure`: retained */
    size_t capacity;
    drupe_event **before; /* malloc'ed, each retained: what has to be over before the memory may be touched */
    size_t nbefore;
    bool passed_on; /* with a submission info: whoever has them tells of failures */
    drupe_keep fixed[16];
} drupe_refs;

void drupe_refs_init(drupe_refs *refs);
/* `object` is taken, also on failure. */
drupe_status drupe_refs_add(drupe_refs *refs, void *object, void (*release)(void *)) DRUPE_MUST_CHECK;
/* How a submission touches one of its pieces of memory. */
typedef struct drupe_touch {
    bool reads, writes, replaces;
} drupe_touch;
/* Memory for the submission `s`: a use of it, and what that has to wait for. Refused when it
 * reads what holds no result. The caller keeps its reference. */
drupe_status drupe_refs_add_memory(drupe_refs *refs, drupe_memory *memory, const drupe_submission *s,
                                   drupe_touch touch) DRUPE_MUST_CHECK;
/* The submission waits for `event`, taken also on failure. */
drupe_status drupe_refs_add_wait(drupe_refs *refs, drupe_event *event) DRUPE_MUST_CHECK;
/* keeps[i] of the submission, taken also on failure; memory among them has its use already. */
drupe_status drupe_refs_add_keep(drupe_refs *refs, const drupe_submission *s, size_t i) DRUPE_MUST_CHECK;
/* Take the objects of `uses`, behind those that there are: what was taken has no release function there. */
drupe_status drupe_refs_take(drupe_refs *refs, const drupe_operands *uses) DRUPE_MUST_CHECK;
/* Pass the objects on, with a submission info; the array stays here. */
drupe_operands drupe_refs_pass(drupe_refs *refs);
/* Give back what was not passed on. The thread's error stays. */
void drupe_refs_drop(drupe_refs *refs);

#endif
