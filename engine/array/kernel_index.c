/* Indexing by arrays of integers as kernels for GPUs. An index that leads nowhere is written down by the
 * kernel, and told by a function of the host behind it, which copies those few words. */
#include "array/index_room.h"
#include "array/kernel_room.h"
#include "array/loop.h"
#include <inttypes.h>
#include <string.h>

enum { GATHER, SCATTER, FOLD, CLAIM };

typedef struct report_names {
    const char *label;
    int64_t length[2];
    int axis[2];
} report_names;

static drupe_status run_report(void *const *pointers, const void *params)
{
    const int64_t *report = pointers[0];
    const report_names *names = params;
    const int k = report[2] == 1;
    if (!report[0]) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                           "index %" PRId64 " is out of bounds for axis %d with size %" PRId64, report[1],
                           names->axis[k], names->length[k]);
}

static drupe_status report_open(drupe_queue *queue, drupe_array *report)
{
    const size_t words = 3;
    DRUPE_TRY(drupe_array_result(queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &words, report));
    return drupe_array_zero(report);
}

/* `to`: what is no result if an index led nowhere. */
static drupe_status report_tell(const drupe_gather *g, const drupe_array *report, const drupe_array *to)
{
    const report_names names = {.length = {g->length[0], g->length[1]}, .axis = {g->axis[0], g->axis[1]}};
    if (g->mode != DRUPE_INDEX_RAISE) return DRUPE_OK;
    return drupe_array_call(&(drupe_call){.label = "index",
                                          .fn = run_report,
                                          .params = &names,
                                          .params_size = sizeof names,
                                          .arrays = &report,
                                          .count = 1,
                                          .brief = true,
                                          .doubted = to,
                                          .reads = 1});
}

static drupe_index_params params_of(const drupe_gather *g, int ndim)
{
    drupe_index_params p = {
        .count = 1, .base = g->base, .ndim = ndim, .points = g->points, .mode = (int)g->mode};
    for (int k = 0; k < g->arrays && k < 2; k++) {
        p.length[k] = g->length[k];
        p.step[k] = g->step[k];
    }
    for (int d = 0; d < ndim; d++) {
        p.count *= (drupe_i64)g->shape[d];
        p.shape[d] = (drupe_i64)g->shape[d];
        p.at[d] = g->at[d];
        p.other[d] = g->other[d];
        for (int k = 0; k < g->arrays && k < 2; k++) p.index[k][d] = g->index[k][d];
    }
    return p;
}

bool drupe_kernel_indexes(const drupe_target *target, const drupe_gather *g)
{
    size_t points = 1;
    for (int d = 0; d < g->points; d++) points *= g->shape[d];
    return drupe_target_remote(target) && g->ndim <= DRUPE_KERNEL_DIMS && g->arrays <= 2 &&
           points < INT32_MAX;
}

static drupe_status launch(drupe_target *target, int variant, drupe_dtype dtype,
                           const drupe_array *const *arrays, size_t count, uint32_t writes,
                           const drupe_index_params *p)
{
    drupe_kernel_call call = {.parts = drupe_kernel_parts(SHAPE_INDEX, variant, dtype),
                              .count = count,
                              .reads =
                                  ((1u << count) - 1) & ~(variant == GATHER || variant == FOLD ? 1u : 0u),
                              .writes = writes,
                              .params = p,
                              .params_size = sizeof *p,
                              .items = (size_t)p->count};
    memcpy(call.arrays, arrays, count * sizeof *arrays);
    return drupe_array_kernel(target, &call);
}

drupe_status drupe_kernel_gather(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                                 const drupe_array *from, const drupe_array *index)
{
    drupe_array report = {0};
    const bool raises = g->mode == DRUPE_INDEX_RAISE;
    const drupe_index_params p = params_of(g, g->ndim);
    const drupe_array *const arrays[] = {to, from, index,
                                         raises ? &report : to}; /* else it is not looked at */
    drupe_status status = raises ? report_open(to->queue, &report) : DRUPE_OK;
    if (status == DRUPE_OK)
        status = launch(target, GATHER, drupe_dtype_bytes(g->element), arrays, 4, 1 | 8, &p);
    if (status == DRUPE_OK) status = report_tell(g, &report, to);
    drupe_array_clear(&report);
    return status;
}

drupe_status drupe_kernel_fold(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                               const drupe_array *first, const drupe_array *second)
{
    drupe_array report = {0};
    const drupe_index_params p = params_of(g, g->ndim);
    const drupe_array *const arrays[] = {to, first, second, &report};
    drupe_status status = report_open(to->queue, &report);
    if (status == DRUPE_OK) status = launch(target, FOLD, DRUPE_INT64, arrays, 4, 1 | 8, &p);
    if (status == DRUPE_OK) status = report_tell(g, &report, to);
    drupe_array_clear(&report);
    return status;
}

/* Points of which the last that leads to a position is known then, and all are known to lead somewhere. */
static drupe_status claim(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                          const drupe_array *index, const drupe_array *report, drupe_array *owner)
{
    const drupe_index_params p = params_of(g, g->points);
    const drupe_array *const arrays[] = {owner, index, report};
    const drupe_scalar nobody = {.kind = DRUPE_SCALAR_KIND_INT, .i = -1};
    DRUPE_TRY(drupe_array_result(to->queue, DRUPE_MEM_DEVICE, DRUPE_INT32, 1, &to->size, owner));
    DRUPE_TRY(drupe_array_assign(owner, &(drupe_operand){.scalar = nobody}));
    return launch(target, CLAIM, DRUPE_INT32, arrays, 3, 1 | 4, &p);
}

drupe_status drupe_kernel_scatter(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                                  const drupe_array *from, const drupe_array *index)
{
    drupe_array report = {0}, owner = {0};
    drupe_index_params p = params_of(g, g->ndim);
    const drupe_array *const arrays[] = {to, from, index, &report, &owner};
    p.claimed = 1;
    drupe_status status = report_open(to->queue, &report);
    if (status == DRUPE_OK) status = claim(target, g, to, index, &report, &owner);
    if (status == DRUPE_OK) status = launch(target, SCATTER, drupe_dtype_bytes(g->element), arrays, 5, 1, &p);
    if (status == DRUPE_OK) status = report_tell(g, &report, to);
    drupe_array_clear(&owner);
    drupe_array_clear(&report);
    return status;
}

drupe_status drupe_kernel_scatter_known(drupe_target *target, const drupe_gather *g, const drupe_array *to,
                                        const drupe_array *from, const drupe_array *index,
                                        const drupe_array *report, size_t wanted)
{
    drupe_index_params p = params_of(g, g->ndim);
    const drupe_array *const arrays[] = {to, from, index, report, report};
    p.wanted = (drupe_i64)wanted;
    return launch(target, SCATTER, drupe_dtype_bytes(g->element), arrays, 5, 1, &p);
}
