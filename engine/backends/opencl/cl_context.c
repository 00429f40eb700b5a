/* Contexts over devices of one platform. A sub-device made later than its root's context is served by the
 * root: programs are built and memory is placed for the member it lies in, and only its queue names it. */
#include "opencl.h"
#include <stdlib.h>
#include <string.h>

static const drupe_cl_device *device_of(const drupe_context *context, size_t index)
{
    return drupe_native(drupe_context_device(context, index));
}

/* The first tier that every device has. */
static drupe_cl_tier common_tier(const drupe_context *context, size_t count)
{
    static const drupe_cl_tier order[] = {DRUPE_CL_TIER_INTEL, DRUPE_CL_TIER_FINE, DRUPE_CL_TIER_COARSE};
    unsigned tiers = ~0u;
    for (size_t i = 0; i < count; i++) tiers &= device_of(context, i)->caps.tiers;
    for (size_t i = 0; i < DRUPE_COUNT_OF(order); i++) {
        if (tiers & order[i]) return order[i];
    }
    return DRUPE_CL_TIER_NONE;
}

drupe_status drupe_cl_context_open(drupe_context *context)
{
    drupe_cl_context *native = drupe_native(context);
    size_t count = drupe_context_device_count(context);
    const drupe_cl_device *first = device_of(context, 0);
    pthread_mutex_init(&native->lock, NULL);
    native->api = &first->library->api;
    native->tier = common_tier(context, count);
    native->intel = first->caps.intel;
    cl_device_id *ids = calloc(count, sizeof(cl_device_id));
    if (!ids) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a context of %zu devices.", count);
    for (size_t i = 0; i < count; i++) ids[i] = device_of(context, i)->id;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)first->platform, 0};
    cl_int code = CL_SUCCESS;
    drupe_signals_save();
    drupe_threads *before = drupe_core_adoption_begin();
    native->id = native->api->CreateContext(properties, (cl_uint)count, ids, NULL, NULL, &code);
    drupe_core_adoption_end(before, first->platform);
    drupe_signals_restore();
    free(ids);
    if (code != CL_SUCCESS) return drupe_cl_fail(code, "Opening a context over %zu device(s)", count);
    if (count == 1) drupe_cl_mem_watch(native, first);
    return DRUPE_OK;
}

void drupe_cl_context_close(drupe_context *context)
{
    drupe_cl_context *native = drupe_native(context);
    if (native->helper) native->api->ReleaseCommandQueue(native->helper);
    drupe_cl_mem_unwatch(native);
    if (native->id) native->api->ReleaseContext(native->id);
    pthread_mutex_destroy(&native->lock);
    drupe_map_clear(&native->shifted);
    drupe_map_clear(&native->pinned);
    native->id = NULL;
}
