/* Memory that was handed on in its queue's order, used out of that order: what has to be over before. */
#include "queue/script_bench.h"

static drupe_memory *memory; /* handed on, while work uses it */

static void hand_on(drupe_queue *queue, size_t uses, drupe_event **events)
{
    drupe_memory *old = bench_memory(queue, DRUPE_MEM_SHARED, 4096);
    const void *at = drupe_memory_pointer(old);
    for (size_t i = 0; i < uses; i++) OK(bench_fill(queue, old, 1, NULL, events ? &events[i] : NULL));
    drupe_memory_release(old);
    OK(drupe_memory_alloc_result(queue, DRUPE_MEM_SHARED, 4096, &memory));
    assert_ptr_equal(drupe_memory_pointer(memory), at);
}

static int teardown(void **state)
{
    drupe_memory_release(memory);
    memory = NULL;
    return script_teardown(state);
}

/* The event that is waited for, which the test has to release. */
static drupe_event *expect_wait(void)
{
    drupe_event *before;
    OK(drupe_memory_before_use(memory, &before));
    assert_non_null(before);
    return before;
}

static void expect_free(void)
{
    drupe_event *before;
    OK(drupe_memory_before_use(memory, &before));
    assert_null(before);
}

static void a_barrier_proves_silent_work_at_the_end(void **state)
{
    (void)state;
    hand_on(bench.queue, 2, NULL);
    script_silent(bench.queue); /* tells nothing of what stands before it */
    drupe_event *before = expect_wait(), *same = expect_wait();
    assert_ptr_equal(same, before); /* the barrier of the first time */
    assert_ptr_equal(bench.queue->order.tail->event, before);
    drupe_event_release(same);
    script_end(before);
    expect_free();
    expect_free(); /* it is as memory that was never handed on */
}

static void what_is_dropped_uses_nothing(void **state)
{
    (void)state;
    hand_on(bench.queue, 1, NULL);
    script.finishes = true;
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    expect_free();
}

static void without_a_barrier_the_use_is_refused(void **state)
{
    (void)state;
    drupe_event *before;
    hand_on(bench.queue, 1, NULL);
    script.refuses = DRUPE_E_INTERNAL;
    FAILS(drupe_memory_before_use(memory, &before), DRUPE_E_INTERNAL, "The script refuses.");
    assert_int_equal(script.kind, DRUPE_WORK_BARRIER);
    assert_null(before);
    script.refuses = DRUPE_OK;
    script_end(expect_wait()); /* it is still in its order */
}

/* What failed proves nothing of what was before it. */
static void a_failure_that_nobody_knows_is_in_the_way(void **state)
{
    (void)state;
    drupe_event *before;
    hand_on(bench.queue, 1, NULL);
    drupe_event *failed = script_fill(bench.queue, NULL);
    test_script_finish(failed, false);
    FAILS(drupe_memory_before_use(memory, &before), DRUPE_E_BUSY, "has not been reported yet");
    assert_null(before);
    FAILS(drupe_event_wait(failed, LONG), DRUPE_E_INTERNAL, "The script says no");
    before = expect_wait();
    assert_ptr_not_equal(before, failed);
    script_end(before);
    expect_free();
    drupe_event_release(failed);
}

static drupe_status refuse_event(void *user, drupe_event *event)
{
    size_t *asked = user;
    drupe_event_release(event);
    return ++*asked == 2 ? drupe_error_set(DRUPE_E_NO_MEMORY, "No room for it.") : DRUPE_OK;
}

static void all_uses_of_an_unordered_queue_count(void **state)
{
    (void)state;
    drupe_event *events[3], *before;
    size_t asked = 0;
    hand_on(bench.queue, 3, events);
    drupe_event *later = script_fill(bench.queue, NULL); /* which does not use it */
    test_script_finish(events[0], true);
    before = expect_wait();
    assert_ptr_equal(before, events[1]);
    drupe_event_release(before);
    FAILS(drupe_memory_before(memory, refuse_event, &asked), DRUPE_E_NO_MEMORY, "No room for it.");
    assert_int_equal(asked, 2);
    test_script_finish(events[1], true);
    before = expect_wait(); /* it is still in its order */
    assert_ptr_equal(before, events[2]);
    drupe_event_release(before);
    test_script_finish(events[2], true);
    expect_free();
    for (size_t i = 0; i < 3; i++) drupe_event_release(events[i]);
    script_end(later);
}

int main(void)
{
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_barrier_proves_silent_work_at_the_end, script_setup),
        TEST(what_is_dropped_uses_nothing, script_setup),
        TEST(without_a_barrier_the_use_is_refused, script_setup),
        TEST(a_failure_that_nobody_knows_is_in_the_way, script_setup),
        TEST(all_uses_of_an_unordered_queue_count, script_setup_unordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
