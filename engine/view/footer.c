/* One line for one cell. */
#include "view_memory.h"
#include <string.h>

static const drupe_view_cell *footer_cell(const drupe_frame *frame)
{
    const drupe_view *view = frame->view;
    for (size_t i = 0; i < view->ncells; i++)
        if (view->cells[i].number == frame->style->cell) return &view->cells[i];
    return view->ncells > 0 && frame->style->cell == 0 ? &view->cells[view->ncells - 1] : NULL;
}

/* What the only device that ever had memory in use has. Totals of several add up to nothing: CPUs share
 * theirs. */
static uint64_t memory_total(const drupe_view *view)
{
    const drupe_view_device *only = NULL;
    for (size_t i = 0; i < view->ndevices; i++) {
        const drupe_view_device *device = &view->devices[i];
        if (device->peak == 0 && device->use.used == 0) continue;
        if (only != NULL) return 0;
        only = device;
    }
    return only == NULL ? 0 : drupe_memory_limit(only);
}

/* While its code runs, a cell has what is in use now. */
static uint64_t memory_after(const drupe_view *view, const drupe_view_cell *cell)
{
    uint64_t used = 0;
    for (size_t i = 0; i < view->ndevices; i++) used += view->devices[i].use.used;
    return cell->running ? used : cell->memory_after;
}

static void footer_memory(const drupe_frame *frame, const drupe_view_cell *cell, drupe_text *text)
{
    uint64_t total = memory_total(frame->view), after = memory_after(frame->view, cell);
    if (cell->memory_peak == 0 && after == cell->memory_before) return;
    drupe_text_printf(text, " \u00b7 peak %s", drupe_unit_bytes(cell->memory_peak).text);
    if (total > 0) drupe_text_printf(text, " of %s", drupe_unit_bytes(total).text);
    if (after > cell->memory_before)
        drupe_text_printf(text, " (+%s kept)", drupe_unit_bytes(after - cell->memory_before).text);
    else if (after < cell->memory_before)
        drupe_text_printf(text, " (%s given back)", drupe_unit_bytes(cell->memory_before - after).text);
}

/* The only device that the cell's work ran on; NULL: there are several, or none. */
static const char *only_device(const drupe_view *view)
{
    const char *device = NULL;
    for (size_t i = 0; i < view->nspans; i++) {
        const char *other = view->lanes[view->spans[i].lane].device;
        if (device != NULL && strcmp(device, other) != 0) return NULL;
        device = other;
    }
    return device;
}

static void footer_busy(const drupe_frame *frame, const drupe_view_cell *cell, uint64_t wall,
                        drupe_text *text)
{
    const char *device = only_device(frame->view);
    drupe_text_printf(text, " \u00b7 ");
    if (device != NULL)
        drupe_label_device(text, frame->view, device);
    else
        drupe_text_printf(text, frame->view->nspans == 0 ? "device" : "devices");
    uint64_t most = cell->busy_ns + cell->maybe_ns;
    drupe_text_printf(text, " ");
    drupe_frame_range_text(drupe_unit_time(cell->busy_ns), drupe_unit_time(most), cell->busy_ns > 0,
                           cell->maybe_ns > 0, text);
    drupe_text_printf(text, " busy");
    /* Work that goes on after the code has a time of its own. */
    if (most > wall) return;
    drupe_text_printf(text, " (");
    drupe_frame_share_text((double)cell->busy_ns, (double)cell->maybe_ns, (double)wall, text);
    drupe_text_printf(text, ")");
}

void drupe_frame_footer(const drupe_frame *frame, drupe_text *text)
{
    const drupe_view_cell *cell = footer_cell(frame);
    if (cell == NULL) {
        drupe_text_printf(text, "No device work");
        return;
    }
    uint64_t began = cell->began_ns != 0 ? cell->began_ns : cell->first_ns;
    uint64_t ended = cell->ended_ns != 0 ? cell->ended_ns
                     : cell->running     ? frame->view->now_ns
                                         : cell->last_ns;
    uint64_t wall = ended > began ? ended - began : 0;
    drupe_text_printf(text, "%s wall", drupe_unit_time(wall).text);
    footer_busy(frame, cell, wall, text);
    drupe_frame_work(cell, true, false, text);
    footer_memory(frame, cell, text);
}
