/* Memory, pools, copies between contexts and between backends. */
#include "walk.h"
#include <stdio.h>

static drupe_status kinds(struct walker *w)
{
    GO(walk_open(w));
    for (int kind = 0; kind < 3; kind++) {
        drupe_status status = drupe_memory_alloc(w->queue, (drupe_mem_kind)kind, 100, 0, &w->memory[kind]);
        if (status == DRUPE_E_UNSUPPORTED) continue;
        GO(status);
        drupe_memory *same = drupe_memory_retain(w->memory[kind]);
        drupe_memory *found = drupe_memory_find((char *)drupe_memory_pointer(same) + 99);
        bool right = found == same && drupe_memory_size(same) == 100 &&
                     drupe_memory_kind(same) == (drupe_mem_kind)kind &&
                     drupe_memory_queue(same) == w->queue && *drupe_mem_kind_name((drupe_mem_kind)kind);
        (void)drupe_memory_host_accessible(same);
        drupe_memory_release(found);
        drupe_memory_release(same);
        if (!right) return DRUPE_E_INTERNAL;
    }
    GO(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, 1u << 20, 4096, &w->memory[3]));
    REFUSED(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, 0, 0, &w->memory[4]), DRUPE_E_INVALID);
    return DRUPE_OK;
}

static drupe_status pools(struct walker *w)
{
    drupe_pool_stats stats;
    drupe_device_figures figures[4];
    drupe_holder holders[4];
    GO(walk_open(w));
    GO(drupe_pool_set_wipe(w->device, DRUPE_WIPE_ALLOC));
    for (int i = 0; i < 3; i++) {
        GO(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, 5000, 0, &w->memory[0]));
        drupe_memory_release(w->memory[0]);
        w->memory[0] = NULL;
    }
    GO(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, 5000, 0, &w->memory[0]));
    (void)drupe_memory_holders(w->device, true, holders, COUNT(holders));
    (void)drupe_device_figures_of(figures, COUNT(figures));
    drupe_pool_stats_of(w->device, &stats);
    drupe_pool_set_limit(w->device, stats.reserved + 1000);
    drupe_pool_reset_peak(w->device);
    REFUSED(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, 1u << 20, 0, &w->memory[1]), DRUPE_E_NO_MEMORY);
    drupe_pool_set_limit(w->device, 0);
    GO(drupe_pool_set_wipe(w->device, 0));
    (void)drupe_pool_trim(w->device);
    return DRUPE_OK;
}

static drupe_status between_contexts(struct walker *w)
{
    GO(walk_open_memory(w));
    GO(drupe_context_open(&w->device, 1, &w->second));
    GO(drupe_queue_open(w->second, w->device, 0, &w->aside));
    GO(drupe_memory_alloc(w->aside, DRUPE_MEM_DEVICE, 4096, 0, &w->memory[2]));
    drupe_submission s = {.queue = w->queue};
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "z", 1, 4096, NULL));
    GO(drupe_submit_copy(&s, drupe_memory_pointer(w->memory[2]), drupe_memory_pointer(w->memory[0]), 4096,
                         &w->events[0]));
    GO(drupe_submit_copy(&s, drupe_memory_pointer(w->memory[1]), drupe_memory_pointer(w->memory[2]), 4096,
                         &w->events[1]));
    GO(drupe_event_wait(w->events[1], LONG));
    return DRUPE_OK;
}

static drupe_status between_backends(struct walker *w)
{
    if (!w->other_filter) return DRUPE_OK;
    GO(walk_open_memory(w));
    GO(drupe_device_select(w->other_filter, &w->other));
    GO(drupe_device_queue(w->other, &w->aside));
    GO(drupe_memory_alloc(w->aside, DRUPE_MEM_DEVICE, 4096, 0, &w->memory[2]));
    drupe_submission s = {.queue = w->queue};
    GO(drupe_submit_copy(&s, drupe_memory_pointer(w->memory[2]), drupe_memory_pointer(w->memory[0]), 4096,
                         &w->events[0]));
    drupe_submission there = {.queue = w->aside, .waits = &w->events[0], .nwaits = 1};
    GO(drupe_submit_copy(&there, drupe_memory_pointer(w->memory[1]), drupe_memory_pointer(w->memory[2]), 4096,
                         &w->events[1]));
    GO(drupe_event_wait(w->events[1], LONG));
    return DRUPE_OK;
}

static drupe_status between_processes(struct walker *w)
{
    unsigned char handle[DRUPE_IPC_BYTES];
    GO(walk_open_memory(w));
    drupe_status status = drupe_memory_export(w->memory[0], handle);
    if (status == DRUPE_E_UNSUPPORTED) return DRUPE_OK;
    GO(status);
    GO(drupe_memory_import(w->queue, handle, drupe_memory_size(w->memory[0]), &w->memory[2]));
    return DRUPE_OK;
}

static void take_back(void *object)
{
    (void)object;
}

/* The scene's own bytes; a driver that cannot address them says so. */
static drupe_status of_others(struct walker *w)
{
    static _Alignas(64) char bytes[256];
    const drupe_keep keep = {bytes, take_back};
    GO(walk_open(w));
    drupe_status status = drupe_memory_borrow(w->queue, bytes, sizeof bytes, &keep, &w->memory[0]);
    if (status == DRUPE_E_UNSUPPORTED) return DRUPE_OK;
    GO(status);
    GO(drupe_memory_borrow(w->queue, bytes + 8, 64, &keep, &w->memory[1]));
    drupe_submission s = {.queue = w->queue};
    GO(drupe_submit_fill(&s, bytes, "b", 1, sizeof bytes, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    return bytes[255] == 'b' ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status nothing(void *user)
{
    (void)user;
    return DRUPE_OK;
}

/* Memory that is given back while work uses it, is taken by the next result, and not written after all. */
static drupe_status handed_on(struct walker *w)
{
    static const drupe_error planned = {.status = DRUPE_E_INVALID, .text = "The scene ends it so."};
    GO(walk_open(w));
    GO(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, 4096, 0, &w->memory[0]));
    GO(drupe_event_open(NULL, 0, &w->events[0]));
    drupe_submission s = {.queue = w->queue, .waits = w->events, .nwaits = 1, .ordered = true};
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "x", 1, 4096, &w->events[1]));
    drupe_memory_release(w->memory[0]);
    w->memory[0] = NULL;
    s.nwaits = 0;
    GO(drupe_memory_alloc_result(w->queue, DRUPE_MEM_DEVICE, 4096, &w->memory[1]));
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[1]), "y", 1, 4096, NULL));
    GO(drupe_memory_before_use(w->memory[1], &w->events[2]));
    GO(drupe_event_finish(w->events[0], &planned));
    REFUSED(drupe_event_wait(w->events[1], LONG), DRUPE_E_DEPENDENCY);
    REFUSED(drupe_memory_contents(w->memory[1]), DRUPE_E_DEPENDENCY);
    drupe_memory_accept(w->memory[1]);
    GO(drupe_memory_contents(w->memory[1]));
    const drupe_keep keep = drupe_memory_keep(w->memory[1], w->queue);
    s.keeps = &keep;
    s.nkeeps = 1;
    GO(drupe_submit_host(&s, nothing, NULL, &w->events[3]));
    GO(drupe_event_wait(w->events[3], LONG));
    (void)drupe_memory_in_use(w->memory[1]);
    return DRUPE_OK;
}

/* Two queues write the same bytes: found, or, with something failing, at least nothing worse. */
static drupe_status checked(struct walker *w)
{
    drupe_check_begin();
    w->checked = true;
    GO(walk_open_memory(w));
    GO(drupe_queue_open(w->context, w->device, 0, &w->aside));
    drupe_submission s = {.queue = w->queue}, other = {.queue = w->aside};
    void *pointer = drupe_memory_pointer(w->memory[0]);
    GO(drupe_event_open(NULL, 0, &w->events[0]));
    s.waits = w->events;
    s.nwaits = 1;
    GO(drupe_submit_fill(&s, pointer, "x", 1, 64, &w->events[1]));
    drupe_status status = drupe_submit_fill(&other, pointer, "y", 1, 64, &w->events[2]);
    if (status == DRUPE_E_CHECK && !drupe_check_findings()) return DRUPE_E_INTERNAL;
    if (status != DRUPE_E_CHECK) GO(status);
    status = drupe_check_host(pointer, 64, true);
    if (status != DRUPE_E_CHECK) GO(status);
    GO(drupe_event_finish(w->events[0], NULL));
    GO(drupe_event_wait(w->events[1], LONG));
    GO(drupe_check_memory());
    return drupe_check_active() ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* Where the device is far away: by core's threads, through pinned memory. */
static drupe_status large(struct walker *w)
{
    enum { BYTES = (5 << 20) + 8 };
    static char out[BYTES], in[BYTES];
    GO(walk_open(w));
    GO(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, BYTES, 0, &w->memory[0]));
    char *pointer = drupe_memory_pointer(w->memory[0]);
    drupe_submission s = {.queue = w->queue};
    memset(out, 3, BYTES);
    memset(in, 0, BYTES);
    GO(drupe_submit_copy(&s, pointer, out, BYTES, &w->events[0]));
    GO(drupe_submit_copy(&s, in, pointer, BYTES, &w->events[1]));
    GO(drupe_event_wait(w->events[1], LONG));
    return in[0] == 3 && in[BYTES - 1] == 3 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status compare(struct walker *w, char expected)
{
    static char bytes[4096];
    drupe_submission s = {.queue = w->queue};
    memset(bytes, 0, sizeof bytes);
    GO(drupe_submit_copy(&s, bytes, drupe_memory_pointer(w->memory[0]), sizeof bytes, &w->events[3]));
    GO(drupe_event_wait(w->events[3], LONG));
    drupe_event_release(w->events[3]);
    w->events[3] = NULL;
    return bytes[0] == expected && bytes[4095] == expected ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* What stands in the way of parking. */
static drupe_status unparkable(struct walker *w)
{
    drupe_holder holders[2];
    drupe_park_hold();
    drupe_status held = drupe_park(w->device, 0, NULL);
    drupe_park_let_go();
    REFUSED(held, DRUPE_E_BUSY);
    GO(drupe_memory_before_view(w->memory[0], &w->events[1]));
    drupe_memory_view(w->memory[0], 1);
    drupe_status given = drupe_park(w->device, 0, NULL);
    (void)drupe_park_holders(w->device, holders, COUNT(holders));
    drupe_memory_view(w->memory[0], -1);
    REFUSED(given, DRUPE_E_BUSY);
    return DRUPE_OK;
}

/* There and back, once by being asked and once by being used; with what fails nothing is lost. */
static drupe_status parked(struct walker *w)
{
    drupe_park_report report;
    GO(walk_open_memory(w));
    drupe_submission s = {.queue = w->queue};
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "p", 1, 4096, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    GO(drupe_parkable(w->device, &report));
    GO(drupe_park(w->device, DRUPE_PARK_KEPT, &report));
    if (report.pieces != 2 || !drupe_device_parked(w->device)) return DRUPE_E_INTERNAL;
    if (!drupe_memory_parked(w->memory[0])) return DRUPE_E_INTERNAL;
    REFUSED(drupe_memory_alloc(w->queue, DRUPE_MEM_DEVICE, 10, 0, &w->memory[2]), DRUPE_E_BUSY);
    drupe_status back = drupe_unpark(w->device, &report);
    if (back != DRUPE_OK && !drupe_memory_parked(w->memory[0])) return DRUPE_E_INTERNAL;
    GO(back);
    GO(compare(w, 'p'));
    GO(unparkable(w));
    GO(drupe_park(w->device, 0, NULL));
    GO(compare(w, 'p'));
    return drupe_device_parked(w->device) ? DRUPE_E_INTERNAL : DRUPE_OK;
}

/* The same by the driver's copies, as for a device that is far away. */
static drupe_status parked_by_driver(struct walker *w)
{
    setenv("DRUPE_PINNED", "0", 1);
    drupe_status status = parked(w);
    unsetenv("DRUPE_PINNED");
    return status;
}

const walk_scene walk_memory_scenes[] = {{"kinds", kinds, false},
                                         {"pools", pools, false},
                                         {"between contexts", between_contexts, false},
                                         {"between backends", between_backends, false},
                                         {"between processes", between_processes, false},
                                         {"of others", of_others, false},
                                         {"handed on", handed_on, false},
                                         {"checked", checked, false},
                                         {"large", large, false},
                                         {"parked", parked, false},
                                         {"parked by driver", parked_by_driver, false},
                                         {NULL, NULL, false}};
