/* First causes and who has heard of them.
 *
 * All work that did not run because of one failure shares that failure's cause, and one flag says whether it
 * was reported. A queue that is in trouble works again as soon as the flag is set, wherever that happened;
 * what was submitted before that moment still fails, though it may not have had its turn yet.
 *
 * The last reference to a cause may be dropped on the waiter's thread, where the caller's functions must not
 * be called: a cause that still owns a cell is put aside until the caller comes by. */
#include "core/failure/failure_room.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static drupe_cause *first, **end = &first; /* each with a reference */
static _Atomic(drupe_cause *) deferred_frees;

/* Used by everything that fails while no memory is left to write down why. */
static drupe_cause no_memory = {
    .references = 1,
    .what = {.error = {.status = DRUPE_E_NO_MEMORY,
                       .text = "Work failed, and there was no host memory to keep the reason."},
             .label = "work"},
};

drupe_cause *drupe_cause_retain(drupe_cause *cause)
{
    atomic_fetch_add_explicit(&cause->references, 1, memory_order_relaxed);
    return cause;
}

static void cause_free(drupe_cause *cause)
{
    if (!cause->what.cell) {
        free(cause);
        return;
    }
    cause->next = atomic_load(&deferred_frees);
    while (!atomic_compare_exchange_weak(&deferred_frees, &cause->next, cause)) {}
}

void drupe_cause_release(drupe_cause *cause)
{
    while (cause && atomic_fetch_sub_explicit(&cause->references, 1, memory_order_acq_rel) == 1) {
        drupe_cause *before = cause->before;
        cause->before = NULL;
        cause_free(cause);
        cause = before;
    }
}

void drupe_cause_free_deferred(void)
{
    if (!atomic_load_explicit(&deferred_frees, memory_order_relaxed)) return;
    drupe_cause *dead = atomic_exchange(&deferred_frees, NULL);
    while (dead) {
        drupe_cause *next = dead->next;
        drupe_core_cell_release(dead->what.cell);
        free(dead);
        dead = next;
    }
}

/* Detach the causes at the list's head that were reported by other means. */
static drupe_cause *detach_reported(void)
{
    drupe_cause *detached = NULL;
    while (first && atomic_load(&first->reported)) {
        drupe_cause *next = first->next;
        first->next = detached;
        detached = first;
        first = next;
    }
    if (!first) end = &first;
    return detached;
}

static void release_list(drupe_cause *list)
{
    while (list) {
        drupe_cause *next = list->next;
        drupe_cause_release(list);
        list = next;
    }
}

/* With one reference, and in no list; NULL without memory. `work` gives its cell away. */
static drupe_cause *cause_make(const drupe_error *error, drupe_subject *work, const drupe_queue *queue,
                               uint64_t submission)
{
    drupe_cause *cause = calloc(1, sizeof *cause);
    if (!cause) return NULL;
    atomic_init(&cause->references, 1);
    drupe_failure_describe(&cause->what, error, queue, work);
    cause->what.submission = submission;
    if (work) {
        cause->what.cell = work->cell;
        work->cell = NULL;
    }
    cause->queue = queue;
    return cause;
}

/* `before` as in the struct, retained here. */
static drupe_cause *cause_add(const drupe_error *error, drupe_subject *work, const drupe_queue *queue,
                              uint64_t submission, drupe_cause *before)
{
    drupe_cause *cause = cause_make(error, work, queue, submission);
    if (!cause) {
        atomic_store(&no_memory.reported, false);
        (void)drupe_failures_note(&no_memory.what);
        return drupe_cause_retain(&no_memory);
    }
    drupe_core_note("failure: '%s' on %s, submission %llu, cell %u: %s: %s", cause->what.label,
                    cause->what.device, (unsigned long long)submission, cause->what.cell_number,
                    drupe_status_name(error->status), error->text);
    cause->note = drupe_failures_note(&cause->what);
    cause->before = before ? drupe_cause_retain(before) : NULL;
    pthread_mutex_lock(&lock);
    drupe_cause *stale = detach_reported();
    *end = drupe_cause_retain(cause);
    end = &cause->next;
    pthread_mutex_unlock(&lock);
    release_list(stale);
    return cause;
}

/* Reported before that submission was made. */
static bool is_history(drupe_cause *cause, uint64_t number)
{
    pthread_mutex_lock(&lock);
    bool told = atomic_load(&cause->reported) && number > cause->reported_at;
    pthread_mutex_unlock(&lock);
    return told;
}

drupe_cause *drupe_cause_first(drupe_cause *cause)
{
    return cause->before ? cause->before : cause;
}

drupe_cause *drupe_cause_of_wait(drupe_cause *cause, drupe_subject *work, const drupe_queue *queue,
                                 uint64_t number)
{
    drupe_failure own;
    if (!is_history(cause, number)) return drupe_cause_retain(cause);
    drupe_cause_dependent(cause, work, queue, &own);
    return cause_add(&own.error, work, queue, number, cause->before ? cause->before : cause);
}

drupe_cause *drupe_cause_new(const drupe_error *error, drupe_subject *work, const drupe_queue *queue,
                             uint64_t submission)
{
    return cause_add(error, work, queue, submission, NULL);
}

drupe_status drupe_cause_cancelling(const drupe_queue *queue, uint64_t from, drupe_cause **cause)
{
    const drupe_error error = {.status = DRUPE_E_CANCELLED, .text = "The queue's work was cancelled."};
    static const drupe_arg_summary nothing;
    drupe_subject fate = {.label = "cancelled work", .summary = &nothing};
    *cause = cause_make(&error, &fate, queue, from);
    if (!*cause) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to cancel the work of a queue.");
    (*cause)->cancels = true;
    return DRUPE_OK;
}

static void report_locked(drupe_cause *cause)
{
    if (atomic_load(&cause->reported)) return;
    cause->reported_at = drupe_inflight_latest();
    atomic_store(&cause->reported, true);
}

void drupe_cause_report(drupe_cause *cause)
{
    pthread_mutex_lock(&lock);
    report_locked(cause);
    pthread_mutex_unlock(&lock);
}

void drupe_cause_dependent(drupe_cause *cause, const drupe_subject *work, const drupe_queue *queue,
                           drupe_failure *failure)
{
    cause = drupe_cause_first(cause);
    drupe_error error = {.status = DRUPE_E_DEPENDENCY};
    memcpy(error.backend, cause->what.error.backend, sizeof error.backend);
    drupe_failure_describe(failure, &error, queue, work);
    if (!work) snprintf(failure->label, sizeof failure->label, "work");
    char where[128] = "", what[96];
    snprintf(what, sizeof what, work ? "'%s'" : "%s", work ? failure->label : "Work");
    if (cause->what.device[0]) {
        snprintf(where, sizeof where, " on %s (submission %llu)", cause->what.device,
                 (unsigned long long)cause->what.submission);
    }
    if (cause->cancels && cause->queue == queue && !(work && is_history(cause, work->number))) {
        failure->error.status = DRUPE_E_CANCELLED;
        snprintf(failure->error.text, sizeof failure->error.text, "%s on %s was cancelled before it started.",
                 what, drupe_base(queue)->device->filter);
        return;
    }
    /* The first cause comes first: it is what a reader wants to know. */
    const char *why = cause->what.error.text;
    const size_t length = strlen(why);
    const int most = length && why[length - 1] == '.' && length <= 700 ? (int)length - 1 : 700;
    snprintf(failure->error.text, sizeof failure->error.text,
             "'%s'%s failed: %.*s; %s on %s therefore did not run.", cause->what.label, where, most, why,
             work ? what : "work", drupe_base(queue)->device->filter);
}

/* --- Queues in trouble ---------------------------------------------------------------------------------- */

_Atomic(unsigned) drupe_marks_owed;

void drupe_marks_ask(drupe_queue *queue)
{
    if (atomic_fetch_add(&drupe_base(queue)->marks_due, 1) == 0) atomic_fetch_add(&drupe_marks_owed, 1);
}

void drupe_core_trouble(drupe_queue *queue)
{
    atomic_store(&drupe_base(queue)->unheard, true);
    drupe_marks_ask(queue);
}

/* A lost device stays lost, however often it is reported. */
static bool is_over(const drupe_cause *cause, const drupe_queue *queue)
{
    if (!atomic_load(&cause->reported)) return false;
    return cause->what.error.status != DRUPE_E_DEVICE_LOST || !drupe_device_loss(drupe_base(queue)->device);
}

void drupe_queue_set_cause(drupe_queue *queue, drupe_cause *cause, uint64_t from)
{
    drupe_cause *old = NULL;
    pthread_mutex_lock(&lock);
    drupe_cause *seen = atomic_load(&drupe_base(queue)->cause);
    bool none = !seen || (seen != cause && is_over(seen, queue));
    /* What stands further back may fail first, when the caller ends it before its turn. */
    if (none || (from < drupe_base(queue)->cause_from && !drupe_queue_unordered(queue))) {
        old = seen;
        drupe_base(queue)->cause_from = from;
        drupe_base(queue)->cause_at = drupe_inflight_latest();
        /* Before anybody can see the cause, and tell of it. */
        drupe_marks_ask(queue);
        atomic_store(&drupe_base(queue)->cause, drupe_cause_retain(cause));
    }
    pthread_mutex_unlock(&lock);
    drupe_cause_release(old);
}

bool drupe_cause_stops(drupe_cause *cause, uint64_t number, const drupe_queue *queue)
{
    pthread_mutex_lock(&lock);
    bool stops = !is_over(cause, queue) || number <= cause->reported_at;
    pthread_mutex_unlock(&lock);
    return stops;
}

drupe_cause *drupe_queue_pending_failure_at(drupe_queue *queue, uint64_t order, uint64_t number)
{
    if (!atomic_load_explicit(&drupe_base(queue)->cause, memory_order_acquire)) return NULL;
    pthread_mutex_lock(&lock);
    drupe_cause *cause = atomic_load(&drupe_base(queue)->cause);
    bool stopped =
        order > drupe_base(queue)->cause_from && (!is_over(cause, queue) || number <= cause->reported_at);
    if (stopped) drupe_cause_retain(cause);
    pthread_mutex_unlock(&lock);
    return stopped ? cause : NULL;
}

drupe_cause *drupe_queue_pending_failure(drupe_queue *queue, uint64_t number)
{
    return drupe_queue_pending_failure_at(queue, number, number);
}

drupe_cause *drupe_queue_late_failure(drupe_queue *queue, uint64_t number)
{
    if (!atomic_load_explicit(&drupe_base(queue)->cause, memory_order_acquire)) return NULL;
    pthread_mutex_lock(&lock);
    const drupe_queue_base *base = drupe_base(queue);
    drupe_cause *cause = atomic_load(&drupe_base(queue)->cause);
    bool behind = number > base->cause_from && number <= base->cause_at;
    bool late = behind && is_over(cause, queue) && number > cause->reported_at;
    if (late) drupe_cause_retain(cause);
    pthread_mutex_unlock(&lock);
    return late ? cause : NULL;
}

drupe_cause *drupe_queue_trouble(drupe_queue *queue)
{
    if (!atomic_load_explicit(&drupe_base(queue)->cause, memory_order_acquire)) return NULL;
    pthread_mutex_lock(&lock);
    drupe_cause *cause = atomic_load(&drupe_base(queue)->cause);
    cause = is_over(cause, queue) ? NULL : drupe_cause_retain(cause);
    pthread_mutex_unlock(&lock);
    return cause;
}

drupe_cause *drupe_cause_on(const drupe_queue *queue)
{
    pthread_mutex_lock(&lock);
    drupe_cause *cause = first;
    while (cause && (cause->queue != queue || atomic_load(&cause->reported))) cause = cause->next;
    if (cause) drupe_cause_retain(cause);
    pthread_mutex_unlock(&lock);
    return cause;
}

/* --- Errors nobody waited for --------------------------------------------------------------------------- */

/* Take the first unreported cause that is accepted out of the list; the lock is held. */
static drupe_cause *detach_accepted(bool (*accept)(const drupe_failure *failure, void *user), void *user)
{
    drupe_cause **link = &first, *cause;
    while ((cause = *link) != NULL &&
           (atomic_load(&cause->reported) || (accept && !accept(&cause->what, user))))
        link = &cause->next;
    if (!cause) return NULL;
    *link = cause->next;
    if (!cause->next) end = link;
    return cause;
}

bool drupe_cause_take(bool (*accept)(const drupe_failure *failure, void *user), void *user,
                      drupe_failure *failure)
{
    pthread_mutex_lock(&lock);
    drupe_cause *stale = detach_reported();
    drupe_cause *taken = detach_accepted(accept, user);
    if (taken) {
        report_locked(taken);
        *failure = taken->what;
        taken->what.cell = NULL;
    }
    pthread_mutex_unlock(&lock);
    release_list(stale);
    drupe_cause_release(taken);
    return taken != NULL;
}

/* The oldest failure with a number above `after` that nobody was told of, with a share of its cell; counted
 * as shown until the observer has answered, so that it is not shown twice. */
static drupe_cause *begin_offer(uint64_t after, drupe_failure *failure)
{
    pthread_mutex_lock(&lock);
    drupe_cause *cause = NULL;
    for (drupe_cause *at = first; at; at = at->next) {
        if (at->what.submission <= after || at->what.shown || !at->what.cell || atomic_load(&at->reported))
            continue;
        if (!cause || at->what.submission < cause->what.submission) cause = at;
    }
    if (cause) {
        *failure = cause->what;
        failure->cell = drupe_core_cell_share(cause->what.cell);
        cause->what.shown = failure->cell != NULL;
        drupe_cause_retain(cause);
    }
    pthread_mutex_unlock(&lock);
    return cause;
}

void drupe_failures_offer(void)
{
    drupe_failure failure;
    drupe_cause *cause;
    for (uint64_t after = 0; (cause = begin_offer(after, &failure)) != NULL; after = failure.submission) {
        bool shown = failure.cell && drupe_core_failed(&failure);
        drupe_core_cell_release(failure.cell);
        pthread_mutex_lock(&lock);
        cause->what.shown = shown;
        pthread_mutex_unlock(&lock);
        drupe_cause_release(cause);
    }
}

void drupe_failures_clear(void)
{
    pthread_mutex_lock(&lock);
    drupe_cause *list = first;
    first = NULL;
    end = &first;
    for (drupe_cause *cause = list; cause; cause = cause->next) atomic_store(&cause->reported, true);
    pthread_mutex_unlock(&lock);
    release_list(list);
    drupe_cause_free_deferred();
}
