/* The distinct elements of an array by kernels for GPUs: a sort, marks of what differs from its neighbour,
 * and the marks' running sums, which number the distinct elements. */
#include "array/kernel_room.h"

enum { MARKS, VALUES, BEGINS, INVERSE, COUNTS };

/* All of one dimension. */
typedef struct distinct {
    drupe_target *target;
    drupe_unique_params p;
    drupe_array sorted, places, marks, ranks, begins;
} distinct;

static drupe_status launch(const distinct *d, int variant, drupe_dtype dtype, const drupe_array *out,
                           const drupe_array *in)
{
    const drupe_kernel_call call = {.parts = drupe_kernel_parts(SHAPE_UNIQUE, variant, dtype),
                                    .arrays = {out, in, &d->ranks},
                                    .count = variant == MARKS ? 2 : 3,
                                    .reads = variant == MARKS ? 2 : 6,
                                    .writes = 1,
                                    .params = &d->p,
                                    .params_size = sizeof d->p,
                                    .items = (size_t)d->p.n};
    return drupe_array_kernel(d->target, &call);
}

static drupe_status result(const drupe_array *in, drupe_dtype dtype, drupe_array *out)
{
    return drupe_array_result(in->queue, DRUPE_MEM_DEVICE, dtype, 1, &in->size, out);
}

static drupe_status number(distinct *d, const drupe_array *in, bool placed)
{
    const drupe_sort sort = {.rows = 1, .n = in->size, .type = (drupe_element)in->dtype};
    const drupe_scan scan = {.outer = 1, .n = in->size, .inner = 1, .type = DRUPE_ELEMENT_I64};
    DRUPE_TRY(result(in, in->dtype, &d->sorted));
    DRUPE_TRY(result(in, DRUPE_INT64, &d->marks));
    DRUPE_TRY(result(in, DRUPE_INT64, &d->ranks));
    if (placed) DRUPE_TRY(result(in, DRUPE_INT64, &d->places));
    DRUPE_TRY(drupe_kernel_sort(d->target, &sort, in, &d->sorted, placed ? &d->places : NULL));
    DRUPE_TRY(launch(d, MARKS, in->dtype, &d->marks, &d->sorted));
    return drupe_kernel_scan(d->target, &scan, &d->marks, &d->ranks);
}

static drupe_status write_results(distinct *d, const drupe_array *in, const drupe_distinct *out)
{
    if (out->values)
        DRUPE_TRY(launch(d, VALUES, drupe_dtype_bytes(drupe_dtype_size(in->dtype)), out->values, &d->sorted));
    if (out->firsts) DRUPE_TRY(launch(d, VALUES, DRUPE_INT64, out->firsts, &d->places));
    if (out->inverse) DRUPE_TRY(launch(d, INVERSE, DRUPE_INT64, out->inverse, &d->places));
    if (out->counts) {
        DRUPE_TRY(result(in, DRUPE_INT64, &d->begins));
        DRUPE_TRY(launch(d, BEGINS, DRUPE_INT64, &d->begins, &d->marks));
        DRUPE_TRY(launch(d, COUNTS, DRUPE_INT64, out->counts, &d->begins));
    }
    drupe_array last = {0};
    drupe_array_view(&d->ranks, &last);
    last.offset += in->size - 1;
    last.size = 1;
    last.ndim = 0;
    drupe_status status = drupe_array_assign(out->count, &(drupe_operand){.array = &last});
    drupe_array_clear(&last);
    return status;
}

drupe_status drupe_kernel_unique(drupe_target *target, const drupe_array *in, bool equal_nan,
                                 const drupe_distinct *out)
{
    distinct d = {.target = target, .p = {.n = (drupe_i64)in->size, .equal_nan = equal_nan}};
    drupe_array flat = {0};
    drupe_array_view(in, &flat);
    flat.ndim = 1; /* it is contiguous */
    flat.shape[0] = flat.size;
    flat.strides[0] = 1;
    drupe_status status = number(&d, &flat, out->firsts || out->inverse);
    if (status == DRUPE_OK) status = write_results(&d, &flat, out);
    drupe_array *const arrays[] = {&d.begins, &d.ranks, &d.marks, &d.places, &d.sorted, &flat};
    for (size_t i = 0; i < DRUPE_COUNT_OF(arrays); i++) drupe_array_clear(arrays[i]);
    return status;
}
