/* In-order queues: what is deferred, what the caller ends, times, waits, how far a program may be ahead. */
#include "core/queue/launch.h"
#include "core_bench.h"
#include "layers/fault_layer.h"

static int setup(void **state)
{
    drupe_fault_layer(true);
    return drupe_fault_plan(NULL) == DRUPE_OK ? bench_setup(state) : -1;
}

static int setup_poor(void **state)
{
    drupe_fault_layer(true);
    return drupe_fault_plan(NULL) == DRUPE_OK ? bench_setup_poor(state) : -1;
}

static void release_all(drupe_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++) drupe_event_release(events[i]);
}

static drupe_status add_one(void *user)
{
    ++*(_Atomic(int) *)user;
    return DRUPE_OK;
}

static drupe_event *host_function(drupe_queue *queue, drupe_host_fn fn, void *user, drupe_event *wait)
{
    const drupe_submission s = {.queue = queue, .waits = &wait, .nwaits = 1};
    drupe_event *event;
    OK(drupe_submit_host(&s, fn, user, &event));
    return event;
}

/* --- Order -----------------------------------------------------------------------------------------------
 */

static void what_stands_behind_held_work_is_held(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *events[3], *waits[2];
    size_t count;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 800);
    OK(bench_fill(bench.queue, a, 0, gate, &events[0]));
    OK(bench_mad(bench.queue, a, a, 100, 1, 5, NULL, &events[1]));
    OK(bench_mad(bench.queue, a, a, 100, 3, 1, NULL, &events[2]));
    assert_int_equal(drupe_event_state_of(events[2]), DRUPE_EVENT_QUEUED);
    assert_int_equal(drupe_queue_pending(bench.queue), 3);
    OK(drupe_event_waits(events[0], waits, 2, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(waits[0], gate);
    drupe_event_release(waits[0]);
    assert_int_equal(drupe_queue_blockers(bench.queue, waits, 2), 1);
    assert_ptr_equal(waits[0], gate);
    drupe_event_release(waits[0]);
    OK(drupe_event_waits(events[0], NULL, 0, &count));
    assert_int_equal(count, 1);
    assert_int_equal(drupe_event_wait(events[2], 0), DRUPE_E_TIMEOUT);
    assert_int_equal(drupe_queue_wait(bench.queue, 1000), DRUPE_E_TIMEOUT);
    assert_false(drupe_queue_idle(bench.queue, 1000));
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_true(drupe_queue_idle(bench.queue, 0));
    const uint64_t *numbers = drupe_memory_pointer(a);
    for (size_t i = 0; i < 100; i++) assert_int_equal(numbers[i], 16);
    assert_int_equal(drupe_event_state_of(events[1]), DRUPE_EVENT_COMPLETE);
    OK(drupe_event_waits(events[0], waits, 2, &count));
    assert_int_equal(count, 0);
    assert_int_equal(drupe_queue_blockers(bench.queue, waits, 2), 0);
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
    release_all(events, 3);
    drupe_memory_release(a);
}

static void queues_wait_for_each_other_by_events(void **state)
{
    (void)state;
    drupe_queue *far = bench_elsewhere(), *near;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 800);
    drupe_event *gate = bench_gate(), *events[3];
    OK(drupe_queue_open(bench.context, bench.device, 0, &near));
    OK(bench_fill(bench.queue, a, 1, gate, &events[0]));
    OK(bench_barrier(far, events[0], &events[1])); /* another context: core waits */
    OK(bench_fill(near, a, 2, events[1], &events[2]));
    bench_open_gate(gate);
    OK(drupe_event_wait(events[2], LONG));
    bench_expect_bytes(a, 2, 800);
    release_all(events, 3);
    drupe_memory_release(a);
    drupe_queue_release(near);
    drupe_queue_release(far);
}

static void host_functions_run_in_their_turn(void **state)
{
    (void)state;
    _Atomic(int) runs = 0;
    drupe_event *gate = bench_gate(), *events[3];
    events[0] = host_function(bench.queue, add_one, &runs, gate);
    events[1] = host_function(bench.queue, add_one, &runs, NULL);
    events[2] = bench_failure(bench.queue, "third", NULL);
    assert_int_equal(runs, 0);
    bench_open_gate(gate);
    OK(drupe_event_wait(events[1], LONG));
    assert_int_equal(runs, 2);
    FAILS(drupe_event_wait(events[2], LONG), DRUPE_E_INVALID, PLANNED);
    assert_string_equal(drupe_event_error(events[2])->text, PLANNED);
    assert_null(drupe_event_error(events[0]));
    assert_false(drupe_event_failure(events[0], NULL, NULL));
    release_all(events, 3);
}

static drupe_status fail_without_reason(void *user)
{
    (void)user;
    drupe_error_set(DRUPE_E_BUSY, "Something else.");
    return DRUPE_E_NOT_FOUND;
}

static void a_failure_without_a_reason_gets_one(void **state)
{
    (void)state;
    drupe_event *event = host_function(bench.queue, fail_without_reason, NULL, NULL);
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_NOT_FOUND, "answered NOT_FOUND without a reason");
    drupe_event_release(event);
}

/* 64 run at a time, so some may wait for others. */
static drupe_status meet(void *user)
{
    pthread_barrier_t *all = user;
    (void)pthread_barrier_wait(all);
    return DRUPE_OK;
}

static void host_functions_of_many_queues_run_together(void **state)
{
    (void)state;
    enum { MANY = 24 };
    pthread_barrier_t all;
    drupe_queue *queues[MANY];
    drupe_event *events[MANY];
    pthread_barrier_init(&all, NULL, MANY);
    for (size_t i = 0; i < MANY; i++) {
        OK(drupe_queue_open(bench.context, bench.device, 0, &queues[i]));
        events[i] = host_function(queues[i], meet, &all, NULL);
    }
    for (size_t i = 0; i < MANY; i++) OK(drupe_event_wait(events[i], LONG));
    for (size_t i = 0; i < MANY; i++) drupe_queue_release(queues[i]);
    release_all(events, MANY);
    pthread_barrier_destroy(&all);
}

/* --- Events of the caller --------------------------------------------------------------------------------
 */

static void the_caller_ends_its_events(void **state)
{
    (void)state;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "mine"};
    drupe_event *event, *behind, *complete;
    OK(drupe_event_open(NULL, 5, &event));
    assert_null(drupe_event_queue(event));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    assert_int_equal(drupe_event_wait(event, 1000), DRUPE_E_TIMEOUT);
    OK(bench_barrier(bench.queue, event, &behind));
    OK(drupe_event_finish(event, &error));
    OK(drupe_event_finish(event, NULL)); /* the first counts */
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY, "'event' failed: mine");
    FAILS(drupe_event_wait(event, 0), DRUPE_E_INVALID, "mine");
    OK(bench_barrier(bench.queue, NULL, &complete));
    OK(drupe_event_wait(complete, LONG));
    FAILS(drupe_event_finish(complete, NULL), DRUPE_E_INVALID, "");
    FAILS(drupe_event_finish(NULL, NULL), DRUPE_E_INVALID, "");
    FAILS(drupe_event_wait(NULL, 0), DRUPE_E_INVALID, "no event");
    drupe_event *all[] = {event, behind, complete};
    release_all(all, 3);
    drupe_event_release(drupe_event_retain(NULL));
}

static void a_turn_is_the_callers_once_it_has_come(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue, .label = "my turn"};
    drupe_event *gate = bench_gate(), *turn, *behind;
    drupe_times times;
    OK(bench_barrier(bench.queue, gate, NULL));
    OK(drupe_submit_turn(&s, &turn));
    OK(bench_barrier(bench.queue, NULL, &behind));
    FAILS(drupe_event_finish(turn, NULL), DRUPE_E_INVALID, "turn");
    bench_open_gate(gate);
    while (drupe_event_state_of(turn) != DRUPE_EVENT_RUNNING) continue;
    assert_int_equal(drupe_event_wait(behind, 0), DRUPE_E_TIMEOUT);
    FAILS(drupe_event_times(turn, &times), DRUPE_E_UNSUPPORTED, "");
    OK(drupe_event_finish(turn, NULL));
    OK(drupe_event_wait(behind, LONG));
    OK(drupe_event_wait(turn, 0));
    drupe_event_release(turn);
    drupe_event_release(behind);
}

static void a_turn_behind_a_failure_fails(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *failure = bench_failure(bench.queue, "before", gate), *turn;
    const drupe_submission s = {.queue = bench.queue};
    OK(drupe_submit_turn(&s, &turn));
    bench_open_gate(gate);
    FAILS(drupe_event_wait(turn, LONG), DRUPE_E_DEPENDENCY, "'before'");
    assert_int_equal(drupe_event_wait(failure, LONG), DRUPE_E_INVALID);
    drupe_event_release(turn);
    drupe_event_release(failure);
}

static void a_wait_is_for_what_stands_before_an_early_failure(void **state)
{
    (void)state;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "mine"};
    drupe_event *gate = bench_gate(), *turns[2];
    OK(drupe_submit_turn(&(drupe_submission){.queue = bench.queue, .waits = &gate, .nwaits = 1}, &turns[0]));
    OK(drupe_submit_turn(&(drupe_submission){.queue = bench.queue}, &turns[1]));
    OK(drupe_event_finish(turns[1], &error));
    assert_int_equal(drupe_queue_wait(bench.queue, SECOND / 100), DRUPE_E_TIMEOUT);
    assert_int_equal(drupe_queue_pending(bench.queue), 1);
    bench_open_gate(gate);
    while (drupe_event_state_of(turns[0]) != DRUPE_EVENT_RUNNING) continue;
    OK(drupe_event_finish(turns[0], NULL));
    FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INVALID, "mine");
    release_all(turns, 2);
}

static void an_event_that_failed_already_fails_what_waits(void **state)
{
    (void)state;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "mine"};
    drupe_event *gate = bench_gate(), *behind, *after;
    OK(drupe_event_finish(gate, &error));
    OK(bench_barrier(bench.queue, gate, &behind));
    OK(bench_barrier(bench.queue, NULL, &after));
    FAILS(drupe_event_wait(after, LONG), DRUPE_E_DEPENDENCY, "mine");
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY, "mine");
    drupe_failure failure;
    while (drupe_failure_take(&failure)) continue;
    drupe_event *all[] = {gate, behind, after};
    release_all(all, 3);
}

/* --- Times -----------------------------------------------------------------------------------------------
 */

static void profiling_queues_have_times(void **state)
{
    (void)state;
    drupe_queue *queue;
    drupe_event *gate = bench_gate(), *events[3];
    drupe_times times;
    _Atomic(int) runs = 0;
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_PROFILING, &queue));
    drupe_memory *memory = bench_memory(queue, DRUPE_MEM_SHARED, 4096);
    OK(bench_fill(queue, memory, 1, gate, &events[0]));
    events[1] = host_function(queue, add_one, &runs, NULL);
    OK(bench_barrier(queue, NULL, &events[2]));
    FAILS(drupe_event_times(events[0], &times), DRUPE_E_BUSY, "");
    bench_open_gate(gate);
    for (size_t i = 0; i < 3; i++) OK(drupe_event_wait(events[i], LONG));
    for (size_t i = 0; i < 2; i++) {
        OK(drupe_event_times(events[i], &times));
        assert_true(times.queued <= times.submitted && times.started <= times.ended && times.ended);
    }
    OK(drupe_queue_wait(queue, LONG));
    release_all(events, 3);
    drupe_memory_release(memory);
    drupe_queue_release(queue);
}

static void displays_may_ask_for_times(void **state)
{
    (void)state;
    drupe_queue *queue;
    assert_false(drupe_queue_profile(true));
    OK(drupe_queue_open(bench.context, bench.device, 0, &queue));
    assert_true(drupe_queue_flags_of(queue) & DRUPE_QUEUE_PROFILING);
    assert_true(drupe_queue_profile(false));
    drupe_queue_release(queue);
}

/* --- Opening ---------------------------------------------------------------------------------------------
 */

static void queues_belong_to_a_member_of_their_context(void **state)
{
    (void)state;
    drupe_queue *queue = NULL, *list[8];
    FAILS(drupe_queue_open(bench.context, bench.device, 1u << 20, &queue), DRUPE_E_INVALID, "0x100000");
    FAILS(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_PRIORITY_LOW | DRUPE_QUEUE_PRIORITY_HIGH,
                           &queue),
          DRUPE_E_INVALID, "not both");
    OK(drupe_fault_plan("queue_open:1=NO_MEMORY"));
    FAILS(drupe_queue_open(bench.context, bench.device, 0, &queue), DRUPE_E_NO_MEMORY, "Planned");
    assert_null(queue);
    OK(drupe_fault_plan(NULL));
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_PRIORITY_LOW, &queue));
    assert_ptr_equal(drupe_queue_device(queue), bench.device);
    assert_ptr_equal(drupe_queue_context(queue), bench.context);
    assert_true(drupe_queue_number(queue) > drupe_queue_number(bench.queue));
    assert_true(drupe_queue_last(queue));
    assert_int_equal(drupe_queue_list(list, 8), 2);
    assert_ptr_equal(list[0], queue); /* made last */
    assert_ptr_equal(list[1], bench.queue);
    assert_false(drupe_queue_last(queue));
    for (size_t i = 0; i < 2; i++) drupe_queue_release(list[i]);
    assert_int_equal(drupe_queue_list(list, 1), 1);
    drupe_queue_release(list[0]);
    drupe_queue_release(queue);
    drupe_queue_release(drupe_queue_retain(NULL));
}

static void a_device_has_one_default_queue(void **state)
{
    (void)state;
    drupe_queue *first, *second;
    drupe_context *context;
    OK(drupe_device_queue(bench.device, &first));
    OK(drupe_device_queue(bench.device, &second));
    assert_ptr_equal(first, second);
    OK(drupe_device_context(bench.device, &context));
    assert_ptr_equal(drupe_queue_context(first), context);
    drupe_context_release(context);
    drupe_queue_release(first);
    drupe_queue_release(second);
}

static void parts_have_queues_of_their_own(void **state)
{
    (void)state;
    drupe_device *part;
    drupe_queue *first, *second, *root;
    drupe_event *event;
    drupe_context *narrow;
    if (drupe_device_select("host:cpu:0.0", &part) != DRUPE_OK) skip(); /* one processor */
    OK(drupe_context_open(&part, 1, &narrow));
    FAILS(drupe_queue_open(narrow, bench.device, 0, &first), DRUPE_E_INVALID, "does not belong");
    drupe_context_release(narrow);
    OK(drupe_device_queue(part, &first));
    OK(drupe_device_queue(part, &second));
    OK(drupe_device_queue(bench.device, &root));
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, root);
    assert_ptr_equal(drupe_queue_device(first), part);
    OK(bench_barrier(first, NULL, &event));
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_queue_release(first);
    drupe_queue_release(second);
    OK(drupe_device_queue(part, &first)); /* the old one is gone */
    drupe_queue_release(first);
    drupe_queue_release(root);
    drupe_device_release(part);
}

static void the_native_queue_is_the_drivers(void **state)
{
    (void)state;
    void *handle;
    FAILS(drupe_queue_native(bench.queue, &handle), DRUPE_E_UNSUPPORTED, "");
}

/* --- Failures of the driver ------------------------------------------------------------------------------
 */

static void what_a_driver_refuses_has_not_happened(void **state)
{
    (void)state;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 800);
    drupe_event *event;
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    OK(drupe_fault_plan("submit_fill:1=NO_MEMORY submit_kernel:1=NO_MEMORY"));
    FAILS(bench_fill(bench.queue, memory, 2, NULL, &event), DRUPE_E_NO_MEMORY, "Planned");
    assert_null(event);
    FAILS(bench_mad(bench.queue, memory, memory, 100, 0, 7, NULL, &event), DRUPE_E_NO_MEMORY, "Planned");
    assert_null(event);
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(memory, 1, 800);
    OK(drupe_memory_contents(memory));
    OK(drupe_fault_plan(NULL));
    drupe_memory_release(memory);
}

static void deferred_work_that_is_refused_fails(void **state)
{
    (void)state;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 800);
    drupe_event *event, *behind, *gate = bench_gate();
    OK(bench_fill(bench.queue, memory, 1, gate, &event));
    OK(bench_barrier(bench.queue, NULL, &behind));
    OK(drupe_fault_plan("submit_fill:1=NO_MEMORY"));
    bench_open_gate(gate);
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY, "Planned");
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_NO_MEMORY, "Planned");
    OK(drupe_fault_plan(NULL));
    drupe_event_release(event);
    drupe_event_release(behind);
    drupe_memory_release(memory);
}

static void an_event_that_fails_late_stops_what_follows(void **state)
{
    (void)state;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 800);
    drupe_event *event, *behind;
    OK(drupe_fault_plan("event:1=late"));
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    assert_int_equal(drupe_event_wait(event, LONG), DRUPE_E_INTERNAL);
    FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, "");
    OK(bench_barrier(bench.queue, NULL, &behind));
    OK(drupe_event_wait(behind, LONG)); /* it was told */
    OK(drupe_fault_plan(NULL));
    drupe_event_release(event);
    drupe_event_release(behind);
    drupe_memory_release(memory);
}

/* --- How far ahead ---------------------------------------------------------------------------------------
 */

static unsigned pauses;
static drupe_status pause_answer;
static drupe_event *pause_gate;

static drupe_status on_pause(drupe_queue *queue, uint64_t timeout_ns)
{
    pauses++;
    if (pause_gate) bench_open_gate(pause_gate);
    pause_gate = NULL;
    if (pause_answer == DRUPE_OK) (void)drupe_queue_idle(queue, timeout_ns);
    return pause_answer;
}

static const drupe_observer pausing = {.pause = on_pause};

static struct {
    drupe_queue *queue;
    drupe_event *event; /* on it, a host function behind a gate */
} before;

/* So many submissions wait for it. */
static void get_ahead(drupe_event *gate, size_t count)
{
    static _Atomic(int) runs;
    OK(drupe_queue_open(bench.context, bench.device, 0, &before.queue));
    drupe_library_observe(&pausing);
    pauses = 0;
    before.event = host_function(before.queue, add_one, &runs, gate);
    for (size_t i = 0; i < count; i++) OK(bench_barrier(bench.queue, before.event, NULL));
}

static void catch_up(void)
{
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(before.event);
    drupe_library_observe(NULL);
    drupe_queue_release(before.queue);
}

static void a_program_may_be_ahead_so_far(void **state)
{
    (void)state;
    drupe_library_observe(&pausing);
    pauses = 0;
    pause_answer = DRUPE_OK;
    OK(drupe_queue_pace(bench.queue)); /* nothing is ahead */
    assert_int_equal(pauses, 0);
    pause_gate = bench_gate();
    get_ahead(pause_gate, 600);
    OK(drupe_queue_pace(bench.queue));
    assert_true(pauses > 0);
    assert_true(drupe_queue_pending(bench.queue) <= 384);
    catch_up();
}

static void an_interrupt_ends_the_pause(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    get_ahead(gate, 600);
    pause_answer = DRUPE_E_CANCELLED;
    FAILS(drupe_queue_pace(bench.queue), DRUPE_E_CANCELLED, "interrupted while it waited for earlier work");
    pause_answer = DRUPE_E_BUSY; /* this thread must not wait now */
    pauses = 0;
    OK(drupe_queue_pace(bench.queue));
    assert_int_equal(pauses, 1);
    OK(drupe_queue_pace(bench.queue)); /* waiting did not help: not again before something ends */
    assert_int_equal(pauses, 1);
    bench_open_gate(gate);
    catch_up();
}

static void nobody_waits_for_what_it_has_to_end_itself(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    drupe_library_observe(&pausing);
    pauses = 0;
    for (size_t i = 0; i < 600; i++) OK(bench_barrier(bench.queue, gate, NULL));
    OK(drupe_queue_pace(bench.queue));
    assert_int_equal(pauses, 0);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_library_observe(NULL);
}

static void large_products_may_be_ahead_less(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    pause_answer = DRUPE_E_BUSY;
    get_ahead(gate, 10);
    OK(drupe_queue_pace_heavy(bench.queue, 1000));  /* does not count */
    OK(drupe_queue_pace_heavy(bench.queue, 1.5e8)); /* 33 of these may be ahead */
    assert_int_equal(pauses, 0);
    OK(drupe_queue_pace_heavy(bench.queue, 1e9)); /* five */
    assert_int_equal(pauses, 1);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    for (size_t i = 0; i < 2; i++) OK(bench_barrier(bench.queue, NULL, NULL));
    OK(drupe_queue_pace_heavy(bench.queue, 1e15)); /* two of any size */
    assert_int_equal(pauses, 1);
    catch_up();
}

int main(void)
{
#define TEST(name)                                                                                           \
    cmocka_unit_test_setup_teardown(name, setup, bench_teardown),                                            \
        cmocka_unit_test_setup_teardown(name, setup_poor, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_stands_behind_held_work_is_held),
        TEST(queues_wait_for_each_other_by_events),
        TEST(host_functions_run_in_their_turn),
        TEST(a_failure_without_a_reason_gets_one),
        TEST(host_functions_of_many_queues_run_together),
        TEST(the_caller_ends_its_events),
        TEST(a_turn_is_the_callers_once_it_has_come),
        TEST(a_turn_behind_a_failure_fails),
        TEST(a_wait_is_for_what_stands_before_an_early_failure),
        TEST(an_event_that_failed_already_fails_what_waits),
        TEST(profiling_queues_have_times),
        TEST(displays_may_ask_for_times),
        TEST(queues_belong_to_a_member_of_their_context),
        TEST(a_device_has_one_default_queue),
        TEST(parts_have_queues_of_their_own),
        TEST(the_native_queue_is_the_drivers),
        TEST(what_a_driver_refuses_has_not_happened),
        TEST(deferred_work_that_is_refused_fails),
        TEST(an_event_that_fails_late_stops_what_follows),
        TEST(a_program_may_be_ahead_so_far),
        TEST(an_interrupt_ends_the_pause),
        TEST(nobody_waits_for_what_it_has_to_end_itself),
        TEST(large_products_may_be_ahead_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
