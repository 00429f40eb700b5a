/* Memory of a device: pieces and handles, limits, who holds it, other processes, contents. */
#include "core/device/device_room.h"
#include "core_bench.h"
#include "layers/fault_layer.h"

#define KIB 1024u
#define MIB (1024u * KIB)

static drupe_pool_stats stats(void)
{
    drupe_pool_stats now;
    drupe_pool_stats_of(bench.device, &now);
    return now;
}

static drupe_memory *result_on(drupe_queue *queue, size_t bytes)
{
    drupe_memory *memory;
    OK(drupe_memory_alloc_result(queue, DRUPE_MEM_SHARED, bytes, &memory));
    return memory;
}

/* --- Pieces ----------------------------------------------------------------------------------------------
 */

static void a_piece_is_lent_again_to_its_size_class(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(1000);
    const void *at = drupe_memory_pointer(memory);
    drupe_memory_release(memory);
    drupe_memory *other = bench_shared(500);
    assert_ptr_not_equal(drupe_memory_pointer(other), at);
    memory = bench_shared(1024);
    assert_ptr_equal(drupe_memory_pointer(memory), at);
    assert_int_equal(drupe_memory_size(memory), 1024);
    drupe_memory_release(memory);
    drupe_memory_release(other);
}

static void figures_follow_what_is_lent(void **state)
{
    (void)state;
    uint64_t used;
    drupe_memory *memory = bench_shared(MIB), *small = bench_memory(bench.queue, DRUPE_MEM_HOST, 100);
    assert_int_equal(stats().used, MIB + 112);
    assert_int_equal(stats().count, 2);
    assert_int_equal(stats().kinds[DRUPE_MEM_SHARED].used, MIB);
    assert_int_equal(stats().kinds[DRUPE_MEM_HOST].used, 112);
    drupe_memory_release(memory);
    assert_int_equal(stats().used, 112);
    assert_int_equal(stats().peak, MIB + 112);
    assert_int_equal(stats().reserved, MIB + 112);
    assert_true(drupe_memory_high(true, &used) >= MIB + 112);
    assert_int_equal(used, 112);
    assert_int_equal(drupe_memory_high(false, &used), 112);
    drupe_pool_reset_peak(bench.device);
    assert_int_equal(stats().peak, 112);
    assert_int_equal(drupe_pool_trim(bench.device), MIB);
    assert_int_equal(stats().reserved, 112);
    drupe_memory_release(small);
}

static void requests_that_cannot_be_are_refused(void **state)
{
    (void)state;
    drupe_memory *memory;
    FAILS(drupe_memory_alloc(bench.queue, (drupe_mem_kind)7, 8, 0, &memory), DRUPE_E_INVALID, "number 7");
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, 0, 0, &memory), DRUPE_E_INVALID, "at least 1 byte");
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, 8, 3, &memory), DRUPE_E_INVALID, "power of two");
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, 8, 8192, &memory), DRUPE_E_INVALID, "8192");
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, SIZE_MAX, 0, &memory), DRUPE_E_NO_MEMORY,
          "may have at most");
    assert_null(memory);
    assert_string_equal(drupe_mem_kind_name((drupe_mem_kind)7), "unknown");
    assert_string_equal(drupe_mem_kind_name(DRUPE_MEM_SHARED), "shared");
}

static void pieces_are_aligned_on_request(void **state)
{
    (void)state;
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t bytes = 8; bytes <= 5000; bytes += 4992) {
            drupe_memory *memory;
            OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, bytes, align, &memory));
            assert_int_equal((uintptr_t)drupe_memory_pointer(memory) % (align < 64 ? 64 : align), 0);
            drupe_memory_release(memory);
        }
    }
}

static void addresses_are_found_in_what_is_lent_only(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(1000);
    char *at = drupe_memory_pointer(memory);
    drupe_memory *found = drupe_memory_find(at + 999);
    assert_ptr_equal(found, memory);
    drupe_memory_release(found);
    assert_null(drupe_memory_find(at + 1000)); /* in the piece, behind the handle */
    assert_null(drupe_memory_find(&at));
    drupe_memory_release(memory);
    assert_null(drupe_memory_find(at)); /* it waits in a pool */
    drupe_memory_release(drupe_memory_retain(NULL));
}

static void ranges_end_where_memory_does(void **state)
{
    (void)state;
    char here[64];
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory *memory = bench_shared(1000);
    char *at = drupe_memory_pointer(memory);
    FAILS(drupe_submit_copy(&s, at + 990, here, 11, NULL), DRUPE_E_OUT_OF_RANGE,
          "11 bytes from offset 990 run past the end of an allocation of 1000 bytes");
    FAILS(drupe_submit_copy(&s, here, at - 8, 16, NULL), DRUPE_E_OUT_OF_RANGE,
          "16 bytes of host memory run into an allocation");
    OK(drupe_submit_copy(&s, at + 990, here, 10, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    drupe_memory_release(memory);
    FAILS(drupe_submit_copy(&s, at, here, 8, NULL), DRUPE_E_INVALID,
          "not allocated"); /* it waits in a pool */
}

static void a_device_may_lack_a_kind(void **state)
{
    (void)state;
    static const struct {
        drupe_info info;
        drupe_mem_kind kind;
        const char *text;
    } cases[] = {
        {DRUPE_INFO_USM_SHARED, DRUPE_MEM_SHARED, "has no memory of kind 'shared'. Use device memory"},
        {DRUPE_INFO_USM_DEVICE, DRUPE_MEM_DEVICE, "has no memory of kind 'device'."}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        drupe_memory *memory;
        uint64_t *number = bench.device->info[cases[i].info].number;
        const uint64_t before = *number;
        *number = DRUPE_USM_NONE;
        drupe_queue *queue = bench_elsewhere(); /* pools ask when they are opened */
        FAILS(drupe_memory_alloc(queue, cases[i].kind, 8, 0, &memory), DRUPE_E_UNSUPPORTED, cases[i].text);
        *number = before;
        drupe_queue_release(queue);
    }
}

/* --- Ordered reuse ---------------------------------------------------------------------------------------
 */

static void a_result_takes_what_its_queue_still_uses(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *done;
    drupe_queue *elsewhere = NULL;
    drupe_memory *memory = bench_shared(KIB);
    void *at = drupe_memory_pointer(memory);
    OK(drupe_queue_open(bench.context, bench.device, 0, &elsewhere));
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    assert_true(drupe_memory_in_use(memory));
    assert_true(drupe_memory_sole(memory, bench.queue));
    assert_false(drupe_memory_sole(memory, elsewhere));
    drupe_memory_release(memory);
    assert_int_equal(stats().flying, KIB);
    assert_int_equal(stats().used, 0);
    drupe_memory *other = result_on(elsewhere, KIB), *mine = result_on(bench.queue, KIB);
    assert_ptr_not_equal(drupe_memory_pointer(other), at); /* nothing orders that queue */
    assert_ptr_equal(drupe_memory_pointer(mine), at);
    assert_int_equal(stats().flying, 0);
    /* Whoever goes past the engine waits. */
    OK(drupe_memory_before_use(mine, &done));
    assert_non_null(done);
    OK(bench_fill(bench.queue, mine, 2, NULL, NULL));
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_event_wait(done, LONG));
    drupe_event_release(done);
    bench_expect_bytes(mine, 2, KIB);
    drupe_memory_release(mine);
    drupe_memory_release(other);
    drupe_queue_release(elsewhere);
}

static void what_two_queues_use_is_nobodys(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    drupe_queue *second;
    drupe_memory *memory = bench_shared(KIB), *mine;
    void *at = drupe_memory_pointer(memory);
    OK(drupe_queue_open(bench.context, bench.device, 0, &second));
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    OK(bench_fill(second, memory, 2, gate, NULL));
    assert_false(drupe_memory_sole(memory, bench.queue));
    drupe_memory_release(memory);
    mine = result_on(bench.queue, KIB);
    assert_ptr_not_equal(drupe_memory_pointer(mine), at);
    drupe_memory_release(mine);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    drupe_queue_collect(bench.queue);
    drupe_queue_collect(second);
    assert_int_equal(stats().flying, 0);
    drupe_queue_release(second);
}

static void the_middle_of_what_is_used_may_go_first(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    drupe_memory *memories[3];
    void *at[3];
    for (size_t i = 0; i < 3; i++) {
        memories[i] = bench_shared(KIB);
        at[i] = drupe_memory_pointer(memories[i]);
        OK(bench_fill(bench.queue, memories[i], 1, gate, NULL));
    }
    for (size_t i = 0; i < 3; i++) drupe_memory_release(memories[i]);
    for (size_t i = 3; i-- > 0;) { /* last in, first out */
        memories[i] = result_on(bench.queue, KIB);
        assert_ptr_equal(drupe_memory_pointer(memories[i]), at[i]);
        OK(bench_fill(bench.queue, memories[i], 2, NULL, NULL));
    }
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    for (size_t i = 0; i < 3; i++) drupe_memory_release(memories[i]);
}

/* --- Limits ----------------------------------------------------------------------------------------------
 */

static uint32_t here(void)
{
    return 7;
}

static size_t place_text(uint32_t site, uint32_t cell, char *text, size_t size)
{
    (void)cell;
    return (size_t)snprintf(text, size, "line %u", site);
}

static void a_full_device_tells_who_holds_it(void **state)
{
    (void)state;
    static const drupe_observer observer = {.site = here, .site_text = place_text};
    drupe_memory *held[2], *memory;
    drupe_library_observe(&observer);
    drupe_pool_set_limit(bench.device, 4 * MIB);
    held[0] = bench_shared(MIB);
    held[1] = bench_shared(MIB);
    drupe_memory_release(bench_shared(2 * MIB)); /* in the pool: it is given back first */
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, MIB, 0, &memory));
    drupe_memory_release(memory);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 3 * MIB, 0, &memory), DRUPE_E_NO_MEMORY,
          "2.00 MiB in 2 allocations (shared, line 7)");
    assert_non_null(strstr(drupe_error_last()->text, "the limit is 4.00 MiB"));
    drupe_memory_release(held[0]);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 3 * MIB, 0, &memory));
    drupe_memory_release(memory);
    drupe_memory_release(held[1]);
    drupe_pool_set_limit(bench.device, 0);
    drupe_library_observe(NULL);
}

struct opener {
    drupe_event *gate;
    drupe_queue *queue;
};

static drupe_status open_then(void *user)
{
    struct opener *opener = user;
    return drupe_event_finish(opener->gate, NULL);
}

/* The work that holds the memory ends only after the allocation has begun to wait, or before: both are good.
 */
static void an_allocation_waits_for_work_in_flight(void **state)
{
    (void)state;
    struct opener opener = {.gate = bench_gate()};
    drupe_memory *memory = bench_shared(3 * MIB), *second;
    drupe_queue *other;
    OK(drupe_queue_open(bench.context, bench.device, 0, &other));
    const drupe_submission s = {.queue = other};
    OK(bench_fill(bench.queue, memory, 1, opener.gate, NULL));
    drupe_memory_release(memory);
    drupe_pool_set_limit(bench.device, 4 * MIB);
    OK(drupe_submit_host(&s, open_then, &opener, NULL));
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 2 * MIB, 0, &second));
    drupe_memory_release(second);
    OK(drupe_queue_wait(other, LONG));
    drupe_event_release(opener.gate);
    drupe_queue_release(other);
    drupe_pool_set_limit(bench.device, 0);
}

static void a_driver_that_has_none_is_asked_again(void **state)
{
    (void)state;
    drupe_memory *memory, *idle = bench_shared(8 * MIB);
    drupe_memory_release(idle);
    const uint64_t reserved = stats().reserved;
    OK(drupe_fault_plan("mem_alloc:1=NO_MEMORY"));
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, MIB, 0, &memory));
    drupe_memory_release(memory);
    OK(drupe_fault_plan("mem_alloc:1+=NO_MEMORY"));
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 2 * MIB, 0, &memory), DRUPE_E_NO_MEMORY,
          "Delete what is not needed");
    assert_true(stats().reserved < reserved);
    OK(drupe_fault_plan("mem_alloc:1=INTERNAL"));
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 2 * MIB, 0, &memory), DRUPE_E_INTERNAL,
          "Planned");
    OK(drupe_fault_plan(NULL));
    assert_int_equal(stats().used, 0);
}

/* --- Wiping ----------------------------------------------------------------------------------------------
 */

static void memory_is_wiped_when_it_is_lent(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(KIB);
    memset(drupe_memory_pointer(memory), 0xAB, KIB);
    drupe_memory_release(memory);
    OK(drupe_pool_set_wipe(bench.device, DRUPE_WIPE_ALLOC));
    memory = result_on(bench.queue, KIB);
    bench_expect_bytes(memory, 0, KIB);
    drupe_memory_release(memory);
    OK(drupe_fault_plan("mem_wipe:1"));
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, KIB, 0, &memory), DRUPE_E_INTERNAL, "mem_wipe");
    OK(drupe_fault_plan(NULL));
    assert_int_equal(stats().used, 0);
    assert_int_equal(stats().wipe, DRUPE_WIPE_ALLOC);
    OK(drupe_pool_set_wipe(bench.device, 0));
    FAILS(drupe_pool_set_wipe(bench.device, 8), DRUPE_E_INVALID, "0x8");
}

static void memory_is_wiped_when_it_comes_back(void **state)
{
    (void)state;
    drupe_memory *memory;
    OK(drupe_pool_set_wipe(bench.device, DRUPE_WIPE_FREE));
    memory = bench_shared(KIB);
    memset(drupe_memory_pointer(memory), 0xAB, KIB);
    const void *at = drupe_memory_pointer(memory);
    drupe_memory_release(memory);
    OK(drupe_pool_set_wipe(bench.device, 0));
    memory = bench_shared(KIB);
    assert_ptr_equal(drupe_memory_pointer(memory), at);
    bench_expect_bytes(memory, 0, KIB);
    /* What cannot be wiped goes back to the driver. */
    OK(drupe_pool_set_wipe(bench.device, DRUPE_WIPE_FREE));
    OK(drupe_fault_plan("mem_wipe:1"));
    const uint64_t reserved = stats().reserved;
    drupe_memory_release(memory);
    OK(drupe_fault_plan(NULL));
    assert_int_equal(stats().reserved, reserved - KIB);
    OK(drupe_pool_set_wipe(bench.device, 0));
}

/* Memory that must be wiped does not go from work to work. */
static void what_is_to_be_wiped_does_not_stay_in_order(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    drupe_memory *memory = bench_shared(KIB), *next;
    const void *at = drupe_memory_pointer(memory);
    OK(drupe_pool_set_wipe(bench.device, DRUPE_WIPE_FREE));
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    drupe_memory_release(memory);
    next = result_on(bench.queue, KIB);
    assert_ptr_not_equal(drupe_memory_pointer(next), at);
    drupe_memory_release(next);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    OK(drupe_pool_set_wipe(bench.device, 0));
}

/* --- Holders and devices ---------------------------------------------------------------------------------
 */

static void holders_are_listed_by_bytes(void **state)
{
    (void)state;
    drupe_holder holders[4];
    drupe_memory *memories[] = {bench_shared(KIB), bench_shared(4 * KIB), bench_shared(2 * KIB),
                                bench_memory(bench.queue, DRUPE_MEM_HOST, 3 * KIB)};
    assert_int_equal(drupe_memory_holders(bench.device, false, holders, 4), 4);
    const uint64_t alone[] = {4 * KIB, 3 * KIB, 2 * KIB, KIB};
    for (size_t i = 0; i < 4; i++) assert_int_equal(holders[i].bytes, alone[i]);
    assert_int_equal(drupe_memory_holders(NULL, true, holders, 4), 2);
    assert_int_equal(holders[0].bytes, 7 * KIB);
    assert_int_equal(holders[0].count, 3);
    assert_int_equal(holders[0].kind, DRUPE_MEM_SHARED);
    assert_string_equal(holders[0].filter, "host:cpu:0");
    assert_int_equal(holders[1].kind, DRUPE_MEM_HOST);
    assert_int_equal(drupe_memory_holders(bench.device, true, NULL, 0), 2); /* how many there are */
    assert_int_equal(drupe_memory_holders(bench.device, true, holders, 1), 2);
    for (size_t i = 0; i < 4; i++) drupe_memory_release(memories[i]);
    assert_int_equal(drupe_memory_holders(bench.device, true, holders, 4), 0);
}

static void open_devices_are_told_without_opening_any(void **state)
{
    (void)state;
    drupe_device *known[8];
    drupe_device_figures figures[8];
    drupe_memory *memory = bench_shared(KIB);
    assert_int_equal(drupe_device_known(known, 0), 0);
    assert_int_equal(drupe_device_known(known, 8), 1);
    assert_ptr_equal(known[0], bench.device);
    drupe_device_release(known[0]);
    assert_int_equal(drupe_device_figures_of(figures, 8), 1);
    assert_string_equal(figures[0].use.filter, "host:cpu:0");
    assert_string_equal(figures[0].use.backend, "host");
    assert_int_equal(figures[0].use.used, KIB);
    assert_int_equal(figures[0].allocations, 1);
    assert_true(figures[0].used);
    assert_false(figures[0].lost);
    char name[128];
    OK(drupe_device_info(bench.device, DRUPE_INFO_NAME, name, sizeof name, NULL));
    assert_int_equal(drupe_device_figures_of(figures, 8), 1);
    assert_string_equal(figures[0].use.name, name);
    drupe_memory_release(memory);
}

/* --- Between processes -----------------------------------------------------------------------------------
 */

static void memory_has_a_name_for_others(void **state)
{
    (void)state;
    unsigned char handle[DRUPE_IPC_BYTES], garbage[DRUPE_IPC_BYTES] = {1, 2, 3};
    drupe_memory *memory = bench_shared(8 * KIB), *twin;
    drupe_event *gate = bench_gate();
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    FAILS(drupe_memory_export(memory, handle), DRUPE_E_BUSY, "Wait for all queues");
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_memory_export(memory, handle));
    OK(drupe_memory_import(bench.queue, handle, 0, &twin));
    assert_ptr_not_equal(drupe_memory_pointer(twin), drupe_memory_pointer(memory));
    bench_expect_bytes(twin, 1, 8 * KIB);
    OK(bench_fill(bench.queue, twin, 2, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(memory, 2, 8 * KIB);
    assert_int_equal(stats().count, 1); /* the other's is not counted */
    assert_false(drupe_memory_sole(twin, bench.queue));
    FAILS(drupe_memory_export(twin, handle), DRUPE_E_INVALID, "belongs to another process");
    drupe_memory *more;
    FAILS(drupe_memory_import(bench.queue, handle, MIB, &more), DRUPE_E_OUT_OF_RANGE, "behind the handle");
    FAILS(drupe_memory_import(bench.queue, garbage, 0, &more), DRUPE_E_INVALID, "");
    assert_null(more);
    const uint64_t reserved = stats().reserved;
    drupe_memory_release(twin);
    drupe_memory_release(memory); /* it is never lent again */
    assert_true(stats().reserved < reserved);
}

static void imported_memory_outlives_its_handle_in_work(void **state)
{
    (void)state;
    unsigned char handle[DRUPE_IPC_BYTES];
    drupe_memory *memory = bench_shared(4 * KIB), *twin;
    drupe_event *gate = bench_gate();
    OK(drupe_memory_export(memory, handle));
    OK(drupe_memory_import(bench.queue, handle, KIB, &twin));
    assert_int_equal(drupe_memory_size(twin), KIB);
    OK(bench_fill(bench.queue, twin, 5, gate, NULL));
    drupe_memory_release(twin);
    assert_int_equal(stats().flying, 0);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(memory, 5, KIB);
    drupe_memory_release(memory);
}

/* --- Contents --------------------------------------------------------------------------------------------
 */

static void memory_that_was_not_written_says_so(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(KIB), *copy = bench_shared(KIB);
    drupe_event *failure = bench_failure(bench.queue, "first", NULL), *event;
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "'first'");
    FAILS(drupe_event_wait(failure, LONG), DRUPE_E_INVALID, PLANNED);
    FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, "'first'");
    OK(drupe_memory_contents(copy));
    drupe_memory_accept(memory);
    OK(drupe_memory_contents(memory));
    drupe_event_release(event);
    drupe_event_release(failure);
    drupe_memory_release(memory);
    drupe_memory_release(copy);
}

static void a_mark_ends_with_the_handle(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(KIB);
    const void *at = drupe_memory_pointer(memory);
    drupe_event *failure = bench_failure(bench.queue, "first", NULL);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INVALID);
    FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, "'first'");
    drupe_queue_collect(bench.queue);
    drupe_memory_release(memory);
    memory = bench_shared(KIB);
    assert_ptr_equal(drupe_memory_pointer(memory), at);
    OK(drupe_memory_contents(memory));
    drupe_memory_release(memory);
    drupe_event_release(failure);
}

/* --- Contexts --------------------------------------------------------------------------------------------
 */

static void contexts_know_their_devices(void **state)
{
    (void)state;
    drupe_device *part, *devices[2] = {bench.device, NULL};
    drupe_context *context;
    FAILS(drupe_context_open(NULL, 1, &context), DRUPE_E_INVALID, "at least 1 device");
    FAILS(drupe_context_open(devices, 0, &context), DRUPE_E_INVALID, "at least 1 device");
    FAILS(drupe_context_open(devices, 2, &context), DRUPE_E_INVALID, "Device 1 of the context is missing");
    OK(drupe_context_open(devices, 1, &context));
    assert_int_equal(drupe_context_device_count(context), 1);
    assert_ptr_equal(drupe_context_device(context, 0), bench.device);
    assert_null(drupe_context_device(context, 1));
    assert_ptr_equal(drupe_context_home(context, bench.device), bench.device);
    if (drupe_device_select("host:cpu:0.0", &part) == DRUPE_OK) { /* needs two processors */
        assert_ptr_equal(drupe_context_home(context, part), bench.device);
        drupe_context *narrow;
        OK(drupe_context_open(&part, 1, &narrow));
        assert_null(drupe_context_home(narrow, bench.device));
        drupe_context_release(narrow);
        drupe_device_release(part);
    }
    drupe_context_release(drupe_context_retain(context));
    drupe_context_release(context);
    drupe_context_release(drupe_context_retain(NULL));
}

static int setup(void **state)
{
    drupe_fault_layer(true);
    return drupe_fault_plan(NULL) == DRUPE_OK ? bench_setup(state) : -1;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_piece_is_lent_again_to_its_size_class),
        TEST(figures_follow_what_is_lent),
        TEST(requests_that_cannot_be_are_refused),
        TEST(pieces_are_aligned_on_request),
        TEST(addresses_are_found_in_what_is_lent_only),
        TEST(ranges_end_where_memory_does),
        TEST(a_device_may_lack_a_kind),
        TEST(a_result_takes_what_its_queue_still_uses),
        TEST(what_two_queues_use_is_nobodys),
        TEST(the_middle_of_what_is_used_may_go_first),
        TEST(a_full_device_tells_who_holds_it),
        TEST(an_allocation_waits_for_work_in_flight),
        TEST(a_driver_that_has_none_is_asked_again),
        TEST(memory_is_wiped_when_it_is_lent),
        TEST(memory_is_wiped_when_it_comes_back),
        TEST(what_is_to_be_wiped_does_not_stay_in_order),
        TEST(holders_are_listed_by_bytes),
        TEST(open_devices_are_told_without_opening_any),
        TEST(memory_has_a_name_for_others),
        TEST(imported_memory_outlives_its_handle_in_work),
        TEST(memory_that_was_not_written_says_so),
        TEST(a_mark_ends_with_the_handle),
        TEST(contexts_know_their_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
