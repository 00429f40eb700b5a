/* Copies that the submitting thread makes within the call: where a queue has nothing in flight, to hand a
 * small one over and to hear of its end takes longer than the copy. Such a submission has no entry on its
 * queue, as nobody could find it there. It has its number, its record in the trace and, if asked, an event.
 *
 * All that is unusual is left to the steps of copy.c. */
#include "core/submit/fast.h"
#include <string.h>

/* One end: the memory that it lies in, NULL for the host's, and whether a reference of it is ours. */
typedef struct near_end {
    drupe_memory *memory;
    bool found;
} near_end;

static void end_clear(const near_end *one)
{
    if (one->found) drupe_memory_release(one->memory);
}

/* False: the steps have to look at it. What was found is to be given back all the same. */
static bool find_end(const drupe_submission *s, size_t index, const void *pointer, size_t bytes,
                     near_end *one)
{
    *one = (near_end){.memory = s->memories ? s->memories[index] : NULL};
    if (!one->memory) {
        if (drupe_registry_find(pointer, bytes, drupe_label_copy, &one->memory) != DRUPE_OK) return false;
        one->found = one->memory != NULL;
    }
    const drupe_memory *memory = one->memory;
    if (!memory) return s->sound;
    const size_t offset = (uintptr_t)pointer - (uintptr_t)memory->base;
    /* A context may have other devices than the queue's, whose memory is not the host's. */
    return offset < memory->size && bytes <= memory->size - offset && !memory->imported &&
           memory->pool->root == s->queue->base.device->root && drupe_fast_at_hand(memory, s);
}

/* Nothing is in flight, and nobody wants times. The queue's lock is held. */
static bool idle(const drupe_queue *queue, unsigned marks_seen)
{
    return !queue->order.head && !queue->shared && !(queue->base.flags & DRUPE_QUEUE_PROFILING) &&
           drupe_fast_plain(queue, marks_seen);
}

static bool copy_now(const drupe_submission *s, void *dst, const void *src, size_t bytes, unsigned marks_seen,
                     drupe_event **event)
{
    drupe_queue *queue = s->queue;
    drupe_subject what = {.label = s->label ? s->label : drupe_label_copy,
                          .site = s->site ? s->site : drupe_core_site(),
                          .cell_number = drupe_core_cell_here()};
    drupe_trace_work work = {.kind = DRUPE_WORK_COPY, .bytes = bytes};
    pthread_mutex_lock(&queue->lock);
    bool good = idle(queue, marks_seen);
    if (good) what.number = drupe_inflight_next();
    if (good && event && drupe_event_next(queue, what.number, NULL, event) != DRUPE_OK) {
        drupe_trace_skip(what.number);
        good = false;
    }
    if (good) {
        work.ticks = drupe_ticks();
        drupe_copy_bytes(dst, src, bytes);
        drupe_trace_at_once(&queue->traced, &what, &work);
        if (event) drupe_event_enter(*event, DRUPE_PHASE_COMPLETE);
    }
    pthread_mutex_unlock(&queue->lock);
    return good;
}

bool drupe_copy_at_once(const drupe_submission *s, void *dst, const void *src, size_t bytes,
                        drupe_event **event)
{
    if (event) *event = NULL;
    if (!s || !s->queue || bytes == 0 || bytes > s->queue->near || !dst || !src) return false;
    if (atomic_load_explicit(&s->queue->order.count, memory_order_relaxed)) return false;
    if (s->nwaits || drupe_queue_unordered(s->queue) || drupe_check_on() || !drupe_fast_open(s->queue))
        return false;
    if (drupe_ranges_overlap(dst, src, bytes)) return false;
    const unsigned marks_seen = atomic_load_explicit(&drupe_marks_version, memory_order_acquire);
    near_end to, from = {NULL, false};
    bool good = find_end(s, 0, dst, bytes, &to) && find_end(s, 1, src, bytes, &from) &&
                (to.memory || from.memory) && copy_now(s, dst, src, bytes, marks_seen, event);
    end_clear(&to);
    end_clear(&from);
    return good;
}
