/* Sorts along an axis. The loops sort rows: another axis than the last is moved there, and back afterwards.
 */
#include "array/array_room.h"
#include "array/kernel_room.h"
#include "array/loop.h"
#include "array/order.h"
#include "math/sort.h"

typedef struct sort_params {
    drupe_sort sort;
    bool values, indices;
} sort_params;

static drupe_status sort_call(void *const *pointers, const void *params)
{
    const sort_params *p = params;
    drupe_sort sort = p->sort;
    sort.in = pointers[0];
    if (p->values) sort.out = pointers[1];
    if (p->indices) sort.indices = pointers[p->values ? 2 : 1];
    return drupe_sort_run(&sort);
}

static drupe_status sort_submit(const drupe_array *in, const drupe_sort *sort, const drupe_array *values,
                                const drupe_array *indices)
{
    const sort_params params = {*sort, values != NULL, indices != NULL};
    const drupe_array *arrays[3] = {in};
    size_t count = 1;
    if (values) arrays[count++] = values;
    if (indices) arrays[count++] = indices;
    const drupe_call call = {.label = values ? "sort" : "argsort",
                             .fn = sort_call,
                             .params = &params,
                             .params_size = sizeof params,
                             .arrays = arrays,
                             .count = count,
                             .reads = 1,
                             .writes = count == 3 ? 6 : 2};
    drupe_target *target;
    DRUPE_TRY(drupe_target_get(in->queue, &target));
    if (drupe_kernel_sorts(target, sort)) return drupe_kernel_sort(target, sort, in, values, indices);
    return drupe_array_call(&call);
}

/* The axes in the order in which `axis` is the last one, or the inverse of that. */
static drupe_status axis_last(drupe_array *array, int axis, bool inverse)
{
    int axes[DRUPE_MAX_DIMS];
    const int last = array->ndim - 1;
    if (axis == last) return DRUPE_OK;
    for (int d = 0; d <= last; d++) {
        const int moved = d < axis ? d : d < last ? d + 1 : axis;
        if (inverse)
            axes[moved] = d;
        else
            axes[d] = moved;
    }
    return drupe_array_permute(array, axes);
}

/* `sorted` (cleared) with the axis where it was, in C order. */
static drupe_status axis_back(drupe_array *sorted, int axis, drupe_array *out)
{
    drupe_status status = axis_last(sorted, axis, true);
    if (status == DRUPE_OK) status = drupe_array_contiguous_as(sorted, sorted->dtype, out);
    drupe_array_clear(sorted);
    return status;
}

drupe_status drupe_array_sort(const drupe_array *in, int axis, bool descending, drupe_array *values,
                              drupe_array *indices)
{
    drupe_axis_block block;
    drupe_array view = {0}, rows = {0}, ordered = {0}, places = {0};
    DRUPE_TRY(drupe_array_axis(in, axis, &block));
    drupe_array_view(in, &view);
    drupe_status status = axis_last(&view, axis, false);
    if (status == DRUPE_OK) status = drupe_array_contiguous_as(&view, in->dtype, &rows);
    if (status == DRUPE_OK && values)
        status = drupe_array_result_beside(in, in->dtype, rows.ndim, rows.shape, &ordered);
    if (status == DRUPE_OK && indices)
        status = drupe_array_result_beside(in, DRUPE_INT64, rows.ndim, rows.shape, &places);
    const drupe_sort sort = {.rows = block.outer * block.inner,
                             .n = block.n,
                             .type = drupe_array_element(in->dtype),
                             .descending = descending};
    if (status == DRUPE_OK && in->size)
        status = sort_submit(&rows, &sort, values ? &ordered : NULL, indices ? &places : NULL);
    if (status == DRUPE_OK && values) status = axis_back(&ordered, axis, values);
    if (status == DRUPE_OK && indices) status = axis_back(&places, axis, indices);
    drupe_array_clear(&places);
    drupe_array_clear(&ordered);
    drupe_array_clear(&rows);
    drupe_array_clear(&view);
    if (status != DRUPE_OK && values) drupe_array_clear(values);
    return status;
}
