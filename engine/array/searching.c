/* Searches in sorted arrays, sets, counts, lines through points: loops of the host. */
#include "array/array_room.h"
#include "array/kernel_room.h"
#include "array/loop.h"
#include "array/order.h"
#include "math/counting.h"
#include "math/scratch.h"
#include "math/search.h"
#include "math/sort.h"

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
    DRUPE_TRY(drupe_array_same_queue("the arrays of searchsorted", sorted, values));
    if (sorter) DRUPE_TRY(drupe_array_same_queue("the arrays of searchsorted", sorted, sorter));
    const drupe_dtype common = drupe_dtype_promote(sorted->dtype, values->dtype);
    const search_params params = {
        {.n = sorted->size, .m = values->size, .type = drupe_array_element(common), .right = right},
        sorter != NULL};
    DRUPE_TRY(drupe_array_result_beside(values, DRUPE_INT64, values->ndim, values->shape, out));
    if (!out->size) return DRUPE_OK;
    if (!sorted->size) return drupe_array_zero(out);
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, sorted, common);
    drupe_loop_take(&loop, values, common);
    if (sorter) drupe_loop_take(&loop, sorter, DRUPE_INT64);
    drupe_target *remote = drupe_loop_remote(&loop);
    if (remote && !sorter)
        loop.status = drupe_kernel_search(remote, &params.search, &loop.in[0], &loop.in[1], out);
    else
        drupe_loop_call(&loop, "searchsorted", search_call, &params, sizeof params);
    return drupe_loop_close(&loop);
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
    DRUPE_TRY(drupe_array_same_queue("the arrays of isin", values, set));
    const drupe_dtype common = drupe_dtype_promote(values->dtype, set->dtype);
    const drupe_search search = {
        .n = set->size, .m = values->size, .type = drupe_array_element(common), .absent = invert};
    DRUPE_TRY(drupe_array_result_beside(values, DRUPE_BOOL, values->ndim, values->shape, out));
    if (!out->size) return DRUPE_OK;
    if (!set->size)
        return drupe_array_assign(out,
                                  &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_BOOL, .i = invert}});
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, values, common);
    drupe_loop_take(&loop, set, common);
    drupe_target *remote = drupe_loop_remote(&loop);
    if (remote && drupe_kernel_sorts(remote, &(drupe_sort){.n = set->size}))
        loop.status = drupe_kernel_isin(remote, &search, &loop.in[1], &loop.in[0], out);
    else
        drupe_loop_call(&loop, "isin", isin_call, &search, sizeof search);
    return drupe_loop_close(&loop);
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
    if (weights) DRUPE_TRY(drupe_array_same_queue("the arrays of bincount", numbers, weights));
    DRUPE_TRY(drupe_array_result_beside(numbers, weights ? DRUPE_FLOAT64 : DRUPE_INT64, 1, &bins, out));
    if (!bins) return DRUPE_OK;
    if (!numbers->size) return drupe_array_zero(out);
    const drupe_counting counting = {.n = numbers->size, .bins = bins, .weights = weights ? &weighted : NULL};
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, numbers, DRUPE_INT64);
    if (weights) drupe_loop_take(&loop, weights, DRUPE_FLOAT64);
    drupe_loop_call(&loop, "bincount", bincount_call, &counting, sizeof counting);
    return drupe_loop_close(&loop);
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
    if (xp->ndim != 1 || fp->ndim != 1 || xp->size != fp->size || !xp->size)
        return drupe_error_set(DRUPE_E_INVALID,
                               "interp: xp and fp have one dimension and the same size, 1 at least");
    DRUPE_TRY(drupe_array_same_queue("the arrays of interp", x, xp));
    DRUPE_TRY(drupe_array_same_queue("the arrays of interp", x, fp));
    DRUPE_TRY(drupe_array_result_beside(x, DRUPE_FLOAT64, x->ndim, x->shape, out));
    if (!out->size) return DRUPE_OK;
    const drupe_interp interp = {.m = x->size, .n = xp->size, .left = left, .right = right};
    drupe_loop loop;
    drupe_loop_open(&loop, out);
    drupe_loop_take(&loop, x, DRUPE_FLOAT64);
    drupe_loop_take(&loop, xp, DRUPE_FLOAT64);
    drupe_loop_take(&loop, fp, DRUPE_FLOAT64);
    drupe_loop_call(&loop, "interp", interp_call, &interp, sizeof interp);
    return drupe_loop_close(&loop);
}
