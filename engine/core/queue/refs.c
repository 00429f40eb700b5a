/* The references that a submission gathers while it is checked: what keeps it alive, what it has to wait for
 * because of the memory that it touches, and whether that memory holds what it would read. */
#include "core/queue/launch.h"
#include "core/queue/valid.h"
#include <stdlib.h>
#include <string.h>

void drupe_refs_init(drupe_refs *refs)
{
    refs->all = (drupe_operands){.refs = refs->fixed, .marks_seen = atomic_load(&drupe_marks_version)};
    refs->capacity = DRUPE_COUNT_OF(refs->fixed);
    refs->before = NULL;
    refs->nbefore = 0;
    refs->passed_on = false;
}

drupe_status drupe_refs_add(drupe_refs *refs, void *object, void (*release)(void *))
{
    drupe_operands *all = &refs->all;
    if (all->nrefs == refs->capacity) {
        size_t capacity = refs->capacity * 2;
        drupe_keep *list = malloc(capacity * sizeof *list);
        if (!list) {
            if (release) release(object);
            return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for a submission of %zu objects.",
                                   capacity);
        }
        memcpy(list, all->refs, all->nrefs * sizeof *list);
        if (all->refs != refs->fixed) free(all->refs);
        all->refs = list;
        refs->capacity = capacity;
    }
    all->refs[all->nrefs++] = (drupe_keep){.object = object, .release = release};
    return DRUPE_OK;
}

drupe_status drupe_refs_take(drupe_refs *refs, const drupe_operands *uses)
{
    drupe_status status = DRUPE_OK;
    refs->all.bytes += uses->bytes;
    refs->all.written |= uses->written << refs->all.nrefs;
    refs->all.replaced |= uses->replaced << refs->all.nrefs;
    refs->all.read |= uses->read << refs->all.nrefs;
    for (size_t i = 0; status == DRUPE_OK && i < uses->nrefs; i++) {
        status = drupe_refs_add(refs, uses->refs[i].object, uses->refs[i].release);
        uses->refs[i].release = NULL;
    }
    return status;
}

drupe_operands drupe_refs_pass(drupe_refs *refs)
{
    const drupe_operands passed = refs->all;
    refs->all.nrefs = 0;
    refs->passed_on = true;
    return passed;
}

void drupe_refs_drop(drupe_refs *refs)
{
    if (refs->all.nrefs) {
        drupe_error kept = *drupe_error_last();
        drupe_keeps_drop(refs->all.refs, refs->all.nrefs);
        drupe_error_restore(&kept);
    }
    if (refs->all.refs != refs->fixed) free(refs->all.refs);
    for (size_t i = 0; i < refs->nbefore; i++) drupe_event_release(refs->before[i]);
    free(refs->before);
    drupe_cause_release(refs->all.pending_failure);
}

drupe_status drupe_refs_add_wait(drupe_refs *refs, drupe_event *event)
{
    drupe_event **more = realloc(refs->before, (refs->nbefore + 1) * sizeof *more);
    if (!more) {
        drupe_event_release(event);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for what a submission waits for.");
    }
    refs->before = more;
    refs->before[refs->nbefore++] = event;
    return DRUPE_OK;
}

static drupe_status add_wait(void *refs, drupe_event *event)
{
    return drupe_refs_add_wait(refs, event);
}

/* Have the submission wait for work of another queue that still uses the piece. */
static drupe_status await_order(drupe_refs *refs, drupe_memory *memory, const drupe_submission *s)
{
    if (!drupe_memory_elsewhere(memory, s->queue, s->ordered)) return DRUPE_OK;
    return drupe_memory_before(memory, add_wait, refs);
}

static void note_bit(uint64_t *bits, size_t index)
{
    if (index < 64) *bits |= UINT64_C(1) << index;
}

/* What the submission does with memory that is about to be added. */
static drupe_status touch_memory(drupe_refs *refs, drupe_memory *memory, const drupe_submission *s,
                                 drupe_touch touch)
{
    if (touch.writes) DRUPE_TRY(drupe_memory_let_go(memory));
    if (touch.reads) DRUPE_TRY(drupe_mark_read(memory, &refs->all.pending_failure));
    DRUPE_TRY(await_order(refs, memory, s));
    refs->all.bytes += memory->size;
    if (touch.reads) note_bit(&refs->all.read, refs->all.nrefs);
    if (touch.writes) note_bit(&refs->all.written, refs->all.nrefs);
    if (touch.replaces && !touch.reads) note_bit(&refs->all.replaced, refs->all.nrefs);
    return DRUPE_OK;
}

drupe_status drupe_refs_add_memory(drupe_refs *refs, drupe_memory *memory, const drupe_submission *s,
                                   drupe_touch touch)
{
    DRUPE_TRY(touch_memory(refs, memory, s, touch));
    const drupe_keep keep = drupe_memory_keep(memory, s->queue);
    return drupe_refs_add(refs, keep.object, keep.release);
}

drupe_status drupe_refs_add_keep(drupe_refs *refs, const drupe_submission *s, size_t i)
{
    const drupe_keep *keep = &s->keeps[i];
    drupe_status status = DRUPE_OK;
    if (keep->release == drupe_uses_drop)
        status = touch_memory(refs, keep->object, s, drupe_effect_touch(s->effects, i, true));
    drupe_status added = drupe_refs_add(refs, keep->object, keep->release);
    return status != DRUPE_OK ? status : added;
}
