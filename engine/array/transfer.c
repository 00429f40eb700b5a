/* Between arrays and host memory, always in C order and in the array's own type. */
#include "array/array_room.h"

drupe_status drupe_array_copy_as(const drupe_array *src, drupe_dtype dtype, drupe_queue *queue,
                                 drupe_array *out)
{
    DRUPE_TRY(drupe_array_result(queue, DRUPE_MEM_DEVICE, dtype, src->ndim, src->shape, out));
    drupe_status status = drupe_array_assign(out, &(drupe_operand){.array = src});
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}

drupe_status drupe_array_contiguous_as(const drupe_array *src, drupe_dtype dtype, drupe_array *out)
{
    if (src->dtype == dtype && drupe_array_contiguous(src)) {
        drupe_array_view(src, out);
        drupe_layout_c_order(out->ndim, out->shape, out->strides);
        return DRUPE_OK;
    }
    return drupe_array_copy_as(src, dtype, src->queue, out);
}

static void keep_drop(const drupe_keep *keep)
{
    if (keep && keep->release) keep->release(keep->object);
}

bool drupe_array_from_host_now(const drupe_array *dst, const void *host)
{
    drupe_memory *const memories[] = {dst->memory, NULL};
    const drupe_submission s = {
        .queue = dst->queue, .sound = true, .label = "from_host", .memories = memories};
    return dst->memory && drupe_array_contiguous(dst) &&
           drupe_copy_at_once(&s, drupe_array_pointer(dst), host, dst->size * drupe_dtype_size(dst->dtype),
                              NULL);
}

bool drupe_array_to_host_now(const drupe_array *src, void *host)
{
    drupe_memory *const memories[] = {NULL, src->memory};
    const drupe_submission s = {.queue = src->queue, .sound = true, .label = "to_host", .memories = memories};
    return src->memory && drupe_array_contiguous(src) &&
           drupe_copy_at_once(&s, host, drupe_array_pointer(src), src->size * drupe_dtype_size(src->dtype),
                              NULL);
}

drupe_status drupe_array_from_host(const drupe_array *dst, const void *host, bool sound,
                                   const drupe_keep *keep)
{
    const size_t bytes = dst->size * drupe_dtype_size(dst->dtype);
    drupe_array staging = {0};
    const bool direct = drupe_array_contiguous(dst);
    drupe_status status = DRUPE_OK;
    if (bytes && !direct)
        status =
            drupe_array_result(dst->queue, DRUPE_MEM_DEVICE, dst->dtype, dst->ndim, dst->shape, &staging);
    if (bytes == 0 || status != DRUPE_OK) {
        keep_drop(keep);
        return status;
    }
    const drupe_submission s = {.queue = dst->queue,
                                .ordered = true,
                                .sound = sound,
                                .keeps = keep,
                                .nkeeps = keep && keep->release ? 1 : 0,
                                .label = "from_host"};
    status = drupe_submit_copy(&s, drupe_array_pointer(direct ? dst : &staging), host, bytes, NULL);
    if (status == DRUPE_OK && !direct) status = drupe_array_assign(dst, &(drupe_operand){.array = &staging});
    drupe_array_clear(&staging);
    return status;
}

drupe_status drupe_array_to_host(const drupe_array *src, void *host, const drupe_keep *keep,
                                 drupe_event **event)
{
    const size_t bytes = src->size * drupe_dtype_size(src->dtype);
    drupe_array packed = {0};
    const drupe_submission s = {.queue = src->queue,
                                .ordered = true,
                                .sound = true,
                                .keeps = keep,
                                .nkeeps = keep && keep->release ? 1 : 0,
                                .label = "to_host"};
    *event = NULL;
    if (bytes == 0) return drupe_submit_barrier(&s, event);
    drupe_status status = drupe_array_contiguous_as(src, src->dtype, &packed);
    if (status != DRUPE_OK) {
        keep_drop(keep);
        return status;
    }
    status = drupe_submit_copy(&s, host, drupe_array_pointer(&packed), bytes, event);
    drupe_array_clear(&packed);
    return status;
}
