/* Losses and faults at their edges: what a device had done before, what is not known of a fault, and checked
 * mode's word on it. */
#include "queue/script_bench.h"
#include <signal.h>

static const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "The device went away"};

/* --- Losses ----------------------------------------------------------------------------------------------
 */

static void a_driver_that_answers_tells_what_was_over(void **state)
{
    (void)state;
    drupe_event *over = script_fill(bench.queue, NULL), *open = script_fill(bench.queue, NULL);
    test_script_finish(over, true);
    drupe_core_device_lost(bench.device, &error, false);
    OK(drupe_event_wait(over, 0));
    FAILS(drupe_event_wait(open, 0), DRUPE_E_DEVICE_LOST, "The device went away");
    assert_int_equal(script_take_failures(), 0);
    drupe_event_release(over);
    drupe_event_release(open);
}

static _Atomic(int) closed;

static void event_close(drupe_event *event)
{
    (void)event;
    atomic_fetch_add(&closed, 1);
}

/* The driver may still know of the event, so its memory waits for the queue's end. */
static void a_silent_driver_is_not_told_of_the_end_of_events(void **state)
{
    (void)state;
    drupe_event *events[3];
    drupe_queue *queue = script_queue(0);
    bench_table.event_close = event_close;
    for (int i = 0; i < 3; i++) {
        events[i] = script_fill(queue, NULL);
        test_script_finish(events[i], true);
        OK(drupe_event_wait(events[i], LONG));
    }
    drupe_queue_release(queue); /* no memory of events is kept any more, and only they keep the queue */
    drupe_event_release(events[0]);
    assert_int_equal(closed, 1);
    const drupe_event *const last = events[1];
    drupe_core_device_lost(bench.device, &error, true);
    drupe_event_release(events[1]);
    assert_int_equal(closed, 1);
    assert_ptr_equal((void *)(atomic_load(&queue->store.returned) & ~(uintptr_t)1), last);
    drupe_event_release(events[2]); /* and with it the queue */
    assert_int_equal(closed, 1);
}

static _Atomic(int) flushes;

static drupe_status queue_flush(drupe_queue *queue)
{
    (void)queue;
    atomic_fetch_add(&flushes, 1);
    return DRUPE_OK;
}

/* It may still write to what its work uses, however that ended for the program. */
static void what_a_silent_driver_has_stays_as_it_is(void **state)
{
    (void)state;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    drupe_event *event;
    bench_table.queue_flush = queue_flush;
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    assert_int_equal(flushes, 0);
    drupe_core_device_lost(bench.device, &error, true);
    FAILS(drupe_event_wait(event, 0), DRUPE_E_DEVICE_LOST, "The device went away");
    drupe_queue_flush(bench.queue);
    assert_int_equal(flushes, 0);
    drupe_queue_collect(bench.queue);
    assert_int_equal(bench.queue->order.count, 1);
    assert_true(drupe_memory_in_use(memory));
    drupe_event_release(event);
    drupe_memory_release(memory);
}

static void cancel_nothing(drupe_queue *queue, uint64_t begun)
{
    (void)queue;
    (void)begun;
    fail_msg("a silent driver is not called");
}

static drupe_status ask_nothing(drupe_event *event, drupe_event_state *state)
{
    (void)event, (void)state;
    fail_msg("a silent driver is not asked");
    return DRUPE_OK;
}

static void lose(void)
{
    bench_table.event_state = ask_nothing;
    drupe_core_device_lost(bench.device, &error, true);
}

static void lose_next(void)
{
    script_at_lock(&bench.queue->lock, lose);
}

/* Lost between the look at what is over and the choice of what is given up. */
static void what_is_lost_meanwhile_is_not_given_up(void **state)
{
    (void)state;
    size_t left, given_up;
    drupe_event *first = script_fill(bench.queue, NULL), *second = script_fill(bench.queue, NULL);
    bench_table.queue_cancel = cancel_nothing;
    script_at_lock(&bench.queue->lock, lose_next);
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(given_up, 0);
    FAILS(drupe_event_wait(first, 0), DRUPE_E_DEVICE_LOST, "The device went away");
    FAILS(drupe_event_wait(second, 0), DRUPE_E_DEPENDENCY, "The device went away");
    drupe_event_release(first);
    drupe_event_release(second);
}

/* --- Faults ----------------------------------------------------------------------------------------------
 */

static void a_backend_may_know_nothing_of_faults(void **state)
{
    (void)state;
    const drupe_fault fault = {.signal = SIGSEGV, .address = 0x10, .owner = &bench};
    bench_table.device_fault = NULL;
    drupe_fault_deliver(&fault);
    OK(drupe_loss_check(bench.device));
}

static void a_function_without_a_name_is_not_named(void **state)
{
    (void)state;
    const drupe_fault fault = {.signal = SIGSEGV, .address = 0x10, .instruction = (uintptr_t)lose};
    test_script.fault = DRUPE_E_DEVICE_LOST;
    drupe_fault_deliver(&fault);
    assert_int_equal(drupe_loss_check(bench.device), DRUPE_E_DEVICE_LOST);
    assert_non_null(strstr(drupe_error_last()->text, "SIGSEGV at address 0x10. The driver"));
}

static void signals_without_a_name_are_signals(void **state)
{
    static const int signals[] = {-1, 0, SIGUSR1, 1000};
    (void)state;
    for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++)
        assert_string_equal(drupe_fault_signal(signals[i]), "a signal");
    assert_string_equal(drupe_fault_signal(SIGBUS), "SIGBUS");
}

static bool out_of_bounds;

static bool explain(const drupe_fault *fault, char *text, size_t size)
{
    (void)fault;
    if (out_of_bounds) snprintf(text, size, ", 8 bytes behind 'a'");
    return out_of_bounds;
}

static void checked_mode_knows_memory_that_a_fault_ran_out_of(void **state)
{
    static const drupe_checker checker = {.fault = explain};
    (void)state;
    char text[128];
    drupe_fault fault = {.signal = SIGSEGV, .address = 0x10};
    atomic_store(&drupe_checker_now, &checker);
    for (int i = 0; i < 2; i++) {
        out_of_bounds = i == 1;
        assert_int_equal(drupe_core_fault_text(&fault, text, sizeof text),
                         i ? DRUPE_E_CHECK : DRUPE_E_DEVICE_LOST);
        assert_string_equal(text,
                            i ? "SIGSEGV at address 0x10, 8 bytes behind 'a'" : "SIGSEGV at address 0x10");
    }
    fault.signal = SIGFPE; /* no address is to blame */
    assert_int_equal(drupe_core_fault_text(&fault, text, sizeof text), DRUPE_E_DEVICE_LOST);
    fault.signal = SIGSEGV;
    test_script.fault = DRUPE_E_DEVICE_LOST;
    drupe_fault_deliver(&fault);
    assert_int_equal(drupe_loss_check(bench.device), DRUPE_E_DEVICE_LOST);
    assert_non_null(strstr(drupe_error_last()->text, "Out of bounds: A thread of the driver faulted"));
    atomic_store(&drupe_checker_now, NULL);
}

/* Each in a process of its own: a device is lost for the process. */
int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown_lost)
    const struct CMUnitTest tests[] = {
        TEST(a_driver_that_answers_tells_what_was_over),
        TEST(a_silent_driver_is_not_told_of_the_end_of_events),
        TEST(what_a_silent_driver_has_stays_as_it_is),
        TEST(what_is_lost_meanwhile_is_not_given_up),
        TEST(a_backend_may_know_nothing_of_faults),
        TEST(a_function_without_a_name_is_not_named),
        TEST(signals_without_a_name_are_signals),
        TEST(checked_mode_knows_memory_that_a_fault_ran_out_of),
    };
    return script_run_apart(tests, DRUPE_COUNT_OF(tests));
}
