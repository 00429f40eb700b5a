/* Fused kernels of OpenCL devices: results bit by bit as those of the same operations one by one.
 * DRUPE_FUSED_TEST=all tries all operations in all types, which takes long where compilers are slow. */
#include "printed_program.h"
#include <stdlib.h>
#include <string.h>

/* --- Every operation ------------------------------------------------------------------------------------ */

static bool all_wanted(void)
{
    const char *wanted = getenv("DRUPE_FUSED_TEST");
    return wanted && strcmp(wanted, "all") == 0;
}

/* Kernels for CPUs leave out what they compute by vectors. */
static bool is_fused(const drupe_target *target, int op)
{
    return target->gpu_form || !drupe_op_row(op)->vector;
}

/* Each operation meets one type, in turn another one. */
static bool worth_testing(const drupe_target *target, int op, drupe_dtype dtype)
{
    static const drupe_dtype floats[] = {DRUPE_FLOAT32, DRUPE_FLOAT64, DRUPE_COMPLEX64, DRUPE_FLOAT16};
    const op_row *row = drupe_op_row(op);
    if (drupe_op_kind_of((drupe_op)op) != DRUPE_OP_ELEMENTWISE || !is_fused(target, op)) return false;
    if (all_wanted()) return true;
    if (row->takes & KIND_BIT(KIND_FLOAT)) return dtype == floats[op % 4];
    return (int)dtype == op % DRUPE_FLOAT16;
}

/* As many outputs as there may be, each of an operation on inputs of one type. */
static void every_operation_of(drupe_queue *queue, drupe_dtype dtype)
{
    static const size_t shape[] = {3, 7, 5};
    int op = 0;
    while (op < DRUPE_OP_COUNT) {
        printed p;
        printed_begin(&p, queue, 3, shape);
        drupe_fused_ref x = printed_input(&p, dtype, CONTIGUOUS), y = printed_input(&p, dtype, CONTIGUOUS),
                        out;
        const drupe_fused_ref a[] = {x, y, x}, where[] = {printed_input(&p, DRUPE_BOOL, CONTIGUOUS), x, y};
        for (; op < DRUPE_OP_COUNT && p.f.noperands < DRUPE_FUSED_OPERANDS; op++) {
            if (!worth_testing(p.target, op, dtype)) continue;
            if (printed_step(&p, op, op == DRUPE_OP_WHERE ? where : a, &out)) printed_output(&p, out, false);
        }
        if (p.f.nsteps) printed_compare(&p);
        printed_end(&p);
    }
}

static void every_operation(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DRUPE_DTYPE_COUNT; dtype++) every_operation_of(queues[0], (drupe_dtype)dtype);
}

/* --- Random programs ------------------------------------------------------------------------------------ */

static const int common_ops[] = {DRUPE_OP_ADD,     DRUPE_OP_MULTIPLY, DRUPE_OP_SUBTRACT,
                                 DRUPE_OP_MAXIMUM, DRUPE_OP_NEGATIVE, DRUPE_OP_LESS,
                                 DRUPE_OP_WHERE,   DRUPE_OP_SQUARE,   DRUPE_OP_DIVIDE,
                                 DRUPE_OP_SQRT,    DRUPE_OP_EXP,      DRUPE_OP_FLOOR_DIVIDE};

static drupe_fused_ref random_ref(printed *p, int ninputs)
{
    static const drupe_scalar scalars[] = {{.kind = DRUPE_SCALAR_KIND_INT, .i = 3},
                                           {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 0.37},
                                           {.kind = DRUPE_SCALAR_KIND_BOOL, .i = 1}};
    const size_t at = printed_below((size_t)(ninputs + 2 * p->f.nsteps + 1));
    if (at < (size_t)ninputs) return (drupe_fused_ref){FUSED_OPERAND, (uint8_t)at};
    if (at < (size_t)(ninputs + 2 * p->f.nsteps))
        return (drupe_fused_ref){FUSED_STEP, (uint8_t)((at - (size_t)ninputs) / 2)};
    return printed_constant(p, scalars[printed_below(3)]);
}

/* Steps on inputs of some types, by some layouts, of which half are outputs. */
static void random_program(drupe_queue *queue, const drupe_dtype *types, const sample_layout *layouts,
                           int ninputs, int ndim, const size_t *shape, int nsteps)
{
    printed p;
    printed_begin(&p, queue, ndim, shape);
    for (int i = 0; i < ninputs; i++) (void)printed_input(&p, types[i], layouts[i]);
    while (p.f.nsteps < nsteps) {
        const int op = common_ops[printed_below(DRUPE_COUNT_OF(common_ops))], arity = drupe_op_row(op)->arity;
        const int nconstants = p.f.nconstants;
        drupe_fused_ref in[DRUPE_KERNEL_INPUTS], out;
        for (int i = 0; i < arity; i++) in[i] = random_ref(&p, ninputs);
        if (!is_fused(p.target, op) || !printed_step(&p, op, in, &out)) p.f.nconstants = nconstants;
    }
    for (int i = 0; i < nsteps && p.f.noperands < DRUPE_FUSED_OPERANDS; i++)
        if (i == nsteps - 1 || printed_below(2))
            printed_output(&p, (drupe_fused_ref){FUSED_STEP, (uint8_t)i},
                           layouts[0] != CONTIGUOUS && printed_below(4) == 0);
    printed_compare(&p);
    printed_end(&p);
}

static void random_programs(void **state)
{
    static const drupe_dtype families[][3] = {
        {DRUPE_FLOAT32, DRUPE_FLOAT32, DRUPE_FLOAT32}, {DRUPE_FLOAT64, DRUPE_FLOAT64, DRUPE_INT32},
        {DRUPE_FLOAT16, DRUPE_FLOAT16, DRUPE_BOOL},    {DRUPE_INT8, DRUPE_UINT8, DRUPE_INT8},
        {DRUPE_UINT16, DRUPE_UINT16, DRUPE_UINT16},    {DRUPE_COMPLEX64, DRUPE_COMPLEX64, DRUPE_FLOAT32},
        {DRUPE_INT64, DRUPE_UINT64, DRUPE_INT64},      {DRUPE_COMPLEX128, DRUPE_FLOAT64, DRUPE_BOOL}};
    static const sample_layout layouts[][3] = {{CONTIGUOUS, CONTIGUOUS, CONTIGUOUS},
                                               {STRIDED, CONTIGUOUS, BROADCAST},
                                               {CONTIGUOUS, ROW, BROADCAST},
                                               {NEGATIVE, TRANSPOSED, ZERO_D}};
    static const size_t shapes[][3] = {{4, 6, 16}, {2, 3, 7}, {1, 1, 33}};
    const size_t rounds = all_wanted() ? 16 : 1;
    (void)state;
    for (size_t k = 0; k < DRUPE_COUNT_OF(families) * rounds; k++) {
        printed_seed = (uint32_t)k + 1;
        random_program(queues[0], families[k % DRUPE_COUNT_OF(families)], layouts[(k + k / 8) % 4], 3, 3,
                       shapes[(k + k / 4) % 3], 3 + (int)printed_below(all_wanted() ? 20 : 4));
    }
}

static void casts(void **state)
{
    static const size_t shape[] = {61};
    (void)state;
    for (int from = 0; from < DRUPE_DTYPE_COUNT; from++) {
        printed p;
        if (!all_wanted() && from % 4 != 2) continue;
        printed_begin(&p, queues[0], 1, shape);
        const drupe_fused_ref x = printed_input(&p, (drupe_dtype)from, CONTIGUOUS);
        for (int to = 0; to < DRUPE_DTYPE_COUNT; to++) {
            drupe_fused_ref out, back;
            if (!all_wanted() && to % 3 != from % 3) continue;
            if (!printed_cast(&p, x, (drupe_dtype)to, &out)) continue;
            if (to == DRUPE_BOOL && printed_cast(&p, out, DRUPE_FLOAT32, &back))
                printed_output(&p, back, false);
            printed_output(&p, out, false);
        }
        printed_compare(&p);
        printed_end(&p);
    }
}

/* What is no multiple of packs, does not begin at one, and is done in place. */
static void packs(void **state)
{
    (void)state;
    for (size_t n = 1; n < 40; n += 6) {
        printed p;
        printed_begin(&p, queues[0], 1, &n);
        const drupe_fused_ref x = printed_input(&p, DRUPE_FLOAT32, CONTIGUOUS);
        drupe_fused_ref sum, out;
        assert_true(printed_step(&p, DRUPE_OP_ADD, (drupe_fused_ref[]){x, x}, &sum));
        assert_true(printed_step(&p, DRUPE_OP_MULTIPLY, (drupe_fused_ref[]){sum, x}, &out));
        printed_output(&p, out, false);
        printed_compare(&p);
        char *before = array_fetch(&p.arrays[0]), *after;
        p.f.operands[1].base = p.f.operands[0].base;
        assert_true(printed_launch(&p));
        after = array_fetch(&p.arrays[0]);
        char *expected = array_fetch(&p.values[1]);
        assert_memory_equal(after, expected, n * sizeof(float));
        free(before);
        free(after);
        free(expected);
        printed_end(&p);
    }
}

static void beginnings(void **state)
{
    static const size_t shape[] = {45};
    const drupe_slice tail = {3, 1, 42, false};
    printed p;
    fused_form form;
    (void)state;
    printed_begin(&p, queues[0], 1, shape);
    const drupe_fused_ref x = printed_input(&p, DRUPE_FLOAT32, CONTIGUOUS);
    drupe_fused_ref out;
    assert_true(printed_step(&p, DRUPE_OP_SQUARE, &x, &out));
    printed_output(&p, out, false);
    for (int k = 0; k < 2; k++) {
        CHECK(drupe_array_slice(&p.arrays[k], &tail));
        p.f.operands[k].base = drupe_array_pointer(&p.arrays[k]);
    }
    CHECK(drupe_array_slice(&p.values[0], &tail));
    p.shape[0] = tail.count;
    p.f.n = (drupe_i64)tail.count;
    printed_compare(&p);
    drupe_fused_form(p.target, &p.f, &form);
    assert_int_equal(form.width, 1);
    printed_end(&p);
}

/* --- Words ---------------------------------------------------------------------------------------------- */

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packs), cmocka_unit_test(beginnings),
                                       cmocka_unit_test(casts), cmocka_unit_test(every_operation),
                                       cmocka_unit_test(random_programs)};
    setenv("DRUPE_FUSE_BUILD", "always", 1);
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
