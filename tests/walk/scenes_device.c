/* Devices, their properties and parts, contexts, the library. */
#include "walk.h"

static drupe_status list(struct walker *w)
{
    drupe_device *found[16] = {NULL};
    size_t count;
    drupe_status status = drupe_device_list(w->filter, found, COUNT(found), &count);
    for (size_t i = 0; i < COUNT(found); i++) drupe_device_release(found[i]);
    GO(status);
    GO(drupe_device_list(NULL, NULL, 0, &count));
    REFUSED(drupe_device_list("nonsense", NULL, 0, &count), DRUPE_E_INVALID);
    REFUSED(drupe_device_select("host:gpu", &w->device), DRUPE_E_NOT_FOUND);
    return DRUPE_OK;
}

static drupe_status ask(struct walker *w)
{
    char value[4096];
    (void)drupe_device_selector(NULL);
    drupe_device *listed[8];
    size_t nlisted = drupe_device_known(listed, COUNT(listed));
    for (size_t i = 0; i < nlisted; i++) drupe_device_release(listed[i]);
    GO(drupe_device_select(w->filter, &w->device));
    for (int key = 0; key < DRUPE_INFO_COUNT; key++) {
        size_t needed;
        drupe_status status = drupe_device_info(w->device, (drupe_info)key, value, sizeof value, &needed);
        if (status != DRUPE_E_UNSUPPORTED) GO(status);
        if (!drupe_info_name((drupe_info)key) || drupe_info_type_of((drupe_info)key) > DRUPE_INFO_FLAGS)
            return DRUPE_E_INTERNAL;
        if (!drupe_info_enumeration((drupe_info)key)) continue;
        const char *word = drupe_info_word((drupe_info)key, 0);
        if (word && drupe_info_find_word((drupe_info)key, word) != 0) return DRUPE_E_INTERNAL;
    }
    drupe_device *same = drupe_device_retain(w->device);
    (void)drupe_device_number(same, DRUPE_INFO_MAX_COMPUTE_UNITS, 1);
    (void)drupe_device_score(same);
    drupe_status known = *drupe_device_backend(same) && *drupe_device_filter(same) &&
                                 *drupe_device_type_name(drupe_device_kind(same)) && *drupe_version()
                             ? DRUPE_OK
                             : DRUPE_E_INTERNAL;
    drupe_device_release(same);
    return known;
}

static drupe_status divide(struct walker *w)
{
    static const uint32_t one = 1;
    const drupe_partition equal = {.kind = DRUPE_SPLIT_EQUALLY, .count = 1, .units = &one};
    size_t count;
    GO(drupe_device_select(w->filter, &w->device));
    drupe_status status = drupe_device_split(w->device, &equal, w->parts, COUNT(w->parts), &count);
    /* A machine with one processor, or with more than there is room for. */
    if (status == DRUPE_E_UNSUPPORTED || status == DRUPE_E_OUT_OF_RANGE || status == DRUPE_E_INVALID)
        return DRUPE_OK;
    GO(status);
    if (drupe_device_parent(w->parts[0]) != w->device || drupe_device_root(w->parts[0]) != w->device)
        return DRUPE_E_INTERNAL;
    GO(drupe_context_open(w->parts, count, &w->context));
    GO(drupe_queue_open(w->context, w->parts[0], 0, &w->queue));
    GO(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, 4096, 0, &w->memory[0]));
    drupe_submission s = {.queue = w->queue};
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "x", 1, 4096, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    GO(drupe_device_queue(w->parts[0], &w->aside));
    return DRUPE_OK;
}

static drupe_status contexts(struct walker *w)
{
    GO(drupe_device_select(w->filter, &w->device));
    GO(drupe_device_context(w->device, &w->context));
    GO(drupe_context_open(&w->device, 1, &w->second));
    drupe_context *same = drupe_context_retain(w->second);
    bool right = drupe_context_device_count(same) == 1 && drupe_context_device(same, 0) == w->device &&
                 drupe_context_home(same, w->device) == w->device;
    drupe_context_release(same);
    REFUSED(drupe_context_open(&w->device, 0, &same), DRUPE_E_INVALID);
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static void *retain_cell(void)
{
    return malloc(1);
}

static drupe_status library(struct walker *w)
{
    static const drupe_observer observer = {.cell_retain = retain_cell, .cell_release = free};
    static drupe_trace_record records[16];
    char text[512];
    drupe_library_observe(&observer);
    drupe_status status = walk_open_memory(w);
    drupe_submission s = {.queue = w->queue, .label = "observed"};
    if (status == DRUPE_OK) {
        status = drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "x", 1, 4096, NULL);
        if (status != DRUPE_OK) walk_heard(status, "drupe_submit_fill");
    }
    drupe_library_settle(LONG);
    drupe_trace_update();
    drupe_failures_watch();
    if (drupe_trace_latest() && drupe_trace_read(0, records, COUNT(records)) == 0) return DRUPE_E_INTERNAL;
    drupe_library_scrub();
    (void)drupe_trace_text(text, sizeof text, 4);
    (void)drupe_trace_status_name((drupe_trace_status)0);
    return status;
}

const walk_scene walk_device_scenes[] = {{"list", list, false},       {"ask", ask, false},
                                         {"divide", divide, false},   {"contexts", contexts, false},
                                         {"library", library, false}, {NULL, NULL, false}};
