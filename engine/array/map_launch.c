/* Launches of element-wise operations: layouts, parameters, work-items.
 *
 * Contiguous operands of one shape, the common case, skip broadcasting and merging. */
#include "array/array_room.h"
#include <string.h>

/* Elements for which starting another work-item pays. */
#define GRAIN_CPU 16384
#define GRAIN_GPU 4
/* Bytes that the host's own kernels move in the time that it takes to wake a worker and to be woken by it. */
#define BRIEF_BYTES     2621440
#define BRIEF_ITEMS_MAX 131072

/* --- Launch --------------------------------------------------------------------------------------------- */

static bool all_plain(const drupe_array *out, const drupe_operand *in, size_t nin)
{
    if (!drupe_array_contiguous(out)) return false;
    for (size_t i = 0; i < nin; i++)
        if (in[i].array &&
            !(drupe_layout_same_shape(in[i].array, out) && drupe_array_contiguous(in[i].array)))
            return false;
    return true;
}

static void collect_layout(const drupe_array *out, const drupe_operand *in, size_t nin, drupe_layout *l)
{
    memset(l, 0, sizeof(*l));
    l->ndim = out->ndim;
    l->noperands = (int)nin + 1;
    for (int d = 0; d < out->ndim; d++) {
        l->shape[d] = out->shape[d];
        l->strides[0][d] = out->strides[d];
        for (size_t i = 0; i < nin; i++)
            l->strides[i + 1][d] = in[i].array ? drupe_layout_stride(in[i].array, out->ndim, d) : 0;
    }
    drupe_layout_simplify(l);
}

/* Whether nothing but one run of neighbours is left, constants aside. */
static bool is_flat(const drupe_layout *l, const drupe_operand *in)
{
    if (l->ndim > 1) return false;
    for (int k = 0; k < l->noperands; k++) {
        if (k > 0 && !in[k - 1].array) continue;
        if (l->ndim == 1 && l->strides[k][0] != 1) return false;
    }
    return true;
}

static void fill_params(const drupe_layout *l, drupe_map_params *p)
{
    p->head.ndim = l->ndim;
    for (int d = 0; d < l->ndim; d++) {
        p->shape[d] = (drupe_i64)l->shape[d];
        for (int k = 0; k < l->noperands; k++) p->strides[k][d] = l->strides[k][d];
    }
    for (int k = l->noperands; k <= DRUPE_KERNEL_INPUTS; k++) memset(p->strides[k], 0, sizeof(p->strides[k]));
}

static void *shifted(const drupe_array *array, ptrdiff_t elements)
{
    return (char *)drupe_array_pointer(array) + elements * (ptrdiff_t)drupe_dtype_size(array->dtype);
}

/* Of each argument; constants touch nothing. */
static size_t list_accesses(const drupe_target *target, const drupe_array *out, const drupe_operand *in,
                            size_t nin, drupe_access *accesses, size_t *elements)
{
    if (!target->checked) return 0;
    for (size_t i = 0; i <= nin; i++) {
        const drupe_array *array = i ? in[i - 1].array : out;
        accesses[i] = array ? drupe_layout_access(array, i == 0) : (drupe_access){NULL, 0, false};
        elements[i] = array ? drupe_dtype_size(array->dtype) : 1;
    }
    return nin + 1;
}

bool drupe_op_light(int op, drupe_dtype compute)
{
    const op_result_rule rule = drupe_op_row(op)->result;
    if (drupe_dtype_row(compute)->kind == KIND_COMPLEX) return false;
    if (op == DRUPE_OP_FLOOR_DIVIDE || op == DRUPE_OP_REMAINDER || op == DRUPE_OP_POW) return false;
    if (op == DRUPE_OP_GCD || op == DRUPE_OP_LCM) return false; /* up to a hundred divisions */
    return op == DRUPE_OP_DIVIDE || (rule != RESULT_FLOAT && rule != RESULT_FLOAT_REAL);
}

/* Elements of one work-item. What is over in a moment is one, which may run on the submitting thread. */
static size_t grain_of(const drupe_target *target, const drupe_array *out, const drupe_operand *in,
                       size_t nin, const kernel_parts *key, const drupe_map_params *p)
{
    if (target->gpu_form) return GRAIN_GPU;
    if (!target->builtin || out->size > BRIEF_ITEMS_MAX || p->head.ndim) return GRAIN_CPU;
    size_t bytes = drupe_dtype_size(out->dtype);
    for (size_t i = 0; i < nin; i++)
        if (in[i].array) bytes += drupe_dtype_size(in[i].array->dtype);
    const bool brief = out->size * bytes <= BRIEF_BYTES && drupe_op_light(key->op, (drupe_dtype)key->compute);
    return brief ? BRIEF_ITEMS_MAX : GRAIN_CPU;
}

static drupe_status submit(drupe_target *target, const drupe_array *out, const drupe_operand *in, size_t nin,
                           const drupe_array *spent, const kernel_parts *key, void *const *pointers,
                           const drupe_map_params *p)
{
    drupe_access accesses[DRUPE_KERNEL_INPUTS + 1];
    size_t elements[DRUPE_KERNEL_INPUTS + 1];
    drupe_range range;
    drupe_arg args[DRUPE_KERNEL_INPUTS + 2];
    for (size_t i = 0; i <= nin; i++) args[i] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &pointers[i]};
    const size_t size = key->layout == LAYOUT_STRIDED || p->head.ndim ? sizeof(*p) : sizeof(p->head);
    args[nin + 1] = (drupe_arg){DRUPE_ARG_VALUE, size, p};
    drupe_target_range(target, (size_t)p->head.n, grain_of(target, out, in, nin, key, p), &range);
    const size_t count = list_accesses(target, out, in, nin, accesses, elements);
    struct drupe_memory *memories[DRUPE_KERNEL_INPUTS + 2] = {out->memory};
    drupe_effects effects = {.writes = 1, .replaces = drupe_array_covers(out)};
    const drupe_submission s = {.queue = out->queue,
                                .ordered = true,
                                .accesses = accesses,
                                .naccesses = count,
                                .memories = memories,
                                .effects = &effects};
    for (size_t i = 0; i < nin; i++) {
        memories[i + 1] = in[i].array ? in[i].array->memory : out->memory;
        if (!in[i].array) continue;
        effects.reads |= UINT64_C(2) << i;
        /* A result that takes the place of a dropped operand holds nothing while it is not computed. */
        if (in[i].array->memory == out->memory && in[i].array != spent) effects.reads |= 1;
    }
    kernel_recipe recipe;
    drupe_recipe_make(key, &recipe);
    return drupe_target_submit(target, &recipe, &s, &range, args, nin + 2, elements);
}

/* `array` at index i of an axis of an ndim-dimensional space that it is broadcast to; the axis keeps
 * length 1. Borrowed. */
static drupe_array slice_at(const drupe_array *array, int ndim, int axis, size_t i)
{
    drupe_array slice = *array;
    const int own = axis - (ndim - array->ndim);
    if (own < 0 || array->shape[own] == 1) return slice;
    slice.offset = (size_t)((ptrdiff_t)array->offset + (ptrdiff_t)i * array->strides[own]);
    slice.size /= array->shape[own];
    slice.shape[own] = 1;
    return slice;
}

static drupe_status launch(drupe_target *target, int op, const op_types *types, const drupe_array *out,
                           const drupe_operand *in, size_t nin, const drupe_array *spent);

/* More axes than a kernel has: one launch for each index of the first of them. */
static drupe_status launch_slices(drupe_target *target, int op, const op_types *types, const drupe_array *out,
                                  const drupe_operand *in, size_t nin)
{
    int axis = 0;
    while (out->shape[axis] == 1) axis++;
    for (size_t i = 0; i < out->shape[axis]; i++) {
        const drupe_array part = slice_at(out, out->ndim, axis, i);
        drupe_array arrays[DRUPE_KERNEL_INPUTS];
        drupe_operand operands[DRUPE_KERNEL_INPUTS];
        for (size_t k = 0; k < nin; k++) {
            operands[k] = in[k];
            if (!in[k].array) continue;
            arrays[k] = slice_at(in[k].array, out->ndim, axis, i);
            operands[k].array = &arrays[k];
        }
        DRUPE_TRY(launch(target, op, types, &part, operands, nin, NULL));
    }
    return DRUPE_OK;
}

static drupe_status launch(drupe_target *target, int op, const op_types *types, const drupe_array *out,
                           const drupe_operand *in, size_t nin, const drupe_array *spent)
{
    const drupe_dtype compute = types->compute;
    drupe_map_params p;
    drupe_layout l;
    void *pointers[DRUPE_KERNEL_INPUTS + 1] = {drupe_array_pointer(out)};
    const bool plain = all_plain(out, in, nin);
    kernel_parts key = {SHAPE_MAP, op, 0, (int32_t)compute, (int32_t)out->dtype, {-1, -1, -1}};
    p.head = (drupe_map_head){.n = (drupe_i64)out->size, .dtypes = {(drupe_i32)out->dtype}};
    if (!plain) {
        collect_layout(out, in, nin, &l);
        if (l.ndim > DRUPE_KERNEL_DIMS) return launch_slices(target, op, types, out, in, nin);
        pointers[0] = shifted(out, l.offsets[0]);
    }
    for (size_t i = 0; i < nin; i++) {
        const drupe_array *array = in[i].array;
        const drupe_dtype wanted = drupe_op_input(drupe_op_row(op), compute, i);
        const drupe_dtype dtype = array ? array->dtype : wanted;
        p.head.dtypes[i + 1] = key.in[i] = (int32_t)dtype;
        if (array) {
            pointers[i + 1] = plain ? drupe_array_pointer(array) : shifted(array, l.offsets[i + 1]);
        } else {
            pointers[i + 1] = pointers[0]; /* not read; NVIDIA's OpenCL refuses NULL */
            p.head.constants |= 1 << i;
            DRUPE_TRY(drupe_op_constant(op, types, in, i, p.head.value[i]));
        }
    }
    key.layout = p.head.constants;
    if (!plain && !is_flat(&l, in)) {
        fill_params(&l, &p);
        key.layout = LAYOUT_STRIDED;
    }
    if (p.head.ndim == 0 && key.layout == (1 << nin) - 1) {
        fill_params(&(drupe_layout){.ndim = 1, .noperands = 1, .shape = {out->size}, .strides = {{1}}}, &p);
        key.layout = LAYOUT_STRIDED;
    }
    if (target->builtin) key = (kernel_parts){SHAPE_MAP, op, 0, (int32_t)compute, -1, {-1, -1, -1}};
    return submit(target, out, in, nin, spent, &key, pointers, &p);
}

drupe_status drupe_map_launch_over(drupe_target *target, int op, const op_types *types,
                                   const drupe_array *out, const drupe_operand *in, size_t nin,
                                   const drupe_array *spent)
{
    return launch(target, op, types, out, in, nin, spent);
}

drupe_status drupe_map_launch(drupe_target *target, int op, const op_types *types, const drupe_array *out,
                              const drupe_operand *in, size_t nin)
{
    return launch(target, op, types, out, in, nin, NULL);
}

drupe_status drupe_copy_launch(drupe_target *target, const drupe_array *out, const drupe_operand *in)
{
    const drupe_dtype from = in->array ? in->array->dtype : out->dtype;
    const op_types types = {out->dtype, drupe_copy_type(from, out->dtype), out->dtype, 0};
    return launch(target, OP_COPY, &types, out, in, 1, NULL);
}
