/* The short way of a record says what the long one says: the same made up work goes both ways. */
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

/* As drupe_history_read() does. Returns how many took the short way. */
static size_t feed(drupe_history *history, const drupe_trace_record *all, size_t count, bool direct)
{
    size_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count || i % 20 == 19;
        if (direct && !last && drupe_direct_take(history, &all[i], &all[i + 1]))
            taken++;
        else
            drupe_history_add(history, &all[i]);
        if (last) drupe_history_settle(history);
    }
    assert_int_equal(history->npending, 0);
    return taken;
}

static void expect_same_cells(const drupe_view *a, const drupe_view *b)
{
    assert_int_equal(a->ncells, b->ncells);
    for (size_t i = 0; i < a->ncells; i++)
        assert_memory_equal(&a->cells[i], &b->cells[i], sizeof a->cells[i]);
    assert_int_equal(a->nlanes, b->nlanes);
    for (size_t i = 0; i < a->nlanes; i++)
        assert_memory_equal(&a->lanes[i], &b->lanes[i], sizeof a->lanes[i]);
}

static void expect_same_spans(const drupe_view *a, const drupe_view *b)
{
    assert_int_equal(a->nspans, b->nspans);
    for (size_t i = 0; i < a->nspans; i++) {
        const drupe_view_span *one = &a->spans[i], *other = &b->spans[i];
        assert_memory_equal(one, other, offsetof(drupe_view_span, label));
        assert_string_equal(one->label, other->label);
    }
}

static void both_ways(uint32_t seed, size_t count)
{
    drupe_trace_record *all = made_work(seed, count);
    drupe_history *slow = drupe_history_new(), *quick = drupe_history_new();
    drupe_view *a, *b;
    assert_true(slow && quick);
    for (size_t i = 0; i < DRUPE_DEVICES_MOST; i++)
        slow->units[i].clock.same = quick->units[i].clock.same = true;
    (void)feed(slow, all, count, false);
    size_t taken = feed(quick, all, count, true);
    assert_true(taken > count / 8 && taken < count);
    uint64_t now = all[count - 1].seen_ns + 1000;
    assert_int_equal(drupe_view_make(slow, &(drupe_view_wish){0}, now, &a), DRUPE_OK);
    assert_int_equal(drupe_view_make(quick, &(drupe_view_wish){0}, now, &b), DRUPE_OK);
    expect_same_cells(a, b);
    if (count < DRUPE_VIEW_SPANS) expect_same_spans(a, b);
    for (size_t i = 0; i < slow->nunits; i++)
        assert_true(drupe_load_share(&slow->units[i].load, now) ==
                    drupe_load_share(&quick->units[i].load, now));
    drupe_view_release(a);
    drupe_view_release(b);
    drupe_history_free(slow);
    drupe_history_free(quick);
    free(all);
}

static void few_give_the_same_spans(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) both_ways(seed, 3000);
}

static void a_storm_gives_the_same_sums(void **state)
{
    (void)state;
    both_ways(77, 100000);
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

/* Who has seen the view before the short way was taken is told what came that way. */
static void a_delta_has_what_came_the_short_way(void **state)
{
    (void)state;
    drupe_trace_record *all = made_work(5, 300);
    drupe_history *history = drupe_history_new();
    assert_non_null(history);
    uint64_t seen = 0, serial = 0, now = all[299].seen_ns + 1000;
    for (size_t part = 0; part < 3; part++) {
        drupe_view *view;
        (void)feed(history, all + part * 100, 100, true);
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
        cmocka_unit_test(few_give_the_same_spans),
        cmocka_unit_test(a_storm_gives_the_same_sums),
        cmocka_unit_test(groups_of_a_storm_share_notes),
        cmocka_unit_test(a_delta_has_what_came_the_short_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
