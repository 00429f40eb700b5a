/* Looking at marks: whether a handle holds what the program expects, and what to say where it does not. */
#include "core/queue/launch.h"
#include "core/queue/mark.h"
#include "core/queue/valid.h"
#include <stdio.h>
#include <string.h>

static void copy_reason(const drupe_mark *mark, void *user)
{
    drupe_reason *copy = user;
    *copy = *(const drupe_reason *)(const void *)mark;
    if (copy->cause) drupe_cause_retain(copy->cause);
}

/* A copy of the mark with a reference to its cause, or false. One of work that changed nothing is gone once
 * its failure was reported, as NumPy's array is what it was after an exception. */
static bool read_mark(drupe_memory *memory, drupe_reason *copy)
{
    if (!drupe_mark_look(memory, copy_reason, copy)) return false;
    if (!copy->mark.passing || !atomic_load(&copy->cause->reported)) return true;
    drupe_cause_release(copy->cause);
    drupe_mark_pass(memory);
    return false;
}

static const char *contents(const drupe_reason *mark)
{
    if (mark->ran && !mark->mark.passing) return "What it holds is undefined.";
    return mark->new_bytes ? "It holds no result." : "It holds its earlier value.";
}

/* Takes the mark's cause. */
static drupe_status explain(const drupe_memory *memory, drupe_reason mark)
{
    if (!mark.cause) {
        return drupe_error_set(DRUPE_E_DEPENDENCY,
                               "The work that was to write this memory did not, and there was no host memory "
                               "to keep the reason. Compute it again, or take it as it is with "
                               "accept_contents().");
    }
    const drupe_cause *first = drupe_cause_first(mark.cause);
    const drupe_failure *what = &first->what;
    drupe_status status = first->cancels ? DRUPE_E_CANCELLED : DRUPE_E_DEPENDENCY;
    char why[900];
    if (first->cancels)
        snprintf(why, sizeof why, "was cancelled before it started");
    else if (mark.ran)
        snprintf(why, sizeof why, "failed: %.700s", what->error.text);
    else
        snprintf(why, sizeof why,
                 "did not run, because '%s' on %s (submission %llu) failed before it: %.600s", what->label,
                 what->device, (unsigned long long)what->submission, what->error.text);
    status =
        drupe_error_set(status,
                        "This memory was to be written by '%s', which %s%s %s Compute it again, or take it "
                        "as it is with accept_contents().",
                        mark.label, why, why[strlen(why) - 1] == '.' ? "" : ".", contents(&mark));
    const drupe_queue *queue = memory->queue;
    drupe_failure own;
    drupe_failure_describe(&own, drupe_error_last(), queue, NULL);
    drupe_failure_tell(&own, first->cancels ? NULL : what);
    drupe_cause_release(mark.cause);
    return status;
}

static drupe_status read_one(drupe_memory *memory, drupe_cause **pending_failure)
{
    drupe_reason mark;
    if (!read_mark(memory, &mark)) return DRUPE_OK;
    if (!mark.cause || atomic_load(&mark.cause->reported)) return explain(memory, mark);
    if (*pending_failure)
        drupe_cause_release(mark.cause);
    else
        *pending_failure = mark.cause;
    return DRUPE_OK;
}

drupe_status drupe_mark_read(drupe_memory *memory, drupe_cause **pending_failure)
{
    if (!drupe_mark_possible(memory)) return DRUPE_OK;
    drupe_marks_settle();
    return read_one(memory, pending_failure);
}

drupe_status drupe_memory_contents(drupe_memory *memory)
{
    DRUPE_TRY(drupe_core_check());
    if (!drupe_mark_possible(memory)) return DRUPE_OK;
    drupe_marks_settle();
    drupe_reason mark;
    return read_mark(memory, &mark) ? explain(memory, mark) : DRUPE_OK;
}

drupe_status drupe_marks_read(const drupe_operands *uses, drupe_cause **pending_failure)
{
    for (size_t i = 0; i < uses->nrefs; i++) {
        if (uses->refs[i].release == drupe_uses_drop && drupe_effect_bit(uses->read, i))
            DRUPE_TRY(read_one(uses->refs[i].object, pending_failure));
    }
    return DRUPE_OK;
}

/* What was marked for work behind the entry still holds what the entry is to read. */
static bool read_late(drupe_memory *memory, const drupe_inflight *entry, drupe_cause **cause)
{
    drupe_reason mark;
    if (!atomic_load(&memory->mark) || !read_mark(memory, &mark)) return false;
    if (mark.number < entry->what.number) {
        *cause = mark.cause;
        return true;
    }
    drupe_cause_release(mark.cause);
    return false;
}

bool drupe_marks_read_late(const drupe_inflight *entry, drupe_cause **cause)
{
    const uint64_t read = entry->deferral.read;
    *cause = NULL;
    for (size_t i = 0; read && i < entry->what.nrefs; i++) {
        if (entry->what.refs[i].release == drupe_uses_drop && drupe_effect_bit(read, i) &&
            read_late(entry->what.refs[i].object, entry, cause))
            return true;
    }
    return false;
}

void drupe_memory_accept(drupe_memory *memory)
{
    if (drupe_core_check() != DRUPE_OK) return;
    drupe_marks_settle();
    drupe_mark_drop(memory);
}
