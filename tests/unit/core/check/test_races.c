/* Checked mode: what counts for the order of submissions, what is forgotten, and what is known of a kernel.
 */
#include "core/check/check_room.h"
#include "core_bench.h"

static drupe_queue *second;
static drupe_memory *memory; /* 1024 bytes, */
static char *at;             /* which begin here */
static drupe_submission s;   /* on `second` */

static int setup(void **state)
{
    drupe_library_observe(&bench_observer);
    drupe_check_begin();
    if (bench_setup(state) != 0) return -1;
    OK(drupe_queue_open(bench.context, bench.device, 0, &second));
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 1024);
    at = drupe_memory_pointer(memory);
    s = (drupe_submission){.queue = second};
    return 0;
}

static int teardown(void **state)
{
    drupe_memory_release(memory);
    drupe_queue_release(second);
    const int result = bench_teardown(state);
    drupe_check_end();
    drupe_library_observe(NULL);
    return result;
}

static void wait_for_both(void)
{
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
}

/* --- Order ------------------------------------------------------------------------------------------------
 */

static void waits_that_are_no_events_are_skipped(void **state)
{
    (void)state;
    drupe_event *waits[2] = {NULL, NULL};
    OK(bench_fill(bench.queue, memory, 1, NULL, &waits[1]));
    s.waits = waits;
    s.nwaits = 2;
    OK(drupe_submit_fill(&s, at, "x", 1, 1024, NULL));
    drupe_event_release(waits[1]);
    wait_for_both();
}

static void what_does_not_run_touches_nothing(void **state)
{
    (void)state;
    drupe_event *failure = bench_failure(bench.queue, "before", NULL), *event;
    while (drupe_event_state_of(failure) != DRUPE_EVENT_FAILED) continue;
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));           /* behind it: skipped at once */
    assert_int_equal(drupe_event_phase(event), DRUPE_PHASE_FAILED); /* without being told of it */
    OK(bench_fill(second, memory, 2, NULL, NULL));
    OK(drupe_queue_wait(second, LONG));
    bench_expect_bytes(memory, 2, 1024);
    assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INVALID);
    drupe_event_release(failure);
    drupe_event_release(event);
}

/* The ring has room for so many; the event of what was there before tells nothing of the one that is. */
static void an_old_event_says_nothing_of_later_work(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *old;
    OK(bench_barrier(second, NULL, &old));
    while (drupe_inflight_latest() + 1 < drupe_event_submission(old) + 1024)
        drupe_trace_skip(drupe_inflight_next());
    OK(bench_fill(bench.queue, memory, 1, gate, NULL)); /* in the same place */
    OK(drupe_event_wait(old, LONG));
    FAILS(bench_fill(second, memory, 2, NULL, NULL), DRUPE_E_CHECK, "Race: 'fill'");
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(bench_fill(second, memory, 2, NULL, NULL));
    OK(drupe_queue_wait(second, LONG));
    drupe_event_release(old);
}

static void one_that_reads_is_told_so(void **state)
{
    (void)state;
    char here[64];
    drupe_event *gate = bench_gate();
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    FAILS(drupe_submit_copy(&s, here, at, 64, NULL), DRUPE_E_CHECK, "would read 64 bytes");
    FAILS(drupe_check_host(at, 8, true), DRUPE_E_CHECK, "Race: the host would write memory that 'fill'");
    assert_non_null(strstr(drupe_error_last()->text, "may still be writing"));
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_submit_copy(&s, here, at, 64, NULL));
    OK(drupe_check_host(at, 8, false));
    FAILS(drupe_check_host(at, 8, true), DRUPE_E_CHECK, "may still be reading");
    OK(drupe_queue_wait(second, LONG));
}

/* --- What is forgotten ------------------------------------------------------------------------------------
 */

static _Atomic(int) dropped;

static void drop(void *unused)
{
    (void)unused;
    atomic_store(&dropped, 1);
}

/* Host memory is another's once the submission that kept it alive does so no more. */
static void memory_that_was_kept_is_given_up(void **state)
{
    (void)state;
    static char here[64];
    const drupe_keep keep = {here, drop};
    drupe_event *event;
    atomic_store(&dropped, 0);
    s.keeps = &keep;
    s.nkeeps = 1;
    OK(drupe_submit_copy(&s, here, at, 64, &event));
    drupe_event_release(event); /* nobody is told of its end */
    while (!atomic_load(&dropped)) drupe_queue_collect(second);
    OK(drupe_check_host(here, 64, true));
    FAILS(drupe_check_host(at, 64, true), DRUPE_E_CHECK, "may still be reading");
    OK(drupe_queue_wait(second, LONG));
    /* What it did not keep is as it was. */
    s.nkeeps = 0;
    OK(drupe_submit_copy(&s, here, at, 64, &event));
    drupe_event_release(event);
    while (drupe_memory_in_use(memory)) drupe_queue_collect(second);
    FAILS(drupe_check_host(here, 64, true), DRUPE_E_CHECK, "may still be writing");
    OK(drupe_queue_wait(second, LONG));
}

static void bytes_that_are_nobodys_do_not_race(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    FAILS(bench_fill(second, memory, 2, gate, NULL), DRUPE_E_CHECK, "Race");
    drupe_check_forget(at, 1024);
    OK(bench_fill(second, memory, 2, gate, NULL));
    bench_open_gate(gate);
    wait_for_both();
}

static void the_host_may_look_at_what_was_freed(void **state)
{
    (void)state;
    drupe_memory *gone = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    char *there = drupe_memory_pointer(gone);
    OK(bench_fill(bench.queue, gone, 1, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_memory_release(gone);
    OK(drupe_check_host(there, 64, true)); /* it is no race */
}

/* An overrun names the latest one that wrote, not one that read since. */
static void those_that_read_do_not_overrun(void **state)
{
    (void)state;
    char here[64];
    s.label = "reader";
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_submit_copy(&s, here, at, 64, NULL));
    OK(drupe_queue_wait(second, LONG));
    at[1024] = 1;
    FAILS(drupe_check_memory(), DRUPE_E_CHECK, "The latest work that wrote to it is 'fill'.");
}

/* --- Kernels ----------------------------------------------------------------------------------------------
 */

static drupe_arg_info info = {.kind = DRUPE_ARG_POINTER, .lanes = 1, .name = "out", .type_name = "ulong*"};

static drupe_status launch(drupe_queue *queue, void *out, size_t items, const drupe_access *accesses,
                           size_t naccesses)
{
    const drupe_submission own = {.queue = queue, .accesses = accesses, .naccesses = naccesses};
    const drupe_range range = {.dims = items > 1 ? 3 : 1, .global = {items, items, 1}};
    const drupe_arg arg = {DRUPE_ARG_POINTER, sizeof out, &out};
    bench.gid->args = &info;
    const drupe_status status = drupe_submit_kernel(&own, bench.gid, &range, &arg, 1, NULL);
    bench.gid->args = NULL;
    return status;
}

static void so_many_accesses_are_looked_at(void **state)
{
    (void)state;
    enum { MOST = 12 };
    drupe_access accesses[MOST + 1];
    for (size_t i = 0; i <= MOST; i++) accesses[i] = (drupe_access){at + 64 * i, 8, true};
    OK(launch(bench.queue, at, 1, accesses, MOST + 1));
    FAILS(launch(second, at, 1, &accesses[MOST - 1], 1), DRUPE_E_CHECK, "Race");
    OK(launch(second, at, 1, &accesses[MOST], 1));
    wait_for_both();
}

/* The elements' size times the work-items, but never more than the allocation has. */
static void a_kernel_touches_no_more_than_there_is(void **state)
{
    (void)state;
    static const struct {
        drupe_scalar_type scalar;
        size_t items;
        const char *words;
    } cases[] = {
        {DRUPE_SCALAR_U64, 2, "would write 32 bytes"},
        {DRUPE_SCALAR_U64, 1000, "would write 1024 bytes"},
        {DRUPE_SCALAR_U64, SIZE_MAX / 2, "would write 1024 bytes"}, /* more than can be counted */
        {DRUPE_SCALAR_UNKNOWN, 1, "would write 1024 bytes"},
    };
    drupe_event *gate = bench_gate();
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        info.scalar = cases[i].scalar;
        FAILS(launch(second, at, cases[i].items, NULL, 0), DRUPE_E_CHECK, cases[i].words);
    }
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
}

static void null_pointers_and_values_touch_nothing(void **state)
{
    (void)state;
    const drupe_range range = {.dims = 1, .global = {1}};
    static const uint64_t none;
    void *nowhere = NULL;
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof nowhere, &nowhere},
                              {DRUPE_ARG_POINTER, sizeof nowhere, &nowhere},
                              {DRUPE_ARG_VALUE, 8, &none},
                              {DRUPE_ARG_VALUE, 8, &none},
                              {DRUPE_ARG_VALUE, 8, &none}};
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    OK(drupe_submit_kernel(&s, bench.mad, &range, args, 5, NULL));
    wait_for_both();
}

static drupe_memory *going;

static void let_go(void)
{
    drupe_memory_release(going);
}

/* Its last handle goes on another thread, after the launch has found it. */
static void memory_that_goes_meanwhile_is_used_after_that(void **state)
{
    (void)state;
    going = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    void *there = drupe_memory_pointer(going);
    bench_meanwhile = let_go;
    FAILS(launch(second, there, 1, NULL, 0), DRUPE_E_CHECK, "Use after free: test_gid: ");
    assert_null(bench_meanwhile);
    OK(drupe_check_memory()); /* it did not run */
}

/* The last one: a device is lost for the process. A copy from it is made at once, and has no number. */
static void an_event_without_a_number_is_nobodys(void **state)
{
    (void)state;
    char here[64];
    drupe_event *event;
    drupe_failure failure;
    const uint64_t before = drupe_check_findings();
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away."};
    drupe_core_device_lost(bench.device, &error, true);
    OK(drupe_submit_copy(&s, here, at, 64, &event));
    assert_int_equal(drupe_event_submission(event), 0);
    OK(drupe_event_wait(event, LONG));
    assert_int_equal(drupe_check_findings(), before);
    drupe_event_release(event);
    while (drupe_failure_take(&failure)) continue;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(waits_that_are_no_events_are_skipped),    TEST(what_does_not_run_touches_nothing),
        TEST(an_old_event_says_nothing_of_later_work), TEST(one_that_reads_is_told_so),
        TEST(memory_that_was_kept_is_given_up),        TEST(bytes_that_are_nobodys_do_not_race),
        TEST(the_host_may_look_at_what_was_freed),     TEST(those_that_read_do_not_overrun),
        TEST(so_many_accesses_are_looked_at),          TEST(a_kernel_touches_no_more_than_there_is),
        TEST(null_pointers_and_values_touch_nothing),  TEST(memory_that_goes_meanwhile_is_used_after_that),
        TEST(an_event_without_a_number_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
