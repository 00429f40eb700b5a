/* Fused kernels of OpenCL devices: results bit by bit as those of the same operations one by one, and when they are
 * built. DRUPE_FUSED_TEST=all tries all operations in all types, which takes long where compilers are slow. */
#include "array/fused_room.h"
#include "array_fixture.h"
#include "drupe/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t seed = 1;

static size_t below(size_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* --- Programs ------------------------------------------------------------------------------------------- */

/* A fused program over samples, beside the same steps one by one. */
typedef struct program {
    drupe_queue *queue;
    drupe_target *target;
    drupe_fused f;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    drupe_array arrays[DRUPE_FUSED_OPERANDS];  /* the operands */
    drupe_array plain[DRUPE_FUSED_OPERANDS];   /* inputs with all elements of the index space, contiguous */
    drupe_array values[DRUPE_FUSED_STEPS];     /* of the steps one by one */
    drupe_scalar scalars[DRUPE_FUSED_CONSTANTS];
} program;

static void program_begin(program *p, drupe_queue *queue, int ndim, const size_t *shape)
{
    memset(p, 0, sizeof(*p));
    p->queue = queue;
    p->ndim = ndim;
    memcpy(p->shape, shape, (size_t)ndim * sizeof(*shape));
    CHECK(drupe_target_get(queue, &p->target));
    p->f.reduction.op = -1;
    p->f.n = 1;
    for (int d = 0; d < ndim; d++) p->f.n *= (drupe_i64)shape[d];
}

static void program_end(program *p)
{
    CHECK(drupe_queue_wait(p->queue, DRUPE_FOREVER));
    for (int k = 0; k < p->f.noperands; k++) {
        drupe_array_clear(&p->arrays[k]);
        if (p->plain[k].memory) drupe_array_clear(&p->plain[k]);
    }
    for (int i = 0; i < p->f.nsteps; i++) drupe_array_clear(&p->values[i]);
}

static void add_operand(program *p, const drupe_array *array, bool output)
{
    drupe_fused_operand *operand = &p->f.operands[p->f.noperands];
    drupe_array_view(array, &p->arrays[p->f.noperands++]);
    operand->base = drupe_array_pointer(array);
    operand->dtype = (drupe_i32)array->dtype;
    operand->output = output;
    for (int d = 0; d < p->ndim; d++) operand->strides[d] = drupe_layout_stride(array, p->ndim, d);
}

static drupe_fused_ref add_input(program *p, drupe_dtype dtype, sample_layout layout)
{
    sample s;
    size_t index[DRUPE_MAX_DIMS] = {0};
    const size_t size = drupe_dtype_size(dtype);
    const int k = p->f.noperands;
    char *all = malloc((size_t)p->f.n * size);
    assert_non_null(all);
    sample_make(p->queue, dtype, layout, p->ndim, p->shape, (unsigned)below(1000), true, &s);
    for (size_t i = 0; i < (size_t)p->f.n; i++) {
        number_store(all + i * size, sample_at(&s, p->ndim, index));
        index_next(p->ndim, p->shape, index);
    }
    CHECK(drupe_array_empty(p->queue, DRUPE_MEM_DEVICE, dtype, p->ndim, p->shape, &p->plain[k]));
    CHECK(drupe_array_from_host(&p->plain[k], all, NULL));
    add_operand(p, &s.array, false);
    sample_clear(&s);
    free(all);
    return (drupe_fused_ref){FUSED_OPERAND, (uint8_t)k};
}

static drupe_fused_ref add_constant(program *p, drupe_scalar scalar)
{
    p->scalars[p->f.nconstants] = scalar;
    p->f.constants[p->f.nconstants].dtype = DRUPE_DTYPE_NONE;
    return (drupe_fused_ref){FUSED_CONSTANT, (uint8_t)p->f.nconstants++};
}

static drupe_operand operand_of(const program *p, drupe_fused_ref ref)
{
    switch (ref.source) {
    case FUSED_OPERAND: return (drupe_operand){.array = &p->plain[ref.index]};
    case FUSED_STEP: return (drupe_operand){.array = &p->values[ref.index]};
    default: return (drupe_operand){.scalar = p->scalars[ref.index]};
    }
}

static drupe_dtype dtype_of(const program *p, drupe_fused_ref ref)
{
    const drupe_operand operand = operand_of(p, ref);
    return operand.array ? operand.array->dtype : DRUPE_DTYPE_NONE;
}

/* Append an operation, and do it alone. False, with nothing done, when it does not take such operands. */
static bool add_step(program *p, int op, const drupe_fused_ref *in, drupe_fused_ref *out)
{
    drupe_fused_step *step = &p->f.steps[p->f.nsteps];
    drupe_operand operands[DRUPE_KERNEL_INPUTS];
    op_types types;
    const size_t nin = (size_t)drupe_op_row(op)->arity;
    for (size_t i = 0; i < nin; i++) operands[i] = operand_of(p, in[i]);
    if (drupe_op_types(op, operands, nin, p->target->fp64, &types) != DRUPE_OK) return false;
    if (op == DRUPE_OP_NEXTAFTER && types.common == DRUPE_FLOAT16) op = OP_NEXTAFTER_HALF;
    for (size_t i = 0; i < nin; i++) {
        step->in[i] = in[i];
        if (operands[i].array) continue;
        drupe_fused_constant *constant = &p->f.constants[in[i].index];
        if (drupe_op_constant(op, &types, operands, i, constant->value) != DRUPE_OK) return false;
        constant->dtype = (drupe_i32)drupe_op_input(drupe_op_row(op), types.compute, i);
    }
    step->op = (uint8_t)op;
    step->compute = (uint8_t)types.compute;
    step->dtype = (uint8_t)types.result;
    step->store = -1;
    drupe_array *value = &p->values[p->f.nsteps];
    CHECK(drupe_array_result(p->queue, DRUPE_MEM_DEVICE, types.result, p->ndim, p->shape, value));
    CHECK(drupe_map_launch(p->target, op, &types, value, operands, nin));
    *out = (drupe_fused_ref){FUSED_STEP, (uint8_t)p->f.nsteps++};
    return true;
}

static bool add_cast(program *p, drupe_fused_ref in, drupe_dtype dtype, drupe_fused_ref *out)
{
    drupe_fused_step *step = &p->f.steps[p->f.nsteps];
    const drupe_operand operand = operand_of(p, in);
    const drupe_dtype compute = drupe_copy_type(operand.array->dtype, dtype);
    drupe_array *value = &p->values[p->f.nsteps];
    *step = (drupe_fused_step){OP_COPY, (uint8_t)compute, (uint8_t)dtype, 0, -1, {in}};
    CHECK(drupe_array_result(p->queue, DRUPE_MEM_DEVICE, dtype, p->ndim, p->shape, value));
    CHECK(drupe_copy_launch(p->target, value, &operand));
    *out = (drupe_fused_ref){FUSED_STEP, (uint8_t)p->f.nsteps++};
    return true;
}

/* The step's value becomes an output; `turned`: with its axes reversed in memory. */
static void add_output(program *p, drupe_fused_ref ref, bool turned)
{
    size_t shape[DRUPE_MAX_DIMS];
    drupe_array array = {0};
    for (int d = 0; d < p->ndim; d++) shape[d] = p->shape[turned ? p->ndim - 1 - d : d];
    CHECK(drupe_array_empty(p->queue, DRUPE_MEM_DEVICE, dtype_of(p, ref), p->ndim, shape, &array));
    if (turned) CHECK(drupe_array_permute(&array, NULL));
    p->f.steps[ref.index].store = (int8_t)p->f.noperands;
    add_operand(p, &array, true);
    drupe_array_clear(&array);
}

/* How the program is laid out: contiguous without strides where that can be. */
static void settle_layout(program *p)
{
    bool plain = true;
    for (int k = 0; k < p->f.noperands; k++)
        plain = plain && drupe_array_contiguous(&p->arrays[k]) && (drupe_i64)p->arrays[k].size == p->f.n;
    p->f.ndim = plain ? 0 : p->ndim;
    for (int d = 0; d < p->f.ndim; d++) p->f.shape[d] = (drupe_i64)p->shape[d];
}

static bool launch(program *p)
{
    drupe_memory *memories[DRUPE_FUSED_OPERANDS];
    drupe_effects effects = {0};
    bool launched;
    for (int k = 0; k < p->f.noperands; k++) {
        memories[k] = p->arrays[k].memory;
        if (p->f.operands[k].output)
            effects.writes |= UINT64_C(1) << k;
        else
            effects.reads |= UINT64_C(1) << k;
    }
    const drupe_submission s = {.queue = p->queue, .ordered = true, .effects = &effects};
    CHECK(drupe_fused_launch(p->target, &p->f, &s, memories, &launched));
    return launched;
}

static void tell_text(const program *p)
{
    drupe_text text = {0};
    const char *kernel;
    CHECK(drupe_fused_print(p->target, &p->f, &text));
    kernel = strstr(drupe_text_get(&text), "INLINED void element");
    print_error("%s\n", kernel ? kernel : drupe_text_get(&text));
    drupe_text_clear(&text);
}

static void fill_outputs(program *p)
{
    for (int k = 0; k < p->f.noperands; k++) {
        if (!p->f.operands[k].output) continue;
        char *bytes = malloc(p->arrays[k].size * drupe_dtype_size(p->arrays[k].dtype));
        assert_non_null(bytes);
        memset(bytes, 0x5b, p->arrays[k].size * drupe_dtype_size(p->arrays[k].dtype));
        drupe_array all = p->arrays[k];
        all.ndim = 1;
        all.shape[0] = all.size;
        all.strides[0] = 1;
        CHECK(drupe_array_from_host(&all, bytes, NULL));
        free(bytes);
    }
}

/* The same bits; of NaN, whose sign and payload processors take from either operand, that it is one. */
static bool is_same(const char *a, const char *b, drupe_dtype dtype)
{
    const size_t size = drupe_dtype_size(dtype);
    const number x = number_load(a, dtype), y = number_load(b, dtype);
    if (memcmp(a, b, size) == 0) return true;
    if (is_float(dtype)) return x.f != x.f && y.f != y.f;
    if (!is_complex(dtype)) return false;
    const bool real = memcmp(a, b, size / 2) == 0 || (x.f != x.f && y.f != y.f);
    const bool imag = memcmp(a + size / 2, b + size / 2, size / 2) == 0 || (x.im != x.im && y.im != y.im);
    return real && imag;
}

static void run_and_compare(program *p)
{
    settle_layout(p);
    fill_outputs(p);
    if (!launch(p)) {
        tell_text(p);
        fail_msg("no kernel");
    }
    for (int i = 0; i < p->f.nsteps; i++) {
        const int store = p->f.steps[i].store;
        if (store < 0) continue;
        const size_t size = drupe_dtype_size(p->values[i].dtype);
        char *expected = array_fetch(&p->values[i]), *got = array_fetch(&p->arrays[store]);
        for (size_t e = 0; e < (size_t)p->f.n; e++) {
            if (is_same(expected + e * size, got + e * size, p->values[i].dtype)) continue;
            const number x = number_load(expected + e * size, p->values[i].dtype);
            const number y = number_load(got + e * size, p->values[i].dtype);
            tell_text(p);
            print_error("seed %u\n", seed);
            fail_msg("step %d, %s of %s, element %zu: alone %.17g %.17g %" PRId64 ", fused %.17g %.17g %" PRId64, i,
                     drupe_op_row(p->f.steps[i].op)->name, drupe_dtype_name(p->f.steps[i].compute), e, x.f, x.im,
                     x.i, y.f, y.im, y.i);
        }
        free(expected);
        free(got);
    }
}

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
        program p;
        program_begin(&p, queue, 3, shape);
        drupe_fused_ref x = add_input(&p, dtype, CONTIGUOUS), y = add_input(&p, dtype, CONTIGUOUS), out;
        const drupe_fused_ref a[] = {x, y, x}, where[] = {add_input(&p, DRUPE_BOOL, CONTIGUOUS), x, y};
        for (; op < DRUPE_OP_COUNT && p.f.noperands < DRUPE_FUSED_OPERANDS; op++) {
            if (!worth_testing(p.target, op, dtype)) continue;
            if (add_step(&p, op, op == DRUPE_OP_WHERE ? where : a, &out)) add_output(&p, out, false);
        }
        if (p.f.nsteps) run_and_compare(&p);
        program_end(&p);
    }
}

static void every_operation(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DRUPE_DTYPE_COUNT; dtype++) every_operation_of(queues[0], (drupe_dtype)dtype);
}

/* --- Random programs ------------------------------------------------------------------------------------ */

static const int common_ops[] = {DRUPE_OP_ADD,      DRUPE_OP_MULTIPLY, DRUPE_OP_SUBTRACT, DRUPE_OP_MAXIMUM,
                                 DRUPE_OP_NEGATIVE, DRUPE_OP_LESS,     DRUPE_OP_WHERE,    DRUPE_OP_SQUARE,
                                 DRUPE_OP_DIVIDE,   DRUPE_OP_SQRT,     DRUPE_OP_EXP,      DRUPE_OP_FLOOR_DIVIDE};

static drupe_fused_ref random_ref(program *p, int ninputs)
{
    static const drupe_scalar scalars[] = {{.kind = DRUPE_SCALAR_KIND_INT, .i = 3},
                                           {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 0.37},
                                           {.kind = DRUPE_SCALAR_KIND_BOOL, .i = 1}};
    const size_t at = below((size_t)(ninputs + 2 * p->f.nsteps + 1));
    if (at < (size_t)ninputs) return (drupe_fused_ref){FUSED_OPERAND, (uint8_t)at};
    if (at < (size_t)(ninputs + 2 * p->f.nsteps))
        return (drupe_fused_ref){FUSED_STEP, (uint8_t)((at - (size_t)ninputs) / 2)};
    return add_constant(p, scalars[below(3)]);
}

/* Steps on inputs of some types, by some layouts, of which half are outputs. */
static void random_program(drupe_queue *queue, const drupe_dtype *types, const sample_layout *layouts, int ninputs,
                           int ndim, const size_t *shape, int nsteps)
{
    program p;
    program_begin(&p, queue, ndim, shape);
    for (int i = 0; i < ninputs; i++) (void)add_input(&p, types[i], layouts[i]);
    while (p.f.nsteps < nsteps) {
        const int op = common_ops[below(DRUPE_COUNT_OF(common_ops))], arity = drupe_op_row(op)->arity;
        const int nconstants = p.f.nconstants;
        drupe_fused_ref in[DRUPE_KERNEL_INPUTS], out;
        for (int i = 0; i < arity; i++) in[i] = random_ref(&p, ninputs);
        if (!is_fused(p.target, op) || !add_step(&p, op, in, &out)) p.f.nconstants = nconstants;
    }
    for (int i = 0; i < nsteps && p.f.noperands < DRUPE_FUSED_OPERANDS; i++)
        if (i == nsteps - 1 || below(2))
            add_output(&p, (drupe_fused_ref){FUSED_STEP, (uint8_t)i}, layouts[0] != CONTIGUOUS && below(4) == 0);
    run_and_compare(&p);
    program_end(&p);
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
        seed = (uint32_t)k + 1;
        random_program(queues[0], families[k % DRUPE_COUNT_OF(families)], layouts[(k + k / 8) % 4], 3, 3,
                       shapes[(k + k / 4) % 3], 3 + (int)below(all_wanted() ? 20 : 4));
    }
}

static void casts(void **state)
{
    static const size_t shape[] = {61};
    (void)state;
    for (int from = 0; from < DRUPE_DTYPE_COUNT; from++) {
        program p;
        if (!all_wanted() && from % 4 != 2) continue;
        program_begin(&p, queues[0], 1, shape);
        const drupe_fused_ref x = add_input(&p, (drupe_dtype)from, CONTIGUOUS);
        for (int to = 0; to < DRUPE_DTYPE_COUNT; to++) {
            drupe_fused_ref out, back;
            if (!all_wanted() && to % 3 != from % 3) continue;
            if (!add_cast(&p, x, (drupe_dtype)to, &out)) continue;
            if (to == DRUPE_BOOL && add_cast(&p, out, DRUPE_FLOAT32, &back)) add_output(&p, back, false);
            add_output(&p, out, false);
        }
        run_and_compare(&p);
        program_end(&p);
    }
}

/* What is no multiple of packs, does not begin at one, and is done in place. */
static void packs(void **state)
{
    (void)state;
    for (size_t n = 1; n < 40; n += 6) {
        program p;
        program_begin(&p, queues[0], 1, &n);
        const drupe_fused_ref x = add_input(&p, DRUPE_FLOAT32, CONTIGUOUS);
        drupe_fused_ref sum, out;
        assert_true(add_step(&p, DRUPE_OP_ADD, (drupe_fused_ref[]){x, x}, &sum));
        assert_true(add_step(&p, DRUPE_OP_MULTIPLY, (drupe_fused_ref[]){sum, x}, &out));
        add_output(&p, out, false);
        run_and_compare(&p);
        char *before = array_fetch(&p.arrays[0]), *after;
        p.f.operands[1].base = p.f.operands[0].base;
        assert_true(launch(&p));
        after = array_fetch(&p.arrays[0]);
        char *expected = array_fetch(&p.values[1]);
        assert_memory_equal(after, expected, n * sizeof(float));
        free(before);
        free(after);
        free(expected);
        program_end(&p);
    }
}

static void beginnings(void **state)
{
    static const size_t shape[] = {45};
    const drupe_slice tail = {3, 1, 42, false};
    program p;
    fused_form form;
    (void)state;
    program_begin(&p, queues[0], 1, shape);
    const drupe_fused_ref x = add_input(&p, DRUPE_FLOAT32, CONTIGUOUS);
    drupe_fused_ref out;
    assert_true(add_step(&p, DRUPE_OP_SQUARE, &x, &out));
    add_output(&p, out, false);
    for (int k = 0; k < 2; k++) {
        CHECK(drupe_array_slice(&p.arrays[k], &tail));
        p.f.operands[k].base = drupe_array_pointer(&p.arrays[k]);
    }
    CHECK(drupe_array_slice(&p.values[0], &tail));
    p.shape[0] = tail.count;
    p.f.n = (drupe_i64)tail.count;
    run_and_compare(&p);
    drupe_fused_form(p.target, &p.f, &form);
    assert_int_equal(form.width, 1);
    program_end(&p);
}

/* --- When they are built -------------------------------------------------------------------------------- */

/* `nsteps` additions of an input to itself: another recipe for each number. */
static void additions(program *p, int nsteps)
{
    static const size_t shape[] = {10};
    program_begin(p, queues[0], 1, shape);
    drupe_fused_ref last = add_input(p, DRUPE_INT32, CONTIGUOUS);
    for (int i = 0; i < nsteps; i++)
        assert_true(add_step(p, DRUPE_OP_ADD, (drupe_fused_ref[]){last, {FUSED_OPERAND, 0}}, &last));
    add_output(p, last, false);
    settle_layout(p);
}

static void at_the_third_use(void **state)
{
    program p;
    (void)state;
    unsetenv("DRUPE_FUSE_BUILD");
    additions(&p, 7);
    for (int use = 0; use < 2; use++) {
        assert_false(launch(&p));
        CHECK(drupe_fused_settle(DRUPE_FOREVER));
    }
    (void)launch(&p);
    CHECK(drupe_fused_settle(DRUPE_FOREVER));
    run_and_compare(&p);
    program_end(&p);
    setenv("DRUPE_FUSE_BUILD", "always", 1);
}

static void never_what_does_not_build(void **state)
{
    program p;
    (void)state;
    additions(&p, 8);
    p.f.steps[7].op = DRUPE_OP_BITWISE_AND;
    p.f.steps[7].compute = DRUPE_FLOAT32;
    for (int use = 0; use < 5; use++) assert_false(launch(&p));
    unsetenv("DRUPE_FUSE_BUILD");
    p.f.steps[6].op = DRUPE_OP_SUBTRACT;
    for (int use = 0; use < 5; use++) {
        assert_false(launch(&p));
        CHECK(drupe_fused_settle(DRUPE_FOREVER));
    }
    setenv("DRUPE_FUSE_BUILD", "always", 1);
    program_end(&p);
}

static void not_too_many(void **state)
{
    program p;
    (void)state;
    unsetenv("DRUPE_FUSE_BUILD");
    additions(&p, 12);
    for (int i = 0; i < 2000; i++) {
        for (int k = 0; k < 11; k++) p.f.steps[k].op = i >> k & 1 ? DRUPE_OP_MULTIPLY : DRUPE_OP_SUBTRACT;
        assert_false(launch(&p));
    }
    assert_true(p.target->fused.count <= 1024);
    CHECK(drupe_fused_settle(DRUPE_FOREVER));
    setenv("DRUPE_FUSE_BUILD", "always", 1);
    program_end(&p);
}

static void not_more_than_the_device_takes(void **state)
{
    program p;
    const uint64_t most = drupe_device_number(drupe_queue_device(queues[0]), DRUPE_INFO_MAX_PARAMETER_SIZE, 1024);
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
    program_end(&p);
}

static void words(void **state)
{
    program p;
    char text[64];
    (void)state;
    additions(&p, 4);
    p.f.steps[1].op = DRUPE_OP_SQRT;
    p.f.steps[2].op = OP_NEXTAFTER_HALF;
    drupe_fused_words(&p.f, text, sizeof(text));
    assert_string_equal(text, "add, sqrt, nextafter, add");
    drupe_fused_words(&p.f, text, 17);
    assert_string_equal(text, "add, sqrt, ...");
    drupe_fused_words(&p.f, text, 4);
    assert_string_equal(text, "");
    p.f.steps[1].op = p.f.steps[2].op = DRUPE_OP_ADD;
    program_end(&p);
}

/* What a process has built the next one finds in the disk cache: here the same one, after it has forgotten. */
static void at_once_from_the_cache(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        program p;
        int uses = 1;
        additions(&p, 5);
        for (; !launch(&p); uses++) CHECK(drupe_fused_settle(DRUPE_FOREVER));
        assert_int_equal(uses, round ? 2 : 4);
        run_and_compare(&p);
        program_end(&p);
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

static int fused_open(void **state)
{
    drupe_target *target;
    if (queues_open(state)) return -1;
    CHECK(drupe_target_get(queues[0], &target));
    setenv("DRUPE_FUSE_BUILD", "always", 0);
    return target->builtin ? -1 : 0;
}

static int fused_close(void **state)
{
    CHECK(drupe_fused_settle(DRUPE_FOREVER));
    return queues_close(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words),
                                       cmocka_unit_test(packs),
                                       cmocka_unit_test(beginnings),
                                       cmocka_unit_test(casts),
                                       cmocka_unit_test(every_operation),
                                       cmocka_unit_test(random_programs),
                                       cmocka_unit_test(at_the_third_use),
                                       cmocka_unit_test(never_what_does_not_build),
                                       cmocka_unit_test(not_too_many),
                                       cmocka_unit_test(not_more_than_the_device_takes)};
    const struct CMUnitTest with_cache[] = {cmocka_unit_test(at_once_from_the_cache)};
    const int failed = cmocka_run_group_tests(tests, fused_open, fused_close);
    return failed + cmocka_run_group_tests(with_cache, cache_open, cache_close);
}
