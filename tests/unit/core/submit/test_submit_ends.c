/* Submissions at their ends: no host memory, one allocation after the other, and a forked child. */
#include "core/submit/submit_room.h"
#include "core_ends.h"
#include "walk/wrap.h"

static drupe_memory *memory;

static void all_kinds(void)
{
    static const size_t elements[] = {8};
    const drupe_submission all = {.queue = bench.queue};
    const drupe_range range = {.dims = 1, .global = {1}};
    char here[256];
    drupe_event *event = NULL, *turn = NULL;
    if (!ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 256, 0, &memory))) return;
    void *at = drupe_memory_pointer(memory);
    ends_good(drupe_submit_copy(&all, at, here, sizeof here, NULL));
    ends_good(bench_fill(bench.queue, memory, 1, NULL, &event));
    ends_good(bench_mad(bench.queue, memory, memory, 8, 1, 1, event, NULL));
    ends_good(bench_mad(bench.queue, memory, memory, 8, 1, 1, NULL, NULL));
    ends_good(drupe_submit_prefetch(&all, at, 64, NULL));
    ends_good(drupe_check_submit(&all, bench.gid, &range, NULL, 0, elements));
    ends_good(drupe_submit_turn(&all, &turn));
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "given up"};
    if (turn) ends_good(drupe_event_finish(turn, &error));
    ends_settle(bench.queue);
    drupe_event_release(event);
    drupe_event_release(turn);
    drupe_memory_release(memory);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(all_kinds);
}

/* --- One allocation --------------------------------------------------------------------------------------
 */

static drupe_submission s;
static drupe_queue *second;
static drupe_event *gates[2];
static _Atomic(int) dropped;

static void count(void *counter)
{
    atomic_fetch_add((_Atomic(int) *)counter, 1);
}

static drupe_status launch_instrumented(void)
{
    static const size_t elements[] = {8};
    const drupe_range range = {.dims = 1, .global = {1}};
    return drupe_check_submit(&s, bench.gid, &range, NULL, 0, elements);
}

static void instrumented_kernels_need_memory(void **state)
{
    ends_setup(state);
    s = (drupe_submission){.queue = bench.queue};
    ends_until(launch_instrumented, "No host memory to check a kernel.");
    ends_until(launch_instrumented, "No host memory for 1 arguments.");
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(bench_teardown(state), 0);
}

static drupe_status launch_with_keeps(void)
{
    const drupe_range range = {.dims = 1, .global = {1}};
    void *at = drupe_memory_pointer(memory);
    const drupe_arg arg = {DRUPE_ARG_POINTER, sizeof at, &at};
    return drupe_submit_kernel(&s, bench.gid, &range, &arg, 1, NULL);
}

static void keeps_are_dropped_when_the_kernel_finds_no_room(void **state)
{
    drupe_keep keeps[16]; /* as many as there is room for without memory */
    ends_setup(state);
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    for (size_t i = 0; i < DRUPE_COUNT_OF(keeps); i++) keeps[i] = (drupe_keep){(void *)&dropped, count};
    atomic_store(&dropped, 0);
    s = (drupe_submission){.queue = bench.queue, .keeps = keeps, .nkeeps = DRUPE_COUNT_OF(keeps)};
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(launch_with_keeps(), DRUPE_E_NO_MEMORY, "No host memory for a submission of 32 objects.");
    assert_int_equal(wrap_made(), 1);
    assert_int_equal(dropped, 16);
    wrap_plan(WRAP_NOTHING, 0);
    drupe_memory_release(memory);
    assert_int_equal(bench_teardown(state), 0);
}

/* Memory that another queue still uses, and a wait of the caller's, which joins what that waits for. */
static void open_joining(void **state)
{
    ends_setup(state);
    for (size_t i = 0; i < 2; i++) gates[i] = bench_gate();
    OK(drupe_queue_open(bench.context, bench.device, 0, &second));
    drupe_memory *before = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096);
    OK(bench_fill(bench.queue, before, 1, gates[0], NULL));
    drupe_memory_release(before);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 4096, &memory));
    s = (drupe_submission){.queue = second, .waits = &gates[1], .nwaits = 1};
}

static void close_joining(void **state)
{
    for (size_t i = 0; i < 2; i++) bench_open_gate(gates[i]);
    OK(drupe_queue_wait(second, LONG));
    drupe_queue_release(second);
    drupe_memory_release(memory);
    assert_int_equal(bench_teardown(state), 0);
}

#define NO_WAITS "No host memory for what a submission waits for."

/* The first allocation is for the wait of the memory, the second for that of the caller. */
static void waits_need_memory(void **state)
{
    char *far_bytes;
    open_joining(state);
    drupe_queue *far = bench_elsewhere();
    drupe_memory *foreign = bench_memory(far, DRUPE_MEM_DEVICE, 4096);
    far_bytes = drupe_memory_pointer(foreign);
    char *at = drupe_memory_pointer(memory);
    for (unsigned long n = 1; n <= 2; n++) {
        wrap_plan(WRAP_MALLOC, n);
        FAILS(drupe_submit_fill(&s, at, "x", 1, 4096, NULL), DRUPE_E_NO_MEMORY, NO_WAITS);
        assert_int_equal(wrap_made(), 1);
        wrap_plan(WRAP_MALLOC, n);
        FAILS(drupe_submit_copy(&s, far_bytes, at, 4096, NULL), DRUPE_E_NO_MEMORY, NO_WAITS);
        assert_int_equal(wrap_made(), 1);
        wrap_plan(WRAP_NOTHING, 0);
    }
    assert_int_equal(drupe_queue_pending(second), 0);
    drupe_memory_release(foreign);
    drupe_queue_release(far);
    close_joining(state);
}

static drupe_status never_pin(drupe_context *context, size_t size, void **pointer)
{
    (void)context, (void)size, (void)pointer;
    return drupe_error_set(DRUPE_E_INTERNAL, "The memory of a CPU device needs no ring.");
}

/* A large copy that core makes itself, and which finds no room among what the submission keeps. */
static drupe_status copy_in_pieces(void)
{
    static char here[16u << 20];
    drupe_keep keeps[15];
    for (size_t i = 0; i < DRUPE_COUNT_OF(keeps); i++) keeps[i] = (drupe_keep){(void *)&dropped, count};
    s.keeps = keeps;
    s.nkeeps = DRUPE_COUNT_OF(keeps);
    return drupe_submit_copy(&s, drupe_memory_pointer(memory), here, sizeof here, NULL);
}

static void copies_in_pieces_need_memory(void **state)
{
    static drupe_backend pinning;
    ends_setup(state);
    drupe_slot *slot = bench.device->slot;
    pinning = *slot->base;
    pinning.mem_pin = never_pin;
    slot->backend = &pinning;
    (void)drupe_device_number(bench.device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1);
    bench.device->info[DRUPE_INFO_MAX_COMPUTE_UNITS].number[0] = 2;
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 16u << 20);
    s = (drupe_submission){.queue = bench.queue};
    ends_until(copy_in_pieces, "No host memory for a submission of 32 objects.");
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_memory_release(memory);
    assert_int_equal(bench_teardown(state), 0);
    slot->backend = slot->base;
}

/* --- Kernels that print ----------------------------------------------------------------------------------
 */

static int cells[2], *cell; /* that of the program */

static void *cell_retain(void)
{
    return cell;
}

static void *cell_share(void *shared)
{
    return shared;
}

static bool failed(const drupe_failure *failure)
{
    (void)failure;
    return false;
}

static void printing(void *unused)
{
    (void)unused;
}

static const drupe_observer observer = {
    .cell_retain = cell_retain, .cell_share = cell_share, .failed = failed, .printing = printing};

/* Always of another cell than the last one. */
static drupe_status launch_printing(void)
{
    cell = cell == &cells[0] ? &cells[1] : &cells[0];
    return bench_mad(bench.queue, memory, memory, 8, 1, 1, NULL, NULL);
}

static void another_cell_waits_for_what_prints(void **state)
{
    drupe_event *gate, *first, *other;
    drupe_library_observe(&observer);
    ends_setup(state);
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    memset(drupe_memory_pointer(memory), 0, 64);
    bench.mad->prints = true;
    gate = bench_gate();
    cell = &cells[0];
    OK(bench_mad(bench.queue, memory, memory, 8, 1, 1, gate, &first));
    ends_until(launch_printing, NO_WAITS);
    ends_until(launch_printing, "No host memory for a submission.");
    cell = NULL;
    OK(bench_mad(bench.queue, memory, memory, 8, 3, 0, NULL, &other));
    assert_int_equal(drupe_event_state_of(other), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_event_wait(other, LONG));
    assert_int_equal(drupe_event_state_of(first), DRUPE_EVENT_COMPLETE);
    bench.mad->prints = false;
    drupe_event_release(first);
    drupe_event_release(other);
    drupe_memory_release(memory);
    assert_int_equal(bench_teardown(state), 0);
    drupe_library_observe(NULL);
}

/* --- A forked child ---------------------------------------------------------------------------------------
 */

static void in_the_child(void)
{
    static const size_t elements[] = {8};
    const drupe_range range = {.dims = 1, .global = {1}};
    const drupe_keep keep = {(void *)&dropped, count};
    drupe_event *event;
    const int before = atomic_load(&dropped);
    s = (drupe_submission){.queue = bench.queue};
    void *at = drupe_memory_pointer(memory);
    const drupe_arg arg = {DRUPE_ARG_POINTER, sizeof at, &at};
    ENDS_FORKED(drupe_submit_kernel(&s, bench.gid, &range, &arg, 1, NULL));
    ENDS_FORKED(drupe_submit_copy(&s, at, &range, 8, NULL));
    ENDS_FORKED(drupe_submit_fill(&s, at, "x", 1, 8, NULL));
    ENDS_FORKED(drupe_submit_prefetch(&s, at, 8, NULL));
    ENDS_FORKED(drupe_submit_advise(&s, at, 8, 0, NULL));
    ENDS_FORKED(drupe_submit_barrier(&s, &event));
    ENDS_FORKED(drupe_submit_turn(&s, &event));
    ENDS_FORKED(drupe_check_submit(&s, bench.gid, &range, NULL, 0, elements));
    s.keeps = &keep;
    s.nkeeps = 1;
    ENDS_FORKED(drupe_submit_host(&s, bench_nothing, NULL, NULL));
    ENDS_FORKED(drupe_submit_host(&s, NULL, NULL, NULL));
    ENDS_MUST(dropped == before + 2); /* taken all the same */
}

static void a_forked_child_is_told_so(void **state)
{
    ends_setup(state);
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    ends_in_child(in_the_child);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_memory_release(memory);
    assert_int_equal(bench_teardown(state), 0);
}

/* The last one: a device is lost for the process. */
static void copies_from_a_lost_device_need_an_event(void **state)
{
    char here[64];
    drupe_event *event;
    drupe_failure failure;
    static void *volatile left; /* the block: a driver that is silent is not asked to free it */
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away."};
    ends_setup(state);
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    left = drupe_memory_pointer(memory);
    memset(left, 6, 64);
    memset(here, 0, sizeof here);
    s = (drupe_submission){.queue = bench.queue};
    drupe_core_device_lost(bench.device, &error, true);
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_submit_copy(&s, here, drupe_memory_pointer(memory), 64, &event), DRUPE_E_NO_MEMORY,
          "No host memory for an object");
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    assert_null(event);
    assert_int_equal(here[0], 0);
    OK(drupe_submit_copy(&s, here, drupe_memory_pointer(memory), 64, &event));
    assert_int_equal(here[63], 6);
    drupe_event_release(event);
    while (drupe_failure_take(&failure)) continue;
    drupe_memory_release(memory);
    assert_int_equal(bench_teardown(state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(instrumented_kernels_need_memory),
        cmocka_unit_test(keeps_are_dropped_when_the_kernel_finds_no_room),
        cmocka_unit_test(waits_need_memory),
        cmocka_unit_test(copies_in_pieces_need_memory),
        cmocka_unit_test(another_cell_waits_for_what_prints),
        cmocka_unit_test(a_forked_child_is_told_so),
        cmocka_unit_test(copies_from_a_lost_device_need_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
