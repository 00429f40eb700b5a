/* The kernel "fused" gives what the kernels of its steps give one by one, bit by bit. */
#include "backends/builtin.h"
#include "fused_program.h"
#include <math.h>
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
    static const drupe_i64 shapes[][3] = {{513, 1, 1}, {3, 171, 1},  {7, 5, 13},  {2, 700, 1},
                                          {64, 3, 1},  {0, 5, 1},    {1, 1, 1},   {5, 130, 2},
                                          {4, 3, 129}, {3, 1030, 1}, {70, 90, 1}, {33, 5, 40}};
    (void)state;
    for (uint64_t seed = 3000; seed < 3500; seed++)
        check_random(seed, 3 - (int)(seed % 3), shapes[seed % COUNT(shapes)], 1 + (int)(seed % 6),
                     1 + (int)(seed % 11));
}

/* --- Reductions ----------------------------------------------------------------------------------------- */

typedef struct reducing {
    const char *op;
    int compute; /* of its operand any type is converted to it */
} reducing;
static const reducing reductions[] = {
    {"sum", FLOAT64},  {"sum", FLOAT32}, {"sum", INT64},     {"sum", COMPLEX64}, {"sum", COMPLEX128},
    {"prod", FLOAT64}, {"max", FLOAT64}, {"min", FLOAT32},   {"max", INT8},      {"min", UINT64},
    {"any", BOOL},     {"all", BOOL},    {"prod", COMPLEX64}};

/* Of all types that there are, or of that which is computed in. */
static void check_reduced(uint64_t seed, const program_axes *axes, int steps)
{
    static program p;
    const reducing *r = &reductions[seed % COUNT(reductions)];
    const bool flat = seed / 13 % 2, same = seed / 26 % 4 != 0;
    const drupe_i64 n = axes->outer * axes->extent * axes->inner;
    const drupe_i64 shape[] = {flat ? n : axes->outer, axes->extent, axes->inner};
    program_begin(&p, seed, flat ? 0 : 3, shape);
    program_random(&p, 1 + (int)(seed % 3), steps, true);
    if (same) {
        const drupe_fused_ref last = {FUSED_STEP, (uint8_t)(p.f.nsteps - 1)};
        program_step(&p, operation_number("copy"), r->compute, r->compute, seed % 5 == 0, &last);
    }
    program_reduce(&p, r->op, r->compute,
                   seed % 3 || r->compute == BOOL ? r->compute : (int)(seed / 3 % DTYPES), axes);
    program_finish(&p);
    program_run_steps(&p);
    program_check(&p, 1);
    program_check(&p, 2 + seed % 6);
    program_end(&p);
}

static void test_rows(void **state)
{
    static const program_axes axes[] = {
        {1, 0, 1, 1, false},   {1, 1, 1, 1, false},   {1, 100003, 1, 6, false}, {1, 9001, 1, 1, false},
        {5, 513, 1, 1, false}, {300, 3, 1, 1, false}, {2, 8193, 1, 3, false},   {0, 4, 1, 1, false},
        {3, 511, 1, 2, false}, {40, 64, 1, 1, false}, {1, 40001, 1, 1, false},  {7, 100, 1, 1, false}};
    (void)state;
    for (uint64_t seed = 0; seed < 312; seed++)
        check_reduced(4000 + seed, &axes[(seed / 3 + seed) % COUNT(axes)], 1 + (int)(seed % 4));
}

static void test_columns(void **state)
{
    static const program_axes axes[] = {{1, 10, 513, 1, true}, {1, 103, 8, 1, true},  {1, 1003, 20, 5, true},
                                        {1, 5, 5000, 1, true}, {3, 17, 130, 1, true}, {2, 9, 1500, 2, true},
                                        {1000, 3, 1, 1, true}, {513, 15, 1, 1, true}, {2, 64, 64, 3, true},
                                        {1, 0, 20, 1, true},   {1, 9, 1025, 1, true}, {4, 2, 600, 1, true},
                                        {2000, 7, 1, 1, true}, {1, 4, 4097, 1, true}};
    (void)state;
    for (uint64_t seed = 0; seed < 364; seed++)
        check_reduced(5000 + seed, &axes[(seed / 3 + seed) % COUNT(axes)], 1 + (int)(seed % 4));
}

/* --- By hand -------------------------------------------------------------------------------------------- */

/* x = x * x + y, where the result has the memory of x. */
static void test_in_place(void **state)
{
    static const drupe_i64 size = 1000;
    static program p;
    const drupe_fused_ref x = {FUSED_OPERAND, 0}, y = {FUSED_OPERAND, 1}, square = {FUSED_STEP, 0};
    (void)state;
    program_begin(&p, 1, 0, &size);
    program_operand(&p, FLOAT64, false);
    program_operand(&p, FLOAT32, false);
    program_step(&p, operation_number("multiply"), FLOAT64, FLOAT64, false, (drupe_fused_ref[]){x, x});
    program_step(&p, operation_number("add"), FLOAT64, FLOAT64, true, (drupe_fused_ref[]){square, y});
    program_finish(&p);
    program_run_steps(&p);
    p.f.operands[2].base = p.f.operands[0].base;
    const size_t around = (size_t)(p.f.operands[0].base - p.memory[0]);
    memcpy(p.expected[0] + around, p.expected[2] + around, (size_t)size * sizeof(double));
    memcpy(p.expected[2], p.before[2], p.bytes[2]);
    program_check(&p, 1);
    program_check(&p, 3);
    program_end(&p);
}

/* Which zero is the largest depends on the way that a piece of columns takes, and that on NaN in the piece.
 */
static void test_zeros(void **state)
{
    enum { ROWS = 12, COLUMNS = 2500, AROUND = 4 };
    static const drupe_i64 size = ROWS * COLUMNS;
    static program p;
    const drupe_fused_ref x = {FUSED_OPERAND, 0};
    uint64_t seed = 1;
    (void)state;
    program_begin(&p, 1, 0, &size);
    program_operand(&p, FLOAT64, false);
    double *elements = (double *)(void *)p.before[0] + AROUND;
    for (int i = 0; i < size; i++) elements[i] = random_below(&seed, 2) ? 0.0 : -0.0;
    elements[600] = elements[5 * COLUMNS + 1700] = elements[9 * COLUMNS + 2400] = (double)NAN;
    memcpy(p.memory[0], p.before[0], p.bytes[0]);
    memcpy(p.expected[0], p.before[0], p.bytes[0]);
    program_step(&p, operation_number("negative"), FLOAT64, FLOAT64, false, &x);
    program_reduce(&p, "max", FLOAT64, FLOAT64, &(program_axes){1, ROWS, COLUMNS, 1, true});
    program_finish(&p);
    program_run_steps(&p);
    program_check(&p, 1);
    program_check(&p, 2);
    program_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),    cmocka_unit_test(test_contiguous), cmocka_unit_test(test_large),
        cmocka_unit_test(test_most),    cmocka_unit_test(test_strided),    cmocka_unit_test(test_rows),
        cmocka_unit_test(test_columns), cmocka_unit_test(test_in_place),   cmocka_unit_test(test_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
