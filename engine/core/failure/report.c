/* The record of a failure: what failed, where it was submitted and with what, for those who show it.
 *
 * An error alone is a status and a text. The record that belongs to a thread's last error is kept beside it;
 * it counts as long as the error is still the same, so that nobody has to take it back. */
#include "core/failure/failure_room.h"
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
    bool set;
    drupe_failure own, cause;
} told;

void drupe_failure_describe(drupe_failure *failure, const drupe_error *error, const drupe_queue *queue,
                            const drupe_subject *work)
{
    memset(failure, 0, sizeof *failure);
    failure->error = *error;
    failure->kind = DRUPE_WORK_BARRIER;
    if (queue) {
        snprintf(failure->device, sizeof failure->device, "%s", drupe_base(queue)->device->filter);
        failure->queue = drupe_base(queue)->number;
    }
    snprintf(failure->label, sizeof failure->label, "%s", work ? work->label : "work without an event");
    if (!work) return;
    failure->submission = work->number;
    failure->site = work->site;
    failure->cell_number = work->cell_number;
    if (!work->summary) return;
    failure->kind = (drupe_work_kind)work->summary->kind;
    drupe_arg_summary_text(work->summary, work->refs, work->nrefs, failure->arguments,
                           sizeof failure->arguments);
}

/* Without the cell, which has one owner. */
static void copy(drupe_failure *to, const drupe_failure *from)
{
    *to = *from;
    to->cell = NULL;
}

void drupe_failure_tell(const drupe_failure *own, const drupe_failure *cause)
{
    copy(&told.own, own);
    if (cause)
        copy(&told.cause, cause);
    else
        told.cause.error.status = DRUPE_OK;
    told.set = true;
}

void drupe_failure_tell_refused(drupe_failure *own)
{
    drupe_failure before, cause;
    /* It would have read what work that failed was to write. */
    bool known = drupe_failure_last(&before, &cause);
    own->refused = true;
    drupe_failure_tell(own, known ? &cause : NULL);
}

bool drupe_failure_last(drupe_failure *own, drupe_failure *cause)
{
    const drupe_error *error = drupe_error_last();
    if (!told.set || told.own.error.status != error->status) return false;
    if (strcmp(told.own.error.text, error->text) != 0) return false;
    *own = told.own;
    *cause = told.cause;
    return true;
}
