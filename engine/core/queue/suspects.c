/* Whose failure it was, where a driver does not tell: of work without an event, and of a GPU that is lost. */
#include "core/queue/launch.h"
#include <stdio.h>
#include <string.h>

typedef struct suspects {
    size_t count;
    char label[64];
    drupe_subject common; /* what they share; with what they were called is not known */
} suspects;

static void suspect(suspects *all, const drupe_trace_record *record)
{
    if (all->count++ == 0) {
        snprintf(all->label, sizeof all->label, "%s", record->label);
        all->common = (drupe_subject){.site = record->site, .cell_number = record->cell};
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

/* What from `first` to `last` is not known to be over, or only by what stood behind it; `text`: and is named
 * there. */
static void find_suspects(const drupe_queue *queue, uint64_t first, uint64_t last, const char *text,
                          suspects *all)
{
    drupe_trace_record record;
    all->count = 0;
    for (uint64_t id = first; id <= last; id++) {
        if (!drupe_trace_one(id, &record) || record.queue != queue->base.number) continue;
        if (record.status != DRUPE_TRACE_PENDING && record.status != DRUPE_TRACE_PASSED) continue;
        if (!text || names(text, record.label)) suspect(all, &record);
    }
}

void drupe_failure_widen(drupe_error *error, const drupe_queue *queue, uint64_t number)
{
    suspects all;
    size_t used = strlen(error->text);
    uint64_t last = drupe_inflight_latest();
    if (!queue->infers || error->status != DRUPE_E_DEVICE_LOST) return;
    if (last - number >= DRUPE_TRACE_RECORDS) last = number + DRUPE_TRACE_RECORDS - 1;
    find_suspects(queue, number + 1, last, NULL, &all);
    if (all.count == 0) return;
    snprintf(error->text + used, sizeof error->text - used,
             " The driver does not report which kernel it was: either this one, the first that is not known "
             "to have finished, or one of the %zu submitted after it.",
             all.count);
}

drupe_cause *drupe_cause_silent(drupe_queue *queue, uint64_t number)
{
    drupe_error error = *drupe_error_last();
    suspects all = {.count = 0};
    uint64_t first = queue->proof.proven + 1;
    bool known = number - queue->proof.proven < DRUPE_TRACE_RECORDS; /* else some are forgotten */
    if (known) find_suspects(queue, first, number, error.text, &all);
    if (known && all.count == 0) find_suspects(queue, first, number, NULL, &all);
    if (all.count == 0) return drupe_cause_new(&error, NULL, queue, number);
    if (all.count > 1) snprintf(all.label, sizeof all.label, "one of %zu submissions", all.count);
    all.common.label = all.label;
    all.common.number = number;
    for (drupe_inflight *entry = queue->order.head; entry && !all.common.cell; entry = entry->next) {
        if (all.common.cell_number && entry->what.cell_number == all.common.cell_number)
            all.common.cell = drupe_core_cell_share(entry->what.cell);
    }
    drupe_cause *cause = drupe_cause_new(&error, &all.common, queue, number);
    /* Not taken when there is no memory. */
    drupe_core_cell_release(all.common.cell);
    return cause;
}
