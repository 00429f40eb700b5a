/* Queues in trouble: what they report. */
#include "core/queue/launch.h"

drupe_status drupe_queue_report(drupe_queue *queue)
{
    drupe_cause *cause = drupe_queue_trouble(queue);
    /* On an out-of-order queue several things may fail for reasons of their own. */
    if (!cause && drupe_queue_unordered(queue)) cause = drupe_cause_on(queue);
    if (!cause) return DRUPE_OK;
    drupe_marks_settle();
    drupe_failure own = cause->what;
    bool stands_behind = cause->queue != queue;
    if (stands_behind) drupe_cause_dependent(cause, NULL, queue, &own);
    drupe_cause_report(cause);
    drupe_cause *above = drupe_cause_first(cause);
    drupe_failure_tell(&own, stands_behind || above != cause ? &above->what : NULL);
    drupe_cause_release(cause);
    return drupe_error_restore(&own.error);
}

bool drupe_failure_take_for(bool (*accept)(const drupe_failure *failure, void *user), void *user,
                            drupe_failure *failure)
{
    if (drupe_core_check() != DRUPE_OK) return false;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        drupe_queue_settle(queue, true);
    }
    drupe_marks_settle();
    bool taken = drupe_cause_take(accept, user, failure);
    drupe_marks_settle();
    return taken;
}

bool drupe_failure_take(drupe_failure *failure)
{
    return drupe_failure_take_for(NULL, NULL, failure);
}
