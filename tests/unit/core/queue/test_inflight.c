/* What is in flight: when it is looked at, what one completion tells of others, and what is dropped. */
#include "queue/script_bench.h"

static _Atomic(int) looks; /* at events, by the driver */

static drupe_status count_looks(drupe_event *event, drupe_event_state *state)
{
    atomic_fetch_add(&looks, 1);
    return bench_real->event_state(event, state);
}

static int setup(void **state)
{
    const int result = script_setup(state);
    bench_table.event_state = count_looks;
    atomic_store(&looks, 0);
    return result;
}

/* How many are found to be over, and dropped. */
static size_t reap(drupe_queue *queue, size_t most)
{
    size_t count = 0;
    pthread_mutex_lock(&queue->lock);
    drupe_inflight *list = drupe_inflight_reap(queue, most, false);
    pthread_mutex_unlock(&queue->lock);
    for (const drupe_inflight *at = list; at; at = at->next) count++;
    drupe_inflight_drop(queue, list);
    return count;
}

static bool look(drupe_queue *queue, size_t most)
{
    pthread_mutex_lock(&queue->lock);
    const bool more = drupe_inflight_look(queue, most);
    pthread_mutex_unlock(&queue->lock);
    return more;
}

static uint64_t status_of(uint64_t number)
{
    drupe_trace_record record;
    assert_true(drupe_trace_one(number, &record));
    return record.status;
}

static void expect_phase(const drupe_event *event, drupe_phase phase)
{
    assert_int_equal(drupe_event_phase(event), phase);
}

/* --- Records ---------------------------------------------------------------------------------------------
 */

static void a_submission_has_so_many_objects_at_most(void **state)
{
    (void)state;
    const drupe_submit_info info = {.queue = bench.queue, .label = "", .label_static = true};
    const drupe_work work = {.kind = DRUPE_WORK_BARRIER};
    drupe_inflight *entry;
    pthread_mutex_lock(&bench.queue->lock);
    OK(drupe_inflight_new(bench.queue, "", NULL, &entry));
    FAILS(drupe_inflight_load(entry, &info, &work, (size_t)UINT32_MAX + 1), DRUPE_E_NO_MEMORY,
          "with 4294967296 objects");
    OK(drupe_inflight_load(entry, &info, &work, 40));
    assert_int_equal(entry->waits_capacity, 40);
    pthread_mutex_unlock(&bench.queue->lock);
    drupe_inflight_drop(bench.queue, entry);
    assert_int_equal(entry->waits_capacity, DRUPE_INFLIGHT_WAITS);
}

static drupe_status number_of(drupe_device *device, drupe_info key, uint64_t number[3], drupe_text *text)
{
    if (key != DRUPE_INFO_MAX_PARAMETER_SIZE && key != DRUPE_INFO_LOCAL_MEM_SIZE)
        return bench_real->device_info(device, key, number, text);
    number[0] = 1024;
    return DRUPE_OK;
}

/* The same kernel with the same memory again and again: the references go from one to the next. */
static void references_are_passed_on(void **state)
{
    (void)state;
    bench_table.device_info = number_of;
    (void)drupe_device_number(bench.device, DRUPE_INFO_MAX_PARAMETER_SIZE, 0);
    (void)drupe_device_number(bench.device, DRUPE_INFO_LOCAL_MEM_SIZE, 0);
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64), *memories[] = {memory};
    drupe_kernel *kernel = script_kernel(1);
    void *pointer = drupe_memory_pointer(memory);
    const drupe_arg arg = {DRUPE_ARG_POINTER, sizeof pointer, &pointer};
    const drupe_range range = {.dims = 1, .global = {4}};
    const drupe_submission s = {.queue = bench.queue, .memories = memories};
    drupe_event *events[3];
    for (size_t i = 0; i < 3; i++) {
        OK(drupe_submit_kernel(&s, kernel, &range, &arg, 1, &events[i]));
        const uint64_t uses = atomic_load(&memory->uses) & DRUPE_USES_COUNT;
        assert_int_equal(uses, 1);
    }
    test_script_finish(events[0], true);
    test_script_finish(events[1], true);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 2);
    assert_true(drupe_memory_in_use(memory)); /* by the third */
    test_script_finish(events[2], true);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 1);
    assert_false(drupe_memory_in_use(memory));
    for (size_t i = 0; i < 3; i++) drupe_event_release(events[i]);
    drupe_memory_release(memory);
}

/* --- Looking in order ------------------------------------------------------------------------------------
 */

static void many_are_dropped_in_parts(void **state)
{
    (void)state;
    drupe_event *events[5];
    for (size_t i = 0; i < 5; i++) events[i] = script_fill(bench.queue, NULL);
    assert_false(look(bench.queue, 5)); /* nothing is over */
    for (size_t i = 0; i < 4; i++) test_script_finish(events[i], true);
    assert_true(look(bench.queue, 3));
    assert_int_equal(reap(bench.queue, 2), 2); /* of the three that were looked at */
    assert_int_equal(reap(bench.queue, 1), 1);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 1);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 0);
    expect_phase(events[3], DRUPE_PHASE_COMPLETE);
    test_script_finish(events[4], true);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 1);
    for (size_t i = 0; i < 5; i++) drupe_event_release(events[i]);
}

/* Nothing tells of silent work but an event behind it that is complete. */
static void silent_work_is_over_with_the_next_completion(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) script_silent(bench.queue);
    const uint64_t first = bench.queue->order.head->what.number;
    assert_int_equal(reap(bench.queue, SIZE_MAX), 0);
    drupe_event *event = script_fill(bench.queue, NULL);
    assert_int_equal(drupe_queue_pending(bench.queue), 3);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 0);
    assert_int_equal(looks, 1);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 0); /* the event alone is asked */
    assert_int_equal(looks, 2);
    assert_int_equal(status_of(first), DRUPE_TRACE_PENDING);
    test_script_finish(event, true);
    assert_true(look(bench.queue, 3));
    assert_int_equal(status_of(first), DRUPE_TRACE_PASSED);
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 3);
    drupe_event_release(event);
}

static void a_failure_tells_nothing_of_silent_work_before_it(void **state)
{
    (void)state;
    script_silent(bench.queue);
    drupe_event *failed = script_fill(bench.queue, NULL);
    test_script_finish(failed, false);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 0);
    expect_phase(failed, DRUPE_PHASE_FAILED);
    assert_int_equal(drupe_queue_pending(bench.queue), 1);
    FAILS(drupe_event_wait(failed, LONG), DRUPE_E_INTERNAL, "The script says no");
    FAILS(drupe_queue_wait(bench.queue, 0), DRUPE_E_TIMEOUT, ""); /* puts a barrier behind them */
    test_script_finish(bench.queue->order.tail->event, true);
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
    assert_int_equal(reap(bench.queue, SIZE_MAX), 3);
    drupe_event_release(failed);
}

static void what_a_wait_has_proven_is_over(void **state)
{
    (void)state;
    drupe_queue_proven(bench.queue, 0);
    script_silent(bench.queue);
    drupe_event *failed = script_fill(bench.queue, NULL);
    const uint64_t silent = bench.queue->order.head->what.number;
    test_script_finish(failed, false);
    assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INTERNAL); /* the driver has nothing left */
    assert_true(bench.queue->proof.proven >= silent);
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
    script_silent(bench.queue); /* not proven */
    assert_int_equal(reap(bench.queue, SIZE_MAX), 2);
    assert_int_equal(drupe_queue_pending(bench.queue), 1);
    drupe_event_release(failed);
    script.finishes = true;
}

/* --- When it is time to look -----------------------------------------------------------------------------
 */

static void a_driver_whose_looks_may_wait_is_seldom_asked(void **state)
{
    (void)state;
    drupe_event *events[65]; /* the first is submitted to an empty queue */
    for (int slow = 0; slow < 2; slow++) {
        bench_table.state_waits = slow == 1;
        bench.queue->polling.polls = 0;
        atomic_store(&looks, 0);
        for (size_t i = 0; i < 65; i++) {
            events[i] = script_fill(bench.queue, NULL);
            if (i <= 8) assert_int_equal(looks, !slow && i == 8);
        }
        assert_int_equal(looks, slow ? 1 : 8);
        for (size_t i = 0; i < 65; i++) script_end(events[i]);
        drupe_queue_collect(bench.queue);
    }
}

static void others_are_asked_as_any_driver(void **state)
{
    (void)state;
    enum { MANY = 9 };
    drupe_event *events[MANY];
    drupe_memory *large = bench_memory(bench.queue, DRUPE_MEM_SHARED, 1 << 20);
    drupe_queue *unordered = script_queue(DRUPE_QUEUE_OUT_OF_ORDER);
    bench_table.state_waits = true;
    for (int big = 0; big < 2; big++) {
        bench.queue->polling.polls = 0;
        atomic_store(&looks, 0);
        for (size_t i = 0; i < MANY; i++)
            OK(bench_fill(big ? bench.queue : unordered, large, 1, NULL, &events[i]));
        assert_true(looks > 0); /* each is asked on an out-of-order queue */
        for (size_t i = 0; i < MANY; i++) script_end(events[i]);
    }
    drupe_queue_collect(bench.queue);
    drupe_memory_release(large);
    drupe_queue_release(unordered);
}

static void large_memory_is_looked_for_sooner(void **state)
{
    (void)state;
    drupe_memory *large = bench_memory(bench.queue, DRUPE_MEM_SHARED, 1 << 20);
    drupe_event *events[4];
    for (int big = 0; big < 2; big++) {
        drupe_event *first = script_fill(bench.queue, NULL);
        test_script_finish(first, true);
        OK(drupe_event_wait(first, LONG)); /* known to be over, and not dropped */
        drupe_event_release(first);
        bench.queue->polling.polls = 0;
        if (big)
            OK(bench_fill(bench.queue, large, 1, NULL, &events[0]));
        else
            events[0] = script_fill(bench.queue, NULL);
        assert_int_equal(bench.queue->order.count, big ? 1 : 2);
        script_end(events[0]);
        drupe_queue_collect(bench.queue);
    }
    drupe_memory_release(large);
}

/* --- What a wait proves ----------------------------------------------------------------------------------
 */

static drupe_memory *more_memory;

/* More work comes while the wait is on. */
static drupe_status wait_and_add(drupe_event *event, uint64_t timeout_ns)
{
    (void)timeout_ns;
    test_script_finish(event, true);
    if (more_memory) OK(bench_fill(bench.queue, more_memory, 1, NULL, NULL));
    return DRUPE_OK;
}

static uint64_t waited_ns;

static drupe_status queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    waited_ns = timeout_ns;
    return bench_real->queue_wait(queue, timeout_ns);
}

static drupe_status native(drupe_queue *queue, void **handle)
{
    *handle = queue;
    return DRUPE_OK;
}

static void a_driver_with_more_to_do_is_not_waited_for(void **state)
{
    (void)state;
    drupe_queue *other;
    void *handle;
    bench_table.event_wait = wait_and_add;
    bench_table.queue_wait = queue_wait;
    bench_table.queue_native = native;
    other = script_queue(0);
    drupe_event *busy = script_fill(other, NULL); /* so that it never says that it is idle */
    for (int i = 0; i < 2; i++) {
        /* 0: this queue got more work; 1: others may have given it some. */
        if (i) OK(drupe_queue_native(bench.queue, &handle));
        more_memory = i ? NULL : bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
        script_silent(bench.queue);
        waited_ns = 1;
        OK(drupe_queue_wait(bench.queue, LONG));
        assert_int_equal(waited_ns, 0);
        assert_int_equal(drupe_queue_pending(bench.queue), i ? 0 : 1);
        assert_true(bench.queue->proof.silent); /* it was not heard out */
        drupe_memory_release(more_memory);
        more_memory = NULL;
        if (i == 0) OK(drupe_queue_wait(bench.queue, LONG));
    }
    test_script_finish(busy, true);
    drupe_event_release(busy);
    script.finishes = true;
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_release(other);
}

static drupe_status failing_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue, (void)timeout_ns;
    return drupe_error_set(DRUPE_E_INTERNAL, "Something failed.");
}

/* The driver tells it, too, without saying whose it is. */
static void a_failure_that_is_known_is_not_told_twice(void **state)
{
    (void)state;
    script_silent(bench.queue);
    drupe_event *failed = script_fill(bench.queue, NULL);
    test_script_finish(failed, false);
    bench_table.queue_wait = failing_wait;
    FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INTERNAL, "The script says no");
    bench_table.queue_wait = bench_real->queue_wait;
    assert_int_equal(script_take_failures(), 0);
    drupe_event_release(failed);
}

/* A failed mark proves nothing: the driver is asked until it has nothing left. */
static void behind_a_failure_the_driver_is_waited_for(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *busy = script_fill(other, NULL);
    script_silent(bench.queue);
    const uint64_t silent = bench.queue->order.head->what.number;
    drupe_event *failed = script_fill(bench.queue, NULL);
    test_script_finish(failed, false);
    assert_int_equal(drupe_queue_wait(bench.queue, 0), DRUPE_E_TIMEOUT);
    assert_true(bench.queue->proof.proven < silent);
    script_end(busy);
    FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INTERNAL, "The script says no");
    assert_true(bench.queue->proof.proven >= silent);
    drupe_event_release(failed);
    drupe_queue_release(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_submission_has_so_many_objects_at_most),
        TEST(references_are_passed_on),
        TEST(many_are_dropped_in_parts),
        TEST(silent_work_is_over_with_the_next_completion),
        TEST(a_failure_tells_nothing_of_silent_work_before_it),
        TEST(what_a_wait_has_proven_is_over),
        TEST(a_driver_whose_looks_may_wait_is_seldom_asked),
        TEST(others_are_asked_as_any_driver),
        TEST(large_memory_is_looked_for_sooner),
        TEST(a_driver_with_more_to_do_is_not_waited_for),
        TEST(a_failure_that_is_known_is_not_told_twice),
        TEST(behind_a_failure_the_driver_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
