/* Searches in sorted arrays, sets, counts, lines through points: loops of the host. */
#include "array/array_room.h"
#include "array/kernel_room.h"
#include "array/order.h"
#include "math/counting.h"
#include "math/scratch.h"
#include "math/search.h"
#include "math/sort.h"

/* Inputs of one call, each contiguous in the type that its loop takes. */
typedef struct inputs {
    drupe_array arrays[3];
    size_t count;
} inputs;

static drupe_status inputs_add(inputs *in, const drupe_array *array, drupe_dtype dtype)
{
    DRUPE_TRY(drupe_array_contiguous_as(array, dtype, &in->arrays[in->count]));
    in->count++;
    return DRUPE_OK;
}

static void inputs_clear(inputs *in)
{
    while (in->count) drupe_array_clear(&in->arrays[--in->count]);
}

/* Arrays without elements have no part in a call. */
static drupe_status submit(const char *label, drupe_call_fn fn, const void *params, size_t params_size,
                           const inputs *in, const drupe_array *out)
{
    const drupe_array *arrays[4] = {out};
    for (size_t i = 0; i < in->count; i++) arrays[1 + i] = &in->arrays[i];
    const drupe_call call = {.label = label,
                             .fn = fn,
                             .params = params,
                             .params_size = params_size,
                             .arrays = arrays,
                             .count = 1 + in->count,
                             .reads = ((1u << in->count) - 1) << 1,
                             .writes = 1};
    return drupe_array_call(&call);
}

static drupe_status same_queue(const char *name, const drupe_array *a, const drupe_array *b)
{
    if (a->queue == b->queue) return DRUPE_OK;
    return drupe_error_set(
        DRUPE_E_PLACEMENT,
        "the arrays of %s are on different queues (of %s and %s): bring them together with "
        "to_device()",
        name, drupe_device_filter(drupe_queue_device(a->queue)),
        drupe_device_filter(drupe_queue_device(b->queue)));
}

static drupe_status result_for(const drupe_array *shaped, drupe_dtype dtype, drupe_array *out)
{
    return drupe_array_result(shaped->queue, drupe_memory_kind(shaped->memory), dtype, shaped->ndim,
                              shaped->shape, out);
}

/* --- searchsorted ----------------------------------------------------------------------------------------
 */

typedef struct search_params {
    drupe_search search;
    bool by_sorter;
} search_params;

/* The elements in the order of the sorter. */
static drupe_status gather(const drupe_search *s, const int64_t *sorter, char *sorted)
{
    const size_t size = drupe_element_size(s->type);
    for (size_t i = 0; i < s->n; i++) {
        if ((uint64_t)sorter[i] >= s->n)
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                                   "searchsorted: sorter holds %lld, and the array has %zu elements",
                                   (long long)sorter[i], s->n);
        memcpy(sorted + i * size, (const char *)s->sorted + (size_t)sorter[i] * size, size);
    }
    return DRUPE_OK;
}

static drupe_status search_call(void *const *pointers, const void *params)
{
    const search_params *p = params;
    drupe_search search = p->search;
    search.places = pointers[0];
    search.sorted = pointers[1];
    search.values = pointers[2];
    const size_t bytes = p->by_sorter ? search.n * drupe_element_size(search.type) : 0;
    void *ordered = p->by_sorter ? drupe_scratch_get(bytes) : NULL;
    if (p->by_sorter && !ordered)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for a search.");
    drupe_status status = p->by_sorter ? gather(&search, pointers[3], ordered) : DRUPE_OK;
    if (p->by_sorter) search.sorted = ordered;
    if (status == DRUPE_OK) drupe_search_run(&search);
    drupe_scratch_release(ordered, bytes);
    return status;
}

drupe_status drupe_array_search(const drupe_array *sorted, const drupe_array *values, bool right,
                                const drupe_array *sorter, drupe_array *out)
{
    if (sorted->ndim != 1 || (sorter && (sorter->ndim != 1 || sorter->size != sorted->size)))
        return drupe_error_set(DRUPE_E_INVALID,
                               "searchsorted: the array to search in has one dimension, and its sorter "
                               "the same size");
    DRUPE_TRY(same_queue("searchsorted", sorted, values));
    if (sorter) DRUPE_TRY(same_queue("searchsorted", sorted, sorter));
    const drupe_dtype common = drupe_dtype_promote(sorted->dtype, values->dtype);
    const search_params params = {
        {.n = sorted->size, .m = values->size, .type = drupe_array_element(common), .right = right},
        sorter != NULL};
    DRUPE_TRY(result_for(values, DRUPE_INT64, out));
    if (!out->size) return DRUPE_OK;
    if (!sorted->size)
        return drupe_array_assign(out, &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_INT}});
    inputs in = {.count = 0};
    drupe_status status = inputs_add(&in, sorted, common);
    if (status == DRUPE_OK) status = inputs_add(&in, values, common);
    if (status == DRUPE_OK && sorter) status = inputs_add(&in, sorter, DRUPE_INT64);
    drupe_target *target;
    if (status == DRUPE_OK) status = drupe_target_get(out->queue, &target);
    if (status == DRUPE_OK && !sorter && drupe_target_remote(target))
        status = drupe_kernel_search(target, &params.search, &in.arrays[0], &in.arrays[1], out);
    else if (status == DRUPE_OK)
        status = submit("searchsorted", search_call, &params, sizeof params, &in, out);
    inputs_clear(&in);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}

/* --- isin ------------------------------------------------------------------------------------------------
 */

static drupe_status isin_call(void *const *pointers, const void *params)
{
    drupe_search search = *(const drupe_search *)params;
    const size_t bytes = search.n * drupe_element_size(search.type);
    void *sorted = drupe_scratch_get(bytes);
    if (!sorted) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for isin.");
    const drupe_sort sort = {.in = pointers[2], .out = sorted, .rows = 1, .n = search.n, .type = search.type};
    drupe_status status = drupe_sort_run(&sort);
    search.found = pointers[0];
    search.values = pointers[1];
    search.sorted = sorted;
    if (status == DRUPE_OK) drupe_search_run(&search);
    drupe_scratch_release(sorted, bytes);
    return status;
}

drupe_status drupe_array_isin(const drupe_array *values, const drupe_array *set, bool invert,
                              drupe_array *out)
{
    DRUPE_TRY(same_queue("isin", values, set));
    const drupe_dtype common = drupe_dtype_promote(values->dtype, set->dtype);
    const drupe_search search = {
        .n = set->size, .m = values->size, .type = drupe_array_element(common), .absent = invert};
    DRUPE_TRY(result_for(values, DRUPE_BOOL, out));
    if (!out->size) return DRUPE_OK;
    if (!set->size)
        return drupe_array_assign(out,
                                  &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_BOOL, .i = invert}});
    inputs in = {.count = 0};
    drupe_status status = inputs_add(&in, values, common);
    if (status == DRUPE_OK) status = inputs_add(&in, set, common);
    drupe_target *target;
    if (status == DRUPE_OK) status = drupe_target_get(out->queue, &target);
    if (status == DRUPE_OK && drupe_kernel_sorts(target, &(drupe_sort){.n = set->size}))
        status = drupe_kernel_isin(target, &search, &in.arrays[1], &in.arrays[0], out);
    else if (status == DRUPE_OK)
        status = submit("isin", isin_call, &search, sizeof search, &in, out);
    inputs_clear(&in);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}

/* --- Counts and lines ------------------------------------------------------------------------------------
 */

static drupe_status bincount_call(void *const *pointers, const void *params)
{
    drupe_counting counting = *(const drupe_counting *)params;
    const bool weighted = counting.weights != NULL;
    counting.numbers = pointers[1];
    counting.weights = weighted ? pointers[2] : NULL;
    counting.sums = pointers[0];
    counting.counts = pointers[0];
    return drupe_counting_run(&counting);
}

drupe_status drupe_array_bincount(const drupe_array *numbers, const drupe_array *weights, size_t bins,
                                  drupe_array *out)
{
    static const double weighted;
    if (weights && !drupe_layout_same_shape(numbers, weights))
        return drupe_error_set(DRUPE_E_INVALID, "bincount: the weights have another shape than the numbers");
    if (weights) DRUPE_TRY(same_queue("bincount", numbers, weights));
    DRUPE_TRY(drupe_array_result(numbers->queue, drupe_memory_kind(numbers->memory),
                                 weights ? DRUPE_FLOAT64 : DRUPE_INT64, 1, &bins, out));
    if (!bins) return DRUPE_OK;
    if (!numbers->size)
        return drupe_array_assign(out, &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_INT}});
    const drupe_counting counting = {.n = numbers->size, .bins = bins, .weights = weights ? &weighted : NULL};
    inputs in = {.count = 0};
    drupe_status status = inputs_add(&in, numbers, DRUPE_INT64);
    if (status == DRUPE_OK && weights) status = inputs_add(&in, weights, DRUPE_FLOAT64);
    if (status == DRUPE_OK) status = submit("bincount", bincount_call, &counting, sizeof counting, &in, out);
    inputs_clear(&in);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}

static drupe_status interp_call(void *const *pointers, const void *params)
{
    drupe_interp interp = *(const drupe_interp *)params;
    interp.out = pointers[0];
    interp.x = pointers[1];
    interp.xp = pointers[2];
    interp.fp = pointers[3];
    drupe_interp_run(&interp);
    return DRUPE_OK;
}

drupe_status drupe_array_interp(const drupe_array *x, const drupe_array *xp, const drupe_array *fp,
                                double left, double right, drupe_array *out)
{
    const drupe_array *const given[] = {x, xp, fp};
    if (xp->ndim != 1 || fp->ndim != 1 || xp->size != fp->size || !xp->size)
        return drupe_error_set(DRUPE_E_INVALID,
                               "interp: xp and fp have one dimension and the same size, 1 at least");
    DRUPE_TRY(same_queue("interp", x, xp));
    DRUPE_TRY(same_queue("interp", x, fp));
    DRUPE_TRY(result_for(x, DRUPE_FLOAT64, out));
    if (!out->size) return DRUPE_OK;
    const drupe_interp interp = {.m = x->size, .n = xp->size, .left = left, .right = right};
    inputs in = {.count = 0};
    drupe_status status = DRUPE_OK;
    for (int i = 0; status == DRUPE_OK && i < 3; i++) status = inputs_add(&in, given[i], DRUPE_FLOAT64);
    if (status == DRUPE_OK) status = submit("interp", interp_call, &interp, sizeof interp, &in, out);
    inputs_clear(&in);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}
