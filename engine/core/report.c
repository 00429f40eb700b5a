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

void drupe_failure_tell_refused(drupe_failure *own)
{
    drupe_failure before, cause;
    /* It would have read what work that failed was to write. */
    bool known = drupe_failure_last(&before, &cause) && cause.error.status != DRUPE_OK;
    own->refused = true;
    drupe_failure_tell(own, known ? &cause : NULL);
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
    drupe_failure_tell_refused(&failure);
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

/* --- Work without an event ------------------------------------------------------------------------------ */

typedef struct suspects {
    size_t count;
    char label[64];
    drupe_flight common; /* what they share */
} suspects;

static void suspect(suspects *all, const drupe_trace_record *record)
{
    if (all->count++ == 0) {
        snprintf(all->label, sizeof all->label, "%s", record->label);
        all->common = (drupe_flight){.site = record->site, .cell_number = record->cell};
        all->common.brief.kind = DRUPE_WORK_BARRIER; /* with what it was called is not known */
        return;
    }
    if (all->common.site != record->site) all->common.site = 0;
    if (all->common.cell_number != record->cell) all->common.cell_number = 0;
}

/* Whether a backend that knows what it was at says so. */
static bool names(const char *text, const char *label)
{
    char quoted[72];
    snprintf(quoted, sizeof quoted, "'%s'", label);
    return strstr(text, quoted) != NULL;
}

/* What is not known to be over, or only by what stood behind it; `text`: and is named there. */
static void find_suspects(const drupe_queue *queue, uint64_t number, const char *text, suspects *all)
{
    drupe_trace_record record;
    all->count = 0;
    if (number - queue->proven >= DRUPE_TRACE_RECORDS) return; /* some are forgotten */
    for (uint64_t id = queue->proven + 1; id <= number; id++) {
        if (!drupe_trace_one(id, &record) || record.queue != queue->number) continue;
        if (record.status != DRUPE_TRACE_PENDING && record.status != DRUPE_TRACE_PASSED) continue;
        if (!text || names(text, record.label)) suspect(all, &record);
    }
}

void drupe_failure_widen(drupe_error *error, const drupe_queue *queue, uint64_t number)
{
    drupe_trace_record record;
    size_t count = 0, used = strlen(error->text);
    uint64_t last = drupe_flight_latest();
    if (!queue->leaps || error->status != DRUPE_E_DEVICE_LOST) return;
    if (last - number >= DRUPE_TRACE_RECORDS) last = number + DRUPE_TRACE_RECORDS - 1;
    for (uint64_t id = number + 1; id <= last; id++) {
        bool ours = drupe_trace_one(id, &record) && record.queue == queue->number;
        count += ours && (record.status == DRUPE_TRACE_PENDING || record.status == DRUPE_TRACE_PASSED);
    }
    if (count == 0) return;
    snprintf(error->text + used, sizeof error->text - used,
             " The driver does not report which kernel it was: either this one, the first that is not known "
             "to have finished, or one of the %zu submitted after it.",
             count);
}

drupe_cause *drupe_cause_silent(drupe_queue *queue, uint64_t number)
{
    drupe_error error = *drupe_error_last();
    suspects all;
    find_suspects(queue, number, error.text, &all);
    if (all.count == 0) find_suspects(queue, number, NULL, &all);
    if (all.count == 0) return drupe_cause_new(&error, NULL, queue, number);
    if (all.count > 1) snprintf(all.label, sizeof all.label, "one of %zu submissions", all.count);
    all.common.label = all.label;
    all.common.number = number;
    for (drupe_flight *flight = queue->head; flight && !all.common.cell; flight = flight->next) {
        if (all.common.cell_number && flight->cell_number == all.common.cell_number)
            all.common.cell = drupe_core_cell_share(flight->cell);
    }
    drupe_cause *cause = drupe_cause_new(&error, &all.common, queue, number);
    /* Not taken when there is no memory. */
    drupe_core_cell_release(all.common.cell);
    return cause;
}
