/* Records in the trace ring, written without any device, for tests of this room; include it first. */
#ifndef TRACE_RECORDS_H
#define TRACE_RECORDS_H

#include "core/trace/trace_room.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static drupe_trace_queue queue = {.number = 3};

static uint64_t begin(const char *label, const drupe_trace_work *work)
{
    const drupe_subject what = {
        .number = drupe_inflight_next(), .label = label, .site = 17, .cell_number = 4};
    drupe_trace_begin(&queue, &what, work);
    return what.number;
}

static int setup(void **state)
{
    (void)state;
    queue = (drupe_trace_queue){.number = 3, .device = drupe_trace_device("scripted:cpu:0")};
    return queue.device ? 0 : -1;
}

#endif
