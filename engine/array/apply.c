/* Element-wise operations: types, shapes, output. map_launch.c launches them, pending.c puts them off. */
#include "array/node.h"
#include <string.h>

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
                              size_t nin, const drupe_array *spent, drupe_mem_kind kind, drupe_queue *queue,
                              int ndim, const size_t *shape, drupe_array *out)
{
    const bool replace = may_replace(spent, kind, types->result, ndim, shape);
    if (replace) {
        drupe_array_view(spent, out);
    } else {
        DRUPE_TRY(drupe_array_result_known(queue, kind, types->result, ndim, shape, out));
    }
    if (out->size == 0) return DRUPE_OK;
    drupe_status status = drupe_map_launch_over(target, op, types, out, in, nin, replace ? spent : NULL);
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
    return apply_new(target, number, &types, in, nin, spent < nin ? in[spent].array : NULL, kind, queue, ndim,
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
