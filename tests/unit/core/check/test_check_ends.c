/* Checked mode without host memory: without a ring there is no order to look at; everything else is. */
#include "core_ends.h"

static void checked(void)
{
    drupe_memory *memory = NULL;
    drupe_failure failure;
    drupe_check_begin();
    if (ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 100, 0, &memory))) {
        char *at = drupe_memory_pointer(memory);
        ends_good(bench_fill(bench.queue, memory, 1, NULL, NULL));
        ends_good(drupe_check_host(at, 8, true));
        for (int i = 0; i < 100 && !drupe_queue_idle(bench.queue, LONG / 100); i++) continue;
        (void)!drupe_queue_wait(bench.queue, LONG);
        at[100] = 1;
        assert_int_equal(drupe_check_memory(), DRUPE_E_CHECK);
        drupe_memory_release(memory);
    }
    drupe_check_end();
    while (drupe_failure_take(&failure)) continue;
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(checked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory_nothing_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
