/* What is given up while a worker stands between two tasks: the event of the first is over, and the second
 * has not had its turn. Core then takes the second, which has no event, to have begun. A gate stays shut in
 * place of that worker. */
#include "base/base.h"
#include "core/queue/launch.h"
#include "drupe/memory.h"
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES  4096
#define BEFORE 1
#define AFTER  2

static drupe_queue *queue;
static drupe_memory *memories[3];
static drupe_event *first;
static sem_t gate;
static size_t left, given_up;

static void ok(drupe_status status)
{
    if (status != DRUPE_OK) fail_msg("%s: %s", drupe_status_name(status), drupe_error_last()->text);
}

static drupe_status pass(void *user)
{
    return sem_wait(user) == 0 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* Without an event. */
static void fill(drupe_memory *memory, uint8_t byte)
{
    const drupe_submission s = {.queue = queue};
    ok(drupe_submit_fill(&s, drupe_memory_pointer(memory), &byte, 1, BYTES, NULL));
}

static int setup(void **state)
{
    (void)state;
    drupe_device *device;
    ok(drupe_device_select("host", &device));
    ok(drupe_device_queue(device, &queue));
    drupe_device_release(device);
    for (size_t i = 0; i < DRUPE_COUNT_OF(memories); i++) {
        ok(drupe_memory_alloc(queue, DRUPE_MEM_HOST, BYTES, 0, &memories[i]));
        fill(memories[i], BEFORE);
    }
    ok(drupe_queue_wait(queue, DRUPE_FOREVER));
    assert_int_equal(sem_init(&gate, 0, 0), 0);
    const drupe_submission s = {.queue = queue};
    ok(drupe_submit_host(&s, pass, &gate, &first));
    while (drupe_event_state_of(first) != DRUPE_EVENT_RUNNING) sched_yield();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < DRUPE_COUNT_OF(memories); i++) drupe_memory_release(memories[i]);
    drupe_event_release(first);
    drupe_queue_release(queue);
    (void)sem_destroy(&gate);
    return drupe_library_close(1000000000u) == 0 ? 0 : -1;
}

/* From here on the worker stands between two tasks. */
static void end_event(void)
{
    drupe_event_complete(first, DRUPE_PHASE_NATIVE);
}

static void cancel(size_t goes_on, size_t does_not)
{
    ok(drupe_queue_cancel(queue, &left, &given_up));
    assert_int_equal(left, goes_on);
    assert_int_equal(given_up, does_not);
}

static void expect(const drupe_memory *memory, uint8_t byte)
{
    const uint8_t *bytes = drupe_memory_pointer(memory);
    for (size_t i = 0; i < BYTES; i++) assert_int_equal(bytes[i], byte);
}

static void expect_given_up(drupe_memory *memory)
{
    assert_int_equal(drupe_memory_contents(memory), DRUPE_E_CANCELLED);
    expect(memory, BEFORE);
}

static void open_gate(void)
{
    assert_int_equal(sem_post(&gate), 0);
    ok(drupe_queue_wait(queue, DRUPE_FOREVER));
}

/* Or nobody would ever hear that it did not run. */
static void what_core_takes_to_run_does(void **state)
{
    (void)state;
    end_event();
    fill(memories[0], AFTER);
    fill(memories[1], AFTER);
    cancel(1, 1);
    open_gate();
    ok(drupe_memory_contents(memories[0]));
    expect(memories[0], AFTER);
    expect_given_up(memories[1]);
}

static void it_does_also_when_asked_twice(void **state)
{
    (void)state;
    end_event();
    fill(memories[0], AFTER);
    fill(memories[1], AFTER);
    cancel(1, 1);
    fill(memories[2], AFTER);
    cancel(1, 2);
    open_gate();
    expect(memories[0], AFTER);
    expect_given_up(memories[1]);
    expect_given_up(memories[2]);
}

/* It was told. */
static void what_was_given_up_stays_so(void **state)
{
    (void)state;
    fill(memories[0], AFTER);
    cancel(1, 1);
    end_event();
    fill(memories[1], AFTER);
    cancel(1, 1);
    open_gate();
    expect_given_up(memories[0]);
    expect_given_up(memories[1]);
    fill(memories[1], AFTER);
    ok(drupe_queue_wait(queue, DRUPE_FOREVER));
    ok(drupe_memory_contents(memories[1]));
    expect(memories[1], AFTER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_core_takes_to_run_does),
        TEST(it_does_also_when_asked_twice),
        TEST(what_was_given_up_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
