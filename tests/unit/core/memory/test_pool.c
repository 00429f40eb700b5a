/* Pools over a scripted device with more memory than any machine: what is too large for a size class, what
 * they keep, devices without a kind of memory, contexts over several devices. */
#include "core/memory/memory_room.h"
#include "core_bench.h"
#include "test_script.h"

#define GIB (UINT64_C(1) << 30)

static struct {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
} s;

static int open_all(const char *filter)
{
    if (drupe_device_select(filter, &s.device) == DRUPE_OK &&
        drupe_device_context(s.device, &s.context) == DRUPE_OK &&
        drupe_queue_open(s.context, s.device, 0, &s.queue) == DRUPE_OK)
        return 0;
    print_error("%s\n", drupe_error_last()->text);
    return -1;
}

static int setup(void **state)
{
    (void)state;
    unsetenv("DRUPE_MEMORY_KEEP");
    test_script_reset();
    test_script.backends[0].devices[0].memory = 64 * GIB;
    return open_all("host");
}

static int teardown(void **state)
{
    (void)state;
    drupe_queue_release(s.queue);
    drupe_context_release(s.context);
    drupe_device_release(s.device);
    return drupe_library_close(LONG) == 0 ? 0 : -1;
}

static drupe_memory *take(uint64_t bytes)
{
    return bench_memory(s.queue, DRUPE_MEM_SHARED, bytes);
}

static void large_pieces_go_to_those_that_use_most_of_them(void **state)
{
    (void)state;
    drupe_memory *large = take(2 * GIB), *larger = take(2 * GIB + GIB / 8);
    void *at = drupe_memory_pointer(large), *beside = drupe_memory_pointer(larger);
    drupe_memory_release(large);
    drupe_memory_release(larger);
    large = take(2 * GIB - GIB / 4);
    assert_ptr_equal(drupe_memory_pointer(large), at); /* seven eighths of it; the smaller of two */
    larger = take(GIB);
    assert_ptr_not_equal(drupe_memory_pointer(larger), beside); /* half of it */
    drupe_memory_release(large);
    drupe_memory_release(larger);
    assert_int_equal(drupe_pool_trim(s.device), 2 * GIB + 2 * GIB + GIB / 8 + GIB);
}

static void a_pool_keeps_a_share(void **state)
{
    (void)state;
    /* An eighth of the device. */
    drupe_memory *memories[5];
    for (size_t i = 0; i < 5; i++) memories[i] = take(2 * GIB);
    for (size_t i = 0; i < 5; i++) drupe_memory_release(memories[i]);
    assert_int_equal(drupe_pool_trim(s.device), 8 * GIB);
}

static void the_environment_says_what_is_kept(void **state)
{
    (void)state;
    drupe_context *context;
    drupe_queue *queue;
    drupe_pool_stats stats;
    setenv("DRUPE_MEMORY_KEEP", "0", 1);
    OK(drupe_context_open(&s.device, 1, &context));
    OK(drupe_queue_open(context, s.device, 0, &queue));
    drupe_memory_release(bench_memory(queue, DRUPE_MEM_SHARED, 4096));
    drupe_pool_stats_of(s.device, &stats);
    assert_int_equal(stats.reserved, 0);
    drupe_queue_release(queue);
    drupe_context_release(context);
}

static void limits_come_from_the_environment(void **state)
{
    (void)state;
    drupe_pool_stats stats;
    drupe_memory *memory;
    drupe_pool_stats_of(s.device, &stats);
    assert_int_equal(stats.limit, 64 * GIB); /* all of it */
    setenv("DRUPE_MEMORY_LIMIT", "50%", 1);
    drupe_pool_set_limit(s.device, 0);
    drupe_pool_stats_of(s.device, &stats);
    assert_int_equal(stats.limit, 32 * GIB);
    setenv("DRUPE_MEMORY_LIMIT", "100G", 1);
    drupe_pool_set_limit(s.device, 0);
    drupe_pool_stats_of(s.device, &stats);
    assert_int_equal(stats.limit, 64 * GIB); /* no more than there is */
    setenv("DRUPE_MEMORY_LIMIT", "0", 1);
    drupe_pool_set_limit(s.device, 0);
    FAILS(drupe_memory_alloc(s.queue, DRUPE_MEM_SHARED, 64, 0, &memory), DRUPE_E_NO_MEMORY,
          "the limit is 1 ");
    unsetenv("DRUPE_MEMORY_LIMIT");
    drupe_pool_set_limit(s.device, 0);
    assert_int_equal(drupe_limit_free(s.device), 64 * GIB);
    memory = take(GIB);
    assert_int_equal(drupe_limit_free(s.device), 63 * GIB);
    drupe_pool_set_limit(s.device, 1);
    assert_int_equal(drupe_limit_free(s.device), 0);
    drupe_memory_release(memory);
}

static void a_backend_may_lack_what_others_have(void **state)
{
    (void)state;
    unsigned char handle[DRUPE_IPC_BYTES] = {0};
    drupe_memory *memory = take(64), *other;
    FAILS(drupe_pool_set_wipe(s.device, DRUPE_WIPE_FREE), DRUPE_E_UNSUPPORTED, "'host' cannot overwrite");
    FAILS(drupe_memory_export(memory, handle), DRUPE_E_UNSUPPORTED, "cannot be shared between processes");
    FAILS(drupe_memory_import(s.queue, handle, 0, &other), DRUPE_E_UNSUPPORTED, "cannot be shared");
    FAILS(drupe_pool_wipe(memory), DRUPE_E_UNSUPPORTED, "cannot overwrite");
    drupe_memory_release(memory);
}

static void devices_of_two_backends_share_no_context(void **state)
{
    (void)state;
    drupe_device *devices[2] = {s.device, NULL};
    drupe_context *context;
    OK(drupe_device_select("opencl", &devices[1]));
    FAILS(drupe_context_open(devices, 2, &context), DRUPE_E_INVALID, "different platforms");
    drupe_device_release(devices[1]);
}

/* Each member of a context has pools of its own, and a part of a device those of its member. */
static void pools_belong_to_the_members_of_a_context(void **state)
{
    (void)state;
    drupe_device *pair[2], *part;
    drupe_context *context;
    drupe_queue *queues[3];
    size_t count;
    drupe_queue_release(s.queue);
    drupe_context_release(s.context);
    drupe_device_release(s.device);
    assert_int_equal(drupe_library_close(LONG), 0);
    test_script.backends[0].count = 2;
    test_script.backends[0].devices[1] = test_script.backends[0].devices[0];
    assert_int_equal(open_all("host"), 0);
    OK(drupe_device_list("host", pair, 2, &count));
    assert_int_equal(count, 2);
    OK(drupe_context_open(pair, 2, &context));
    OK(drupe_device_select("host:cpu:1.0", &part));
    OK(drupe_queue_open(context, pair[0], 0, &queues[0]));
    OK(drupe_queue_open(context, pair[1], 0, &queues[1]));
    OK(drupe_queue_open(context, part, 0, &queues[2]));
    assert_ptr_equal(drupe_pool_of(queues[0], DRUPE_MEM_HOST)->root, pair[0]);
    assert_ptr_equal(drupe_pool_of(queues[1], DRUPE_MEM_HOST)->root, pair[1]);
    assert_ptr_equal(drupe_pool_of(queues[2], DRUPE_MEM_HOST), drupe_pool_of(queues[1], DRUPE_MEM_HOST));
    drupe_memory_release(bench_memory(queues[1], DRUPE_MEM_HOST, 4096));
    assert_int_equal(drupe_pool_trim(pair[0]), 0);
    assert_int_equal(drupe_pool_trim(part), 4096);
    for (size_t i = 0; i < 3; i++) drupe_queue_release(queues[i]);
    drupe_context_release(context);
    drupe_device_release(part);
    for (size_t i = 0; i < 2; i++) drupe_device_release(pair[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(large_pieces_go_to_those_that_use_most_of_them),
        TEST(a_pool_keeps_a_share),
        TEST(the_environment_says_what_is_kept),
        TEST(limits_come_from_the_environment),
        TEST(a_backend_may_lack_what_others_have),
        TEST(devices_of_two_backends_share_no_context),
        TEST(pools_belong_to_the_members_of_a_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
