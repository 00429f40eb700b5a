/* Memory at its ends: no host memory, one allocation after the other, and a forked child. */
#include "backends/services.h"
#include "core/memory/memory_room.h"
#include "core_ends.h"

static drupe_memory *memory;

static void take_back(void *returned)
{
    *(bool *)returned = true;
}

static void borrow_and_return(void)
{
    char bytes[64];
    bool returned = false;
    const drupe_keep keep = {&returned, take_back};
    drupe_memory *borrowed = NULL;
    bool good = ends_good(drupe_memory_borrow(bench.queue, bytes, sizeof bytes, &keep, &borrowed));
    drupe_memory_release(borrowed);
    if (good != returned) fail_msg("the lender got its bytes back, or did not");
}

/* More than the table of all memory has room for at first. */
static void allocations(void)
{
    enum { MANY = 70 };
    unsigned char handle[DRUPE_IPC_BYTES];
    drupe_memory *all[MANY] = {NULL}, *page = NULL, *twin = NULL;
    drupe_context *context = NULL;
    drupe_holder holders[4];
    for (size_t i = 0; i < MANY; i++)
        ends_good(drupe_memory_alloc(bench.queue, (drupe_mem_kind)(i % 3), 64 + i, 0, &all[i]));
    (void)drupe_memory_holders(NULL, true, holders, 4);
    if (ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 4096, 0, &page)) &&
        ends_good(drupe_memory_export(page, handle)) &&
        ends_good(drupe_memory_import(bench.queue, handle, 0, &twin)))
        drupe_memory_release(twin);
    drupe_memory_release(page);
    borrow_and_return();
    if (ends_good(drupe_context_open(&bench.device, 1, &context))) drupe_context_release(context);
    for (size_t i = 0; i < MANY; i++) drupe_memory_release(all[i]);
    drupe_pool_trim(bench.device);
}

static void a_full_device(void)
{
    drupe_memory *held = NULL, *more = NULL;
    drupe_pool_set_limit(bench.device, 1u << 20);
    ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 900u << 10, 0, &held));
    if (ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 900u << 10, 0, &more)) && held)
        fail_msg("there is no room for two");
    drupe_memory_release(held);
    drupe_memory_release(more);
    drupe_pool_set_limit(bench.device, 0);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(allocations);
    ends_walk(a_full_device);
}

static void in_the_child(void)
{
    unsigned char handle[DRUPE_IPC_BYTES] = {0};
    const drupe_keep keep = {handle, take_back};
    drupe_memory *other;
    drupe_context *context;
    drupe_holder holder;
    drupe_device *devices[2];
    drupe_device_figures figures[2];
    ENDS_FORKED(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 8, 0, &other));
    ENDS_FORKED(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 8, &other));
    ENDS_FORKED(drupe_memory_export(memory, handle));
    ENDS_FORKED(drupe_memory_import(bench.queue, handle, 0, &other));
    ENDS_FORKED(drupe_memory_borrow(bench.queue, handle, sizeof handle, &keep, &other));
    ENDS_FORKED(drupe_context_open(&bench.device, 1, &context));
    ENDS_FORKED(drupe_pool_set_wipe(bench.device, 0));
    ENDS_MUST(!drupe_memory_find(drupe_memory_pointer(memory)));
    ENDS_MUST(drupe_memory_holders(NULL, false, &holder, 1) == 0);
    ENDS_MUST(drupe_pool_trim(bench.device) == 0);
    ENDS_MUST(drupe_device_known(devices, 2) == 0);
    ENDS_MUST(drupe_device_figures_of(figures, 2) == 0);
    drupe_memory_release(memory); /* nothing happens */
    drupe_context_release(bench.context);
    drupe_queue_release(bench.queue);
    ENDS_MUST(drupe_memory_size(memory) == 100);
    /* What the parent has in flight stays as it is. */
    const uint32_t inner = atomic_load(&drupe_base(bench.queue)->inner);
    drupe_queue_inner_release(bench.queue);
    ENDS_MUST(atomic_load(&drupe_base(bench.queue)->inner) == inner);
    drupe_uses_drop(memory);
    ENDS_MUST(drupe_memory_in_use(memory));
}

static void a_forked_child_is_told_so(void **state)
{
    ends_setup(state);
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 100);
    const drupe_keep keep = drupe_memory_keep(memory, bench.queue);
    const drupe_submission s = {.queue = bench.queue};
    OK(drupe_submit_host(&s, bench_nothing, NULL, NULL));
    ends_in_child(in_the_child);
    memset(drupe_memory_pointer(memory), 1, 100);
    OK(drupe_queue_wait(bench.queue, LONG));
    keep.release(keep.object);
    drupe_memory_release(memory);
    assert_int_equal(bench_teardown(state), 0);
}

/* The last one: memory of a lost device is not given to its driver any more. */
static void a_silent_driver_gets_nothing_back(void **state)
{
    drupe_device_figures figures[2];
    drupe_failure failure;
    drupe_context *context;
    drupe_memory *more;
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away."};
    ends_setup(state);
    OK(drupe_context_open(&bench.device, 1, &context));
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 100);
    drupe_core_device_lost(bench.device, &error, true);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 8, 0, &more), DRUPE_E_DEVICE_LOST,
          "It went away.");
    drupe_context *late;
    FAILS(drupe_context_open(&bench.device, 1, &late), DRUPE_E_DEVICE_LOST, "It went away.");
    assert_int_equal(drupe_device_figures_of(figures, 2), 1);
    assert_true(figures[0].lost);
    drupe_memory_release(memory);
    assert_true(drupe_pool_trim(bench.device) >= 100);
    drupe_context_release(context);
    while (drupe_failure_take(&failure)) continue;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(a_forked_child_is_told_so),
        cmocka_unit_test(a_silent_driver_gets_nothing_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
