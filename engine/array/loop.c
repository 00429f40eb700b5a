/* See loop.h. */
#include "array/loop.h"

drupe_status drupe_array_same_queue(const char *what, const drupe_array *a, const drupe_array *b)
{
    if (a->queue == b->queue) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_PLACEMENT,
                           "%s are on different queues (of %s and %s): bring them together with to_device()",
                           what, drupe_device_filter(drupe_queue_device(a->queue)),
                           drupe_device_filter(drupe_queue_device(b->queue)));
}

drupe_status drupe_array_result_beside(const drupe_array *beside, drupe_dtype dtype, int ndim,
                                       const size_t *shape, drupe_array *out)
{
    return drupe_array_result(beside->queue, drupe_memory_kind(beside->memory), dtype, ndim, shape, out);
}

drupe_status drupe_array_zero(drupe_array *out)
{
    const drupe_operand zero = {.scalar = {.kind = DRUPE_SCALAR_KIND_INT}};
    drupe_status status = drupe_array_assign(out, &zero);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}

void drupe_loop_open(drupe_loop *loop, drupe_array *out)
{
    loop->out = out;
    loop->status = DRUPE_OK;
    loop->count = 0;
}

void drupe_loop_take(drupe_loop *loop, const drupe_array *array, drupe_dtype dtype)
{
    drupe_array *in = &loop->in[loop->count];
    if (loop->status != DRUPE_OK) return;
    drupe_array_none(in);
    loop->status = drupe_array_contiguous_as(array, dtype, in);
    if (loop->status == DRUPE_OK) loop->count++;
}

drupe_target *drupe_loop_remote(drupe_loop *loop)
{
    drupe_target *target;
    if (loop->status == DRUPE_OK) loop->status = drupe_target_get(loop->out->queue, &target);
    return loop->status == DRUPE_OK && drupe_target_remote(target) ? target : NULL;
}

void drupe_loop_call(drupe_loop *loop, const char *label, drupe_call_fn fn, const void *params,
                     size_t params_size)
{
    const drupe_array *arrays[1 + DRUPE_LOOP_INPUTS] = {loop->out};
    for (size_t i = 0; i < loop->count; i++) arrays[1 + i] = &loop->in[i];
    const drupe_call call = {.label = label,
                             .fn = fn,
                             .params = params,
                             .params_size = params_size,
                             .arrays = arrays,
                             .count = 1 + loop->count,
                             .reads = ~UINT32_C(1),
                             .writes = 1};
    if (loop->status == DRUPE_OK) loop->status = drupe_array_call(&call);
}

drupe_status drupe_loop_close(drupe_loop *loop)
{
    while (loop->count) drupe_array_clear(&loop->in[--loop->count]);
    if (loop->status != DRUPE_OK) drupe_array_clear(loop->out);
    return loop->status;
}
