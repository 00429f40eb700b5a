/* When fused kernels of OpenCL devices are built. */
#include "drupe/cache.h"
#include "printed_program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `nsteps` additions of an input to itself: another recipe for each number. */
static void additions(printed *p, int nsteps)
{
    static const size_t shape[] = {10};
    printed_begin(p, queues[0], 1, shape);
    drupe_fused_ref last = printed_input(p, DRUPE_INT32, CONTIGUOUS);
    for (int i = 0; i < nsteps; i++)
        assert_true(printed_step(p, DRUPE_OP_ADD, (drupe_fused_ref[]){last, {FUSED_OPERAND, 0}}, &last));
    printed_output(p, last, false);
    printed_settle(p);
}

static void at_the_third_use(void **state)
{
    printed p;
    (void)state;
    additions(&p, 7);
    for (int use = 0; use < 2; use++) {
        assert_false(printed_launch(&p));
        CHECK(drupe_fused_settle(DRUPE_FOREVER));
    }
    (void)printed_launch(&p);
    CHECK(drupe_fused_settle(DRUPE_FOREVER));
    printed_compare(&p);
    printed_end(&p);
}

static void never_what_does_not_build(void **state)
{
    printed p;
    (void)state;
    additions(&p, 8);
    p.f.steps[7].op = DRUPE_OP_BITWISE_AND;
    p.f.steps[7].compute = DRUPE_FLOAT32;
    for (int use = 0; use < 5; use++) assert_false(printed_launch(&p));
    p.f.steps[6].op = DRUPE_OP_SUBTRACT;
    for (int use = 0; use < 5; use++) {
        assert_false(printed_launch(&p));
        CHECK(drupe_fused_settle(DRUPE_FOREVER));
    }
    printed_end(&p);
}

static void not_too_many(void **state)
{
    printed p;
    (void)state;
    additions(&p, 12);
    for (int i = 0; i < 2000; i++) {
        for (int k = 0; k < 11; k++) p.f.steps[k].op = i >> k & 1 ? DRUPE_OP_MULTIPLY : DRUPE_OP_SUBTRACT;
        assert_false(printed_launch(&p));
    }
    assert_true(p.target->fused.count <= 1024);
    CHECK(drupe_fused_settle(DRUPE_FOREVER));
    printed_end(&p);
}

static void not_more_than_the_device_takes(void **state)
{
    printed p;
    const uint64_t most =
        drupe_device_number(drupe_queue_device(queues[0]), DRUPE_INFO_MAX_PARAMETER_SIZE, 1024);
    (void)state;
    additions(&p, 2);
    p.f.noperands = DRUPE_FUSED_OPERANDS;
    for (int k = 1; k < DRUPE_FUSED_OPERANDS; k++) p.f.operands[k] = p.f.operands[1];
    p.f.ndim = DRUPE_KERNEL_DIMS;
    for (int d = 0; d < DRUPE_KERNEL_DIMS; d++) p.f.shape[d] = d ? 1 : 10;
    if (most < 1200) {
        drupe_kernel *kernel;
        drupe_fused_ready(p.target, &p.f, &kernel);
        assert_null(kernel);
    }
    p.f.noperands = 2;
    p.f.ndim = 0;
    printed_end(&p);
}

/* What a process has built the next one finds in the disk cache: here the same one, after it has forgotten.
 */
static void at_once_from_the_cache(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        printed p;
        int uses = 1;
        additions(&p, 5);
        for (; uses < 9 && !printed_launch(&p); uses++) CHECK(drupe_fused_settle(DRUPE_FOREVER));
        assert_int_equal(uses, round ? 2 : 4);
        printed_compare(&p);
        printed_end(&p);
        CHECK(drupe_cache_flush(DRUPE_FOREVER));
        drupe_array_forget();
    }
}

static int cache_open(void **state)
{
    static char folder[] = "/tmp/drupe_test_fused_XXXXXX";
    unsetenv("DRUPE_FUSE_BUILD");
    if (!mkdtemp(folder)) return -1;
    setenv("DRUPE_CACHE_DIR", folder, 1);
    setenv("DRUPE_CACHE", "1", 1);
    *state = folder;
    return queues_open(state);
}

static int cache_close(void **state)
{
    uint64_t bytes;
    char command[96];
    CHECK(drupe_fused_settle(DRUPE_FOREVER));
    CHECK(drupe_cache_clear(&bytes));
    snprintf(command, sizeof(command), "rm -r '%s'", (const char *)*state);
    return system(command) || queues_close(state);
}

static int builds_close(void **state)
{
    CHECK(drupe_fused_settle(DRUPE_FOREVER));
    return queues_close(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_third_use), cmocka_unit_test(never_what_does_not_build),
        cmocka_unit_test(not_too_many), cmocka_unit_test(not_more_than_the_device_takes)};
    const struct CMUnitTest with_cache[] = {cmocka_unit_test(at_once_from_the_cache)};
    const int failed = cmocka_run_group_tests(tests, queues_open, builds_close);
    return failed + cmocka_run_group_tests(with_cache, cache_open, cache_close);
}
