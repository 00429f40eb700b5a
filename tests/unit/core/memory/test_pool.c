/* Pools over a scripted device with more memory than any machine: what is too large for a size class, what
 * they keep, devices without a kind of memory, contexts over several devices. */
#include "core/memory/memory_room.h"
#include "core_bench.h"
#include "drupe/park.h"
#include "test_script.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* Addresses without memory behind them: nothing here looks at a byte, and much would take long. */
static drupe_status mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind, size_t size,
                              size_t align, void **pointer)
{
    static uintptr_t next = (uintptr_t)1 << 44;
    (void)context, (void)device, (void)kind, (void)align;
    *pointer = (void *)next;
    next += (size + 8191) & ~(uintptr_t)4095;
    return DRUPE_OK;
}

static void mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer)
{
    (void)context, (void)device, (void)kind, (void)pointer;
}

static int setup(void **state)
{
    (void)state;
    unsetenv("DRUPE_MEMORY_KEEP");
    test_script_reset();
    test_script_tables[0].mem_alloc = mem_alloc;
    test_script_tables[0].mem_free = mem_free;
    test_script.backends[0].devices[0].memory = 64 * GIB;
    return bench_open("host", 0);
}

/* A start with what the script says now. */
static void start_again(void **state)
{
    assert_int_equal(bench_teardown(state), 0);
    assert_int_equal(bench_open("host", 0), 0);
}

static drupe_pool_stats stats(void)
{
    drupe_pool_stats now;
    drupe_pool_stats_of(bench.device, &now);
    return now;
}

static void large_pieces_go_to_those_that_use_most_of_them(void **state)
{
    (void)state;
    drupe_memory *large = bench_shared(2 * GIB), *larger = bench_shared(2 * GIB + GIB / 8);
    void *at = drupe_memory_pointer(large), *beside = drupe_memory_pointer(larger);
    drupe_memory_release(large);
    drupe_memory_release(larger);
    large = bench_shared(2 * GIB - GIB / 4);
    assert_ptr_equal(drupe_memory_pointer(large), at); /* seven eighths of it; the smaller of two */
    larger = bench_shared(GIB);
    assert_ptr_not_equal(drupe_memory_pointer(larger), beside); /* half of it */
    drupe_memory_release(large);
    drupe_memory_release(larger);
    assert_int_equal(drupe_pool_trim(bench.device), 2 * GIB + 2 * GIB + GIB / 8 + GIB);
}

/* Whichever comes first in the list; what is too small is passed over. */
static void the_smallest_that_suits_is_lent(void **state)
{
    (void)state;
    for (size_t first = 0; first < 2; first++) {
        drupe_memory *small = bench_shared(GIB),
                     *pair[] = {bench_shared(2 * GIB), bench_shared(2 * GIB + GIB / 8)};
        void *at = drupe_memory_pointer(pair[0]);
        drupe_memory_release(pair[first]);
        drupe_memory_release(pair[1 - first]);
        drupe_memory_release(small);
        drupe_memory *again = bench_shared(2 * GIB - GIB / 32);
        assert_ptr_equal(drupe_memory_pointer(again), at);
        drupe_memory_release(again);
        drupe_pool_trim(bench.device);
    }
}

static void a_pool_keeps_a_share(void **state)
{
    /* An eighth of the device, but 256 MiB at least. */
    static const struct {
        uint64_t device, piece, kept;
    } cases[] = {{64 * GIB, 2 * GIB, 8 * GIB}, {GIB, 64 * MIB, 256 * MIB}};
    for (size_t c = 0; c < DRUPE_COUNT_OF(cases); c++) {
        drupe_memory *memories[5];
        test_script.backends[0].devices[0].memory = cases[c].device;
        start_again(state);
        for (size_t i = 0; i < 5; i++) memories[i] = bench_shared(cases[c].piece);
        for (size_t i = 0; i < 5; i++) drupe_memory_release(memories[i]);
        assert_int_equal(drupe_pool_trim(bench.device), cases[c].kept);
    }
}

static void the_environment_says_what_is_kept(void **state)
{
    (void)state;
    drupe_context *context;
    drupe_queue *queue;
    drupe_pool_stats stats;
    setenv("DRUPE_MEMORY_KEEP", "0", 1);
    OK(drupe_context_open(&bench.device, 1, &context));
    OK(drupe_queue_open(context, bench.device, 0, &queue));
    drupe_memory_release(bench_memory(queue, DRUPE_MEM_SHARED, 4096));
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.reserved, 0);
    drupe_queue_release(queue);
    drupe_context_release(context);
}

static void limits_come_from_the_environment(void **state)
{
    (void)state;
    drupe_pool_stats stats;
    drupe_memory *memory;
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.limit, 64 * GIB); /* all of it */
    setenv("DRUPE_MEMORY_LIMIT", "50%", 1);
    drupe_pool_set_limit(bench.device, 0);
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.limit, 32 * GIB);
    setenv("DRUPE_MEMORY_LIMIT", "100G", 1);
    drupe_pool_set_limit(bench.device, 0);
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.limit, 64 * GIB); /* no more than there is */
    setenv("DRUPE_MEMORY_LIMIT", "0", 1);
    drupe_pool_set_limit(bench.device, 0);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 64, 0, &memory), DRUPE_E_NO_MEMORY,
          "the limit is 1 ");
    unsetenv("DRUPE_MEMORY_LIMIT");
    drupe_pool_set_limit(bench.device, 0);
    assert_int_equal(drupe_limit_free(bench.device), 64 * GIB);
    memory = bench_shared(GIB);
    assert_int_equal(drupe_limit_free(bench.device), 63 * GIB);
    drupe_pool_set_limit(bench.device, 1);
    assert_int_equal(drupe_limit_free(bench.device), 0);
    drupe_memory_release(memory);
}

/* A size class above what one allocation may have gives way to whole pages, and these to the bytes alone. */
static void pieces_keep_below_the_largest_allocation(void **state)
{
    static const struct {
        uint64_t most, bytes, room;
    } cases[] = {{0, 8500, 10240}, {10300, 8500, 10240}, {38000, 33000, 36864}, {10000, 8500, 8500}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        test_script.backends[0].devices[0].most = cases[i].most;
        start_again(state);
        drupe_memory *memory = bench_shared(cases[i].bytes), *other;
        assert_int_equal(stats().used, cases[i].room);
        drupe_memory_release(memory);
        if (cases[i].most)
            FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, cases[i].most + 1, 0, &other),
                  DRUPE_E_NO_MEMORY, "may have at most");
    }
    test_script.backends[0].devices[0].most = 0;
    start_again(state);
    drupe_memory *endless;
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, SIZE_MAX, 0, &endless), DRUPE_E_NO_MEMORY,
          "has no room for them");
    assert_int_equal(stats().reserved, 0);
}

static void large_requests_ask_what_is_free_now(void **state)
{
    drupe_memory *memory;
    test_script.backends[0].devices[0].free = 100 * MIB;
    start_again(state);
    assert_int_equal(drupe_limit_free(bench.device), 100 * MIB);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, 128 * MIB, 0, &memory), DRUPE_E_NO_MEMORY,
          "of host memory were asked for, and host:cpu:0 has 100 MiB that are free now");
    assert_int_equal(stats().reserved, 0);
    drupe_memory_release(bench_shared(64 * MIB));
    test_script.backends[0].devices[0].free = 64 * MIB - 1;
    drupe_memory_release(bench_shared(32 * MIB)); /* too small to ask */
}

/* --- What work still uses --------------------------------------------------------------------------------
 */

static drupe_event *work_with(drupe_queue *queue, drupe_memory *memory)
{
    drupe_event *event;
    OK(bench_fill(queue, memory, 1, NULL, &event));
    return event;
}

static void end_work(drupe_event *event)
{
    test_script_finish(event, true);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
}

static void a_large_piece_stays_in_order(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(2 * GIB), *other, *mine;
    void *at = drupe_memory_pointer(memory);
    drupe_event *event = work_with(bench.queue, memory);
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 2 * GIB - GIB / 2, &other));
    assert_ptr_not_equal(drupe_memory_pointer(other), at); /* three quarters of it are too few */
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 2 * GIB - GIB / 8, &mine));
    assert_ptr_equal(drupe_memory_pointer(mine), at);
    end_work(event);
    drupe_memory_release(mine);
    drupe_memory_release(other);
}

/* A piece that was made on one queue and is used by another goes to that one, and keeps the first no more. */
static void a_piece_goes_over_to_the_queue_that_uses_it(void **state)
{
    (void)state;
    drupe_queue *second;
    drupe_memory *memory = bench_shared(4096), *mine;
    void *at = drupe_memory_pointer(memory);
    assert_ptr_equal(drupe_memory_queue(memory), bench.queue);
    OK(drupe_queue_open(bench.context, bench.device, 0, &second));
    drupe_event *event = work_with(second, memory);
    const uint32_t kept = atomic_load(&drupe_base(bench.queue)->inner);
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(second, DRUPE_MEM_SHARED, 4096, &mine));
    assert_ptr_equal(drupe_memory_pointer(mine), at);
    assert_ptr_equal(drupe_memory_queue(mine), second);
    assert_int_equal(atomic_load(&drupe_base(bench.queue)->inner), kept - 1);
    end_work(event);
    drupe_memory_release(mine);
    drupe_queue_release(second);
}

static void only_the_sole_owner_may_overwrite(void **state)
{
    (void)state;
    drupe_queue *unordered;
    drupe_memory *memory = bench_shared(4096), *loose;
    assert_true(drupe_memory_sole(memory, bench.queue)); /* nothing uses it */
    drupe_memory *second = drupe_memory_retain(memory);
    assert_ptr_equal(second, memory);
    assert_false(drupe_memory_sole(memory, bench.queue));
    drupe_memory_release(second);
    assert_true(drupe_memory_sole(memory, bench.queue));
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_OUT_OF_ORDER, &unordered));
    loose = bench_memory(unordered, DRUPE_MEM_SHARED, 4096);
    assert_false(drupe_memory_sole(loose, unordered));
    drupe_memory_release(loose);
    drupe_queue_release(unordered);
    drupe_memory_release(memory);
}

static void the_kind_says_who_reaches_it(void **state)
{
    (void)state;
    for (int kind = DRUPE_MEM_DEVICE; kind <= DRUPE_MEM_HOST; kind++) {
        drupe_memory *memory = bench_memory(bench.queue, (drupe_mem_kind)kind, 64);
        assert_int_equal(drupe_memory_kind(memory), kind);
        assert_int_equal(drupe_memory_host_accessible(memory), kind != DRUPE_MEM_DEVICE);
        drupe_memory_release(memory);
    }
}

static drupe_status interrupted(void)
{
    return drupe_error_set(DRUPE_E_CANCELLED, "Interrupted.");
}

static drupe_status no_pace(drupe_device *root, uint64_t bytes)
{
    (void)root, (void)bytes;
    return interrupted();
}

static drupe_status no_room(drupe_device *root, uint64_t deadline)
{
    (void)root, (void)deadline;
    return interrupted();
}

/* What a program asks for does not hide that it was interrupted meanwhile. */
static void an_interrupt_ends_an_allocation(void **state)
{
    (void)state;
    const drupe_memory_users *real = drupe_memory_users_get();
    drupe_memory_users users = *real;
    drupe_memory *memory;
    users.pace = no_pace;
    atomic_store(&drupe_memory_users_now, &users);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 64, 0, &memory), DRUPE_E_CANCELLED, "Interrup");
    users.pace = real->pace;
    users.room = no_room;
    drupe_pool_set_limit(bench.device, 4096);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 8192, 0, &memory), DRUPE_E_CANCELLED, "Interrup");
    atomic_store(&drupe_memory_users_now, real);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 8192, 0, &memory), DRUPE_E_NO_MEMORY, "no room");
    assert_null(memory);
    assert_int_equal(stats().reserved, 0);
}

/* --- Addresses -------------------------------------------------------------------------------------------
 */

/* Ranges of host memory beside what is lent, and beside what waits in the pool. */
static void ranges_beside_memory_are_the_hosts(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(4096), *found;
    char *at = drupe_memory_pointer(memory);
    const struct {
        const char *from;
        size_t bytes;
        drupe_status lent, given_back;
    } cases[] = {{at - 64, 0, DRUPE_OK, DRUPE_OK},
                 {at - 64, 64, DRUPE_OK, DRUPE_OK},
                 {at - 64, 65, DRUPE_E_OUT_OF_RANGE, DRUPE_OK},
                 {at + 4096, 64, DRUPE_OK, DRUPE_OK}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        assert_int_equal(drupe_registry_find(cases[i].from, cases[i].bytes, "test", &found), cases[i].lent);
        assert_null(found);
    }
    drupe_memory_release(memory);
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        assert_int_equal(drupe_registry_find(cases[i].from, cases[i].bytes, "test", &found),
                         cases[i].given_back);
        assert_null(found);
    }
}

static char one_place[4096];

static drupe_status same_place(drupe_context *context, drupe_device *device,
                               const unsigned char handle[DRUPE_IPC_BYTES], drupe_mem_kind *kind,
                               void **pointer, size_t *size)
{
    (void)context, (void)device, (void)handle;
    *kind = DRUPE_MEM_SHARED;
    *pointer = one_place;
    *size = sizeof one_place;
    return DRUPE_OK;
}

static unsigned detached;

static void detach(drupe_context *context, drupe_device *device, void *pointer, size_t size)
{
    (void)context, (void)device, (void)pointer, (void)size;
    detached++;
}

/* A driver may give one address for each time that a handle is imported: each goes by itself. */
static void an_address_that_is_given_twice_is_found_until_both_are_gone(void **state)
{
    unsigned char handle[DRUPE_IPC_BYTES] = {0};
    for (size_t first = 0; first < 2; first++) {
        drupe_memory *twins[2];
        test_script_tables[0].mem_import = same_place;
        test_script_tables[0].mem_detach = detach;
        detached = 0;
        start_again(state);
        for (size_t i = 0; i < 2; i++) OK(drupe_memory_import(bench.queue, handle, 0, &twins[i]));
        drupe_memory_release(twins[first]);
        drupe_memory *found = drupe_memory_find(one_place + 4095);
        assert_ptr_equal(found, twins[1 - first]);
        drupe_memory_release(found);
        drupe_memory_release(twins[1 - first]);
        assert_null(drupe_memory_find(one_place));
        assert_int_equal(detached, 2);
    }
}

static drupe_status wipe(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer,
                         size_t size)
{
    (void)context, (void)device, (void)kind;
    memset(pointer, 0, size);
    return DRUPE_OK;
}

/* They are another process's. */
static void imported_bytes_are_never_wiped(void **state)
{
    unsigned char handle[DRUPE_IPC_BYTES] = {0};
    drupe_memory *twin;
    test_script_tables[0].mem_import = same_place;
    test_script_tables[0].mem_detach = detach;
    test_script_tables[0].mem_wipe = wipe;
    start_again(state);
    one_place[7] = 7;
    OK(drupe_pool_set_wipe(bench.device, DRUPE_WIPE_FREE));
    OK(drupe_memory_import(bench.queue, handle, 0, &twin));
    drupe_memory_release(twin);
    assert_int_equal(one_place[7], 7);
}

static drupe_device_type gpu(drupe_device *device)
{
    (void)device;
    return DRUPE_DEVICE_GPU;
}

static unsigned scrubbed;
static const void *wiped;

static drupe_status wipe_noted(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                               void *pointer, size_t size)
{
    (void)context, (void)device, (void)kind, (void)size;
    wiped = pointer;
    return DRUPE_OK;
}

static drupe_status scrub(drupe_device *device)
{
    (void)device;
    scrubbed++;
    return DRUPE_OK;
}

/* What a program still has, and local memory; not what another process has, not on a CPU, and not where
 * nothing is wiped. */
static void what_is_left_at_the_end_is_overwritten(void **state)
{
    drupe_device_type (*const types[])(drupe_device *) = {gpu, gpu, test_script_tables[0].device_type};
    static const uint32_t when[] = {DRUPE_WIPE_FREE, 0, DRUPE_WIPE_FREE};
    for (size_t i = 0; i < DRUPE_COUNT_OF(types); i++) {
        unsigned char handle[DRUPE_IPC_BYTES] = {0};
        drupe_memory *twin;
        test_script_tables[0].mem_import = same_place;
        test_script_tables[0].mem_detach = detach;
        test_script_tables[0].mem_wipe = wipe_noted;
        test_script_tables[0].device_scrub = scrub;
        test_script_tables[0].device_type = types[i];
        start_again(state);
        scrubbed = 0;
        OK(drupe_pool_set_wipe(bench.device, when[i]));
        drupe_library_scrub();
        assert_int_equal(scrubbed, 0); /* the device was not used */
        OK(drupe_memory_import(bench.queue, handle, 0, &twin));
        drupe_memory *memory = bench_shared(64);
        wiped = NULL;
        drupe_library_scrub();
        assert_ptr_equal(wiped, i == 0 ? drupe_memory_pointer(memory) : NULL);
        assert_int_equal(scrubbed, i == 0 ? 1 : 0);
        drupe_memory_release(twin);
        drupe_memory_release(memory);
    }
}

static unsigned copies, copies_good;

static drupe_status copy_some(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    (void)s, (void)dst, (void)src, (void)bytes;
    return copies++ < copies_good ? DRUPE_OK : drupe_error_set(DRUPE_E_UNAVAILABLE, "It is torn.");
}

static drupe_status nothing_to_wait_for(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue, (void)timeout_ns;
    return DRUPE_OK;
}

/* The driver gets memory back that had its bytes for a moment. */
static void what_does_not_come_back_is_overwritten(void **state)
{
    test_script_tables[0].mem_wipe = wipe_noted;
    test_script_tables[0].device_type = gpu;
    test_script_tables[0].submit_copy = copy_some;
    test_script_tables[0].queue_wait = nothing_to_wait_for;
    start_again(state);
    OK(drupe_pool_set_wipe(bench.device, DRUPE_WIPE_FREE));
    drupe_memory *first = bench_memory(bench.queue, DRUPE_MEM_DEVICE, 64);
    drupe_memory *second = bench_memory(bench.queue, DRUPE_MEM_DEVICE, 64);
    copies = 0;
    copies_good = 3; /* two to the host, one back */
    OK(drupe_park(bench.device, 0, NULL));
    assert_int_equal(copies, 2);
    wiped = NULL;
    FAILS(drupe_unpark(bench.device, NULL), DRUPE_E_UNAVAILABLE, "waits in host memory as before");
    assert_non_null(wiped);
    copies_good = 6;
    OK(drupe_unpark(bench.device, NULL));
    drupe_memory_release(first);
    drupe_memory_release(second);
}

static void a_backend_may_lack_what_others_have(void **state)
{
    (void)state;
    unsigned char handle[DRUPE_IPC_BYTES] = {0};
    drupe_memory *memory = bench_shared(64), *other;
    FAILS(drupe_pool_set_wipe(bench.device, DRUPE_WIPE_FREE), DRUPE_E_UNSUPPORTED, "'host' cannot overwrite");
    FAILS(drupe_memory_export(memory, handle), DRUPE_E_UNSUPPORTED, "cannot be shared between processes");
    FAILS(drupe_memory_import(bench.queue, handle, 0, &other), DRUPE_E_UNSUPPORTED, "cannot be shared");
    FAILS(drupe_pool_wipe(memory), DRUPE_E_UNSUPPORTED, "cannot overwrite");
    drupe_memory_release(memory);
}

/* --- Contexts --------------------------------------------------------------------------------------------
 */

static void devices_of_two_backends_share_no_context(void **state)
{
    (void)state;
    drupe_device *devices[2] = {bench.device, NULL};
    drupe_context *context;
    OK(drupe_device_select("opencl", &devices[1]));
    FAILS(drupe_context_open(devices, 2, &context), DRUPE_E_INVALID, "different platforms");
    drupe_device_release(devices[1]);
}

/* Each member of a context has pools of its own, and a part of a device those of its member. */
static void pools_belong_to_the_members_of_a_context(void **state)
{
    drupe_device *pair[2], *part;
    drupe_context *context;
    drupe_queue *queues[3];
    size_t count;
    test_script.backends[0].count = 2;
    test_script.backends[0].devices[1] = test_script.backends[0].devices[0];
    start_again(state);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(large_pieces_go_to_those_that_use_most_of_them),
        TEST(the_smallest_that_suits_is_lent),
        TEST(a_pool_keeps_a_share),
        TEST(the_environment_says_what_is_kept),
        TEST(limits_come_from_the_environment),
        TEST(pieces_keep_below_the_largest_allocation),
        TEST(large_requests_ask_what_is_free_now),
        TEST(a_large_piece_stays_in_order),
        TEST(a_piece_goes_over_to_the_queue_that_uses_it),
        TEST(only_the_sole_owner_may_overwrite),
        TEST(the_kind_says_who_reaches_it),
        TEST(an_interrupt_ends_an_allocation),
        TEST(ranges_beside_memory_are_the_hosts),
        TEST(an_address_that_is_given_twice_is_found_until_both_are_gone),
        TEST(imported_bytes_are_never_wiped),
        TEST(what_is_left_at_the_end_is_overwritten),
        TEST(what_does_not_come_back_is_overwritten),
        TEST(a_backend_may_lack_what_others_have),
        TEST(devices_of_two_backends_share_no_context),
        TEST(pools_belong_to_the_members_of_a_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
