#include "fused_program.h"
#include "backends/builtin.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

const element_type element_types[DTYPES] = {{"b8", 1},  {"i8", 1},  {"u8", 1},  {"i16", 2},  {"u16", 2},
                                            {"i32", 4}, {"u32", 4}, {"i64", 8}, {"u64", 8},  {"f16", 2},
                                            {"f32", 4}, {"f64", 8}, {"c64", 8}, {"c128", 16}};

#define ARITY_ELEMENTWISE(arity)                  arity
#define ARITY_REDUCTION(arity)                    0
#define DRUPE_OP(ID, name, kind, arity, sentence) {#name, ARITY_##kind(arity)},
const operation operations[] = {
#include "drupe/ops.def"
    {"copy", 1},
    {"nextafter_half", 2},
};
#undef DRUPE_OP
const int operation_count = sizeof(operations) / sizeof(operations[0]);

int operation_number(const char *name)
{
    int op = 0;
    while (op < operation_count && strcmp(operations[op].name, name) != 0) op++;
    assert_true(op < operation_count);
    return op;
}

const drupe_builtin *operation_kernel(int op, int compute)
{
    char name[64];
    snprintf(name, sizeof(name), "%s_%s", operations[op].name, element_types[compute].name);
    return operations[op].arity ? drupe_builtin_find(name) : NULL;
}

/* --- Numbers -------------------------------------------------------------------------------------------- */

uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * UINT64_C(0x2545f4914f6cdd1d);
}

int random_below(uint64_t *seed, int most)
{
    return (int)((random_next(seed) >> 32) % (uint64_t)most);
}

static double random_real(uint64_t *seed)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, 0.5, 1e-310, 1e-40, 3e4, -7e18, 1e300, 1e38, 1e3};
    const uint64_t bits = random_next(seed);
    if (bits % 16 == 0) return special[(bits >> 8) % (sizeof(special) / sizeof(special[0]))];
    if (bits % 64 == 1) return (bits >> 8) % 2 ? 1.0 / special[0] : -1.0 / special[0];
    const double size = bits % 4 == 0 ? 40 : 2;
    return ((double)(int64_t)(bits >> 11 << 1) / 9007199254740992.0 - 1) * size;
}

void random_elements(uint64_t *seed, int dtype, void *at, size_t n)
{
    uint16_t *halves = at;
    float *floats = at;
    double *doubles = at;
    if (dtype == COMPLEX64 || dtype == COMPLEX128) {
        random_elements(seed, dtype - 2, at, 2 * n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = random_next(seed), small = (bits >> 32) % 11;
        const size_t size = element_types[dtype].size;
        if (dtype == FLOAT16)
            halves[i] = (uint16_t)bits;
        else if (dtype == FLOAT32)
            floats[i] = (float)random_real(seed);
        else if (dtype == FLOAT64)
            doubles[i] = random_real(seed);
        else
            memcpy((char *)at + i * size, bits % 3 ? &small : &bits, size);
    }
}

/* --- Programs ------------------------------------------------------------------------------------------- */

static size_t bytes_of(const program *p, int dtype)
{
    return (size_t)p->f.n * element_types[dtype].size;
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes + 1);
    assert_non_null(memory);
    return memory;
}

void program_begin(program *p, uint64_t seed, int ndim, const drupe_i64 *shape)
{
    memset(p, 0, sizeof(*p));
    p->seed = seed * 2 + 1;
    for (int i = 0; i < 5; i++) random_next(&p->seed);
    p->f.n = 1;
    p->f.ndim = ndim;
    for (int d = 0; d < (ndim ? ndim : 1); d++) {
        p->f.shape[d] = shape[d];
        p->f.n *= shape[d];
    }
    p->f.reduction.op = -1;
}

/* Strides in any order of the axes, with gaps, and where there may be repetitions: how many elements they
 * span, and the first one. */
static drupe_i64 random_strides(program *p, bool output, drupe_i64 *strides, drupe_i64 *first)
{
    const int ndim = p->f.ndim, kind = random_below(&p->seed, 6);
    int order[DRUPE_KERNEL_DIMS];
    drupe_i64 span = kind == 1 ? 2 + random_below(&p->seed, 2) : 1;
    *first = 0;
    for (int d = 0; d < ndim; d++) order[d] = d;
    if (kind == 2)
        for (int d = ndim - 1; d > 0; d--) {
            const int other = random_below(&p->seed, d + 1), held = order[d];
            order[d] = order[other];
            order[other] = held;
        }
    for (int i = ndim - 1; i >= 0; i--) {
        const int d = order[i];
        const drupe_i64 length = p->f.shape[d];
        strides[d] = kind == 3 && !output && random_below(&p->seed, 2) ? 0 : span;
        if (strides[d]) span *= length;
        if (kind == 4 && length > 0 && random_below(&p->seed, 2)) {
            *first += strides[d] * (length - 1);
            strides[d] = -strides[d];
        }
        if (kind == 5) span += random_below(&p->seed, 3);
    }
    return span;
}

int program_operand(program *p, int dtype, bool output)
{
    enum { AROUND = 4 };
    const int k = p->f.noperands++;
    const size_t size = element_types[dtype].size;
    drupe_fused_operand *o = &p->f.operands[k];
    drupe_i64 first = 0, span = p->f.n;
    assert_true(k < DRUPE_FUSED_OPERANDS);
    if (p->f.ndim) span = random_strides(p, output, o->strides, &first);
    p->bytes[k] = (size_t)(span + 2 * AROUND) * size;
    p->memory[k] = allocate(p->bytes[k]);
    p->before[k] = allocate(p->bytes[k]);
    p->expected[k] = allocate(p->bytes[k]);
    random_elements(&p->seed, dtype, p->before[k], (size_t)span + 2 * AROUND);
    memcpy(p->memory[k], p->before[k], p->bytes[k]);
    memcpy(p->expected[k], p->before[k], p->bytes[k]);
    o->base = p->memory[k] + (size_t)(first + AROUND) * size;
    o->dtype = dtype;
    o->output = output;
    return k;
}

int program_constant(program *p, int dtype, const void *value)
{
    const int k = p->f.nconstants++;
    assert_true(k < DRUPE_FUSED_CONSTANTS);
    p->f.constants[k].dtype = dtype;
    memcpy(p->f.constants[k].value, value, element_types[dtype].size);
    return k;
}

int program_step(program *p, int op, int compute, int dtype, bool store, const drupe_fused_ref *in)
{
    const int k = p->f.nsteps++;
    drupe_fused_step *s = &p->f.steps[k];
    assert_true(k < DRUPE_FUSED_STEPS);
    *s = (drupe_fused_step){.op = (uint8_t)op, .compute = (uint8_t)compute, .dtype = (uint8_t)dtype};
    s->store = (int8_t)(store ? program_operand(p, dtype, true) : -1);
    memcpy(s->in, in, (size_t)operations[op].arity * sizeof(*in));
    p->values[k] = allocate(bytes_of(p, dtype));
    return k;
}

/* The type that an input is computed in: all are the same, but for conditions. */
static int input_type(int op, int compute, int input)
{
    return input == 0 && strcmp(operations[op].name, "where") == 0 ? BOOL : compute;
}

static drupe_fused_ref random_input(program *p, int inputs, int wanted)
{
    const int kind = random_below(&p->seed, 8), recent = p->f.nsteps < 9 ? p->f.nsteps : 9;
    if (kind == 0 && p->f.nconstants < DRUPE_FUSED_CONSTANTS) {
        char value[16];
        random_elements(&p->seed, wanted, value, 1);
        return (drupe_fused_ref){FUSED_CONSTANT, (uint8_t)program_constant(p, wanted, value)};
    }
    if (kind < 4 || !recent) return (drupe_fused_ref){FUSED_OPERAND, (uint8_t)random_below(&p->seed, inputs)};
    return (drupe_fused_ref){FUSED_STEP, (uint8_t)(p->f.nsteps - 1 - random_below(&p->seed, recent))};
}

void program_random(program *p, int inputs, int steps, bool reduced)
{
    for (int i = 0; i < inputs; i++) program_operand(p, random_below(&p->seed, DTYPES), false);
    for (int i = 0; i < steps; i++) {
        int op, compute, dtype = random_below(&p->seed, DTYPES);
        drupe_fused_ref in[DRUPE_KERNEL_INPUTS];
        do {
            op = random_below(&p->seed, operation_count);
            compute = random_below(&p->seed, DTYPES);
        } while (!operation_kernel(op, compute));
        if (random_below(&p->seed, 3)) dtype = compute;
        if (compute == FLOAT32 && random_below(&p->seed, 3) == 0) dtype = FLOAT16;
        for (int k = 0; k < operations[op].arity; k++)
            in[k] = random_input(p, inputs, input_type(op, compute, k));
        const bool room = p->f.noperands < DRUPE_FUSED_OPERANDS - 1;
        const bool last = i == steps - 1 && !reduced;
        program_step(p, op, compute, dtype, last || (room && random_below(&p->seed, 8) == 0), in);
    }
    program_finish(p);
}

void program_reduce(program *p, const char *op, int compute, int out_dtype, const program_axes *axes)
{
    const int step = p->f.nsteps - 1, in_dtype = p->f.steps[step].dtype;
    const bool flat = axes->outer == 1 && !axes->column;
    drupe_reduce_params *params = &p->f.reduction.params;
    *params = (drupe_reduce_params){.outputs = axes->outer * axes->inner,
                                    .extent = axes->extent,
                                    .stride = axes->inner,
                                    .splits = axes->splits,
                                    .ndim = flat              ? 0
                                            : axes->inner > 1 ? 2
                                                              : 1,
                                    .shape = {axes->outer, axes->inner},
                                    .strides = {axes->extent * axes->inner, 1},
                                    .in_dtype = in_dtype,
                                    .out_dtype = out_dtype};
    p->f.reduction.op = operation_number(op);
    p->f.reduction.column = axes->column;
    p->f.reduction.compute = compute;
    p->f.reduction.step = step;
    p->out_bytes = (size_t)(params->outputs * params->splits) * element_types[out_dtype].size;
    p->f.reduction.out = p->out = allocate(p->out_bytes);
    p->expected_out = allocate(p->out_bytes);
    assert_int_equal(params->outputs * params->extent, p->f.n);
}

void program_finish(program *p)
{
    int last[DRUPE_FUSED_STEPS], holds[DRUPE_FUSED_SLOTS], of[DRUPE_FUSED_STEPS];
    for (int i = 0; i < p->f.nsteps; i++) {
        last[i] = i;
        for (int k = 0; k < operations[p->f.steps[i].op].arity; k++)
            if (p->f.steps[i].in[k].source == FUSED_STEP) last[p->f.steps[i].in[k].index] = i;
    }
    for (int i = 0; i < DRUPE_FUSED_SLOTS; i++) holds[i] = -1;
    for (int i = 0; i < p->f.nsteps; i++) {
        int slot = 0; /* that of a value which this step is the last to take, perhaps */
        while (holds[slot] >= 0 && last[holds[slot]] > i) slot++;
        assert_true(slot < DRUPE_FUSED_SLOTS);
        of[i] = slot;
        holds[slot] = i;
        p->f.steps[i].slot = (uint8_t)of[i];
        if (slot >= p->f.nslots) p->f.nslots = slot + 1;
    }
}

/* --- What is expected ----------------------------------------------------------------------------------- */

static void contiguous_strides(const program *p, drupe_i64 *strides)
{
    drupe_i64 span = 1;
    for (int d = p->f.ndim - 1; d >= 0; d--) {
        strides[d] = span;
        span *= p->f.shape[d];
    }
}

/* From a C-contiguous value to where the elements of an operand are expected. */
static void expect(program *p, int operand, const char *value)
{
    const drupe_fused_operand *o = &p->f.operands[operand];
    const size_t size = element_types[o->dtype].size;
    char *base = p->expected[operand] + (o->base - p->memory[operand]);
    for (drupe_i64 i = 0; i < p->f.n; i++) {
        drupe_i64 rest = i, at = p->f.ndim ? 0 : i;
        for (int d = p->f.ndim - 1; d >= 0; d--) {
            at += rest % p->f.shape[d] * o->strides[d];
            rest /= p->f.shape[d];
        }
        memcpy(base + at * (drupe_i64)size, value + (size_t)i * size, size);
    }
}

static void run_step(program *p, int step)
{
    const drupe_fused_step *s = &p->f.steps[step];
    const int arity = operations[s->op].arity;
    const void *pointers[DRUPE_KERNEL_INPUTS + 1] = {p->values[step]};
    const void *args[DRUPE_KERNEL_INPUTS + 2];
    drupe_map_params params = {.head = {.n = p->f.n, .dtypes = {s->dtype}, .ndim = p->f.ndim}};
    memcpy(params.shape, p->f.shape, sizeof(params.shape));
    contiguous_strides(p, params.strides[0]);
    for (int k = 0; k < arity; k++) {
        const drupe_fused_ref in = s->in[k];
        contiguous_strides(p, params.strides[k + 1]);
        if (in.source == FUSED_STEP) {
            pointers[k + 1] = p->values[in.index];
            params.head.dtypes[k + 1] = p->f.steps[in.index].dtype;
        } else if (in.source == FUSED_OPERAND) {
            pointers[k + 1] = p->f.operands[in.index].base;
            params.head.dtypes[k + 1] = p->f.operands[in.index].dtype;
            memcpy(params.strides[k + 1], p->f.operands[in.index].strides, sizeof(params.strides[0]));
        } else {
            params.head.dtypes[k + 1] = p->f.constants[in.index].dtype;
            params.head.constants |= 1 << k;
            memcpy(params.head.value[k], p->f.constants[in.index].value, sizeof(params.head.value[k]));
        }
    }
    for (int k = 0; k <= arity; k++) args[k] = &pointers[k];
    args[arity + 1] = &params;
    operation_kernel(s->op, s->compute)->fn(0, 1, 1, args);
}

/* Of any() and all() the parts may be left once one of them tells the result: give all the value of that one.
 */
static void settle_known(const program *p, char *out)
{
    const char *name = operations[p->f.reduction.op].name;
    const bool any = strcmp(name, "any") == 0;
    if ((!any && strcmp(name, "all") != 0) || p->f.reduction.params.outputs != 1) return;
    assert_int_equal(p->f.reduction.params.out_dtype, BOOL);
    if (memchr(out, any, p->out_bytes)) memset(out, any, p->out_bytes);
}

static void run_reduction(program *p)
{
    const drupe_fused_reduction *r = &p->f.reduction;
    drupe_reduce_params params = r->params;
    char name[64];
    const void *const pointers[] = {p->expected_out, p->values[r->step]};
    const void *const args[] = {&pointers[0], &pointers[1], &params};
    snprintf(name, sizeof(name), "%s_%s_by_%s", operations[r->op].name, element_types[r->compute].name,
             r->column ? "column" : "row");
    assert_non_null(drupe_builtin_find(name));
    drupe_builtin_find(name)->fn(0, 1, 1, args);
    settle_known(p, p->expected_out);
}

void program_run_steps(program *p)
{
    for (int i = 0; i < p->f.nsteps; i++) {
        run_step(p, i);
        if (p->f.steps[i].store >= 0) expect(p, p->f.steps[i].store, p->values[i]);
    }
    if (p->f.reduction.op >= 0) run_reduction(p);
}

static void show(const program *p)
{
    const drupe_fused_reduction *r = &p->f.reduction;
    print_error("n %lld, ndim %d\n", (long long)p->f.n, p->f.ndim);
    if (r->op >= 0)
        print_error("%s in %s by %s: %lld outputs of %lld, %lld splits\n", operations[r->op].name,
                    element_types[r->compute].name, r->column ? "column" : "row",
                    (long long)r->params.outputs, (long long)r->params.extent, (long long)r->params.splits);
    for (int i = 0; i < p->f.nsteps; i++) {
        const drupe_fused_step *s = &p->f.steps[i];
        print_error("%d: %s in %s -> %s, slot %d, store %d:", i, operations[s->op].name,
                    element_types[s->compute].name, element_types[s->dtype].name, s->slot, s->store);
        for (int k = 0; k < operations[s->op].arity; k++) {
            static const char *const sources[] = {"operand", "constant", "step"};
            const drupe_fused_ref in = s->in[k];
            print_error(" %s %d", sources[in.source], in.index);
            if (in.source == FUSED_OPERAND)
                print_error(" (%s)", element_types[p->f.operands[in.index].dtype].name);
        }
        print_error("\n");
    }
}

static void check_bytes(const program *p, const char *what, int number, const char *bytes,
                        const char *expected, size_t count)
{
    size_t at = 0;
    while (at < count && bytes[at] == expected[at]) at++;
    if (at == count) return;
    show(p);
    print_error("%s %d differs at byte %zu of %zu\n", what, number, at, count);
    fail();
}

void program_check(program *p, size_t items)
{
    const void *args[1 + DRUPE_FUSED_POINTERS] = {0};
    const drupe_fused *f = &p->f;
    args[0] = &f;
    p->f.reduction.params.known = 0;
    for (int k = 0; k < p->f.noperands; k++) memcpy(p->memory[k], p->before[k], p->bytes[k]);
    if (p->out) memset(p->out, 0xa5, p->out_bytes);
    for (size_t i = 0; i < items; i++) drupe_builtin_find("fused")->fn(i, i + 1, items, args);
    for (int k = 0; k < p->f.noperands; k++)
        check_bytes(p, "operand", k, p->memory[k], p->expected[k], p->bytes[k]);
    if (!p->out) return;
    settle_known(p, p->out);
    check_bytes(p, "reduction", f->reduction.op, p->out, p->expected_out, p->out_bytes);
}

void program_end(program *p)
{
    for (int i = 0; i < DRUPE_FUSED_STEPS; i++) free(p->values[i]);
    for (int k = 0; k < DRUPE_FUSED_OPERANDS; k++) {
        free(p->memory[k]);
        free(p->before[k]);
        free(p->expected[k]);
    }
    free(p->out);
    free(p->expected_out);
}
