/* What there is to be parked, and what stands in the way. */
#include "core/park/park_room.h"
#include <stdlib.h>

/* Its bytes are not the engine's to move, as another process has them too. Those of somebody else in this
 * process are in no device's memory. */
static bool is_foreign(const drupe_memory *memory)
{
    return memory->imported ? !memory->lender.release : memory->index == DRUPE_POOL_NEVER;
}

static bool is_given(const drupe_memory *one)
{
    drupe_memory *memory = (drupe_memory *)(uintptr_t)one;
    return !memory->imported && (atomic_load(&memory->left) || atomic_load(&memory->views) > 0);
}

static bool stands_in_the_way(const drupe_memory *memory)
{
    return is_foreign(memory) || is_given(memory);
}

size_t drupe_park_holders(drupe_device *device, drupe_holder *holders, size_t capacity)
{
    return drupe_memory_holders_of(device->root, stands_in_the_way, true, holders, capacity);
}

/* --- The list ------------------------------------------------------------------------------------------- */

static void take(park_list *list, drupe_memory *memory, drupe_park_report *report)
{
    if (memory->imported && memory->lender.release) return; /* lies in host memory */
    if (is_foreign(memory)) {
        report->foreign_pieces++;
        report->foreign_bytes += memory->room;
    } else if (is_given(memory)) {
        report->given_pieces++;
        report->given_bytes += memory->room;
    }
    /* Of a queue on another device, perhaps. */
    if (drupe_memory_in_use(memory) && !report->unfinished) report->unfinished = 1;
    report->pieces++;
    report->bytes += memory->room;
    list->pieces[list->count++] = memory;
}

static drupe_status gather(drupe_device *root, park_list *list, drupe_park_report *report)
{
    list->nall = drupe_registry_lent(&list->all);
    if (!list->nall && !atomic_load(&root->use.used)) return DRUPE_OK;
    list->pieces = list->nall ? malloc(list->nall * sizeof *list->pieces) : NULL;
    if (!list->pieces)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to list what %s holds.", root->filter);
    for (size_t i = 0; i < list->nall; i++)
        if (list->all[i]->pool->root == root && !drupe_gate_parked(list->all[i]))
            take(list, list->all[i], report);
    return DRUPE_OK;
}

void drupe_park_list_clear(park_list *list)
{
    for (size_t i = 0; i < list->nall; i++) drupe_memory_release(list->all[i]);
    free(list->all);
    free(list->pieces);
    *list = (park_list){NULL, 0, NULL, 0};
}

/* --- What stands in the way ----------------------------------------------------------------------------- */

static void count_unfinished(const drupe_device *root, drupe_park_report *report)
{
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (queue->base.device->root != root) continue;
        pthread_mutex_lock(&queue->lock);
        report->unfinished += drupe_queue_unfinished(queue);
        pthread_mutex_unlock(&queue->lock);
        report->unfinished += drupe_queue_has_postponed(queue);
    }
    if (atomic_load(&root->use.flying) && !report->unfinished) report->unfinished = 1;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void tell_holders(drupe_device *root, drupe_text *text)
{
    drupe_holder holders[3];
    char place[64];
    size_t count = drupe_park_holders(root, holders, DRUPE_COUNT_OF(holders));
    for (size_t i = 0; i < count && i < DRUPE_COUNT_OF(holders); i++) {
        drupe_trace_place(holders[i].site, holders[i].cell, place, sizeof place);
        if (*place) drupe_text_printf(text, " (%s of %s)", drupe_unit_bytes(holders[i].bytes).text, place);
    }
}

static drupe_status refuse(drupe_device *root, const drupe_park_report *report)
{
    drupe_text text = {0};
    if (report->unfinished)
        drupe_text_printf(&text, " %llu submission%s not over: wait first.",
                          (unsigned long long)report->unfinished, report->unfinished == 1 ? " is" : "s are");
    if (report->given_pieces)
        drupe_text_printf(&text, " The address of %s in %llu allocation%s was given away: delete the views.",
                          drupe_unit_bytes(report->given_bytes).text,
                          (unsigned long long)report->given_pieces, plural(report->given_pieces));
    if (report->foreign_pieces)
        drupe_text_printf(&text, " %s in %llu allocation%s %s shared with another process.",
                          drupe_unit_bytes(report->foreign_bytes).text,
                          (unsigned long long)report->foreign_pieces, plural(report->foreign_pieces),
                          report->foreign_pieces == 1 ? "is" : "are");
    if (report->held) drupe_text_printf(&text, " A call that is under way uses its memory.");
    tell_holders(root, &text);
    drupe_status status =
        drupe_error_set(DRUPE_E_BUSY, "%s cannot be parked.%s", root->filter, drupe_text_get(&text));
    drupe_text_clear(&text);
    return status;
}

drupe_status drupe_park_look(drupe_device *root, bool held, park_list *list, drupe_park_report *report)
{
    *report = (drupe_park_report){.held = held, .freed = atomic_load(&root->use.reserved)};
    DRUPE_TRY(gather(root, list, report));
    count_unfinished(root, report);
    bool free_to_go =
        !report->held && !report->unfinished && !report->given_pieces && !report->foreign_pieces;
    return free_to_go ? DRUPE_OK : refuse(root, report);
}
