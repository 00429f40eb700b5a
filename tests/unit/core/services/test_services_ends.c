/* Looks and failures at their ends: threads that do not start, no host memory, and a forked child. */
#include "core_ends.h"
#include <stdatomic.h>

static void looking(void)
{
    drupe_event *gate = NULL, *event = NULL;
    if (ends_good(drupe_event_open("gate", 0, &gate))) {
        ends_good(bench_barrier(bench.queue, gate, &event));
        drupe_failures_watch();
        drupe_trace_look();
        drupe_trace_update();
        (void)!drupe_event_finish(gate, NULL);
        ends_settle(bench.queue);
    }
    drupe_event_release(event);
    drupe_event_release(gate);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(looking);
}

static void in_the_child(void)
{
    drupe_trace_update();
    drupe_trace_look();
    drupe_failures_watch();
    ENDS_MUST(drupe_trace_oldest(drupe_queue_number(bench.queue)) == UINT64_MAX);
    ENDS_MUST(drupe_trace_start_of(drupe_queue_number(bench.queue), 1) == DRUPE_TRACE_BEGUN);
}

static void a_forked_child_sees_nothing(void **state)
{
    ends_setup(state);
    drupe_event *gate = bench_gate(), *event;
    OK(bench_barrier(bench.queue, gate, &event));
    ends_in_child(in_the_child);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    assert_int_equal(bench_teardown(state), 0);
}

/* --- What the driver has ---------------------------------------------------------------------------------
 */

static _Atomic(int) go_on, busy;

static drupe_status occupy(void *unused)
{
    (void)unused;
    atomic_store(&busy, 1);
    while (!atomic_load(&go_on)) continue;
    return DRUPE_OK;
}

/* Work is behind what is older on its device, on whichever queue; the oldest that waits is being prepared. */
static void what_the_driver_has_is_behind_older_work(void **state)
{
    ends_setup(state);
    drupe_queue *other;
    drupe_event *event, *runs;
    const drupe_submission s = {.queue = bench.queue};
    OK(drupe_queue_open(bench.context, bench.device, 0, &other));
    OK(drupe_submit_host(&s, occupy, NULL, &runs));
    while (!atomic_load(&busy)) continue;
    OK(bench_barrier(bench.queue, NULL, &event));
    const uint64_t number = drupe_event_submission(event);
    assert_int_equal(drupe_trace_start_of(drupe_queue_number(bench.queue), number), DRUPE_TRACE_BEHIND);
    assert_int_equal(drupe_trace_oldest(drupe_queue_number(bench.queue)), number - 1);
    assert_int_equal(drupe_trace_oldest(drupe_queue_number(other)), UINT64_MAX);
    atomic_store(&go_on, 1);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_event_release(runs);
    drupe_queue_release(other);
    assert_int_equal(bench_teardown(state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(a_forked_child_sees_nothing),
        cmocka_unit_test(what_the_driver_has_is_behind_older_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
