/* Opening a backend: its library, its devices, and what these are called. */
#include "core/device/device_room.h"
#include <stdlib.h>
#include <string.h>

/* Devices that stand in the list are numbered by type. */
static drupe_status slot_name_devices(drupe_slot *slot)
{
    unsigned numbers[DRUPE_DEVICE_CUSTOM + 1] = {0};
    for (uint32_t i = 0; i < slot->ndevices; i++) {
        drupe_device *device = slot->devices[i];
        drupe_text name = {0};
        drupe_text_printf(&name, "%s:%s:%u", slot->backend->name, drupe_device_type_name(device->type),
                          numbers[device->type]++);
        DRUPE_TRY(drupe_device_rename(device, drupe_text_take(&name)));
    }
    return DRUPE_OK;
}

/* What only serves as the parent of devices in the list says so. */
static drupe_status slot_name_hidden(drupe_slot *slot)
{
    for (uint32_t i = 0; i < slot->ndevices; i++) {
        for (drupe_device *above = slot->devices[i]->parent; above; above = above->parent) {
            bool hidden = true;
            for (uint32_t k = 0; k < slot->ndevices; k++) hidden &= slot->devices[k] != above;
            if (hidden && !strchr(above->filter, '(')) {
                drupe_text name = {0};
                drupe_text_printf(&name, "%s (hidden by %s)", above->filter, drupe_device_selector(NULL));
                DRUPE_TRY(drupe_device_rename(above, drupe_text_take(&name)));
            }
        }
    }
    return DRUPE_OK;
}

/* What another attempt may not meet again: it is made at the next use. */
static bool is_transient(drupe_status status)
{
    return status == DRUPE_E_NO_MEMORY || status == DRUPE_E_BUSY;
}

/* A device that cannot be opened is left out; the others serve. */
static drupe_status slot_open_devices(drupe_slot *slot)
{
    uint32_t count = 0;
    DRUPE_TRY(slot->backend->device_count(slot->state, &count));
    slot->devices = calloc(count ? count : 1, sizeof *slot->devices);
    if (!slot->devices)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of %u devices.", count);
    slot->ndevices = 0;
    const uint32_t when = drupe_settings_wipe_now();
    for (uint32_t i = 0; i < count; i++) {
        drupe_device *device;
        DRUPE_TRY(drupe_device_new(slot, NULL, &device));
        atomic_init(&device->wipe, when);
        device->opened = true;
        drupe_status status = slot->backend->device_open(slot->state, i, device);
        if (status != DRUPE_OK) {
            drupe_error kept = *drupe_error_last();
            drupe_device_release(device);
            if (is_transient(status)) return drupe_error_restore(&kept);
            continue;
        }
        device->type = slot->backend->device_type(device);
        if ((unsigned)device->type > DRUPE_DEVICE_CUSTOM) device->type = DRUPE_DEVICE_CUSTOM;
        slot->devices[slot->ndevices++] = device;
    }
    DRUPE_TRY(slot_name_devices(slot)); /* parts are named by what they are parts of */
    if (drupe_device_selector(NULL)) {
        DRUPE_TRY(drupe_selector_apply(slot));
        DRUPE_TRY(slot_name_hidden(slot));
        DRUPE_TRY(slot_name_devices(slot));
    }
    for (uint32_t i = 0; i < slot->ndevices; i++) slot->devices[i]->due++;
    return DRUPE_OK;
}

void drupe_slot_unload(drupe_slot *slot)
{
    for (uint32_t i = 0; i < slot->ndevices; i++) drupe_device_release(slot->devices[i]);
    free(slot->devices);
    slot->devices = NULL;
    slot->ndevices = 0;
    slot->backend->unload(slot->state);
    slot->state = NULL;
}

static drupe_status slot_load_locked(drupe_slot *slot)
{
    const drupe_backend *backend;
    DRUPE_TRY(drupe_layer_apply(slot->base, (size_t)(slot - drupe_slot_at(0)), &backend));
    if (slot->backend != backend) slot->backend = backend;
    DRUPE_TRY(backend->load(&slot->state));
    drupe_status status = slot_open_devices(slot);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        drupe_slot_unload(slot);
        return drupe_error_restore(&kept);
    }
    return DRUPE_OK;
}

drupe_status drupe_slot_load(drupe_slot *slot)
{
    DRUPE_TRY(drupe_core_check());
    if (atomic_load_explicit(&slot->loaded, memory_order_acquire)) return DRUPE_OK;
    drupe_status status = DRUPE_OK;
    pthread_mutex_lock(&slot->lock);
    if (slot->failed) {
        status = drupe_error_restore(&slot->error);
    } else if (!atomic_load(&slot->loaded)) {
        status = slot_load_locked(slot);
        slot->failed = status != DRUPE_OK && !is_transient(status);
        drupe_core_note("backend %s: %s", slot->backend->name,
                        status != DRUPE_OK ? drupe_error_last()->text : "opened");
        if (slot->failed) slot->error = *drupe_error_last();
        if (status == DRUPE_OK) atomic_store_explicit(&slot->loaded, 1, memory_order_release);
    }
    pthread_mutex_unlock(&slot->lock);
    return status;
}
