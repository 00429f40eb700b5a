/* Records that were made up, put into a history: no device, no ring, no thread. */
#ifndef TESTS_UNIT_VIEW_RECORDS_H
#define TESTS_UNIT_VIEW_RECORDS_H

#include "view/history.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T0 UINT64_C(1000000000)

static inline int set_up(void **state)
{
    *state = drupe_history_new();
    return *state ? 0 : -1;
}

static inline int tear_down(void **state)
{
    drupe_history_free(*state);
    return 0;
}

typedef struct made {
    uint64_t id, submitted, seen;
    uint32_t queue, cell;
    drupe_work_kind kind;
    drupe_trace_status status;
    bool unordered;
    uint64_t started, ended; /* of the device's clock; on `host` from T0 */
    const char *label, *device;
    bool told;
} made;

static inline void add(drupe_history *history, made m)
{
    drupe_trace_record record = {.id = m.id,
                                 .submitted_ns = T0 + m.submitted,
                                 .seen_ns = m.seen ? T0 + m.seen : 0,
                                 .started_ns = m.started + (m.ended && !m.device ? T0 : 0),
                                 .ended_ns = m.ended + (m.ended && !m.device ? T0 : 0),
                                 .own_clock = m.ended && m.device,
                                 .told = m.told,
                                 .bytes = 10,
                                 .items = 2,
                                 .queue = m.queue ? m.queue : 1,
                                 .cell = m.cell,
                                 .kind = (uint8_t)m.kind,
                                 .status = (uint8_t)m.status,
                                 .ordered = !m.unordered};
    if (m.seen && !m.status) record.status = DRUPE_TRACE_COMPLETE;
    snprintf(record.label, sizeof record.label, "%s", m.label ? m.label : "work");
    snprintf(record.device, sizeof record.device, "%s", m.device ? m.device : "host:cpu:0");
    drupe_history_add(history, &record);
}

static inline drupe_view *view_of(drupe_history *history, drupe_view_wish wish, uint64_t now)
{
    drupe_view *view = NULL;
    drupe_history_settle(history);
    assert_int_equal(drupe_view_make(history, &wish, T0 + now, &view), DRUPE_OK);
    return view;
}

static const drupe_view_wish all;

static inline const drupe_view_cell *cell_of(const drupe_view *view, uint32_t number)
{
    for (size_t i = 0; i < view->ncells; i++)
        if (view->cells[i].number == number) return &view->cells[i];
    fail_msg("cell %u is missing", number);
    return NULL;
}

static inline void expect_span(const drupe_view_span *span, uint64_t start, uint64_t end)
{
    assert_int_equal(span->start_ns, T0 + start);
    assert_int_equal(span->end_ns, end ? T0 + end : 0);
}

#endif
