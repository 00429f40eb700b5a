/* Copies that no single driver can make: an end lies in memory of another context.
 *
 * They are composed of ordinary submissions, so that order, failure and keep-alive need no rules of their
 * own. The foreign half runs on a queue opened for this copy in the foreign context. Its place in the user's
 * queue is kept by events: the foreign half waits for the user's queue up to here, and the user's queue waits
 * for the foreign half. Data crosses through a bounce buffer in host memory unless one end is host memory
 * already.
 *
 *     source foreign:  [barrier on q] -> foreign queue: bounce <- src -> q: dst <- bounce
 *     target foreign:  q: bounce <- src -> foreign queue: dst <- bounce -> q: barrier
 *     both foreign:    [barrier on q] -> bounce <- src -> dst <- bounce -> q: barrier */
#include "core/transfer/transfer_room.h"
#include <stdlib.h>

struct stage {
    const drupe_submit_info *info;
    drupe_event *last; /* retained: what the next step waits for; NULL at first */
    void *bounce;
    bool bounced;
    drupe_queue *read, *write; /* foreign queues, retained, or NULL */
};

static void release_queue(void *object)
{
    drupe_queue_release_inside(object);
}

static drupe_status open_foreign(const drupe_copy_end *one_end, drupe_queue **queue)
{
    if (!one_end->foreign) return DRUPE_OK;
    const drupe_memory *memory = one_end->memory;
    return drupe_queue_open(memory->context, memory->queue->base.device, DRUPE_QUEUE_DEFAULT, queue);
}

/* One step on `queue`. The first step waits for what the user named, the others for the step before. */
static drupe_status step(struct stage *stage, drupe_queue *queue, const drupe_work *work, drupe_refs *refs)
{
    drupe_submit_info info = *stage->info;
    info.queue = queue;
    info.kept = info.kept || stage->bounced;
    /* What becomes of the memory shows in the step that has it all. */
    info.uses = refs ? drupe_refs_pass(refs) : (drupe_operands){.refs = NULL};
    info.uses.marks_seen = stage->info->uses.marks_seen;
    info.uses.pending_failure = stage->last ? NULL : stage->info->uses.pending_failure;
    if (stage->last) {
        info.waits = &stage->last;
        info.nwaits = 1;
    }
    drupe_event *event;
    DRUPE_TRY(drupe_queue_submit(&info, work, &event));
    drupe_event_release(stage->last);
    stage->last = event;
    return DRUPE_OK;
}

/* `used`: the end that is not plain host memory. */
static drupe_status copy_step(struct stage *stage, drupe_queue *queue, void *dst, const void *src,
                              size_t bytes, drupe_memory *used)
{
    drupe_refs refs;
    drupe_refs_init(&refs);
    const drupe_keep keep = drupe_memory_keep(used, queue);
    drupe_status status = drupe_refs_add(&refs, keep.object, keep.release);
    (void)status; /* there is room for a few */
    drupe_work work = {.kind = DRUPE_WORK_COPY, .dst = dst, .src = src, .bytes = bytes};
    uintptr_t offset = (uintptr_t)dst - (uintptr_t)drupe_memory_pointer(used);
    work.from_host = offset < drupe_memory_size(used);
    work.to_host = !work.from_host;
    return step(stage, queue, &work, &refs);
}

/* Among the first, for which there is room. */
static void give_queue(drupe_queue **queue, drupe_refs *refs)
{
    drupe_status status = *queue ? drupe_refs_add(refs, *queue, release_queue) : DRUPE_OK;
    (void)status;
    *queue = NULL;
}

/* The last step, on the user's queue: it owns everything that all steps use. The foreign queues come first:
 * letting go of them waits for their half of the copy, which uses what comes after. */
static drupe_status last_step(struct stage *stage, const drupe_work *work)
{
    drupe_refs refs;
    drupe_refs_init(&refs);
    give_queue(&stage->read, &refs);
    give_queue(&stage->write, &refs);
    drupe_status status = drupe_refs_take(&refs, &stage->info->uses);
    if (status == DRUPE_OK && stage->bounce) {
        status = drupe_refs_add(&refs, stage->bounce, free);
        stage->bounce = NULL;
    }
    if (status == DRUPE_OK) status = step(stage, stage->info->queue, work, &refs);
    drupe_refs_drop(&refs);
    return status;
}

static drupe_status run_steps(struct stage *stage, const drupe_copy_end *dst, const drupe_copy_end *src,
                              size_t bytes)
{
    drupe_queue *queue = stage->info->queue;
    drupe_work barrier = {.kind = DRUPE_WORK_MARK};
    void *middle = stage->bounce;
    const void *from = src->pointer;
    if (!middle) middle = dst->pointer;
    if (src->foreign) {
        DRUPE_TRY(step(stage, queue, &barrier, NULL));
        DRUPE_TRY(copy_step(stage, stage->read, middle, from, bytes, src->memory));
    } else if (stage->bounce) {
        DRUPE_TRY(copy_step(stage, queue, middle, from, bytes, src->memory));
    } else {
        DRUPE_TRY(step(stage, queue, &barrier, NULL));
        middle = src->pointer;
    }
    if (dst->foreign) {
        DRUPE_TRY(copy_step(stage, stage->write, dst->pointer, middle, bytes, dst->memory));
        return last_step(stage, &barrier);
    }
    if (!stage->bounce) return last_step(stage, &barrier);
    drupe_work copy = {
        .kind = DRUPE_WORK_COPY, .dst = dst->pointer, .src = middle, .bytes = bytes, .from_host = true};
    return last_step(stage, &copy);
}

static drupe_status prepare(struct stage *stage, const drupe_copy_end *dst, const drupe_copy_end *src,
                            size_t bytes)
{
    DRUPE_TRY(open_foreign(src, &stage->read));
    DRUPE_TRY(open_foreign(dst, &stage->write));
    bool direct = (src->foreign && !dst->memory) || (dst->foreign && !src->memory);
    if (direct) return DRUPE_OK;
    stage->bounce = malloc(bytes);
    stage->bounced = stage->bounce != NULL;
    if (stage->bounced) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for %zu bytes between %s and %s.", bytes,
                           src->memory->queue->base.device->filter, dst->memory->queue->base.device->filter);
}

/* When a step cannot be submitted, the steps before it are waited for: they use what is now given back. */
static void clean_up(struct stage *stage)
{
    drupe_error kept = *drupe_error_last();
    if (stage->last) {
        const drupe_checker *checker = drupe_checking();
        drupe_status over = drupe_event_await(stage->last, UINT64_MAX);
        (void)over; /* no time passes by */
        if (checker) checker->event(stage->last);
        drupe_event_release(stage->last);
    }
    free(stage->bounce);
    drupe_queue_release_inside(stage->read);
    drupe_queue_release_inside(stage->write);
    drupe_keeps_drop(stage->info->uses.refs, stage->info->uses.nrefs);
    drupe_error_restore(&kept);
}

drupe_status drupe_cross_context_copy(const drupe_submit_info *info, const drupe_copy_end *dst,
                                      const drupe_copy_end *src, size_t bytes, drupe_event **event)
{
    struct stage stage = {.info = info};
    drupe_status status = prepare(&stage, dst, src, bytes);
    if (status == DRUPE_OK) status = run_steps(&stage, dst, src, bytes);
    if (status != DRUPE_OK) {
        clean_up(&stage);
        return status;
    }
    if (event)
        *event = stage.last;
    else
        drupe_event_release(stage.last);
    return DRUPE_OK;
}
