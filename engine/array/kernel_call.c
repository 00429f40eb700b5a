/* Launches of the kernels for GPUs that are no operation's. They check what they are led to by themselves, so
 * checked mode, which only looks for races here, runs the same ones. */
#include "array/array_room.h"

kernel_parts drupe_kernel_parts(int shape, int variant, drupe_dtype dtype)
{
    const int32_t type = (int32_t)dtype;
    return (kernel_parts){shape, variant, 0, (int32_t)drupe_dtype_row(dtype)->compute, type, {type, -1, -1}};
}

drupe_dtype drupe_dtype_bytes(size_t size)
{
    switch (size) {
    case 1: return DRUPE_UINT8;
    case 2: return DRUPE_UINT16;
    case 4: return DRUPE_UINT32;
    case 8: return DRUPE_UINT64;
    default: return DRUPE_COMPLEX128;
    }
}

drupe_status drupe_array_kernel(drupe_target *target, const drupe_kernel_call *call)
{
    void *pointers[DRUPE_KERNEL_ARRAYS];
    drupe_arg args[DRUPE_KERNEL_ARRAYS + 1];
    drupe_access accesses[DRUPE_KERNEL_ARRAYS];
    struct drupe_memory *memories[DRUPE_KERNEL_ARRAYS + 1] = {NULL};
    drupe_effects effects = {.reads = call->reads, .writes = call->writes};
    drupe_queue *queue = call->arrays[0]->queue;
    size_t naccesses = 0;
    DRUPE_TRY(drupe_queue_pace(queue));
    for (size_t i = 0; i < call->count; i++) {
        const drupe_array *array = call->arrays[i];
        const bool writes = call->writes >> i & 1;
        pointers[i] = drupe_array_pointer(array);
        memories[i] = array->memory;
        args[i] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &pointers[i]};
        if (target->checked && array->size) accesses[naccesses++] = drupe_layout_access(array, writes);
        if (writes && !(call->reads >> i & 1) && drupe_array_covers(array))
            effects.replaces |= UINT64_C(1) << i;
    }
    args[call->count] = (drupe_arg){DRUPE_ARG_VALUE, call->params_size, call->params};
    const drupe_submission s = {.queue = queue,
                                .ordered = true,
                                .accesses = accesses,
                                .naccesses = naccesses,
                                .memories = memories,
                                .effects = &effects};
    kernel_recipe recipe;
    drupe_kernel *kernel;
    drupe_range range;
    drupe_recipe_make(&call->parts, &recipe);
    DRUPE_TRY(drupe_target_kernel(target, &recipe, &kernel));
    drupe_target_range(target, call->items, 1, &range);
    if (call->group) {
        const size_t groups = (call->items + call->group - 1) / call->group, most = target->units * 32;
        range.local[0] = call->group;
        range.global[0] = (groups < most ? groups : most) * call->group;
    }
    return drupe_submit_kernel(&s, kernel, &range, args, call->count + 1, NULL);
}
