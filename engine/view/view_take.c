/* A view: a copy of what is wanted of the history.
 *
 * Work that is not over is shown as spans without an end: one for each that runs, and one for all of a cell
 * and lane that wait, or of which nobody knows whether they do. */
#include "view/frame.h"
#include "view/history.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GRAIN_FIRST UINT64_C(1000) /* ns */
#define GRAIN_PART  8u
#define CROWD       4u

/* A view, and what belongs to it. */
typedef struct making {
    drupe_view view; /* the first member: it is what the caller gets */
    drupe_view_lane lanes[DRUPE_LANES_MOST];
    drupe_view_cell cells[DRUPE_VIEW_CELLS];
    drupe_view_device devices[DRUPE_DEVICES_MOST];
    drupe_view_span *spans;
    drupe_view_sample *samples;
    /* While it is made: */
    uint32_t lane_of[DRUPE_LANES_MOST]; /* in the view, of the history's, plus one */
    drupe_pending_span *gathered;       /* of the history's lanes; malloc'ed, as the next one */
    size_t ngathered;
    const drupe_view_span **open; /* those that are not over */
    size_t nopen;
} making;

/* --- Lanes ---------------------------------------------------------------------------------------------- */

static int by_place(const void *left, const void *right)
{
    const drupe_view_lane *a = left, *b = right;
    int order = strcmp(a->device, b->device);
    if (order == 0) order = (a->queue > b->queue) - (a->queue < b->queue);
    return order ? order : (int)a->kind - (int)b->kind;
}

static void gather_lanes(const drupe_history *history, making *m)
{
    for (uint32_t i = 0; i < DRUPE_LANES_MOST; i++) {
        const drupe_line *line = &history->lines[i / DRUPE_VIEW_CLASS_COUNT];
        uint32_t kind = i % DRUPE_VIEW_CLASS_COUNT;
        if (!line->number || !line->used[kind]) continue;
        drupe_view_lane *lane = &m->lanes[m->view.nlanes++];
        memcpy(lane->device, history->units[line->device].filter, sizeof lane->device);
        lane->queue = line->number;
        lane->kind = (drupe_view_class)kind;
        lane->waiting = line->waiting[kind];
    }
    qsort(m->lanes, m->view.nlanes, sizeof *m->lanes, by_place);
    for (uint32_t v = 0; v < m->view.nlanes; v++) {
        for (uint32_t q = 0; q < DRUPE_QUEUES_MOST; q++) {
            if (history->lines[q].number == m->lanes[v].queue)
                m->lane_of[q * DRUPE_VIEW_CLASS_COUNT + (uint32_t)m->lanes[v].kind] = v + 1;
        }
    }
}

/* --- Spans ---------------------------------------------------------------------------------------------- */

static bool cell_wanted(const drupe_view_wish *wish, uint32_t cell)
{
    if (!wish->first_cell && !wish->last_cell) return true;
    return cell >= wish->first_cell && cell <= (wish->last_cell ? wish->last_cell : UINT32_MAX);
}

/* Who knows of merged spans, or of another process, or of nothing, gets all. */
static bool whole(const drupe_history *history, const drupe_view_wish *wish)
{
    return wish->after == 0 || wish->after < history->cleared || wish->after > history->serial;
}

static bool span_wanted(const drupe_view_wish *wish, const drupe_pending_span *entry, uint64_t after)
{
    const drupe_view_span *span = &entry->span;
    return cell_wanted(wish, span->cell) && (!span->end_ns || span->end_ns > wish->since_ns) &&
           (!after || !span->end_ns || entry->changed > after);
}

/* How far a pending span is whose work is not known to be over; its span is that of the view. */
static void look_open(const drupe_history *history, const making *m, const drupe_pending_span *entry,
                      drupe_view_span *span)
{
    uint64_t began = 0, over = 0;
    bool runs = span->count == 1 && drupe_trace_ran(span->id, &began, &over);
    span->start_ns = runs && began > entry->submitted_ns ? began : drupe_history_begin(history, entry);
    if (span->start_ns > m->view.now_ns) span->start_ns = m->view.now_ns;
    span->end_ns = 0;
    span->exact = runs || entry->told;
    span->state = runs ? DRUPE_VIEW_RUNNING : entry->told ? DRUPE_VIEW_WAITING : DRUPE_VIEW_SUBMITTED;
    /* What ended just now is over, though nobody has looked how. */
    if (runs) span->busy_ns = (over && over < m->view.now_ns ? over : m->view.now_ns) - span->start_ns;
    if (runs && over && over < span->start_ns) span->busy_ns = 0;
}

/* What does not run joins the last span of its lane and cell that does not either. */
static void add_open(const drupe_history *history, making *m, const drupe_pending_span *entry,
                     uint32_t *lasts)
{
    uint32_t lane = entry->span.lane;
    drupe_pending_span open = *entry;
    look_open(history, m, entry, &open.span);
    bool runs = open.span.state == DRUPE_VIEW_RUNNING;
    if (!runs && lasts[lane] && drupe_spans_merge(&m->gathered[lasts[lane] - 1], &open, UINT64_MAX)) return;
    m->gathered[m->ngathered++] = open;
    if (!runs) lasts[lane] = (uint32_t)m->ngathered;
}

static void gather_open(const drupe_history *history, const drupe_view_wish *wish, making *m)
{
    uint32_t lasts[DRUPE_LANES_MOST] = {0};
    for (size_t i = 0; i < history->npending; i++) {
        const drupe_pending_span *entry = &history->pending[i];
        if (entry->kind >= 0 && cell_wanted(wish, entry->span.cell)) add_open(history, m, entry, lasts);
    }
}

static bool stands_behind(const drupe_view_span *a, const drupe_view_span *b)
{
    return a->lane == b->lane && a->start_ns > b->start_ns;
}

/* By lane of the view; within one nearly by start already. */
static drupe_status sort_spans(making *m)
{
    size_t starts[DRUPE_LANES_MOST + 1] = {0};
    drupe_view_span *spans = m->spans = calloc(m->ngathered + 1, sizeof *spans);
    if (!spans) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of %zu spans.", m->ngathered);
    m->view.nspans = m->ngathered;
    for (size_t i = 0; i < m->ngathered; i++) starts[m->lane_of[m->gathered[i].span.lane]]++;
    for (size_t i = 1; i <= m->view.nlanes; i++) starts[i] += starts[i - 1];
    for (size_t i = 0; i < m->ngathered; i++) {
        uint32_t lane = m->lane_of[m->gathered[i].span.lane] - 1;
        drupe_view_span *span = &spans[starts[lane]++];
        *span = m->gathered[i].span;
        span->lane = lane;
    }
    for (size_t i = 1; i < m->view.nspans; i++) {
        if (!stands_behind(&spans[i - 1], &spans[i])) continue;
        drupe_view_span moved = spans[i];
        size_t at = i;
        for (; at > 0 && stands_behind(&spans[at - 1], &moved); at--) spans[at] = spans[at - 1];
        spans[at] = moved;
    }
    return DRUPE_OK;
}

/* Where there is much more than is wanted, a length that cannot be enough yet: the spans of a lane that is
 * always busy become as many as that fits into its time. It is a power of two, so that views that follow each
 * other are merged alike. */
static uint64_t grain_of(const making *m, size_t wanted)
{
    uint64_t from = UINT64_MAX, to = 0, grain = GRAIN_FIRST;
    if (m->ngathered <= CROWD * wanted) return 0;
    for (size_t i = 0; i < m->ngathered; i++) {
        if (m->gathered[i].span.start_ns < from) from = m->gathered[i].span.start_ns;
        if (m->gathered[i].span.end_ns > to) to = m->gathered[i].span.end_ns;
    }
    while (to > from && grain < (to - from) / wanted / GRAIN_PART) grain *= 2;
    return grain;
}

/* The range of the spans, and those that are not over. */
static drupe_status look_through(making *m)
{
    drupe_view *view = &m->view;
    m->open = calloc(view->nspans + 1, sizeof(drupe_view_span *));
    m->nopen = 0;
    if (!m->open) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of what goes on.");
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *span = &m->spans[i];
        uint64_t end = span->end_ns ? span->end_ns : view->now_ns;
        if (!view->from_ns || span->start_ns < view->from_ns) view->from_ns = span->start_ns;
        if (end > view->to_ns) view->to_ns = end;
        if (span->state == DRUPE_VIEW_OVER) continue;
        m->open[m->nopen++] = span;
        m->lanes[span->lane].open[span->state] += (uint32_t)span->count;
    }
    if (!view->to_ns) view->from_ns = view->to_ns = view->now_ns;
    return DRUPE_OK;
}

static drupe_status gather_spans(const drupe_history *history, const drupe_view_wish *wish, making *m)
{
    uint64_t after = whole(history, wish) ? 0 : wish->after;
    uint32_t lasts[DRUPE_LANES_MOST];
    m->gathered = calloc(history->nspans + history->npending + 1, sizeof *m->gathered);
    if (!m->gathered)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of %zu spans.", history->nspans);
    for (size_t i = 0; i < history->nspans; i++)
        if (span_wanted(wish, &history->spans[i], after)) m->gathered[m->ngathered++] = history->spans[i];
    uint64_t grain = wish->spans ? grain_of(m, wish->spans) : 0;
    if (grain < history->grain) grain = history->grain;
    size_t over = m->ngathered;
    gather_open(history, wish, m);
    size_t open = m->ngathered - over, most = wish->spans > open ? wish->spans - open : 1;
    if (wish->spans && over > most) {
        size_t left = drupe_spans_shrink(m->gathered, over, most, lasts, &grain);
        memmove(&m->gathered[left], &m->gathered[over], open * sizeof *m->gathered);
        m->ngathered = left + open;
    }
    DRUPE_TRY(sort_spans(m));
    return look_through(m);
}

/* --- Cells and devices ---------------------------------------------------------------------------------- */

static bool occupies(const making *m, const drupe_view_span *span)
{
    const drupe_view_lane *lane = &m->lanes[span->lane];
    return drupe_class_occupies(lane->device, (int)lane->kind);
}

/* What is not over counts in its state, and what runs up to now, in a copy. */
static void add_open_work(const making *m, drupe_view_cell *cell, drupe_union *busy)
{
    drupe_interval settled;
    for (size_t i = 0; i < m->nopen; i++) {
        const drupe_view_span *span = m->open[i];
        if (span->cell != cell->number) continue;
        cell->open[span->state] += span->count;
        if (span->state != DRUPE_VIEW_RUNNING) continue;
        uint64_t end = span->start_ns + span->busy_ns;
        cell->class_ns[m->lanes[span->lane].kind] += span->busy_ns;
        if (!cell->first_ns || span->start_ns < cell->first_ns) cell->first_ns = span->start_ns;
        if (end > cell->last_ns) cell->last_ns = end;
        if (occupies(m, span)) (void)drupe_union_add(busy, span->start_ns, end, &settled);
    }
}

static void gather_cells(const drupe_history *history, const drupe_view_wish *wish, making *m)
{
    for (size_t i = 0; i < history->ncells; i++) {
        const drupe_cell_totals *totals = &history->cells[i];
        if (!cell_wanted(wish, totals->cell.number)) continue;
        drupe_view_cell *cell = &m->cells[m->view.ncells++];
        drupe_union busy = totals->busy;
        *cell = totals->cell;
        add_open_work(m, cell, &busy);
        cell->busy_ns = drupe_union_sum(&busy);
        cell->maybe_ns = drupe_union_sum(&totals->maybe);
    }
}

/* NULL: there is none, and none is to be made, or there are too many. */
static drupe_view_device *device_of(making *m, const char *root, bool make)
{
    for (size_t i = 0; i < m->view.ndevices; i++)
        if (strcmp(m->devices[i].use.filter, root) == 0) return &m->devices[i];
    if (!make || m->view.ndevices == DRUPE_DEVICES_MOST) return NULL;
    drupe_view_device *fresh = &m->devices[m->view.ndevices++];
    memset(fresh, 0, sizeof *fresh);
    memcpy(fresh->use.filter, root, strnlen(root, sizeof fresh->use.filter - 1));
    memcpy(fresh->use.name, root, strnlen(root, sizeof fresh->use.name - 1));
    fresh->use.backend = "";
    return fresh;
}

/* The share of the last second, with the device's work that is in this state. */
static double share_of(const making *m, const char *filter, const drupe_load *past, drupe_view_state state)
{
    drupe_load load = *past;
    for (size_t i = 0; i < m->nopen; i++) {
        const drupe_view_span *span = m->open[i];
        if (span->state != state || strcmp(m->lanes[span->lane].device, filter) != 0 || !occupies(m, span))
            continue;
        drupe_load_add(&load, span->start_ns, drupe_frame_span_end(&m->view, span));
    }
    return drupe_load_share(&load, m->view.now_ns);
}

/* Work of a device's parts is the device's, which is as busy as the busiest of them. */
static void add_load(const drupe_history *history, const making *m, drupe_view_device *device)
{
    for (uint32_t i = 0; i < history->nunits; i++) {
        const drupe_history_unit *unit = &history->units[i];
        if (strcmp(unit->root, device->use.filter) != 0) continue;
        device->busy = fmax(device->busy, share_of(m, unit->filter, &unit->load, DRUPE_VIEW_RUNNING));
        device->maybe = fmax(device->maybe, share_of(m, unit->filter, &unit->maybe, DRUPE_VIEW_SUBMITTED));
        device->busy_ns += drupe_union_sum(&unit->load.all);
        device->maybe_ns += drupe_union_sum(&unit->maybe.all);
        device->moved += unit->moved;
        device->kernels += unit->kernels;
        for (size_t l = 0; l < m->view.nlanes; l++)
            if (strcmp(m->lanes[l].device, unit->filter) == 0) device->waiting += m->lanes[l].waiting;
    }
    if (device->maybe > 1.0 - device->busy) device->maybe = 1.0 - device->busy;
}

static int by_filter(const void *left, const void *right)
{
    return strcmp(((const drupe_view_device *)left)->use.filter,
                  ((const drupe_view_device *)right)->use.filter);
}

static void gather_devices(const drupe_history *history, making *m)
{
    drupe_device_figures figures[DRUPE_DEVICES_MOST];
    size_t count = drupe_device_figures_of(figures, DRUPE_DEVICES_MOST);
    /* Those that anything was submitted to, and those with memory in use. */
    for (size_t i = 0; i < history->nunits; i++) (void)device_of(m, history->units[i].root, true);
    for (size_t i = 0; i < count; i++) {
        drupe_view_device *device = device_of(m, figures[i].use.filter, figures[i].used);
        if (!device) continue;
        device->use = figures[i].use;
        memcpy(device->used, figures[i].kinds, sizeof device->used);
        device->peak = figures[i].peak;
        device->limit = figures[i].limit;
        device->allocations = figures[i].allocations;
        device->lost = figures[i].lost;
    }
    qsort(m->devices, m->view.ndevices, sizeof *m->devices, by_filter);
    for (size_t i = 0; i < m->view.ndevices; i++) add_load(history, m, &m->devices[i]);
}

static drupe_status gather_samples(drupe_history *history, uint64_t since, making *m)
{
    size_t count = 0;
    for (size_t i = 0; i < history->nseries; i++) count += history->series[i].count;
    drupe_view_sample *to = m->samples = malloc((count + 1) * sizeof *to);
    if (!to) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of the devices' memory.");
    for (size_t i = 0; i < m->view.ndevices; i++) {
        const drupe_memory_series *one = drupe_samples_of(history, m->devices[i].use.filter);
        m->devices[i].samples = to;
        for (size_t k = 0; one && k < one->count; k++)
            if (one->samples[k].ns >= since) *to++ = one->samples[k];
        m->devices[i].nsamples = (size_t)(to - m->devices[i].samples);
    }
    return DRUPE_OK;
}

drupe_status drupe_view_make(drupe_history *history, const drupe_view_wish *wish, uint64_t now,
                             drupe_view **view)
{
    making *m = calloc(1, sizeof *m);
    *view = NULL;
    if (!m) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of the devices.");
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    m->view = (drupe_view){.now_ns = now,
                           .unix_ns = (uint64_t)real.tv_sec * UINT64_C(1000000000) + (uint64_t)real.tv_nsec,
                           .latest = history->after,
                           .serial = history->serial,
                           .whole = whole(history, wish)};
    gather_lanes(history, m);
    drupe_status status = gather_spans(history, wish, m);
    if (status == DRUPE_OK) {
        gather_cells(history, wish, m);
        gather_devices(history, m);
        status = gather_samples(history, wish->since_ns, m);
    }
    free(m->gathered);
    free(m->open);
    m->view.lanes = m->lanes;
    m->view.spans = m->spans;
    m->view.cells = m->cells;
    m->view.devices = m->devices;
    if (status == DRUPE_OK)
        *view = &m->view;
    else
        drupe_view_release(&m->view);
    return status;
}

void drupe_view_release(drupe_view *view)
{
    making *m = (making *)view;
    if (!m) return;
    free(m->spans);
    free(m->samples);
    free(m);
}
