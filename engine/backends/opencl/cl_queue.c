/* Queues.
 *
 * An out-of-order queue is the driver's where it has such queues, else an in-order one: core names all waits.
 * The driver's is finished before it is released (retire.c).
 *
 * clFinish cannot be given up, so a queue is waited for by its last command's event, or by a marker where
 * that has none. The marker is kept while the wait times out and nothing new comes, so that waiting in slices
 * does not pile up markers.
 *
 * An engine's event lends its native one as the marker, since another reference costs a driver's locks twice
 * in each submission. Whoever wants to use the marker makes it the queue's own first, and an event that
 * closes while it lends leaves its native one to the queue; as that may happen on any thread, the lender's
 * lowest bit locks both. While there is a lender, `marker` is empty. */
#include "opencl.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static cl_queue_properties priority(uint32_t flags)
{
    return flags & DRUPE_QUEUE_PRIORITY_HIGH ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR;
}

static cl_command_queue create_native(const drupe_cl_queue *queue, uint32_t flags, cl_int *code)
{
    const drupe_cl_device *device = queue->device;
    const drupe_cl_api *api = queue->api;
    cl_command_queue_properties bits = 0;
    if (queue->timed) bits |= CL_QUEUE_PROFILING_ENABLE;
    if (queue->unordered) bits |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    if (device->caps.version < 20 || !api->CreateCommandQueueWithProperties) {
        return api->CreateCommandQueue(queue->context->id, device->id, bits, code);
    }
    cl_queue_properties properties[5] = {CL_QUEUE_PROPERTIES, bits, 0};
    bool prioritised = flags & (DRUPE_QUEUE_PRIORITY_LOW | DRUPE_QUEUE_PRIORITY_HIGH);
    if (prioritised && device->caps.priorities) {
        properties[2] = CL_QUEUE_PRIORITY_KHR;
        properties[3] = priority(flags);
    }
    return api->CreateCommandQueueWithProperties(queue->context->id, device->id, properties, code);
}

drupe_status drupe_cl_queue_open(drupe_queue *queue, uint32_t flags)
{
    drupe_cl_queue *native = drupe_native(queue);
    native->device = drupe_native(drupe_queue_device(queue));
    native->context = drupe_native(drupe_queue_context(queue));
    native->api = native->context->api;
    native->marker.api = native->api;
    native->marker.queue = native;
    native->profiling = (flags & DRUPE_QUEUE_PROFILING) && native->device->caps.profiling;
    const char *wanted = getenv("DRUPE_PROFILE");
    bool refused = wanted && strcmp(wanted, "0") == 0;
    native->timed = native->profiling || (native->device->caps.times_free && !refused);
    native->unordered = (flags & DRUPE_QUEUE_OUT_OF_ORDER) && native->device->caps.unordered;
    cl_int code = CL_SUCCESS;
    drupe_signals_save();
    native->id = create_native(native, flags, &code);
    drupe_signals_restore();
    if (code == CL_SUCCESS) return DRUPE_OK;
    native->id = NULL;
    if (code == CL_INVALID_DEVICE && native->device->sub) {
        return drupe_cl_fail_as(
            DRUPE_E_UNSUPPORTED, code,
            "This OpenCL driver takes sub-devices only in a context that was opened over them: "
            "open one with the sub-devices in its list.");
    }
    return drupe_cl_fail(code, "Opening a queue");
}

void drupe_cl_queue_close(drupe_queue *queue)
{
    drupe_cl_queue *native = drupe_native(queue);
    cl_command_queue both[] = {native->id, native->before};
    if (!native->id) return;
    drupe_cl_mark_clear(&native->marker);
    for (size_t i = 0; i < DRUPE_COUNT_OF(both) && both[i]; i++) {
        if (native->unordered)
            drupe_cl_retire(native, both[i]);
        else
            native->api->ReleaseCommandQueue(both[i]);
    }
    native->id = native->before = NULL;
}

drupe_status drupe_cl_queue_times(drupe_queue *queue, bool *kept)
{
    const drupe_cl_queue *native = drupe_native(queue);
    *kept = native->timed;
    return DRUPE_OK;
}

/* Have the new one go on where the old one stands, so that what waits for it waits for both. */
static cl_int chain(const drupe_cl_queue *queue, cl_command_queue fresh)
{
    cl_event end = NULL;
    cl_int code = queue->api->EnqueueMarkerWithWaitList(queue->id, 0, NULL, &end);
    if (code == CL_SUCCESS) code = queue->api->Flush(queue->id);
    if (code == CL_SUCCESS) code = queue->api->EnqueueMarkerWithWaitList(fresh, 1, &end, NULL);
    if (end) queue->api->ReleaseEvent(end);
    return code;
}

/* A queue of the driver cannot change, so a second one takes its place. The first one stays open: those who
 * wait for its events may flush it. */
drupe_status drupe_cl_queue_time(drupe_queue *queue)
{
    drupe_cl_queue *native = drupe_native(queue);
    if (!native->device->caps.profiling)
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "This OpenCL device keeps no times of its work.");
    native->profiling = true;
    if (native->timed) return DRUPE_OK;
    native->timed = true;
    cl_int code = CL_SUCCESS;
    cl_command_queue fresh = create_native(native, drupe_queue_flags_of(queue), &code);
    if (code == CL_SUCCESS) code = chain(native, fresh);
    if (code != CL_SUCCESS) {
        native->timed = native->profiling = false;
        if (fresh) native->api->ReleaseCommandQueue(fresh);
        return drupe_cl_fail(code, "Opening a queue with times");
    }
    drupe_cl_queue_own(native);
    drupe_cl_queue_note(queue, NULL, NULL);
    native->before = native->id;
    native->id = fresh;
    return DRUPE_OK;
}

drupe_status drupe_cl_queue_native(drupe_queue *queue, void **handle)
{
    drupe_cl_queue *native = drupe_native(queue);
    drupe_cl_queue_note(queue, NULL, NULL);
    *handle = native->id;
    return DRUPE_OK;
}

drupe_status drupe_cl_queue_flush(drupe_queue *queue)
{
    drupe_cl_queue *native = drupe_native(queue);
    if (!atomic_exchange(&native->unflushed, false)) return DRUPE_OK;
    cl_int code = native->api->Flush(native->id);
    return code == CL_SUCCESS ? DRUPE_OK : drupe_cl_fail(code, "Starting the queued work");
}

/* --- The marker ----------------------------------------------------------------------------------------- */

static drupe_cl_event *lender_lock(drupe_cl_queue *queue)
{
    for (;;) {
        uintptr_t seen = atomic_load_explicit(&queue->lender, memory_order_relaxed);
        if (seen & 1)
            sched_yield();
        else if (atomic_compare_exchange_weak_explicit(&queue->lender, &seen, seen | 1, memory_order_acquire,
                                                       memory_order_relaxed))
            return (drupe_cl_event *)seen;
    }
}

static void lender_unlock(drupe_cl_queue *queue, const drupe_cl_event *lender)
{
    atomic_store_explicit(&queue->lender, (uintptr_t)lender, memory_order_release);
}

/* Whether the lender may close just now. That of the last submission does not: core keeps it. Without a
 * lender nobody else comes: only a submission makes one. */
static bool lender_may_close(const drupe_queue *queue, drupe_cl_queue *native)
{
    uintptr_t lender = atomic_load_explicit(&native->lender, memory_order_acquire);
    const drupe_event *last = lender ? drupe_queue_newest(queue) : NULL;
    return lender && (!last || (uintptr_t)drupe_native(last) != lender);
}

void drupe_cl_queue_note(drupe_queue *queue, cl_event own, drupe_cl_event *event)
{
    drupe_cl_queue *native = drupe_native(queue);
    atomic_store_explicit(&native->unflushed, true, memory_order_release);
    /* The end of one command says nothing about the others of an out-of-order queue. */
    native->dirty = (!own && !event) || native->unordered;
    if (own && native->unordered) native->api->ReleaseEvent(own);
    if (native->dirty) return;
    if (lender_may_close(queue, native)) (void)lender_lock(native);
    if (native->marker.id) drupe_cl_mark_clear(&native->marker);
    native->marker.id = own;
    lender_unlock(native, own ? NULL : event);
}

void drupe_cl_queue_own(drupe_cl_queue *queue)
{
    const drupe_cl_event *lender = lender_lock(queue);
    if (lender && queue->api->RetainEvent(lender->mark.id) == CL_SUCCESS)
        queue->marker.id = lender->mark.id;
    else if (lender)
        queue->dirty = true;
    lender_unlock(queue, NULL);
}

bool drupe_cl_queue_idle(drupe_cl_queue *queue)
{
    if (queue->unordered || queue->dirty) return false;
    drupe_cl_event *lender = lender_lock(queue);
    drupe_cl_mark *last = lender ? &lender->mark : &queue->marker;
    const bool idle = !last->id || drupe_cl_mark_status(last) == CL_COMPLETE;
    lender_unlock(queue, lender);
    return idle;
}

void drupe_cl_queue_inherit(drupe_cl_event *event)
{
    drupe_cl_queue *queue = event->mark.queue;
    uintptr_t lent = (uintptr_t)event, seen = lent;
    /* Most do not lend any more when they close; who took it from them has let go of them since. */
    if (!queue || (atomic_load_explicit(&queue->lender, memory_order_acquire) | 1) != (lent | 1)) return;
    /* An event that does not lend any more never will again, and the lock is another's then. */
    while (!atomic_compare_exchange_weak_explicit(&queue->lender, &seen, lent | 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
        if ((seen | 1) != (lent | 1)) return;
        if (seen & 1) sched_yield();
        seen = lent;
    }
    queue->marker.id = event->mark.id;
    event->mark.id = NULL;
    lender_unlock(queue, NULL);
}

static drupe_status submit_marker(drupe_cl_queue *queue)
{
    drupe_cl_mark_clear(&queue->marker);
    cl_int code = queue->api->EnqueueMarkerWithWaitList(queue->id, 0, NULL, &queue->marker.id);
    if (code != CL_SUCCESS) {
        queue->marker.id = NULL;
        return drupe_cl_fail_event(code);
    }
    queue->dirty = false;
    atomic_store(&queue->unflushed, true);
    return DRUPE_OK;
}

drupe_status drupe_cl_queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    drupe_cl_queue *native = drupe_native(queue);
    drupe_cl_queue_own(native);
    if (!native->dirty && !native->marker.id) return DRUPE_OK;
    if (native->dirty) DRUPE_TRY(submit_marker(native));
    DRUPE_TRY(drupe_cl_mark_wait(&native->marker, timeout_ns));
    cl_int status = drupe_cl_mark_status(&native->marker);
    drupe_cl_mark_clear(&native->marker);
    return status >= CL_COMPLETE ? DRUPE_OK : drupe_cl_fail_event(status);
}
