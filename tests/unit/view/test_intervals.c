/* What the history makes of times that nobody measured: intervals, which are never busy, and states. */
#include "backends/services.h"
#include "view_records.h"

/* Times that nobody measured: each lies somewhere between its submission and when it was seen to be over. */
static void times_that_are_not_known(void **state)
{
    drupe_history *history = *state;
    for (uint64_t id = 1; id <= 4; id++)
        add(history,
            (made){.id = id, .submitted = id, .seen = 4001, .status = DRUPE_TRACE_PASSED, .cell = 2});
    add(history, (made){.id = 5, .submitted = 4500, .seen = 5000, .status = DRUPE_TRACE_PASSED, .cell = 2});
    drupe_view *view = view_of(history, all, 6000);
    for (uint64_t i = 0; i < 4; i++) expect_span(&view->spans[i], 1 + i, 4001);
    expect_span(&view->spans[4], 4500, 5000);
    for (size_t i = 0; i < 5; i++) {
        assert_false(view->spans[i].exact);
        assert_int_equal(view->spans[i].busy_ns, 0);
    }
    const drupe_view_cell *cell = cell_of(view, 2);
    assert_int_equal(cell->busy_ns, 0);
    assert_int_equal(cell->maybe_ns, 4000 + 500);
    assert_int_equal(cell->class_ns[DRUPE_VIEW_KERNELS], 0);
    assert_int_equal(cell->untimed[DRUPE_VIEW_KERNELS], 5);
    assert_true(view->devices[0].busy == 0.0);
    assert_true(view->devices[0].maybe > 0.0);
    drupe_view_release(view);
}

/* What is known of others on an in-order queue narrows an interval; what is not does not. */
static void neighbours_narrow_an_interval(void **state)
{
    drupe_history *history = *state;
    add(history, (made){.id = 1, .submitted = 1, .seen = 60, .started = 10, .ended = 50});
    add(history, (made){.id = 2, .submitted = 2, .seen = 100});
    add(history, (made){.id = 3, .submitted = 3, .seen = 100});
    add(history, (made){.id = 4, .submitted = 4, .seen = 100, .started = 80, .ended = 90});
    drupe_view *view = view_of(history, all, 200);
    assert_int_equal(view->nspans, 4);
    expect_span(&view->spans[0], 10, 50);
    expect_span(&view->spans[1], 50, 80);
    expect_span(&view->spans[2], 50, 80); /* it may have begun when the one before it was over */
    expect_span(&view->spans[3], 80, 90);
    assert_true(view->spans[0].exact && view->spans[3].exact);
    assert_false(view->spans[1].exact || view->spans[2].exact);
    drupe_view_release(view);
}

/* What is known and what is not never share a span. */
static void known_and_unknown_stay_apart(void **state)
{
    drupe_history *history = *state;
    for (uint64_t id = 1; id <= 100; id++) {
        uint64_t at = id * 1000;
        made m = {.id = id, .submitted = at, .seen = at + 500, .cell = 1, .unordered = true};
        if (id % 10 == 0) m.started = at + 100, m.ended = at + 200;
        add(history, m);
    }
    drupe_view *view = view_of(history, (drupe_view_wish){.spans = 10}, 200000);
    uint64_t known = 0, busy = 0;
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        if (span->exact)
            known += span->count, busy += span->busy_ns;
        else
            assert_int_equal(span->busy_ns, 0);
    }
    assert_int_equal(known, 10);
    assert_int_equal(busy, 1000);
    assert_int_equal(cell_of(view, 1)->busy_ns, 1000);
    assert_int_equal(cell_of(view, 1)->untimed[DRUPE_VIEW_KERNELS], 90);
    drupe_view_release(view);
}

/* Functions of the host keep a CPU busy, and no GPU. */
static void functions_of_the_host(void **state)
{
    drupe_history *history = *state;
    const char *const devices[] = {NULL, "opencl:cpu:0", "opencl:gpu:0"};
    for (uint32_t i = 0; i < 3; i++) {
        made m = {.id = i + 1, .submitted = 1, .seen = 500, .started = 100, .ended = 300, .cell = i + 1};
        m.queue = i + 1;
        m.kind = DRUPE_WORK_HOST;
        m.device = devices[i];
        add(history, m);
    }
    drupe_view *view = view_of(history, all, 600);
    assert_int_equal(cell_of(view, 1)->busy_ns, 200);
    assert_int_equal(cell_of(view, 2)->busy_ns, 200);
    assert_int_equal(cell_of(view, 3)->busy_ns, 0);
    assert_int_equal(cell_of(view, 3)->class_ns[DRUPE_VIEW_HOST], 200);
    drupe_view_release(view);
}

/* Waiting, running and submitted are told apart, and nothing runs of which that is not known. */
static void what_goes_on(void **state)
{
    drupe_history *history = *state;
    drupe_ticks_start();
    for (uint64_t id = 9001; id <= 9006; id++)
        add(history, (made){.id = id, .submitted = id, .cell = id < 9004 ? 3 : 4, .told = true});
    for (uint64_t id = 9007; id <= 9009; id++)
        add(history, (made){.id = id, .submitted = id, .cell = 4, .queue = 2, .device = "opencl:gpu:0"});
    drupe_core_began(9001);
    uint64_t now = drupe_now_ns() + 1000000;
    drupe_view *view = view_of(history, all, now - T0);
    assert_int_equal(view->nspans,
                     4); /* what runs, the rest of its cell, the other cell's; the other device's */
    assert_int_equal(view->spans[2].state, DRUPE_VIEW_RUNNING); /* it began just now */
    assert_int_equal(view->spans[2].id, 9001);
    assert_true(view->spans[2].exact && view->spans[2].busy_ns >= 1000000 / 2);
    assert_int_equal(view->spans[0].state, DRUPE_VIEW_WAITING);
    assert_int_equal(view->spans[0].count, 2);
    assert_int_equal(view->spans[1].state, DRUPE_VIEW_WAITING);
    assert_int_equal(view->spans[1].count, 3);
    assert_int_equal(view->spans[1].busy_ns, 0);
    assert_int_equal(view->spans[3].state, DRUPE_VIEW_SUBMITTED);
    assert_int_equal(view->spans[3].count, 3);
    assert_int_equal(view->spans[3].busy_ns, 0);
    assert_int_equal(cell_of(view, 3)->busy_ns, view->spans[2].busy_ns);
    assert_int_equal(cell_of(view, 4)->busy_ns, 0);
    assert_int_equal(cell_of(view, 3)->open[DRUPE_VIEW_RUNNING], 1);
    assert_int_equal(cell_of(view, 3)->open[DRUPE_VIEW_WAITING], 2);
    assert_int_equal(cell_of(view, 4)->open[DRUPE_VIEW_SUBMITTED], 3);
    assert_int_equal(view->lanes[0].open[DRUPE_VIEW_WAITING], 5);
    drupe_view_release(view);
    /* What has just ended, and nobody has looked: it does not run on. */
    drupe_core_ran(9001);
    uint64_t began, over;
    assert_true(drupe_trace_ran(9001, &began, &over));
    view = view_of(history, all, drupe_now_ns() + 1000000000 - T0);
    for (size_t i = 0; i < view->nspans; i++)
        if (view->spans[i].id == 9001) /* each look reckons the time of a tick anew */
            assert_uint_in_range(view->spans[i].start_ns + view->spans[i].busy_ns, over - 1000, over + 1000);
    drupe_view_release(view);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(times_that_are_not_known),
        CASE(neighbours_narrow_an_interval),
        CASE(known_and_unknown_stay_apart),
        CASE(functions_of_the_host),
        CASE(what_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
