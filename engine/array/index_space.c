/* What all kinds of indexing need of their operands. */
#include "array/index_room.h"
#include <string.h>

void drupe_index_span(const drupe_array *array, drupe_array *span, ptrdiff_t *base)
{
    ptrdiff_t low = 0, high = 0;
    for (int d = 0; d < array->ndim; d++) {
        const ptrdiff_t reach = ((ptrdiff_t)array->shape[d] - 1) * array->strides[d];
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    drupe_array_view(array, span);
    span->ndim = 1;
    span->offset = (size_t)((ptrdiff_t)array->offset + low);
    span->size = span->shape[0] = (size_t)(high - low + 1);
    span->strides[0] = 1;
    *base = -low;
}

drupe_status drupe_index_apart(const drupe_array *src, drupe_dtype dtype, const drupe_array *beside,
                               drupe_array *out)
{
    if (src->queue != beside->queue || (src->size && beside->size && drupe_layout_overlap(src, beside)))
        return drupe_array_copy_as(src, dtype, beside->queue, out);
    return drupe_array_contiguous_as(src, dtype, out);
}

drupe_status drupe_index_value(const drupe_operand *value, const drupe_array *beside, drupe_array *out)
{
    if (value->array) return drupe_index_apart(value->array, beside->dtype, beside, out);
    DRUPE_TRY(drupe_array_result(beside->queue, DRUPE_MEM_DEVICE, beside->dtype, 0, NULL, out));
    drupe_status status = drupe_array_assign(out, value);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}

void drupe_index_drop_leading(drupe_array *view, int ndim)
{
    while (view->ndim > ndim && view->shape[0] == 1) {
        view->ndim--;
        memmove(view->shape, view->shape + 1, (size_t)view->ndim * sizeof(*view->shape));
        memmove(view->strides, view->strides + 1, (size_t)view->ndim * sizeof(*view->strides));
    }
}
