/* Checked mode without host memory: without a ring there is no order to look at; everything else is. */
#include "core/check/check_room.h"
#include "core_ends.h"
#include "walk/wrap.h"

static void checked(void)
{
    drupe_memory *memory = NULL;
    drupe_failure failure;
    drupe_check_begin();
    if (ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 100, 0, &memory))) {
        char *at = drupe_memory_pointer(memory);
        ends_good(bench_fill(bench.queue, memory, 1, NULL, NULL));
        ends_good(drupe_check_host(at, 8, true));
        ends_settle(bench.queue);
        at[100] = 1;
        assert_int_equal(drupe_check_memory(), DRUPE_E_CHECK);
        drupe_memory_release(memory);
    }
    drupe_check_end();
    while (drupe_failure_take(&failure)) continue;
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(checked);
}

/* Nothing races, since nobody knows of an order, but all else is found. */
static void without_a_ring_the_rest_is_checked(void **state)
{
    drupe_queue *second;
    drupe_event *event;
    drupe_check_place place;
    wrap_plan(WRAP_MALLOC, 1);
    drupe_check_begin();
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    assert_true(drupe_check_active());
    ends_setup(state);
    OK(drupe_queue_open(bench.context, bench.device, 0, &second));
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    char *at = drupe_memory_pointer(memory);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    OK(bench_fill(second, memory, 2, NULL, &event));
    OK(drupe_check_host(at, 64, true));
    OK(drupe_event_wait(event, LONG));
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_false(drupe_check_writer(at, 64, &place));
    drupe_queue_release(second);
    at[64] = 1;
    FAILS(drupe_check_memory(), DRUPE_E_CHECK, "No work that wrote to it is known.");
    drupe_event_release(event);
    drupe_memory_release(memory);
    assert_int_equal(bench_teardown(state), 0);
    drupe_check_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(without_a_ring_the_rest_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
