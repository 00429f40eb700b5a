/* Sums of cells, whatever became of the spans. Times that are not known are summed up apart: as the time in
 * which they lie. */
#include "view/history.h"
#include <string.h>

/* Makes room by forgetting the first cell that has ended; work of no cell stays. */
static bool forget_one(drupe_history *history, uint32_t cell)
{
    for (size_t i = 0; i < history->ncells; i++) {
        const drupe_view_cell *old = &history->cells[i].cell;
        if (old->number == 0 || old->running || old->waiting) continue;
        if (old->number > cell) return false;
        history->ncells--;
        memmove(&history->cells[i], &history->cells[i + 1], (history->ncells - i) * sizeof *history->cells);
        return true;
    }
    return false;
}

static drupe_cell_totals *account_make(drupe_history *history, uint32_t cell)
{
    size_t at = history->ncells;
    while (at > 0 && history->cells[at - 1].cell.number >= cell) at--;
    if (at < history->ncells && history->cells[at].cell.number == cell) return &history->cells[at];
    if (history->ncells == DRUPE_VIEW_CELLS) {
        if (!forget_one(history, cell)) return NULL;
        at--; /* an earlier one went */
    }
    drupe_cell_totals *fresh = &history->cells[at];
    memmove(fresh + 1, fresh, (history->ncells - at) * sizeof *fresh);
    memset(fresh, 0, sizeof *fresh);
    fresh->cell.number = cell;
    history->ncells++;
    return fresh;
}

drupe_cell_totals *drupe_account_of(drupe_history *history, uint32_t cell)
{
    /* Its place may be another cell's by now. */
    if (!history->totals || history->totals->cell.number != cell)
        history->totals = account_make(history, cell);
    return history->totals;
}

void drupe_account_submitted(drupe_history *history, uint32_t cell, int kind, uint64_t bytes)
{
    drupe_cell_totals *totals = drupe_account_of(history, cell);
    if (!totals || kind < 0) return;
    totals->cell.count[kind]++;
    totals->cell.bytes[kind] += bytes;
    totals->cell.waiting++;
}

static void count_ending(drupe_view_cell *cell, const drupe_view_span *span)
{
    switch ((drupe_trace_status)span->status) {
    case DRUPE_TRACE_FAILED: cell->failed += span->count; break;
    case DRUPE_TRACE_SKIPPED: cell->skipped += span->count; break;
    case DRUPE_TRACE_CANCELLED: cell->cancelled += span->count; break;
    default: break;
    }
}

/* Whatever becomes of the cell: these sums are the device's for good. */
static void count_for_device(drupe_history_unit *unit, const drupe_pending_span *entry)
{
    const drupe_view_span *span = &entry->span;
    if (entry->kind < 0 || drupe_never_ran(span->status)) return;
    if (entry->kind == DRUPE_VIEW_COPIES) unit->moved += span->bytes;
    if (entry->kind == DRUPE_VIEW_KERNELS) unit->kernels += span->count;
    if (!drupe_class_occupies(unit->filter, entry->kind)) return;
    drupe_load_add(span->exact ? &unit->load : &unit->maybe, span->start_ns, span->end_ns);
}

void drupe_account_ended(drupe_history *history, const drupe_pending_span *entry)
{
    const drupe_view_span *span = &entry->span;
    drupe_history_unit *unit = &history->units[history->lines[entry->queue].device];
    drupe_cell_totals *totals = drupe_account_of(history, span->cell);
    count_for_device(unit, entry);
    if (!totals) return;
    drupe_view_cell *cell = &totals->cell;
    count_ending(cell, span);
    if (entry->kind < 0) return;
    cell->waiting -= cell->waiting < span->count ? cell->waiting : span->count;
    if (drupe_never_ran(span->status)) return;
    cell->class_ns[entry->kind] += span->busy_ns;
    if (!span->exact) cell->untimed[entry->kind] += span->count;
    uint64_t from = span->start_ns, to = span->end_ns;
    if (!cell->first_ns || from < cell->first_ns) cell->first_ns = from;
    if (to > cell->last_ns) cell->last_ns = to;
    if (!drupe_class_occupies(unit->filter, entry->kind)) return;
    drupe_interval settled;
    (void)drupe_union_add(span->exact ? &totals->busy : &totals->maybe, from, to, &settled);
}

void drupe_account_missed(drupe_history *history, uint32_t cell, uint64_t count)
{
    drupe_cell_totals *totals = drupe_account_of(history, cell);
    if (totals) totals->cell.missed += count;
}

void drupe_account_began(drupe_history *history, uint32_t cell, uint64_t ns, uint64_t used)
{
    drupe_cell_totals *totals = drupe_account_of(history, cell);
    if (!totals) return;
    totals->cell.running = true;
    totals->cell.began_ns = ns;
    totals->cell.ended_ns = 0;
    totals->cell.memory_before = totals->cell.memory_after = totals->cell.memory_peak = used;
}

void drupe_account_finished(drupe_history *history, uint32_t cell, uint64_t ns, uint64_t used)
{
    drupe_cell_totals *totals = drupe_account_of(history, cell);
    if (!totals || !totals->cell.running) return;
    totals->cell.running = false;
    totals->cell.ended_ns = ns;
    totals->cell.memory_after = used;
}

void drupe_account_memory(drupe_history *history, uint64_t high)
{
    for (size_t i = 0; i < history->ncells; i++) {
        drupe_view_cell *cell = &history->cells[i].cell;
        if (cell->running && high > cell->memory_peak) cell->memory_peak = high;
    }
}

uint32_t drupe_account_running(const drupe_history *history)
{
    const drupe_view_cell *latest = NULL;
    for (size_t i = 0; i < history->ncells; i++) {
        const drupe_view_cell *cell = &history->cells[i].cell;
        if (cell->running && (!latest || cell->began_ns >= latest->began_ns)) latest = cell;
    }
    return latest ? latest->number : 0;
}
