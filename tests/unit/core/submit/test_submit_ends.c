/* Submissions at their ends: no host memory, one allocation after the other, and a forked child. */
#include "core_ends.h"

static drupe_memory *memory;

static void settle(void)
{
    drupe_failure failure;
    for (int i = 0; i < 100 && !drupe_queue_idle(bench.queue, LONG / 100); i++) continue;
    (void)!drupe_queue_wait(bench.queue, LONG);
    while (drupe_failure_take(&failure)) continue;
}

static void all_kinds(void)
{
    static const size_t elements[] = {8};
    const drupe_submission s = {.queue = bench.queue};
    const drupe_range range = {.dims = 1, .global = {1}};
    char here[256];
    drupe_event *event = NULL, *turn = NULL;
    if (!ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 256, 0, &memory))) return;
    void *at = drupe_memory_pointer(memory);
    ends_good(drupe_submit_copy(&s, at, here, sizeof here, NULL));
    ends_good(bench_fill(bench.queue, memory, 1, NULL, &event));
    ends_good(bench_mad(bench.queue, memory, memory, 8, 1, 1, event, NULL));
    ends_good(bench_mad(bench.queue, memory, memory, 8, 1, 1, NULL, NULL));
    ends_good(drupe_submit_prefetch(&s, at, 64, NULL));
    ends_good(drupe_check_submit(&s, bench.gid, &range, NULL, 0, elements));
    ends_good(drupe_submit_turn(&s, &turn));
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "given up"};
    if (turn) ends_good(drupe_event_finish(turn, &error));
    settle();
    drupe_event_release(event);
    drupe_event_release(turn);
    drupe_memory_release(memory);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(all_kinds);
}

static drupe_status nothing(void *unused)
{
    (void)unused;
    return DRUPE_OK;
}

static int released;

static void release(void *unused)
{
    (void)unused;
    released++;
}

static void in_the_child(void)
{
    static const size_t elements[] = {8};
    const drupe_range range = {.dims = 1, .global = {1}};
    const drupe_keep keep = {&released, release};
    drupe_submission s = {.queue = bench.queue};
    drupe_event *event;
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
    ENDS_FORKED(drupe_submit_host(&s, nothing, NULL, NULL));
    ENDS_FORKED(drupe_submit_host(&s, NULL, NULL, NULL));
    ENDS_MUST(released == 2); /* taken all the same */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(a_forked_child_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
