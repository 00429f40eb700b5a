/* Unified shared memory by tier.
 *
 * Drivers refuse alignments above their largest vector (128 bytes), some even below; a block is then made
 * larger and the pointer moved up, and the context's map remembers the start. Only such pointers are in the
 * map. */
#include "opencl.h"
#include <string.h>

#define LARGEST_NATIVE_ALIGN 128u
#define MOST_WIPE            ((size_t)1 << 30) /* some drivers get single fills of 2 GiB and more wrong */

static _Atomic(uint64_t) freed; /* blocks */

uint64_t drupe_cl_mem_freed(void)
{
    return atomic_load_explicit(&freed, memory_order_acquire);
}

static bool has_kind(unsigned tiers, const drupe_cl_caps *caps, drupe_mem_kind kind)
{
    if (tiers & DRUPE_CL_TIER_INTEL) return caps->intel_kinds[kind];
    return tiers & DRUPE_CL_TIER_FINE || (tiers & DRUPE_CL_TIER_COARSE && kind == DRUPE_MEM_DEVICE);
}

drupe_usm_support drupe_cl_usm_support(const drupe_cl_caps *caps, drupe_mem_kind kind)
{
    return has_kind(caps->tiers, caps, kind) ? DRUPE_USM_NATIVE : DRUPE_USM_NONE;
}

/* Core has asked the device; beside others in one context it may have less. */
static drupe_status check_kind(const drupe_cl_context *context, const drupe_cl_device *device,
                               drupe_mem_kind kind)
{
    if (has_kind(context->tier, &device->caps, kind)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNSUPPORTED,
                           "The devices of this OpenCL context have no %s memory in common: use a context of "
                           "one device, or allocate device memory and copy.",
                           drupe_mem_kind_name(kind));
}

/* `*code` is CL_SUCCESS with a NULL result where the function gives no code (SVM). */
static void *alloc_native(const drupe_cl_context *context, const drupe_cl_device *device, drupe_mem_kind kind,
                          size_t size, cl_uint align, cl_int *code)
{
    *code = CL_SUCCESS;
    if (context->tier != DRUPE_CL_TIER_INTEL) {
        cl_svm_mem_flags fine = context->tier == DRUPE_CL_TIER_FINE ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0;
        return context->api->SVMAlloc(context->id, CL_MEM_READ_WRITE | fine, size, align);
    }
    switch (kind) {
    case DRUPE_MEM_HOST: return context->intel.alloc_host(context->id, NULL, size, align, code);
    case DRUPE_MEM_SHARED:
        return context->intel.alloc_shared(context->id, device->id, NULL, size, align, code);
    default: return context->intel.alloc_device(context->id, device->id, NULL, size, align, code);
    }
}

static void free_native(const drupe_cl_context *context, void *pointer)
{
    if (context->tier == DRUPE_CL_TIER_INTEL) {
        context->intel.mem_free(context->id, pointer);
    } else {
        context->api->SVMFree(context->id, pointer);
    }
}

/* --- Guards ----------------------------------------------------------------------------------------------
 */

static void *take_guarded(void *user, size_t size)
{
    const drupe_cl_area *area = user;
    cl_int code;
    return alloc_native(area->context, area->device, area->kind, size, 0, &code);
}

static void give_guarded(void *user, void *memory, size_t size)
{
    (void)size;
    const drupe_cl_area *area = user;
    free_native(area->context, memory);
}

/* Memory of a CPU is the process's own, with pages that can be protected; fine-grain SVM has but one kind. */
void drupe_cl_mem_watch(drupe_cl_context *context, const drupe_cl_device *only)
{
    bool intel = context->tier == DRUPE_CL_TIER_INTEL;
    if (!only->caps.cpu || !(intel || context->tier == DRUPE_CL_TIER_FINE)) return;
    for (int kind = 0; kind < (intel ? DRUPE_CL_KINDS : 1); kind++) {
        drupe_cl_area *area = &context->areas[kind];
        pthread_mutex_init(&area->guarded.lock, NULL);
        area->context = context;
        area->device = only;
        area->kind = (drupe_mem_kind)kind;
        area->guarded.user = area;
        area->guarded.give = give_guarded;
        area->guarded.take = take_guarded;
    }
}

void drupe_cl_mem_unwatch(drupe_cl_context *context)
{
    for (int kind = 0; kind < DRUPE_CL_KINDS; kind++) {
        drupe_guarded *guarded = &context->areas[kind].guarded;
        if (!guarded->take) continue;
        drupe_guarded_clear(guarded);
        pthread_mutex_destroy(&guarded->lock);
    }
}

/* NULL: there is none. */
static drupe_guarded *guarded_of(drupe_cl_context *context, drupe_mem_kind kind)
{
    drupe_guarded *guarded = &context->areas[context->tier == DRUPE_CL_TIER_INTEL ? kind : 0].guarded;
    return guarded->take ? guarded : NULL;
}

/* --- Blocks ----------------------------------------------------------------------------------------------
 */

/* Move `*pointer`, the start of a block with `align` spare bytes, up to the alignment. */
static drupe_status shift(drupe_cl_context *context, void **pointer, size_t align)
{
    void *start = *pointer;
    size_t past = (uintptr_t)start & (align - 1);
    if (past == 0) return DRUPE_OK;
    *pointer = (char *)start + (align - past);
    pthread_mutex_lock(&context->lock);
    drupe_status status = drupe_map_put(&context->shifted, pointer, sizeof *pointer, start, NULL);
    pthread_mutex_unlock(&context->lock);
    if (status != DRUPE_OK) {
        free_native(context, start);
        *pointer = NULL;
    }
    return status;
}

static drupe_status no_memory(const drupe_cl_device *device, drupe_mem_kind kind, size_t size, cl_int code)
{
    return drupe_cl_fail_as(
        DRUPE_E_NO_MEMORY, code,
        "%s (%zu bytes) of %s memory were asked for, and the OpenCL driver has none left: "
        "the device takes at most %s in one allocation and %s in all. Free what is not "
        "needed or use smaller arrays.",
        drupe_unit_bytes(size).text, size, drupe_mem_kind_name(kind),
        drupe_unit_bytes(device->caps.max_alloc).text, drupe_unit_bytes(device->caps.global_bytes).text);
}

drupe_status drupe_cl_mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                size_t size, size_t align, void **pointer)
{
    drupe_cl_context *native = drupe_native(context);
    const drupe_cl_device *member = drupe_native(drupe_context_home(context, device));
    *pointer = NULL;
    DRUPE_TRY(check_kind(native, member, kind));
    cl_int code = CL_SUCCESS;
    drupe_guarded *guarded = guarded_of(native, kind);
    if (guarded) *pointer = drupe_guarded_alloc(guarded, size, align ? align : 1);
    if (*pointer) return DRUPE_OK;
    if (align <= LARGEST_NATIVE_ALIGN) {
        *pointer = alloc_native(native, member, kind, size, (cl_uint)align, &code);
        bool refused = *pointer && align && ((uintptr_t)*pointer & (align - 1));
        if (*pointer && !refused) return DRUPE_OK;
        if (refused) free_native(native, *pointer);
        if (!align) return no_memory(member, kind, size, code);
    }
    if (size > SIZE_MAX - align) return no_memory(member, kind, size, CL_INVALID_BUFFER_SIZE);
    *pointer = alloc_native(native, member, kind, size + align, 0, &code);
    if (!*pointer) return no_memory(member, kind, size, code);
    return shift(native, pointer, align);
}

void drupe_cl_mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer)
{
    (void)device;
    drupe_cl_context *native = drupe_native(context);
    if (!pointer) return;
    atomic_fetch_add(&freed, 1);
    drupe_guarded *guarded = guarded_of(native, kind);
    if (guarded && drupe_guarded_free(guarded, pointer)) return;
    void *start = NULL;
    pthread_mutex_lock(&native->lock);
    if (native->shifted.count) start = drupe_map_remove(&native->shifted, &pointer, sizeof pointer);
    pthread_mutex_unlock(&native->lock);
    free_native(native, start ? start : pointer);
}

/* --- Overwriting ---------------------------------------------------------------------------------------- */

/* The context's own queue; needs the lock. */
static drupe_status open_helper(drupe_cl_context *native, drupe_context *context)
{
    if (native->helper) return DRUPE_OK;
    const drupe_cl_device *device = drupe_native(drupe_context_device(context, 0));
    cl_int code = CL_SUCCESS;
    drupe_signals_save();
    native->helper = native->api->CreateCommandQueue(native->id, device->id, 0, &code);
    drupe_signals_restore();
    if (code == CL_SUCCESS) return DRUPE_OK;
    native->helper = NULL;
    return drupe_cl_fail(code, "Opening a queue");
}

static cl_int fill_zeros(const drupe_cl_context *native, char *pointer, size_t size)
{
    static const cl_uchar zero = 0;
    cl_int code = CL_SUCCESS;
    for (size_t done = 0; done < size && code == CL_SUCCESS;) {
        size_t part = size - done < MOST_WIPE ? size - done : MOST_WIPE;
        if (native->tier == DRUPE_CL_TIER_INTEL)
            code = native->intel.fill(native->helper, pointer + done, &zero, 1, part, 0, NULL, NULL);
        else
            code =
                native->api->EnqueueSVMMemFill(native->helper, pointer + done, &zero, 1, part, 0, NULL, NULL);
        done += part;
    }
    cl_int end = native->api->Finish(native->helper);
    return code == CL_SUCCESS ? end : code;
}

drupe_status drupe_cl_mem_wipe(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                               void *pointer, size_t size)
{
    (void)device;
    drupe_cl_context *native = drupe_native(context);
    bool near = native->tier == DRUPE_CL_TIER_FINE ||
                (native->tier == DRUPE_CL_TIER_INTEL && kind != DRUPE_MEM_DEVICE);
    if (near) {
        memset(pointer, 0, size);
        return DRUPE_OK;
    }
    pthread_mutex_lock(&native->lock);
    drupe_status status = open_helper(native, context);
    cl_int code = status == DRUPE_OK ? fill_zeros(native, pointer, size) : CL_SUCCESS;
    pthread_mutex_unlock(&native->lock);
    return code == CL_SUCCESS ? status : drupe_cl_fail(code, "Overwriting memory");
}

/* --- Pinned host memory --------------------------------------------------------------------------------- */

/* A buffer that the driver puts into host memory, mapped for as long as it lives. Needs the lock. */
static drupe_status pin(drupe_cl_context *native, size_t size, void **pointer)
{
    cl_int code = CL_SUCCESS;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
    cl_mem buffer = native->api->CreateBuffer(native->id, flags, size, NULL, &code);
    if (code != CL_SUCCESS) return drupe_cl_fail(code, "Allocating pinned memory");
    *pointer = native->api->EnqueueMapBuffer(native->helper, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                             size, 0, NULL, NULL, &code);
    drupe_status status = code == CL_SUCCESS
                              ? drupe_map_put(&native->pinned, pointer, sizeof *pointer, buffer, NULL)
                              : drupe_cl_fail(code, "Mapping pinned memory");
    if (status != DRUPE_OK) native->api->ReleaseMemObject(buffer);
    return status;
}

drupe_status drupe_cl_mem_pin(drupe_context *context, size_t size, void **pointer)
{
    drupe_cl_context *native = drupe_native(context);
    *pointer = NULL;
    for (size_t i = 0; i < drupe_context_device_count(context); i++) {
        const drupe_cl_device *device = drupe_native(drupe_context_device(context, i));
        if (device->caps.cpu)
            return drupe_error_set(DRUPE_E_UNSUPPORTED, "A CPU device copies from all host memory alike.");
    }
    pthread_mutex_lock(&native->lock);
    drupe_status status = open_helper(native, context);
    if (status == DRUPE_OK) status = pin(native, size, pointer);
    pthread_mutex_unlock(&native->lock);
    return status;
}

void drupe_cl_mem_unpin(drupe_context *context, void *pointer)
{
    drupe_cl_context *native = drupe_native(context);
    pthread_mutex_lock(&native->lock);
    cl_mem buffer = drupe_map_remove(&native->pinned, &pointer, sizeof pointer);
    if (buffer &&
        native->api->EnqueueUnmapMemObject(native->helper, buffer, pointer, 0, NULL, NULL) == CL_SUCCESS)
        native->api->Finish(native->helper);
    if (buffer) native->api->ReleaseMemObject(buffer);
    pthread_mutex_unlock(&native->lock);
}
