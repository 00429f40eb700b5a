/* Element-wise operations: types, shapes, output, launch.
 *
 * Contiguous operands of one shape, the common case, skip broadcasting and merging. */
#include "array/node.h"
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

/* --- Checks --------------------------------------------------------------------------------------------- */

static drupe_status check_queues(drupe_op op, const drupe_operand *in, size_t nin, const drupe_array *out,
                                 drupe_queue **queue)
{
    *queue = out->memory || out->node ? out->queue : NULL;
    for (size_t i = 0; i < nin; i++) {
        const drupe_array *array = in[i].array;
        if (!array) continue;
        if (*queue && *queue != array->queue)
            return drupe_error_set(DRUPE_E_PLACEMENT,
                                   "the operands of %s are on different queues (of %s and %s): bring them "
                                   "together with to_device()",
                                   drupe_op_name(op), drupe_device_filter(drupe_queue_device(*queue)),
                                   drupe_device_filter(drupe_queue_device(array->queue)));
        *queue = array->queue;
    }
    return DRUPE_OK;
}

static drupe_status result_shape(const drupe_operand *in, size_t nin, int *ndim, size_t *shape)
{
    const drupe_array *arrays[DRUPE_KERNEL_INPUTS];
    size_t count = 0;
    for (size_t i = 0; i < nin; i++)
        if (in[i].array) arrays[count++] = in[i].array;
    if (count == 1 || (count == 2 && drupe_layout_same_shape(arrays[0], arrays[1]))) {
        *ndim = arrays[0]->ndim;
        memcpy(shape, arrays[0]->shape, (size_t)*ndim * sizeof(*shape));
        return DRUPE_OK;
    }
    return drupe_shape_broadcast(arrays, count, ndim, shape);
}

static drupe_mem_kind strongest_kind(const drupe_operand *in, size_t nin)
{
    drupe_mem_kind kind = DRUPE_MEM_HOST;
    for (size_t i = 0; i < nin; i++)
        if (in[i].array && drupe_array_kind(in[i].array) < kind) kind = drupe_array_kind(in[i].array);
    return kind;
}

/* Whether a result may be stored in place: integers never become unsigned, floats never whole. */
static bool kind_fits(int result, int out)
{
    if (out == KIND_UINT) return result == KIND_BOOL || result == KIND_UINT;
    return result <= out || (result == KIND_UINT && out == KIND_INT);
}

drupe_status drupe_array_check_out(const char *operation, const drupe_array *out, drupe_dtype result,
                                   int ndim, const size_t *shape)
{
    const drupe_array expected = {.ndim = ndim};
    drupe_array same = expected;
    memcpy(same.shape, shape, (size_t)ndim * sizeof(*shape));
    if (!drupe_layout_same_shape(out, &same)) {
        char from[128], to[128];
        drupe_shape_text(ndim, shape, from, sizeof(from));
        drupe_shape_text(out->ndim, out->shape, to, sizeof(to));
        return drupe_error_set(DRUPE_E_INVALID, "%s gives shape %s, which does not fit an output of shape %s",
                               operation, from, to);
    }
    if (!kind_fits(drupe_dtype_row(result)->kind, drupe_dtype_row(out->dtype)->kind))
        return drupe_error_set(
            DRUPE_E_INVALID,
            "%s gives %s, which cannot be stored in %s in place; make a new array, as in x = x + 1.5",
            operation, drupe_dtype_name(result), drupe_dtype_name(out->dtype));
    return drupe_layout_writable(out);
}

/* Whether writing to `out` would spoil an input that is still to be read. */
static bool conflicts(const drupe_array *out, const drupe_operand *in, size_t nin)
{
    for (size_t i = 0; i < nin; i++)
        if (in[i].array && in[i].array->memory && out->memory && drupe_layout_overlap(out, in[i].array) &&
            !drupe_layout_same_view(out, in[i].array))
            return true;
    return false;
}

/* Whether `out` would show more of a number than the type of the result has, but which it was computed in. */
static bool is_wider(const drupe_array *out, const op_types *types)
{
    const bool narrowed = types->compute == DRUPE_INT32 && drupe_dtype_size(types->result) < sizeof(int32_t);
    return out->dtype != types->result && types->result != DRUPE_BOOL &&
           (narrowed || types->result == DRUPE_FLOAT16);
}

static drupe_status apply_through_copy(drupe_target *target, int op, const op_types *types,
                                       const drupe_array *out, const drupe_operand *in, size_t nin)
{
    drupe_array result = {0};
    DRUPE_TRY(
        drupe_array_result(out->queue, DRUPE_MEM_DEVICE, types->result, out->ndim, out->shape, &result));
    drupe_status status = drupe_map_launch(target, op, types, &result, in, nin);
    if (status == DRUPE_OK) status = drupe_array_assign(out, &(drupe_operand){.array = &result});
    drupe_array_clear(&result);
    return status;
}

/* Whether the result may have the memory of this operand, whose owner drops it. */
static bool may_replace(const drupe_array *spent, drupe_mem_kind kind, drupe_dtype dtype, int ndim,
                        const size_t *shape)
{
    if (!spent || spent->size == 0 || spent->dtype != dtype || spent->ndim != ndim) return false;
    return memcmp(spent->shape, shape, (size_t)ndim * sizeof *shape) == 0 && drupe_array_covers(spent) &&
           drupe_memory_kind(spent->memory) == kind && drupe_memory_sole(spent->memory, spent->queue);
}

static drupe_status apply_new(drupe_target *target, int op, const op_types *types, const drupe_operand *in,
                              size_t nin, const drupe_array *spent, drupe_queue *queue, int ndim,
                              const size_t *shape, drupe_array *out)
{
    const drupe_mem_kind kind = strongest_kind(in, nin);
    const bool replace = may_replace(spent, kind, types->result, ndim, shape);
    if (replace) {
        drupe_array_view(spent, out);
    } else {
        DRUPE_TRY(drupe_array_result_known(queue, kind, types->result, ndim, shape, out));
    }
    if (out->size == 0) return DRUPE_OK;
    drupe_status status = launch(target, op, types, out, in, nin, replace ? spent : NULL);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}

drupe_status drupe_array_apply(drupe_op op, const drupe_operand *in, size_t nin, drupe_array *out)
{
    return drupe_array_apply_over(op, in, nin, nin, out);
}

drupe_status drupe_array_apply_over(drupe_op op, const drupe_operand *in, size_t nin, size_t spent,
                                    drupe_array *out)
{
    drupe_queue *queue;
    drupe_target *target;
    op_types types;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    const bool given = out->memory || out->node;
    drupe_status status;
    if ((int)op < 0 || op >= DRUPE_OP_COUNT || drupe_op_kind_of(op) != DRUPE_OP_ELEMENTWISE)
        return drupe_error_set(DRUPE_E_INVALID, "%s is no element-wise operation", drupe_op_name(op));
    if (nin != (size_t)drupe_op_arity(op))
        return drupe_error_set(DRUPE_E_INVALID, "%s takes %d operands, not %zu", drupe_op_name(op),
                               drupe_op_arity(op), nin);
    DRUPE_TRY(check_queues(op, in, nin, out, &queue));
    if (!queue)
        return drupe_error_set(DRUPE_E_INVALID, "%s needs an array among its operands", drupe_op_name(op));
    DRUPE_TRY(drupe_target_get(queue, &target));
    DRUPE_TRY(drupe_op_types((int)op, in, nin, target->fp64, &types));
    DRUPE_TRY(result_shape(in, nin, &ndim, shape));
    const int number =
        op == DRUPE_OP_NEXTAFTER && types.common == DRUPE_FLOAT16 ? OP_NEXTAFTER_HALF : (int)op;
    /* Before it is asked who has the memory: others may run meanwhile, and make views. */
    DRUPE_TRY(drupe_queue_pace(queue));
    if (given) {
        DRUPE_TRY(drupe_array_check_out(drupe_op_name(op), out, types.result, ndim, shape));
        if (out->size == 0) return DRUPE_OK;
        const bool apart = conflicts(out, in, nin) || is_wider(out, &types);
        if (!apart && drupe_pending_into(target, number, &types, in, nin, out, &status)) return status;
        DRUPE_TRY(drupe_operands_settle(in, nin));
        DRUPE_TRY(drupe_array_settle(out));
        if (apart) return apply_through_copy(target, number, &types, out, in, nin);
        return drupe_map_launch(target, number, &types, out, in, nin);
    }
    const drupe_mem_kind kind = strongest_kind(in, nin);
    if (drupe_pending_make(target, number, &types, in, nin, kind, queue, ndim, shape, out, &status))
        return status;
    return apply_new(target, number, &types, in, nin, spent < nin ? in[spent].array : NULL, queue, ndim,
                     shape, out);
}

drupe_status drupe_array_cast(const drupe_array *src, drupe_dtype dtype, drupe_array *out)
{
    drupe_target *target;
    drupe_status status;
    const drupe_operand in = {.array = src};
    drupe_array_none(out);
    DRUPE_TRY(drupe_target_get(src->queue, &target));
    DRUPE_TRY(drupe_queue_pace(src->queue));
    if (drupe_dtype_available(dtype, target->fp64) == dtype) {
        const op_types types = {dtype, drupe_copy_type(src->dtype, dtype), dtype, 0};
        if (drupe_pending_make(target, OP_COPY, &types, &in, 1, drupe_array_kind(src), src->queue, src->ndim,
                               src->shape, out, &status))
            return status;
    }
    DRUPE_TRY(drupe_array_settle(src));
    DRUPE_TRY(drupe_array_result(src->queue, drupe_array_kind(src), dtype, src->ndim, src->shape, out));
    if (src->size == 0) return DRUPE_OK;
    status = drupe_array_assign(out, &in);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}
