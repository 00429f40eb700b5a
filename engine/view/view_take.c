/* A view: a copy of what is wanted of the history, in one piece of memory.
 *
 * Work that is not over is shown as spans without an end: one for each that runs, and one for all of a cell
 * and lane that wait, or of which nobody knows whether they do. */
#include "view/history.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GRAIN_FIRST UINT64_C(1000) /* ns */
#define GRAIN_PART  8u
#define CROWD       4u

/* What is gathered before the view is made; each array is malloc'ed. */
typedef struct making {
    drupe_view_lane *lanes;
    uint32_t lane_of[DRUPE_LANES_MOST]; /* in the view, of the history's, plus one */
    size_t nlanes;
    drupe_pending_span *spans; /* the history's lanes; in the view's order once sorted */
    size_t nspans;
    size_t *open; /* indices of those that are not over */
    size_t nopen;
    drupe_view_cell *cells;
    size_t ncells;
    drupe_view_device devices[DRUPE_DEVICES_MOST];
    size_t sample_at[DRUPE_DEVICES_MOST]; /* of each device's first sample among all */
    size_t ndevices, nsamples;
    uint64_t now;
} making;

/* --- Lanes ---------------------------------------------------------------------------------------------- */

static int by_place(const void *left, const void *right)
{
    const drupe_view_lane *a = left, *b = right;
    int order = strcmp(a->device, b->device);
    if (order == 0) order = (a->queue > b->queue) - (a->queue < b->queue);
    return order ? order : (int)a->kind - (int)b->kind;
}

static drupe_status gather_lanes(const drupe_history *history, making *m)
{
    m->lanes = calloc(DRUPE_LANES_MOST, sizeof *m->lanes);
    if (!m->lanes) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of the devices.");
    for (uint32_t i = 0; i < DRUPE_LANES_MOST; i++) {
        const drupe_line *line = drupe_line_of_lane(history, i);
        uint32_t kind = i % DRUPE_VIEW_CLASS_COUNT;
        if (!line->number || !line->used[kind]) continue;
        drupe_view_lane *lane = &m->lanes[m->nlanes++];
        memcpy(lane->device, history->units[line->device].filter, sizeof lane->device);
        lane->queue = line->number;
        lane->kind = (drupe_view_class)kind;
        lane->waiting = line->waiting[kind];
    }
    qsort(m->lanes, m->nlanes, sizeof *m->lanes, by_place);
    for (uint32_t v = 0; v < m->nlanes; v++) {
        for (uint32_t q = 0; q < DRUPE_QUEUES_MOST; q++) {
            if (history->lines[q].number == m->lanes[v].queue)
                m->lane_of[q * DRUPE_VIEW_CLASS_COUNT + (uint32_t)m->lanes[v].kind] = v + 1;
        }
    }
    return DRUPE_OK;
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
    if (span->start_ns > m->now) span->start_ns = m->now;
    span->end_ns = 0;
    span->exact = runs || entry->told;
    span->state = runs ? DRUPE_VIEW_RUNNING : entry->told ? DRUPE_VIEW_WAITING : DRUPE_VIEW_SUBMITTED;
    /* What ended just now is over, though nobody has looked how. */
    if (runs) span->busy_ns = (over && over < m->now ? over : m->now) - span->start_ns;
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
    if (!runs && lasts[lane] && drupe_spans_merge(&m->spans[lasts[lane] - 1], &open, UINT64_MAX)) return;
    m->spans[m->nspans++] = open;
    if (!runs) lasts[lane] = (uint32_t)m->nspans;
}

static void gather_open(const drupe_history *history, const drupe_view_wish *wish, making *m)
{
    uint32_t lasts[DRUPE_LANES_MOST] = {0};
    for (size_t i = 0; i < history->npending; i++) {
        const drupe_pending_span *entry = &history->pending[i];
        if (entry->kind >= 0 && cell_wanted(wish, entry->span.cell)) add_open(history, m, entry, lasts);
    }
}

static bool stands_behind(const drupe_pending_span *a, const drupe_pending_span *b)
{
    return a->span.lane == b->span.lane && a->span.start_ns > b->span.start_ns;
}

/* By lane of the view; within one nearly by start already. */
static drupe_status sort_spans(making *m)
{
    size_t starts[DRUPE_LANES_MOST + 1] = {0};
    drupe_pending_span *sorted = calloc(m->nspans + 1, sizeof *sorted);
    if (!sorted) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of %zu spans.", m->nspans);
    for (size_t i = 0; i < m->nspans; i++) starts[m->lane_of[m->spans[i].span.lane]]++;
    for (size_t i = 1; i <= m->nlanes; i++) starts[i] += starts[i - 1];
    for (size_t i = 0; i < m->nspans; i++) {
        uint32_t lane = m->lane_of[m->spans[i].span.lane] - 1;
        sorted[starts[lane]++] = m->spans[i];
    }
    free(m->spans);
    m->spans = sorted;
    for (size_t i = 1; i < m->nspans; i++) {
        if (!stands_behind(&sorted[i - 1], &sorted[i])) continue;
        drupe_pending_span moved = sorted[i];
        size_t at = i;
        for (; at > 0 && stands_behind(&sorted[at - 1], &moved); at--) sorted[at] = sorted[at - 1];
        sorted[at] = moved;
    }
    return DRUPE_OK;
}

/* Much more than is wanted is merged while it is copied, up to a length that cannot be enough yet: the spans
 * of a lane that is always busy become as many as that fits into its time. It is a power of two, so that
 * views that follow each other are merged alike. */
static uint64_t grain_of(const drupe_history *history, const drupe_view_wish *wish, uint64_t after)
{
    uint64_t from = UINT64_MAX, to = 0, grain = GRAIN_FIRST;
    size_t count = 0;
    if (!wish->spans || history->nspans <= CROWD * wish->spans) return 0;
    for (size_t i = 0; i < history->nspans; i++) {
        const drupe_view_span *span = &history->spans[i].span;
        if (!span_wanted(wish, &history->spans[i], after)) continue;
        if (span->start_ns < from) from = span->start_ns;
        if (span->end_ns > to) to = span->end_ns;
        count++;
    }
    if (count <= CROWD * wish->spans || to <= from) return 0;
    while (grain < (to - from) / wish->spans / GRAIN_PART) grain *= 2;
    return grain;
}

static void copy_spans(const drupe_history *history, const drupe_view_wish *wish, uint64_t after,
                       uint64_t grain, making *m)
{
    uint32_t lasts[DRUPE_LANES_MOST] = {0};
    for (size_t i = 0; i < history->nspans; i++) {
        const drupe_pending_span *entry = &history->spans[i];
        uint32_t *last = &lasts[entry->span.lane];
        if (!span_wanted(wish, entry, after)) continue;
        if (grain && *last && drupe_spans_merge(&m->spans[*last - 1], entry, grain)) continue;
        m->spans[m->nspans++] = *entry;
        *last = (uint32_t)m->nspans;
    }
}

static bool runs(const drupe_view_span *span)
{
    return span->state == DRUPE_VIEW_RUNNING;
}

static drupe_status find_open(making *m)
{
    for (size_t i = 0; i < m->nspans; i++) m->nopen += m->spans[i].span.state != DRUPE_VIEW_OVER;
    m->open = calloc(m->nopen + 1, sizeof *m->open);
    if (!m->open) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of what goes on.");
    for (size_t i = 0, at = 0; i < m->nspans; i++)
        if (m->spans[i].span.state != DRUPE_VIEW_OVER) m->open[at++] = i;
    for (size_t i = 0; i < m->nopen; i++) {
        const drupe_view_span *span = &m->spans[m->open[i]].span;
        m->lanes[m->lane_of[span->lane] - 1].open[span->state] += (uint32_t)span->count;
    }
    return DRUPE_OK;
}

static drupe_status gather_spans(const drupe_history *history, const drupe_view_wish *wish, making *m)
{
    uint64_t after = whole(history, wish) ? 0 : wish->after;
    uint32_t lasts[DRUPE_LANES_MOST];
    uint64_t grain = grain_of(history, wish, after);
    m->spans = calloc(history->nspans + history->npending + 1, sizeof *m->spans);
    if (!m->spans)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of %zu spans.", history->nspans);
    copy_spans(history, wish, after, grain, m);
    if (grain < history->grain) grain = history->grain;
    size_t over = m->nspans;
    gather_open(history, wish, m);
    size_t open = m->nspans - over, most = wish->spans > open ? wish->spans - open : 1;
    if (wish->spans && over > most) {
        size_t left = drupe_spans_shrink(m->spans, over, most, lasts, &grain);
        memmove(&m->spans[left], &m->spans[over], open * sizeof *m->spans);
        m->nspans = left + open;
    }
    DRUPE_TRY(sort_spans(m));
    return find_open(m);
}

/* --- Cells and devices ---------------------------------------------------------------------------------- */

static bool occupies(const drupe_history *history, const drupe_pending_span *entry)
{
    return drupe_class_occupies(history->units[history->lines[entry->queue].device].filter, entry->kind);
}

/* What is not over counts in its state, and what runs up to now, in a copy. */
static void add_open_work(const drupe_history *history, const making *m, uint32_t number,
                          drupe_view_cell *cell, drupe_union *busy)
{
    drupe_interval settled;
    for (size_t i = 0; i < m->nopen; i++) {
        const drupe_pending_span *entry = &m->spans[m->open[i]];
        if (entry->span.cell != number) continue;
        cell->open[entry->span.state] += entry->span.count;
        if (!runs(&entry->span)) continue;
        uint64_t end = entry->span.start_ns + entry->span.busy_ns;
        cell->class_ns[entry->kind] += entry->span.busy_ns;
        if (!cell->first_ns || entry->span.start_ns < cell->first_ns) cell->first_ns = entry->span.start_ns;
        if (end > cell->last_ns) cell->last_ns = end;
        if (occupies(history, entry)) (void)drupe_union_add(busy, entry->span.start_ns, end, &settled);
    }
}

static drupe_status gather_cells(const drupe_history *history, const drupe_view_wish *wish, making *m)
{
    m->cells = malloc((history->ncells + 1) * sizeof *m->cells);
    if (!m->cells) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of the cells.");
    for (size_t i = 0; i < history->ncells; i++) {
        const drupe_cell_totals *totals = &history->cells[i];
        if (!cell_wanted(wish, totals->cell.number)) continue;
        drupe_view_cell *cell = &m->cells[m->ncells++];
        drupe_union busy = totals->busy;
        *cell = totals->cell;
        add_open_work(history, m, cell->number, cell, &busy);
        cell->busy_ns = drupe_union_sum(&busy);
        cell->maybe_ns = drupe_union_sum(&totals->maybe);
    }
    return DRUPE_OK;
}

static drupe_view_device *device_of(making *m, const char *root)
{
    for (size_t i = 0; i < m->ndevices; i++)
        if (strcmp(m->devices[i].use.filter, root) == 0) return &m->devices[i];
    if (m->ndevices == DRUPE_DEVICES_MOST) return NULL;
    drupe_view_device *fresh = &m->devices[m->ndevices++];
    memset(fresh, 0, sizeof *fresh);
    memcpy(fresh->use.filter, root, strnlen(root, sizeof fresh->use.filter - 1));
    memcpy(fresh->use.name, root, strnlen(root, sizeof fresh->use.name - 1));
    fresh->use.backend = "";
    return fresh;
}

/* The share of the last second in which work lies of which nobody knows when it ran, or whether it runs. */
static double maybe_share(const drupe_history *history, const making *m, uint32_t unit)
{
    drupe_load load = history->units[unit].maybe;
    for (size_t s = 0; s < m->nopen; s++) {
        const drupe_pending_span *entry = &m->spans[m->open[s]];
        if (history->lines[entry->queue].device != unit || entry->span.state != DRUPE_VIEW_SUBMITTED)
            continue;
        if (occupies(history, entry)) drupe_load_add(&load, entry->span.start_ns, m->now);
    }
    return drupe_load_share(&load, m->now);
}

/* Work of a device's parts is the device's, which is as busy as the busiest of them. */
static void add_load(const drupe_history *history, const making *m, drupe_view_device *device)
{
    for (uint32_t i = 0; i < history->nunits; i++) {
        if (strcmp(history->units[i].root, device->use.filter) != 0) continue;
        drupe_load load = history->units[i].load;
        for (size_t s = 0; s < m->nopen; s++) {
            const drupe_pending_span *entry = &m->spans[m->open[s]];
            uint64_t start = entry->span.start_ns;
            if (history->lines[entry->queue].device == i && runs(&entry->span) && occupies(history, entry))
                drupe_load_add(&load, start, start + entry->span.busy_ns);
        }
        double share = drupe_load_share(&load, m->now);
        if (share > device->busy) device->busy = share;
        device->maybe = fmax(device->maybe, maybe_share(history, m, i));
        for (size_t l = 0; l < m->nlanes; l++)
            if (strcmp(m->lanes[l].device, history->units[i].filter) == 0)
                device->waiting += m->lanes[l].waiting;
    }
    if (device->maybe > 1.0 - device->busy) device->maybe = 1.0 - device->busy;
}

static int by_filter(const void *left, const void *right)
{
    return strcmp(((const drupe_view_device *)left)->use.filter,
                  ((const drupe_view_device *)right)->use.filter);
}

/* Whether anything was submitted to it or a part of it. */
static bool has_unit(const drupe_history *history, const char *root)
{
    for (size_t i = 0; i < history->nunits; i++)
        if (strcmp(history->units[i].root, root) == 0) return true;
    return false;
}

static void gather_devices(const drupe_history *history, making *m)
{
    drupe_device_figures figures[DRUPE_DEVICES_MOST];
    size_t count = drupe_device_figures_of(figures, DRUPE_DEVICES_MOST);
    for (size_t i = 0; i < count; i++) {
        if (!figures[i].used && !has_unit(history, figures[i].use.filter)) continue;
        drupe_view_device *device = device_of(m, figures[i].use.filter);
        device->use = figures[i].use;
        memcpy(device->used, figures[i].kinds, sizeof device->used);
        device->peak = figures[i].peak;
        device->limit = figures[i].limit;
        device->allocations = figures[i].allocations;
        device->lost = figures[i].lost;
    }
    for (size_t i = 0; i < history->nunits; i++) (void)device_of(m, history->units[i].root);
    qsort(m->devices, m->ndevices, sizeof *m->devices, by_filter);
    for (size_t i = 0; i < m->ndevices; i++) add_load(history, m, &m->devices[i]);
}

/* --- Putting it together -------------------------------------------------------------------------------- */

static const drupe_memory_series *series_of(const drupe_history *history, const char *filter)
{
    for (size_t i = 0; i < history->nseries; i++)
        if (strcmp(history->series[i].filter, filter) == 0) return &history->series[i];
    return NULL;
}

static void count_samples(const drupe_history *history, uint64_t since, making *m)
{
    for (size_t i = 0; i < m->ndevices; i++) {
        const drupe_memory_series *one = series_of(history, m->devices[i].use.filter);
        size_t first = 0, count = one ? one->count : 0;
        while (first < count && one->samples[first].ns < since) first++;
        m->devices[i].samples = one ? one->samples + first : NULL;
        m->devices[i].nsamples = count - first;
        m->nsamples += count - first;
    }
}

static void *place(char **at, size_t size)
{
    void *result = *at;
    *at += (size + 15) & ~(size_t)15;
    return result;
}

static size_t room(size_t count, size_t size)
{
    return (count * size + 15) & ~(size_t)15;
}

static void fill(const making *m, drupe_view *view, char *at)
{
    drupe_view_lane *lanes = place(&at, m->nlanes * sizeof *lanes);
    drupe_view_span *spans = place(&at, m->nspans * sizeof *spans);
    drupe_view_cell *cells = place(&at, m->ncells * sizeof *cells);
    drupe_view_device *devices = place(&at, m->ndevices * sizeof *devices);
    drupe_view_sample *samples = place(&at, m->nsamples * sizeof *samples);
    memcpy(lanes, m->lanes, m->nlanes * sizeof *lanes);
    memcpy(cells, m->cells, m->ncells * sizeof *cells);
    memcpy(devices, m->devices, m->ndevices * sizeof *devices);
    for (size_t i = 0; i < m->nspans; i++) {
        spans[i] = m->spans[i].span;
        spans[i].lane = m->lane_of[spans[i].lane] - 1;
        uint64_t end = spans[i].end_ns ? spans[i].end_ns : m->now;
        if (!view->from_ns || spans[i].start_ns < view->from_ns) view->from_ns = spans[i].start_ns;
        if (end > view->to_ns) view->to_ns = end;
    }
    for (size_t i = 0; i < m->ndevices; i++) {
        if (devices[i].nsamples) memcpy(samples, devices[i].samples, devices[i].nsamples * sizeof *samples);
        devices[i].samples = samples;
        samples += devices[i].nsamples;
    }
    view->lanes = lanes;
    view->spans = spans;
    view->cells = cells;
    view->devices = devices;
    view->nlanes = m->nlanes;
    view->nspans = m->nspans;
    view->ncells = m->ncells;
    view->ndevices = m->ndevices;
}

static drupe_status assemble(const drupe_history *history, const drupe_view_wish *wish, const making *m,
                             drupe_view **view)
{
    size_t head = room(1, sizeof(drupe_view));
    char *block =
        calloc(1, head + room(m->nlanes, sizeof *m->lanes) + room(m->nspans, sizeof(drupe_view_span)) +
                      room(m->ncells, sizeof *m->cells) + room(m->ndevices, sizeof *m->devices) +
                      room(m->nsamples, sizeof(drupe_view_sample)) + 16);
    if (!block) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of %zu spans.", m->nspans);
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    drupe_view *fresh = (drupe_view *)(void *)block;
    fresh->now_ns = m->now;
    fresh->unix_ns = (uint64_t)real.tv_sec * UINT64_C(1000000000) + (uint64_t)real.tv_nsec;
    fresh->latest = history->after;
    fresh->serial = history->serial;
    fresh->whole = whole(history, wish);
    fill(m, fresh, block + head);
    if (!fresh->to_ns) fresh->from_ns = fresh->to_ns = m->now;
    *view = fresh;
    return DRUPE_OK;
}

drupe_status drupe_view_make(drupe_history *history, const drupe_view_wish *wish, uint64_t now,
                             drupe_view **view)
{
    making *m = calloc(1, sizeof *m);
    *view = NULL;
    if (!m) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a view of the devices.");
    m->now = now;
    drupe_status status = gather_lanes(history, m);
    if (status == DRUPE_OK) status = gather_spans(history, wish, m);
    if (status == DRUPE_OK) status = gather_cells(history, wish, m);
    if (status == DRUPE_OK) {
        gather_devices(history, m);
        count_samples(history, wish->since_ns, m);
        status = assemble(history, wish, m, view);
    }
    free(m->lanes);
    free(m->spans);
    free(m->open);
    free(m->cells);
    free(m);
    return status;
}

void drupe_view_release(drupe_view *view)
{
    free(view);
}
