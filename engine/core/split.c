/* Dividing a device. Core validates, so that every backend answers the same mistakes the same way. */
#include "core/core.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many sub-devices the partition gives. */
static drupe_status count_parts(drupe_device *device, const drupe_partition *how, size_t *parts)
{
    uint64_t units = drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1), sum = 0;
    for (size_t i = 0; i < how->count; i++) {
        if (how->units[i] == 0)
            return drupe_error_set(DRUPE_E_INVALID, "A sub-device needs at least 1 unit.");
        sum += how->units[i];
    }
    if (sum > units) {
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                               "Cannot give %llu compute units to sub-devices: %s has %llu.",
                               (unsigned long long)sum, device->filter, (unsigned long long)units);
    }
    *parts = how->kind == DRUPE_SPLIT_EQUALLY ? (size_t)(units / how->units[0]) : how->count;
    return DRUPE_OK;
}

static drupe_status check_partition(drupe_device *device, const drupe_partition *how, size_t *parts)
{
    if ((how->kind != DRUPE_SPLIT_EQUALLY && how->kind != DRUPE_SPLIT_COUNTS) || !how->units ||
        how->count == 0 || (how->kind == DRUPE_SPLIT_EQUALLY && how->count != 1)) {
        return drupe_error_set(DRUPE_E_INVALID, "A partition is either one number of units for equal parts, "
                                                "or a list of numbers, one per sub-device.");
    }
    uint64_t most = drupe_device_number(device, DRUPE_INFO_PARTITION_MAX, 0);
    uint64_t kinds = drupe_device_number(device, DRUPE_INFO_PARTITION_KINDS, 0);
    uint64_t units = drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1);
    if (!device->slot->backend->device_split || most == 0 || units < 2) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "The device %s cannot be divided: it has %llu compute unit%s.", device->filter,
                               (unsigned long long)units,
                               units == 1 ? "" : "s and its driver offers no partition");
    }
    if (!(kinds & (uint64_t)how->kind)) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The device %s cannot be divided %s.", device->filter,
                               how->kind == DRUPE_SPLIT_EQUALLY ? "equally" : "by counts");
    }
    DRUPE_TRY(count_parts(device, how, parts));
    if (*parts > most) {
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "%zu sub-devices are too many: %s allows %llu.", *parts,
                               device->filter, (unsigned long long)most);
    }
    return DRUPE_OK;
}

/* "host:cpu:0" becomes "host:cpu:0.1", and that "host:cpu:0.1.0". */
static void name_part(const drupe_device *device, size_t index, drupe_device *sub)
{
    char number[24];
    snprintf(number, sizeof number, ".%zu", index);
    size_t room = sizeof sub->filter - strlen(number) - 1;
    snprintf(sub->filter, sizeof sub->filter, "%.*s%s", (int)room, device->filter, number);
}

static drupe_status make_parts(drupe_device *device, const drupe_partition *how, drupe_device **subs,
                               size_t parts)
{
    for (size_t i = 0; i < parts; i++) {
        DRUPE_TRY(drupe_device_new(device->slot, device, &subs[i]));
        name_part(device, i, subs[i]);
    }
    for (size_t i = 0; i < parts; i++) subs[i]->opened = true;
    return device->slot->backend->device_split(device, how, subs, parts);
}

drupe_status drupe_device_split(drupe_device *device, const drupe_partition *partition, drupe_device **subs,
                                size_t capacity, size_t *count)
{
    *count = 0;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_loss_check(device));
    size_t parts = 0;
    DRUPE_TRY(check_partition(device, partition, &parts));
    if (capacity == 0) {
        *count = parts;
        return DRUPE_OK;
    }
    if (capacity < parts) {
        return drupe_error_set(DRUPE_E_INVALID, "The list has room for %zu sub-devices, %zu would be made.",
                               capacity, parts);
    }
    memset(subs, 0, parts * sizeof(drupe_device *));
    drupe_status status = make_parts(device, partition, subs, parts);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        for (size_t i = 0; i < parts; i++) drupe_device_release(subs[i]);
        memset(subs, 0, parts * sizeof(drupe_device *));
        return drupe_error_restore(&kept);
    }
    *count = parts;
    return DRUPE_OK;
}
