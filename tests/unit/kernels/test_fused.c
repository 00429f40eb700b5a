/* The kernel "fused" gives what the kernels of its steps give one by one, bit by bit. */
#include "backends/builtin.h"
#include "fused_program.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array[0]))

static void check_random(uint64_t seed, int ndim, const drupe_i64 *shape, int inputs, int steps)
{
    static program p;
    program_begin(&p, seed, ndim, shape);
    program_random(&p, inputs, steps, false);
    program_run_steps(&p);
    program_check(&p, 1);
    program_check(&p, 2 + seed % 6);
    program_end(&p);
}

static void test_find(void **state)
{
    (void)state;
    assert_non_null(drupe_builtin_find("fused"));
    assert_int_equal(drupe_builtin_find("fused")->nargs, 1 + DRUPE_FUSED_POINTERS);
}

static void test_contiguous(void **state)
{
    static const drupe_i64 sizes[] = {0, 1, 7, 63, 64, 65, 511, 512, 513, 1025, 3000};
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++)
        check_random(seed, 0, &sizes[seed % COUNT(sizes)], 1 + (int)(seed % 5), 1 + (int)(seed % 17));
}

static void test_large(void **state)
{
    static const drupe_i64 size = 100003;
    (void)state;
    for (uint64_t seed = 1000; seed < 1012; seed++) check_random(seed, 0, &size, 3, 6);
}

static void test_most(void **state)
{
    static const drupe_i64 size = 1500;
    (void)state;
    for (uint64_t seed = 2000; seed < 2040; seed++) check_random(seed, 0, &size, 10, DRUPE_FUSED_STEPS);
}

static void test_strided(void **state)
{
    static const drupe_i64 shapes[][3] = {{513, 1, 1}, {3, 171, 1}, {7, 5, 13},  {2, 700, 1}, {64, 3, 1},
                                          {0, 5, 1},   {1, 1, 1},   {5, 130, 2}, {4, 3, 129}, {3, 1030, 1}};
    (void)state;
    for (uint64_t seed = 3000; seed < 3500; seed++)
        check_random(seed, 3 - (int)(seed % 3), shapes[seed % COUNT(shapes)], 1 + (int)(seed % 6),
                     1 + (int)(seed % 11));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find), cmocka_unit_test(test_contiguous), cmocka_unit_test(test_large),
        cmocka_unit_test(test_most), cmocka_unit_test(test_strided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
