/* Assignment and sequences: everything that writes elements without computing. */
#include "array/node.h"
#include <string.h>

/* --- Within one queue ----------------------------------------------------------------------------------- */

static drupe_status fill(drupe_target *target, const drupe_array *dst, const drupe_scalar *scalar)
{
    drupe_u64 bytes[2];
    const size_t size = drupe_dtype_size(dst->dtype);
    DRUPE_TRY(drupe_scalar_bytes(scalar, dst->dtype, bytes));
    if (!drupe_array_contiguous(dst))
        return drupe_copy_launch(target, dst, &(drupe_operand){.scalar = *scalar});
    const drupe_submission s = {.queue = dst->queue, .ordered = true};
    return drupe_submit_fill(&s, drupe_array_pointer(dst), bytes, size, dst->size * size, NULL);
}

static drupe_status copy_bytes(const drupe_array *dst, const drupe_array *src)
{
    const drupe_submission s = {.queue = dst->queue, .ordered = true};
    return drupe_submit_copy(&s, drupe_array_pointer(dst), drupe_array_pointer(src),
                             dst->size * drupe_dtype_size(dst->dtype), NULL);
}

static drupe_status assign_here(drupe_target *target, const drupe_array *dst, const drupe_array *src)
{
    const bool same_type = dst->dtype == src->dtype;
    if (same_type && drupe_layout_same_view(dst, src)) return DRUPE_OK;
    if (drupe_layout_overlap(dst, src)) {
        drupe_array copy = {0};
        DRUPE_TRY(drupe_array_result(src->queue, DRUPE_MEM_DEVICE, src->dtype, src->ndim, src->shape, &copy));
        drupe_status status = drupe_copy_launch(target, &copy, &(drupe_operand){.array = src});
        if (status == DRUPE_OK) status = assign_here(target, dst, &copy);
        drupe_array_clear(&copy);
        return status;
    }
    if (same_type && drupe_layout_same_shape(dst, src) && drupe_array_contiguous(dst) &&
        drupe_array_contiguous(src))
        return copy_bytes(dst, src);
    return drupe_copy_launch(target, dst, &(drupe_operand){.array = src});
}

/* --- Between queues ------------------------------------------------------------------------------------- */

/* The two queues are independent, so both directions need an event: dst's queue waits for what src holds,
 * and src's queue waits until it was read. */
static drupe_status copy_across(const drupe_array *dst, const drupe_array *src)
{
    drupe_event *ready = NULL, *copied = NULL;
    const drupe_submission at_source = {.queue = src->queue};
    DRUPE_TRY(drupe_submit_barrier(&at_source, &ready));
    const drupe_submission at_target = {.queue = dst->queue, .ordered = true, .waits = &ready, .nwaits = 1};
    drupe_status status = drupe_submit_copy(&at_target, drupe_array_pointer(dst), drupe_array_pointer(src),
                                            dst->size * drupe_dtype_size(dst->dtype), &copied);
    if (status == DRUPE_OK) {
        const drupe_submission release = {.queue = src->queue, .waits = &copied, .nwaits = 1};
        status = drupe_submit_barrier(&release, NULL);
    }
    drupe_event_release(copied);
    drupe_event_release(ready);
    return status;
}

/* The type to travel in: dst's when that is smaller or when dst's device lacks src's. */
static drupe_dtype travel_type(const drupe_target *target, const drupe_array *dst, const drupe_array *src)
{
    if (drupe_dtype_available(src->dtype, target->fp64) != src->dtype) return dst->dtype;
    return drupe_dtype_size(dst->dtype) < drupe_dtype_size(src->dtype) ? dst->dtype : src->dtype;
}

/* Whether bytes that are shared with somebody else, such as those of a NumPy array, are both arrays'. */
static bool share_bytes(const drupe_array *dst, const drupe_array *src)
{
    const drupe_access to = drupe_layout_access(dst, true), from = drupe_layout_access(src, false);
    return (uintptr_t)to.pointer - (uintptr_t)from.pointer < from.bytes ||
           (uintptr_t)from.pointer - (uintptr_t)to.pointer < to.bytes;
}

static drupe_status assign_across(drupe_target *target, const drupe_array *dst, const drupe_array *src)
{
    drupe_array packed = {0}, landed = {0};
    const drupe_dtype dtype = travel_type(target, dst, src);
    DRUPE_TRY(drupe_array_contiguous_as(src, dtype, &packed));
    drupe_status status = DRUPE_OK;
    if (dtype == dst->dtype && drupe_layout_same_shape(dst, &packed) && drupe_array_contiguous(dst) &&
        !share_bytes(dst, &packed)) {
        status = copy_across(dst, &packed);
    } else {
        status = drupe_array_result(dst->queue, DRUPE_MEM_DEVICE, dtype, packed.ndim, packed.shape, &landed);
        if (status == DRUPE_OK) status = copy_across(&landed, &packed);
        if (status == DRUPE_OK) status = assign_here(target, dst, &landed);
    }
    drupe_array_clear(&landed);
    drupe_array_clear(&packed);
    return status;
}

/* What broadcasts to dst; it may be pending. */
static drupe_status assign_array(drupe_target *target, const drupe_array *dst, drupe_array *src)
{
    const bool here = src->queue == dst->queue;
    if (src->node && here) {
        drupe_status status;
        drupe_array out = *dst;
        const op_types types = {dst->dtype, drupe_copy_type(src->dtype, dst->dtype), dst->dtype, 0};
        if (drupe_pending_into(target, OP_COPY, &types, &(drupe_operand){.array = src}, 1, &out, &status))
            return status;
    }
    DRUPE_TRY(drupe_array_settle(src));
    return here ? assign_here(target, dst, src) : assign_across(target, dst, src);
}

drupe_status drupe_array_assign(const drupe_array *dst, const drupe_operand *src)
{
    drupe_target *target;
    drupe_array view;
    DRUPE_TRY(drupe_target_get(dst->queue, &target));
    DRUPE_TRY(drupe_layout_writable(dst));
    DRUPE_TRY(drupe_queue_pace(dst->queue));
    DRUPE_TRY(drupe_array_settle(dst));
    if (!src->array) return dst->size ? fill(target, dst, &src->scalar) : DRUPE_OK;
    drupe_array_view(src->array, &view);
    /* Leading axes of length 1 may be dropped, as in NumPy's assignment. */
    while (view.ndim > dst->ndim && view.shape[0] == 1) {
        view.ndim--;
        memmove(view.shape, view.shape + 1, (size_t)view.ndim * sizeof(*view.shape));
        memmove(view.strides, view.strides + 1, (size_t)view.ndim * sizeof(*view.strides));
    }
    drupe_array wide = view;
    drupe_status status = drupe_array_broadcast(&wide, dst->ndim, dst->shape);
    if (status == DRUPE_OK && dst->size) status = assign_array(target, dst, &view);
    drupe_array_clear(&view);
    return status;
}

/* --- Sequences ------------------------------------------------------------------------------------------ */

/* Integers are computed in int64 and cut, whose last bits are those of uint64, too; bool is whether the
 * integer differs from zero. */
static drupe_dtype sequence_type(const drupe_target *target, const drupe_array *dst,
                                 const drupe_scalar *start, const drupe_scalar *step)
{
    const int kind = drupe_dtype_row(dst->dtype)->kind;
    const bool whole = start->kind < DRUPE_SCALAR_KIND_FLOAT && step->kind < DRUPE_SCALAR_KIND_FLOAT;
    if (kind < KIND_FLOAT && whole) return DRUPE_INT64;
    return drupe_dtype_available(kind == KIND_COMPLEX ? DRUPE_COMPLEX128 : DRUPE_FLOAT64, target->fp64);
}

static drupe_status sequence_value(const drupe_scalar *scalar, drupe_dtype compute, drupe_u64 *bytes)
{
    drupe_scalar value = *scalar;
    value.big = value.big && compute != DRUPE_INT64;
    return drupe_scalar_bytes(&value, compute, bytes);
}

drupe_status drupe_array_sequence(const drupe_array *dst, drupe_scalar start, drupe_scalar step)
{
    drupe_target *target;
    drupe_range range;
    if (dst->ndim != 1)
        return drupe_error_set(DRUPE_E_INVALID, "a sequence has one dimension, not %d", dst->ndim);
    if (dst->size == 0) return DRUPE_OK;
    DRUPE_TRY(drupe_target_get(dst->queue, &target));
    const drupe_dtype compute = sequence_type(target, dst, &start, &step);
    drupe_sequence_params p = {
        .n = (drupe_i64)dst->size, .stride = dst->strides[0], .dtype = (drupe_i32)dst->dtype};
    DRUPE_TRY(sequence_value(&start, compute, p.start));
    DRUPE_TRY(sequence_value(&step, compute, p.step));
    kernel_parts key = {SHAPE_SEQUENCE, 0, 0, (int32_t)compute, (int32_t)dst->dtype, {-1, -1, -1}};
    if (target->builtin) key.out = -1;
    void *pointer = drupe_array_pointer(dst);
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof(pointer), &pointer},
                              {DRUPE_ARG_VALUE, sizeof(p), &p}};
    drupe_target_range(target, dst->size, target->gpu_form ? 1 : 16384, &range);
    const drupe_access access = drupe_layout_access(dst, true);
    const size_t element = drupe_dtype_size(dst->dtype);
    struct drupe_memory *const memories[] = {dst->memory, NULL};
    const drupe_effects effects = {.writes = 1, .replaces = drupe_array_covers(dst)};
    const drupe_submission s = {.queue = dst->queue,
                                .ordered = true,
                                .label = "sequence",
                                .memories = memories,
                                .effects = &effects,
                                .accesses = &access,
                                .naccesses = target->checked ? 1 : 0};
    kernel_recipe recipe;
    drupe_recipe_make(&key, &recipe);
    return drupe_target_submit(target, &recipe, &s, &range, args, 2, &element);
}
