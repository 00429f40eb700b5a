/* Making arrays, and views of them. A view is a descriptor with its own references to allocation and queue.
 */
#include "array/node.h"
#include <string.h>

static drupe_status shape_too_large(int ndim, const size_t *shape, size_t size)
{
    char text[192];
    drupe_shape_text(ndim, shape, text, sizeof(text));
    return drupe_error_set(
        DRUPE_E_NO_MEMORY,
        "an array of shape %s with %zu bytes an element has more than 2**62 bytes, which is "
        "the most that an array or a view can have",
        text, size);
}

/* The number of elements of `size` bytes each. Of every array and view all bytes are at most DRUPE_SIZE_MOST,
 * so that products of its sizes need no more care; axes of length 0 do not count, as in NumPy. */
static drupe_status shape_size(int ndim, const size_t *shape, size_t size, size_t *count)
{
    size_t bytes = size;
    bool empty = false;
    *count = 0;
    if (ndim < 0 || ndim > DRUPE_MAX_DIMS)
        return drupe_error_set(DRUPE_E_INVALID, "an array has at most %d dimensions, not %d", DRUPE_MAX_DIMS,
                               ndim);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0)
            empty = true;
        else if (!drupe_size_times(bytes, shape[d], &bytes))
            return shape_too_large(ndim, shape, size);
    }
    *count = empty ? 0 : bytes / size;
    return DRUPE_OK;
}

static drupe_status check_dtype(drupe_queue *queue, drupe_dtype dtype)
{
    drupe_target *target;
    if ((int)dtype < 0 || dtype >= DRUPE_DTYPE_COUNT)
        return drupe_error_set(DRUPE_E_INVALID, "%d is no element type", (int)dtype);
    DRUPE_TRY(drupe_target_get(queue, &target));
    const drupe_dtype instead = drupe_dtype_available(dtype, target->fp64);
    if (instead != dtype)
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "%s has no %s: use %s",
                               drupe_device_filter(target->device), drupe_dtype_name(dtype),
                               drupe_dtype_name(instead));
    return DRUPE_OK;
}

static drupe_status make(drupe_queue *queue, drupe_mem_kind kind, drupe_dtype dtype, int ndim,
                         const size_t *shape, bool result, drupe_array *array)
{
    size_t count = 0, bytes;
    drupe_array_none(array);
    DRUPE_TRY(shape_size(ndim, shape, drupe_dtype_size(dtype), &count));
    bytes = count ? count * drupe_dtype_size(dtype) : 1;
    /* What writes an empty array submits nothing. */
    if (result && count)
        DRUPE_TRY(drupe_memory_alloc_result(queue, kind, bytes, &array->memory));
    else
        DRUPE_TRY(drupe_memory_alloc(queue, kind, bytes, 0, &array->memory));
    array->queue = drupe_queue_retain(queue);
    array->dtype = dtype;
    array->ndim = ndim;
    array->size = count;
    for (int d = 0; d < ndim; d++) array->shape[d] = shape[d];
    drupe_layout_c_order(ndim, shape, array->strides);
    return DRUPE_OK;
}

drupe_status drupe_array_empty(drupe_queue *queue, drupe_mem_kind kind, drupe_dtype dtype, int ndim,
                               const size_t *shape, drupe_array *array)
{
    drupe_array_none(array);
    DRUPE_TRY(check_dtype(queue, dtype));
    return make(queue, kind, dtype, ndim, shape, false, array);
}

drupe_status drupe_array_result(drupe_queue *queue, drupe_mem_kind kind, drupe_dtype dtype, int ndim,
                                const size_t *shape, drupe_array *array)
{
    drupe_array_none(array);
    DRUPE_TRY(check_dtype(queue, dtype));
    return drupe_array_result_known(queue, kind, dtype, ndim, shape, array);
}

drupe_status drupe_array_result_known(drupe_queue *queue, drupe_mem_kind kind, drupe_dtype dtype, int ndim,
                                      const size_t *shape, drupe_array *array)
{
    drupe_array_none(array);
    DRUPE_TRY(drupe_queue_pace(queue));
    return make(queue, kind, dtype, ndim, shape, true, array);
}

/* Every element must lie inside of `elements` elements, whatever the strides are. */
static drupe_status check_bounds(const drupe_array *array, size_t elements)
{
    size_t low = 0, high = array->offset;
    for (int d = 0; d < array->ndim; d++) {
        const ptrdiff_t stride = array->strides[d];
        size_t reach, step = stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
        if (__builtin_mul_overflow(array->shape[d] - 1, step, &reach) ||
            __builtin_add_overflow(stride < 0 ? low : high, reach, stride < 0 ? &low : &high))
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "the strides overflow");
    }
    if (low > array->offset || high >= elements)
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                               "the view reaches outside of its allocation of %zu elements of %s", elements,
                               drupe_dtype_name(array->dtype));
    return DRUPE_OK;
}

drupe_status drupe_array_over(drupe_memory *memory, drupe_queue *queue, drupe_dtype dtype, int ndim,
                              const size_t *shape, const ptrdiff_t *strides, size_t offset,
                              drupe_array *array)
{
    drupe_array view = {.dtype = dtype, .ndim = ndim, .offset = offset};
    memset(array, 0, sizeof(*array));
    DRUPE_TRY(check_dtype(queue, dtype));
    const size_t size = drupe_dtype_size(dtype);
    DRUPE_TRY(shape_size(ndim, shape, size, &view.size));
    for (int d = 0; d < ndim; d++) view.shape[d] = shape[d];
    if (strides)
        memcpy(view.strides, strides, (size_t)ndim * sizeof(*strides));
    else
        drupe_layout_c_order(ndim, shape, view.strides);
    if ((uintptr_t)drupe_memory_pointer(memory) % size)
        return drupe_error_set(DRUPE_E_INVALID, "the allocation is not aligned for %s",
                               drupe_dtype_name(dtype));
    if (view.size) DRUPE_TRY(check_bounds(&view, drupe_memory_size(memory) / size));
    view.memory = drupe_memory_retain(memory);
    view.queue = drupe_queue_retain(queue);
    *array = view;
    return DRUPE_OK;
}

void drupe_array_view(const drupe_array *array, drupe_array *copy)
{
    *copy = *array;
    if (copy->node) drupe_node_hold(copy->node);
    drupe_memory_retain(copy->memory);
    drupe_queue_retain(copy->queue);
}

void drupe_array_clear(drupe_array *array)
{
    if (array->node) drupe_node_drop(array->node);
    drupe_memory_release(array->memory);
    drupe_queue_release(array->queue);
    drupe_array_none(array);
}

bool drupe_array_contiguous(const drupe_array *array)
{
    ptrdiff_t expected = 1;
    if (array->size == 0) return true;
    for (int d = array->ndim - 1; d >= 0; d--) {
        if (array->shape[d] == 1) continue;
        if (array->strides[d] != expected) return false;
        expected *= (ptrdiff_t)array->shape[d];
    }
    return true;
}

bool drupe_array_covers(const drupe_array *array)
{
    return drupe_array_contiguous(array) &&
           array->size * drupe_dtype_size(array->dtype) == drupe_memory_size(array->memory);
}

void *drupe_array_pointer(const drupe_array *array)
{
    return (char *)drupe_memory_pointer(array->memory) + array->offset * drupe_dtype_size(array->dtype);
}

bool drupe_array_host_reaches(const drupe_array *array)
{
    drupe_target *target;
    if (drupe_memory_host_accessible(array->memory)) return true;
    /* The form for GPUs on a CPU is a test's, as in host_call.c. */
    return drupe_target_get(array->queue, &target) == DRUPE_OK && target->cpu && !target->gpu_form;
}

/* --- Views ---------------------------------------------------------------------------------------------- */

drupe_status drupe_array_slice(drupe_array *array, const drupe_slice *slices)
{
    drupe_array view = *array;
    int kept = 0;
    size_t size = 1;
    for (int d = 0; d < array->ndim; d++) {
        const drupe_slice *s = &slices[d];
        const size_t count = s->drop ? 1 : s->count;
        const ptrdiff_t step = s->drop || count < 2 ? 0 : s->step; /* of one element it may be anything */
        const ptrdiff_t last = s->start + ((ptrdiff_t)count - 1) * step;
        const ptrdiff_t length = (ptrdiff_t)array->shape[d];
        if (count > 0 && (s->start < 0 || s->start >= length || last < 0 || last >= length))
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                                   "index %td is out of bounds for axis %d of length %td",
                                   s->start < 0 || s->start >= length ? s->start : last, d, length);
        if (count > 0) view.offset = (size_t)((ptrdiff_t)view.offset + s->start * array->strides[d]);
        if (s->drop) continue;
        view.shape[kept] = count;
        view.strides[kept] = array->strides[d] * step;
        size *= count;
        kept++;
    }
    view.ndim = kept;
    view.size = size;
    if (size == 0) view.offset = array->offset;
    *array = view;
    return DRUPE_OK;
}

drupe_status drupe_array_insert_axis(drupe_array *array, int axis)
{
    if (array->ndim == DRUPE_MAX_DIMS)
        return drupe_error_set(DRUPE_E_INVALID, "an array has at most %d dimensions", DRUPE_MAX_DIMS);
    if (axis < 0 || axis > array->ndim)
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "an axis can be inserted at 0 to %d, not at %d",
                               array->ndim, axis);
    for (int d = array->ndim; d > axis; d--) {
        array->shape[d] = array->shape[d - 1];
        array->strides[d] = array->strides[d - 1];
    }
    array->shape[axis] = 1;
    array->strides[axis] = 0;
    array->ndim++;
    return DRUPE_OK;
}

drupe_status drupe_array_permute(drupe_array *array, const int *axes)
{
    const drupe_array old = *array;
    uint32_t seen = 0;
    for (int d = 0; d < old.ndim; d++) {
        const int from = axes ? axes[d] : old.ndim - 1 - d;
        if (from < 0 || from >= old.ndim || seen >> from & 1) {
            *array = old;
            return drupe_error_set(DRUPE_E_INVALID, "the axes must be a permutation of 0 to %d",
                                   old.ndim - 1);
        }
        seen |= 1u << from;
        array->shape[d] = old.shape[from];
        array->strides[d] = old.strides[from];
    }
    return DRUPE_OK;
}

/* Strides for `shape` over the merged axes of `from`; false when a copy would be needed. */
static bool restride(const drupe_layout *from, int ndim, const size_t *shape, ptrdiff_t *strides)
{
    int axis = from->ndim - 1;
    size_t left = axis >= 0 ? from->shape[axis] : 1;
    ptrdiff_t stride = axis >= 0 ? from->strides[0][axis] : 1;
    for (int d = ndim - 1; d >= 0; d--) {
        if (left == 1 && shape[d] != 1 && axis > 0) {
            axis--;
            left = from->shape[axis];
            stride = from->strides[0][axis];
        }
        if (left % shape[d]) return false;
        strides[d] = stride;
        stride *= (ptrdiff_t)shape[d];
        left /= shape[d];
    }
    return true;
}

drupe_status drupe_array_reshape(drupe_array *array, int ndim, const size_t *shape)
{
    size_t count = 0;
    ptrdiff_t strides[DRUPE_MAX_DIMS];
    DRUPE_TRY(shape_size(ndim, shape, drupe_dtype_size(array->dtype), &count));
    if (count != array->size) {
        char from[128], to[128];
        drupe_shape_text(array->ndim, array->shape, from, sizeof(from));
        drupe_shape_text(ndim, shape, to, sizeof(to));
        return drupe_error_set(DRUPE_E_INVALID, "an array of shape %s cannot be seen as one of shape %s",
                               from, to);
    }
    if (drupe_array_contiguous(array)) {
        drupe_layout_c_order(ndim, shape, strides);
    } else {
        drupe_layout merged = {.noperands = 1};
        for (int d = 0; d < array->ndim; d++) {
            if (array->shape[d] == 1) continue;
            merged.shape[merged.ndim] = array->shape[d];
            merged.strides[0][merged.ndim++] = array->strides[d];
        }
        drupe_layout_merge(&merged);
        if (!restride(&merged, ndim, shape, strides))
            return drupe_error_set(DRUPE_E_UNSUPPORTED, "this reshape of a strided array needs a copy");
    }
    array->ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        array->shape[d] = shape[d];
        array->strides[d] = strides[d];
    }
    return DRUPE_OK;
}

drupe_status drupe_array_broadcast(drupe_array *array, int ndim, const size_t *shape)
{
    size_t count = 0;
    drupe_array view = *array;
    DRUPE_TRY(shape_size(ndim, shape, drupe_dtype_size(array->dtype), &count));
    bool fits = ndim >= array->ndim;
    for (int d = 0; fits && d < ndim; d++) {
        const int own = d - (ndim - array->ndim);
        fits = own < 0 || array->shape[own] == 1 || array->shape[own] == shape[d];
        view.shape[d] = shape[d];
        view.strides[d] = drupe_layout_stride(array, ndim, d);
    }
    if (!fits) {
        char from[128], to[128];
        drupe_shape_text(array->ndim, array->shape, from, sizeof(from));
        drupe_shape_text(ndim, shape, to, sizeof(to));
        return drupe_error_set(DRUPE_E_INVALID, "an array of shape %s does not broadcast to %s", from, to);
    }
    view.ndim = ndim;
    view.size = count;
    *array = view;
    return DRUPE_OK;
}
