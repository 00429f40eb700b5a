/* A thread that waits for a copy of core's threads takes part in it. Over `host` with pinned memory, as on a
 * CPU device of a driver. */
#include "core/transfer/transfer_room.h"
#include "core_bench.h"
#include <sched.h>
#include <stdatomic.h>

#define MIB ((size_t)1 << 20)

static drupe_backend table; /* `host` with pinned memory */
static const drupe_backend *real;
static _Atomic(int) copies; /* by the backend */

static drupe_status mem_pin(drupe_context *context, size_t size, void **pointer)
{
    (void)context;
    (void)size;
    (void)pointer;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No pinned memory.");
}

static drupe_status submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    atomic_fetch_add(&copies, 1);
    return real->submit_copy(s, dst, src, bytes);
}

static int setup(void **state)
{
    if (bench_setup(state) != 0) return -1;
    real = bench.device->slot->backend;
    table = *real;
    table.mem_pin = mem_pin;
    table.submit_copy = submit_copy;
    bench.device->slot->backend = &table;
    /* So many threads copy, whatever the machine has. */
    (void)drupe_device_number(bench.device, DRUPE_INFO_MAX_COMPUTE_UNITS, 0);
    bench.device->info[DRUPE_INFO_MAX_COMPUTE_UNITS].number[0] = 4;
    atomic_store(&copies, 0);
    return 0;
}

/* Numbers that show where a byte belongs. */
static void paint(void *bytes, size_t size)
{
    uint32_t *words = bytes;
    for (size_t i = 0; i < size / 4; i++) words[i] = (uint32_t)(i * 2654435761u);
}

/* --- Workers that are busy -------------------------------------------------------------------------------
 */

enum { WORKERS = 64 }; /* all that there can be */
static drupe_job held[WORKERS];
static _Atomic(unsigned) at_gate, left_gate;
static _Atomic(bool) gate_open;

static void wait_at_gate(drupe_job *job)
{
    (void)job;
    atomic_fetch_add(&at_gate, 1);
    while (!atomic_load(&gate_open)) sched_yield();
    atomic_fetch_add(&left_gate, 1);
}

/* No worker of core is to be had. */
static void hold_workers(void)
{
    atomic_store(&at_gate, 0);
    atomic_store(&left_gate, 0);
    atomic_store(&gate_open, false);
    OK(drupe_worker_start());
    for (size_t i = 0; i < WORKERS; i++) drupe_worker_post(&held[i], wait_at_gate, wait_at_gate, "gate");
    while (atomic_load(&at_gate) < WORKERS) sched_yield();
}

static void let_workers_go(void)
{
    atomic_store(&gate_open, true);
    while (atomic_load(&left_gate) < atomic_load(&at_gate)) sched_yield();
}

/* Also of a test that failed. */
static int teardown_gate(void **state)
{
    let_workers_go();
    drupe_slot *slot = bench.device->slot;
    const int result = bench_teardown(state);
    slot->backend = real;
    return result;
}

/* `sound` memory at both ends. */
static drupe_event *copy_sound(void *dst, const void *src, size_t size)
{
    const drupe_submission s = {.queue = bench.queue, .label = "large", .sound = true};
    drupe_event *event;
    OK(drupe_submit_copy(&s, dst, src, size, &event));
    return event;
}

static void who_waits_makes_what_nobody_has_begun(void **state)
{
    (void)state;
    const size_t size = 9 * MIB + 4;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *from = malloc(size), *to = calloc(1, size), *at = drupe_memory_pointer(memory);
    paint(from, size);
    hold_workers();
    drupe_event *event = copy_sound(at, from, size);
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    drupe_event_release(event);
    event = copy_sound(to, at, size);
    OK(drupe_event_wait(event, LONG));
    assert_memory_equal(from, to, size);
    drupe_event_release(event);
    assert_int_equal(atomic_load(&copies), 0);
    drupe_memory_release(memory);
    free(from);
    free(to);
}

static void who_waits_keeps_its_time(void **state)
{
    (void)state;
    const size_t size = 64 * MIB;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *from = malloc(size), *at = drupe_memory_pointer(memory);
    paint(from, size);
    memset(at + size - MIB, 0, MIB);
    hold_workers();
    drupe_event *event = copy_sound(at, from, size);
    FAILS(drupe_event_wait(event, 0), DRUPE_E_TIMEOUT, "");
    FAILS(drupe_event_wait(event, 100000), DRUPE_E_TIMEOUT, "");
    for (size_t i = size - MIB; i < size; i++) assert_int_equal(at[i], 0);
    let_workers_go(); /* they go on with it */
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_memory_equal(from, at, size);
    drupe_event_release(event);
    drupe_memory_release(memory);
    free(from);
}

static void copies_nobody_waits_for_end(void **state)
{
    (void)state;
    const size_t size = 9 * MIB + 4;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *from = malloc(size), *at = drupe_memory_pointer(memory);
    paint(from, size);
    for (size_t i = 0; i < 50; i++) {
        memset(at, 0, size);
        drupe_event *event = copy_sound(at, from, size);
        const drupe_status status = i % 2 ? drupe_event_wait(event, i * 20000) : DRUPE_OK;
        assert_true(status == DRUPE_OK || status == DRUPE_E_TIMEOUT);
        while (drupe_event_state_of(event) != DRUPE_EVENT_COMPLETE) sched_yield();
        assert_memory_equal(from, at, size);
        drupe_event_release(event);
    }
    drupe_memory_release(memory);
    free(from);
}

/* A thread that waits gets no memory of others that may not be there. */
static void who_waits_leaves_alone_what_may_fault(void **state)
{
    (void)state;
    const size_t size = 17 * MIB;
    const drupe_submission s = {.queue = bench.queue, .label = "large"};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *from = calloc(1, size);
    drupe_event *event;
    hold_workers();
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), from, size, &event));
    FAILS(drupe_event_wait(event, 1000000), DRUPE_E_TIMEOUT, "");
    let_workers_go();
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_memory_release(memory);
    free(from);
}

#define GATE(name) cmocka_unit_test_setup_teardown(name, setup, teardown_gate)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(who_waits_makes_what_nobody_has_begun),
        GATE(who_waits_keeps_its_time),
        GATE(copies_nobody_waits_for_end),
        GATE(who_waits_leaves_alone_what_may_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
