/* Marks: which handles do not hold what the program expects, and why.
 *
 * Work that did not run, or failed, is no error of the memory's bytes: it is one of whoever reads them as a
 * result. So the mark belongs to the handle, and a piece that is handed on starts without one. A mark names
 * the handle by its birth, since the entry that sets it may outlive that: a mark of an earlier handle counts
 * for nothing.
 *
 * A failure stops everything behind it on an in-order queue, also what has no event and what a driver has
 * begun to fail; all that is marked at one time, before anybody hears of the failure, by a walk over the
 * queue's entries. The walk needs the queue's lock, and failures are noticed with and without it: so the
 * queue owes its marks until somebody comes who can take it, and whoever tells of failures or looks at marks
 * has them all paid first. */
#include "core/queue/mark.h"
#include "core/queue/launch.h"
#include "core/queue/valid.h"
#include <stdio.h>
#include <stdlib.h>

static void reason_free(drupe_mark *mark)
{
    drupe_reason *one = (drupe_reason *)(void *)mark;
    drupe_cause_release(one->cause);
    free(one);
}

static void keep(drupe_mark *mark)
{
    (void)mark;
}

/* For all that is marked while no memory is left to write down why. */
static drupe_reason unexplained = {.mark = {.free = keep, .born = DRUPE_MARK_ANY}, .label = "work"};

/* --- Setting -------------------------------------------------------------------------------------------- */

static void mark_one(drupe_memory *memory, const drupe_inflight *entry, drupe_cause *cause, bool replaced)
{
    uint64_t born = memory->born;
    if (entry->what.number <= born) return; /* its handle is gone */
    drupe_reason *mark = calloc(1, sizeof *mark);
    if (!mark) {
        drupe_mark_put(memory, &unexplained.mark, born);
        return;
    }
    mark->cause = drupe_cause_retain(cause);
    mark->mark = (drupe_mark){.free = reason_free, .born = born};
    /* What was cancelled has numbers above the one that such a cause names. */
    mark->ran = cause->what.submission == entry->what.number && !cause->before;
    mark->new_bytes = replaced;
    mark->number = entry->what.number;
    const drupe_status status = cause->what.error.status;
    mark->mark.passing =
        mark->ran && entry->checks_first && (status == DRUPE_E_OUT_OF_RANGE || status == DRUPE_E_INVALID);
    snprintf(mark->label, sizeof mark->label, "%s", entry->what.label);
    drupe_mark_put(memory, &mark->mark, born);
}

void drupe_mark_inflight(drupe_inflight *entry, drupe_cause *cause)
{
    uint64_t written = drupe_inflight_take_written(entry);
    for (size_t i = 0; written && i < entry->what.nrefs; i++) {
        if (entry->what.refs[i].release != drupe_uses_drop || !drupe_effect_bit(written, i)) continue;
        bool replaced = i < 64 && drupe_effect_bit(entry->replaced, i);
        mark_one(entry->what.refs[i].object, entry, cause, replaced);
    }
}

drupe_mark *drupe_marks_lift(const drupe_inflight *entry)
{
    drupe_reason *list = NULL;
    for (size_t i = 0; i < entry->what.nrefs && i < 64; i++) {
        if (entry->what.refs[i].release != drupe_uses_drop || !drupe_effect_bit(entry->replaced, i)) continue;
        drupe_reason *mark = (drupe_reason *)(void *)drupe_mark_take(entry->what.refs[i].object);
        if (!mark || mark == &unexplained) continue;
        mark->memory = entry->what.refs[i].object;
        mark->next = list;
        list = mark;
    }
    return list ? &list->mark : NULL;
}

void drupe_marks_lifted(drupe_mark *list, bool replaced)
{
    for (drupe_reason *mark = (drupe_reason *)(void *)list, *next; mark; mark = next) {
        next = mark->next;
        if (replaced)
            reason_free(&mark->mark);
        else
            drupe_mark_put(mark->memory, &mark->mark, mark->mark.born);
    }
}
