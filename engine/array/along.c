/* Running sums and places of extremes along an axis: loops of the host over blocks [outer][n][inner]. */
#include "array/array_room.h"
#include "array/kernel_room.h"
#include "array/loop.h"
#include "array/order.h"
#include "math/argreduce.h"
#include "math/scan.h"

drupe_status drupe_array_axis(const drupe_array *in, int axis, drupe_axis_block *block)
{
    if (axis < 0 || axis >= in->ndim)
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                               "axis %d is out of bounds for an array with %d dimensions", axis, in->ndim);
    *block = (drupe_axis_block){1, in->shape[axis], 1};
    for (int d = 0; d < axis; d++) block->outer *= in->shape[d];
    for (int d = axis + 1; d < in->ndim; d++) block->inner *= in->shape[d];
    return DRUPE_OK;
}

/* --- Running sums ----------------------------------------------------------------------------------------
 */

static drupe_status scan_call(void *const *pointers, const void *params)
{
    drupe_scan scan = *(const drupe_scan *)params;
    scan.out = pointers[0];
    scan.in = pointers[1];
    drupe_scan_run(&scan);
    return DRUPE_OK;
}

drupe_status drupe_array_cumulate(const drupe_array *in, int axis, drupe_dtype dtype, bool product,
                                  bool initial, drupe_array *out)
{
    drupe_axis_block block;
    size_t shape[DRUPE_MAX_DIMS];
    DRUPE_TRY(drupe_array_axis(in, axis, &block));
    if (dtype == DRUPE_DTYPE_NONE) dtype = drupe_op_result(DRUPE_OP_SUM, &(drupe_operand){.array = in}, 1);
    if (dtype == DRUPE_DTYPE_NONE) return drupe_error_last()->status;
    if (dtype == DRUPE_BOOL)
        return drupe_error_set(DRUPE_E_INVALID,
                               "cumulative sums and products are not computed in bool: give an "
                               "integer dtype");
    memcpy(shape, in->shape, (size_t)in->ndim * sizeof *shape);
    shape[axis] += initial;
    DRUPE_TRY(drupe_array_result_beside(in, dtype, in->ndim, shape, out));
    if (!out->size) return DRUPE_OK;
    const drupe_scan scan = {.outer = block.outer,
                             .n = block.n,
                             .inner = block.inner,
                             .type = drupe_array_element(dtype),
                             .product = product,
                             .initial = initial};
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, in, dtype);
    drupe_target *remote = drupe_loop_remote(&loop);
    if (remote)
        loop.status = drupe_kernel_scan(remote, &scan, &loop.in[0], out);
    else
        drupe_loop_call(&loop, product ? "cumulative_prod" : "cumulative_sum", scan_call, &scan, sizeof scan);
    return drupe_loop_close(&loop);
}

/* --- Places of extremes ----------------------------------------------------------------------------------
 */

static drupe_status arg_call(void *const *pointers, const void *params)
{
    drupe_argreduce work = *(const drupe_argreduce *)params;
    work.out = pointers[0];
    work.in = pointers[1];
    return drupe_argreduce_run(&work);
}

drupe_status drupe_array_argreduce(const drupe_array *in, int axis, bool keepdims, bool least,
                                   drupe_array *out)
{
    drupe_axis_block block = {1, in->size, 1};
    size_t shape[DRUPE_MAX_DIMS];
    int ndim = 0;
    if (axis != -1) DRUPE_TRY(drupe_array_axis(in, axis, &block));
    for (int d = 0; d < in->ndim; d++) {
        if (axis != -1 && d != axis)
            shape[ndim++] = in->shape[d];
        else if (keepdims)
            shape[ndim++] = 1;
    }
    if (block.n == 0)
        return drupe_error_set(DRUPE_E_INVALID, "%s of no elements has no value",
                               least ? "argmin" : "argmax");
    DRUPE_TRY(drupe_array_result_beside(in, DRUPE_INT64, ndim, shape, out));
    if (!out->size) return DRUPE_OK;
    const drupe_argreduce work = {.outer = block.outer,
                                  .n = block.n,
                                  .inner = block.inner,
                                  .type = drupe_array_element(in->dtype),
                                  .least = least};
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, in, in->dtype);
    drupe_target *remote = drupe_loop_remote(&loop);
    if (remote)
        loop.status = drupe_kernel_argreduce(remote, &work, &loop.in[0], out);
    else
        drupe_loop_call(&loop, least ? "argmin" : "argmax", arg_call, &work, sizeof work);
    return drupe_loop_close(&loop);
}
