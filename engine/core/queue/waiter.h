/* Who serves deferred work, runs host functions and is told of failures: the threads of queue/, and their
 * callers. */
#ifndef DRUPE_CORE_WAITER_H
#define DRUPE_CORE_WAITER_H

#include "core/fault/fault_room.h"
#include "core/queue/queue_room.h"
#include <stdlib.h>

/* --- trouble.c, suspects.c ------------------------------------------------------------------------------ */

/* Report the queue's first error: sets it as the thread's and returns its status, else DRUPE_OK. */
drupe_status drupe_queue_report(drupe_queue *queue) DRUPE_MUST_CHECK;
/* A new cause from the thread's last error, which work without an event up to submission `number` caused:
 * with all that its suspects have in common. The queue's lock is held. */
drupe_cause *drupe_cause_silent(drupe_queue *queue, uint64_t number);
/* The loss of a GPU also fails complete work that nobody has asked for. So add to the error of the first,
 * submission `number`, how many later ones may be to blame. Any thread. */
void drupe_failure_widen(drupe_error *error, const drupe_queue *queue, uint64_t number);

/* --- worker.c: threads for host functions --------------------------------------------------------------- */

/* There is a worker. */
drupe_status drupe_worker_start(void) DRUPE_MUST_CHECK;
/* Run run(job) on a worker; after drupe_worker_start(). If it faults, fail(job) is called instead of the
 * rest, with the thread's error, which names `what` (static; "host function" or the like). Jobs may wait for
 * each other: as long as all workers are busy more are started, up to 64. */
void drupe_worker_post(drupe_job *job, void (*run)(drupe_job *), void (*fail)(drupe_job *), const char *what);
/* True: no worker has begun it, and none will; the caller runs it. */
bool drupe_worker_take(drupe_job *job) DRUPE_MUST_CHECK;
/* A worker faulted in its job, which fails. False when it was none of these. */
bool drupe_worker_fault(const drupe_fault *fault);
/* End the threads, unless jobs are left. */
void drupe_worker_stop(void);

/* --- lost.c, fault_deliver.c, fault_text.c -------------------------------------------------------------- */

/* The labels of what the device may have been at, appended: of the submissions that are not over, the one
 * whose kernel became `function` ("" = unknown), else the first of each queue and how many stand behind it.
 */
void drupe_loss_suspects(const drupe_device *device, const char *function, drupe_text *text);
/* drupe_core_device_lost(), for a fault in that function: each queue's failure is that of its kernel, if any.
 */
void drupe_device_lose(drupe_device *device, const char *function, const drupe_error *error, bool silent);
/* "SIGSEGV" and such. */
const char *drupe_fault_signal(int signal);
/* Tell those whose thread it was, on the thread that serves faults; registered with fault/. */
void drupe_fault_deliver(const drupe_fault *fault);

/* --- throttle.c, defaults.c ----------------------------------------------------------------------------- */

/* As pace() and room() of drupe_memory_users. */
drupe_status drupe_throttle(drupe_device *root, uint64_t bytes) DRUPE_MUST_CHECK;
drupe_status drupe_throttle_room(drupe_device *root, uint64_t deadline) DRUPE_MUST_CHECK;
/* Give up the default queue and context of a device, and the library's reference with it. */
void drupe_device_forget(drupe_device *device);

/* --- waiter.c, deferred.c ------------------------------------------------------------------------------- */

/* What the waiter does in each round. True: something moved. */
typedef bool (*drupe_serve_queue)(drupe_queue *queue); /* one step of a queue with deferred work */
typedef bool (*drupe_serve_others)(bool *poll);        /* `*poll`: a driver has some of the rest */
/* Registered when the first queue is opened, and with the first watched event. */
void drupe_waiter_queues(drupe_serve_queue serve);
void drupe_waiter_others(drupe_serve_others serve);
/* On the waiter's thread: it has seen something that a driver will end. */
void drupe_waiter_poll(void);
/* Launch what can be launched of a queue's deferred work. */
bool drupe_deferred_serve(drupe_queue *queue);
/* Keep the work of a submission until it can be launched; the caller puts the entry on the queue's list.
 * `read`: which of its references it reads. The queue's lock is held. */
drupe_status drupe_inflight_defer(drupe_queue *queue, drupe_inflight *entry, const drupe_work *work,
                                  uint64_t read) DRUPE_MUST_CHECK;
/* The entry is over: give up what its deferral kept. Without the lock. */
static inline void drupe_deferral_drop(drupe_deferral *deferral)
{
    drupe_event_release(deferral->marker);
    free(deferral->copy);
    deferral->marker = NULL;
    deferral->copy = NULL;
}
/* Give a queue with deferred work to the waiter, which the caller wakes; the queue's lock is held. */
drupe_status drupe_deferred_add(drupe_queue *queue) DRUPE_MUST_CHECK;
/* Something may have finished. */
void drupe_deferred_kick(void);
/* The waiter has one more to look after; so many fewer. */
drupe_status drupe_deferred_attend(void) DRUPE_MUST_CHECK;
void drupe_deferred_dismiss(size_t count);
/* One look at a deferred entry: launch it, start its host function, or fail it. True when it is no longer
 * deferred. The queue's lock is held. */
bool drupe_deferred_advance(drupe_queue *queue, drupe_inflight *entry);
/* The same for one that was just submitted, if nothing stands before it and a thread of core runs it: waking
 * the waiter for that takes longer than many of them. True: it runs, and its end wakes the waiter. The
 * queue's lock is held. */
bool drupe_deferred_begin(drupe_queue *queue, drupe_inflight *entry);
/* Look at what a deferred entry waits for, without a lock. */
void drupe_deferred_poll(const drupe_inflight *entry);
/* A thread that waits for work of the queue takes its part in a copy that core's threads make; a copy that no
 * thread has begun ends with it. True: it is over. No lock may be held. */
bool drupe_deferred_help(drupe_queue *queue, uint64_t deadline);
/* A host function that core ran is over before the waiter has put its entry away: let it, so that what is
 * over can be collected. */
void drupe_deferred_let_pass(drupe_queue *queue);
/* Tell those who wait for a deferred event that it has changed. */
void drupe_deferred_announce(void);
/* Until the event is neither deferred nor running in core, or the deadline passed (false). */
bool drupe_deferred_await(drupe_event *event, uint64_t deadline);
/* End the threads, unless work is still deferred. For what is over and has only not been put away the waiter
 * is given until the deadline, 0.2 s at least and 20 s at most. */
void drupe_deferred_stop(uint64_t deadline);

#endif
