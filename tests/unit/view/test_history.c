/* The recorder's memory, filled with records that were made up: no device, no ring, no thread. */
#include "backends/services.h"
#include "view_records.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- When ----------------------------------------------------------------------------------------------- */

static void times_that_are_known(void **state)
{
    drupe_history *history = *state;
    add(history, (made){.id = 1, .submitted = 100, .seen = 500, .cell = 2, .started = 120, .ended = 400});
    add(history, (made){.id = 2,
                        .submitted = 200,
                        .seen = 900,
                        .cell = 2,
                        .kind = DRUPE_WORK_COPY,
                        .started = 410,
                        .ended = 700});
    add(history, (made){.id = 3, .submitted = 1000, .seen = 1200, .cell = 2, .started = 990, .ended = 1300});
    drupe_view *view = view_of(history, all, 2000);
    assert_int_equal(view->nspans, 3);
    expect_span(&view->spans[0], 120, 400);
    expect_span(&view->spans[1], 1000,
                1200); /* not before it was submitted, nor after it was seen to be over */
    expect_span(&view->spans[2], 410, 700); /* behind the first, on the lane of the copies */
    for (size_t i = 0; i < 3; i++) assert_true(view->spans[i].exact);
    assert_int_equal(view->nlanes, 2);
    assert_int_equal(view->lanes[1].kind, DRUPE_VIEW_COPIES);
    const drupe_view_cell *cell = cell_of(view, 2);
    assert_int_equal(cell->busy_ns, 280 + 290 + 200);
    assert_int_equal(cell->maybe_ns, 0);
    assert_int_equal(cell->class_ns[DRUPE_VIEW_KERNELS], 480);
    assert_int_equal(cell->class_ns[DRUPE_VIEW_COPIES], 290);
    assert_int_equal(cell->count[DRUPE_VIEW_KERNELS], 2);
    assert_int_equal(cell->untimed[DRUPE_VIEW_KERNELS], 0);
    assert_int_equal(cell->bytes[DRUPE_VIEW_COPIES], 10);
    assert_int_equal(cell->first_ns, T0 + 120);
    assert_int_equal(cell->last_ns, T0 + 1200);
    assert_int_equal(view->from_ns, T0 + 120);
    assert_int_equal(view->to_ns, T0 + 1200);
    drupe_view_release(view);
}

static void what_stands_behind_proves(void **state)
{
    drupe_history *history = *state;
    add(history, (made){.id = 1, .submitted = 1});
    add(history, (made){.id = 2, .submitted = 2, .seen = 90, .status = DRUPE_TRACE_PASSED});
    add(history, (made){.id = 3, .submitted = 3, .seen = 61});
    add(history, (made){.id = 4, .submitted = 4});
    drupe_view *early = view_of(history, all, 100);
    assert_int_equal(early->lanes[0].waiting, 4); /* the first may have times of its own */
    drupe_view_release(early);
    drupe_view *view = view_of(history, all, 100);
    assert_int_equal(view->nspans, 4);
    for (uint64_t i = 0; i < 3; i++) expect_span(&view->spans[i], 1 + i, 61);
    expect_span(&view->spans[3], 4, 0);
    assert_int_equal(view->spans[3].state, DRUPE_VIEW_SUBMITTED);
    assert_int_equal(view->spans[3].busy_ns, 0);
    assert_int_equal(view->lanes[0].waiting, 1);
    assert_int_equal(cell_of(view, 0)->waiting, 1);
    assert_int_equal(cell_of(view, 0)->open[DRUPE_VIEW_SUBMITTED], 1);
    drupe_view_release(view);
}

static void a_failure_proves_nothing(void **state)
{
    drupe_history *history = *state;
    add(history, (made){.id = 1, .submitted = 1});
    add(history, (made){.id = 2, .submitted = 2, .seen = 50, .status = DRUPE_TRACE_FAILED});
    add(history, (made){.id = 3, .submitted = 3, .seen = 60, .status = DRUPE_TRACE_SKIPPED});
    drupe_view *view = view_of(history, all, 100);
    assert_int_equal(view->lanes[0].waiting, 1);
    const drupe_view_cell *cell = cell_of(view, 0);
    assert_int_equal(cell->failed, 1);
    assert_int_equal(cell->skipped, 1);
    for (size_t i = 0; i < view->nspans; i++)
        if (view->spans[i].status == DRUPE_TRACE_SKIPPED) assert_int_equal(view->spans[i].busy_ns, 0);
    drupe_view_release(view);
}

static void queues_without_order(void **state)
{
    drupe_history *history = *state;
    add(history, (made){.id = 1, .submitted = 10, .unordered = true});
    add(history, (made){.id = 2, .submitted = 20, .seen = 60, .unordered = true});
    add(history, (made){.id = 3, .submitted = 30, .seen = 90, .unordered = true});
    drupe_view *view = view_of(history, all, 100);
    assert_int_equal(view->nspans, 3);
    expect_span(&view->spans[0], 10, 0);
    expect_span(&view->spans[1], 20, 60);
    expect_span(&view->spans[2], 30, 90); /* beside the other, not behind it */
    assert_int_equal(cell_of(view, 0)->maybe_ns, 70);
    drupe_view_release(view);
}

static void exact_times(void **state)
{
    drupe_history *history = *state;
    /* Of a clock that is far away and a bit too fast. */
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t at = i * 1000000, waited = i % 7 == 0 ? 500 : 90000;
        add(history, (made){.id = i + 1,
                            .submitted = at + 1,
                            .seen = at + 900000,
                            .started = 77 + at + waited + i * 10,
                            .ended = 77 + at + waited + 200000 + i * 10,
                            .device = "opencl:gpu:0"});
    }
    drupe_view *view = view_of(history, all, 2000000000);
    assert_int_equal(view->nspans, 1000);
    for (uint64_t i = 20; i < 1000; i++) {
        const drupe_view_span *span = &view->spans[i];
        assert_true(span->exact);
        assert_int_equal(span->busy_ns, 200000);
        uint64_t true_start = T0 + i * 1000000 + (i % 7 == 0 ? 500 : 90000);
        int64_t off = (int64_t)(span->start_ns - true_start);
        if (off < -2000 || off > 2000)
            fail_msg("span %llu is off by %lld", (unsigned long long)i, (long long)off);
    }
    drupe_view_release(view);
}

/* --- How much ------------------------------------------------------------------------------------------- */

static uint64_t counted(const drupe_view *view)
{
    uint64_t count = 0;
    for (size_t i = 0; i < view->nspans; i++) count += view->spans[i].count;
    return count;
}

static void a_million(void **state)
{
    drupe_history *history = *state;
    const uint64_t most = 1000000;
    for (uint64_t i = 0; i < most; i++) {
        made m = {.id = i + 1, .submitted = i * 1000, .seen = i * 1000 + 600, .queue = 1 + i % 3, .cell = 7};
        m.kind = i % 5 ? DRUPE_WORK_KERNEL : DRUPE_WORK_COPY;
        m.label = i == 777777 ? "long" : "short";
        if (i == 777777) m.seen += 300;
        m.started = m.submitted;
        m.ended = m.seen;
        add(history, m);
        if (i % 1024 == 0) drupe_history_settle(history);
    }
    drupe_view *view = view_of(history, all, most * 1000);
    const drupe_view_cell *cell = cell_of(view, 7);
    assert_int_equal(cell->count[0] + cell->count[1], most);
    assert_int_equal(cell->missed, 0);
    assert_int_equal(cell->busy_ns, most * 600 + 300);
    assert_true(view->nspans <= DRUPE_VIEW_SPANS && view->nspans > DRUPE_VIEW_SPANS / 8);
    assert_int_equal(counted(view), most);
    uint64_t busy = 0;
    bool found = false;
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        busy += span->busy_ns;
        assert_true(span->start_ns <= span->end_ns && span->busy_ns <= span->end_ns - span->start_ns);
        found = found || strcmp(span->label, "long") == 0;
        bool follows =
            i == 0 || view->spans[i - 1].lane != span->lane || view->spans[i - 1].end_ns <= span->start_ns;
        assert_true(follows);
    }
    assert_int_equal(busy, most * 600 + 300);
    assert_true(found); /* the longest gives its name */
    drupe_view_release(view);
    view = view_of(history, (drupe_view_wish){.spans = 100}, most * 1000);
    assert_true(view->nspans <= 100 && view->nspans > 20);
    assert_int_equal(counted(view), most);
    drupe_view_release(view);
}

static void only_what_changed(void **state)
{
    drupe_history *history = *state;
    add(history, (made){.id = 1, .submitted = 1, .seen = 2, .cell = 1});
    drupe_view *first = view_of(history, all, 10);
    assert_true(first->whole);
    uint64_t serial = first->serial;
    drupe_view_release(first);
    drupe_view *none = NULL;
    assert_int_equal(drupe_view_make(history, &(drupe_view_wish){.after = serial}, T0 + 10, &none), DRUPE_OK);
    assert_int_equal(none->nspans, 0);
    assert_int_equal(none->serial, serial);
    assert_false(none->whole);
    drupe_view_release(none);
    add(history, (made){.id = 2, .submitted = 11, .seen = 12, .cell = 1});
    add(history, (made){.id = 3, .submitted = 12, .cell = 1});
    drupe_view *more = view_of(history, (drupe_view_wish){.after = serial}, 20);
    assert_int_equal(more->nspans, 2); /* what ended, and what goes on */
    assert_int_equal(more->spans[0].id, 2);
    assert_int_equal(more->spans[1].end_ns, 0);
    drupe_view_release(more);
    more = view_of(history, (drupe_view_wish){.after = serial + 1000}, 20);
    assert_true(more->whole); /* of a kernel that was here before */
    assert_int_equal(more->nspans, 3);
    drupe_view_release(more);
    drupe_spans_compact(history);
    more = view_of(history, (drupe_view_wish){.after = serial}, 20);
    assert_true(more->whole);
    assert_int_equal(more->nspans, 3);
    drupe_view_release(more);
}

static void wishes(void **state)
{
    drupe_history *history = *state;
    for (uint64_t id = 1; id <= 10; id++)
        add(history, (made){.id = id, .submitted = id * 10, .seen = id * 10 + 5, .cell = (uint32_t)id});
    drupe_view *view = view_of(history, (drupe_view_wish){.first_cell = 3, .last_cell = 5}, 200);
    assert_int_equal(view->nspans, 3);
    assert_int_equal(view->ncells, 3);
    drupe_view_release(view);
    view = view_of(history, (drupe_view_wish){.first_cell = 9}, 200);
    assert_int_equal(view->ncells, 2);
    drupe_view_release(view);
    view = view_of(history, (drupe_view_wish){.since_ns = T0 + 85}, 200);
    assert_int_equal(view->nspans, 2);
    drupe_view_release(view);
}

static void failures_stay_spans(void **state)
{
    drupe_history *history = *state;
    for (uint64_t i = 0; i < 100000; i++)
        add(history, (made){.id = i + 1,
                            .submitted = i * 10,
                            .seen = i * 10 + 8,
                            .cell = 1,
                            .status = i % 10000 == 5000 ? DRUPE_TRACE_FAILED : DRUPE_TRACE_COMPLETE}),
            i % 1024 ? (void)0 : drupe_history_settle(history);
    drupe_view *view = view_of(history, all, 1000000);
    size_t failed = 0;
    for (size_t i = 0; i < view->nspans; i++)
        if (view->spans[i].status == DRUPE_TRACE_FAILED) failed += (size_t)view->spans[i].count;
    assert_int_equal(failed, 10);
    assert_int_equal(cell_of(view, 1)->failed, 10);
    assert_int_equal(counted(view), 100000);
    drupe_view_release(view);
}

static void cells_are_forgotten(void **state)
{
    drupe_history *history = *state;
    drupe_account_began(history, 1, T0, 5);
    for (uint64_t id = 1; id <= 200; id++)
        add(history, (made){.id = id, .submitted = id, .seen = id + 1, .cell = (uint32_t)id});
    add(history, (made){.id = 201, .submitted = 300, .seen = 301, .cell = 2});
    drupe_view *view = view_of(history, all, 400);
    assert_int_equal(view->ncells, DRUPE_VIEW_CELLS);
    assert_int_equal(view->cells[0].number, 1); /* it runs */
    assert_int_equal(view->cells[view->ncells - 1].number, 200);
    drupe_view_release(view);
}

static void queues_by_the_thousand(void **state)
{
    drupe_history *history = *state;
    for (uint64_t id = 1; id <= 5000; id++) {
        add(history, (made){.id = id, .submitted = id * 10, .seen = id * 10 + 5, .queue = (uint32_t)id});
        drupe_history_settle(history);
    }
    drupe_view *view = view_of(history, all, 100000);
    assert_true(view->nlanes >= DRUPE_QUEUES_MOST / 2 && view->nlanes <= DRUPE_QUEUES_MOST);
    assert_int_equal(view->lanes[view->nlanes - 1].queue, 5000);
    assert_int_equal(view->nspans, view->nlanes);
    assert_int_equal(cell_of(view, 0)->count[0], 5000);
    drupe_view_release(view);
    /* None can be forgotten while it has work. */
    for (uint64_t id = 5001; id <= 6000; id++)
        add(history, (made){.id = id, .submitted = id * 10, .queue = (uint32_t)id});
    view = view_of(history, all, 100000);
    assert_int_equal(view->nlanes, DRUPE_QUEUES_MOST);
    assert_int_equal(cell_of(view, 0)->missed + cell_of(view, 0)->count[0], 6000);
    drupe_view_release(view);
}

/* As they are read from a full ring: many queues before anything is worked out. */
static void queues_that_are_over_are_not_in_the_way(void **state)
{
    drupe_history *history = *state;
    uint64_t id = 0;
    for (uint32_t queue = 1; queue <= 1000; queue++) {
        for (int i = 0; i < 3; i++) {
            made m = {.submitted = id * 10, .seen = id * 10 + 5, .queue = queue, .cell = 3};
            m.id = ++id;
            m.kind = i == 0 ? DRUPE_WORK_COPY : DRUPE_WORK_KERNEL;
            add(history, m);
        }
    }
    drupe_view *view = view_of(history, all, 100000);
    assert_int_equal(cell_of(view, 3)->missed, 0);
    assert_int_equal(cell_of(view, 3)->count[DRUPE_VIEW_KERNELS], 2000);
    assert_true(view->nlanes >= 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(view->lanes[view->nlanes - 2 + i].queue, 1000);
        assert_int_equal(view->lanes[view->nlanes - 2 + i].kind, i);
    }
    /* What comes next on a queue that is known changes nothing of the others. */
    uint64_t serial = view->serial;
    drupe_view_release(view);
    add(history, (made){.id = id + 1, .submitted = 90000, .seen = 90010, .queue = 1000, .cell = 3});
    view = view_of(history, (drupe_view_wish){.after = serial}, 100000);
    assert_false(view->whole);
    assert_int_equal(view->nspans, 1);
    drupe_view_release(view);
}

/* Records that were overwritten while their work went on: only the queue knows. */
static void records_that_are_gone(void **state)
{
    drupe_history *history = *state;
    uint32_t stale[DRUPE_QUEUES_MOST];
    for (uint64_t id = 1; id <= 4; id++)
        add(history, (made){.id = id, .submitted = id, .queue = 5, .cell = 1, .kind = DRUPE_WORK_COPY});
    assert_int_equal(drupe_history_stale_queues(history, stale), 0);
    drupe_history_read(history, T0 + 100); /* there is no ring */
    assert_int_equal(drupe_history_stale_queues(history, stale), 1);
    assert_int_equal(stale[0], 5);
    drupe_history_resolve(history, 5, 3, 4, T0 + 200);
    assert_int_equal(history->npending, 2);
    drupe_history_resolve(history, 5, UINT64_MAX, 3,
                          T0 + 300); /* the last was not submitted when it was asked */
    assert_int_equal(history->npending, 1);
    drupe_history_resolve(history, 6, UINT64_MAX, 4, T0 + 400); /* the place is another queue's now */
    assert_int_equal(history->npending, 1);
    drupe_history_resolve(history, 5, UINT64_MAX, 4, T0 + 400);
    drupe_view *view = view_of(history, all, 500);
    assert_int_equal(view->nspans, 4);
    for (size_t i = 0; i < view->nspans; i++)
        assert_int_equal(view->spans[i].status, DRUPE_TRACE_UNKNOWN); /* it may have failed */
    assert_int_equal(cell_of(view, 1)->waiting, 0);
    assert_int_equal(cell_of(view, 1)->last_ns, T0 + 400);
    drupe_view_release(view);
}

static void records_that_never_come_are_missed(void **state)
{
    drupe_history *history = *state;
    history->holes[0] = (drupe_hole){7, T0};
    history->nholes = 1;
    drupe_history_read(history, T0 + 1000);
    assert_int_equal(history->nholes, 1);
    drupe_history_read(history, T0 + UINT64_C(60000000000));
    assert_int_equal(history->nholes, 0);
    drupe_view *view = view_of(history, all, 500);
    assert_int_equal(cell_of(view, 0)->missed, 1);
    drupe_view_release(view);
}

static void so_many_spans_and_no_more(void **state)
{
    drupe_history *history = *state;
    for (uint64_t id = 1; id <= 1000; id++)
        add(history, (made){.id = id, .submitted = id * 1000, .seen = id * 1000 + 5, .cell = 1});
    add(history, (made){.id = 1001, .submitted = 1001000, .cell = 1});
    drupe_ticks_start();
    drupe_core_began(1001);
    add(history, (made){.id = 1002, .submitted = 1002000, .cell = 2});
    drupe_view *view = view_of(history, (drupe_view_wish){.spans = 100}, 2000000);
    assert_uint_in_range(view->nspans, 40, 100);
    assert_int_equal(counted(view), 1002);
    assert_int_equal(view->spans[view->nspans - 2].end_ns, 0);
    assert_int_equal(cell_of(view, 1)->last_ns, T0 + 2000000); /* what runs counts */
    assert_int_equal(cell_of(view, 2)->last_ns, 0);
    drupe_view_release(view);
}

static void barriers_are_no_work(void **state)
{
    drupe_history *history = *state;
    add(history, (made){.id = 1, .submitted = 1, .kind = DRUPE_WORK_KERNEL});
    add(history, (made){.id = 2, .submitted = 2, .seen = 50, .kind = DRUPE_WORK_BARRIER});
    drupe_history_settle(history);
    drupe_view *view = view_of(history, all, 100);
    assert_int_equal(view->nspans, 1);
    expect_span(&view->spans[0], 1, 50);
    assert_int_equal(view->lanes[0].waiting, 0);
    drupe_view_release(view);
}

/* --- Unions --------------------------------------------------------------------------------------------- */

#define LINE 4000

static void unions(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 300; round++) {
        drupe_union all_of = {0};
        drupe_interval left;
        static unsigned char line[LINE];
        memset(line, 0, sizeof line);
        uint64_t settled = 0, want = 0;
        for (int i = 0; i < 150; i++) {
            uint64_t from = (uint64_t)i * 20 + (uint64_t)(rand() % 60), to = from + (uint64_t)(rand() % 30);
            if (drupe_union_add(&all_of, from, to, &left)) settled += left.to - left.from;
            memset(line + from, 1, (size_t)(to - from));
        }
        for (size_t i = 0; i < LINE; i++) want += line[i];
        assert_int_equal(drupe_union_sum(&all_of), want);
        assert_int_equal(settled, all_of.settled_ns);
        const drupe_interval *list = &all_of.list[all_of.first];
        assert_true(all_of.first + all_of.count <= DRUPE_COUNT_OF(all_of.list));
        for (uint32_t i = 1; i < all_of.count; i++) assert_true(list[i - 1].to < list[i].from);
    }
}

static void load(void **state)
{
    (void)state;
    drupe_load one = {.all = {0}};
    uint64_t now = 100 * DRUPE_LOAD_NS;
    assert_true(drupe_load_share(&one, now) == 0);
    for (uint64_t at = now - 2 * DRUPE_LOAD_NS; at < now; at += 1000) drupe_load_add(&one, at, at + 500);
    double share = drupe_load_share(&one, now);
    assert_true(share > 0.45 && share < 0.55);
    assert_true(drupe_load_share(&one, now + 3 * DRUPE_LOAD_NS) == 0);
    drupe_load_add(&one, now, now + 5 * DRUPE_LOAD_NS);
    assert_true(drupe_load_share(&one, now + 5 * DRUPE_LOAD_NS) == 1.0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(times_that_are_known),
        CASE(what_stands_behind_proves),
        CASE(a_failure_proves_nothing),
        CASE(queues_without_order),
        CASE(exact_times),
        CASE(a_million),
        CASE(only_what_changed),
        CASE(wishes),
        CASE(failures_stay_spans),
        CASE(cells_are_forgotten),
        CASE(queues_by_the_thousand),
        CASE(queues_that_are_over_are_not_in_the_way),
        CASE(records_that_are_gone),
        CASE(records_that_never_come_are_missed),
        CASE(so_many_spans_and_no_more),
        CASE(barriers_are_no_work),
        cmocka_unit_test(unions),
        cmocka_unit_test(load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
