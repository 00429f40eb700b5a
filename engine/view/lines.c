/* Queues and devices of the history, in tables of fixed size. */
#include "view/history.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "host:cpu:0.1" is a part of "host:cpu:0", and so is "opencl:gpu:0{2}.0" of "opencl:gpu:0". */
static uint32_t device_of(drupe_history *history, const char *filter)
{
    for (uint32_t i = 0; i < history->nunits; i++)
        if (strcmp(history->units[i].filter, filter) == 0) return i;
    /* With too many, the last stands for all others. */
    if (history->nunits == DRUPE_DEVICES_MOST) return DRUPE_DEVICES_MOST - 1;
    drupe_history_unit *fresh = &history->units[history->nunits];
    snprintf(fresh->filter, sizeof fresh->filter, "%s", filter);
    snprintf(fresh->root, sizeof fresh->root, "%.*s", (int)strcspn(filter, ".{ "), filter);
    fresh->clock.same = strncmp(filter, "host:", 5) == 0;
    return (uint32_t)history->nunits++;
}

static int by_age(const void *left, const void *right)
{
    const drupe_line *a = *(drupe_line *const *)left, *b = *(drupe_line *const *)right;
    return (a->seen > b->seen) - (a->seen < b->seen);
}

/* Forget the older half of the queues that have nothing to do, with their spans. */
static void make_room(drupe_history *history)
{
    drupe_line *idle[DRUPE_QUEUES_MOST];
    bool gone[DRUPE_QUEUES_MOST] = {false};
    size_t count = 0;
    for (size_t i = 0; i < DRUPE_QUEUES_MOST; i++)
        if (history->lines[i].pending == 0) idle[count++] = &history->lines[i];
    qsort(idle, count, sizeof *idle, by_age);
    for (size_t i = 0; i < (count + 1) / 2; i++) gone[idle[i] - history->lines] = true;
    drupe_spans_forget(history, gone);
    for (size_t i = 0; i < (count + 1) / 2; i++) idle[i]->number = 0;
}

static drupe_line *find(drupe_history *history, uint32_t number)
{
    for (size_t i = 0; i < DRUPE_QUEUES_MOST; i++)
        if (history->lines[i].number == number) return &history->lines[i];
    return NULL;
}

drupe_line *drupe_line_of(drupe_history *history, const drupe_trace_record *record)
{
    if (history->line && history->line->number == record->queue) return history->line;
    drupe_line *line = find(history, record->queue);
    if (!line) {
        drupe_line *free_line = find(history, 0);
        if (!free_line) {
            make_room(history);
            free_line = find(history, 0);
        }
        if (!free_line) return NULL;
        memset(free_line, 0, sizeof *free_line);
        free_line->number = record->queue;
        free_line->device = device_of(history, record->device);
        free_line->ordered = record->ordered;
        line = free_line;
    }
    history->line = line;
    return line;
}
