/* Copies, fills and hints. */
#include "core/submit/submit_room.h"
#include <sched.h>
#include <string.h>

/* --- From a lost device ----------------------------------------------------------------------------------
 */

/* Whether the copy is one to host memory from a lost device that computes in host memory: it needs no device.
 */
static bool loss_readable(const drupe_copy_end *dst, const drupe_copy_end *src)
{
    if (dst->memory || !src->memory) return false;
    const drupe_device *device = src->memory->pool->device;
    return drupe_device_silent(device) && device->type == DRUPE_DEVICE_CPU;
}

/* Whether nothing that was to be written there failed with the device; else it is submitted, and refused. */
static drupe_status loss_spared(drupe_memory *memory, drupe_refs *refs, bool *spared)
{
    const drupe_loss *loss = drupe_device_loss(memory->pool->device);
    while (!atomic_load(&((drupe_loss *)loss)->settled)) sched_yield();
    DRUPE_TRY(drupe_mark_read(memory, &refs->all.pending_failure));
    *spared = !refs->all.pending_failure;
    return DRUPE_OK;
}

/* Make it, at once. `event` may be NULL. */
static drupe_status loss_copy(drupe_queue *queue, void *dst, const void *src, size_t bytes,
                              drupe_event **event)
{
    if (event) {
        pthread_mutex_lock(&queue->lock);
        drupe_status status = drupe_event_next(queue, 0, NULL, event);
        pthread_mutex_unlock(&queue->lock);
        DRUPE_TRY(status);
        drupe_event_enter(*event, DRUPE_PHASE_COMPLETE);
    }
    drupe_copy_bytes(dst, src, bytes);
    return DRUPE_OK;
}

/* --- Copy and fill -------------------------------------------------------------------------------------- */

static drupe_status find_end(const drupe_submission *s, const void *pointer, size_t bytes, const char *what,
                             drupe_touch touch, drupe_refs *refs, drupe_copy_end *one_end)
{
    *one_end = (drupe_copy_end){.pointer = (void *)(uintptr_t)pointer};
    if (bytes == 0) return DRUPE_OK;
    if (!pointer) return drupe_error_set(DRUPE_E_INVALID, "%s: the address is NULL.", what);
    DRUPE_TRY(drupe_registry_find(pointer, bytes, what, &one_end->memory));
    if (!one_end->memory) return DRUPE_OK;
    one_end->foreign =
        one_end->memory->context != s->queue->base.context && !drupe_memory_host_accessible(one_end->memory);
    touch.replaces = touch.writes && bytes == one_end->memory->size;
    drupe_status status = drupe_refs_add_memory(refs, one_end->memory, s, touch);
    drupe_memory_release(one_end->memory); /* the caller has it */
    return status;
}

/* Memory of others, which may be a file that is mapped and shorter by now, or another process's. */
static bool lent(const drupe_copy_end *one_end)
{
    return one_end->memory && one_end->memory->imported;
}

static drupe_status submit_copy(const drupe_submission *s, drupe_work *work, drupe_refs *refs,
                                drupe_event **event)
{
    drupe_copy_end to, from;
    DRUPE_TRY(find_end(s, work->dst, work->bytes, "copy target", (drupe_touch){.writes = true}, refs, &to));
    DRUPE_TRY(find_end(s, work->src, work->bytes, "copy source", (drupe_touch){.reads = true}, refs, &from));
    if (work->bytes && drupe_ranges_overlap(work->dst, work->src, work->bytes)) {
        return drupe_error_set(DRUPE_E_INVALID, "The two ranges of a copy of %zu bytes overlap.",
                               work->bytes);
    }
    work->to_host = !to.memory || to.memory->context != s->queue->base.context;
    work->from_host = !from.memory || from.memory->context != s->queue->base.context;
    bool spared = false;
    if (loss_readable(&to, &from)) DRUPE_TRY(loss_spared(from.memory, refs, &spared));
    if (spared) return loss_copy(s->queue, work->dst, work->src, work->bytes, event);
    work->sound = (s->sound || (to.memory && from.memory)) && !lent(&to) && !lent(&from);
    if (!to.foreign && !from.foreign) {
        DRUPE_TRY(drupe_pinned_plan(s->queue, &to, &from, work, refs));
        return drupe_submission_finish(s, refs, work, drupe_label_copy, event);
    }
    drupe_submit_info info;
    DRUPE_TRY(drupe_submission_make_info(s, refs, drupe_label_copy, &info));
    return drupe_cross_context_copy(&info, &to, &from, work->bytes, event);
}

/* What becomes of memory that is kept would have to be looked at. */
static bool keeps_nothing_of_ours(const drupe_submission *s)
{
    for (size_t i = 0; i < s->nkeeps; i++)
        if (s->keeps[i].release == drupe_uses_drop) return false;
    return true;
}

drupe_status drupe_submit_copy(const drupe_submission *s, void *dst, const void *src, size_t bytes,
                               drupe_event **event)
{
    if (event) *event = NULL;
    if (s && keeps_nothing_of_ours(s) && drupe_copy_at_once(s, dst, src, bytes, event)) {
        drupe_keeps_drop(s->keeps, s->nkeeps);
        return DRUPE_OK;
    }
    drupe_refs refs;
    drupe_refs_init(&refs);
    drupe_status status = drupe_submission_begin(s, &refs);
    drupe_work work = {
        .kind = bytes ? DRUPE_WORK_COPY : DRUPE_WORK_MARK, .dst = dst, .src = src, .bytes = bytes};
    if (status == DRUPE_OK) status = submit_copy(s, &work, &refs, event);
    return drupe_submission_end(s, drupe_label_copy, &work, &refs, status);
}

static drupe_status submit_fill(const drupe_submission *s, drupe_work *work, drupe_refs *refs,
                                drupe_event **event)
{
    const size_t bytes = work->bytes, pattern_size = work->pattern_size;
    if (!work->src || pattern_size == 0 || pattern_size > 16 || pattern_size & (pattern_size - 1)) {
        return drupe_error_set(DRUPE_E_INVALID, "A fill's pattern has 1, 2, 4, 8 or 16 bytes, not %zu.",
                               pattern_size);
    }
    if (bytes % pattern_size) {
        return drupe_error_set(DRUPE_E_INVALID, "%zu bytes cannot be filled with a pattern of %zu bytes.",
                               bytes, pattern_size);
    }
    if (bytes == 0) return drupe_submission_finish(s, refs, work, "fill", event);
    if ((uintptr_t)work->dst % pattern_size) {
        return drupe_error_set(
            DRUPE_E_INVALID, "A fill's address must be a multiple of its pattern's size %zu.", pattern_size);
    }
    drupe_copy_end one_end;
    DRUPE_TRY(find_end(s, work->dst, bytes, "fill", (drupe_touch){.writes = true}, refs, &one_end));
    if (!one_end.memory || one_end.memory->context != s->queue->base.context)
        return drupe_error_set(DRUPE_E_INVALID, "A fill needs USM of its queue's context.");
    work->sound = !lent(&one_end);
    return drupe_submission_finish(s, refs, work, "fill", event);
}

drupe_status drupe_submit_fill(const drupe_submission *s, void *dst, const void *pattern, size_t pattern_size,
                               size_t bytes, drupe_event **event)
{
    if (event) *event = NULL;
    drupe_refs refs;
    drupe_refs_init(&refs);
    drupe_status status = drupe_submission_begin(s, &refs);
    drupe_work work = {.kind = bytes ? DRUPE_WORK_FILL : DRUPE_WORK_MARK,
                       .dst = dst,
                       .src = pattern,
                       .pattern_size = pattern_size,
                       .bytes = bytes};
    if (status == DRUPE_OK) status = submit_fill(s, &work, &refs, event);
    return drupe_submission_end(s, "fill", &work, &refs, status);
}

/* --- Hints ---------------------------------------------------------------------------------------------- */

static drupe_status check_hint(const drupe_submission *s, const drupe_work *work, const char *name,
                               drupe_refs *refs)
{
    drupe_copy_end one_end;
    DRUPE_TRY(find_end(s, work->dst, work->bytes, name, (drupe_touch){0}, refs, &one_end));
    if (!work->bytes || (one_end.memory && one_end.memory->context == s->queue->base.context))
        return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID, "%s: the address is not in USM of the queue's context.", name);
}

drupe_status drupe_submit_prefetch(const drupe_submission *s, const void *pointer, size_t bytes,
                                   drupe_event **event)
{
    const drupe_work work = {.kind = bytes ? DRUPE_WORK_PREFETCH : DRUPE_WORK_MARK,
                             .dst = (void *)(uintptr_t)pointer,
                             .bytes = bytes};
    return drupe_submission_run(s, &work, "prefetch", check_hint, event);
}

drupe_status drupe_submit_advise(const drupe_submission *s, const void *pointer, size_t bytes,
                                 uint32_t advice, drupe_event **event)
{
    const drupe_work work = {.kind = bytes ? DRUPE_WORK_ADVISE : DRUPE_WORK_MARK,
                             .dst = (void *)(uintptr_t)pointer,
                             .bytes = bytes,
                             .advice = advice};
    return drupe_submission_run(s, &work, "advice", check_hint, event);
}
