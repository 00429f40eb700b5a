/* Launches of instrumented kernels: what they found outside fails the queue. */
#include "core/submit/submit_room.h"
#include "core_bench.h"
#include "layers/fault_layer.h"

static drupe_memory *ours;
static drupe_submission s;

static int open_all(void **state, bool layered)
{
    drupe_fault_layer(layered);
    if (drupe_fault_plan(NULL) != DRUPE_OK || bench_setup(state) != 0) return -1;
    ours = bench_memory(bench.queue, DRUPE_MEM_SHARED, 1024);
    s = (drupe_submission){.queue = bench.queue};
    return 0;
}

static int setup(void **state)
{
    return open_all(state, true);
}

/* Whose backend's table a test may change. */
static int setup_plain(void **state)
{
    return open_all(state, false);
}

static int teardown(void **state)
{
    drupe_memory_release(ours);
    return bench_teardown(state);
}

static char *at(size_t offset)
{
    return (char *)drupe_memory_pointer(ours) + offset;
}

/* test_gid stands for one: its only argument is the bounds, whose first word it writes. */
static void launches_of_instrumented_kernels_are_checked(void **state)
{
    (void)state;
    static const size_t elements[] = {8, 8};
    const drupe_access accesses[] = {{at(0), 64, true}, {at(64), 64, false}};
    drupe_arg args[2];
    void *pointers[2] = {at(0), at(0)};
    const drupe_range range = {.dims = 1, .global = {1}};
    for (size_t i = 0; i < 2; i++) args[i] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &pointers[i]};
    s.accesses = accesses;
    s.naccesses = 5;
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 2, elements), DRUPE_E_INVALID, "no launch");
    s.naccesses = 2;
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 1, elements), DRUPE_E_INVALID, "no launch");
    args[1].kind = DRUPE_ARG_VALUE;
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 2, elements), DRUPE_E_INVALID, "1 is no operand");
    args[1].kind = DRUPE_ARG_POINTER;
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 2, (const size_t[]){8, 0}), DRUPE_E_INVALID,
          "1 is no operand");
    s.nwaits = 1;
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 2, elements), DRUPE_E_INVALID, "no launch");
    s.nwaits = 0;
    s.nkeeps = 1;
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 2, elements), DRUPE_E_INVALID, "no launch");
    s.nkeeps = 0;
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 2, elements), DRUPE_E_INVALID,
          "takes 1 argument, 3 were given");
    pointers[0] = pointers; /* where nothing was allocated */
    bench.gid->nargs = 3;
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 2, elements), DRUPE_E_INVALID, "not in USM");
    bench.gid->nargs = 1;
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    drupe_pool_trim(bench.device);
    OK(drupe_fault_plan("mem_alloc:1+=NO_MEMORY"));
    FAILS(drupe_check_submit(&s, bench.gid, &range, args, 2, elements), DRUPE_E_NO_MEMORY, "Planned");
    OK(drupe_fault_plan(NULL));
    s.naccesses = 0;
    s.accesses = NULL;
    s.site = 11;
    s.label = "instrumented";
    OK(drupe_check_submit(&s, bench.gid, &range, args, 0, elements)); /* writes 0 into low[0] */
    OK(drupe_queue_wait(bench.queue, LONG));
}

/* A backend that plays the kernel: it has found something outside of that operand. */
static drupe_backend playing;
static int32_t played_operand;

static const drupe_backend *real;

static drupe_status find(void *user)
{
    drupe_bounds *bounds = user;
    bounds->index = 99;
    bounds->operand = played_operand;
    return DRUPE_OK;
}

static drupe_status play(const drupe_submit *submit, drupe_kernel *kernel, const drupe_range *range,
                         const drupe_arg *args, size_t nargs)
{
    void *bounds;
    (void)kernel, (void)range;
    memcpy(&bounds, args[nargs - 1].value, sizeof bounds);
    return real->submit_host(submit, find, bounds);
}

static void what_was_outside_is_told(void **state)
{
    (void)state;
    static const size_t elements[] = {8, 8};
    const drupe_access accesses[] = {{at(64), 64, true}, {NULL, 0, false}};
    const drupe_effects effects = {.writes = 1};
    void *pointers[2] = {at(0), NULL};
    drupe_arg args[2];
    const drupe_range range = {.dims = 1, .global = {1}};
    for (size_t i = 0; i < 2; i++) args[i] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &pointers[i]};
    real = bench.queue->base.slot->backend;
    playing = *real;
    playing.submit_kernel = play;
    bench.gid->nargs = 3;
    s.accesses = accesses;
    s.naccesses = 2;
    s.effects = &effects;
    static const struct {
        int32_t operand;
        const char *words;
    } cases[] = {{1, "would use element 99 of argument 0, which has the elements 8 to 15"},
                 {2, "would use argument 1, which it does not have"},
                 {0, NULL},
                 {7, NULL}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        const uint64_t before = drupe_check_findings();
        played_operand = cases[i].operand;
        OK(drupe_queue_wait(bench.queue, LONG));
        bench.queue->base.slot->backend = &playing;
        drupe_status status = drupe_check_submit(&s, bench.gid, &range, args, 2, elements);
        bench.queue->base.slot->backend = real;
        OK(status);
        if (cases[i].words)
            FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_CHECK, cases[i].words);
        else
            OK(drupe_queue_wait(bench.queue, LONG));
        assert_int_equal(drupe_check_findings() - before, cases[i].words != NULL);
    }
    bench.gid->nargs = 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(launches_of_instrumented_kernels_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_outside_is_told, setup_plain, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
