/* What events say of their ends: times, causes, and what happens to their memory. */
#include "queue/script_bench.h"

/* --- Times -----------------------------------------------------------------------------------------------
 */

static drupe_queue *profiling;

static int setup(void **state)
{
    const int result = script_setup(state);
    profiling = script_queue(DRUPE_QUEUE_PROFILING);
    return result;
}

static int teardown(void **state)
{
    script_over();
    drupe_queue_release(profiling);
    return script_teardown(state);
}

static void times_are_the_drivers_or_the_reason_why_there_are_none(void **state)
{
    (void)state;
    drupe_times times;
    drupe_event *gate = bench_gate(), *event = script_fill(profiling, NULL);
    FAILS(drupe_event_times(gate, &times), DRUPE_E_UNSUPPORTED, "Only events of a profiling queue");
    FAILS(drupe_event_times(event, &times), DRUPE_E_BUSY, "The work is not finished");
    test_script_finish(event, true);
    OK(drupe_event_wait(event, LONG));
    FAILS(drupe_event_times(event, &times), DRUPE_E_UNSUPPORTED, "The script says no");
    drupe_event_release(event);
    bench_open_gate(gate);
}

/* On a thread of core, whose clock is the trace's. */
static void host_functions_have_times_as_long_as_these_are_recorded(void **state)
{
    (void)state;
    drupe_times times;
    drupe_event *event;
    const drupe_submission s = {.queue = profiling};
    OK(drupe_submit_host(&s, bench_nothing, NULL, &event));
    OK(drupe_event_wait(event, LONG));
    OK(drupe_event_times(event, &times));
    assert_true(times.submitted && times.queued == times.submitted);
    assert_true(times.submitted <= times.started && times.started <= times.ended);
    for (unsigned i = 0; i < DRUPE_TRACE_RECORDS; i++) drupe_trace_skip(drupe_inflight_next());
    FAILS(drupe_event_times(event, &times), DRUPE_E_UNSUPPORTED, "no longer recorded");
    drupe_event_release(event);
}

/* Nobody was told when the program began with it. */
static void a_turn_that_was_not_taken_has_no_times(void **state)
{
    (void)state;
    drupe_times times;
    drupe_event *turn;
    const drupe_submission s = {.queue = profiling};
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "mine"};
    OK(drupe_submit_turn(&s, &turn));
    drupe_deferred_let_pass(profiling);
    while (drupe_event_finish(turn, NULL) != DRUPE_OK)
        assert_int_equal(drupe_error_last()->status, error.status);
    FAILS(drupe_event_times(turn, &times), DRUPE_E_UNSUPPORTED, "no longer recorded");
    drupe_event_release(turn);
}

/* --- Waits -----------------------------------------------------------------------------------------------
 */

static void only_open_waits_are_told(void **state)
{
    (void)state;
    drupe_event *first = bench_gate(), *second = bench_gate(), *event, *told[2];
    drupe_event *waits[] = {first, second};
    const drupe_submission s = {.queue = bench.queue, .waits = waits, .nwaits = 2};
    size_t count = 7;
    script.finishes = true;
    OK(drupe_event_waits(first, told, 2, &count));
    assert_int_equal(count, 0);
    OK(drupe_submit_barrier(&s, &event));
    OK(drupe_event_waits(event, told, 1, &count));
    assert_int_equal(count, 2); /* though there is room for one */
    assert_ptr_equal(told[0], first);
    drupe_event_release(told[0]);
    bench_open_gate(first);
    OK(drupe_event_waits(event, told, 2, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(told[0], second);
    drupe_event_release(told[0]);
    bench_open_gate(second);
    OK(drupe_event_wait(event, LONG));
    OK(drupe_event_waits(event, told, 2, &count));
    assert_int_equal(count, 0);
    drupe_event_release(event);
}

static void a_driver_need_not_tell_of_ends(void **state)
{
    (void)state;
    drupe_queue *far = bench_elsewhere();
    drupe_event *event = script_fill(bench.queue, NULL), *behind;
    bench_table.event_notify = NULL;
    script.finishes = true;
    OK(bench_barrier(far, event, &behind));
    assert_int_equal(drupe_event_state_of(behind), DRUPE_EVENT_QUEUED);
    script_end(event);
    OK(drupe_event_wait(behind, LONG));
    drupe_event_release(behind);
    drupe_queue_release(far);
}

/* --- Causes ----------------------------------------------------------------------------------------------
 */

/* A barrier that core puts behind silent work tells nothing of its own. */
static void barriers_of_core_fail_for_what_they_stand_behind(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_failure own, cause;
    drupe_event *before = script_fill(bench.queue, NULL), *fallible = script_fill(other, before);
    for (int i = 0; i < 2; i++) {
        script_silent(other);
        FAILS(drupe_queue_wait(other, 0), DRUPE_E_TIMEOUT, ""); /* which puts a barrier there */
        drupe_event *barrier = drupe_event_retain(other->order.tail->event);
        assert_true(barrier->behind != 0);
        if (i == 0) test_script_finish(fallible, false); /* a wait of the first barrier */
        test_script_finish(barrier, false);
        FAILS(drupe_event_wait(barrier, LONG), i ? DRUPE_E_INTERNAL : DRUPE_E_DEPENDENCY,
              "The script says no");
        assert_true(drupe_failure_last(&own, &cause));
        if (i == 0) assert_true(cause.submission == drupe_event_submission(fallible));
        drupe_event_release(barrier);
        assert_int_equal(script_take_failures(), 0);
    }
    drupe_event_release(fallible);
    script_end(before);
    script.finishes = true;
    drupe_queue_release(other);
}

/* And not again what was told before they were put there. */
static void barriers_of_core_tell_nothing_again(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *first = script_fill(bench.queue, NULL), *fallible = script_fill(other, first);
    test_script_finish(first, false);
    FAILS(drupe_event_wait(first, LONG), DRUPE_E_INTERNAL, "The script says no");
    script_silent(other);
    FAILS(drupe_queue_wait(other, 0), DRUPE_E_TIMEOUT, "");
    drupe_event *barrier = drupe_event_retain(other->order.tail->event);
    test_script_finish(fallible, false);
    test_script_finish(barrier, false);
    assert_int_equal(drupe_event_state_of(barrier), DRUPE_EVENT_FAILED);
    assert_int_equal(drupe_event_error(barrier)->status, DRUPE_E_DEPENDENCY);
    assert_int_equal(script_take_failures(), 1); /* of the work that the barrier stands behind */
    drupe_event_release(barrier);
    drupe_event_release(fallible);
    drupe_event_release(first);
    script.finishes = true;
    drupe_queue_release(other);
}

/* What waits for an event whose failure was told before is a failure of its own, and is told again; what
 * stands behind that, or waits for it, names the first. */
static void old_failures_are_told_again_once(void **state)
{
    (void)state;
    drupe_queue *queues[2];
    drupe_event *events[4];
    drupe_failure own, cause;
    for (size_t i = 0; i < 2; i++) queues[i] = script_queue(0);
    events[0] = script_fill(bench.queue, NULL);
    test_script_finish(events[0], false);
    FAILS(drupe_event_wait(events[0], LONG), DRUPE_E_INTERNAL, "The script says no");
    events[1] = script_fill(queues[0], events[0]);
    events[2] = script_fill(queues[0], NULL);
    events[3] = script_fill(queues[1], events[1]);
    for (size_t i = 4; i-- > 1;) {
        FAILS(drupe_event_wait(events[i], LONG), DRUPE_E_DEPENDENCY, "The script says no");
        assert_true(drupe_failure_last(&own, &cause));
        assert_true(own.submission == drupe_event_submission(events[i]));
        assert_true(cause.submission == drupe_event_submission(events[0]));
    }
    assert_int_equal(script_take_failures(), 0);
    script.finishes = true;
    for (size_t i = 0; i < 4; i++) drupe_event_release(events[i]);
    for (size_t i = 0; i < 2; i++) drupe_queue_release(queues[i]);
}

/* --- Memory ----------------------------------------------------------------------------------------------
 */

/* The queue of an event comes back to life, and keeps no memory of events when it goes again. */
static void a_queue_may_go_twice(void **state)
{
    (void)state;
    drupe_queue *queue = script_queue(0);
    drupe_event *event = script_fill(queue, NULL), *later;
    script_end(script_fill(queue, NULL)); /* whose memory is kept, until the queue goes */
    drupe_queue_collect(queue);
    test_script_finish(event, true);
    OK(drupe_event_wait(event, LONG));
    drupe_queue_release(queue);
    queue = drupe_queue_retain(drupe_event_queue(event));
    later = script_fill(queue, NULL);
    assert_int_equal(drupe_queue_pending(queue), 1);
    script_end(later);
    drupe_queue_release(queue);
    assert_int_equal(atomic_load(&queue->base.inner), 1); /* the event's */
    assert_ptr_equal(drupe_event_queue(event), queue);
    drupe_event_release(event);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(times_are_the_drivers_or_the_reason_why_there_are_none),
        TEST(host_functions_have_times_as_long_as_these_are_recorded),
        TEST(a_turn_that_was_not_taken_has_no_times),
        TEST(only_open_waits_are_told),
        TEST(a_driver_need_not_tell_of_ends),
        TEST(barriers_of_core_fail_for_what_they_stand_behind),
        TEST(barriers_of_core_tell_nothing_again),
        TEST(old_failures_are_told_again_once),
        TEST(a_queue_may_go_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
