/* Memory in use, at the ends of cells and when it has changed. Of a device with too many samples every second
 * one of the older half goes, the smaller of two, so that peaks stay. */
#include "view/history.h"
#include <string.h>

#define NOTICEABLE 64u /* of what is in use: less of a change is none */

drupe_memory_series *drupe_samples_of(drupe_history *history, const char *filter)
{
    for (size_t i = 0; i < history->nseries; i++)
        if (strcmp(history->series[i].filter, filter) == 0) return &history->series[i];
    return NULL;
}

static drupe_memory_series *series_of(drupe_history *history, const char *filter)
{
    drupe_memory_series *known = drupe_samples_of(history, filter);
    if (known) return known;
    if (history->nseries == DRUPE_DEVICES_MOST) return NULL;
    drupe_memory_series *fresh = &history->series[history->nseries];
    memcpy(fresh->filter, filter, strnlen(filter, sizeof fresh->filter - 1));
    history->nseries++;
    return fresh;
}

static void thin(drupe_memory_series *one)
{
    size_t half = DRUPE_VIEW_SAMPLES / 2, kept = 0;
    for (size_t i = 0; i < half; i += 2) {
        size_t larger =
            drupe_sample_used(&one->samples[i]) > drupe_sample_used(&one->samples[i + 1]) ? i : i + 1;
        one->samples[kept++] = one->samples[larger];
    }
    memmove(one->samples + kept, one->samples + half, (one->count - half) * sizeof *one->samples);
    one->count -= half - kept;
}

static bool used_changed(const drupe_view_sample *last, const drupe_view_sample *now)
{
    for (size_t kind = 0; kind < 3; kind++) {
        uint64_t a = last->used[kind], b = now->used[kind], more = a > b ? a - b : b - a;
        if (more > (a > b ? a : b) / NOTICEABLE) return true;
    }
    return false;
}

void drupe_figures_look(drupe_figures *figures)
{
    figures->count = drupe_device_figures_of(figures->devices, DRUPE_DEVICES_MOST);
    figures->used = 0;
    for (size_t i = 0; i < figures->count; i++)
        for (size_t kind = 0; kind < 3; kind++) figures->used += figures->devices[i].kinds[kind];
}

void drupe_samples_take(drupe_history *history, const drupe_figures *figures, uint64_t now, uint32_t cell,
                        bool always)
{
    for (size_t i = 0; i < figures->count; i++) {
        const drupe_device_figures *device = &figures->devices[i];
        drupe_memory_series *one = device->used ? series_of(history, device->use.filter) : NULL;
        if (!one) continue;
        drupe_view_sample fresh = {.ns = now, .reserved = device->use.reserved, .cell = cell};
        memcpy(fresh.used, device->kinds, sizeof fresh.used);
        bool first = one->count == 0;
        const drupe_view_sample *last = &one->samples[first ? 0 : one->count - 1];
        if (!first && !used_changed(last, &fresh)) {
            if (!always && last->reserved == fresh.reserved) continue;
            fresh.cell = last->cell;
        }
        if (one->count == DRUPE_VIEW_SAMPLES) thin(one);
        one->samples[one->count++] = fresh;
        history->serial++;
    }
}
