/* Masks as kernels for GPUs: true elements are counted block by block, running sums of the counts tell where
 * each block's go, and their positions are index arrays for what follows. */
#include "array/kernel_room.h"
#include "math/compact.h"
#include <string.h>

enum { COUNT, POSITIONS };

static drupe_status launch(drupe_target *target, int variant, const drupe_array *const *arrays, size_t count,
                           const drupe_mask_params *p)
{
    drupe_kernel_call call = {.parts = drupe_kernel_parts(SHAPE_MASK, variant, DRUPE_UINT8),
                              .count = count,
                              .reads = ~UINT32_C(1) & ((1u << count) - 1),
                              .writes = 1,
                              .params = p,
                              .params_size = sizeof *p,
                              .items = drupe_mask_blocks((size_t)p->n) * target->group};
    memcpy(call.arrays, arrays, count * sizeof *arrays);
    return drupe_array_kernel(target, &call);
}

drupe_status drupe_kernel_mask_count(drupe_target *target, const drupe_array *mask, const drupe_array *counts)
{
    drupe_array each = {0};
    const size_t blocks = drupe_mask_blocks(mask->size);
    const drupe_mask_params p = {.n = (drupe_i64)mask->size, .block = (drupe_i64)DRUPE_MASK_BLOCK};
    const drupe_array *const arrays[] = {&each, mask};
    const drupe_scan scan = {.outer = 1, .n = blocks, .inner = 1, .type = DRUPE_ELEMENT_I64, .initial = true};
    DRUPE_TRY(drupe_array_result(mask->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &blocks, &each));
    drupe_status status = launch(target, COUNT, arrays, 2, &p);
    if (status == DRUPE_OK) status = drupe_kernel_scan(target, &scan, &each, counts);
    drupe_array_clear(&each);
    return status;
}

drupe_status drupe_kernel_mask_positions(drupe_target *target, const drupe_array *mask, int ndim,
                                         const size_t *shape, const drupe_array *counts,
                                         const drupe_array *to)
{
    drupe_mask_params p = {.n = (drupe_i64)mask->size,
                           .block = (drupe_i64)DRUPE_MASK_BLOCK,
                           .room = (drupe_i64)to->size / ndim,
                           .ndim = ndim};
    const drupe_array *const arrays[] = {to, mask, counts};
    for (int d = 0; d < ndim; d++) p.shape[d] = (drupe_i64)shape[d];
    return launch(target, POSITIONS, arrays, 3, &p);
}

/* The index space of `count` rows of `row` elements, picked from or put into n of them. */
static drupe_gather rows_of(size_t count, size_t row, size_t n, drupe_dtype dtype)
{
    drupe_gather g = {.element = drupe_dtype_size(dtype),
                      .ndim = row == 1 ? 1 : 2,
                      .points = 1,
                      .arrays = 1,
                      .mode = DRUPE_INDEX_CLIP,
                      .shape = {count, row},
                      .at = {0, 1},
                      .other = {(ptrdiff_t)row, 1},
                      .index = {{1, 0}},
                      .length = {(int64_t)n},
                      .step = {(ptrdiff_t)row}};
    return g;
}

static drupe_status flat_positions(drupe_target *target, const drupe_array *mask, const drupe_array *counts,
                                   size_t count, drupe_array *positions)
{
    DRUPE_TRY(drupe_array_result(mask->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &count, positions));
    drupe_status status = drupe_kernel_mask_positions(target, mask, 1, &mask->size, counts, positions);
    if (status != DRUPE_OK) drupe_array_clear(positions);
    return status;
}

drupe_status drupe_kernel_mask_compact(drupe_target *target, const drupe_array *mask,
                                       const drupe_array *counts, const drupe_array *from,
                                       const drupe_array *to)
{
    drupe_array positions = {0};
    const size_t count = to->shape[0];
    const drupe_gather g = rows_of(count, to->size / count, mask->size, to->dtype);
    DRUPE_TRY(flat_positions(target, mask, counts, count, &positions));
    drupe_status status = drupe_kernel_gather(target, &g, to, from, &positions);
    drupe_array_clear(&positions);
    return status;
}

/* --- Assignment ----------------------------------------------------------------------------------------- */

static drupe_status run_compare(void *const *pointers, const void *params)
{
    const int64_t *total = pointers[0];
    const size_t values = *(const size_t *)params;
    if ((size_t)*total == values) return DRUPE_OK;
    return drupe_mask_mismatch(values, (size_t)*total);
}

drupe_status drupe_kernel_mask_expand(drupe_target *target, const drupe_array *mask, const drupe_array *from,
                                      size_t values, const drupe_array *to)
{
    drupe_array counts = {0}, total = {0}, positions = {0};
    const size_t length = drupe_mask_blocks(mask->size) + 1;
    const drupe_gather g = rows_of(values, values ? from->size / values : 1, mask->size, to->dtype);
    DRUPE_TRY(drupe_array_result(mask->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &length, &counts));
    drupe_status status = drupe_kernel_mask_count(target, mask, &counts);
    drupe_array_view(&counts, &total);
    total.offset += length - 1;
    total.size = total.shape[0] = 1;
    if (status == DRUPE_OK && from->size) {
        status = flat_positions(target, mask, &counts, values, &positions);
        if (status == DRUPE_OK)
            status = drupe_kernel_scatter_known(target, &g, to, from, &positions, &total, values);
        drupe_array_clear(&positions);
    }
    const drupe_array *const arrays[] = {&total};
    const drupe_call call = {.label = "expand",
                             .fn = run_compare,
                             .params = &values,
                             .params_size = sizeof values,
                             .arrays = arrays,
                             .count = 1,
                             .brief = true,
                             .doubted = to,
                             .reads = 1};
    if (status == DRUPE_OK) status = drupe_array_call(&call);
    drupe_array_clear(&total);
    drupe_array_clear(&counts);
    return status;
}
