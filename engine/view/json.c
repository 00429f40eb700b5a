/* A view as the JSON of application/vnd.drupe.trace+json, version 1. Read by python/labextension.
 *
 * {"version": 1, "serial": of the view, to be sent back as `after`; "whole": see drupe_view,
 *  "now", "from", "to": ns of CLOCK_MONOTONIC; "unix": ms since 1970 at `now`; "latest": id,
 *  "devices": [{"filter", "name", "backend", "used": [device, shared, host], "in_flight", "reserved",
 * "total", "limit", "peak", "allocations", "busy", "maybe": 0 to 1, "waiting", "busyNs", "maybeNs",
 * "moved", "kernels": since the recorder began; "lost", "samples": [[ns, used
 * device, used shared, used host, reserved, cell], ...]}, ...], "lanes": [{"device": filter, "queue": number,
 * "kind": "kernels" | "copies" | "host", "waiting", "open": [0, running, waiting, submitted]}, ...],
 *  "labels": [text, ...], "places": ["cell [7], line 3", ...],
 *  "spans": [[lane, start, end (0: not over), busy, count, bytes, items, cell, label, status, exact, id,
 *             place (-1: none), state], ...],
 *                                         lane, label, place: indices; status: drupe_trace_status; state:
 *                                         drupe_view_state; exact 0: it lies between start and end
 *  "cells": [{"number", "running", "began", "ended", "first", "last", "busy", "maybe",
 *             "count": [kernels, copies, host], "bytes": [3], "classNs": [3], "untimed": [3], "waiting",
 *             "open": [4], "failed", "skipped", "cancelled", "missed", "memory": [before, after, peak],
 * "colour": "#rrggbb"}, ...], "colours": those of cells 1 to 36, which come again from 37 on}
 *
 * Indices of lanes, labels and places hold in this view only; a lane is known by its queue and kind. */
#include "view/view_room.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOCATION_SIZE 96

/* --- Values --------------------------------------------------------------------------------------------- */

static void put_number(drupe_text *text, uint64_t number)
{
    char digits[24];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    drupe_text_append(text, digits + at, sizeof digits - at);
}

static void put(drupe_text *text, const char *literal)
{
    drupe_text_append(text, literal, strlen(literal));
}

static void put_list(drupe_text *text, const char *name, const uint64_t *numbers, size_t count)
{
    put(text, name);
    for (size_t i = 0; i < count; i++) {
        put(text, i ? "," : "[");
        put_number(text, numbers[i]);
    }
    put(text, "]");
}

void drupe_json_put_number(drupe_text *text, const char *before, uint64_t number)
{
    put(text, before);
    put_number(text, number);
}

/* Labels are cut to fit, perhaps inside of a letter: what is no UTF-8 becomes a question mark. */
static void put_string(drupe_text *text, const char *utf8)
{
    put(text, "\"");
    const unsigned char *at = (const unsigned char *)utf8;
    while (*at) {
        size_t plain = 0;
        while (at[plain] >= 0x20 && at[plain] < 0x7f && at[plain] != '"' && at[plain] != '\\') plain++;
        drupe_text_append(text, (const char *)at, plain);
        at += plain;
        int size = *at >= 0x80 ? drupe_utf8_next((const char *)at, 4) : 0;
        if (size > 0)
            drupe_text_append(text, (const char *)at, (size_t)size);
        else if (*at == '"' || *at == '\\')
            drupe_text_printf(text, "\\%c", *at);
        else if (*at >= 0x80)
            put(text, "?");
        else if (*at)
            drupe_text_printf(text, "\\u%04x", *at);
        at += size > 0 ? size : *at != 0;
    }
    put(text, "\"");
}

void drupe_json_put_text(drupe_text *text, const char *before, const char *utf8)
{
    put(text, before);
    put_string(text, utf8);
}

drupe_status drupe_view_give(drupe_text *text, char **result, size_t *size)
{
    drupe_status status = drupe_text_check(text);
    *size = text->length;
    *result = status == DRUPE_OK ? drupe_text_take(text) : NULL;
    drupe_text_clear(text);
    return status;
}

/* --- Tables: texts by number ---------------------------------------------------------------------------- */

typedef struct table {
    drupe_map numbers; /* the number plus one as a pointer */
    drupe_text list;
    size_t count;
} table;

/* The number of the text that has this key, or -1. */
static long number_of(const table *texts, const void *key, size_t key_size)
{
    return (long)(uintptr_t)drupe_map_get(&texts->numbers, key, key_size) - 1;
}

/* Its number. */
static long add_text(table *texts, const void *key, size_t key_size, const char *text)
{
    if (drupe_map_put(&texts->numbers, key, key_size, (void *)(texts->count + 1), NULL) != DRUPE_OK) {
        texts->list.failed = true;
        return -1;
    }
    if (texts->count) put(&texts->list, ",");
    put_string(&texts->list, text);
    return (long)texts->count++;
}

static long label_of(table *labels, const char *label)
{
    long known = number_of(labels, label, strlen(label) + 1);
    return known >= 0 ? known : add_text(labels, label, strlen(label) + 1, label);
}

static long location_of(table *locations, const drupe_view_span *span)
{
    const uint32_t key[2] = {span->site, span->cell};
    char text[LOCATION_SIZE];
    if (!span->site) return -1;
    long known = number_of(locations, key, sizeof key);
    if (known >= 0) return known;
    drupe_trace_place(span->site, span->cell, text, sizeof text);
    return add_text(locations, key, sizeof key, text);
}

static void table_clear(table *texts)
{
    drupe_map_clear(&texts->numbers);
    drupe_text_clear(&texts->list);
}

/* --- Parts ---------------------------------------------------------------------------------------------- */

static void put_samples(drupe_text *text, const drupe_view_device *device)
{
    put(text, ",\"samples\":[");
    for (size_t i = 0; i < device->nsamples; i++) {
        const drupe_view_sample *s = &device->samples[i];
        const uint64_t numbers[] = {s->ns, s->used[0], s->used[1], s->used[2], s->reserved, s->cell};
        put_list(text, i ? "," : "", numbers, DRUPE_COUNT_OF(numbers));
    }
    put(text, "]");
}

static void put_devices(drupe_text *text, const drupe_view *view)
{
    put(text, ",\"devices\":[");
    for (size_t i = 0; i < view->ndevices; i++) {
        const drupe_view_device *device = &view->devices[i];
        unsigned thousandths = (unsigned)(device->busy * 1000 + 0.5);
        unsigned maybe = (unsigned)(device->maybe * 1000 + 0.5);
        drupe_json_put_text(text, i ? ",{\"filter\":" : "{\"filter\":", device->use.filter);
        drupe_json_put_text(text, ",\"name\":", device->use.name);
        drupe_json_put_text(text, ",\"backend\":", device->use.backend);
        put_list(text, ",\"used\":", device->used, 3);
        drupe_json_put_number(text, ",\"in_flight\":", device->use.flying);
        drupe_json_put_number(text, ",\"reserved\":", device->use.reserved);
        drupe_json_put_number(text, ",\"total\":", device->use.total);
        drupe_json_put_number(text, ",\"limit\":", device->limit);
        drupe_json_put_number(text, ",\"peak\":", device->peak);
        drupe_json_put_number(text, ",\"allocations\":", device->allocations);
        drupe_text_printf(text, ",\"busy\":%u.%03u", thousandths / 1000, thousandths % 1000);
        drupe_text_printf(text, ",\"maybe\":%u.%03u", maybe / 1000, maybe % 1000);
        drupe_json_put_number(text, ",\"waiting\":", device->waiting);
        drupe_json_put_number(text, ",\"busyNs\":", device->busy_ns);
        drupe_json_put_number(text, ",\"maybeNs\":", device->maybe_ns);
        drupe_json_put_number(text, ",\"moved\":", device->moved);
        drupe_json_put_number(text, ",\"kernels\":", device->kernels);
        put(text, device->lost ? ",\"lost\":true" : ",\"lost\":false");
        put_samples(text, device);
        put(text, "}");
    }
    put(text, "]");
}

static void put_lanes(drupe_text *text, const drupe_view *view)
{
    static const char *const kinds[DRUPE_VIEW_CLASS_COUNT] = {"kernels", "copies", "host"};
    put(text, ",\"lanes\":[");
    for (size_t i = 0; i < view->nlanes; i++) {
        const drupe_view_lane *lane = &view->lanes[i];
        drupe_json_put_text(text, i ? ",{\"device\":" : "{\"device\":", lane->device);
        drupe_json_put_number(text, ",\"queue\":", lane->queue);
        drupe_text_printf(text, ",\"kind\":\"%s\"", kinds[lane->kind]);
        const uint64_t open[] = {lane->open[0], lane->open[1], lane->open[2], lane->open[3]};
        drupe_json_put_number(text, ",\"waiting\":", lane->waiting);
        put_list(text, ",\"open\":", open, DRUPE_VIEW_STATE_COUNT);
        put(text, "}");
    }
    put(text, "]");
}

static void put_spans(drupe_text *text, const drupe_view *view)
{
    table labels = {.count = 0}, locations = {.count = 0};
    drupe_text spans = {0};
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *s = &view->spans[i];
        const uint64_t numbers[] = {s->lane,    s->start_ns, s->end_ns,
                                    s->busy_ns, s->count,    s->bytes,
                                    s->items,   s->cell,     (uint64_t)label_of(&labels, s->label),
                                    s->status,  s->exact,    s->id};
        long location = location_of(&locations, s);
        put(&spans, i ? ",[" : "[");
        for (size_t k = 0; k < DRUPE_COUNT_OF(numbers); k++) {
            put_number(&spans, numbers[k]);
            put(&spans, ",");
        }
        put(&spans, location < 0 ? "-1" : "");
        if (location >= 0) put_number(&spans, (uint64_t)location);
        drupe_text_printf(&spans, ",%u]", s->state);
    }
    text->failed = text->failed || labels.list.failed || locations.list.failed || spans.failed;
    put(text, ",\"labels\":[");
    put(text, drupe_text_get(&labels.list));
    put(text, "],\"places\":[");
    put(text, drupe_text_get(&locations.list));
    put(text, "],\"spans\":[");
    put(text, drupe_text_get(&spans));
    put(text, "]");
    table_clear(&labels);
    table_clear(&locations);
    drupe_text_clear(&spans);
}

static void put_cells(drupe_text *text, const drupe_view *view)
{
    put(text, ",\"cells\":[");
    for (size_t i = 0; i < view->ncells; i++) {
        const drupe_view_cell *cell = &view->cells[i];
        const uint64_t memory[] = {cell->memory_before, cell->memory_after, cell->memory_peak};
        drupe_json_put_number(text, i ? ",{\"number\":" : "{\"number\":", cell->number);
        put(text, cell->running ? ",\"running\":true" : ",\"running\":false");
        drupe_json_put_number(text, ",\"began\":", cell->began_ns);
        drupe_json_put_number(text, ",\"ended\":", cell->ended_ns);
        drupe_json_put_number(text, ",\"first\":", cell->first_ns);
        drupe_json_put_number(text, ",\"last\":", cell->last_ns);
        drupe_json_put_number(text, ",\"busy\":", cell->busy_ns);
        drupe_json_put_number(text, ",\"maybe\":", cell->maybe_ns);
        put_list(text, ",\"count\":", cell->count, DRUPE_VIEW_CLASS_COUNT);
        put_list(text, ",\"bytes\":", cell->bytes, DRUPE_VIEW_CLASS_COUNT);
        put_list(text, ",\"classNs\":", cell->class_ns, DRUPE_VIEW_CLASS_COUNT);
        put_list(text, ",\"untimed\":", cell->untimed, DRUPE_VIEW_CLASS_COUNT);
        drupe_json_put_number(text, ",\"waiting\":", cell->waiting);
        put_list(text, ",\"open\":", cell->open, DRUPE_VIEW_STATE_COUNT);
        drupe_json_put_number(text, ",\"failed\":", cell->failed);
        drupe_json_put_number(text, ",\"skipped\":", cell->skipped);
        drupe_json_put_number(text, ",\"cancelled\":", cell->cancelled);
        drupe_json_put_number(text, ",\"missed\":", cell->missed);
        put_list(text, ",\"memory\":", memory, DRUPE_COUNT_OF(memory));
        drupe_text_printf(text, ",\"colour\":\"#%06" PRIx32 "\"}", drupe_view_colour(cell->number));
    }
    put(text, "],\"colours\":[");
    for (uint32_t i = 1; i <= DRUPE_VIEW_COLOURS; i++)
        drupe_text_printf(text, "%s\"#%06" PRIx32 "\"", i > 1 ? "," : "", drupe_view_colour(i));
    put(text, "]");
}

drupe_status drupe_frame_json(const drupe_view *view, char **json, size_t *size)
{
    drupe_text text = {0};
    put(&text, view->whole ? "{\"version\":1,\"whole\":true" : "{\"version\":1,\"whole\":false");
    drupe_json_put_number(&text, ",\"serial\":", view->serial);
    drupe_json_put_number(&text, ",\"now\":", view->now_ns);
    drupe_json_put_number(&text, ",\"unix\":", view->unix_ns / 1000000);
    drupe_json_put_number(&text, ",\"from\":", view->from_ns);
    drupe_json_put_number(&text, ",\"to\":", view->to_ns);
    drupe_json_put_number(&text, ",\"latest\":", view->latest);
    put_devices(&text, view);
    put_lanes(&text, view);
    put_spans(&text, view);
    put_cells(&text, view);
    put(&text, "}");
    return drupe_view_give(&text, json, size);
}
