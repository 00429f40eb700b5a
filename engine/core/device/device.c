/* Devices: the object, its name, and the list of living sub-devices. */
#include "core/device/device_room.h"
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t living_lock = PTHREAD_MUTEX_INITIALIZER;
static drupe_device *living; /* sub-devices that filters may find */

drupe_status drupe_device_new(drupe_slot *slot, drupe_device *parent, drupe_device **device)
{
    *device = NULL;
    drupe_device *fresh = drupe_object_new(parent ? &slot->live : NULL, slot->backend, sizeof *fresh,
                                           slot->backend->size.device);
    if (!fresh) return DRUPE_E_NO_MEMORY;
    fresh->slot = slot;
    fresh->parent = drupe_device_retain(parent);
    fresh->root = parent ? parent->root : fresh;
    fresh->type = parent ? parent->type : DRUPE_DEVICE_CUSTOM;
    fresh->filter = "";
    pthread_mutex_init(&fresh->info_lock, NULL);
    *device = fresh;
    return DRUPE_OK;
}

drupe_device *drupe_device_retain(drupe_device *device)
{
    if (device) drupe_object_retain(device);
    return device;
}

void drupe_device_release(drupe_device *device)
{
    if (!device || !drupe_object_release(device)) return;
    drupe_device_conceal(device);
    void (*close)(drupe_device *) = device->slot->backend->device_close;
    if (close && device->opened && !drupe_device_silent(device)) close(device);
    free(atomic_load(&device->loss));
    drupe_info_clear(device);
    pthread_mutex_destroy(&device->info_lock);
    if (*device->filter) free((char *)device->filter);
    drupe_device *parent = device->parent;
    drupe_object_free(parent && !device->listed ? &device->slot->live : NULL, device);
    drupe_device_release(parent);
}

drupe_status drupe_device_rename(drupe_device *device, char *filter)
{
    if (!filter) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the name of a device.");
    if (*device->filter) free((char *)device->filter);
    device->filter = filter;
    return DRUPE_OK;
}

void drupe_device_announce(drupe_device *device)
{
    pthread_mutex_lock(&living_lock);
    device->sub_next = living;
    if (living) living->sub_prev = device;
    living = device;
    pthread_mutex_unlock(&living_lock);
}

void drupe_device_conceal(drupe_device *device)
{
    pthread_mutex_lock(&living_lock);
    if (device->sub_prev) device->sub_prev->sub_next = device->sub_next;
    if (device->sub_next) device->sub_next->sub_prev = device->sub_prev;
    if (living == device) living = device->sub_next;
    device->sub_prev = device->sub_next = NULL;
    pthread_mutex_unlock(&living_lock);
}

drupe_device *drupe_device_living(const char *filter)
{
    pthread_mutex_lock(&living_lock);
    drupe_device *found = living;
    while (found && (strcmp(found->filter, filter) != 0 || !drupe_object_try_retain(found)))
        found = found->sub_next;
    pthread_mutex_unlock(&living_lock);
    return found;
}

drupe_status drupe_device_set_add(drupe_device_set *set, drupe_device *device)
{
    drupe_device **devices = set->devices;
    size_t i = 0;
    while (i < set->count && devices[i] != device) i++;
    if (i < set->count) {
        drupe_device_release(device);
        return DRUPE_OK;
    }
    if (set->count == set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 16;
        devices = realloc(devices, capacity * sizeof(drupe_device *));
        if (!devices) {
            drupe_device_release(device);
            return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of devices.");
        }
        set->devices = devices;
        set->capacity = capacity;
    }
    devices[set->count++] = device;
    return DRUPE_OK;
}

void drupe_device_set_clear(drupe_device_set *set)
{
    for (size_t i = 0; i < set->count; i++) drupe_device_release(set->devices[i]);
    free(set->devices);
    *set = (drupe_device_set){0};
}

const char *drupe_device_backend(const drupe_device *device)
{
    return device->slot->backend->name;
}

drupe_device_type drupe_device_kind(const drupe_device *device)
{
    return device->type;
}

const char *drupe_device_filter(const drupe_device *device)
{
    return device->filter;
}

drupe_device *drupe_device_parent(const drupe_device *device)
{
    return device->parent;
}

drupe_device *drupe_device_root(drupe_device *device)
{
    return device->root;
}
