/* Enqueueing. Nothing here waits; every call leaves either one enqueued command (fills over 1 GiB: several)
 * or none and an error.
 *
 * A queue remembers the event of its last command, so that waiting for the queue needs no command of its own.
 * On a CPU device each command gets an event for that: it costs nothing there, a further command costs a
 * wake-up of a worker (17 us). On a GPU an event costs more than a microsecond, so only those that somebody
 * asked for exist. */
#include "opencl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Some drivers get single fills of 2 GiB and more wrong. */
#define MOST_FILL ((size_t)1 << 30)
#define FEW_WAITS 16

/* --- What every submission does ------------------------------------------------------------------------- */

/* Native events to wait for. Those of the submission's own queue stand in it too: its order would cover them,
 * but only a wait by name makes the driver fail what stands behind a failure. */
typedef struct wait_list {
    cl_event few[FEW_WAITS];
    cl_event *many; /* malloc'ed when `few` is too short */
    cl_uint count;
    const cl_event *list; /* NULL if count is 0, as OpenCL wants it */
    cl_event own;         /* of the command, when only the queue wants one */
} wait_list;

static drupe_status name_waits(const drupe_submit *s, wait_list *waits)
{
    cl_event *out = waits->few;
    if (s->nwaits > FEW_WAITS) {
        out = waits->many = malloc(s->nwaits * sizeof(cl_event));
        if (!out) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu waits.", s->nwaits);
    }
    for (size_t i = 0; i < s->nwaits; i++) {
        const drupe_cl_event *event = drupe_native(s->waits[i]);
        /* Else another queue's work might never start. */
        if (drupe_event_queue(s->waits[i]) != s->queue) drupe_cl_mark_flush(&event->mark);
        out[waits->count++] = event->mark.id;
    }
    waits->list = out;
    return DRUPE_OK;
}

static inline drupe_status gather_waits(const drupe_submit *s, wait_list *waits)
{
    waits->many = NULL;
    waits->count = 0;
    waits->list = NULL;
    waits->own = NULL;
    return s->nwaits == 0 ? DRUPE_OK : name_waits(s, waits);
}

/* Where the command's event goes, or NULL for none. */
static cl_event *event_slot(const drupe_submit *s, drupe_cl_queue *queue, wait_list *waits)
{
    if (!s->event) return queue->device->caps.cpu ? &waits->own : NULL;
    drupe_cl_event *event = drupe_native(s->event);
    event->mark.api = queue->api;
    event->mark.queue = queue;
    return &event->mark.id;
}

/* Free the list, note what was enqueued and turn the code into a status. */
static drupe_status finish(const drupe_submit *s, wait_list *waits, cl_int code, const char *what)
{
    drupe_cl_event *event = s->event ? drupe_native(s->event) : NULL;
    if (waits->many) free(waits->many);
    if (code != CL_SUCCESS) {
        if (event) event->mark.id = NULL;
        drupe_cl_queue_note(s->queue, NULL, NULL);
        return drupe_cl_fail(code, "Queueing %s", what);
    }
    drupe_cl_queue_note(s->queue, waits->own, event);
    return DRUPE_OK;
}

/* --- Kernels -------------------------------------------------------------------------------------------- */

static cl_int set_pointer(const drupe_cl_context *context, cl_kernel id, cl_uint index, const void *pointer)
{
    if (context->tier == DRUPE_CL_TIER_INTEL) return context->intel.set_arg(id, index, pointer);
    if (!pointer) return context->api->SetKernelArg(id, index, sizeof(cl_mem), NULL);
    if (context->tier == DRUPE_CL_TIER_NONE) return CL_INVALID_OPERATION;
    return context->api->SetKernelArgSVMPointer(id, index, pointer);
}

/* "3 (uint n) of the kernel \"f\"" */
static void describe_arg(drupe_kernel *kernel, size_t index, char *text, size_t size)
{
    drupe_arg_info info = {0};
    bool known = drupe_cl_kernel_arg(kernel, index, &info) == DRUPE_OK;
    snprintf(text, size, "%zu%s%s%s%s%s of the kernel \"%s\"", index, known ? " (" : "", info.type_name,
             known ? " " : "", info.name, known ? ")" : "", drupe_kernel_name(kernel));
}

static bool is_set(const drupe_cl_param *param, const drupe_arg *arg, size_t size)
{
    if (!param->set || param->set_kind != arg->kind || param->set_size != size) return false;
    if (arg->kind == DRUPE_ARG_LOCAL) return true;
    if (arg->kind == DRUPE_ARG_POINTER && param->freed != drupe_cl_mem_freed()) return false;
    /* Of the usual sizes without a call. */
    if (size == 8) return memcmp(param->value, arg->value, 8) == 0;
    if (size == 4) return memcmp(param->value, arg->value, 4) == 0;
    return memcmp(param->value, arg->value, size) == 0;
}

static void note_set(drupe_cl_param *param, const drupe_arg *arg, size_t size)
{
    param->set = arg->kind == DRUPE_ARG_LOCAL ? size <= UINT16_MAX : size <= sizeof param->value;
    if (!param->set) return;
    param->set_kind = (uint8_t)arg->kind;
    param->set_size = (uint16_t)size;
    param->freed = drupe_cl_mem_freed();
    if (arg->kind != DRUPE_ARG_LOCAL) memcpy(param->value, arg->value, size);
}

static drupe_status set_arg(drupe_kernel *kernel, const drupe_cl_context *context, size_t index,
                            const drupe_arg *arg)
{
    const drupe_cl_kernel *native = drupe_native(kernel);
    cl_kernel id = native->launched_id;
    drupe_cl_param *param = &native->params[index];
    size_t size = arg->kind == DRUPE_ARG_POINTER ? sizeof(void *) : arg->size;
    char about[256];
    cl_int code;
    if (is_set(param, arg, size)) return DRUPE_OK;
    param->set = false;
    if (arg->kind == DRUPE_ARG_POINTER) {
        void *pointer = *(void *const *)arg->value;
        param->pointed = param->pointed || pointer;
        code = set_pointer(context, id, (cl_uint)index, pointer);
    } else {
        const void *value = arg->kind == DRUPE_ARG_VALUE ? arg->value : NULL;
        code = context->api->SetKernelArg(id, (cl_uint)index, arg->size, value);
    }
    if (code == CL_SUCCESS) {
        note_set(param, arg, size);
        return DRUPE_OK;
    }
    describe_arg(kernel, index, about, sizeof about);
    return drupe_cl_fail(code, "Setting argument %s", about);
}

static cl_int enqueue_kernel(const drupe_submit *s, drupe_cl_queue *queue, const drupe_cl_kernel *kernel,
                             const drupe_range *range, wait_list *waits)
{
    return queue->api->EnqueueNDRangeKernel(queue->id, kernel->launched_id, range->dims, range->offset,
                                            range->global,
                                            kernel->settled_by_driver ? NULL : kernel->settled_local,
                                            waits->count, waits->list, event_slot(s, queue, waits));
}

/* What a precompiled kernel is called with is copied by the driver. */
static cl_int enqueue_builtin(const drupe_submit *s, drupe_cl_queue *queue, drupe_cl_call *call,
                              wait_list *waits)
{
    return queue->api->EnqueueNativeKernel(queue->id, drupe_cl_builtin_run, call, call->size, 0, NULL, NULL,
                                           waits->count, waits->list, event_slot(s, queue, waits));
}

/* The first launch may compile, on this thread with some devices, and some drivers start their workers now.
 */
static cl_int enqueue_first(const drupe_submit *s, drupe_cl_queue *queue, drupe_cl_kernel *kernel,
                            const drupe_range *range, drupe_cl_call *call, wait_list *waits)
{
    drupe_threads *before = NULL;
    drupe_signals_save();
    if (queue->device->caps.cpu) before = drupe_core_adoption_begin();
    cl_int code = call ? enqueue_builtin(s, queue, call, waits) : enqueue_kernel(s, queue, kernel, range, waits);
    if (before) drupe_core_adoption_end(before, queue->device->platform);
    drupe_signals_restore();
    kernel->launched = true;
    return code;
}

/* Without a command; the event, which has no native one, says that it is complete. */
static void complete_at_once(const drupe_submit *s, drupe_cl_queue *queue)
{
    *s->done = true;
    if (!s->event) return;
    drupe_cl_event *event = drupe_native(s->event);
    event->mark.api = queue->api;
    event->mark.queue = queue;
    atomic_store_explicit(&event->mark.complete, true, memory_order_release);
}

static drupe_status submit_builtin(const drupe_submit *s, drupe_cl_queue *queue, drupe_cl_kernel *kernel,
                                   const drupe_range *range, const drupe_arg *args, size_t nargs)
{
    drupe_cl_call call;
    wait_list waits;
    DRUPE_TRY(drupe_cl_builtin_pack(kernel, range, args, nargs, &call));
    /* A driver's thread takes longer to wake than a single work-item to run. */
    if (kernel->inlines && call.items == 1 && s->done && s->nwaits == 0 && drupe_cl_queue_idle(queue)) {
        drupe_cl_builtin_run(&call);
        complete_at_once(s, queue);
        return DRUPE_OK;
    }
    DRUPE_TRY(gather_waits(s, &waits));
    cl_int code = kernel->launched ? enqueue_builtin(s, queue, &call, &waits)
                                   : enqueue_first(s, queue, kernel, range, &call, &waits);
    return finish(s, &waits, code, "a kernel");
}

drupe_status drupe_cl_submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                    const drupe_arg *args, size_t nargs)
{
    drupe_cl_queue *queue = drupe_native(s->queue);
    drupe_cl_kernel *native = drupe_native(kernel);
    if (native->builtin) return submit_builtin(s, queue, native, range, args, nargs);
    DRUPE_TRY(drupe_cl_range_settle(native, range));
    if (queue->context->tier == DRUPE_CL_TIER_COARSE) DRUPE_TRY(drupe_cl_kernel_renew(kernel, args, nargs));
    for (size_t i = 0; i < nargs; i++) DRUPE_TRY(set_arg(kernel, queue->context, i, &args[i]));
    wait_list waits;
    DRUPE_TRY(gather_waits(s, &waits));
    cl_int code = native->launched ? enqueue_kernel(s, queue, native, range, &waits)
                                   : enqueue_first(s, queue, native, range, NULL, &waits);
    return finish(s, &waits, code, "a kernel");
}

/* --- Memory and barriers -------------------------------------------------------------------------------- */

drupe_status drupe_cl_submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    drupe_cl_queue *queue = drupe_native(s->queue);
    if (queue->context->tier == DRUPE_CL_TIER_NONE)
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "This OpenCL device has no unified shared memory to copy.");
    wait_list waits;
    DRUPE_TRY(gather_waits(s, &waits));
    cl_int code;
    if (queue->context->tier == DRUPE_CL_TIER_INTEL) {
        code = queue->context->intel.copy(queue->id, CL_FALSE, dst, src, bytes, waits.count, waits.list,
                                          event_slot(s, queue, &waits));
    } else {
        code = queue->api->EnqueueSVMMemcpy(queue->id, CL_FALSE, dst, src, bytes, waits.count, waits.list,
                                            event_slot(s, queue, &waits));
    }
    return finish(s, &waits, code, "a copy");
}

/* The shortest pattern that repeats to the same bytes: needs less alignment, and some engines fill single
 * bytes only. */
static size_t shortest_pattern(const char *pattern, size_t size)
{
    while (size > 1 && memcmp(pattern, pattern + size / 2, size / 2) == 0) size /= 2;
    return size;
}

static cl_int enqueue_fill(const drupe_cl_queue *queue, void *dst, const void *pattern, size_t pattern_size,
                           size_t bytes, const wait_list *waits, cl_event *event)
{
    cl_uint count = waits ? waits->count : 0;
    const cl_event *list = waits ? waits->list : NULL;
    if (queue->context->tier == DRUPE_CL_TIER_INTEL) {
        return queue->context->intel.fill(queue->id, dst, pattern, pattern_size, bytes, count, list, event);
    }
    return queue->api->EnqueueSVMMemFill(queue->id, dst, pattern, pattern_size, bytes, count, list, event);
}

drupe_status drupe_cl_submit_fill(const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size,
                                  size_t bytes)
{
    drupe_cl_queue *queue = drupe_native(s->queue);
    pattern_size = shortest_pattern(pattern, pattern_size);
    wait_list waits;
    DRUPE_TRY(gather_waits(s, &waits));
    cl_event *slot = event_slot(s, queue, &waits);
    cl_int code = CL_SUCCESS;
    for (size_t done = 0; done < bytes && code == CL_SUCCESS;) {
        size_t part = bytes - done < MOST_FILL ? bytes - done : MOST_FILL;
        code = enqueue_fill(queue, (char *)dst + done, pattern, pattern_size, part, done ? NULL : &waits,
                            done + part == bytes ? slot : NULL);
        done += part;
    }
    return finish(s, &waits, code, "a fill");
}

/* On an in-order queue everything before is covered by the last command's event, which then serves twice; not
 * on a profiling queue, where it would show that command's times. */
static bool barrier_is_there(const drupe_submit *s, drupe_cl_queue *queue)
{
    if (s->nwaits > 0 || queue->unordered) return false;
    if (!s->event) return true;
    drupe_cl_queue_own(queue);
    if (queue->profiling || queue->dirty || !queue->marker.id) return false;
    if (queue->api->RetainEvent(queue->marker.id) != CL_SUCCESS) return false;
    *event_slot(s, queue, NULL) = queue->marker.id;
    return true;
}

drupe_status drupe_cl_submit_barrier(const drupe_submit *s)
{
    drupe_cl_queue *queue = drupe_native(s->queue);
    if (barrier_is_there(s, queue)) return DRUPE_OK;
    wait_list waits;
    DRUPE_TRY(gather_waits(s, &waits));
    /* A marker is enough: an in-order queue goes on behind it, and on an out-of-order one core names what
     * stands behind a barrier. NVIDIA's driver gives times to markers only. */
    cl_int code = queue->api->EnqueueMarkerWithWaitList(queue->id, waits.count, waits.list,
                                                        event_slot(s, queue, &waits));
    return finish(s, &waits, code, "a barrier");
}

/* --- Hints ---------------------------------------------------------------------------------------------- */

/* A hint that the driver refuses is not an error: its place is taken by a barrier. */
static drupe_status finish_hint(const drupe_submit *s, wait_list *waits, cl_int code)
{
    if (code == CL_SUCCESS) return finish(s, waits, code, "a hint");
    free(waits->many);
    return drupe_cl_submit_barrier(s);
}

drupe_status drupe_cl_submit_prefetch(const drupe_submit *s, const void *pointer, size_t bytes)
{
    drupe_cl_queue *queue = drupe_native(s->queue);
    wait_list waits;
    DRUPE_TRY(gather_waits(s, &waits));
    cl_int code = CL_INVALID_OPERATION;
    if (queue->context->tier == DRUPE_CL_TIER_INTEL && queue->context->intel.migrate) {
        code = queue->context->intel.migrate(queue->id, pointer, bytes, 0, waits.count, waits.list,
                                             event_slot(s, queue, &waits));
    } else if (queue->context->tier > DRUPE_CL_TIER_INTEL && queue->device->caps.version >= 21 &&
               queue->api->EnqueueSVMMigrateMem) {
        code = queue->api->EnqueueSVMMigrateMem(queue->id, 1, &pointer, &bytes, 0, waits.count, waits.list,
                                                event_slot(s, queue, &waits));
    }
    return finish_hint(s, &waits, code);
}

drupe_status drupe_cl_submit_advise(const drupe_submit *s, const void *pointer, size_t bytes, uint32_t advice)
{
    drupe_cl_queue *queue = drupe_native(s->queue);
    if (queue->context->tier != DRUPE_CL_TIER_INTEL || !queue->context->intel.advise)
        return drupe_cl_submit_barrier(s);
    wait_list waits;
    DRUPE_TRY(gather_waits(s, &waits));
    cl_int code = queue->context->intel.advise(queue->id, pointer, bytes, advice, waits.count, waits.list,
                                               event_slot(s, queue, &waits));
    return finish_hint(s, &waits, code);
}
