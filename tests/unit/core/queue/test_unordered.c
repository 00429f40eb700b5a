/* Out-of-order queues: waits and barriers alone order. */
#include "core_bench.h"

static drupe_queue *far; /* of another context: core waits for its events */

static int setup(void **state)
{
    const int result = bench_setup_unordered(state);
    if (result == 0) far = bench_elsewhere();
    return result;
}

static int teardown(void **state)
{
    drupe_queue_release(far);
    return bench_teardown(state);
}

static void release_all(drupe_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++) drupe_event_release(events[i]);
}

static void work_overtakes_what_is_held(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *events[3], *waits[4];
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64), *b;
    b = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(bench_fill(bench.queue, a, 1, gate, &events[0]));
    OK(bench_fill(bench.queue, b, 2, NULL, &events[1]));
    OK(drupe_event_wait(events[1], LONG));
    bench_expect_bytes(b, 2, 64);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_QUEUED);
    assert_int_equal(drupe_queue_pending(bench.queue), 1);
    assert_int_equal(drupe_queue_wait(bench.queue, 1000), DRUPE_E_TIMEOUT);
    assert_int_equal(drupe_queue_blockers(bench.queue, waits, 4), 1);
    assert_ptr_equal(waits[0], gate);
    drupe_event_release(waits[0]);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(a, 1, 64);
    OK(bench_fill(bench.queue, a, 3, events[0], &events[2])); /* what is over is no wait */
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(a, 3, 64);
    release_all(events, 3);
    drupe_memory_release(a);
    drupe_memory_release(b);
}

static void barriers_stand_between(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *before, *barrier, *second, *behind;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(bench_fill(bench.queue, a, 1, gate, &before));
    OK(bench_barrier(bench.queue, NULL, &barrier));
    OK(bench_barrier(bench.queue, NULL, &second));
    OK(bench_fill(bench.queue, a, 2, NULL, &behind));
    assert_int_equal(drupe_event_state_of(barrier), DRUPE_EVENT_QUEUED);
    assert_int_equal(drupe_event_state_of(behind), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_event_wait(behind, LONG));
    bench_expect_bytes(a, 2, 64);
    drupe_queue_collect(bench.queue);
    drupe_event *all[] = {before, barrier, second, behind};
    release_all(all, 4);
    drupe_memory_release(a);
}

static void ordered_submissions_are_barriers_that_work(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *before, *ordered, *behind;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    const drupe_submission s = {.queue = bench.queue, .ordered = true};
    OK(bench_fill(bench.queue, a, 1, gate, &before));
    OK(drupe_submit_fill(&s, drupe_memory_pointer(a), "\2", 1, 64, &ordered));
    OK(bench_mad(bench.queue, a, a, 8, 1, 1, NULL, &behind));
    assert_int_equal(drupe_event_state_of(behind), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_event_wait(behind, LONG));
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(a), UINT64_C(0x0202020202020203));
    drupe_event *all[] = {before, ordered, behind};
    release_all(all, 3);
    drupe_memory_release(a);
}

static void a_failure_stops_what_waits_and_barriers(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *failure = bench_failure(bench.queue, "culprit", gate), *waits, *beside,
                *barrier, *behind;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(bench_fill(bench.queue, a, 1, failure, &waits));
    OK(bench_barrier(bench.queue, NULL, &barrier));
    OK(bench_fill(bench.queue, a, 2, NULL, &behind));
    drupe_queue *ours = bench.queue;
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_OUT_OF_ORDER, &bench.queue));
    OK(bench_barrier(bench.queue, NULL, &beside));
    OK(drupe_event_wait(beside, LONG)); /* of another queue */
    drupe_queue_release(bench.queue);
    bench.queue = ours;
    bench_open_gate(gate);
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    FAILS(drupe_event_wait(barrier, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    FAILS(drupe_event_wait(waits, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    assert_int_equal(drupe_event_wait(failure, LONG), DRUPE_E_INVALID);
    drupe_event *all[] = {waits, beside, barrier, behind};
    release_all(all, 4);
    /* It was told: the queue works again, and so do its barriers. */
    OK(bench_barrier(bench.queue, NULL, &barrier));
    OK(bench_fill(bench.queue, a, 3, NULL, &behind));
    OK(drupe_event_wait(behind, LONG));
    bench_expect_bytes(a, 3, 64);
    drupe_event_release(barrier);
    drupe_event_release(behind);
    drupe_event_release(failure);
    drupe_memory_release(a);
}

/* While nobody was told, each barrier is stopped, and with it all behind. */
static void an_untold_failure_stops_later_barriers(void **state)
{
    (void)state;
    drupe_event *failure = bench_failure(bench.queue, "culprit", NULL), *free_of_it, *barrier, *behind;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    while (drupe_event_state_of(failure) != DRUPE_EVENT_FAILED) continue;
    OK(bench_fill(bench.queue, a, 1, NULL, &free_of_it));
    OK(drupe_event_wait(free_of_it, LONG));
    OK(bench_barrier(bench.queue, NULL, &barrier));
    OK(bench_fill(bench.queue, a, 2, NULL, &behind));
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    bench_expect_bytes(a, 1, 64);
    FAILS(drupe_event_wait(failure, LONG), DRUPE_E_INVALID, PLANNED);
    FAILS(drupe_event_wait(barrier, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    drupe_event *all[] = {failure, free_of_it, barrier, behind};
    release_all(all, 4);
    drupe_memory_release(a);
}

static void events_of_other_contexts_are_waited_for(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *there, *here, *ours;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(bench_barrier(far, gate, &there));
    OK(bench_fill(bench.queue, a, 1, there, &here));
    OK(bench_mad(bench.queue, a, a, 8, 1, 1, here, &ours)); /* behind what is still deferred */
    assert_int_equal(drupe_event_state_of(ours), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_event_wait(ours, LONG));
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(a), UINT64_C(0x0101010101010102));
    drupe_event *all[] = {there, here, ours};
    release_all(all, 3);
    drupe_memory_release(a);
}

static void what_a_wait_failed_for_is_the_cause(void **state)
{
    (void)state;
    drupe_event *failure = bench_failure(far, "over there", NULL), *waits, *again;
    assert_int_equal(drupe_event_wait(failure, LONG), DRUPE_E_INVALID);
    OK(bench_barrier(bench.queue, failure, &waits)); /* it is known already */
    FAILS(drupe_event_wait(waits, LONG), DRUPE_E_DEPENDENCY, "'over there'");
    OK(bench_barrier(bench.queue, NULL, &again));
    OK(drupe_event_wait(again, LONG));
    drupe_event *all[] = {failure, waits, again};
    release_all(all, 3);
}

static void only_what_is_held_is_cancelled(void **state)
{
    (void)state;
    size_t left, given_up;
    drupe_event *gate = bench_gate(), *held, *behind, *late;
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(given_up + left, 0);
    OK(bench_barrier(bench.queue, gate, &held));
    OK(bench_barrier(bench.queue, NULL, &behind));
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(left, 0);
    assert_int_equal(given_up, 2);
    FAILS(drupe_event_wait(held, LONG), DRUPE_E_CANCELLED, "was cancelled");
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_CANCELLED, "was cancelled");
    OK(bench_barrier(bench.queue, NULL, &late));
    OK(drupe_event_wait(late, LONG));
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_open_gate(gate);
    drupe_event *all[] = {held, behind, late};
    release_all(all, 3);
}

/* The pieces that such a queue uses are waited for one by one. */
static void results_are_not_taken_before_their_work_is_over(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *before;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 1024), *next;
    const void *at = drupe_memory_pointer(a);
    OK(bench_fill(bench.queue, a, 1, gate, NULL));
    assert_false(drupe_memory_sole(a, bench.queue));
    drupe_memory_release(a);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 1024, &next));
    OK(drupe_memory_before_use(next, &before));
    if (drupe_memory_pointer(next) == at) assert_non_null(before);
    bench_open_gate(gate);
    if (before) OK(drupe_event_wait(before, LONG));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(before);
    OK(drupe_memory_before_use(next, &before));
    assert_null(before);
    drupe_memory_release(next);
}

static void looks_go_round(void **state)
{
    (void)state;
    enum { MANY = 40 };
    drupe_event *gate = bench_gate(), *held, *events[MANY];
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(bench_barrier(bench.queue, gate, &held)); /* stands before all the others */
    drupe_event_release(held);
    size_t left, given_up;
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    for (size_t i = 0; i < MANY; i++) OK(bench_fill(bench.queue, a, 1, i % 8 ? NULL : gate, &events[i]));
    for (size_t i = 0; i < MANY; i++)
        if (i % 8) OK(drupe_event_wait(events[i], LONG));
    for (size_t i = 0; i < MANY / 4; i++) drupe_queue_collect(bench.queue);
    assert_int_equal(drupe_queue_pending(bench.queue), MANY / 8);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    release_all(events, MANY);
    drupe_memory_release(a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(work_overtakes_what_is_held),
        TEST(barriers_stand_between),
        TEST(ordered_submissions_are_barriers_that_work),
        TEST(a_failure_stops_what_waits_and_barriers),
        TEST(an_untold_failure_stops_later_barriers),
        TEST(events_of_other_contexts_are_waited_for),
        TEST(what_a_wait_failed_for_is_the_cause),
        TEST(only_what_is_held_is_cancelled),
        TEST(results_are_not_taken_before_their_work_is_over),
        TEST(looks_go_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
