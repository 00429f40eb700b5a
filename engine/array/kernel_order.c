/* Running sums, places of extremes and searches as kernels for GPUs. */
#include "array/kernel_room.h"

#define SCAN_EACH         8 /* elements to a work-item: EACH of scan_gpu.cl */
#define SCAN_COLUMN_LEAST 32
#define ARG_GRAIN         4096 /* elements to a split, and to a work-item */
#define ARG_COLUMN        32
#define ARG_MEMBER        16

/* --- Running sums ----------------------------------------------------------------------------------------
 */

static drupe_status scan_launch(drupe_target *target, const drupe_scan_params *p, int variant,
                                drupe_dtype dtype, const drupe_array *out, const drupe_array *in,
                                const drupe_array *before)
{
    const size_t chunks = (size_t)(p->outer * p->chunks);
    drupe_kernel_call call = {.parts = drupe_kernel_parts(SHAPE_SCAN, variant, dtype),
                              .arrays = {out, in, before ? before : in},
                              .count = 3,
                              .reads = 6,
                              .writes = 1,
                              .params = p,
                              .params_size = sizeof *p,
                              .items =
                                  variant & SCAN_COLUMN ? chunks * (size_t)p->inner : chunks * target->group};
    if (variant & SCAN_SUMS) call.parts.out = call.parts.compute;
    return drupe_array_kernel(target, &call);
}

/* Chunks of a row: as long as a group can hold, or as leaves enough columns for all units. */
static drupe_i64 scan_chunk(const drupe_target *target, const drupe_scan *scan)
{
    if (scan->inner <= 1) return (drupe_i64)target->group * SCAN_EACH;
    const size_t wanted = target->units * target->group * 4, columns = scan->outer * scan->inner;
    const size_t chunks = columns > 0 && columns < wanted ? (wanted + columns - 1) / columns : 1;
    const size_t chunk = (scan->n + chunks - 1) / chunks;
    return (drupe_i64)(chunk < SCAN_COLUMN_LEAST ? SCAN_COLUMN_LEAST : chunk);
}

drupe_status drupe_kernel_scan(drupe_target *target, const drupe_scan *scan, const drupe_array *in,
                               const drupe_array *out)
{
    const drupe_dtype dtype = (drupe_dtype)scan->type, compute = drupe_dtype_row(dtype)->compute;
    drupe_scan_params p = {.outer = (drupe_i64)scan->outer,
                           .n = (drupe_i64)scan->n,
                           .inner = (drupe_i64)scan->inner,
                           .chunk = scan_chunk(target, scan),
                           .initial = scan->initial};
    const int variant = (scan->inner > 1 ? SCAN_COLUMN : 0) | (scan->product ? SCAN_PRODUCT : 0);
    p.chunks = scan->n ? (p.n + p.chunk - 1) / p.chunk : 1;
    if (p.chunks == 1) return scan_launch(target, &p, variant, dtype, out, in, NULL);
    drupe_array sums = {0}, before = {0};
    const size_t size = (size_t)(p.outer * p.chunks * p.inner);
    drupe_scan next = *scan;
    next.n = (size_t)p.chunks;
    next.type = (drupe_element)compute;
    next.initial = false;
    drupe_status status = drupe_array_result(out->queue, DRUPE_MEM_DEVICE, compute, 1, &size, &sums);
    if (status == DRUPE_OK)
        status = drupe_array_result(out->queue, DRUPE_MEM_DEVICE, compute, 1, &size, &before);
    if (status == DRUPE_OK) status = scan_launch(target, &p, variant | SCAN_SUMS, dtype, &sums, in, NULL);
    if (status == DRUPE_OK) status = drupe_kernel_scan(target, &next, &sums, &before);
    if (status == DRUPE_OK) status = scan_launch(target, &p, variant, dtype, out, in, &before);
    drupe_array_clear(&before);
    drupe_array_clear(&sums);
    return status;
}

/* --- Places of extremes ----------------------------------------------------------------------------------
 */

static drupe_status arg_launch(drupe_target *target, const drupe_argreduce *work, drupe_arg_params *p,
                               const drupe_array *out, const drupe_array *in, const drupe_array *list)
{
    const drupe_i64 each = p->extent / p->splits;
    p->team = 1;
    p->listed = list != NULL;
    while ((p->inner == 1 || list) && p->team < (drupe_i32)target->group && p->team * ARG_MEMBER < each)
        p->team *= 2;
    drupe_kernel_call call = {.parts = drupe_kernel_parts(SHAPE_ARG, work->least, (drupe_dtype)work->type),
                              .arrays = {out, in, list ? list : in},
                              .count = 3,
                              .reads = 6,
                              .writes = 1,
                              .params = p,
                              .params_size = sizeof *p,
                              .items = (size_t)(p->outputs * p->splits * p->team)};
    return drupe_array_kernel(target, &call);
}

drupe_status drupe_kernel_argreduce(drupe_target *target, const drupe_argreduce *work, const drupe_array *in,
                                    const drupe_array *out)
{
    drupe_arg_params p = {.outputs = (drupe_i64)(work->outer * work->inner),
                          .extent = (drupe_i64)work->n,
                          .n = (drupe_i64)work->n,
                          .inner = (drupe_i64)work->inner,
                          .splits = 1};
    const bool column = work->inner > 1;
    const drupe_i64 wanted = (drupe_i64)(target->units * 16 * (column ? target->group : 1));
    const drupe_i64 most = p.extent / (column ? ARG_COLUMN : ARG_GRAIN);
    if (p.outputs < wanted) p.splits = (wanted + p.outputs - 1) / p.outputs;
    if (p.splits > most) p.splits = most > 1 ? most : 1;
    const drupe_i64 per = (p.extent + p.splits - 1) / p.splits;
    p.splits = (p.extent + per - 1) / per; /* none is empty: a place of nothing could not be listed */
    if (p.splits == 1) return arg_launch(target, work, &p, out, in, NULL);
    drupe_array places = {0};
    const size_t size = (size_t)(p.outputs * p.splits);
    DRUPE_TRY(drupe_array_result(out->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &size, &places));
    drupe_status status = arg_launch(target, work, &p, &places, in, NULL);
    p.extent = p.splits;
    p.splits = 1;
    if (status == DRUPE_OK) status = arg_launch(target, work, &p, out, in, &places);
    drupe_array_clear(&places);
    return status;
}

/* --- Searches --------------------------------------------------------------------------------------------
 */

drupe_status drupe_kernel_search(drupe_target *target, const drupe_search *search, const drupe_array *sorted,
                                 const drupe_array *values, const drupe_array *out)
{
    const drupe_search_params p = {.n = (drupe_i64)search->n,
                                   .m = (drupe_i64)search->m,
                                   .right = search->right,
                                   .absent = search->absent};
    const int variant = out->dtype == DRUPE_BOOL; /* whether it is there */
    const drupe_kernel_call call = {.parts =
                                        drupe_kernel_parts(SHAPE_SEARCH, variant, (drupe_dtype)search->type),
                                    .arrays = {out, sorted, values},
                                    .count = 3,
                                    .reads = 6,
                                    .writes = 1,
                                    .params = &p,
                                    .params_size = sizeof p,
                                    .items = search->m};
    return drupe_array_kernel(target, &call);
}

drupe_status drupe_kernel_isin(drupe_target *target, const drupe_search *search, const drupe_array *set,
                               const drupe_array *values, const drupe_array *out)
{
    drupe_array sorted = {0};
    const drupe_sort sort = {.rows = 1, .n = search->n, .type = search->type};
    DRUPE_TRY(drupe_array_result(set->queue, DRUPE_MEM_DEVICE, set->dtype, 1, &set->size, &sorted));
    drupe_status status = drupe_kernel_sort(target, &sort, set, &sorted, NULL);
    if (status == DRUPE_OK) status = drupe_kernel_search(target, search, &sorted, values, out);
    drupe_array_clear(&sorted);
    return status;
}
