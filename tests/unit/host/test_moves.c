/* Which thread makes a copy or fill on the host device, and until when. */
#include "base/base.h"
#include "drupe/memory.h"
#include "drupe/program.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB  ((size_t)1 << 10)
#define MIB  ((size_t)1 << 20)
#define LONG UINT64_C(60000000000)

static void ok(drupe_status status)
{
    if (status != DRUPE_OK) fail_msg("%s: %s", drupe_status_name(status), drupe_error_last()->text);
}

/* A device some of whose workers are held at a gate, and two pieces of memory on a queue of their own. */
static struct {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue, *gates[4];
    drupe_memory *word, *from, *to;
    size_t held;
} bench;

static _Atomic(uint64_t) *gate_word(void)
{
    return drupe_memory_pointer(bench.word);
}

static void open_gate(void)
{
    atomic_store(gate_word(), 1);
}

static drupe_kernel *gate_kernel(void)
{
    drupe_program *program;
    drupe_kernel *kernel;
    drupe_source source = {.language = DRUPE_LANG_BUILTIN};
    ok(drupe_program_open(bench.context, bench.device, &source, NULL, &program));
    ok(drupe_kernel_open(program, "test_gate", &kernel));
    drupe_program_release(program);
    return kernel;
}

/* One worker is at the gate when this returns. */
static void hold_one(drupe_kernel *kernel)
{
    drupe_queue *queue;
    ok(drupe_queue_open(bench.context, bench.device, 0, &queue));
    bench.gates[bench.held++] = queue;
    void *word = gate_word();
    drupe_arg arg = {DRUPE_ARG_POINTER, 0, &word};
    drupe_range range = {.dims = 1, .global = {1}};
    drupe_submission s = {.queue = queue};
    drupe_event *event;
    ok(drupe_submit_kernel(&s, kernel, &range, &arg, 1, &event));
    while (drupe_event_state_of(event) != DRUPE_EVENT_RUNNING) sched_yield();
    drupe_event_release(event);
}

static void open_bench(const char *workers, size_t held, size_t bytes)
{
    memset(&bench, 0, sizeof bench);
    setenv("DRUPE_HOST_THREADS", workers, 1);
    ok(drupe_device_select("host", &bench.device));
    ok(drupe_device_context(bench.device, &bench.context));
    ok(drupe_queue_open(bench.context, bench.device, 0, &bench.queue));
    ok(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, sizeof(uint64_t), 0, &bench.word));
    ok(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, bytes, 0, &bench.from));
    ok(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, bytes, 0, &bench.to));
    memset(drupe_memory_pointer(bench.from), 7, bytes);
    memset(drupe_memory_pointer(bench.to), 0, bytes);
    atomic_init(gate_word(), 0);
    drupe_kernel *kernel = gate_kernel();
    for (size_t i = 0; i < held; i++) hold_one(kernel);
    drupe_kernel_release(kernel);
}

static void close_bench(void)
{
    if (!bench.device) return;
    open_gate();
    for (size_t i = 0; i < bench.held; i++) {
        ok(drupe_queue_wait(bench.gates[i], LONG));
        drupe_queue_release(bench.gates[i]);
    }
    ok(drupe_queue_wait(bench.queue, LONG));
    drupe_memory_release(bench.word);
    drupe_memory_release(bench.from);
    drupe_memory_release(bench.to);
    drupe_queue_release(bench.queue);
    drupe_context_release(bench.context);
    drupe_device_release(bench.device);
    bench.device = NULL;
}

/* Also of a test that failed, whose gate is closed. */
static int teardown(void **state)
{
    (void)state;
    close_bench();
    unsetenv("DRUPE_HOST_THREADS");
    return drupe_library_close(1000000000u) == 0 ? 0 : -1;
}

static drupe_event *copy(size_t bytes)
{
    drupe_event *event;
    drupe_submission s = {.queue = bench.queue};
    ok(drupe_submit_copy(&s, drupe_memory_pointer(bench.to), drupe_memory_pointer(bench.from), bytes,
                         &event));
    return event;
}

static size_t copied(size_t bytes)
{
    const unsigned char *to = drupe_memory_pointer(bench.to);
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += to[i] == 7;
    return count;
}

/* Instead of waking somebody. */
static void at_once_where_all_sleep(void **state)
{
    (void)state;
    open_bench("2", 1, MIB);
    drupe_event *event = copy(MIB);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    assert_int_equal(copied(MIB), MIB);
    drupe_event_release(event);
}

/* Nobody would have to be woken: it waits for the worker, or for somebody who helps. */
static void handed_over_where_all_are_busy(void **state)
{
    (void)state;
    open_bench("1", 1, MIB);
    drupe_event *event = copy(128 * KIB);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    drupe_event_release(event);
    event = copy(MIB);
    assert_int_not_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    assert_int_equal(copied(MIB), 128 * KIB);
    ok(drupe_event_wait(event, LONG));
    assert_int_equal(copied(MIB), MIB);
    drupe_event_release(event);
}

/* Who helps does not make all of it when its time is over, also where there is one worker. */
static void help_ends_in_time(void **state)
{
    const char *const *workers = *state;
    open_bench(*workers, (size_t)atoi(*workers), 64 * MIB);
    drupe_event *event = copy(64 * MIB);
    assert_int_equal(drupe_event_wait(event, 100000), DRUPE_E_TIMEOUT);
    assert_true(copied(64 * MIB) <= 63 * MIB);
    assert_int_equal(drupe_queue_wait(bench.queue, 100000), DRUPE_E_TIMEOUT);
    assert_int_not_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    open_gate();
    ok(drupe_event_wait(event, LONG));
    assert_int_equal(copied(64 * MIB), 64 * MIB);
    drupe_event_release(event);
}

/* What a thread that helped has left is done, although nobody waits any more. */
static void left_overs_are_done(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        open_bench("3", 2, 16 * MIB);
        drupe_event *event = copy(16 * MIB);
        const drupe_status status = drupe_event_wait(event, (uint64_t)i * 50000);
        assert_true(status == DRUPE_OK || status == DRUPE_E_TIMEOUT);
        const uint64_t deadline = drupe_deadline(LONG);
        while (drupe_event_state_of(event) != DRUPE_EVENT_COMPLETE && drupe_now_ns() < deadline)
            sched_yield();
        assert_int_equal(copied(16 * MIB), 16 * MIB);
        drupe_event_release(event);
        assert_int_equal(teardown(state), 0);
    }
}

/* Many sizes around those where the way changes, with several queues and nobody who waits in between. */
static void every_size_is_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,       128 * KIB, 128 * KIB + 1, MIB - 1, MIB,
                                   MIB + 1, 2 * MIB,   2 * MIB + 5,   5 * MIB};
    open_bench("3", 0, 5 * MIB);
    for (size_t round = 0; round < 10; round++) {
        for (size_t i = 0; i < DRUPE_COUNT_OF(sizes); i++) {
            drupe_submission s = {.queue = bench.queue};
            const unsigned char zero = 0;
            ok(drupe_submit_fill(&s, drupe_memory_pointer(bench.to), &zero, 1, 5 * MIB, NULL));
            drupe_event *event = copy(sizes[i]);
            if (round % 2) ok(drupe_event_wait(event, LONG));
            while (drupe_event_state_of(event) != DRUPE_EVENT_COMPLETE) sched_yield();
            assert_int_equal(copied(5 * MIB), sizes[i]);
            drupe_event_release(event);
        }
    }
}

int main(void)
{
    static const char *one = "1", *two = "2";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(at_once_where_all_sleep, teardown),
        cmocka_unit_test_teardown(handed_over_where_all_are_busy, teardown),
        cmocka_unit_test_prestate_setup_teardown(help_ends_in_time, NULL, teardown, &one),
        cmocka_unit_test_prestate_setup_teardown(help_ends_in_time, NULL, teardown, &two),
        cmocka_unit_test_teardown(left_overs_are_done, teardown),
        cmocka_unit_test_teardown(every_size_is_whole, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
