/* Cancelling on a driver that can: what it is at goes on, the rest is given up; and what is not known of it.
 */
#include "queue/script_bench.h"

static size_t left, given_up;
static unsigned cancelled;
static uint64_t goes_on_from; /* what the driver is told to have begun */

static void queue_cancel(drupe_queue *queue, uint64_t begun)
{
    (void)queue;
    cancelled++;
    goes_on_from = begun;
}

static int setup(void **state)
{
    const int result = script_setup(state);
    bench_table.queue_cancel = queue_cancel;
    cancelled = 0;
    return result;
}

static void expect_cancelled(size_t goes_on, size_t does_not)
{
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(left, goes_on);
    assert_int_equal(given_up, does_not);
    assert_int_equal(cancelled, does_not != 0);
}

/* As the driver fails what it gives up. */
static void expect_given_up(drupe_event *event)
{
    test_script_finish(event, false);
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_CANCELLED, "was cancelled before it started");
    drupe_event_release(event);
}

static void the_first_that_is_not_over_goes_on(void **state)
{
    (void)state;
    drupe_event *over = script_fill(bench.queue, NULL), *runs = script_fill(bench.queue, NULL);
    drupe_event *next = script_fill(bench.queue, NULL), *last = script_fill(bench.queue, NULL);
    test_script_finish(over, true);
    expect_cancelled(1, 2);
    assert_int_equal(goes_on_from, drupe_event_submission(runs));
    expect_given_up(next);
    expect_given_up(last);
    script_end(runs);
    drupe_event_release(over);
    assert_int_equal(script_take_failures(), 0);
}

static void silent_work_may_have_begun(void **state)
{
    (void)state;
    script_silent(bench.queue);
    drupe_event *behind = script_fill(bench.queue, NULL);
    expect_cancelled(1, 1);
    assert_int_equal(goes_on_from, drupe_event_submission(behind) - 1);
    expect_given_up(behind);
    assert_int_equal(script_take_failures(), 0);
}

/* Nobody submitted the barriers that core puts in between. */
static void barriers_of_core_are_not_counted(void **state)
{
    (void)state;
    script_silent(bench.queue);
    FAILS(drupe_queue_wait(bench.queue, 0), DRUPE_E_TIMEOUT, ""); /* which puts one there */
    drupe_event *barrier = drupe_event_retain(bench.queue->order.tail->event);
    drupe_event *behind = script_fill(bench.queue, NULL);
    assert_true(barrier->behind != 0);
    expect_cancelled(1, 1);
    test_script_finish(barrier, true);
    expect_given_up(behind);
    drupe_event_release(barrier);
    assert_int_equal(script_take_failures(), 0);
}

static int looks;

/* It stops answering behind the first look. */
static drupe_status forgetful_state(drupe_event *event, drupe_event_state *state)
{
    if (looks++ > 0) return drupe_error_set(DRUPE_E_INTERNAL, "It does not know.");
    return bench_real->event_state(event, state);
}

static void what_a_driver_does_not_know_may_have_begun(void **state)
{
    (void)state;
    drupe_event *first = script_fill(bench.queue, NULL), *second = script_fill(bench.queue, NULL);
    looks = 0;
    bench_table.event_state = forgetful_state;
    expect_cancelled(1, 1);
    assert_int_equal(looks, 2);
    bench_table.event_state = bench_real->event_state;
    expect_given_up(second);
    script_end(first);
    assert_int_equal(script_take_failures(), 0);
}

static void a_driver_that_cannot_keeps_what_it_has(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    drupe_event *first = script_fill(bench.queue, NULL), *second = script_fill(bench.queue, NULL);
    drupe_event *held = script_fill(bench.queue, gate);
    bench_table.queue_cancel = NULL;
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(left, 2);
    assert_int_equal(given_up, 1);
    FAILS(drupe_event_wait(held, LONG), DRUPE_E_CANCELLED, "was cancelled before it started");
    drupe_event_release(held);
    script_end(first);
    script_end(second);
    bench_open_gate(gate);
    assert_int_equal(script_take_failures(), 0);
}

/* What stands with the driver of an out-of-order queue stays, also behind what core holds. */
static void only_what_core_holds_of_an_unordered_queue_is_given_up(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *held = script_fill(bench.queue, gate);
    drupe_event *native = script_fill(bench.queue, NULL);
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(left, 1);
    assert_int_equal(given_up, 1);
    assert_int_equal(drupe_event_state_of(native), DRUPE_EVENT_SUBMITTED);
    FAILS(drupe_event_wait(held, LONG), DRUPE_E_CANCELLED, "was cancelled before it started");
    drupe_event_release(held);
    bench_open_gate(gate);
    script_end(native);
    assert_int_equal(script_take_failures(), 0);
}

int main(void)
{
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_first_that_is_not_over_goes_on, setup),
        TEST(silent_work_may_have_begun, setup),
        TEST(barriers_of_core_are_not_counted, setup),
        TEST(what_a_driver_does_not_know_may_have_begun, setup),
        TEST(a_driver_that_cannot_keeps_what_it_has, setup),
        TEST(only_what_core_holds_of_an_unordered_queue_is_given_up, script_setup_unordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
