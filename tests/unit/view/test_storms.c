/* Storms of made up work: what is over when it is read, and what is found to be over many at a time. */
#include "view/history.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T0     UINT64_C(1000000000)
#define QUEUES 3u

static uint32_t below(uint32_t *seed, uint32_t most)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % most;
}

/* Mostly work that is over before the next is submitted; some of it is not, failed, or has exact times. */
static drupe_trace_record *made_work(uint32_t seed, size_t count)
{
    drupe_trace_record *all = calloc(count + 1, sizeof *all);
    assert_non_null(all);
    uint64_t now = T0;
    uint32_t queue = 1;
    for (size_t i = 0; i < count; i++) {
        now += 500 + below(&seed, 1000);
        if (below(&seed, 50) == 0) queue = 1 + below(&seed, QUEUES);
        uint32_t odd = below(&seed, 100), late = below(&seed, 20) ? 0 : below(&seed, 5000);
        drupe_trace_record *one = &all[i];
        *one = (drupe_trace_record){.id = i + 1,
                                    .submitted_ns = now,
                                    .seen_ns = now + below(&seed, 300) + late,
                                    .bytes = below(&seed, 100),
                                    .items = 1,
                                    .queue = queue,
                                    .cell = 1 + (uint32_t)(i * 5 / count),
                                    .site = (uint32_t)i,
                                    .kind = (uint8_t)(below(&seed, 10)
                                                          ? DRUPE_WORK_KERNEL
                                                          : (odd % 3 ? DRUPE_WORK_COPY : DRUPE_WORK_BARRIER)),
                                    .status = below(&seed, 2) ? DRUPE_TRACE_COMPLETE : DRUPE_TRACE_PASSED,
                                    .ordered = queue != QUEUES};
        if (odd == 0) one->status = DRUPE_TRACE_FAILED;
        if (odd == 1) one->status = DRUPE_TRACE_SKIPPED;
        if (odd == 2) one->started_ns = one->submitted_ns + 10, one->ended_ns = one->seen_ns - 5;
        snprintf(one->label, sizeof one->label, "work %u", odd % 4);
        snprintf(one->device, sizeof one->device, "host:cpu:0.%u", queue);
    }
    return all;
}

/* As drupe_history_read() does: what is over is worked out after a few. Returns the most that waited for
 * that. */
static size_t feed(drupe_history *history, const drupe_trace_record *all, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        drupe_history_add(history, &all[i]);
        if (history->npending > most) most = history->npending;
        if (i + 1 == count || i % 20 == 19) drupe_history_settle(history);
    }
    assert_int_equal(history->npending, 0);
    return most;
}

/* What ran at known times behind nothing that is open is a span at once. */
static void what_is_final_waits_for_nothing(void **state)
{
    (void)state;
    drupe_history *history = drupe_history_new();
    assert_non_null(history);
    drupe_trace_record *all = made_work(3, 1000);
    for (size_t i = 0; i < 1000; i++) {
        drupe_trace_record *one = &all[i];
        one->queue = 1 + (uint32_t)(i % 3);
        one->ordered = one->queue != 3;
        one->status = DRUPE_TRACE_COMPLETE;
        one->kind = DRUPE_WORK_KERNEL;
        one->started_ns = one->submitted_ns + 1;
        one->ended_ns = one->seen_ns = one->submitted_ns + 101;
    }
    assert_int_equal(feed(history, all, 1000), 0);
    drupe_view *view;
    assert_int_equal(drupe_view_make(history, &(drupe_view_wish){0}, all[999].seen_ns, &view), DRUPE_OK);
    assert_int_equal(view->nspans, 1000);
    for (size_t i = 0; i < view->nspans; i++)
        assert_true(view->spans[i].exact && view->spans[i].busy_ns == 100);
    drupe_view_release(view);
    drupe_history_free(history);
    free(all);
}

/* However much is merged, what is counted and added up is exact. */
static void a_storm_gives_exact_sums(void **state)
{
    (void)state;
    const size_t count = 100000;
    uint64_t kernels = 0, copies = 0, bytes = 0, spans = 0, counted = 0;
    drupe_trace_record *all = made_work(77, count);
    drupe_history *history = drupe_history_new();
    assert_non_null(history);
    (void)feed(history, all, count);
    for (size_t i = 0; i < count; i++) {
        kernels += all[i].kind == DRUPE_WORK_KERNEL;
        copies += all[i].kind == DRUPE_WORK_COPY;
        if (all[i].kind != DRUPE_WORK_BARRIER) bytes += all[i].bytes;
    }
    drupe_view *view;
    uint64_t now = all[count - 1].seen_ns + 1000;
    assert_int_equal(drupe_view_make(history, &(drupe_view_wish){0}, now, &view), DRUPE_OK);
    for (size_t i = 0; i < view->nspans; i++) spans += view->spans[i].count;
    for (size_t i = 0; i < view->ncells; i++) {
        const drupe_view_cell *cell = &view->cells[i];
        counted += cell->count[DRUPE_VIEW_KERNELS];
        copies -= cell->count[DRUPE_VIEW_COPIES];
        bytes -= cell->bytes[DRUPE_VIEW_KERNELS] + cell->bytes[DRUPE_VIEW_COPIES];
        assert_int_equal(cell->waiting, 0);
    }
    assert_int_equal(counted, kernels);
    assert_int_equal(copies, 0);
    assert_int_equal(bytes, 0);
    assert_true(view->nspans <= DRUPE_VIEW_SPANS && spans >= kernels);
    drupe_view_release(view);
    drupe_history_free(history);
    free(all);
}

/* Work of a driver is found to be over many at a time. */
static void groups_of_a_storm_share_notes(void **state)
{
    (void)state;
    drupe_history *history = drupe_history_new();
    assert_non_null(history);
    const uint32_t groups = 2000, each = 20;
    size_t most = 0;
    for (uint32_t i = 0; i < groups * each; i++) {
        uint64_t end = T0 + 1000 + (uint64_t)(i / each + 1) * 10000;
        drupe_trace_record one = {.id = i + 1,
                                  .submitted_ns = end - 10000 - each + i % each,
                                  .seen_ns = end,
                                  .bytes = i,
                                  .items = 2,
                                  .queue = 1,
                                  .cell = 1,
                                  .kind = DRUPE_WORK_KERNEL,
                                  .status = i % each == 7 ? DRUPE_TRACE_COMPLETE : DRUPE_TRACE_PASSED,
                                  .ordered = true,
                                  .label = "work",
                                  .device = "host:cpu:0"};
        drupe_history_add(history, &one);
        if (history->grain && history->npending > most) most = history->npending;
        if (i % (10 * each) == 10 * each - 1) drupe_history_settle(history);
    }
    assert_uint_in_range(most, 1, 10 * each / 4);
    drupe_view *view;
    uint64_t all = (uint64_t)groups * each, counted = 0, items = 0, bytes = 0;
    assert_int_equal(drupe_view_make(history, &(drupe_view_wish){0}, T0 + all * 1000, &view), DRUPE_OK);
    const drupe_view_cell *cell = &view->cells[0];
    assert_int_equal(cell->count[DRUPE_VIEW_KERNELS], all);
    assert_int_equal(cell->bytes[DRUPE_VIEW_KERNELS], all * (all - 1) / 2);
    assert_int_equal(cell->waiting, 0);
    assert_int_equal(view->lanes[0].waiting, 0);
    /* All that is known: each group ran between its first submission and its end. */
    assert_int_equal(cell->busy_ns, 0);
    assert_uint_in_range(cell->maybe_ns, (uint64_t)groups * 10000, (uint64_t)groups * 10000 + each);
    assert_int_equal(cell->untimed[DRUPE_VIEW_KERNELS], all);
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        counted += span->count;
        items += span->items;
        bytes += span->bytes;
        assert_true(!span->exact && span->busy_ns == 0 && span->start_ns <= span->end_ns);
    }
    assert_int_equal(counted, all);
    assert_int_equal(items, 2 * all);
    assert_int_equal(bytes, cell->bytes[DRUPE_VIEW_KERNELS]);
    drupe_view_release(view);
    drupe_history_free(history);
}

/* Who has seen a view is told what came since. */
static void a_delta_has_what_came_since(void **state)
{
    (void)state;
    drupe_trace_record *all = made_work(5, 300);
    drupe_history *history = drupe_history_new();
    assert_non_null(history);
    uint64_t seen = 0, serial = 0, now = all[299].seen_ns + 1000;
    for (size_t part = 0; part < 3; part++) {
        drupe_view *view;
        (void)feed(history, all + part * 100, 100);
        assert_int_equal(drupe_view_make(history, &(drupe_view_wish){.after = serial}, now, &view), DRUPE_OK);
        for (size_t i = 0; i < view->nspans; i++) seen += view->spans[i].count;
        assert_true(view->serial > serial);
        serial = view->serial;
        drupe_view_release(view);
    }
    drupe_view *whole;
    assert_int_equal(drupe_view_make(history, &(drupe_view_wish){0}, now, &whole), DRUPE_OK);
    assert_int_equal(seen, whole->nspans);
    drupe_view_release(whole);
    drupe_history_free(history);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_final_waits_for_nothing),
        cmocka_unit_test(a_storm_gives_exact_sums),
        cmocka_unit_test(groups_of_a_storm_share_notes),
        cmocka_unit_test(a_delta_has_what_came_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
