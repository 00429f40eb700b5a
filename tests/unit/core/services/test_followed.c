/* What those who follow the trace are told of work that a driver has; here the driver answers as the test
 * says. */
#include "core/services/services_room.h"
#include "core_bench.h"
#include "test_script.h"
#include <sched.h>

static struct {
    _Atomic(int) state;            /* drupe_event_state of all work */
    _Atomic(unsigned) looks;       /* at events */
    drupe_status answer, barriers; /* to a look; to barriers */
} driver;

static drupe_status event_state(drupe_event *event, drupe_event_state *state)
{
    (void)event;
    atomic_fetch_add(&driver.looks, 1);
    *state = (drupe_event_state)atomic_load(&driver.state);
    return driver.answer == DRUPE_OK ? DRUPE_OK : drupe_error_set(driver.answer, "Nobody knows.");
}

static drupe_status event_wait(drupe_event *event, uint64_t timeout_ns)
{
    (void)event, (void)timeout_ns;
    return DRUPE_OK;
}

static drupe_status queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue, (void)timeout_ns;
    return DRUPE_OK;
}

static drupe_status submit_barrier(const drupe_submit *s)
{
    (void)s;
    return driver.barriers == DRUPE_OK ? DRUPE_OK : drupe_error_set(driver.barriers, "No barrier.");
}

static drupe_memory *memory;

static int setup(void **state)
{
    (void)state;
    test_script_reset();
    test_script.backends[0].count = 2;
    test_script.backends[0].devices[1] = test_script.backends[0].devices[0];
    test_script_tables[0].event_state = event_state;
    test_script_tables[0].event_wait = event_wait;
    test_script_tables[0].queue_wait = queue_wait;
    test_script_tables[0].submit_barrier = submit_barrier;
    atomic_store(&driver.state, DRUPE_EVENT_SUBMITTED);
    driver.answer = driver.barriers = DRUPE_OK;
    if (bench_open("host", 0) != 0) return -1;
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    return 0;
}

static int teardown(void **state)
{
    driver.answer = driver.barriers = DRUPE_OK;
    atomic_store(&driver.state, DRUPE_EVENT_COMPLETE);
    drupe_memory_release(memory);
    return bench_teardown(state);
}

/* A fill, and its number. */
static uint64_t work_on(drupe_queue *queue, drupe_event *wait, drupe_event **event)
{
    OK(bench_fill(queue, memory, 1, wait, event));
    return drupe_trace_latest();
}

static uint8_t status_of(uint64_t number)
{
    drupe_trace_record record;
    assert_true(drupe_trace_one(number, &record));
    return record.status;
}

static uint64_t oldest(void)
{
    return drupe_trace_oldest(drupe_queue_number(bench.queue));
}

static drupe_trace_start start_of(uint64_t number)
{
    return drupe_trace_start_of(drupe_queue_number(bench.queue), number);
}

/* A look puts a barrier behind it, which proves its end. */
static void silent_work_is_looked_for_behind_a_barrier(void **state)
{
    (void)state;
    const uint64_t number = work_on(bench.queue, NULL, NULL);
    assert_int_equal(oldest(), number);
    assert_int_equal(start_of(number), DRUPE_TRACE_BEGUN); /* nobody can tell */
    atomic_store(&driver.state, DRUPE_EVENT_COMPLETE);
    driver.barriers = DRUPE_E_NO_MEMORY;
    drupe_trace_look(); /* later, then */
    assert_int_equal(status_of(number), DRUPE_TRACE_PENDING);
    driver.barriers = DRUPE_OK;
    drupe_trace_look();
    assert_int_equal(status_of(number), DRUPE_TRACE_PASSED);
    assert_int_equal(oldest(), UINT64_MAX);
}

/* Core's barrier has a later number than what stands behind it. */
static void a_barrier_of_core_is_not_the_oldest(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *mark, *event;
    const uint64_t number = work_on(bench.queue, NULL, NULL), behind = work_on(bench.queue, gate, &event);
    pthread_mutex_lock(&bench.queue->lock);
    const drupe_status marked = drupe_queue_mark(bench.queue, bench.queue->order.deferred, &mark);
    pthread_mutex_unlock(&bench.queue->lock);
    OK(marked);
    assert_true(drupe_trace_latest() > behind);
    assert_int_equal(oldest(), number);
    pthread_mutex_lock(&bench.queue->lock);
    drupe_queue_proven(bench.queue, number);
    pthread_mutex_unlock(&bench.queue->lock);
    assert_int_equal(oldest(), behind);
    bench_open_gate(gate);
    atomic_store(&driver.state, DRUPE_EVENT_COMPLETE);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_event_release(mark);
}

/* All of it in one look, however much there is. */
static void long_lists_are_looked_at_in_parts(void **state)
{
    (void)state;
    enum { MANY = 700 };
    drupe_event *gate = bench_gate(), *last;
    const uint64_t first = work_on(bench.queue, gate, NULL);
    for (size_t i = 2; i < MANY; i++) (void)work_on(bench.queue, NULL, NULL);
    const uint64_t end = work_on(bench.queue, NULL, &last);
    bench_open_gate(gate);
    while (drupe_event_state_of(last) == DRUPE_EVENT_QUEUED) sched_yield();
    assert_int_equal(status_of(first), DRUPE_TRACE_PENDING);
    atomic_store(&driver.state, DRUPE_EVENT_COMPLETE);
    drupe_trace_look();
    for (uint64_t number = first; number <= end; number++)
        assert_int_not_equal(status_of(number), DRUPE_TRACE_PENDING);
    assert_int_equal(oldest(), UINT64_MAX);
    drupe_event_release(last);
}

static void a_silent_driver_is_not_asked(void **state)
{
    (void)state;
    drupe_event *event;
    drupe_loss loss = {.error = {.status = DRUPE_E_DEVICE_LOST, .text = "Gone."}, .silent = true};
    const uint64_t number = work_on(bench.queue, NULL, &event);
    assert_int_equal(start_of(number), DRUPE_TRACE_PREPARING);
    const unsigned looks = atomic_load(&driver.looks);
    atomic_store(&bench.device->loss, &loss);
    drupe_trace_look();
    assert_int_equal(start_of(number), DRUPE_TRACE_BEGUN);
    assert_int_equal(atomic_load(&driver.looks), looks);
    atomic_store(&bench.device->loss, NULL);
    drupe_event_release(event);
}

static void the_driver_says_whether_work_has_begun(void **state)
{
    (void)state;
    static const struct {
        drupe_event_state state;
        drupe_status answer;
        drupe_trace_start start;
    } cases[] = {{DRUPE_EVENT_QUEUED, DRUPE_OK, DRUPE_TRACE_PREPARING},
                 {DRUPE_EVENT_SUBMITTED, DRUPE_OK, DRUPE_TRACE_PREPARING},
                 {DRUPE_EVENT_RUNNING, DRUPE_OK, DRUPE_TRACE_BEGUN},
                 {DRUPE_EVENT_SUBMITTED, DRUPE_E_INTERNAL, DRUPE_TRACE_BEGUN}};
    drupe_event *event;
    const uint64_t number = work_on(bench.queue, NULL, &event);
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        atomic_store(&driver.state, cases[i].state);
        driver.answer = cases[i].answer;
        assert_int_equal(start_of(number), cases[i].start);
    }
    driver.answer = DRUPE_OK;
    drupe_event_release(event);
}

/* Older work of another device is not in the way. */
static void devices_do_not_stand_behind_each_other(void **state)
{
    (void)state;
    drupe_device *other;
    drupe_queue *queue;
    drupe_event *older, *event, *later;
    OK(drupe_device_select("host:cpu:1", &other));
    OK(drupe_device_queue(other, &queue));
    OK(bench_barrier(queue, NULL, &older));
    const uint64_t number = work_on(bench.queue, NULL, &event);
    assert_int_equal(start_of(number), DRUPE_TRACE_PREPARING);
    const uint64_t second = work_on(bench.queue, NULL, &later);
    assert_int_equal(start_of(second), DRUPE_TRACE_BEHIND);
    atomic_store(&driver.state, DRUPE_EVENT_COMPLETE);
    drupe_event_release(older);
    drupe_event_release(event);
    drupe_event_release(later);
    drupe_queue_release(queue);
    drupe_device_release(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(silent_work_is_looked_for_behind_a_barrier), TEST(a_barrier_of_core_is_not_the_oldest),
        TEST(long_lists_are_looked_at_in_parts),          TEST(a_silent_driver_is_not_asked),
        TEST(the_driver_says_whether_work_has_begun),     TEST(devices_do_not_stand_behind_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
