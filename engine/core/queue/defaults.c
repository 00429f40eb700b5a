/* The default context and queue of a device.
 *
 * A root device keeps its default context and queue although these keep the device: the circle is broken by
 * drupe_library_close(). A sub-device only borrows its default queue, so that it can go away, unless the
 * environment made it one of the library's devices. */
#include "core/queue/launch.h"
#include <assert.h>

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
    if (status != DRUPE_OK) return status;
    assert(own);
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
    bool alone = status == DRUPE_OK && device != root && stands_alone(device);
    if (alone)
        status = part_context(device, context);
    else
        *context = drupe_context_retain(root->context); /* or NULL */
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

void drupe_device_forget(drupe_device *device)
{
    drupe_library_lock();
    drupe_queue *queue = device->queue;
    drupe_context *context = device->context;
    device->queue = NULL;
    device->context = NULL;
    drupe_library_unlock();
    drupe_queue_release(queue);
    drupe_context_release(context);
}
