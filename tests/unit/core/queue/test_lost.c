/* Devices that are lost, and faults of a driver's threads: whose work it was, what fails, what goes on. */
#include "queue/script_bench.h"
#include <dlfcn.h>
#include <signal.h>
#include <time.h>

static drupe_event *events[3];

static int teardown(void **state)
{
    for (size_t i = 0; i < DRUPE_COUNT_OF(events); i++) {
        if (events[i]) test_script_finish(events[i], true);
        drupe_event_release(events[i]);
        events[i] = NULL;
    }
    return script_teardown_lost(state);
}

static void submit(size_t index, const char *label)
{
    const drupe_submission s = {.queue = bench.queue, .label = label};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(script.memory), "x", 1, 64, &events[index]));
}

static drupe_error reason(const char *text)
{
    drupe_error_set(DRUPE_E_DEVICE_LOST, "%s", text);
    return *drupe_error_last();
}

/* A thread in a driver may hold a queue's lock; while it is waited for it may give it up. */
static pthread_mutex_t *held;
static unsigned sleeps, gives_up_after;
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)wanted, (void)left;
    if (++sleeps == gives_up_after) pthread_mutex_unlock(held);
    return 0;
}

static void hold(drupe_queue *queue, unsigned give_up_after)
{
    sleeps = 0;
    gives_up_after = give_up_after;
    held = &queue->lock;
    pthread_mutex_lock(held);
}

static void a_queue_that_is_held_is_waited_for_a_while(void **state)
{
    (void)state;
    drupe_text text = {0};
    submit(0, "scale");
    hold(bench.queue, 3);
    drupe_loss_suspects(bench.device, "", &text);
    assert_non_null(strstr(drupe_text_get(&text), "'scale'"));
    assert_int_equal(sleeps, 3);
    drupe_text_clear(&text);
    hold(bench.queue, 0);
    drupe_loss_suspects(bench.device, "", &text); /* it finds out by itself */
    assert_int_equal(text.length, 0);
    assert_int_equal(sleeps, 100);
    const drupe_error error = reason("The device went away");
    drupe_core_device_lost(bench.device, &error, true);
    assert_int_equal(sleeps, 200);
    assert_false(drupe_phase_over(drupe_event_phase(events[0])));
    pthread_mutex_unlock(held);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_FAILED);
}

static void the_named_work_is_the_one_that_failed(void **state)
{
    (void)state;
    drupe_failure failure;
    const drupe_error error = reason("The device went away");
    const drupe_submission first = {.queue = bench.queue, .label = "scale"},
                           second = {.queue = bench.queue, .label = "add"};
    OK(drupe_submit_fill(&first, drupe_memory_pointer(script.memory), "x", 1, 64, NULL));
    OK(drupe_submit_fill(&second, drupe_memory_pointer(script.memory), "x", 1, 64, NULL));
    drupe_device_lose(bench.device, "_pocl_kernel_add_workgroup", &error, true);
    assert_true(drupe_failure_take(&failure));
    assert_string_equal(failure.label, "add");
}

static void queues_of_other_devices_are_not_lost(void **state)
{
    (void)state;
    drupe_device *other;
    drupe_context *context;
    drupe_queue *queue = bench.queue, *far;
    const drupe_error error = reason("The device went away");
    OK(drupe_device_select("opencl", &other));
    OK(drupe_device_context(other, &context));
    OK(drupe_queue_open(context, other, 0, &far));
    bench.queue = far;
    OK(drupe_submit_barrier(&(drupe_submission){.queue = far}, NULL));
    OK(drupe_submit_barrier(&(drupe_submission){.queue = far}, &events[0]));
    bench.queue = queue;
    drupe_core_device_lost(bench.device, &error, true);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_SUBMITTED);
    test_script_finish(events[0], true);
    OK(drupe_queue_wait(far, 0));
    drupe_queue_release(far);
    drupe_context_release(context);
    drupe_device_release(other);
}

/* Nothing can be said then, so nothing is. */
static void without_memory_for_the_reason_nothing_is_lost(void **state)
{
    (void)state;
    const drupe_error error = reason("The device went away");
    submit(0, "first");
    wrap_plan(WRAP_MALLOC, 1);
    drupe_core_device_lost(bench.device, &error, true);
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    OK(drupe_loss_check(bench.device));
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_SUBMITTED);
}

/* A driver that still answers tells by itself what failed. */
static void a_driver_that_answers_is_asked(void **state)
{
    (void)state;
    const drupe_error error = reason("The device went away");
    submit(0, "first");
    submit(1, "second");
    drupe_core_device_lost(bench.device, &error, false);
    assert_false(drupe_phase_over(drupe_event_phase(events[0]))); /* nobody has looked */
    test_script_finish(events[0], true);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_COMPLETE);
    assert_int_equal(drupe_event_state_of(events[1]), DRUPE_EVENT_FAILED);
}

static unsigned pauses;

static drupe_status lose_in_pause(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue, (void)timeout_ns;
    const drupe_error error = reason("The device went away");
    pauses++;
    drupe_core_device_lost(bench.device, &error, false);
    return DRUPE_OK;
}

static const drupe_observer losing = {.pause = lose_in_pause};

static void a_program_that_is_ahead_does_not_wait_for_what_is_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) submit(i, "large");
    drupe_library_observe(&losing);
    OK(drupe_queue_pace_heavy(bench.queue, 1e15)); /* two of these may be ahead */
    assert_int_equal(pauses, 1);
    OK(drupe_queue_pace_heavy(bench.queue, 1e15));
    assert_int_equal(pauses, 1);
    drupe_library_observe(NULL);
}

static void what_a_silent_driver_keeps_is_not_waited_for(void **state)
{
    (void)state;
    const drupe_error error = reason("The device went away");
    for (size_t i = 0; i < 3; i++) submit(i, "large");
    drupe_core_device_lost(bench.device, &error, true);
    drupe_library_observe(&losing);
    OK(drupe_queue_pace_heavy(bench.queue, 1e15));
    assert_int_equal(pauses, 0);
    assert_int_equal(atomic_load(&bench.queue->order.count), 3);
    drupe_library_observe(NULL);
}

static void a_silent_driver_is_not_asked_again(void **state)
{
    (void)state;
    const drupe_error error = reason("The device went away");
    submit(0, "first");
    submit(1, "second");
    drupe_core_device_lost(bench.device, &error, true);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_FAILED);
    assert_string_equal(drupe_event_error(events[0])->text, "The device went away");
    test_script_finish(events[1], true); /* too late: nobody asks */
    assert_int_equal(drupe_event_state_of(events[1]), DRUPE_EVENT_FAILED);
    assert_int_equal(drupe_event_wait(events[1], 0), DRUPE_E_DEPENDENCY);
    const drupe_submission s = {.queue = bench.queue};
    assert_int_equal(drupe_submit_fill(&s, drupe_memory_pointer(script.memory), "x", 1, 64, &events[2]),
                     DRUPE_E_DEVICE_LOST);
    assert_non_null(strstr(drupe_error_last()->text, "The device went away"));
}

static void what_was_seen_to_be_over_is_not_lost(void **state)
{
    (void)state;
    const drupe_error error = reason("The device went away");
    submit(0, "first");
    submit(1, "second");
    test_script_finish(events[0], true);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_COMPLETE);
    drupe_core_device_lost(bench.device, &error, true);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_COMPLETE);
    assert_int_equal(drupe_event_state_of(events[1]), DRUPE_EVENT_FAILED);
}

static void work_without_an_event_is_lost_too(void **state)
{
    (void)state;
    drupe_failure failure;
    const drupe_error error = reason("The device went away");
    const drupe_submission s = {.queue = bench.queue, .label = "nameless"};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(script.memory), "x", 1, 64, NULL));
    drupe_core_device_lost(bench.device, &error, true);
    assert_true(drupe_failure_take(&failure));
    assert_int_equal(failure.error.status, DRUPE_E_DEVICE_LOST);
    assert_string_equal(failure.label, "nameless");
    assert_false(drupe_failure_take(&failure));
}

/* No mark can be put behind it; the loss is told all the same. */
static void who_waits_for_a_lost_queue_hears_of_it(void **state)
{
    (void)state;
    drupe_failure failure, cause;
    const drupe_error error = reason("The device went away");
    const drupe_submission s = {.queue = bench.queue, .label = "nameless"};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(script.memory), "x", 1, 64, NULL));
    drupe_core_device_lost(bench.device, &error, true);
    assert_int_equal(drupe_queue_wait(bench.queue, UINT64_MAX), DRUPE_E_DEVICE_LOST);
    assert_true(drupe_failure_last(&failure, &cause));
    assert_string_equal(failure.label, "nameless");
    drupe_queue_finish(bench.queue, UINT64_MAX); /* returns, although the driver says no more */
    assert_true(drupe_memory_in_use(script.memory));
}

static void a_lost_out_of_order_queue_keeps_what_the_driver_may_write(void **state)
{
    (void)state;
    drupe_queue *ordered = bench.queue;
    const drupe_error error = reason("The device went away");
    OK(drupe_queue_open(drupe_queue_context(ordered), bench.device, DRUPE_QUEUE_OUT_OF_ORDER, &bench.queue));
    submit(0, "first");
    submit(1, "second");
    test_script_finish(events[0], true);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_COMPLETE);
    drupe_core_device_lost(bench.device, &error, true);
    assert_int_equal(drupe_event_state_of(events[1]), DRUPE_EVENT_FAILED);
    drupe_queue_collect(bench.queue);
    assert_int_equal(atomic_load(&bench.queue->order.count), 1);
    assert_true(drupe_memory_in_use(script.memory));
    drupe_queue_release(bench.queue);
    bench.queue = ordered;
}

static drupe_status no_times(drupe_queue *queue)
{
    (void)queue;
    fail_msg("a lost device was asked for times");
    return DRUPE_OK;
}

static void a_lost_queue_gets_no_times(void **state)
{
    (void)state;
    const drupe_error error = reason("The device went away");
    bench_table.queue_time = no_times;
    drupe_core_device_lost(bench.device, &error, true);
    (void)drupe_queue_profile(true);
    assert_false(drupe_queue_flags_of(bench.queue) & DRUPE_QUEUE_PROFILING);
}

/* Memory of events goes round, also of those that are complete from the beginning. */
static void copies_from_a_lost_device_keep_nothing(void **state)
{
    (void)state;
    const drupe_error error = reason("The device went away");
    const drupe_submission s = {.queue = bench.queue};
    char copy[64];
    const drupe_event *seen = NULL;
    size_t kinds = 0;
    drupe_core_device_lost(bench.device, &error, true);
    for (size_t i = 0; i < 100; i++) {
        drupe_event *event;
        OK(drupe_submit_copy(&s, copy, drupe_memory_pointer(script.memory), sizeof copy, &event));
        kinds += event != seen;
        seen = event;
        drupe_event_release(event);
    }
#ifndef __SANITIZE_ADDRESS__ /* which has them freed, and keeps what was */
    assert_in_range(kinds, 1, 2);
#endif
}

static void the_first_loss_counts(void **state)
{
    (void)state;
    const drupe_error error = reason("The first reason."), later = reason("A later one.");
    drupe_core_device_lost(bench.device, &error, true);
    drupe_core_device_lost(bench.device, &later, true);
    assert_int_equal(drupe_loss_check(bench.device), DRUPE_E_DEVICE_LOST);
    assert_non_null(strstr(drupe_error_last()->text, "The first reason."));
}

/* --- Faults --------------------------------------------------------------------------------------------- */

static drupe_fault fault_at(uintptr_t instruction)
{
    return (drupe_fault){
        .signal = SIGSEGV, .access = 2, .address = 0x10, .instruction = instruction, .owner = &bench};
}

static void a_fault_that_the_backend_masters_costs_nothing(void **state)
{
    (void)state;
    const drupe_fault fault = fault_at(0);
    submit(0, "first");
    test_script.fault = DRUPE_OK;
    drupe_fault_deliver(&fault);
    OK(drupe_loss_check(bench.device));
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_SUBMITTED);
}

static void a_fault_of_nobody_costs_nothing(void **state)
{
    (void)state;
    const drupe_fault fault = fault_at(0);
    drupe_fault_deliver(&fault); /* DRUPE_E_NOT_FOUND: not this device */
    OK(drupe_loss_check(bench.device));
}

static void a_fault_of_a_driver_loses_the_device(void **state)
{
    (void)state;
    const drupe_fault fault = fault_at(0);
    submit(0, "first");
    test_script.fault = DRUPE_E_DEVICE_LOST;
    drupe_fault_deliver(&fault);
    assert_int_equal(drupe_event_wait(events[0], 0), DRUPE_E_DEVICE_LOST);
    const char *text = drupe_event_error(events[0])->text;
    assert_non_null(strstr(text, "'first' (submission "));
    assert_non_null(strstr(text, "faulted on host:cpu:0: SIGSEGV"));
    assert_non_null(strstr(text, "address 0x10"));
}

static void a_fault_without_work_names_the_driver(void **state)
{
    (void)state;
    const drupe_fault fault = fault_at((uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    test_script.fault = DRUPE_E_DEVICE_LOST;
    drupe_fault_deliver(&fault);
    assert_int_equal(drupe_loss_check(bench.device), DRUPE_E_DEVICE_LOST);
    assert_non_null(strstr(drupe_error_last()->text, "A thread of the driver faulted"));
    assert_non_null(strstr(drupe_error_last()->text, " in the function 'gnu_get_libc_version'"));
}

static void faults_have_texts(void **state)
{
    (void)state;
    static const struct {
        int signal, code, access;
        const char *words;
    } cases[] = {
        {SIGSEGV, SEGV_MAPERR, 1, "SIGSEGV"},
        {SIGBUS, BUS_ADRERR, 0, "SIGBUS"},
        {SIGFPE, FPE_INTDIV, 0, "SIGFPE, division by zero"},
        {SIGILL, ILL_ILLOPC, 0, "SIGILL"},
        {SIGSEGV, SI_KERNEL, 0, "SIGSEGV at an address that no memory can have"},
        {SIGUSR1, 0, 0, "a signal"},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        char text[256];
        const drupe_fault fault = {.signal = cases[i].signal,
                                   .code = cases[i].code,
                                   .access = cases[i].access,
                                   .address = 0x123,
                                   .instruction = 0x456};
        assert_int_equal(drupe_core_fault_text(&fault, text, sizeof text), DRUPE_E_DEVICE_LOST);
        assert_int_equal(strncmp(text, cases[i].words, strlen(cases[i].words)), 0);
        const bool memory = cases[i].signal == SIGSEGV || cases[i].signal == SIGBUS;
        if (fault.code != SI_KERNEL) assert_non_null(strstr(text, memory ? "0x123" : "0x456"));
    }
}

/* Each in a process of its own: a device is lost for the process. */
int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_queue_that_is_held_is_waited_for_a_while),
        TEST(the_named_work_is_the_one_that_failed),
        TEST(queues_of_other_devices_are_not_lost),
        TEST(without_memory_for_the_reason_nothing_is_lost),
        TEST(a_driver_that_answers_is_asked),
        TEST(a_program_that_is_ahead_does_not_wait_for_what_is_lost),
        TEST(what_a_silent_driver_keeps_is_not_waited_for),
        TEST(what_was_seen_to_be_over_is_not_lost),
        TEST(a_silent_driver_is_not_asked_again),
        TEST(work_without_an_event_is_lost_too),
        TEST(who_waits_for_a_lost_queue_hears_of_it),
        TEST(a_lost_out_of_order_queue_keeps_what_the_driver_may_write),
        TEST(a_lost_queue_gets_no_times),
        TEST(copies_from_a_lost_device_keep_nothing),
        TEST(the_first_loss_counts),
        TEST(a_fault_that_the_backend_masters_costs_nothing),
        TEST(a_fault_of_nobody_costs_nothing),
        TEST(a_fault_of_a_driver_loses_the_device),
        TEST(a_fault_without_work_names_the_driver),
        TEST(faults_have_texts),
    };
    return script_run_apart(tests, DRUPE_COUNT_OF(tests));
}
