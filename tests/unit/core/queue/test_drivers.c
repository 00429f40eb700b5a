/* Queues of drivers with habits of their own: flushing, times, parts of devices, losses, and faults of host
 * functions on threads of core. */
#include "core/queue/launch.h"
#include "core_ends.h"
#include "drupe/fault.h"
#include <sched.h>

/* --- Flushing --------------------------------------------------------------------------------------------
 */

static _Atomic(int) flushes;
static drupe_status flush_answer;

static drupe_status queue_flush(drupe_queue *queue)
{
    (void)queue;
    atomic_fetch_add(&flushes, 1);
    return flush_answer == DRUPE_OK ? DRUPE_OK : drupe_error_set(flush_answer, "It cannot be flushed.");
}

static _Atomic(int) go_on;

/* The driver is at this until the test lets it go on. */
static drupe_status occupy(void *unused)
{
    (void)unused;
    while (!atomic_load(&go_on)) sched_yield();
    return DRUPE_OK;
}

static void work_is_flushed_before_it_is_waited_for(void **state)
{
    (void)state;
    drupe_event *event;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096);
    const drupe_submission s = {.queue = bench.queue};
    bench_table.queue_flush = queue_flush;
    for (int i = 0; i < 2; i++) {
        flush_answer = i ? DRUPE_E_INTERNAL : DRUPE_OK; /* shows in the events, if it matters */
        atomic_store(&go_on, 0);
        OK(drupe_submit_host(&s, occupy, NULL, NULL));
        atomic_store(&flushes, 0);
        OK(bench_fill(bench.queue, memory, 1, NULL, &event));
        const drupe_status status = drupe_event_wait(event, 0);
        const int flushed = atomic_load(&flushes);
        atomic_store(&go_on, 1);
        OK(drupe_event_wait(event, LONG));
        assert_int_equal(status, DRUPE_E_TIMEOUT);
        assert_true(flushed > 0);
        OK(drupe_queue_wait(bench.queue, LONG));
        drupe_event_release(event);
    }
    drupe_memory_release(memory);
}

/* --- Times -----------------------------------------------------------------------------------------------
 */

static drupe_status time_answer;
static bool has_times;

static drupe_status queue_times(drupe_queue *queue, bool *kept)
{
    (void)queue;
    *kept = has_times;
    return time_answer;
}

static drupe_status queue_time(drupe_queue *queue)
{
    (void)queue;
    return time_answer == DRUPE_OK ? DRUPE_OK : drupe_error_set(time_answer, "No times.");
}

static void queues_may_get_times_later(void **state)
{
    (void)state;
    drupe_event *before, *after;
    drupe_times times;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096);
    bench_table.queue_time = queue_time;
    OK(bench_fill(bench.queue, memory, 1, NULL, &before));
    OK(drupe_event_wait(before, LONG));
    FAILS(drupe_event_times(before, &times), DRUPE_E_UNSUPPORTED, "Only events of a profiling queue");
    time_answer = DRUPE_E_UNSUPPORTED;
    drupe_error_set(DRUPE_E_BUSY, "The caller's error.");
    assert_false(drupe_queue_profile(true));
    assert_string_equal(drupe_error_last()->text, "The caller's error.");
    assert_false(drupe_queue_flags_of(bench.queue) & DRUPE_QUEUE_PROFILING);
    time_answer = DRUPE_OK;
    assert_true(drupe_queue_profile(true));
    assert_true(drupe_queue_flags_of(bench.queue) & DRUPE_QUEUE_PROFILING);
    FAILS(drupe_event_times(before, &times), DRUPE_E_UNSUPPORTED, "before its queue got profiling");
    OK(bench_fill(bench.queue, memory, 1, NULL, &after));
    OK(drupe_event_wait(after, LONG));
    OK(drupe_event_times(after, &times));
    assert_true(drupe_queue_profile(false));
    drupe_event_release(before);
    drupe_event_release(after);
    /* A driver may keep them though nobody asked; the flag is core's own. */
    drupe_queue *queue;
    bench_table.queue_times = queue_times;
    for (int i = 0; i < 3; i++) {
        has_times = i > 0;
        time_answer = i == 2 ? DRUPE_E_INTERNAL : DRUPE_OK;
        OK(drupe_queue_open(bench.context, bench.device, 0, &queue));
        assert_int_equal(drupe_queue_flags_of(queue), 0);
        OK(bench_fill(queue, memory, 1, NULL, NULL));
        OK(drupe_queue_wait(queue, LONG));
        drupe_queue_release(queue);
    }
    drupe_memory_release(memory);
}

static void failed_work_has_no_times(void **state)
{
    (void)state;
    drupe_queue *queue;
    drupe_times times;
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_PROFILING, &queue));
    drupe_event *event = bench_failure(queue, "culprit", NULL);
    assert_int_equal(drupe_event_wait(event, LONG), DRUPE_E_INVALID);
    FAILS(drupe_event_times(event, &times), DRUPE_E_UNSUPPORTED, "Work that failed has no times");
    drupe_event_release(event);
    drupe_queue_release(queue);
}

/* --- Parts of devices ------------------------------------------------------------------------------------
 */

/* Takes parts only in contexts that were opened over them, as Intel's does. */
static drupe_status strict_open(drupe_queue *queue, uint32_t flags)
{
    if (drupe_context_device(drupe_queue_context(queue), 0) != drupe_queue_device(queue))
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Not in this context.");
    return bench_real->queue_open(queue, flags);
}

static void parts_may_need_contexts_of_their_own(void **state)
{
    (void)state;
    drupe_device *part;
    drupe_context *first, *second;
    drupe_queue *queue;
    if (drupe_device_select("host:cpu:0.0", &part) != DRUPE_OK) skip(); /* one processor */
    bench_table.queue_open = strict_open;
    OK(drupe_device_context(part, &first));
    assert_ptr_not_equal(first, bench.context);
    assert_ptr_equal(drupe_context_device(first, 0), part);
    OK(drupe_device_context(part, &second));
    assert_ptr_equal(first, second);
    OK(drupe_device_queue(part, &queue));
    assert_ptr_equal(drupe_queue_context(queue), first);
    drupe_queue_release(queue);
    drupe_context_release(first);
    drupe_context_release(second);
    OK(drupe_device_context(part, &first)); /* the old one is gone */
    drupe_context_release(first);
    drupe_device_release(part);
}

/* --- The trace's look ------------------------------------------------------------------------------------
 */

static void looks_leave_what_is_over_in_the_list(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *event;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096);
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    assert_false(drupe_inflight_unlooked(bench.queue) == NULL);
    drupe_trace_look();
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    drupe_trace_look();
    drupe_trace_look();                       /* nothing is new */
    assert_true(drupe_memory_in_use(memory)); /* nothing was dropped */
    assert_null(drupe_inflight_unlooked(bench.queue));
    drupe_queue_collect(bench.queue);
    assert_false(drupe_memory_in_use(memory));
    drupe_event_release(event);
    drupe_memory_release(memory);
}

/* --- Processes of their own ------------------------------------------------------------------------------
 */

static void in_a_process(void (*body)(void))
{
    ends_apart(bench_take_table, body);
}

static void on_a_thread_of_core(void)
{
    void *state = NULL;
    drupe_event *event;
    bench_table.submit_host = NULL; /* core runs them */
    ENDS_MUST(bench_setup(&state) == 0);
    ENDS_MUST(drupe_fault_install(NULL) == DRUPE_OK);
    const drupe_submission s = {.queue = bench.queue};
    for (int i = 0; i < 3; i++) {
        ENDS_MUST(drupe_submit_host(&s, ends_fault, NULL, &event) == DRUPE_OK);
        ENDS_MUST(drupe_event_wait(event, LONG) == DRUPE_E_DEVICE_LOST);
        ENDS_MUST(strstr(drupe_error_last()->text, "host function") &&
                  strstr(drupe_error_last()->text, "SIGSEGV"));
        drupe_event_release(event);
        ENDS_MUST(drupe_submit_host(&s, bench_nothing, NULL, &event) ==
                  DRUPE_OK); /* another thread has come */
        ENDS_MUST(drupe_event_wait(event, LONG) == DRUPE_OK);
        drupe_event_release(event);
    }
}

static void a_fault_of_a_host_function_fails_it_alone(void **state)
{
    (void)state;
    in_a_process(on_a_thread_of_core);
}

static _Atomic(int) gone;

static drupe_status lost_state(drupe_event *event, drupe_event_state *state)
{
    (void)event;
    *state = gone ? DRUPE_EVENT_FAILED : DRUPE_EVENT_SUBMITTED;
    return gone ? drupe_error_set(DRUPE_E_DEVICE_LOST, "The GPU has faulted.") : DRUPE_OK;
}

static drupe_status lost_wait(drupe_event *event, uint64_t timeout_ns)
{
    (void)event, (void)timeout_ns;
    return gone ? DRUPE_OK : drupe_error_set(DRUPE_E_TIMEOUT, "Not yet.");
}

/* It does not say which kernel it was at. */
static void of_a_gpu(void)
{
    void *state = NULL;
    drupe_event *events[3];
    drupe_queue *queue;
    bench_table.gpu_faults_last = true;
    bench_table.event_state = lost_state;
    bench_table.event_wait = lost_wait;
    ENDS_MUST(bench_setup(&state) == 0);
    bench.device->type = DRUPE_DEVICE_GPU;
    ENDS_MUST(drupe_queue_open(bench.context, bench.device, 0, &queue) == DRUPE_OK);
    drupe_memory *memory;
    ENDS_MUST(drupe_memory_alloc(queue, DRUPE_MEM_SHARED, 64, 0, &memory) == DRUPE_OK);
    for (size_t i = 0; i < 3; i++)
        ENDS_MUST(bench_mad(queue, memory, memory, 8, 1, 1, NULL, &events[i]) == DRUPE_OK);
    atomic_store(&gone, 1);
    ENDS_MUST(drupe_event_wait(events[0], LONG) == DRUPE_E_DEVICE_LOST);
    ENDS_MUST(
        strstr(drupe_error_last()->text, "The GPU has faulted. The driver does not report which kernel"));
    ENDS_MUST(strstr(drupe_error_last()->text, "or one of the 2 submitted after it."));
}

static void a_lost_gpu_has_suspects(void **state)
{
    (void)state;
    in_a_process(of_a_gpu);
}

static void silent(void)
{
    void *state = NULL;
    drupe_event *late;
    drupe_failure failure;
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away."};
    ENDS_MUST(bench_setup(&state) == 0);
    drupe_core_device_lost(bench.device, &error, true);
    ENDS_MUST(drupe_queue_pending(bench.queue) == 0);
    ENDS_MUST(!drupe_queue_idle(bench.queue, 0));
    ENDS_MUST(drupe_queue_wait(bench.queue, LONG) == DRUPE_E_DEVICE_LOST);
    ENDS_MUST(bench_barrier(bench.queue, NULL, &late) == DRUPE_E_DEVICE_LOST);
    ENDS_MUST(drupe_queue_pace(bench.queue) == DRUPE_OK);
    drupe_queue *queue;
    ENDS_MUST(drupe_queue_open(bench.context, bench.device, 0, &queue) == DRUPE_E_DEVICE_LOST);
    drupe_queue_collect(bench.queue);
    while (drupe_failure_take(&failure)) continue;
    drupe_queue_release(bench.queue);
}

static void a_lost_device_is_not_waited_for(void **state)
{
    (void)state;
    in_a_process(silent);
}

static void by_the_environment(void)
{
    void *state = NULL;
    setenv("DRUPE_PROFILE", "1", 1);
    ENDS_MUST(bench_setup(&state) == 0);
    ENDS_MUST(drupe_queue_flags_of(bench.queue) & DRUPE_QUEUE_PROFILING);
}

static void not_with(const char *value)
{
    void *state = NULL;
    setenv("DRUPE_PROFILE", value, 1);
    ENDS_MUST(bench_setup(&state) == 0);
    ENDS_MUST(!(drupe_queue_flags_of(bench.queue) & DRUPE_QUEUE_PROFILING));
}

static void not_by_the_environment(void)
{
    not_with("0");
}

static void not_by_an_empty_one(void)
{
    not_with("");
}

static void the_environment_may_ask_for_times(void **state)
{
    (void)state;
    in_a_process(by_the_environment);
    in_a_process(not_by_the_environment);
    in_a_process(not_by_an_empty_one);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_setup_table, bench_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_of_a_host_function_fails_it_alone),
        cmocka_unit_test(a_lost_gpu_has_suspects),
        cmocka_unit_test(a_lost_device_is_not_waited_for),
        cmocka_unit_test(the_environment_may_ask_for_times),
        TEST(work_is_flushed_before_it_is_waited_for),
        TEST(queues_may_get_times_later),
        TEST(failed_work_has_no_times),
        TEST(parts_may_need_contexts_of_their_own),
        TEST(looks_leave_what_is_over_in_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
