#include "printed_program.h"
#include <stdlib.h>
#include <string.h>

uint32_t printed_seed = 1;

size_t printed_below(size_t n)
{
    printed_seed = printed_seed * 1664525u + 1013904223u;
    return (printed_seed >> 8) % n;
}

void printed_begin(printed *p, drupe_queue *queue, int ndim, const size_t *shape)
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

void printed_end(printed *p)
{
    CHECK(drupe_queue_wait(p->queue, DRUPE_FOREVER));
    for (int k = 0; k < p->f.noperands; k++) {
        drupe_array_clear(&p->arrays[k]);
        if (p->plain[k].memory) drupe_array_clear(&p->plain[k]);
    }
    for (int i = 0; i < p->f.nsteps; i++) drupe_array_clear(&p->values[i]);
}

static void add_operand(printed *p, const drupe_array *array, bool output)
{
    drupe_fused_operand *operand = &p->f.operands[p->f.noperands];
    drupe_array_view(array, &p->arrays[p->f.noperands++]);
    operand->base = drupe_array_pointer(array);
    operand->dtype = (drupe_i32)array->dtype;
    operand->output = output;
    for (int d = 0; d < p->ndim; d++) operand->strides[d] = drupe_layout_stride(array, p->ndim, d);
}

drupe_fused_ref printed_input(printed *p, drupe_dtype dtype, sample_layout layout)
{
    sample s;
    size_t index[DRUPE_MAX_DIMS] = {0};
    const size_t size = drupe_dtype_size(dtype);
    const int k = p->f.noperands;
    char *all = malloc((size_t)p->f.n * size);
    assert_non_null(all);
    sample_make(p->queue, dtype, layout, p->ndim, p->shape, (unsigned)printed_below(1000), true, &s);
    for (size_t i = 0; i < (size_t)p->f.n; i++) {
        number_store(all + i * size, sample_at(&s, p->ndim, index));
        index_next(p->ndim, p->shape, index);
    }
    CHECK(drupe_array_empty(p->queue, DRUPE_MEM_DEVICE, dtype, p->ndim, p->shape, &p->plain[k]));
    CHECK(drupe_array_from_host(&p->plain[k], all, false, NULL));
    add_operand(p, &s.array, false);
    sample_clear(&s);
    free(all);
    return (drupe_fused_ref){FUSED_OPERAND, (uint8_t)k};
}

drupe_fused_ref printed_constant(printed *p, drupe_scalar scalar)
{
    p->scalars[p->f.nconstants] = scalar;
    p->f.constants[p->f.nconstants].dtype = DRUPE_DTYPE_NONE;
    return (drupe_fused_ref){FUSED_CONSTANT, (uint8_t)p->f.nconstants++};
}

static drupe_operand operand_of(const printed *p, drupe_fused_ref ref)
{
    switch (ref.source) {
    case FUSED_OPERAND: return (drupe_operand){.array = &p->plain[ref.index]};
    case FUSED_STEP: return (drupe_operand){.array = &p->values[ref.index]};
    default: return (drupe_operand){.scalar = p->scalars[ref.index]};
    }
}

static drupe_dtype dtype_of(const printed *p, drupe_fused_ref ref)
{
    const drupe_operand operand = operand_of(p, ref);
    return operand.array ? operand.array->dtype : DRUPE_DTYPE_NONE;
}

bool printed_step(printed *p, int op, const drupe_fused_ref *in, drupe_fused_ref *out)
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

bool printed_cast(printed *p, drupe_fused_ref in, drupe_dtype dtype, drupe_fused_ref *out)
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

void printed_output(printed *p, drupe_fused_ref ref, bool turned)
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

void printed_settle(printed *p)
{
    bool plain = true;
    for (int k = 0; k < p->f.noperands; k++)
        plain = plain && drupe_array_contiguous(&p->arrays[k]) && (drupe_i64)p->arrays[k].size == p->f.n;
    p->f.ndim = plain ? 0 : p->ndim;
    for (int d = 0; d < p->f.ndim; d++) p->f.shape[d] = (drupe_i64)p->shape[d];
}

bool printed_launch(printed *p)
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

static void tell_text(const printed *p)
{
    drupe_text text = {0};
    const char *kernel;
    CHECK(drupe_fused_print(p->target, &p->f, &text));
    kernel = strstr(drupe_text_get(&text), "INLINED void element");
    print_error("%s\n", kernel ? kernel : drupe_text_get(&text));
    drupe_text_clear(&text);
}

static void fill_outputs(printed *p)
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
        CHECK(drupe_array_from_host(&all, bytes, false, NULL));
        CHECK(drupe_queue_wait(p->queue, DRUPE_FOREVER));
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

void printed_compare(printed *p)
{
    printed_settle(p);
    fill_outputs(p);
    if (!printed_launch(p)) {
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
            print_error("printed_seed %u\n", printed_seed);
            fail_msg("step %d, %s of %s, element %zu: alone %.17g %.17g %" PRId64
                     ", fused %.17g %.17g %" PRId64,
                     i, drupe_op_row(p->f.steps[i].op)->name, drupe_dtype_name(p->f.steps[i].compute), e, x.f,
                     x.im, x.i, y.f, y.im, y.i);
        }
        free(expected);
        free(got);
    }
}
