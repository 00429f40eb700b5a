/* Queues and events, and the rules of submissions (drupe/submit.h).
 *
 * Ordering. A queue is in-order unless it was opened otherwise: a submission starts after everything
 * submitted to it earlier has finished. On an out-of-order queue only waits and barriers order: a barrier
 * stands behind everything before it, and everything after it stands behind the barrier; a device without
 * such queues runs one in order. Different queues are independent unless a submission names events to wait
 * for. A wait may only name an event of work that was already submitted, or one of drupe_event_open(). Waits
 * inside one context are the driver's; a submission that waits for another context's or backend's event is
 * held by the engine until that event is done, and everything behind it on an in-order queue is held with it.
 *
 * Failure. An event keeps its own error. A submission whose wait failed, or which stands behind a failed one
 * on its in-order queue, does not run and fails with DRUPE_E_DEPENDENCY, naming the first cause. On an
 * out-of-order queue a failure stops only what waits for it and the barriers behind it. A queue remembers its
 * first error until it has been reported: by drupe_queue_wait(), by drupe_event_wait() on the event that
 * failed, or by drupe_failure_take(). After that the queue works again, unless the device is lost. What is
 * submitted then and waits for the failed work is a failure of its own, and still names the first cause.
 *
 * Keep-alive. What a submission uses (kernel, memory, waited events, the caller's `keeps`) is kept until it
 * has finished; of memory the bytes, not the handle: that is the caller's, who has it during the call.
 * References are dropped only inside drupe_submit_*(), drupe_queue_collect(), drupe_queue_pace() and
 * _pace_heavy(), drupe_queue_release(), drupe_failures_watch(), drupe_trace_update(), drupe_library_settle()
 * and _close(), drupe_memory_export() and, when memory is short, drupe_memory_alloc() and _alloc_result(), on
 * the calling thread: never on a driver's or the engine's own thread. The engine's threads never call back
 * into the caller.
 *
 * Contents. Memory that work was to write, and which did not run or failed, holds no result; see
 * drupe_memory_contents() of drupe/memory.h. A submission that would read it is refused with the first cause.
 *
 * Threads: all functions may be called from any thread; calls on one queue are serialised inside. */
#ifndef DRUPE_QUEUE_H
#define DRUPE_QUEUE_H

#include "drupe/device.h"

typedef struct drupe_queue drupe_queue;
typedef struct drupe_event drupe_event;
typedef struct drupe_kernel drupe_kernel;

enum drupe_queue_flags {
    DRUPE_QUEUE_DEFAULT = 0,       /* in-order */
    DRUPE_QUEUE_PROFILING = 1u,    /* its events carry times; every submission has one */
    DRUPE_QUEUE_OUT_OF_ORDER = 2u, /* ordered by waits and barriers alone */
    DRUPE_QUEUE_PRIORITY_LOW = 4u, /* hints, without effect where the device knows no priorities; not both */
    DRUPE_QUEUE_PRIORITY_HIGH = 8u
};

#define DRUPE_FOREVER UINT64_MAX

/* --- Queues -------------------------------------------------------------------------------------------- */

/* A new queue on `device`, a member of `context` or a sub-device of one. Retained. */
DRUPE_API drupe_status drupe_queue_open(drupe_context *context, drupe_device *device, uint32_t flags,
                                        drupe_queue **queue) DRUPE_MUST_CHECK;
/* The one default queue of a device in its default context: equal devices give the same object. Retained. */
DRUPE_API drupe_status drupe_device_queue(drupe_device *device, drupe_queue **queue) DRUPE_MUST_CHECK;
DRUPE_API drupe_queue *drupe_queue_retain(drupe_queue *queue); /* NULL-safe */
/* NULL-safe. The last release waits for what is in flight. */
DRUPE_API void drupe_queue_release(drupe_queue *queue);
/* Whether this is the last reference, so that releasing it would wait; a hint when other threads use the
 * queue. */
DRUPE_API bool drupe_queue_last(const drupe_queue *queue);
DRUPE_API drupe_device *drupe_queue_device(const drupe_queue *queue);   /* borrowed */
DRUPE_API drupe_context *drupe_queue_context(const drupe_queue *queue); /* borrowed */
DRUPE_API uint32_t drupe_queue_flags_of(const drupe_queue *queue);
/* From 1, never used again in this process: what traces and messages call the queue. */
DRUPE_API uint32_t drupe_queue_number(const drupe_queue *queue);

/* Wait for everything submitted so far. Returns the queue's first unreported error and thereby reports it;
 * DRUPE_E_TIMEOUT when the time is over. */
DRUPE_API drupe_status drupe_queue_wait(drupe_queue *queue, uint64_t timeout_ns) DRUPE_MUST_CHECK;
/* A glance: nothing of an in-order queue is in flight or held back, and there is nothing to report, so that a
 * wait would come back with DRUPE_OK at once. False proves nothing. */
DRUPE_API bool drupe_queue_quiet(const drupe_queue *queue);
/* Give up what has not started; it fails with DRUPE_E_CANCELLED, which counts as reported. `*given_up` says
 * how much that was, `*left` how much goes on because it runs or because this backend's driver has it and
 * cannot give it back. What is submitted afterwards runs. Of an out-of-order queue only what the engine
 * still holds is given up. */
DRUPE_API drupe_status drupe_queue_cancel(drupe_queue *queue, size_t *left,
                                          size_t *given_up) DRUPE_MUST_CHECK;
/* Drop the references of what has finished. Never blocks on the device. */
DRUPE_API void drupe_queue_collect(drupe_queue *queue);
/* Submissions that have not finished, as far as is known without asking the driver; for tests and displays.
 */
DRUPE_API size_t drupe_queue_pending(drupe_queue *queue);

/* For programs that submit in a loop: wait while the queue has more than some hundred submissions that are
 * not over. Array operations do it themselves, and kernels that Python launches. It waits as drupe_observer's
 * pause() does. It does not wait on the engine's threads or while the caller must end the oldest work. It
 * stops waiting when nothing has ended for a second. DRUPE_E_CANCELLED when the program was interrupted. */
DRUPE_API drupe_status drupe_queue_pace(drupe_queue *queue) DRUPE_MUST_CHECK;
/* The same before a submission of so many multiply-adds: the more they are, the fewer may be ahead. Products
 * do it themselves. */
DRUPE_API drupe_status drupe_queue_pace_heavy(drupe_queue *queue, double steps) DRUPE_MUST_CHECK;

/* The queues that somebody holds, those made last first, each retained; at most `capacity`. Returns how many
 * were written. */
DRUPE_API size_t drupe_queue_list(drupe_queue **queues, size_t capacity);
/* What the oldest submission of the queue that waits for events by name still waits for, each retained; at
 * most `capacity`. Returns how many were written; never blocks on the device. */
DRUPE_API size_t drupe_queue_blockers(drupe_queue *queue, drupe_event **events, size_t capacity);
/* Whether queues that are opened from now on get DRUPE_QUEUE_PROFILING, asked for or not: for displays that
 * need the device's times. DRUPE_PROFILE=1 in the environment has it so from the start. Returns what held
 * before. */
DRUPE_API bool drupe_queue_profile(bool all);

/* Whether everything submitted so far is over, found out in at most so long. Unlike a wait it reports no
 * failure and orders nothing, and it leaves the thread's last error alone. */
DRUPE_API bool drupe_queue_idle(drupe_queue *queue, uint64_t timeout_ns);

/* The driver's own handle, for work that others give it: a cl_command_queue on "opencl". What is given to it
 * runs behind everything submitted so far; end with a submission of one's own, such as a barrier, for waits
 * to include it. Borrowed from the queue. DRUPE_E_BUSY while the engine holds back work of this queue,
 * DRUPE_E_UNSUPPORTED where there is no such handle. */
DRUPE_API drupe_status drupe_queue_native(drupe_queue *queue, void **handle) DRUPE_MUST_CHECK;

/* --- Events -------------------------------------------------------------------------------------------- */

typedef enum drupe_event_state {
    DRUPE_EVENT_QUEUED,    /* held by the engine, or not yet taken up by the device */
    DRUPE_EVENT_SUBMITTED, /* handed to the device */
    DRUPE_EVENT_RUNNING,
    DRUPE_EVENT_COMPLETE,
    DRUPE_EVENT_FAILED
} drupe_event_state;

/* Nanoseconds of CLOCK_MONOTONIC where the backend can tell (host), else of the device's clock; only
 * differences between times of one device mean something. */
typedef struct drupe_times {
    uint64_t queued, submitted, started, ended;
} drupe_times;

DRUPE_API drupe_event *drupe_event_retain(drupe_event *event); /* NULL-safe */
DRUPE_API void drupe_event_release(drupe_event *event);        /* NULL-safe */
/* Borrowed; NULL for an event of drupe_event_open(). */
DRUPE_API drupe_queue *drupe_event_queue(const drupe_event *event);
/* The number of its submission in failures and in the trace (which knows nothing of events without a queue).
 */
DRUPE_API uint64_t drupe_event_submission(const drupe_event *event);
/* Never blocks. */
DRUPE_API drupe_event_state drupe_event_state_of(drupe_event *event);
/* Wait until it is complete. Returns its error if it failed (and reports it), DRUPE_E_TIMEOUT when the time
 * is over. */
DRUPE_API drupe_status drupe_event_wait(drupe_event *event, uint64_t timeout_ns) DRUPE_MUST_CHECK;
/* Why it failed; NULL unless its state is FAILED. Borrowed from the event. */
DRUPE_API const drupe_error *drupe_event_error(drupe_event *event);
/* The four times of a finished event of a profiling queue; DRUPE_E_UNSUPPORTED on other queues and where the
 * device has none, DRUPE_E_BUSY while it is not finished. */
DRUPE_API drupe_status drupe_event_times(drupe_event *event, drupe_times *times) DRUPE_MUST_CHECK;
/* What it still waits for by name, each retained: at most `capacity` are written, `*count` is the number
 * there are. A finished event waits for nothing. */
DRUPE_API drupe_status drupe_event_waits(drupe_event *event, drupe_event **waits, size_t capacity,
                                         size_t *count) DRUPE_MUST_CHECK;

/* An event that stands on no queue and ends when the caller says so, for work done elsewhere that device work
 * is to wait for. Whoever opens one has to end it, also when giving up: what waits for it is held until then.
 * `label` (borrowed, NULL = "event") and `site` are for messages. Retained. */
DRUPE_API drupe_status drupe_event_open(const char *label, uint32_t site,
                                        drupe_event **event) DRUPE_MUST_CHECK;
/* End it, or an event of drupe_submit_turn(): complete, or failed with `error` (borrowed) unless that is
 * NULL. Any thread; only the first call counts. DRUPE_E_INVALID for other events, and for completing work
 * before its turn. */
DRUPE_API drupe_status drupe_event_finish(drupe_event *event, const drupe_error *error) DRUPE_MUST_CHECK;

/* --- Being told ---------------------------------------------------------------------------------------- */

/* A list of events of which the finished ones can be taken, with a file descriptor for event loops. */
typedef struct drupe_watch drupe_watch;

/* `wake` (may be NULL) is called on a thread of the engine when something can be taken and nothing could
 * before. It must not block and must not call the engine. */
DRUPE_API drupe_status drupe_watch_open(void (*wake)(void *user), void *user,
                                        drupe_watch **watch) DRUPE_MUST_CHECK;
/* An eventfd that is readable while something can be taken. Never read it; it closes with the watch. */
DRUPE_API int drupe_watch_fd(const drupe_watch *watch);
/* Watch the event (retained) until it is over, however it ends. `user` comes back with it; the same event may
 * be watched several times. */
DRUPE_API drupe_status drupe_watch_add(drupe_watch *watch, drupe_event *event, void *user) DRUPE_MUST_CHECK;
/* The same, but until the turn of drupe_submit_turn()'s event has come, if it comes. */
DRUPE_API drupe_status drupe_watch_turn(drupe_watch *watch, drupe_event *event, void *user) DRUPE_MUST_CHECK;
/* Take one that is over, in the order in which that was seen: `*event` is retained. False when there is none.
 * Never blocks. */
DRUPE_API bool drupe_watch_take(drupe_watch *watch, drupe_event **event, void **user);
/* Forget all events, over or not; `release` (may be NULL) gets the `user` of each. No other call may run.
 * NULL-safe. */
DRUPE_API void drupe_watch_close(drupe_watch *watch, void (*release)(void *user));

#endif
