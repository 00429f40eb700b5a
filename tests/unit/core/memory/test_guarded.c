/* What memory asks of checked mode, and in which order; here the test answers. */
#include "core/memory/memory_room.h"
#include "core_bench.h"
#include "test_script.h"

static char asked[256]; /* a letter for each question, in their order */
static drupe_memory *kept;
static bool lowers;
static unsigned frees;

static void note(char letter)
{
    const size_t length = strlen(asked);
    assert_true(length + 1 < sizeof asked);
    asked[length] = letter;
    asked[length + 1] = '\0';
}

static void plan(drupe_memory *memory, size_t align)
{
    note(align == 256 ? 'P' : 'p');
    memory->redzone = memory->behind = 4096;
    memory->guard_bytes = 4096;
}

static void begin(drupe_memory *memory)
{
    note('o');
    assert_int_equal((uintptr_t)((char *)memory->base - memory->redzone) % drupe_page_size(), 0);
}

static void keep(drupe_memory *memory)
{
    note('g');
    assert_null(kept);
    kept = memory;
}

static void leave(drupe_memory *memory)
{
    note('v');
    assert_non_null(memory->base);
}

static void flush(const drupe_pool *pool)
{
    note('f');
    if (!kept || kept->pool != pool) return;
    drupe_pool_discard(kept);
    kept = NULL;
}

static bool lower(const drupe_memory *memory)
{
    (void)memory;
    note('l');
    return lowers;
}

static drupe_status freed(const drupe_memory *memory, const char *what, const void *address)
{
    note('r');
    assert_ptr_equal(memory, kept);
    return drupe_error_set(DRUPE_E_CHECK, "%s: freed, byte %zu.", what,
                           (size_t)((const char *)address - (char *)memory->base));
}

static void forget(const void *base, size_t bytes)
{
    note('n');
    assert_non_null(base);
    assert_int_equal(bytes, 100);
}

static const drupe_redzone_ops answers = {.plan = plan,
                                          .open = begin,
                                          .give = keep,
                                          .leave = leave,
                                          .flush = flush,
                                          .lower = lower,
                                          .freed = freed,
                                          .forget = forget};

static void (*real_free)(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer);

static void mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer)
{
    frees++;
    real_free(context, device, kind, pointer);
}

static drupe_status mem_export(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                               void *pointer, size_t size, unsigned char handle[DRUPE_IPC_BYTES])
{
    (void)context, (void)device, (void)kind, (void)pointer, (void)size, (void)handle;
    return DRUPE_OK;
}

static int setup(void **state)
{
    (void)state;
    test_script_reset();
    real_free = test_script_tables[0].mem_free;
    test_script_tables[0].mem_free = mem_free;
    test_script_tables[0].mem_export = mem_export;
    asked[0] = '\0';
    frees = 0;
    lowers = true;
    return bench_open("host", 0);
}

static void check(bool on, const drupe_redzone_ops *ops)
{
    atomic_store(&drupe_redzone_ops_now, ops);
    atomic_store(&drupe_check_depth, on);
}

static int teardown(void **state)
{
    check(false, NULL);
    return bench_teardown(state);
}

static void expect(const char *letters)
{
    assert_string_equal(asked, letters);
    asked[0] = '\0';
}

static void guarded_memory_is_asked_about_from_its_plan_to_its_end(void **state)
{
    (void)state;
    drupe_memory *memory, *found;
    unsigned char handle[DRUPE_IPC_BYTES];
    check(true, &answers);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 100, 256, &memory));
    expect("Po");
    const char *at = drupe_memory_pointer(memory);
    FAILS(drupe_memory_export(memory, handle), DRUPE_E_UNSUPPORTED, "cannot be shared");
    drupe_memory_release(memory);
    expect("ng");
    FAILS(drupe_registry_find(at + 3, 1, "test", &found), DRUPE_E_CHECK, "test: freed, byte 3.");
    expect("r");
    assert_int_equal(frees, 0);
    assert_int_equal(drupe_pool_trim(bench.device), 0); /* what was kept back is not the pool's */
    expect("fflf");
    assert_int_equal(frees, 1);
}

/* It goes to no list, however much work of one queue still uses it. */
static void guarded_memory_does_not_stay_in_order(void **state)
{
    (void)state;
    drupe_memory *memory = NULL, *other;
    drupe_event *event;
    check(true, &answers);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 100, 0, &memory));
    check(false, &answers);
    const void *at = drupe_memory_pointer(memory);
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 100, &other));
    assert_ptr_not_equal(drupe_memory_pointer(other), at);
    test_script_finish(event, true);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_queue_collect(bench.queue);
    expect("pog"); /* checked mode is over: nobody has bytes to be forgotten */
    drupe_memory_release(other);
    drupe_pool_trim(bench.device);
}

static void pages_that_stay_shut_are_not_given_back(void **state)
{
    (void)state;
    drupe_memory *memory;
    check(true, &answers);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 100, 0, &memory));
    void *start = (char *)drupe_memory_pointer(memory) - 4096;
    drupe_memory_release(memory);
    lowers = false;
    drupe_pool_trim(bench.device);
    assert_null(kept);
    assert_int_equal(frees, 0);
    free(start);
    drupe_pool_stats stats;
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.reserved, 0);
}

/* Checked mode may be known to be on a moment before what it registers. */
static void checked_mode_without_its_table_guards_nothing(void **state)
{
    (void)state;
    check(true, NULL);
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 100);
    const void *at = drupe_memory_pointer(memory);
    drupe_memory_release(memory);
    expect("");
    check(false, NULL);
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 100);
    assert_ptr_equal(drupe_memory_pointer(memory), at);
    drupe_memory_release(memory);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(guarded_memory_is_asked_about_from_its_plan_to_its_end),
        TEST(guarded_memory_does_not_stay_in_order),
        TEST(pages_that_stay_shut_are_not_given_back),
        TEST(checked_mode_without_its_table_guards_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
