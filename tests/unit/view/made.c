/* Views that were made up. */
#include "made.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_NS UINT64_C(5000000000)
#define MS       UINT64_C(1000000)

static made_view *made_new(size_t spans)
{
    made_view *made = calloc(1, sizeof *made);
    if (made == NULL) abort();
    made->spans = calloc(spans + 1, sizeof *made->spans);
    if (made->spans == NULL) abort();
    made->view = (drupe_view){.devices = made->devices,
                              .lanes = made->lanes,
                              .spans = made->spans,
                              .cells = made->cells,
                              .from_ns = BEGIN_NS,
                              .to_ns = BEGIN_NS + 1820 * MS,
                              .now_ns = BEGIN_NS + 1820 * MS,
                              .unix_ns = UINT64_C(1700000000000000000)};
    return made;
}

void made_free(made_view *made)
{
    free(made->spans);
    free(made);
}

static void lane_set(made_view *made, const char *device, uint32_t queue, drupe_view_class kind)
{
    drupe_view_lane *lane = &made->lanes[made->view.nlanes++];
    snprintf(lane->device, sizeof lane->device, "%s", device);
    lane->queue = queue;
    lane->kind = kind;
}

static drupe_view_span *span_set(made_view *made, uint32_t lane, uint32_t cell, const char *label,
                                 uint64_t start_us, uint64_t length_us)
{
    drupe_view_span *span = &made->spans[made->view.nspans++];
    *span = (drupe_view_span){.start_ns = BEGIN_NS + start_us * 1000,
                              .end_ns = BEGIN_NS + (start_us + length_us) * 1000,
                              .busy_ns = length_us * 1000,
                              .count = 1,
                              .lane = lane,
                              .cell = cell,
                              .exact = true,
                              .status = DRUPE_TRACE_COMPLETE};
    snprintf(span->label, sizeof span->label, "%s", label);
    return span;
}

static void plain_spans(made_view *made)
{
    static const char *const labels[] = {"vadd", "matmul_tiled_16", "reduce_sum"};
    for (uint32_t i = 0; i < 34; i++) {
        drupe_view_span *span = span_set(made, 0, 3 + i / 12, labels[i % 3], 100000 + i * 48000,
                                         i % 3 == 1 ? 41000 : 12000 + 500 * i);
        span->items = 1 << 20;
    }
    for (uint32_t i = 0; i < 4; i++) {
        drupe_view_span *span = span_set(made, 1, i < 2 ? 3 : 5, i % 2 ? "copy to host" : "copy to device",
                                         20000 + i * 560000, 24000);
        span->bytes = 128u << 20;
    }
}

static void plain_device(made_view *made)
{
    drupe_view_device *device = &made->devices[made->view.ndevices++];
    snprintf(device->use.filter, sizeof device->use.filter, "opencl:gpu:0");
    snprintf(device->use.name, sizeof device->use.name, "Radiant 9000 \"Pro\"");
    device->use.backend = "opencl";
    device->use.used = UINT64_C(1300) << 20;
    device->use.reserved = UINT64_C(1800) << 20;
    device->use.total = UINT64_C(16) << 30;
    device->limit = UINT64_C(15) << 30;
    device->used[0] = UINT64_C(1000) << 20;
    device->used[1] = UINT64_C(200) << 20;
    device->used[2] = UINT64_C(100) << 20;
    device->peak = UINT64_C(3200) << 20;
    device->allocations = 12;
    device->busy = 0.61;
    device->samples = made->samples[0];
    for (uint32_t i = 0; i < 60; i++) {
        drupe_view_sample *sample = &made->samples[0][device->nsamples++];
        sample->ns = BEGIN_NS + i * 30 * MS;
        sample->used[0] = (UINT64_C(200) + (i < 40 ? i * 70 : 900)) << 20;
        sample->used[1] = UINT64_C(200) << 20;
        sample->reserved = UINT64_C(1800) << 20;
        sample->cell = 3 + i / 20;
    }
}

made_view *made_plain(void)
{
    made_view *made = made_new(64);
    lane_set(made, "opencl:gpu:0", 1, DRUPE_VIEW_KERNELS);
    lane_set(made, "opencl:gpu:0", 1, DRUPE_VIEW_COPIES);
    plain_spans(made);
    plain_device(made);
    for (uint32_t i = 0; i < 3; i++) {
        drupe_view_cell *cell = &made->cells[made->view.ncells++];
        cell->number = 3 + i;
        cell->began_ns = BEGIN_NS + i * 600 * MS;
        cell->ended_ns = cell->began_ns + 590 * MS;
        cell->busy_ns = 370 * MS;
    }
    for (size_t i = 0; i < made->view.nspans; i++) {
        const drupe_view_span *span = &made->spans[i];
        drupe_view_cell *cell = &made->cells[span->cell - 3];
        int kind = made->lanes[span->lane].kind;
        cell->count[kind]++;
        cell->bytes[kind] += span->bytes;
        cell->class_ns[kind] += span->busy_ns;
        cell->memory_before = UINT64_C(200) << 20;
        cell->memory_after = UINT64_C(1300) << 20;
        cell->memory_peak = UINT64_C(3200) << 20;
    }
    return made;
}

/* --- Random ----------------------------------------------------------------------------------------------
 */

static uint32_t next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    return *seed ^= *seed << 5;
}

static uint64_t any(uint32_t *seed)
{
    uint64_t value = (uint64_t)next(seed) << 32 | next(seed);
    return value >> next(seed) % 64;
}

static void any_text(uint32_t *seed, char *text, size_t size)
{
    static const char *const odd[] = {"<script>alert(1)</script>",
                                      "\" onmouseover=\"x",
                                      "a&b'c",
                                      "\u00e9\u6f22\u5b57",
                                      "\x1b[31m",
                                      "\u202e",
                                      "\xff\xc3",
                                      "javascript:"};
    size_t used = 0;
    for (uint32_t parts = next(seed) % 5; parts > 0 && used + 1 < size; parts--)
        if (next(seed) % 2)
            used += (size_t)snprintf(text + used, size - used, "%s", odd[next(seed) % 8]);
        else
            for (uint32_t i = next(seed) % 9; i > 0 && used + 1 < size; i--)
                text[used++] = (char)(1 + next(seed) % 255);
    text[used < size ? used : size - 1] = '\0';
}

static void random_devices(made_view *made, uint32_t *seed)
{
    made->view.ndevices = next(seed) % 5;
    for (size_t i = 0; i < made->view.ndevices; i++) {
        drupe_view_device *device = &made->devices[i];
        any_text(seed, device->use.filter, sizeof device->use.filter);
        any_text(seed, device->use.name, sizeof device->use.name);
        device->use.backend = "opencl";
        device->use.used = any(seed);
        device->use.total = next(seed) % 2 ? any(seed) : 0;
        device->limit = next(seed) % 2 ? any(seed) : 0;
        device->peak = any(seed);
        device->busy = (double)(next(seed) % 101) / 100.0;
        device->maybe = (1.0 - device->busy) * (double)(next(seed) % 3) / 2.0;
        device->lost = next(seed) % 8 == 0;
        for (int kind = 0; kind < 3; kind++) device->used[kind] = any(seed) / 4;
        device->samples = made->samples[i];
        device->nsamples = next(seed) % DRUPE_VIEW_SAMPLES;
        uint64_t ns = BEGIN_NS;
        for (size_t j = 0; j < device->nsamples; j++) {
            ns += next(seed) % 3 ? next(seed) % 10000000 : 0;
            made->samples[i][j] =
                (drupe_view_sample){ns, {any(seed) / 4, any(seed) / 4, 0}, 0, next(seed) % 9};
        }
    }
}

static void random_cells(made_view *made, uint32_t *seed)
{
    made->view.ncells = next(seed) % 5;
    for (size_t i = 0; i < made->view.ncells; i++) {
        drupe_view_cell *cell = &made->cells[i];
        cell->number = (uint32_t)i + next(seed) % 2;
        cell->running = next(seed) % 2;
        cell->began_ns = next(seed) % 3 ? BEGIN_NS + any(seed) % (2000 * MS) : 0;
        cell->ended_ns = next(seed) % 3 ? cell->began_ns + any(seed) % (2000 * MS) : 0;
        cell->busy_ns = any(seed) / 2;
        cell->maybe_ns = next(seed) % 2 ? any(seed) / 2 : 0;
        for (int kind = 0; kind < 3; kind++) {
            cell->count[kind] = any(seed) / 8;
            cell->bytes[kind] = any(seed) / 8;
            cell->class_ns[kind] = any(seed) / 8;
            cell->untimed[kind] = next(seed) % 3;
        }
        for (int one = DRUPE_VIEW_RUNNING; one < DRUPE_VIEW_STATE_COUNT; one++)
            cell->open[one] = next(seed) % 3;
        cell->waiting = next(seed) % 3;
        cell->failed = next(seed) % 3;
        cell->missed = next(seed) % 2 ? any(seed) / 8 : 0;
        cell->memory_before = any(seed);
        cell->memory_after = any(seed);
        cell->memory_peak = any(seed);
    }
}

made_view *made_random(uint32_t seed, size_t lanes, size_t count)
{
    made_view *made = made_new(count);
    static const char *const devices[] = {"opencl:gpu:0", "opencl:gpu:1", "host:cpu:0", "<b>"};
    seed = seed * 2654435761u + 1;
    for (uint32_t i = 0; i < lanes && i < 64; i++)
        lane_set(made, devices[i * 4 / lanes], i / 3, (drupe_view_class)(i % 3));
    for (uint32_t lane = 0; lane < made->view.nlanes; lane++)
        for (size_t i = 0; i < count / lanes; i++) {
            drupe_view_span *span = span_set(made, lane, next(&seed) % 9, "", 0, 0);
            any_text(&seed, span->label, sizeof span->label);
            span->start_ns = BEGIN_NS + any(&seed) % (1820 * MS);
            span->end_ns = next(&seed) % 9 ? span->start_ns + any(&seed) % (100 * MS) : 0;
            span->count = next(&seed) % 3 ? 1 : any(&seed) % 1000 + 1;
            span->busy_ns = span->end_ns == 0 ? 0 : (span->end_ns - span->start_ns) / (1 + next(&seed) % 3);
            span->state = span->end_ns == 0 ? (uint8_t)(1 + next(&seed) % 3) : DRUPE_VIEW_OVER;
            span->bytes = any(&seed) / (count + 1);
            span->status = (uint8_t)(next(&seed) % DRUPE_TRACE_STATUS_COUNT);
            span->exact = next(&seed) % 2;
            if (!span->exact) span->busy_ns = 0;
        }
    random_devices(made, &seed);
    random_cells(made, &seed);
    return made;
}
