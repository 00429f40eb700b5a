/* A GPU whose kernels cannot complete behind one that failed: one completion answers for those before it. */
#include "queue/script_bench.h"

static drupe_queue *queue;
static drupe_memory *memory;
static _Atomic(int) looks; /* at events, by the driver */

static drupe_status count_looks(drupe_event *event, drupe_event_state *state)
{
    atomic_fetch_add(&looks, 1);
    return bench_real->event_state(event, state);
}

static int setup(void **state)
{
    const int result = script_setup_gpu(state);
    bench_table.gpu_faults_last = true;
    bench_table.event_state = count_looks;
    queue = script_queue(0);
    memory = bench_memory(queue, DRUPE_MEM_SHARED, 64);
    assert_true(queue->infers);
    atomic_store(&looks, 0);
    return result;
}

static int teardown(void **state)
{
    script_over();
    drupe_memory_release(memory);
    drupe_queue_release(queue);
    return script_teardown(state);
}

/* Nothing but a fault can fail these. */
typedef enum plain { KERNEL, BARRIER, MARK } plain;

static drupe_event *submit(plain kind)
{
    const drupe_submission s = {.queue = queue, .label = "plain"};
    const drupe_range range = {.dims = 1, .global = {4}};
    drupe_event *event;
    if (kind == KERNEL)
        OK(drupe_submit_kernel(&s, bench.add ? bench.add : script_kernel(0), &range, NULL, 0, &event));
    else if (kind == BARRIER)
        OK(drupe_submit_barrier(&s, &event));
    else
        OK(drupe_submit_fill(&s, drupe_memory_pointer(memory), "x", 1, 0, &event));
    return event;
}

static void submit_silent(void)
{
    const drupe_submission s = {.queue = queue, .label = "plain"};
    OK(drupe_submit_barrier(&s, NULL));
}

static void release_all(drupe_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        test_script_finish(events[i], true);
        OK(drupe_event_wait(events[i], LONG));
        drupe_event_release(events[i]);
    }
}

static void a_completion_answers_for_all_before_it(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        drupe_event *events[] = {submit(KERNEL), submit(BARRIER), NULL};
        submit_silent();
        events[2] = submit(MARK);
        test_script_finish(events[2], true);
        if (known) assert_int_equal(drupe_event_state_of(events[2]), DRUPE_EVENT_COMPLETE);
        atomic_store(&looks, 0);
        drupe_queue_settle(queue, true);
        assert_int_equal(looks, !known); /* the others are not asked */
        for (size_t i = 0; i < 3; i++) assert_int_equal(drupe_event_phase(events[i]), DRUPE_PHASE_COMPLETE);
        assert_int_equal(drupe_queue_pending(queue), 0);
        release_all(events, 3);
        drupe_queue_collect(queue);
    }
}

/* One that is known to be complete is looked for further on than one that has to be asked. */
static void a_known_completion_answers_for_many(void **state)
{
    (void)state;
    enum { MANY = 100 };
    drupe_event *events[MANY];
    for (size_t i = 0; i < MANY; i++) events[i] = submit(BARRIER);
    test_script_finish(events[MANY - 1], true);
    assert_int_equal(drupe_event_state_of(events[MANY - 1]), DRUPE_EVENT_COMPLETE);
    atomic_store(&looks, 0);
    drupe_queue_settle(queue, true);
    assert_int_equal(looks, 0);
    assert_int_equal(drupe_queue_pending(queue), 0);
    release_all(events, MANY);
}

/* Where one is known to have failed, each is asked for its own. */
static void none_answers_where_one_has_failed(void **state)
{
    (void)state;
    drupe_event *events[] = {submit(KERNEL), submit(KERNEL)};
    test_script_finish(events[1], true);
    drupe_queue_settle(queue, false);
    assert_int_equal(drupe_event_phase(events[0]), DRUPE_PHASE_NATIVE);
    release_all(events, 2);
}

/* What may fail by itself answers for nobody, nor does what stands behind it. */
static void what_may_fail_otherwise_is_asked(void **state)
{
    (void)state;
    drupe_event *before = script_fill(bench.queue, NULL), *gate = bench_gate();
    for (int i = 0; i < 3; i++) {
        drupe_event *events[] = {submit(KERNEL), NULL, NULL};
        if (i == 0) OK(bench_fill(queue, memory, 1, NULL, &events[1]));
        if (i == 1) OK(bench_barrier(queue, before, &events[1])); /* which the driver waits for */
        if (i == 2) OK(bench_barrier(queue, gate, &events[1]));   /* which core holds */
        events[2] = submit(KERNEL);
        if (i < 2) test_script_finish(events[2], true);
        atomic_store(&looks, 0);
        drupe_queue_settle(queue, true);
        assert_int_equal(looks, 1); /* of the first alone */
        assert_int_equal(drupe_event_phase(events[0]), DRUPE_PHASE_NATIVE);
        if (i == 2) {
            script.finishes = true;
            bench_open_gate(gate);
            while (drupe_event_state_of(events[2]) == DRUPE_EVENT_QUEUED) continue; /* the waiter's */
        }
        release_all(events, 3);
        drupe_queue_collect(queue);
    }
    script_end(before);
}

/* A look that is in a hurry asks the one that would answer for all, and leaves it at that. */
static void a_hasty_look_asks_one(void **state)
{
    (void)state;
    enum { MANY = 9 };
    drupe_event *events[MANY];
    for (size_t i = 0; i < MANY; i++) events[i] = submit(BARRIER);
    assert_int_equal(looks, 1); /* by the eighth behind the first */
    for (size_t i = 0; i < MANY; i++) assert_int_equal(drupe_event_phase(events[i]), DRUPE_PHASE_NATIVE);
    drupe_queue_settle(queue, true);
    assert_int_equal(looks, 3); /* the last, then the first */
    release_all(events, MANY);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_completion_answers_for_all_before_it),
        TEST(a_known_completion_answers_for_many),
        TEST(none_answers_where_one_has_failed),
        TEST(what_may_fail_otherwise_is_asked),
        TEST(a_hasty_look_asks_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
