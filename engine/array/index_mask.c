/* Indexing by masks, and repeats: what becomes of an array depends on how many elements are true. */
#include "array/index_room.h"
#include "array/kernel_room.h"
#include "array/loop.h"
#include "math/compact.h"
#include <stdlib.h>
#include <string.h>

typedef struct mask_params {
    size_t n, row, values;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
} mask_params;

/* The target if masks have kernels there. */
static drupe_target *kernels_for(const drupe_array *mask)
{
    drupe_target *target;
    if (mask->ndim > DRUPE_KERNEL_DIMS || drupe_target_get(mask->queue, &target) != DRUPE_OK) return NULL;
    return drupe_target_remote(target) ? target : NULL;
}

static drupe_status check_mask(const drupe_array *mask)
{
    if (mask->dtype == DRUPE_BOOL) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID, "a mask is an array of bools, and this one holds %s",
                           drupe_dtype_name(mask->dtype));
}

/* Whether the mask has the shape of x's first axes. */
static drupe_status check_shapes(const drupe_array *x, const drupe_array *mask)
{
    DRUPE_TRY(check_mask(mask));
    DRUPE_TRY(drupe_array_same_queue("an array and what indexes it", x, mask));
    bool fits = mask->ndim <= x->ndim;
    for (int d = 0; fits && d < mask->ndim; d++) fits = mask->shape[d] == x->shape[d];
    if (fits) return DRUPE_OK;
    char first[128], second[128];
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                           "a mask of shape %s does not fit an array of shape %s: it has to have the lengths "
                           "of the first axes",
                           drupe_shape_text(mask->ndim, mask->shape, first, sizeof(first)),
                           drupe_shape_text(x->ndim, x->shape, second, sizeof(second)));
}

/* --- Counting ------------------------------------------------------------------------------------------- */

static drupe_status run_count(void *const *pointers, const void *params)
{
    const mask_params *p = params;
    drupe_mask_count(pointers[1], p->n, pointers[0]);
    return DRUPE_OK;
}

drupe_status drupe_array_mask_count(const drupe_array *mask, drupe_array *counts)
{
    const size_t length = drupe_mask_blocks(mask->size) + 1;
    DRUPE_TRY(check_mask(mask));
    DRUPE_TRY(drupe_array_result(mask->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &length, counts));
    if (mask->size == 0) return drupe_array_zero(counts);
    const mask_params params = {.n = mask->size};
    drupe_target *target = kernels_for(mask);
    drupe_loop loop;
    drupe_loop_open(&loop, counts);
    drupe_loop_take(&loop, mask, DRUPE_BOOL);
    if (loop.status == DRUPE_OK && target)
        loop.status = drupe_kernel_mask_count(target, &loop.in[0], counts);
    else
        drupe_loop_call(&loop, "count", run_count, &params, sizeof params);
    return drupe_loop_close(&loop);
}

/* --- Reading -------------------------------------------------------------------------------------------- */

static drupe_status run_pick(void *const *pointers, const void *params)
{
    const mask_params *p = params;
    drupe_mask_compact(pointers[2], p->n, pointers[3], p->row, pointers[1], pointers[0]);
    return DRUPE_OK;
}

static drupe_status run_positions(void *const *pointers, const void *params)
{
    const mask_params *p = params;
    drupe_mask_positions(pointers[1], p->ndim, p->shape, pointers[2], pointers[0]);
    return DRUPE_OK;
}

/* The shape (count, ...) of what a mask picks, and the elements that belong to one of the mask. */
static size_t picked_shape(const drupe_array *x, const drupe_array *mask, size_t count, size_t *shape,
                           int *ndim)
{
    size_t row = 1;
    *ndim = 0;
    shape[(*ndim)++] = count;
    for (int d = mask->ndim; d < x->ndim; d++) {
        shape[(*ndim)++] = x->shape[d];
        row *= x->shape[d];
    }
    return row;
}

drupe_status drupe_array_mask_pick(const drupe_array *x, const drupe_array *mask, const drupe_array *counts,
                                   size_t count, drupe_array *out)
{
    size_t shape[DRUPE_MAX_DIMS + 1];
    int ndim;
    DRUPE_TRY(check_shapes(x, mask));
    if (mask->ndim == 0)
        return drupe_error_set(DRUPE_E_INVALID,
                               "a mask without dimensions picks nothing: test it with bool()");
    const size_t row = picked_shape(x, mask, count, shape, &ndim);
    DRUPE_TRY(drupe_array_result_beside(x, x->dtype, ndim, shape, out));
    if (out->size == 0) return DRUPE_OK;
    const mask_params params = {.n = mask->size, .row = row * drupe_dtype_size(x->dtype)};
    drupe_target *target = kernels_for(mask);
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, x, x->dtype);
    drupe_loop_take(&loop, mask, DRUPE_BOOL);
    drupe_loop_take(&loop, counts, DRUPE_INT64);
    if (loop.status == DRUPE_OK && target)
        loop.status = drupe_kernel_mask_compact(target, &loop.in[1], counts, &loop.in[0], out);
    else
        drupe_loop_call(&loop, "compact", run_pick, &params, sizeof params);
    return drupe_loop_close(&loop);
}

drupe_status drupe_array_mask_positions(const drupe_array *mask, const drupe_array *counts, size_t count,
                                        drupe_array *out)
{
    const size_t shape[] = {(size_t)mask->ndim, count};
    DRUPE_TRY(check_mask(mask));
    DRUPE_TRY(drupe_array_result_beside(mask, DRUPE_INT64, 2, shape, out));
    if (out->size == 0) return DRUPE_OK;
    mask_params params = {.ndim = mask->ndim};
    memcpy(params.shape, mask->shape, sizeof(params.shape));
    drupe_target *target = kernels_for(mask);
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, mask, DRUPE_BOOL);
    drupe_loop_take(&loop, counts, DRUPE_INT64);
    if (loop.status == DRUPE_OK && target)
        loop.status = drupe_kernel_mask_positions(target, &loop.in[0], mask->ndim, mask->shape, counts, out);
    else
        drupe_loop_call(&loop, "nonzero", run_positions, &params, sizeof params);
    return drupe_loop_close(&loop);
}

/* --- Assignment ----------------------------------------------------------------------------------------- */

drupe_status drupe_mask_mismatch(size_t values, size_t count)
{
    return drupe_error_set(
        DRUPE_E_INVALID,
        "%zu values were assigned to the %zu elements where the mask is true: there has to "
        "be one for each, or one for all",
        values, count);
}

static drupe_status run_expand(void *const *pointers, const void *params)
{
    const mask_params *p = params;
    const size_t blocks = drupe_mask_blocks(p->n);
    int64_t *counts = malloc((blocks + 1) * sizeof(*counts));
    if (!counts) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for a mask.");
    drupe_mask_count(pointers[1], p->n, counts);
    const size_t count = (size_t)counts[blocks];
    if (count == p->values) drupe_mask_expand(pointers[1], p->n, counts, p->row, pointers[2], pointers[0]);
    free(counts);
    if (count == p->values) return DRUPE_OK;
    return drupe_mask_mismatch(p->values, count);
}

/* `values`: contiguous, of the shape (number of values, ...), apart from x. */
static drupe_status expand(const drupe_array *x, const drupe_array *mask, const drupe_array *values)
{
    drupe_array packed = {0}, packed_mask = {0};
    drupe_status status = drupe_array_contiguous_as(x, x->dtype, &packed);
    if (status == DRUPE_OK) status = drupe_index_apart(mask, DRUPE_BOOL, x, &packed_mask);
    if (status == DRUPE_OK) {
        size_t row = drupe_dtype_size(x->dtype);
        for (int d = mask->ndim; d < x->ndim; d++) row *= x->shape[d];
        const drupe_array *const arrays[] = {&packed, &packed_mask, values};
        const mask_params params = {.n = mask->size, .row = row, .values = values->shape[0]};
        const drupe_call call = {.label = "expand",
                                 .fn = run_expand,
                                 .params = &params,
                                 .params_size = sizeof params,
                                 .arrays = arrays,
                                 .count = values->size ? 3 : 2,
                                 .checks_first = true,
                                 .reads = ~UINT32_C(0),
                                 .writes = 1};
        drupe_target *target = kernels_for(mask);
        status = target ? drupe_kernel_mask_expand(target, &packed_mask, values, values->shape[0], &packed)
                        : drupe_array_call(&call);
    }
    if (status == DRUPE_OK && !drupe_array_contiguous(x))
        status = drupe_array_assign(x, &(drupe_operand){.array = &packed});
    drupe_array_clear(&packed_mask);
    drupe_array_clear(&packed);
    return status;
}

/* x = value where the mask is true; the value, whose type casts to x's, broadcasts to x. */
static drupe_status choose(const drupe_array *x, const drupe_array *mask, const drupe_operand *value)
{
    drupe_array wide = {0}, out = {0};
    drupe_array_view(mask, &wide);
    drupe_status status = DRUPE_OK;
    while (status == DRUPE_OK && wide.ndim < x->ndim) status = drupe_array_insert_axis(&wide, wide.ndim);
    drupe_array_view(x, &out);
    const drupe_operand in[] = {{.array = &wide}, *value, {.array = x}};
    if (status == DRUPE_OK) status = drupe_array_apply(DRUPE_OP_WHERE, in, 3, &out);
    drupe_array_clear(&out);
    drupe_array_clear(&wide);
    return status;
}

/* The same for a scalar, or a value that has no axis for the mask. */
static drupe_status assign_same(const drupe_array *x, const drupe_array *mask, const drupe_operand *value)
{
    const drupe_operand in[] = {{.array = mask}, *value, {.array = x}};
    if (drupe_op_result(DRUPE_OP_WHERE, in, 3) == x->dtype) return choose(x, mask, value);
    drupe_array cast = {0};
    DRUPE_TRY(drupe_index_value(value, x, &cast));
    drupe_status status = choose(x, mask, &(drupe_operand){.array = &cast});
    drupe_array_clear(&cast);
    return status;
}

/* A value with a row for each true element: its other axes are broadcast to x's. */
static drupe_status assign_each(const drupe_array *x, const drupe_array *mask, const drupe_array *value)
{
    size_t shape[DRUPE_MAX_DIMS + 1];
    int ndim;
    drupe_array view = {0}, packed = {0};
    picked_shape(x, mask, value->shape[0], shape, &ndim);
    drupe_array_view(value, &view);
    drupe_status status = drupe_array_broadcast(&view, ndim, shape);
    if (status == DRUPE_OK) status = drupe_index_apart(&view, x->dtype, x, &packed);
    if (status == DRUPE_OK) status = expand(x, mask, &packed);
    drupe_array_clear(&packed);
    drupe_array_clear(&view);
    return status;
}

drupe_status drupe_array_mask_assign(const drupe_array *x, const drupe_array *mask,
                                     const drupe_operand *value)
{
    DRUPE_TRY(check_shapes(x, mask));
    DRUPE_TRY(drupe_layout_writable(x));
    if (!value->array) return x->size ? assign_same(x, mask, value) : DRUPE_OK;
    const int rest = x->ndim - mask->ndim;
    drupe_array view = {0};
    drupe_array_view(value->array, &view);
    drupe_index_drop_leading(&view, rest);
    drupe_status status = DRUPE_OK;
    if (view.ndim > rest + 1) {
        char text[128];
        status = drupe_error_set(DRUPE_E_INVALID,
                                 "a value of shape %s has too many dimensions for what the mask picks, which "
                                 "has %d",
                                 drupe_shape_text(view.ndim, view.shape, text, sizeof(text)), rest + 1);
    } else if (view.ndim == rest + 1) {
        if (x->size) status = assign_each(x, mask, &view);
    } else {
        drupe_array check = {0};
        drupe_array_view(&view, &check);
        status = drupe_array_broadcast(&check, rest, x->shape + mask->ndim);
        drupe_array_clear(&check);
        if (status == DRUPE_OK && x->size) status = assign_same(x, mask, &(drupe_operand){.array = &view});
    }
    drupe_array_clear(&view);
    return status;
}

/* --- Repeats -------------------------------------------------------------------------------------------- */

static drupe_status run_repeat_count(void *const *pointers, const void *params)
{
    const mask_params *p = params;
    return drupe_repeat_count(pointers[1], p->n, pointers[0]);
}

static drupe_status run_repeat(void *const *pointers, const void *params)
{
    const mask_params *p = params;
    drupe_repeat_positions(pointers[1], p->n, p->values, pointers[0]);
    return DRUPE_OK;
}

static drupe_status repeat_call(const drupe_array *repeats, size_t count, drupe_call_fn fn, drupe_array *out)
{
    const mask_params params = {.n = repeats->size, .values = count};
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, repeats, DRUPE_INT64);
    drupe_loop_call(&loop, "repeat", fn, &params, sizeof params);
    return drupe_loop_close(&loop);
}

drupe_status drupe_array_repeat_count(const drupe_array *repeats, drupe_array *total)
{
    const int kind = drupe_dtype_row(repeats->dtype)->kind;
    if (repeats->ndim != 1 || kind >= KIND_FLOAT)
        return drupe_error_set(DRUPE_E_INVALID,
                               "repeats are integers in one dimension, not %s in %d dimensions",
                               drupe_dtype_name(repeats->dtype), repeats->ndim);
    DRUPE_TRY(drupe_array_result(repeats->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 0, NULL, total));
    return repeats->size ? repeat_call(repeats, 0, run_repeat_count, total) : drupe_array_zero(total);
}

drupe_status drupe_array_repeat_positions(const drupe_array *repeats, size_t count, drupe_array *out)
{
    DRUPE_TRY(drupe_array_result_beside(repeats, DRUPE_INT64, 1, &count, out));
    return count ? repeat_call(repeats, count, run_repeat, out) : DRUPE_OK;
}
