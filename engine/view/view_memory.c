/* Memory over time, and sentences about it. */
#include "view_memory.h"

#define AXIS_SHARE 1024u /* of the limit; chart.js of the panel has the same */

const char *const drupe_memory_kinds[3] = {"device", "shared", "host"};

uint64_t drupe_memory_limit(const drupe_view_device *device)
{
    return device->limit != 0 ? device->limit : device->use.total;
}

uint64_t drupe_memory_whole(const drupe_view_device *device)
{
    uint64_t whole = drupe_memory_limit(device);
    if (whole == 0) whole = device->peak > device->use.reserved ? device->peak : device->use.reserved;
    return whole > 0 ? whole : 1;
}

bool drupe_memory_near(const drupe_view_device *device)
{
    uint64_t limit = drupe_memory_limit(device);
    return limit > 0 && (double)device->use.used >= 0.9 * (double)limit;
}

bool drupe_memory_range(const drupe_view_device *device, bool live, uint64_t *from, uint64_t *to)
{
    if (device->nsamples < 2) return false;
    *from = device->samples[0].ns;
    *to = device->samples[device->nsamples - 1].ns;
    if (*to <= *from) return false;
    uint64_t length = *to - *from;
    /* The last amount is shown for a moment, or its column would have no width. */
    length += length / 50 + 1;
    *to = *from + (live ? drupe_unit_round(length) : length);
    return true;
}

static void bins_put(drupe_memory_bin *bins, size_t first, size_t last, uint64_t used, uint32_t cell)
{
    for (size_t i = first; i <= last; i++)
        if (used >= bins[i].used) bins[i] = (drupe_memory_bin){used, cell};
}

uint64_t drupe_memory_bins(const drupe_view_device *device, uint64_t from, uint64_t to, size_t columns,
                           drupe_memory_bin *bins)
{
    uint64_t most = 0;
    double scale = (double)columns / (double)(to - from);
    for (size_t i = 0; i < columns; i++) bins[i] = (drupe_memory_bin){0, 0};
    for (size_t i = 0; i < device->nsamples; i++) {
        const drupe_view_sample *sample = &device->samples[i];
        uint64_t used = drupe_sample_used(sample), start = sample->ns < from ? from : sample->ns;
        bool is_last = i + 1 == device->nsamples;
        uint64_t end =
            is_last ? start + (device->samples[i].ns - device->samples[0].ns) / 50 + 1 : sample[1].ns;
        if (start >= to || end < from) continue;
        size_t first = (size_t)((double)(start - from) * scale),
               last = (size_t)((double)(end - from) * scale);
        if (first >= columns) first = columns - 1;
        /* What ends at a column's edge does not reach into the next. */
        if (last > first && (double)last >= (double)(end - from) * scale) last--;
        bins_put(bins, first, last < columns ? last : columns - 1, used, sample->cell);
        if (used > most) most = used;
    }
    return most;
}

uint64_t drupe_memory_axis(const drupe_view_device *device, uint64_t most)
{
    uint64_t least = most + most / 4, top = 1, share = drupe_memory_limit(device) / AXIS_SHARE;
    if (least < share) least = share;
    while (top < least && top < UINT64_MAX / 2) top *= 2;
    return top;
}

void drupe_memory_use(const drupe_view_device *device, drupe_text *text)
{
    uint64_t limit = drupe_memory_limit(device);
    drupe_text_printf(text, "%s", drupe_unit_bytes(device->use.used).text);
    if (limit > 0)
        drupe_text_printf(text, " of %s (%s)", drupe_unit_bytes(limit).text,
                          drupe_unit_share((double)device->use.used, (double)limit).text);
    else
        drupe_text_printf(text, " in use");
}

void drupe_memory_pool(const drupe_view_device *device, drupe_text *text)
{
    const drupe_device_use *use = &device->use;
    uint64_t busy = use->used + use->flying, reserve = use->reserved > busy ? use->reserved - busy : 0;
    drupe_text_printf(text, "peak %s", drupe_unit_bytes(device->peak).text);
    if (use->flying) drupe_text_printf(text, " \u00b7 %s in flight", drupe_unit_bytes(use->flying).text);
    drupe_text_printf(text, " \u00b7 %s in reserve", drupe_unit_bytes(reserve).text);
    /* There is not room for all. */
    if (use->flying) return;
    drupe_text_printf(text, " \u00b7 %s allocation%s", drupe_unit_count(device->allocations).text,
                      device->allocations == 1 ? "" : "s");
}
