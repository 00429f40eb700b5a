/* A view in the Trace Event format, which ui.perfetto.dev and chrome://tracing open: a process per device, a
 * thread per lane, a complete event per span, counters for memory. Times are microseconds with three digits
 * behind the point, so nothing is lost.
 *
 * Viewers take spans of a thread that overlap for calls inside of each other, so those of a lane, which may
 * run at the same time on a queue without order, are spread over as many threads as it takes.
 *
 * A slice whose args say "exact": false is an interval: the work ran some time in it. Its name says so, since
 * viewers draw all slices alike. */
#include "view/frame.h"
#include "view/view_room.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCATION_SIZE 96

static void begin(drupe_text *text, const char *what, size_t pid, size_t tid)
{
    drupe_text_printf(text, "%s{\"ph\":\"%s\",\"pid\":%zu,\"tid\":%zu",
                      text->data[text->length - 1] == '[' ? "" : ",\n", what, pid, tid);
}

static void put_time(drupe_text *text, const char *name, uint64_t ns)
{
    drupe_text_printf(text, ",\"%s\":%" PRIu64 ".%03" PRIu64, name, ns / 1000, ns % 1000);
}

static void put_name(drupe_text *text, const char *kind, size_t pid, size_t tid, const char *name)
{
    begin(text, "M", pid, tid);
    drupe_text_printf(text, ",\"name\":\"%s\",\"args\":{\"name\":", kind);
    drupe_json_string(text, name);
    drupe_text_append(text, "}}", 2);
}

/* Parts of a device belong to its process; from 1. */
static size_t process_of(const drupe_view *view, const char *filter)
{
    size_t length = strcspn(filter, ".{ ");
    for (size_t i = 0; i < view->ndevices; i++) {
        const char *own = view->devices[i].use.filter;
        if (strlen(own) == length && memcmp(own, filter, length) == 0) return i + 1;
    }
    return view->ndevices + 1;
}

static size_t thread_of(const drupe_view *view, size_t lane, size_t track)
{
    return track * view->nlanes + lane + 1;
}

static void put_thread(drupe_text *text, const drupe_view *view, size_t number, size_t track)
{
    static const char *const kinds[DRUPE_VIEW_CLASS_COUNT] = {"kernels", "copies", "host functions"};
    const drupe_view_lane *lane = &view->lanes[number];
    size_t pid = process_of(view, lane->device), tid = thread_of(view, number, track);
    char name[96], beside[24] = "";
    if (track > 0) snprintf(beside, sizeof beside, " (%zu)", track + 1);
    snprintf(name, sizeof name, "queue %" PRIu32 " %s on %s%s", lane->queue, kinds[lane->kind], lane->device,
             beside);
    put_name(text, "thread_name", pid, tid, name);
    begin(text, "M", pid, tid);
    drupe_text_printf(text, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%zu}}",
                      number * (view->nspans + 1) + track + 1);
}

static void put_processes(drupe_text *text, const drupe_view *view)
{
    for (size_t i = 0; i < view->ndevices; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s (%s)", view->devices[i].use.filter, view->devices[i].use.name);
        put_name(text, "process_name", i + 1, 0, name);
    }
    for (size_t i = 0; i < view->nlanes; i++) put_thread(text, view, i, 0);
}

static void put_span(drupe_text *text, const drupe_view *view, const drupe_view_span *span, size_t track)
{
    static const char *const categories[DRUPE_VIEW_CLASS_COUNT] = {"kernel", "copy", "host"};
    const drupe_view_lane *lane = &view->lanes[span->lane];
    static const char *const before[DRUPE_VIEW_STATE_COUNT] = {" (some time in here)", "", " (waiting)",
                                                               " (submitted)"};
    static const char *const states[DRUPE_VIEW_STATE_COUNT] = {"", "running", "waiting", "submitted"};
    bool ran = drupe_frame_span_ran(span);
    char location[LOCATION_SIZE] = "", name[96];
    if (span->site) drupe_trace_place(span->site, span->cell, location, sizeof location);
    begin(text, "X", process_of(view, lane->device), thread_of(view, span->lane, track));
    drupe_text_printf(text, ",\"cat\":\"%s\",\"name\":", categories[lane->kind]);
    snprintf(name, sizeof name, "%s%s", span->label, ran ? "" : before[span->state]);
    drupe_json_string(text, name);
    put_time(text, "ts", span->start_ns);
    put_time(text, "dur", drupe_frame_span_end(view, span) - span->start_ns);
    drupe_text_printf(
        text,
        ",\"args\":{\"id\":%" PRIu64 ",\"cell\":%" PRIu32 ",\"submissions\":%" PRIu64 ",\"bytes\":%" PRIu64
        ",\"items\":%" PRIu64 ",\"status\":\"%s\",\"exact\":%s,\"place\":",
        span->id, span->cell, span->count, span->bytes, span->items,
        span->state != DRUPE_VIEW_OVER ? states[span->state]
                                       : drupe_trace_status_name((drupe_trace_status)span->status),
        ran ? "true" : "false");
    drupe_json_string(text, location);
    drupe_text_append(text, "}}", 2);
}

/* Each on the first track of its lane that is free again. */
static void put_spans(drupe_text *text, const drupe_view *view)
{
    uint64_t *ends = malloc((view->nspans + 1) * sizeof *ends);
    size_t tracks = 0;
    if (!ends) text->failed = true;
    for (size_t i = 0; ends && i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        size_t track = 0;
        if (i == 0 || span->lane != span[-1].lane) tracks = 0;
        while (track < tracks && ends[track] > span->start_ns) track++;
        if (track == tracks && tracks++ > 0) put_thread(text, view, span->lane, track);
        ends[track] = drupe_frame_span_end(view, span);
        put_span(text, view, span, track);
    }
    free(ends);
}

static void put_counters(drupe_text *text, const drupe_view *view)
{
    for (size_t i = 0; i < view->ndevices; i++) {
        const drupe_view_device *device = &view->devices[i];
        for (size_t k = 0; k < device->nsamples; k++) {
            const drupe_view_sample *sample = &device->samples[k];
            begin(text, "C", i + 1, 0);
            drupe_text_append(text, ",\"name\":\"memory\"", 16);
            put_time(text, "ts", sample->ns);
            drupe_text_printf(
                text, ",\"args\":{\"device\":%" PRIu64 ",\"shared\":%" PRIu64 ",\"host\":%" PRIu64 "}}",
                sample->used[DRUPE_MEM_DEVICE], sample->used[DRUPE_MEM_SHARED], sample->used[DRUPE_MEM_HOST]);
        }
    }
}

drupe_status drupe_frame_chrome(const drupe_view *view, char **json, size_t *size)
{
    drupe_text text = {0};
    drupe_text_printf(&text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    if (!text.failed) {
        put_processes(&text, view);
        put_spans(&text, view);
        put_counters(&text, view);
    }
    drupe_text_append(&text, "]}", 2);
    drupe_status status = drupe_text_check(&text);
    *size = text.length;
    *json = status == DRUPE_OK ? drupe_text_take(&text) : NULL;
    drupe_text_clear(&text);
    return status;
}
