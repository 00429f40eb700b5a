/* Checked mode: races, bounds, what was freed. Each finding has words, and nothing right is found. */
#include "core/check/check_room.h"
#include "core_bench.h"
#include "drupe/fault.h"

static drupe_queue *second;

static int setup(void **state)
{
    drupe_check_begin();
    if (bench_setup(state) != 0) return -1;
    return drupe_queue_open(bench.context, bench.device, 0, &second) == DRUPE_OK ? 0 : -1;
}

static int teardown(void **state)
{
    drupe_queue_release(second);
    const int result = bench_teardown(state);
    drupe_check_end();
    return result;
}

static drupe_memory *shared(size_t bytes)
{
    return bench_memory(bench.queue, DRUPE_MEM_SHARED, bytes);
}

/* --- Races -----------------------------------------------------------------------------------------------
 */

static void two_queues_that_write_the_same_race(void **state)
{
    (void)state;
    drupe_memory *memory = shared(1024);
    const uint64_t before = drupe_check_findings();
    drupe_event *event;
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    FAILS(bench_fill(second, memory, 2, NULL, NULL), DRUPE_E_CHECK,
          "Race: 'fill' on host:cpu:0 would write 1024 bytes");
    assert_non_null(
        strstr(drupe_error_last()->text, "may still be writing, and nothing orders the two. Have it"));
    assert_int_equal(drupe_check_findings(), before + 1);
    OK(bench_fill(second, memory, 2, event, NULL)); /* in order */
    OK(bench_fill(second, memory, 3, NULL, NULL));
    OK(drupe_queue_wait(second, LONG));
    bench_expect_bytes(memory, 3, 1024);
    drupe_event_release(event);
    drupe_memory_release(memory);
}

static void order_is_what_was_asked_for(void **state)
{
    (void)state;
    drupe_memory *memory = shared(1024), *copy = shared(1024);
    const drupe_submission s = {.queue = second};
    drupe_event *event;
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    /* A wait of the host orders all that comes after. */
    OK(drupe_event_wait(event, LONG));
    OK(bench_fill(second, memory, 2, NULL, NULL));
    OK(drupe_queue_wait(second, LONG));
    OK(bench_fill(bench.queue, memory, 3, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    /* Two that read do not race. */
    const drupe_submission ours = {.queue = bench.queue};
    char here[2][1024];
    OK(drupe_submit_copy(&s, here[0], drupe_memory_pointer(memory), 1024, NULL));
    OK(drupe_submit_copy(&ours, here[1], drupe_memory_pointer(memory), 1024, NULL));
    /* One that writes races with both. */
    FAILS(drupe_submit_copy(&ours, drupe_memory_pointer(memory), drupe_memory_pointer(copy), 8, NULL),
          DRUPE_E_CHECK, "may still be reading");
    OK(drupe_queue_wait(second, LONG));
    OK(drupe_submit_copy(&ours, drupe_memory_pointer(memory), drupe_memory_pointer(copy), 8, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(event);
    drupe_memory_release(memory);
    drupe_memory_release(copy);
}

static void an_unordered_queue_races_with_itself(void **state)
{
    (void)state;
    drupe_queue *queue;
    drupe_memory *memory = shared(64);
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_OUT_OF_ORDER, &queue));
    OK(bench_fill(queue, memory, 1, NULL, NULL));
    FAILS(bench_fill(queue, memory, 2, NULL, NULL), DRUPE_E_CHECK, "the queue is out-of-order");
    OK(bench_barrier(queue, NULL, NULL));
    OK(bench_fill(queue, memory, 2, NULL, NULL));
    OK(drupe_queue_wait(queue, LONG));
    drupe_queue_release(queue);
    drupe_memory_release(memory);
}

static void the_host_races_too(void **state)
{
    (void)state;
    drupe_memory *memory = shared(64);
    drupe_event *gate = bench_gate();
    char here[64];
    const drupe_submission s = {.queue = bench.queue};
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    FAILS(drupe_check_host(drupe_memory_pointer(memory), 8, false), DRUPE_E_CHECK,
          "Race: the host would read memory that 'fill'");
    OK(drupe_submit_copy(&s, here, drupe_memory_pointer(memory), 64, NULL));
    FAILS(drupe_check_host(here, 8, true), DRUPE_E_CHECK, "the host would write memory that 'copy'");
    OK(drupe_check_host(&s, sizeof s, true));
    OK(drupe_check_host(here, 0, true));
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_check_host(drupe_memory_pointer(memory), 8, true));
    drupe_memory_release(memory);
}

static void what_failed_or_was_closed_is_no_party(void **state)
{
    (void)state;
    drupe_memory *memory = shared(64);
    drupe_queue *queue;
    drupe_event *failure, *event;
    OK(drupe_queue_open(bench.context, bench.device, 0, &queue));
    failure = bench_failure(queue, "before", NULL);
    OK(bench_fill(queue, memory, 1, NULL, &event));
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "'before'");
    assert_int_equal(drupe_event_wait(failure, LONG), DRUPE_E_INVALID);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_FAILED);
    OK(bench_fill(bench.queue, memory, 2, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(event);
    drupe_event_release(failure);
    drupe_queue_release(queue);
    drupe_memory_release(memory);
}

/* A ring of so many: what is older is forgotten. */
static void only_the_latest_are_known(void **state)
{
    (void)state;
    drupe_memory *memory = shared(64);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    for (size_t i = 0; i < 1100; i++) OK(bench_barrier(second, NULL, NULL));
    OK(bench_fill(second, memory, 2, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    drupe_memory_release(memory);
}

/* --- What kernels touch ----------------------------------------------------------------------------------
 */

static drupe_status launch(drupe_queue *queue, void *out, const drupe_access *accesses, size_t naccesses)
{
    const drupe_submission s = {.queue = queue, .accesses = accesses, .naccesses = naccesses};
    const drupe_range range = {.dims = 1, .global = {4}};
    const drupe_arg arg = {DRUPE_ARG_POINTER, sizeof out, &out};
    return drupe_submit_kernel(&s, bench.gid, &range, &arg, 1, NULL);
}

static void kernels_touch_what_they_say(void **state)
{
    (void)state;
    drupe_memory *memory = shared(1024);
    char *at = drupe_memory_pointer(memory);
    const drupe_access first = {at, 32, true}, other = {at + 512, 32, true}, outside = {at + 1000, 64, true},
                       nothing = {at, 0, true};
    OK(launch(bench.queue, at, &first, 1));
    OK(launch(second, at + 512, &other, 1));
    FAILS(launch(second, at, &first, 1), DRUPE_E_CHECK, "Race");
    FAILS(launch(bench.queue, at, &outside, 1), DRUPE_E_CHECK,
          "Out of bounds: test_gid: 64 bytes from offset");
    OK(launch(bench.queue, at, &nothing, 1));
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    drupe_memory_release(memory);
}

static void without_a_word_it_is_one_element_an_item(void **state)
{
    (void)state;
    static drupe_arg_info info = {.kind = DRUPE_ARG_POINTER,
                                  .scalar = DRUPE_SCALAR_U64,
                                  .lanes = 1,
                                  .name = "out",
                                  .type_name = "ulong*"};
    drupe_memory *memory = shared(1024);
    char *at = drupe_memory_pointer(memory);
    OK(launch(bench.queue, at, NULL, 0)); /* nobody tells: all of the allocation */
    FAILS(launch(second, at + 512, NULL, 0), DRUPE_E_CHECK, "Race");
    OK(drupe_queue_wait(bench.queue, LONG));
    bench.gid->args = &info; /* four items of eight bytes */
    OK(launch(bench.queue, at, NULL, 0));
    OK(launch(second, at + 32, NULL, 0));
    FAILS(launch(second, at + 24, NULL, 0), DRUPE_E_CHECK, "Race");
    FAILS(launch(second, at + 4, NULL, 0), DRUPE_E_CHECK, "which is no multiple of the 8 bytes");
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    info.reads_only = true;
    OK(launch(bench.queue, at, NULL, 0));
    OK(launch(second, at, NULL, 0));
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    bench.gid->args = NULL;
    drupe_memory_release(memory);
}

/* --- Bounds ----------------------------------------------------------------------------------------------
 */

static void writes_beside_memory_are_found(void **state)
{
    (void)state;
    drupe_memory *memory = shared(100);
    char *at = drupe_memory_pointer(memory);
    OK(drupe_check_memory());
    at[100] = 1;
    FAILS(drupe_check_memory(), DRUPE_E_CHECK,
          "something wrote 0 bytes behind the shared memory of 100 bytes");
    assert_non_null(strstr(drupe_error_last()->text, "No work that wrote to it is known."));
    OK(drupe_check_memory()); /* told once */
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    at[-5] = 1;
    FAILS(drupe_check_memory(), DRUPE_E_CHECK, "something wrote 5 bytes before the shared memory");
    assert_non_null(strstr(drupe_error_last()->text, "The latest work that wrote to it is 'fill'."));
    at[4000] = 1;
    drupe_event *event;
    OK(bench_fill(bench.queue, memory, 2, NULL, &event));
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_CHECK, "3900 bytes behind"); /* a wait looks */
    drupe_event_release(event);
    drupe_memory_release(memory);
}

static void a_release_looks_for_the_last_time(void **state)
{
    (void)state;
    drupe_failure failure;
    drupe_memory *memory = shared(100);
    ((char *)drupe_memory_pointer(memory))[100] = 1;
    drupe_memory_release(memory);
    assert_true(drupe_failure_take(&failure));
    assert_int_equal(failure.error.status, DRUPE_E_CHECK);
    assert_non_null(strstr(failure.error.text, "behind the shared memory"));
}

static void freed_memory_is_kept_back(void **state)
{
    (void)state;
    drupe_failure failure;
    drupe_memory *memory = shared(100), *other = shared(100);
    char *at = drupe_memory_pointer(memory);
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory_release(memory);
    memory = shared(100);
    assert_ptr_not_equal(drupe_memory_pointer(memory), at);
    FAILS(drupe_submit_fill(&s, at, "x", 1, 8, NULL), DRUPE_E_CHECK, "Use after free: fill: ");
    at[7] = 1;
    FAILS(drupe_check_memory(), DRUPE_E_CHECK, "something wrote to byte 7 of 100 bytes of shared memory");
    OK(drupe_check_memory());
    /* Written to between the last look and its way to the driver. */
    at[9] = 1;
    drupe_redzone_release(NULL);
    assert_true(drupe_failure_take(&failure));
    assert_non_null(strstr(failure.error.text, "wrote to byte 9 of 100 bytes"));
    drupe_memory_release(memory);
    drupe_memory_release(other);
}

/* Of one pool only, and no more than so many. */
static void what_is_kept_back_has_limits(void **state)
{
    (void)state;
    drupe_pool_stats stats;
    drupe_queue *far = bench_elsewhere();
    drupe_redzone_release(NULL);
    drupe_memory *memory = bench_memory(far, DRUPE_MEM_SHARED, 64);
    drupe_memory_release(memory);
    for (size_t i = 0; i < 1030; i++) drupe_memory_release(shared(64));
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.reserved, 1024 * 64);
    memory = shared((64u << 20) + 64); /* too large to be kept */
    drupe_memory_release(memory);
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.reserved, 1024 * 64);
    drupe_memory_release(bench_memory(far, DRUPE_MEM_SHARED, 128)); /* the one between other pools' */
    drupe_memory_release(shared(64));
    drupe_queue_release(far); /* and with it its pools */
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.reserved, 1022 * 64 + 64);
    assert_true(drupe_pool_trim(bench.device) == 0);
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.reserved, 0);
}

static size_t place_text(uint32_t site, uint32_t cell, char *text, size_t size)
{
    (void)cell;
    return (size_t)snprintf(text, size, "line %u", site);
}

static uint32_t line_12(void)
{
    return 12;
}

static void findings_tell_both_places(void **state)
{
    (void)state;
    static const drupe_observer observer = {.site = line_12, .site_text = place_text};
    drupe_library_observe(&observer);
    drupe_memory *memory = shared(64);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    FAILS(bench_fill(second, memory, 2, NULL, NULL), DRUPE_E_CHECK, "This one: 'fill', line 12. The other: ");
    OK(drupe_queue_wait(bench.queue, LONG));
    ((char *)drupe_memory_pointer(memory))[64] = 1;
    FAILS(drupe_check_memory(), DRUPE_E_CHECK,
          "The work: 'fill', line 12. The memory: 'allocation', line 12.");
    drupe_memory_release(memory);
    drupe_library_observe(NULL);
}

/* --- On and off ------------------------------------------------------------------------------------------
 */

static void calls_nest(void **state)
{
    (void)state;
    drupe_memory *memory = shared(64);
    assert_true(drupe_check_active());
    drupe_check_begin();
    drupe_check_end();
    assert_true(drupe_check_active());
    drupe_check_end();
    assert_false(drupe_check_active());
    OK(drupe_check_host(drupe_memory_pointer(memory), 8, true));
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    OK(bench_fill(second, memory, 2, NULL, NULL)); /* nobody looks */
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    drupe_check_end(); /* one too many */
    drupe_check_begin();
    drupe_memory_release(memory); /* guarded, from before */
}

static void a_fault_inside_is_none_of_ours(void **state)
{
    (void)state;
    char text[300];
    drupe_memory *memory = shared(100);
    drupe_fault fault = {.address = (uintptr_t)drupe_memory_pointer(memory), .access = 2};
    assert_false(drupe_redzone_fault(&fault, text, sizeof text)); /* inside */
    drupe_memory_release(memory);
}

/* The last ones: faults are contained from here on, and memory ends at pages that nobody may touch. */
static void faults_are_told_from_guard_pages(void **state)
{
    (void)state;
    char text[300];
    const uint64_t before = drupe_check_findings();
    drupe_memory *memory = shared(4096);
    char *at = drupe_memory_pointer(memory);
    assert_int_equal((uintptr_t)at % 64, 0);
    drupe_fault fault = {.address = (uintptr_t)at + 4096 + 24, .access = 1};
    assert_true(drupe_redzone_fault(&fault, text, sizeof text));
    assert_string_equal(text, ": it read 24 bytes behind the end of the 4096 bytes of shared memory");
    fault = (drupe_fault){.address = (uintptr_t)at - 8192, .access = 2};
    assert_true(drupe_redzone_fault(&fault, text, sizeof text));
    assert_string_equal(text, ": it wrote 8192 bytes before the start of the 4096 bytes of shared memory");
    fault = (drupe_fault){.address = (uintptr_t)at + 100};
    assert_false(drupe_redzone_fault(&fault, text, sizeof text));
    fault = (drupe_fault){.address = 16};
    assert_false(drupe_redzone_fault(&fault, text, sizeof text));
    assert_int_equal(drupe_check_findings(), before + 2);
    memset(at, 1, 4096);
    OK(drupe_check_memory());
    drupe_memory_release(memory);
    fault = (drupe_fault){.address = (uintptr_t)at + 4096};
    assert_true(drupe_redzone_fault(&fault, text, sizeof text));
    assert_non_null(strstr(text, ": it touched 0 bytes behind the end of the 4096 bytes"));
    assert_non_null(strstr(text, ", which was freed"));
    /* What does not fill a page has bytes with a pattern before it. */
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 99);
    at = drupe_memory_pointer(memory);
    assert_int_equal((uintptr_t)at % 16, 0);
    at[-1] = 1;
    FAILS(drupe_check_memory(), DRUPE_E_CHECK, "1 bytes before");
    drupe_memory_release(memory);
}

static int setup_contained(void **state)
{
    drupe_fault_contain();
    return setup(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(two_queues_that_write_the_same_race),
        TEST(order_is_what_was_asked_for),
        TEST(an_unordered_queue_races_with_itself),
        TEST(the_host_races_too),
        TEST(what_failed_or_was_closed_is_no_party),
        TEST(only_the_latest_are_known),
        TEST(kernels_touch_what_they_say),
        TEST(without_a_word_it_is_one_element_an_item),
        TEST(writes_beside_memory_are_found),
        TEST(a_release_looks_for_the_last_time),
        TEST(freed_memory_is_kept_back),
        TEST(what_is_kept_back_has_limits),
        TEST(findings_tell_both_places),
        TEST(calls_nest),
        TEST(a_fault_inside_is_none_of_ours),
        cmocka_unit_test_setup_teardown(faults_are_told_from_guard_pages, setup_contained, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
