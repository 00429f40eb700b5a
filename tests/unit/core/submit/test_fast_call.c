/* White-box: calls that are queued in one piece, who keeps what they work on, and which are left to the
 * caller. */
#include "core/submit/submit_room.h"
#include "core_ends.h"
#include "walk/wrap.h"
#include <semaphore.h>

static drupe_memory *ours;
static drupe_submission s;
static _Alignas(16) struct {
    uint64_t *at, value;
    sem_t *gate; /* NULL: it is open */
} work;
static int held, dropped; /* of the object of calls */

static drupe_status store(void *user)
{
    const __typeof__(work) *own = user;
    assert_ptr_not_equal(user, &work);
    if (own->gate) sem_wait(own->gate);
    *own->at += own->value;
    return DRUPE_OK;
}

static void hold(void *object)
{
    assert_ptr_equal(object, &held);
    held++;
}

static void drop(void *object)
{
    assert_ptr_equal(object, &held);
    dropped++;
}

static int setup(void **state)
{
    if (bench_setup(state) != 0) return -1;
    ours = bench_shared(64);
    memset(drupe_memory_pointer(ours), 0, 64);
    s = (drupe_submission){.queue = bench.queue};
    work.at = drupe_memory_pointer(ours);
    work.value = 1;
    work.gate = NULL;
    held = dropped = 0;
    return 0;
}

static int teardown(void **state)
{
    drupe_memory_release(ours);
    return bench_teardown(state);
}

static bool call_fn(drupe_host_fn fn, drupe_event **event)
{
    drupe_status status;
    const drupe_host_call call = {.fn = fn,
                                  .bytes = &work,
                                  .size = sizeof work,
                                  .memories = &ours,
                                  .nmemories = 1,
                                  .name = "the call",
                                  .object = &held,
                                  .hold = hold,
                                  .drop = drop};
    if (!drupe_submit_host_call(&s, &call, event, &status)) return false;
    OK(status);
    return true;
}

static bool call(drupe_event **event)
{
    return call_fn(store, event);
}

static void finish(void)
{
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_int_equal(held, dropped);
}

static void the_same_call_takes_over_what_the_last_one_keeps(void **state)
{
    (void)state;
    sem_t gate;
    assert_int_equal(sem_init(&gate, 0, 0), 0);
    work.gate = &gate;
    assert_true(call(NULL));
    work.gate = NULL;
    for (work.value = 2; work.value < 10; work.value++) assert_true(call(NULL));
    assert_int_equal(held, 1); /* one of nine keeps it */
    assert_int_equal(dropped, 0);
    assert_true(drupe_memory_in_use(ours));
    sem_post(&gate);
    finish();
    assert_int_equal(held, 1);
    assert_int_equal(*work.at, 45);
    assert_false(drupe_memory_in_use(ours));
    sem_destroy(&gate);
}

static void what_takes_more_steps_is_left_to_the_caller(void **state)
{
    (void)state;
    drupe_queue *unordered;
    drupe_event *gate = bench_gate();
    const drupe_submission plain = s;
    s.label = "another name";
    assert_false(call(NULL));
    s = plain;
    s.waits = &gate;
    s.nwaits = 1;
    assert_false(call(NULL));
    s = plain;
    OK(bench_barrier(bench.queue, gate, NULL));
    assert_false(call(NULL)); /* the barrier is deferred */
    bench_open_gate(gate);
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_OUT_OF_ORDER, &unordered));
    s.queue = unordered;
    assert_false(call(NULL));
    drupe_queue_release(unordered);
    s = plain;
    drupe_check_begin();
    assert_false(call(NULL));
    drupe_check_end();
    assert_int_equal(held, 0);
    assert_int_equal(*work.at, 0);
    finish();
    assert_true(call(NULL));
    finish();
    assert_int_equal(*work.at, 1);
}

static void a_call_that_faults_fails_what_is_behind_it(void **state)
{
    (void)state;
    drupe_event *failed, *behind;
    sem_t gate;
    OK(drupe_fault_install(NULL)); /* in front of cmocka's handler */
    assert_int_equal(sem_init(&gate, 0, 0), 0);
    work.gate = &gate;
    assert_true(call(NULL));
    assert_true(call_fn(ends_fault, &failed));
    work.gate = NULL;
    assert_true(call(&behind));
    sem_post(&gate);
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY, "'the call'");
    assert_int_equal(drupe_event_wait(failed, LONG), DRUPE_E_DEVICE_LOST);
    drupe_event_release(failed);
    drupe_event_release(behind);
    assert_int_equal(*work.at, 1);
    drupe_cause *cause = NULL;
    FAILS(drupe_mark_read(ours, &cause), DRUPE_E_DEPENDENCY, "'the call'"); /* it was to write that */
    drupe_memory_accept(ours);
    finish();
    sem_destroy(&gate);
}

/* What does not fail by itself need not be waited for by name; so it is no reason to leave the next one. */
static void a_function_that_only_faults_is_not_waited_for_by_name(void **state)
{
    (void)state;
    sem_t gate;
    assert_int_equal(sem_init(&gate, 0, 0), 0);
    work.gate = &gate;
    drupe_submission sure = s;
    sure.faults_only = true;
    __typeof__(work) copy = work;
    OK(drupe_submit_host(&sure, store, &copy, NULL));
    assert_null(bench.queue->names.last_fallible);
    OK(drupe_submit_host(&s, bench_nothing, NULL, NULL));
    assert_non_null(bench.queue->names.last_fallible);
    work.gate = NULL;
    assert_false(call(NULL));
    sem_post(&gate);
    finish();
    sem_destroy(&gate);
}

static _Alignas(16) char many[4096];

static drupe_status call_once(void)
{
    drupe_status status = DRUPE_OK;
    const drupe_host_call one = {.fn = bench_nothing,
                                 .bytes = many,
                                 .size = sizeof many, /* more than a record holds */
                                 .name = "large",
                                 .object = &held,
                                 .hold = hold,
                                 .drop = drop};
    if (!drupe_submit_host_call(&s, &one, NULL, &status))
        return drupe_error_set(DRUPE_E_NO_MEMORY, "no memory for it");
    return status;
}

static void a_call_without_memory_for_it_leaves_nothing(void **state)
{
    (void)state;
    OK(call_once());
    finish(); /* its records are used again */
    ends_until(call_once, "No memory for 4096 bytes");
    drupe_failure failure;
    finish();
    while (drupe_failure_take(&failure)) continue;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_same_call_takes_over_what_the_last_one_keeps),
        TEST(what_takes_more_steps_is_left_to_the_caller),
        TEST(a_call_that_faults_fails_what_is_behind_it),
        TEST(a_function_that_only_faults_is_not_waited_for_by_name),
        TEST(a_call_without_memory_for_it_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
