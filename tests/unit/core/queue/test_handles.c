/* Queues: handles that come back, lists, handles of drivers, letting go, times that come later, and whose
 * failure it was. */
#include "queue/script_bench.h"

/* --- Handles ---------------------------------------------------------------------------------------------
 */

static drupe_queue *leaving;
static bool seen_leaving;
void __real_drupe_queue_leave(drupe_queue *queue);
void __wrap_drupe_queue_leave(drupe_queue *queue);

/* Another thread walks over the queues while the last reference has gone. */
void __wrap_drupe_queue_leave(drupe_queue *queue)
{
    if (queue == leaving) {
        drupe_queue *list[8];
        for (drupe_queue *at = drupe_queue_walk(NULL); at; at = drupe_queue_walk(at)) {
            if (at == leaving) seen_leaving = true;
        }
        const size_t count = drupe_queue_list(list, 8);
        for (size_t i = 0; i < count; i++) {
            if (list[i] == leaving) seen_leaving = true;
            drupe_queue_release(list[i]);
        }
        leaving = NULL;
    }
    __real_drupe_queue_leave(queue);
}

static void a_queue_that_goes_is_found_by_nobody(void **state)
{
    (void)state;
    drupe_queue *queue = script_queue(0);
    seen_leaving = false;
    leaving = queue;
    drupe_queue_release(queue);
    assert_null(leaving);
    assert_false(seen_leaving);
}

static void a_handle_may_come_back(void **state)
{
    (void)state;
    drupe_queue *queue = script_queue(0), *list[8];
    drupe_event *event;
    script.finishes = true;
    OK(bench_barrier(queue, NULL, NULL));
    OK(bench_barrier(queue, NULL, &event));
    drupe_queue_release(queue);
    assert_int_equal(drupe_queue_list(list, 8), 1); /* only the event has it */
    assert_ptr_equal(list[0], bench.queue);
    drupe_queue_release(list[0]);
    queue = drupe_queue_retain(drupe_event_queue(event));
    assert_int_equal(drupe_queue_list(list, 8), 2);
    for (size_t i = 0; i < 2; i++) drupe_queue_release(list[i]);
    drupe_event_release(event);
    OK(bench_barrier(queue, NULL, &event)); /* it lives again */
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_queue_release(queue);
    drupe_queue_collect(NULL);
}

static void blockers_are_as_many_as_wanted(void **state)
{
    (void)state;
    drupe_event *gates[3], *events[4], *event;
    for (size_t i = 0; i < 3; i++) gates[i] = bench_gate();
    const drupe_submission s = {.queue = bench.queue, .waits = gates, .nwaits = 3};
    OK(drupe_submit_barrier(&s, &event));
    assert_int_equal(drupe_queue_blockers(bench.queue, events, 2), 2);
    assert_ptr_equal(events[1], gates[1]);
    script_release(events, 2);
    assert_int_equal(drupe_queue_blockers(bench.queue, events, 4), 3);
    script_release(events, 3);
    for (size_t i = 0; i < 3; i++) OK(drupe_event_finish(gates[i], NULL));
    script_finish_all();
    OK(drupe_event_wait(event, LONG));
    script_release(gates, 3);
    drupe_event_release(event);
}

/* --- What drivers may know of a queue --------------------------------------------------------------------
 */

static drupe_event *newest(void)
{
    pthread_mutex_lock(&bench.queue->lock);
    drupe_event *event = drupe_queue_newest(bench.queue);
    pthread_mutex_unlock(&bench.queue->lock);
    return event;
}

static void the_newest_is_what_the_driver_had_last(void **state)
{
    (void)state;
    drupe_event *event, *gate = bench_gate(), *held;
    assert_null(newest());
    event = script_fill(bench.queue, NULL);
    assert_ptr_equal(newest(), event);
    OK(bench_barrier(bench.queue, gate, &held));
    assert_null(newest()); /* it does not have the last one yet */
    OK(drupe_event_finish(gate, NULL));
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    script_release((drupe_event *[]){event, gate, held}, 3);
}

static drupe_status native(drupe_queue *queue, void **handle)
{
    *handle = queue;
    return DRUPE_OK;
}

static unsigned timed;

static drupe_status queue_time(drupe_queue *queue)
{
    (void)queue;
    timed++;
    return DRUPE_OK;
}

/* What others give work to stays as it is; what has times already gets them once. */
static void a_shared_queue_gets_no_times(void **state)
{
    (void)state;
    void *handle;
    drupe_queue *shared = script_queue(0), *has = script_queue(DRUPE_QUEUE_PROFILING);
    bench_table.queue_native = native;
    for (int i = 0; i < 2; i++) {
        handle = NULL;
        OK(drupe_queue_native(shared, &handle));
        assert_ptr_equal(handle, shared);
    }
    timed = 0;
    (void)drupe_queue_profile(true); /* it cannot be told yet */
    assert_int_equal(timed, 0);
    assert_false(drupe_queue_flags_of(bench.queue) & DRUPE_QUEUE_PROFILING);
    bench_table.queue_time = queue_time;
    (void)drupe_queue_profile(true);
    assert_int_equal(timed, 1);
    assert_true(drupe_queue_flags_of(bench.queue) & DRUPE_QUEUE_PROFILING);
    assert_false(drupe_queue_flags_of(shared) & DRUPE_QUEUE_PROFILING);
    assert_true(drupe_queue_profile(false));
    drupe_queue_release(shared);
    drupe_queue_release(has);
}

static void an_unordered_queue_infers_nothing(void **state)
{
    (void)state;
    bench_table.gpu_faults_last = true;
    bench.device->type = DRUPE_DEVICE_GPU;
    drupe_queue *ordered = script_queue(0), *unordered = script_queue(DRUPE_QUEUE_OUT_OF_ORDER);
    assert_true(ordered->infers);
    assert_false(unordered->infers);
    bench.device->type = DRUPE_DEVICE_CPU;
    drupe_queue_release(ordered);
    drupe_queue_release(unordered);
}

/* --- Collecting and letting go ---------------------------------------------------------------------------
 */

static void collecting_may_be_asked_of_one_device_or_all(void **state)
{
    (void)state;
    drupe_device *other;
    OK(drupe_device_select("opencl", &other));
    drupe_event *event = script_fill(bench.queue, NULL);
    test_script_finish(event, true);
    const drupe_memory_users *users = drupe_memory_users_get();
    users->collect(other);
    assert_true(drupe_memory_in_use(script.memory));
    users->collect(NULL);
    assert_false(drupe_memory_in_use(script.memory));
    drupe_device_release(other);
    drupe_event_release(event);
}

/* Without a mark behind it nothing proves silent work over. */
static void what_cannot_be_proven_over_is_kept(void **state)
{
    (void)state;
    script_silent(bench.queue);
    script.refuses = DRUPE_E_NO_MEMORY;
    drupe_queue_collect(bench.queue);
    assert_true(drupe_memory_in_use(script.memory));
    FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_NO_MEMORY, "The script refuses.");
    script.refuses = DRUPE_OK;
    script.finishes = true;
    drupe_queue_collect(bench.queue);
    assert_false(drupe_memory_in_use(script.memory));
}

static unsigned waits;
static drupe_status wait_answers[4];

static drupe_status queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue, (void)timeout_ns;
    const drupe_status answer = waits < DRUPE_COUNT_OF(wait_answers) ? wait_answers[waits] : DRUPE_OK;
    waits++;
    return answer == DRUPE_OK ? DRUPE_OK : drupe_error_set(answer, "The script says no");
}

/* Then the driver itself is asked if all is over. */
static void a_queue_ends_without_a_mark(void **state)
{
    (void)state;
    drupe_queue *queue = script_queue(0);
    bench_table.queue_wait = queue_wait;
    for (int good = 0; good < 2; good++) {
        script.refuses = DRUPE_OK;
        script_silent(queue);
        script.refuses = DRUPE_E_NO_MEMORY;
        waits = 0;
        wait_answers[0] = good ? DRUPE_OK : DRUPE_E_INTERNAL;
        drupe_queue_finish(queue, UINT64_MAX);
        assert_int_equal(waits, 1);
        assert_true(drupe_memory_in_use(script.memory)); /* nothing has proven anything */
    }
    /* With a time, nobody else is asked. */
    drupe_event *gate = bench_gate(), *held;
    script.refuses = DRUPE_OK;
    OK(bench_barrier(queue, gate, &held));
    waits = 0;
    drupe_queue_finish(queue, 0);
    assert_int_equal(waits, 0);
    OK(drupe_event_finish(gate, NULL));
    script_finish_all();
    OK(drupe_queue_wait(queue, LONG));
    script_release((drupe_event *[]){gate, held}, 2);
    (void)script_take_failures();
    drupe_queue_release(queue);
}

/* What failed proves nothing about the silent work before it: the driver is asked until it knows. */
static void behind_a_failure_the_driver_is_asked(void **state)
{
    (void)state;
    drupe_event *event;
    bench_table.queue_wait = queue_wait;
    for (int in_time = 0; in_time < 2; in_time++) {
        script_silent(bench.queue);
        event = script_fill(bench.queue, NULL);
        test_script_finish(event, false);
        waits = 0;
        for (size_t i = 0; i < DRUPE_COUNT_OF(wait_answers); i++)
            wait_answers[i] = in_time && i == 2 ? DRUPE_OK : DRUPE_E_TIMEOUT;
        if (in_time)
            FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INTERNAL, "The script says no");
        else
            FAILS(drupe_queue_wait(bench.queue, 0), DRUPE_E_TIMEOUT, "");
        assert_int_equal(waits, in_time ? 3 : 1);
        drupe_event_release(event);
    }
    waits = DRUPE_COUNT_OF(wait_answers);
    drupe_memory_accept(script.memory);
    (void)script_take_failures();
}

/* --- Checked mode ----------------------------------------------------------------------------------------
 */

static void checked_mode_hears_of_waits_and_ends(void **state)
{
    (void)state;
    const drupe_checker *before = atomic_load(&drupe_checker_now);
    drupe_queue *queue = script_queue(0), *inner = script_queue(0);
    drupe_watch *watch;
    drupe_event *event, *taken = NULL;
    void *user;
    script.finishes = true;
    atomic_store(&drupe_checker_now, &script_checker);
    atomic_fetch_add(&drupe_check_depth, 1);
    script_told = (struct script_told){0};
    event = script_fill(queue, NULL);
    const uint64_t latest = drupe_inflight_latest();
    OK(drupe_queue_wait(queue, LONG));
    assert_int_equal(script_told.queues, 1);
    assert_int_equal(script_told.number, latest);
    assert_int_equal(script_told.memory, 1);
    script_told.memory_answer = DRUPE_E_CHECK;
    FAILS(drupe_queue_wait(queue, LONG), DRUPE_E_CHECK, "Checked mode says no.");
    script_told.memory_answer = DRUPE_OK;
    OK(drupe_watch_open(NULL, NULL, &watch));
    OK(drupe_watch_add(watch, event, NULL));
    script_told.events = 0;
    while (!drupe_watch_take(watch, &taken, &user)) sched_yield();
    assert_int_equal(script_told.events, 1);
    drupe_event_release(taken);
    drupe_event_release(event);
    OK(drupe_submit_turn(&(drupe_submission){.queue = bench.queue}, &event));
    OK(drupe_watch_turn(watch, event, NULL));
    while (!drupe_watch_take(watch, &taken, &user)) sched_yield();
    assert_int_equal(script_told.events, 1); /* it is the caller's turn, and not over */
    OK(drupe_event_finish(event, NULL));
    drupe_event_release(taken);
    drupe_event_release(event);
    drupe_watch_close(watch, NULL);
    script_told.queues = 0;
    drupe_queue_release(queue);
    assert_int_equal(script_told.queues, 1); /* who lets it go has waited for it */
    assert_int_equal(script_told.number, UINT64_MAX);
    assert_int_equal(script_told.closed, 1);
    drupe_queue_release_inside(inner);
    assert_int_equal(script_told.queues, 1); /* core's own wait orders nothing for the program */
    assert_int_equal(script_told.closed, 2);
    atomic_fetch_sub(&drupe_check_depth, 1);
    atomic_store(&drupe_checker_now, before);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_queue_that_goes_is_found_by_nobody),
        TEST(a_handle_may_come_back),
        TEST(blockers_are_as_many_as_wanted),
        TEST(the_newest_is_what_the_driver_had_last),
        TEST(a_shared_queue_gets_no_times),
        TEST(an_unordered_queue_infers_nothing),
        TEST(collecting_may_be_asked_of_one_device_or_all),
        TEST(what_cannot_be_proven_over_is_kept),
        TEST(a_queue_ends_without_a_mark),
        TEST(behind_a_failure_the_driver_is_asked),
        TEST(checked_mode_hears_of_waits_and_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
