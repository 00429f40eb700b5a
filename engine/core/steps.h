/* The second half of core.h, which includes it: the steps that a submission goes through, file by file. */
#ifndef DRUPE_CORE_STEPS_H
#define DRUPE_CORE_STEPS_H

/* --- event.c, event_memory.c ---------------------------------------------------------------------------- */

/* Have its native state come: another thread has written to it if it is not known to be over. Who asks will
 * write there sooner or later, as one that waits or as the one that uses it again. */
static inline void drupe_event_prefetch(const drupe_event *event)
{
    drupe_prefetch_write(event + 1);
}

/* What was submitted after this number, on the same in-order queue, stands behind the event. Numbers tell the
 * order of submission; a barrier that core puts between others has one that is too high for its place. */
static inline uint64_t drupe_event_place(const drupe_event *event)
{
    return event->behind ? event->behind : event->number;
}
static inline uint64_t drupe_flight_place(const drupe_flight *flight)
{
    return flight->event ? drupe_event_place(flight->event) : flight->number;
}

drupe_status drupe_event_new(drupe_queue *queue, drupe_event **event) DRUPE_MUST_CHECK;
/* The same, quicker, with the queue's lock held. */
drupe_status drupe_event_next(drupe_queue *queue, drupe_event **event) DRUPE_MUST_CHECK;
/* The queue has lost its last handle: from now on each of its events has an inner reference. Takes the
 * queue's lock. */
void drupe_event_count_all(drupe_queue *queue);
/* The last reference is gone, and what it pointed to; its second line is zeroed. `keep`: the backend may
 * still know of it, so its memory stays until the queue goes. */
void drupe_event_put_away(drupe_queue *queue, drupe_event *event, bool keep);
/* Events of one queue that are let go of together: their memory goes back at one time. Zeroed: none. */
typedef struct drupe_event_bunch {
    drupe_event *first, *last;
} drupe_event_bunch;
/* As drupe_event_release() does; NULL-safe. */
void drupe_event_release_to(drupe_event *event, drupe_event_bunch *bunch);
void drupe_event_put_back(drupe_queue *queue, const drupe_event_bunch *bunch);
/* The memory of events that are gone. Nobody else has the queue. */
void drupe_event_forget_spares(drupe_queue *queue);
static inline drupe_phase drupe_event_phase(const drupe_event *event)
{
    return (drupe_phase)atomic_load_explicit(&((drupe_event *)event)->phase, memory_order_acquire);
}
static inline bool drupe_phase_over(drupe_phase phase)
{
    return phase >= DRUPE_PHASE_COMPLETE;
}
/* Ask the backend if it is still its own. No queue lock may be held. */
drupe_phase drupe_event_poll(drupe_event *event);
/* The same for a caller that holds the queue's lock and polls in the order of submission. */
drupe_phase drupe_event_poll_locked(drupe_event *event);
/* Both for many at one time: `*ticks` is 0 for the first of them. */
drupe_phase drupe_event_poll_by(drupe_event *event, uint64_t *ticks);
drupe_phase drupe_event_poll_at(drupe_event *event, uint64_t *ticks);
/* Whether it is complete, without settling it otherwise. The lock is held. */
bool drupe_event_proves(drupe_event *event, uint64_t *ticks);
/* Wait without reporting: DRUPE_OK (over) or DRUPE_E_TIMEOUT. */
drupe_status drupe_event_await(drupe_event *event, uint64_t deadline) DRUPE_MUST_CHECK;
void drupe_event_complete(drupe_event *event, drupe_phase from);
void drupe_event_complete_at(drupe_event *event, drupe_phase from, uint64_t ticks);
/* Fail it: the cause is that of a failed wait, else the queue's, else a new one made from `error`. What it
 * waits for must have settled, if it came from the backend: drupe_event_poll*() see to that. */
void drupe_event_fail(drupe_event *event, drupe_phase from, const drupe_error *error);
/* Fail a fresh event that never had a flight. */
void drupe_event_fail_behind(drupe_event *event, drupe_cause *cause, drupe_flight *flight);
/* Fail an event that is still held for `cause`, without a look at its waits. */
void drupe_event_give_up(drupe_event *event, drupe_cause *cause);
/* Have the waiter woken when it is over; harmless when called again. */
void drupe_event_ask_notify(drupe_event *event);

/* --- flight.c ------------------------------------------------------------------------------------------- */

/* The following need the queue's lock. */
drupe_status drupe_flight_new(drupe_queue *queue, drupe_flight **flight) DRUPE_MUST_CHECK;
/* Take what the ticket brings and make room for `more` waits; on failure the objects not yet taken are the
 * caller's. */
drupe_status drupe_flight_load(drupe_flight *flight, const drupe_ticket *ticket,
                               size_t more) DRUPE_MUST_CHECK;
/* The records that are free. Nobody else has the queue. */
void drupe_flight_forget_spares(drupe_queue *queue);
/* Take the record of work that was done at once for the next one, unless something must be dropped first. */
bool drupe_flight_reuse(drupe_queue *queue, drupe_flight *flight);
/* There is room for one. */
void drupe_flight_add_wait(drupe_flight *flight, drupe_event *wait);
void drupe_flight_append(drupe_queue *queue, drupe_flight *flight);
/* Own copies of what `work` points to. */
drupe_status drupe_flight_copy_work(drupe_flight *flight, const drupe_work *work) DRUPE_MUST_CHECK;
/* Whether a complete kernel of this queue proves those before it. */
bool drupe_queue_leaps(const drupe_queue *queue);
/* A walk over flights in the order of submission that asks how far they are. */
typedef struct drupe_asking {
    unsigned span; /* one may answer for so many; DRUPE_FLIGHT_SPAN at first */
    bool hasty;    /* what none has answered for may be asked the next time */
    uint64_t *ticks;
} drupe_asking;
#define DRUPE_FLIGHT_SPAN 32u
drupe_phase drupe_flight_poll(const drupe_queue *queue, drupe_flight *flight, drupe_asking *asking);
/* Look at what is over, in order; detach it, of an in-order queue `most` at one time. The caller drops the
 * list after unlocking. */
drupe_flight *drupe_flight_reap(drupe_queue *queue, size_t most, bool hasty);
/* The same without detaching: only the trace is told. Of an in-order queue. True: there may be more. */
bool drupe_flight_look(drupe_queue *queue, size_t most);
/* Of an in-order queue: what no look has told to be over yet. */
static inline drupe_flight *drupe_flight_unlooked(const drupe_queue *queue)
{
    return queue->looked ? queue->looked->next : queue->head;
}

/* The number of the latest submission of the process. */
extern _Atomic(uint64_t) drupe_flight_last;
static inline uint64_t drupe_flight_latest(void)
{
    return atomic_load(&drupe_flight_last);
}
/* The number of the next one. */
uint64_t drupe_flight_next(void);

/* Without the lock: drop references and return the records. */
void drupe_flight_drop(drupe_queue *queue, drupe_flight *list);

/* --- program.c ------------------------------------------------------------------------------------------ */

/* Most kernels are launched on one queue, whose lock is held during a launch and protects the kernel too.
 * `sole` is the number of that queue, or 0 before the first launch. With the first launch on another queue it
 * becomes SHARED for good, and each launch takes the kernel's lock as well. Called without a lock, before the
 * queue's lock is taken for a launch. */
#define DRUPE_KERNEL_SHARED UINT32_MAX
void drupe_kernel_share(drupe_kernel *kernel, const drupe_queue *queue);
static inline void drupe_kernel_enter(drupe_kernel *kernel, const drupe_queue *queue)
{
    uint32_t sole = atomic_load_explicit(&kernel->sole, memory_order_acquire);
    if (sole != queue->number && sole != DRUPE_KERNEL_SHARED) drupe_kernel_share(kernel, queue);
}
/* Around a launch, with the queue's lock. */
static inline bool drupe_kernel_lock(drupe_kernel *kernel, const drupe_queue *queue)
{
    if (atomic_load_explicit(&kernel->sole, memory_order_relaxed) == queue->number) return false;
    pthread_mutex_lock(&kernel->lock);
    return true;
}
static inline void drupe_kernel_unlock(drupe_kernel *kernel, bool locked)
{
    if (locked) pthread_mutex_unlock(&kernel->lock);
}

/* --- launch.c: from a ticket to the backend ------------------------------------------------------------- */

/* Queue the work: natively, held, or failed at once when it stands behind a failure. `event` may be NULL. The
 * ticket's refs are taken, also on failure. */
drupe_status drupe_queue_submit(const drupe_ticket *ticket, const drupe_work *work,
                                drupe_event **event) DRUPE_MUST_CHECK;

typedef enum drupe_readiness { DRUPE_READY, DRUPE_BLOCKED, DRUPE_DOOMED } drupe_readiness;

/* The following need the queue's lock. */
/* Whether the flight's waits let it be launched; DOOMED when one of them failed. */
drupe_readiness drupe_flight_ready(const drupe_queue *queue, const drupe_flight *flight);
/* Give the flight to the waiter; the caller puts it on its list. */
drupe_status drupe_flight_hold(drupe_queue *queue, drupe_flight *flight,
                               const drupe_work *work) DRUPE_MUST_CHECK;
/* Whether core runs this work itself. */
bool drupe_work_emulated(const drupe_queue *queue, const drupe_work *work);
/* Until nobody is writing down how the event ended. */
drupe_phase drupe_event_settled(const drupe_event *event);
/* Why a flight that is being placed reads what was not written, retained, or NULL; the queue is in trouble
 * then. */
drupe_cause *drupe_flight_doomed(drupe_queue *queue, drupe_flight *flight);
/* drupe_queue_doom() after a look at the queue's guard. */
drupe_cause *drupe_queue_standing(drupe_queue *queue, uint64_t number);
/* An event of its own for the flight, unless it has one. */
drupe_status drupe_flight_attach(drupe_queue *queue, drupe_flight *flight) DRUPE_MUST_CHECK;
/* Whether work that keeps so many bytes alive gets an event although nobody asked for it. */
bool drupe_queue_wants_event(const drupe_queue *queue, size_t bytes);
/* The backend has the flight's work. */
void drupe_flight_launched(drupe_queue *queue, drupe_flight *flight);
/* Some of what is over, if it is time to look, detached. The next submission keeps `bytes` alive. */
drupe_flight *drupe_queue_reap_some(drupe_queue *queue, size_t bytes);
/* Hand the work to the backend. */
drupe_status drupe_flight_launch(drupe_queue *queue, drupe_flight *flight,
                                 const drupe_work *work) DRUPE_MUST_CHECK;
/* An event at the end of what was launched, retained: the last flight's own or a barrier's; NULL when there
 * is no flight. `before`: a held flight to stop at, or NULL. */
drupe_status drupe_queue_mark(drupe_queue *queue, drupe_flight *before, drupe_event **event) DRUPE_MUST_CHECK;
void drupe_queue_flush_locked(drupe_queue *queue);
/* Without the lock: the thread's last error refused this flight. */
void drupe_flight_refused(const drupe_queue *queue, const drupe_flight *flight);

/* --- failure.c ------------------------------------------------------------------------------------------ */

/* The first cause of one or more failures. */
struct drupe_cause {
    _Atomic(uint32_t) references;
    _Atomic(bool) reported;
    bool cancels; /* it is no failure: drupe_queue_cancel() gave up what stands behind it on its queue */
    drupe_failure what;
    uint64_t note;       /* its id in the log, 0: none */
    drupe_cause *before; /* retained: the first cause, reported before this work was submitted; or NULL */
    const drupe_queue *queue; /* where it happened; compared, never followed */
    uint64_t reported_at;     /* the latest submission then; failure lock */
    drupe_cause *next;        /* in the list of the unreported, or of those that wait to be freed */
};

/* A new cause, in the list of the unreported. `flight` (NULL: unknown) gives its label, site and cell away.
 * `queue` NULL: it happened on none. Never NULL: without memory, a shared one. */
drupe_cause *drupe_cause_new(const drupe_error *error, drupe_flight *flight, const drupe_queue *queue,
                             uint64_t submission);
/* What stops `flight` of `queue`, submission `number`, because a wait failed for `cause`: that; or, where it
 * was reported before the submission was made, a new one, since nobody would hear of this work otherwise.
 * Retained. */
drupe_cause *drupe_cause_of_wait(drupe_cause *cause, drupe_flight *flight, const drupe_queue *queue,
                                 uint64_t number);
/* The one that all began with, borrowed from `cause`. */
drupe_cause *drupe_cause_first(drupe_cause *cause);
drupe_cause *drupe_cause_retain(drupe_cause *cause);
/* May be called on any thread: cells are released by drupe_cause_bury(). */
void drupe_cause_release(drupe_cause *cause); /* NULL-safe */
/* Release the cells of causes that are gone. Only where the caller's references may be dropped. */
void drupe_cause_bury(void);
void drupe_cause_report(drupe_cause *cause);
/* Whether it counts for submission `number`: it is unreported, or was reported after that was made. */
bool drupe_cause_dooms(drupe_cause *cause, uint64_t number, const drupe_queue *queue);
/* Fill `failure` with the DRUPE_E_DEPENDENCY of work that stands behind `cause`; `flight` may be NULL. */
void drupe_cause_dependent(drupe_cause *cause, const drupe_flight *flight, const drupe_queue *queue,
                           drupe_failure *failure);

/* Remember `cause` as what stops everything behind submission `from`, unless an unreported one does that
 * already; one that stops less gives way on an in-order queue. */
void drupe_queue_blame(drupe_queue *queue, drupe_cause *cause, uint64_t from);
/* A cause that is no failure: its queue's work from `from` on is cancelled. */
drupe_status drupe_cause_cancelling(const drupe_queue *queue, uint64_t from,
                                    drupe_cause **cause) DRUPE_MUST_CHECK;
/* What was submitted after `from` is cancelled; needs the queue's lock. */
drupe_status drupe_queue_give_up(drupe_queue *queue, uint64_t from) DRUPE_MUST_CHECK;
/* The failure that submission `number` stands behind, retained, or NULL: one that is unreported, or that was
 * reported after the submission. */
drupe_cause *drupe_queue_doom(drupe_queue *queue, uint64_t number);
/* The same of an event, which may be that of a barrier of core's. */
drupe_cause *drupe_queue_doom_event(drupe_queue *queue, const drupe_event *event);
/* The queue's unreported cause, retained, or NULL. */
drupe_cause *drupe_queue_trouble(drupe_queue *queue);
/* Report the queue's first error: sets it as the thread's and returns its status, else DRUPE_OK. */
drupe_status drupe_queue_report(drupe_queue *queue) DRUPE_MUST_CHECK;
/* Offer the failures that were not told yet to the observer. Any thread. */
void drupe_failures_offer(void);
/* failure_log.c: keep a copy; its id. And count what did not run because of it (0: nothing). Any thread. */
uint64_t drupe_failures_note(const drupe_failure *failure);
void drupe_failures_note_dependent(uint64_t id);
/* late.c: end its thread. */
void drupe_late_stop(void);
/* Forget all causes, for drupe_library_close(). */
void drupe_failures_clear(void);

/* --- trace.c -------------------------------------------------------------------------------------------- */

/* A small number for a device's filter string, for drupe_queue's `trace_device`; 0 when there are too many.
 */
uint32_t drupe_trace_device(const char *filter);
/* What host functions and barriers are called; the trace compares addresses. */
extern const char drupe_label_host[], drupe_label_barrier[];
/* A small number for the name of a kernel; 0 when there are too many. */
uint32_t drupe_trace_name(const char *name);
/* The flight is about to be launched or held; `used`: bytes of memory that it keeps alive. */
void drupe_trace_begin(const drupe_queue *queue, const drupe_flight *flight, const drupe_work *work,
                       size_t used);
/* The whole record of a barrier that was over when it was made. */
void drupe_trace_barrier(const drupe_queue *queue, uint64_t number, uint32_t site, uint32_t cell);
/* A number that gets no record, so that readers need not wait for one. */
void drupe_trace_skip(uint64_t number);
/* It was found to be over. The first call counts. Any thread. */
void drupe_trace_end(uint64_t number, drupe_trace_status status);
/* The same for several that were found at once, at drupe_ticks(). */
void drupe_trace_end_at(uint64_t number, drupe_trace_status status, uint64_t ticks);
/* Its work was done while it was submitted, and well. */
void drupe_trace_end_at_once(uint64_t number);
/* Its end will be written soon. */
void drupe_trace_prefetch(uint64_t number);
/* The device's times of finished work. */
void drupe_trace_times(uint64_t number, const drupe_times *times);
/* trace_look.c: the record of this number is written. */
void drupe_trace_made(uint64_t number);
/* One record; false when it is gone, or was never written. Async-signal-safe. */
bool drupe_trace_one(uint64_t number, drupe_trace_record *record);

/* --- report.c ------------------------------------------------------------------------------------------- */

/* The record of a flight that failed, without its cell; `queue` and `flight` may be NULL. */
void drupe_failure_describe(drupe_failure *failure, const drupe_error *error, const drupe_queue *queue,
                            const drupe_flight *flight);
/* A new cause from the thread's last error, which work without an event up to submission `number` caused:
 * with all that its suspects have in common. The queue's lock is held. */
drupe_cause *drupe_cause_silent(drupe_queue *queue, uint64_t number);
/* A GPU that is lost fails all that nobody has asked for yet, complete or not: say so in the error of the
 * first, submission `number`. Any thread. */
void drupe_failure_widen(drupe_error *error, const drupe_queue *queue, uint64_t number);
/* The thread's last error is `own`; `cause` (NULL: itself) is what stopped it. */
void drupe_failure_tell(const drupe_failure *own, const drupe_failure *cause);
/* The same of a submission that was refused; a cause that goes with the error stays. */
void drupe_failure_tell_refused(drupe_failure *own);

/* --- unordered.c: out-of-order queues ------------------------------------------------------------------- */

static inline bool drupe_queue_unordered(const drupe_queue *queue)
{
    return (queue->flags & DRUPE_QUEUE_OUT_OF_ORDER) != 0;
}
/* With its lock: nobody else changes the number. */
static inline void drupe_queue_count(drupe_queue *queue, int more)
{
    size_t count = atomic_load_explicit(&queue->flights, memory_order_relaxed);
    atomic_store_explicit(&queue->flights, count + (size_t)more, memory_order_relaxed);
}
/* Beside drupe_queue_flags: events have times for the trace, because they cost next to nothing; callers see
 * none. */
#define DRUPE_QUEUE_TIMED (1u << 30)
/* Whether its work gets events, to be asked for times. */
static inline bool drupe_queue_timed(const drupe_queue *queue)
{
    return (queue->flags & (DRUPE_QUEUE_PROFILING | DRUPE_QUEUE_TIMED)) != 0;
}
/* The following five need the queue's lock. */
/* How many waits a submission gets beyond those that it names. */
size_t drupe_unordered_waits(const drupe_queue *queue, bool barrier);
/* Launch or hold it, as a `barrier` too; `*over` when it failed at once and the caller drops it. Its event is
 * attached. */
drupe_status drupe_unordered_place(drupe_queue *queue, drupe_flight *flight, const drupe_work *work,
                                   bool barrier, bool *over) DRUPE_MUST_CHECK;
/* Detach what is over, looking at `most` flights only. */
drupe_flight *drupe_unordered_reap(drupe_queue *queue, size_t most);
void drupe_unordered_settle(drupe_queue *queue);
size_t drupe_unordered_pending(drupe_queue *queue);
/* Until everything submitted so far is over. */
drupe_status drupe_unordered_await(drupe_queue *queue, uint64_t deadline) DRUPE_MUST_CHECK;
/* The waiter's step: launch what can be. True when something moved. */
bool drupe_unordered_serve(drupe_queue *queue);

/* --- use.c ---------------------------------------------------------------------------------------------- */

/* Whether a submission has to wait for other work before it may touch the piece: where the queue's order does
 * not see to it. `ordered`: it is a barrier to an out-of-order queue. */
static inline bool drupe_memory_elsewhere(const drupe_memory *memory, const drupe_queue *queue, bool ordered)
{
    uint32_t order = atomic_load_explicit(&((drupe_memory *)memory)->order, memory_order_relaxed);
    return order && (order != queue->number || (drupe_queue_unordered(queue) && !ordered));
}

/* --- submit.c, stage.c ---------------------------------------------------------------------------------- */

/* The references that a submission gathers while it is checked. */
typedef struct drupe_refs {
    drupe_keep *list; /* `fixed`, or malloc'ed */
    size_t count, capacity;
    size_t bytes;                     /* of memory among them */
    uint64_t written, replaced, read; /* as in drupe_ticket, as is the next */
    unsigned marks_seen;
    drupe_cause *doom;    /* retained */
    drupe_event **before; /* malloc'ed, each retained: what has to be over before the memory may be touched */
    size_t nbefore;
    bool passed_on; /* with a ticket: whoever has them tells of failures */
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
/* Give the objects back; after they were passed on with a ticket: only the array (`count` is 0 then). */
void drupe_refs_drop(drupe_refs *refs);
/* The thread's last error refused this submission: its record for drupe_failure_last(). */
void drupe_failure_refused(const drupe_submission *s, const char *label, const drupe_work *work,
                           const drupe_refs *refs);

/* usual.c: submit a launch with which nothing is wrong, and which has no `keeps`. False, and nothing has
 * happened, when that takes more than a glance. */
bool drupe_submit_usual(const drupe_submission *s, drupe_kernel *kernel, const drupe_range *range,
                        const drupe_arg *args, size_t nargs, drupe_event **event,
                        drupe_status *status) DRUPE_MUST_CHECK;

/* One end of a copy; memory NULL: host memory. */
typedef struct drupe_place {
    void *pointer;
    drupe_memory *memory;
    bool foreign; /* it needs a queue of its own context */
} drupe_place;

/* Whether the copy is one to host memory from a lost device that computes in host memory: it needs no device.
 */
bool drupe_loss_readable(const drupe_place *dst, const drupe_place *src);
/* Make it, at once. `event` may be NULL. */
drupe_status drupe_loss_copy(drupe_queue *queue, void *dst, const void *src, size_t bytes,
                             drupe_event **event) DRUPE_MUST_CHECK;

/* A copy with at least one foreign end, made of ordinary submissions. Takes the ticket's refs. */
drupe_status drupe_stage_copy(const drupe_ticket *ticket, const drupe_place *dst, const drupe_place *src,
                              size_t bytes, drupe_event **event) DRUPE_MUST_CHECK;

/* --- pinned.c ------------------------------------------------------------------------------------------- */

/* Have a large copy made in pieces where that is faster: `work` gets a body for core to run, and `refs` what
 * that needs. The ends' memory must be among them. */
drupe_status drupe_pinned_plan(drupe_queue *queue, const drupe_place *dst, const drupe_place *src,
                               drupe_work *work, drupe_refs *refs) DRUPE_MUST_CHECK;
/* Give up the context's pinned memory; nothing is in flight. */
void drupe_pinned_close(drupe_context *context);

#define DRUPE_RING ((size_t)32 << 20) /* bytes of pinned memory */
char *drupe_ring_buffers(const drupe_ring *ring);
void drupe_ring_give_back(drupe_ring *ring); /* NULL-safe; nothing is in flight */

/* --- crossing.c ----------------------------------------------------------------------------------------- */

#define DRUPE_CROSSING_HANDS 12u

typedef struct drupe_crossing drupe_crossing;
/* A copy by so many threads. Takes the ring, which may be NULL; NULL: no memory, and the ring is not taken.
 */
drupe_crossing *drupe_crossing_new(drupe_ring *ring, unsigned nhands);
/* Which copy; `queue` must outlive its run. */
void drupe_crossing_load(drupe_crossing *crossing, drupe_queue *queue, bool to_device,
                         const drupe_work *work);
void drupe_crossing_release(void *crossing);
/* The body of the submission, a drupe_host_fn; once. Whatever happens, nothing is under way afterwards. */
drupe_status drupe_crossing_run(void *crossing);
/* Have the hands come while the thread that runs it is still being woken; it runs, or will at once. */
void drupe_crossing_hurry(drupe_crossing *crossing);
/* Whether its end is worth watching for: there are processors enough. */
bool drupe_crossing_brisk(const drupe_crossing *crossing);

/* --- prints.c ------------------------------------------------------------------------------------------- */

/* Whether kernels of this text may print, as far as the text itself shows it. */
bool drupe_prints_source(const drupe_source *source);
/* An event that such work has to wait for, so that the text of what is before it on its queue goes to another
 * cell; retained, or NULL. */
drupe_event *drupe_prints_gate(const drupe_queue *queue);
/* Work of such a program was submitted by this thread; borrowed. */
void drupe_prints_begin(drupe_event *event);
/* End the thread; the work is over, or nobody waits for it any more. */
void drupe_prints_stop(void);

/* --- queue.c -------------------------------------------------------------------------------------------- */

/* Of a queue that the caller never saw: that its work is over tells the caller nothing. NULL-safe. */
void drupe_queue_release_inside(drupe_queue *queue);
void drupe_queue_inner_retain(drupe_queue *queue);
void drupe_queue_inner_release(drupe_queue *queue);
/* Look at what has finished without dropping anything. `leaping`: where a kernel answers for others, let it;
 * not where one of them is known to have failed. */
void drupe_queue_settle(drupe_queue *queue, bool leaping);
/* Wait until everything is over, whatever it ended like, and drop its references. */
void drupe_queue_finish(drupe_queue *queue, uint64_t deadline);
/* Push what was submitted to the hardware. */
void drupe_queue_flush(drupe_queue *queue);
/* The queue after `queue` (NULL: the first) with an inner reference; that of `queue` is given up. */
drupe_queue *drupe_queue_walk(drupe_queue *queue);

/* --- worker.c: threads for host functions --------------------------------------------------------------- */

/* There is a worker. */
drupe_status drupe_worker_start(void) DRUPE_MUST_CHECK;
/* Run job->run(job) on a worker; after drupe_worker_start(). Jobs may wait for each other: as long as all
 * workers are busy more are started, up to 64. */
void drupe_worker_post(drupe_job *job);
/* A worker faulted in its job, which fails. False when it was none of these. */
bool drupe_worker_fault(const drupe_fault *fault);

/* --- lost.c, contain.c ---------------------------------------------------------------------------------- */

/* The labels of what the device may have been at, appended: of the submissions that are not over, the one
 * whose kernel became `function` ("" = unknown), else the first of each queue and how many stand behind it.
 */
void drupe_loss_suspects(const drupe_device *device, const char *function, drupe_text *text);
/* drupe_core_device_lost(), for a fault in that function: each queue's failure is that of its kernel, if any.
 */
void drupe_device_lose(drupe_device *device, const char *function, const drupe_error *error, bool silent);
/* End the thread that serves faults; it starts again with the next adopted thread. */
void drupe_contain_stop(void);
/* End the threads, unless jobs are left. */
void drupe_worker_stop(void);

/* --- watch.c -------------------------------------------------------------------------------------------- */

/* The waiter's step: move what is over to where it is taken from. `*poll` is set when a driver has some of
 * the rest. */
bool drupe_watch_serve(bool *poll);

/* --- hold.c --------------------------------------------------------------------------------------------- */

/* Give a queue with held work to the waiter; the queue's lock is held. */
drupe_status drupe_hold_add(drupe_queue *queue) DRUPE_MUST_CHECK;
/* Something may have finished. */
void drupe_hold_kick(void);
/* The waiter, for one more (1) or fewer (-1) that it has to look after. Fails only with 1. */
drupe_status drupe_hold_attend(int more) DRUPE_MUST_CHECK;
/* Events that core itself ends can be waited for. */
drupe_status drupe_hold_prepare(void) DRUPE_MUST_CHECK;
/* One look at a held flight: launch it, start its host function, or fail it. True when it is no longer held.
 * The queue's lock is held. */
bool drupe_hold_advance(drupe_queue *queue, drupe_flight *flight);
/* The same for one that was just submitted, if nothing stands before it and a thread of core runs it: waking
 * the waiter for that takes longer than many of them. The queue's lock is held. */
void drupe_hold_begin(drupe_queue *queue, drupe_flight *flight);
/* Look at what a held flight waits for, without a lock. */
void drupe_hold_poll(const drupe_flight *flight);
/* A host function that core ran is over before the waiter has put its flight away: let it, so that what is
 * over can be collected. */
void drupe_hold_let_pass(drupe_queue *queue);
/* Tell those who wait for a held event that it has changed. */
void drupe_hold_announce(void);
/* Until the event is neither held nor running in core, or the deadline passed (false). */
bool drupe_hold_await(drupe_event *event, uint64_t deadline);
/* End the threads, unless work is still held. For what is over and has only not been put away the waiter is
 * given until the deadline, 0.2 s at least and 20 s at most. */
void drupe_hold_stop(uint64_t deadline);

#endif
