/* The distinct elements of an array: a sort and a pass over it, in one call of the host. */
#include "array/array_room.h"
#include "array/kernel_room.h"
#include "array/loop.h"
#include "array/order.h"
#include "math/scratch.h"
#include "math/sort.h"
#include "math/unique.h"

/* What the call writes, in this order, each if it is wanted. */
enum { COUNT, VALUES, FIRSTS, INVERSE, COUNTS, RESULTS };

typedef struct unique_params {
    size_t n;
    drupe_element type;
    bool equal_nan;
    bool wanted[RESULTS];
} unique_params;

static drupe_status unique_call(void *const *pointers, const void *params)
{
    const unique_params *p = params;
    const bool placed = p->wanted[FIRSTS] || p->wanted[INVERSE];
    const size_t bytes = p->n * drupe_element_size(p->type),
                 place_bytes = placed ? p->n * sizeof(int64_t) : 0;
    void *results[RESULTS] = {NULL};
    for (int i = 0, next = 1; i < RESULTS; i++)
        if (p->wanted[i]) results[i] = pointers[next++];
    void *sorted = drupe_scratch_get(bytes), *places = placed ? drupe_scratch_get(place_bytes) : NULL;
    drupe_status status = DRUPE_OK;
    if (!sorted || (placed && !places))
        status = drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for finding distinct elements.");
    const drupe_sort sort = {
        .in = pointers[0], .out = sorted, .indices = places, .rows = 1, .n = p->n, .type = p->type};
    if (status == DRUPE_OK) status = drupe_sort_run(&sort);
    const drupe_unique unique = {.sorted = sorted,
                                 .places = places,
                                 .n = p->n,
                                 .type = p->type,
                                 .equal_nan = p->equal_nan,
                                 .values = results[VALUES],
                                 .firsts = results[FIRSTS],
                                 .inverse = results[INVERSE],
                                 .counts = results[COUNTS],
                                 .count = results[COUNT]};
    if (status == DRUPE_OK) status = drupe_unique_run(&unique);
    drupe_scratch_release(places, place_bytes);
    drupe_scratch_release(sorted, bytes);
    return status;
}

static drupe_status unique_submit(const drupe_array *in, bool equal_nan, drupe_array *const *results)
{
    unique_params params = {.n = in->size, .type = drupe_array_element(in->dtype), .equal_nan = equal_nan};
    const drupe_array *arrays[1 + RESULTS] = {in};
    size_t count = 1;
    for (int i = 0; i < RESULTS; i++) {
        params.wanted[i] = results[i] != NULL;
        if (results[i]) arrays[count++] = results[i];
    }
    const uint32_t outputs = ((1u << count) - 1) & ~1u;
    const drupe_call call = {.label = "unique",
                             .fn = unique_call,
                             .params = &params,
                             .params_size = sizeof params,
                             .arrays = arrays,
                             .count = count,
                             .reads = 1,
                             .writes = outputs};
    return drupe_array_call(&call);
}

drupe_status drupe_array_unique(const drupe_array *in, bool equal_nan, const drupe_distinct *out)
{
    drupe_array *const results[RESULTS] = {out->count, out->values, out->firsts, out->inverse, out->counts};
    drupe_array packed = {0};
    drupe_status status = drupe_array_contiguous_as(in, in->dtype, &packed);
    for (int i = 0; status == DRUPE_OK && i < RESULTS; i++)
        if (results[i])
            status = drupe_array_result_beside(in, i == VALUES ? in->dtype : DRUPE_INT64, i == COUNT ? 0 : 1,
                                               &in->size, results[i]);
    drupe_target *target;
    if (status == DRUPE_OK) status = drupe_target_get(in->queue, &target);
    if (status == DRUPE_OK && in->size && drupe_kernel_sorts(target, &(drupe_sort){.n = in->size}))
        status = drupe_kernel_unique(target, &packed, equal_nan, out);
    else if (status == DRUPE_OK && in->size)
        status = unique_submit(&packed, equal_nan, results);
    else if (status == DRUPE_OK)
        status = drupe_array_zero(out->count);
    drupe_array_clear(&packed);
    for (int i = 0; status != DRUPE_OK && i < RESULTS; i++)
        if (results[i]) drupe_array_clear(results[i]);
    return status;
}
