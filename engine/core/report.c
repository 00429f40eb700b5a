/* The record of a failure: what failed, where it was submitted and with what, for those who show it.
 *
 * An error alone is a status and a text. The record that belongs to a thread's last error is kept beside it;
 * it counts as long as the error is still the same, so that nobody has to take it back. */
#include "core/core.h"
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
    bool set;
    drupe_failure own, cause;
} told;

void drupe_failure_describe(drupe_failure *failure, const drupe_error *error, const drupe_queue *queue,
                            const drupe_flight *flight)
{
    memset(failure, 0, sizeof *failure);
    failure->error = *error;
    failure->kind = DRUPE_WORK_BARRIER;
    if (queue) {
        snprintf(failure->device, sizeof failure->device, "%s", queue->device->filter);
        failure->queue = queue->number;
    }
    snprintf(failure->label, sizeof failure->label, "%s", flight ? flight->label : "work without an event");
    if (!flight) return;
    failure->submission = flight->number;
    failure->site = flight->site;
    failure->cell_number = flight->cell_number;
    failure->kind = (drupe_work_kind)flight->brief.kind;
    drupe_brief_text(&flight->brief, flight->refs, flight->nrefs, failure->arguments,
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

void drupe_failure_refused(const drupe_submission *s, const char *label, const drupe_work *work,
                           const drupe_refs *refs)
{
    const drupe_error *error = drupe_error_last();
    drupe_flight flight = {.label = s && s->label ? s->label : label, .refs = refs->list};
    if (!s) return;
    flight.nrefs = refs->count;
    flight.site = s->site ? s->site : drupe_core_site();
    void *cell = drupe_core_cell();
    flight.cell_number = drupe_core_cell_number(cell);
    drupe_core_cell_release(cell);
    drupe_brief_take(&flight.brief, work);
    drupe_failure failure;
    drupe_failure_describe(&failure, error, s->queue, &flight);
    failure.refused = true;
    drupe_failure_tell(&failure, NULL);
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
