/* Copies between contexts: order, failure, and what is left behind when a step cannot be submitted. */
#include "core_bench.h"
#include "layers/fault_layer.h"
#include <stdatomic.h>

#define SIZE 4096u

static drupe_queue *far, *farther;
static drupe_memory *near, *there, *beyond;

static int setup(void **state)
{
    drupe_fault_layer(true);
    if (drupe_fault_plan(NULL) != DRUPE_OK || bench_setup(state) != 0) return -1;
    far = bench_elsewhere();
    farther = bench_elsewhere();
    near = bench_memory(bench.queue, DRUPE_MEM_DEVICE, SIZE);
    there = bench_memory(far, DRUPE_MEM_DEVICE, SIZE);
    beyond = bench_memory(farther, DRUPE_MEM_DEVICE, SIZE);
    return 0;
}

static int teardown(void **state)
{
    drupe_memory_release(near);
    drupe_memory_release(there);
    drupe_memory_release(beyond);
    drupe_queue_release(far);
    drupe_queue_release(farther);
    return bench_teardown(state);
}

static drupe_status copy(drupe_memory *dst, drupe_memory *src, drupe_event *wait, drupe_event **event)
{
    const drupe_submission s = {.queue = bench.queue, .waits = &wait, .nwaits = 1, .label = "far copy"};
    return drupe_submit_copy(&s, drupe_memory_pointer(dst), drupe_memory_pointer(src), SIZE, event);
}

/* Of the `host` device, whose memory is memory like any other. */
static void expect(const drupe_memory *memory, unsigned char value)
{
    bench_expect_bytes(memory, value, SIZE);
}

static void every_direction_takes_its_place_on_the_queue(void **state)
{
    (void)state;
    drupe_memory *const ends[][2] = {{there, near}, {near, there}, {beyond, there}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(ends); i++) {
        drupe_event *gate = bench_gate(), *event, *behind;
        memset(drupe_memory_pointer(ends[i][1]), (int)(10 + i), SIZE);
        memset(drupe_memory_pointer(ends[i][0]), 0, SIZE);
        OK(copy(ends[i][0], ends[i][1], gate, &event));
        OK(bench_barrier(bench.queue, NULL, &behind));
        assert_int_equal(drupe_event_wait(behind, 0), DRUPE_E_TIMEOUT);
        expect(ends[i][0], 0);
        bench_open_gate(gate);
        OK(drupe_event_wait(behind, LONG));
        OK(drupe_event_wait(event, 0));
        expect(ends[i][0], (unsigned char)(10 + i));
        drupe_event_release(event);
        drupe_event_release(behind);
    }
}

static void host_memory_needs_no_bounce(void **state)
{
    (void)state;
    unsigned char here[SIZE];
    const drupe_submission s = {.queue = bench.queue};
    memset(here, 3, SIZE);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(there), here, SIZE, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    expect(there, 3);
    memset(drupe_memory_pointer(there), 4, SIZE);
    OK(drupe_submit_copy(&s, here, drupe_memory_pointer(there), SIZE, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    for (size_t i = 0; i < SIZE; i++) assert_int_equal(here[i], 4);
}

static void what_is_copied_is_what_was_written_before(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    OK(bench_fill(bench.queue, near, 7, gate, NULL));
    OK(copy(there, near, NULL, NULL));
    OK(bench_fill(bench.queue, near, 8, NULL, NULL)); /* behind the copy */
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    expect(there, 7);
    expect(near, 8);
}

static void handles_may_go_while_it_is_under_way(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *event;
    memset(drupe_memory_pointer(near), 9, SIZE);
    OK(copy(there, near, gate, &event));
    OK(copy(beyond, there, NULL, NULL));
    drupe_memory_release(there);
    there = NULL;
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    expect(beyond, 9);
    drupe_event_release(event);
}

static void a_failure_before_it_stops_all_of_it(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *failure = bench_failure(bench.queue, "before", gate), *event;
    memset(drupe_memory_pointer(there), 1, SIZE);
    memset(drupe_memory_pointer(beyond), 2, SIZE);
    OK(copy(there, near, NULL, &event));
    bench_open_gate(gate);
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "'before'");
    assert_int_equal(drupe_event_wait(failure, LONG), DRUPE_E_INVALID);
    expect(there, 1);
    FAILS(drupe_memory_contents(there), DRUPE_E_DEPENDENCY, "'before'");
    FAILS(copy(beyond, there, NULL, NULL), DRUPE_E_DEPENDENCY, "'before'");
    expect(beyond, 2);
    drupe_event_release(event);
    drupe_event_release(failure);
}

/* Each call of a backend in turn: it is refused as a whole, or its event fails; nothing is left behind. */
static void any_step_may_fail(void **state)
{
    (void)state;
    static const char *const entries[] = {"any", "submit_copy", "submit_barrier", "queue_open", "event"};
    drupe_memory *const ends[][2] = {{there, near}, {near, there}, {beyond, there}};
    size_t failures = 0;
    for (size_t e = 0; e < DRUPE_COUNT_OF(entries); e++) {
        for (size_t i = 0; i < DRUPE_COUNT_OF(ends) * 8; i++) {
            char plan[64];
            drupe_event *event = NULL;
            drupe_failure failure;
            drupe_memory *const *pair = ends[i / 8];
            memset(drupe_memory_pointer(pair[1]), 5, SIZE);
            memset(drupe_memory_pointer(pair[0]), 0, SIZE);
            snprintf(plan, sizeof plan, "%s:%zu=NO_MEMORY", entries[e], 1 + i % 8);
            OK(drupe_fault_plan(plan));
            drupe_status status = copy(pair[0], pair[1], NULL, &event);
            if (status == DRUPE_OK) status = drupe_event_wait(event, LONG);
            OK(drupe_fault_plan(NULL));
            if (status == DRUPE_OK)
                expect(pair[0], 5);
            else
                assert_true(strlen(drupe_error_last()->text) > 20);
            failures += status != DRUPE_OK;
            drupe_event_release(event);
            (void)!drupe_queue_wait(bench.queue, LONG);
            while (drupe_failure_take(&failure)) continue;
            drupe_memory_accept(pair[0]);
            /* The queue works on. */
            OK(copy(pair[0], pair[1], NULL, NULL));
            OK(drupe_queue_wait(bench.queue, LONG));
            expect(pair[0], 5);
        }
    }
    assert_true(failures > 10);
}

/* Of the caller's things, however the copy ends. */
static _Atomic(int) given_back;

static void give_back(void *object)
{
    (void)object;
    atomic_fetch_add(&given_back, 1);
}

static void what_the_caller_keeps_is_kept_until_all_is_over(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *event;
    const drupe_keep keep = {.object = near, .release = give_back};
    drupe_submission s = {.queue = bench.queue, .waits = &gate, .nwaits = 1, .keeps = &keep, .nkeeps = 1};
    atomic_store(&given_back, 0);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(there), drupe_memory_pointer(near), SIZE, &event));
    assert_int_equal(atomic_load(&given_back), 0);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_queue_collect(bench.queue);
    assert_int_equal(atomic_load(&given_back), 1);
}

/* Host memory goes to the foreign queue at once, behind a barrier on the user's. */
static void a_copy_from_host_memory_may_be_refused(void **state)
{
    (void)state;
    unsigned char here[SIZE];
    const drupe_submission s = {.queue = bench.queue};
    static const char *const plans[] = {"queue_open:1=NO_MEMORY", "submit_barrier:1=NO_MEMORY",
                                        "submit_copy:1=NO_MEMORY", "submit_barrier:2=NO_MEMORY"};
    memset(here, 6, SIZE);
    for (size_t i = 0; i < DRUPE_COUNT_OF(plans); i++) {
        OK(drupe_fault_plan(plans[i]));
        FAILS(drupe_submit_copy(&s, drupe_memory_pointer(there), here, SIZE, NULL), DRUPE_E_NO_MEMORY,
              "Planned");
        OK(drupe_fault_plan(NULL));
        OK(drupe_submit_copy(&s, drupe_memory_pointer(there), here, SIZE, NULL));
        OK(drupe_queue_wait(bench.queue, LONG));
        expect(there, 6);
    }
}

/* What a step of a refused copy has read is free again: that step was waited for. */
static void checked_mode_knows_what_a_refused_copy_has_done(void **state)
{
    (void)state;
    drupe_check_begin();
    OK(drupe_fault_plan("submit_copy:2=NO_MEMORY"));
    FAILS(copy(there, near, NULL, NULL), DRUPE_E_NO_MEMORY, "Planned");
    assert_int_equal(drupe_fault_calls("submit_copy"), 2);
    OK(drupe_fault_plan(NULL));
    OK(drupe_check_host(drupe_memory_pointer(near), SIZE, true));
    drupe_check_end();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_direction_takes_its_place_on_the_queue),
        TEST(host_memory_needs_no_bounce),
        TEST(what_is_copied_is_what_was_written_before),
        TEST(handles_may_go_while_it_is_under_way),
        TEST(a_failure_before_it_stops_all_of_it),
        TEST(any_step_may_fail),
        TEST(what_the_caller_keeps_is_kept_until_all_is_over),
        TEST(a_copy_from_host_memory_may_be_refused),
        TEST(checked_mode_knows_what_a_refused_copy_has_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
