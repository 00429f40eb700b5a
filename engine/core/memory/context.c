/* Contexts. Default ones: queue/defaults.c. */
#include "core/memory/memory_room.h"
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static drupe_context *all;

static void context_destroy(drupe_context *context)
{
    if (context->is_default) {
        drupe_device *part = context->devices[0];
        drupe_library_lock();
        if (part->context == context) part->context = NULL;
        drupe_library_unlock();
    }
    pthread_mutex_lock(&all_lock);
    if (context->link) *context->link = context->next;
    if (context->next) context->next->link = context->link;
    pthread_mutex_unlock(&all_lock);
    for (size_t i = 0; context->pools && i < context->ndevices * 3; i++) drupe_pool_close(&context->pools[i]);
    bool silent = false;
    for (size_t i = 0; i < context->ndevices; i++)
        silent = silent || drupe_device_silent(context->devices[i]);
    if (context->ring_close) context->ring_close(context);
    if (context->opened && !silent) context->slot->backend->context_close(context);
    for (size_t i = 0; i < context->ndevices; i++) drupe_device_release(context->devices[i]);
    free(context->pools);
    free(context->devices);
    drupe_object_free(&context->slot->live, context);
}

static drupe_status context_fill(drupe_context *context, drupe_device *const *devices, size_t count)
{
    context->devices = calloc(count, sizeof(drupe_device *));
    drupe_pool *pools = calloc(count * 3, sizeof *pools);
    if (!context->devices || !pools) {
        free(pools);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a context of %zu devices.", count);
    }
    for (size_t i = 0; i < count; i++) context->devices[i] = drupe_device_retain(devices[i]);
    context->ndevices = count;
    for (size_t i = 0; i < count * 3; i++)
        drupe_pool_open(&pools[i], context, context->devices[i / 3], (drupe_mem_kind)(i % 3));
    context->pools = pools;
    for (size_t i = 0; i < context->ndevices; i++) DRUPE_TRY(drupe_loss_check(context->devices[i]));
    context->opened = context->slot->backend->context_open != NULL;
    return context->opened ? context->slot->backend->context_open(context) : DRUPE_OK;
}

static drupe_status check_devices(drupe_device *const *devices, size_t count)
{
    if (!devices || count == 0) return drupe_error_set(DRUPE_E_INVALID, "A context needs at least 1 device.");
    for (size_t i = 0; i < count; i++) {
        if (!devices[i]) return drupe_error_set(DRUPE_E_INVALID, "Device %zu of the context is missing.", i);
        if (devices[i]->slot != devices[0]->slot ||
            drupe_device_number(devices[i], DRUPE_INFO_PLATFORM_INDEX, 0) !=
                drupe_device_number(devices[0], DRUPE_INFO_PLATFORM_INDEX, 0)) {
            return drupe_error_set(DRUPE_E_INVALID,
                                   "The devices %s and %s are of different platforms and cannot share a "
                                   "context; make one for each.",
                                   devices[0]->filter, devices[i]->filter);
        }
    }
    return DRUPE_OK;
}

drupe_status drupe_context_open(drupe_device *const *devices, size_t count, drupe_context **context)
{
    *context = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(check_devices(devices, count));
    drupe_slot *slot = devices[0]->slot;
    drupe_context *fresh =
        drupe_object_new(&slot->live, slot->backend, sizeof *fresh, slot->backend->size.context);
    if (!fresh) return DRUPE_E_NO_MEMORY;
    fresh->slot = slot;
    drupe_status status = context_fill(fresh, devices, count);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        context_destroy(fresh);
        return drupe_error_restore(&kept);
    }
    pthread_mutex_lock(&all_lock);
    fresh->link = &all;
    fresh->next = all;
    if (all) all->link = &fresh->next;
    all = fresh;
    pthread_mutex_unlock(&all_lock);
    *context = fresh;
    return DRUPE_OK;
}

drupe_context *drupe_context_retain(drupe_context *context)
{
    if (context) drupe_object_retain(context);
    return context;
}

void drupe_context_release(drupe_context *context)
{
    if (context && drupe_object_release(context)) context_destroy(context);
}

size_t drupe_context_device_count(const drupe_context *context)
{
    return context->ndevices;
}

drupe_device *drupe_context_device(const drupe_context *context, size_t index)
{
    return index < context->ndevices ? context->devices[index] : NULL;
}

long drupe_context_member(const drupe_context *context, const drupe_device *device)
{
    for (const drupe_device *ancestor = device; ancestor; ancestor = ancestor->parent) {
        for (size_t i = 0; i < context->ndevices; i++) {
            if (context->devices[i] == ancestor) return (long)i;
        }
    }
    return -1;
}

drupe_device *drupe_context_home(const drupe_context *context, const drupe_device *device)
{
    const long member = drupe_context_member(context, device);
    return member < 0 ? NULL : context->devices[member];
}

size_t drupe_pool_trim(drupe_device *device)
{
    size_t freed = 0;
    if (drupe_core_check() != DRUPE_OK) return 0;
    pthread_mutex_lock(&all_lock);
    for (drupe_context *context = all; context; context = context->next) {
        for (size_t i = 0; i < context->ndevices * 3; i++)
            if (context->pools[i].root == device->root) freed += drupe_pool_trim_one(&context->pools[i]);
    }
    pthread_mutex_unlock(&all_lock);
    return freed;
}

void drupe_context_rings_close(const drupe_device *root)
{
    pthread_mutex_lock(&all_lock);
    for (drupe_context *context = all; context; context = context->next) {
        bool concerned = false;
        for (size_t i = 0; i < context->ndevices; i++)
            concerned = concerned || context->devices[i]->root == root;
        if (concerned && context->ring_close) context->ring_close(context);
    }
    pthread_mutex_unlock(&all_lock);
}

drupe_pool *drupe_pool_of(const drupe_queue *queue, drupe_mem_kind kind)
{
    drupe_context *context = drupe_base(queue)->context;
    long member = 0;
    if (context->devices[0] != drupe_base(queue)->device)
        member = drupe_context_member(context, drupe_base(queue)->device);
    return &context->pools[member * 3 + (long)kind];
}
