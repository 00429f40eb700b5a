/* Contexts, and the default context and queue of a device.
 *
 * A root device keeps its default context and queue although these keep the device: the circle is broken by
 * drupe_library_close(). A sub-device only borrows its default queue, so that it can go away, unless the
 * environment made it one of the library's devices. */
#include "core/core.h"
#include "core/steps.h"
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static drupe_context *all;

static void context_destroy(drupe_context *context)
{
    drupe_device *first = context->is_default ? context->devices[0] : NULL;
    if (first) {
        drupe_library_lock();
        if (first->context == context) first->context = NULL;
        drupe_library_unlock();
    }
    pthread_mutex_lock(&all_lock);
    if (context->prev)
        context->prev->next = context->next;
    else if (all == context)
        all = context->next;
    if (context->next) context->next->prev = context->prev;
    pthread_mutex_unlock(&all_lock);
    for (size_t i = 0; context->pools && i < context->ndevices * 3; i++) drupe_pool_close(&context->pools[i]);
    bool silent = false;
    for (size_t i = 0; i < context->ndevices; i++) {
        const drupe_device *device = context->devices[i];
        silent = silent || (device && drupe_device_silent(device));
    }
    if (context->opened) drupe_pinned_close(context);
    if (context->opened && !silent) context->slot->backend->context_close(context);
    for (size_t i = 0; i < context->ndevices; i++) drupe_device_release(context->devices[i]);
    free(context->pools);
    free(context->devices);
    drupe_object_free(context->slot, context);
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
    for (size_t i = 0; i < count * 3; i++) {
        drupe_pool_open(&pools[i], context, context->devices[i / 3], (drupe_mem_kind)(i % 3));
    }
    context->pools = pools;
    for (size_t i = 0; i < context->ndevices; i++) DRUPE_TRY(drupe_loss_check(context->devices[i]));
    context->opened = true;
    return context->slot->backend->context_open(context);
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
    drupe_context *fresh = drupe_object_new(slot, slot->backend, DRUPE_OBJECT_CONTEXT, sizeof *fresh,
                                            slot->backend->size.context);
    if (!fresh) return DRUPE_E_NO_MEMORY;
    fresh->slot = slot;
    drupe_status status = context_fill(fresh, devices, count);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        context_destroy(fresh);
        return drupe_error_restore(&kept);
    }
    pthread_mutex_lock(&all_lock);
    fresh->next = all;
    if (all) all->prev = fresh;
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

void drupe_context_each(void (*fn)(drupe_context *context, void *user), void *user)
{
    pthread_mutex_lock(&all_lock);
    for (drupe_context *context = all; context; context = context->next) fn(context, user);
    pthread_mutex_unlock(&all_lock);
}

/* --- Defaults ------------------------------------------------------------------------------------------- */

/* Whether the driver takes parts of this device only in contexts that were opened over them; asked once by
 * trying. Library lock; the root has its context. */
static bool stands_alone(drupe_device *part)
{
    drupe_device *root = part->root;
    if (root->parts == DRUPE_PARTS_UNTRIED) {
        drupe_queue *trial;
        drupe_status status = drupe_queue_open(root->context, part, DRUPE_QUEUE_DEFAULT, &trial);
        if (status == DRUPE_OK) drupe_queue_release(trial);
        if (status == DRUPE_OK) root->parts = DRUPE_PARTS_SHARE;
        if (status == DRUPE_E_UNSUPPORTED) root->parts = DRUPE_PARTS_ALONE;
    }
    return root->parts == DRUPE_PARTS_ALONE;
}

/* A part's own context; kept by the library for devices of its list, else borrowed as its queue is. */
static drupe_status part_context(drupe_device *part, drupe_context **context)
{
    if (part->context && drupe_object_try_retain(part->context)) {
        *context = part->context;
        return DRUPE_OK;
    }
    drupe_status status = drupe_context_open(&part, 1, context);
    drupe_context *own = *context;
    if (status != DRUPE_OK || !own) return status;
    part->context = own;
    if (part->listed)
        drupe_context_retain(own);
    else
        own->is_default = true;
    return DRUPE_OK;
}

drupe_status drupe_device_context(drupe_device *device, drupe_context **context)
{
    *context = NULL;
    DRUPE_TRY(drupe_core_check());
    drupe_device *root = device->root;
    drupe_status status = DRUPE_OK;
    drupe_library_lock();
    if (!root->context) status = drupe_context_open(&root, 1, &root->context);
    if (status == DRUPE_OK && device != root && stands_alone(device))
        status = part_context(device, context);
    else if (status == DRUPE_OK)
        *context = drupe_context_retain(root->context);
    drupe_library_unlock();
    return status;
}

static drupe_status default_queue(drupe_device *device, drupe_context *context, drupe_queue **queue)
{
    if (device->queue && drupe_object_try_retain(device->queue)) {
        *queue = device->queue;
        return DRUPE_OK;
    }
    DRUPE_TRY(drupe_queue_open(context, device, DRUPE_QUEUE_DEFAULT, queue));
    device->queue = *queue;
    (*queue)->is_default = true;
    if (!device->parent || device->listed) drupe_queue_retain(*queue);
    return DRUPE_OK;
}

drupe_status drupe_device_queue(drupe_device *device, drupe_queue **queue)
{
    *queue = NULL;
    drupe_context *context;
    DRUPE_TRY(drupe_device_context(device, &context));
    drupe_library_lock();
    drupe_status status = default_queue(device, context, queue);
    drupe_library_unlock();
    drupe_context_release(context);
    return status;
}
