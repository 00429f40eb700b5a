/* Calls: host functions over bytes of their own, which are quick to queue or left to the caller. */
#include "core/submit/fast.h"

static bool fits(const drupe_submission *s, const drupe_host_call *call)
{
    const drupe_queue *queue = s->queue;
    return drupe_fast_possible(s) && !s->nwaits && !s->label && !drupe_queue_unordered(queue) &&
           !drupe_check_on() && queue->base.slot->backend->submit_host &&
           call->nmemories < DRUPE_INFLIGHT_REFS;
}

bool drupe_submit_host_call(const drupe_submission *s, const drupe_host_call *call, drupe_event **event,
                            drupe_status *status)
{
    if (!s || !s->queue || !call || !fits(s, call)) return false;
    drupe_fast one; /* as in fast_launch.c */
    drupe_fast_begin(&one, s, call->name, call->hold);
    one.borrowed = true;
    one.work.kind = DRUPE_WORK_HOST;
    one.work.brief = one.work.checks_first = false;
    one.work.fn = call->fn;
    one.work.user = call->bytes;
    one.work.bytes = call->size;
    for (size_t i = 0; i < call->nmemories; i++) {
        if (!drupe_fast_at_hand(call->memories[i], s)) return false;
        drupe_fast_add(&one, call->memories[i], drupe_effect_touch(s->effects, i, true));
    }
    one.refs[one.uses.nrefs++] = (drupe_keep){call->object, call->drop};
    *status = DRUPE_OK;
    return drupe_fast_submit(&one, event, status);
}
