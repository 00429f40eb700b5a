/* The fast way onto a queue, for work that is checked in one go. */
#ifndef DRUPE_CORE_FAST_H
#define DRUPE_CORE_FAST_H

#include "core/queue/valid.h"
#include "core/submit/submit_room.h"

/* A submission that is being checked. */
typedef struct drupe_fast {
    const drupe_submission *s;
    drupe_work work; /* only what its kind has is set: to clear it takes as long as to check it */
    const char *label;
    drupe_operands uses;
    void (*hold)(void *object); /* one more reference to what is no memory */
    bool borrowed;              /* the caller's references keep what `refs` has; else it is kept here */
    drupe_keep refs[DRUPE_ARG_SUMMARY_MOST + 1];
    uint64_t words[DRUPE_ARG_SUMMARY_MOST];
} drupe_fast;

static inline void drupe_fast_begin(drupe_fast *one, const drupe_submission *s, const char *label,
                                    void (*hold)(void *object))
{
    one->s = s;
    one->label = label;
    one->hold = hold;
    const unsigned marks = atomic_load_explicit(&drupe_marks_version, memory_order_acquire);
    one->uses = (drupe_operands){.refs = one->refs, .marks_seen = marks};
}

/* Nothing about the queue or the submission takes more steps. */
static inline bool drupe_fast_possible(const drupe_submission *s)
{
    return !atomic_load_explicit(&drupe_core_forked, memory_order_relaxed) && !s->nkeeps &&
           !drupe_queue_has_postponed(s->queue) && !drupe_gate_closed(s->queue->base.device->root);
}

/* Whether the submission may use it without waiting and without asking what it holds. */
static inline bool drupe_fast_at_hand(const drupe_memory *memory, const drupe_submission *s)
{
    return drupe_valid_memory(memory, s->queue) && !drupe_mark_possible(memory) &&
           !drupe_memory_elsewhere(memory, s->queue, s->ordered) && !drupe_memory_has_readers(memory);
}

/* It is among what the submission uses. */
static inline void drupe_fast_add(drupe_fast *one, drupe_memory *memory, drupe_touch touch)
{
    uint64_t own_bit = UINT64_C(1) << one->uses.nrefs;
    if (touch.writes) one->uses.written |= own_bit;
    if (touch.reads) one->uses.read |= own_bit;
    if (touch.replaces && !touch.reads) one->uses.replaced |= own_bit;
    one->refs[one->uses.nrefs++] = (drupe_keep){memory, drupe_uses_drop};
    one->uses.bytes += memory->size;
}

/* fast_submit.c: keep what the caller's references kept so far. */
void drupe_fast_retain(drupe_fast *one);
/* Submit to an in-order queue what waits for nothing. False: something is in its way, and `refs` are still
 * the caller's. */
bool drupe_fast_submit(drupe_fast *one, drupe_event **event, drupe_status *status) DRUPE_MUST_CHECK;

#endif
