/* Dividing a device. Core validates, so that every backend answers the same mistakes the same way. */
#include "core/device/device_room.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* NEXT becomes the domain that it stands for on this device. */
static drupe_status settle_domain(drupe_device *device, drupe_domain *domain)
{
    uint64_t there = drupe_device_number(device, DRUPE_INFO_PARTITION_DOMAINS, 0);
    if (*domain <= DRUPE_DOMAIN_NONE || *domain >= DRUPE_domain_COUNT) {
        return drupe_error_set(DRUPE_E_INVALID, "There is no affinity domain number %d.", (int)*domain);
    }
    for (int i = DRUPE_DOMAIN_NUMA; *domain == DRUPE_DOMAIN_NEXT && i < DRUPE_DOMAIN_NEXT; i++) {
        if (there & DRUPE_FLAG(i)) *domain = (drupe_domain)i;
    }
    if (there & DRUPE_FLAG(*domain)) return DRUPE_OK;
    drupe_text list = {0};
    for (unsigned i = DRUPE_DOMAIN_NUMA; i < DRUPE_DOMAIN_NEXT; i++) {
        if (there & DRUPE_FLAG(i)) {
            drupe_text_printf(&list, "%s%s", list.length ? ", " : "",
                              drupe_info_word(DRUPE_INFO_PARTITION_DOMAINS, i));
        }
    }
    drupe_error_set(DRUPE_E_UNSUPPORTED,
                    "The device %s cannot be divided along '%s': it lies in a single such domain, or its "
                    "domains are not known. It can be divided along: %s.",
                    device->filter, drupe_info_word(DRUPE_INFO_PARTITION_DOMAINS, *domain),
                    list.length ? drupe_text_get(&list) : "none");
    drupe_text_clear(&list);
    return DRUPE_E_UNSUPPORTED;
}

static drupe_status check_form(const drupe_partition *how)
{
    bool counted = how->kind == DRUPE_SPLIT_EQUALLY || how->kind == DRUPE_SPLIT_COUNTS;
    if (how->kind == DRUPE_SPLIT_AFFINITY) return DRUPE_OK;
    if (counted && how->units && how->count > 0 && (how->kind != DRUPE_SPLIT_EQUALLY || how->count == 1)) {
        return DRUPE_OK;
    }
    return drupe_error_set(DRUPE_E_INVALID, "A partition is one number of units for equal parts, a list of "
                                            "numbers, one per sub-device, or an affinity domain.");
}

/* How many sub-devices the partition gives; settles its domain. */
static drupe_status check_partition(drupe_device *device, drupe_partition *how, size_t *parts)
{
    DRUPE_TRY(check_form(how));
    uint64_t most = drupe_device_number(device, DRUPE_INFO_PARTITION_MAX, 0);
    uint64_t kinds = drupe_device_number(device, DRUPE_INFO_PARTITION_KINDS, 0);
    uint64_t units = drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1);
    if (how->kind == DRUPE_SPLIT_AFFINITY && device->slot->backend->device_parts) {
        DRUPE_TRY(settle_domain(device, &how->domain));
        return device->slot->backend->device_parts(device, how->domain, parts);
    }
    if (!device->slot->backend->device_split || most == 0 || units < 2) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "The device %s cannot be divided: it has %llu compute unit%s.", device->filter,
                               (unsigned long long)units,
                               units == 1 ? "" : "s and its driver offers no partition");
    }
    if (!(kinds & DRUPE_FLAG(how->kind))) {
        static const char *const ways[] = {"", " equally", " by counts", " by affinity domain"};
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The device %s cannot be divided%s.", device->filter,
                               ways[how->kind]);
    }
    DRUPE_TRY(count_parts(device, how, parts));
    if (*parts > most) {
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "%zu sub-devices are too many: %s allows %llu.", *parts,
                               device->filter, (unsigned long long)most);
    }
    return DRUPE_OK;
}

/* Whether it is the division that a filter means when it says nothing. */
static bool is_plain(drupe_device *device, const drupe_partition *how)
{
    drupe_partition plain;
    uint32_t unit;
    if (!drupe_split_plain(device, &plain, &unit) || plain.kind != how->kind) return false;
    return how->kind == DRUPE_SPLIT_AFFINITY ? plain.domain == how->domain : how->units[0] == 1;
}

void drupe_split_name(drupe_device *device, const drupe_partition *partition, size_t index, drupe_text *text)
{
    drupe_partition how = *partition;
    /* A domain that does not serve keeps its own name; dividing will refuse it. */
    if (how.kind == DRUPE_SPLIT_AFFINITY && settle_domain(device, &how.domain) != DRUPE_OK) how = *partition;
    drupe_text_printf(text, "%s", device->filter);
    if (!is_plain(device, &how)) {
        drupe_text_printf(text, "{");
        if (how.kind == DRUPE_SPLIT_AFFINITY) {
            drupe_text_printf(text, "%s", drupe_info_word(DRUPE_INFO_PARTITION_DOMAINS, how.domain));
        }
        for (size_t i = 0; how.kind != DRUPE_SPLIT_AFFINITY && i < how.count; i++) {
            drupe_text_printf(text, "%s%u", i ? "+" : "", how.units[i]);
        }
        /* A list of one is no equal division. */
        drupe_text_printf(text, "%s}", how.kind == DRUPE_SPLIT_COUNTS && how.count == 1 ? "+" : "");
    }
    drupe_text_printf(text, ".%zu", index);
}

static drupe_status make_parts(drupe_device *device, const drupe_partition *how, drupe_device **subs,
                               size_t parts)
{
    for (size_t i = 0; i < parts; i++) {
        DRUPE_TRY(drupe_device_new(device->slot, device, &subs[i]));
        subs[i]->made = how->kind;
        subs[i]->made_along = how->kind == DRUPE_SPLIT_AFFINITY ? how->domain : DRUPE_DOMAIN_NONE;
    }
    for (size_t i = 0; i < parts; i++) {
        drupe_text name = {0};
        drupe_split_name(device, how, i, &name);
        DRUPE_TRY(drupe_device_rename(subs[i], drupe_text_take(&name)));
    }
    for (size_t i = 0; i < parts; i++) subs[i]->opened = true;
    DRUPE_TRY(device->slot->backend->device_split(device, how, subs, parts));
    for (size_t i = 0; i < parts; i++) drupe_device_announce(subs[i]);
    return DRUPE_OK;
}

bool drupe_split_plain(drupe_device *device, drupe_partition *how, uint32_t *unit)
{
    uint64_t kinds = drupe_device_number(device, DRUPE_INFO_PARTITION_KINDS, 0);
    *unit = 1;
    if (kinds & DRUPE_FLAG(DRUPE_SPLIT_EQUALLY)) {
        *how = (drupe_partition){.kind = DRUPE_SPLIT_EQUALLY, .count = 1, .units = unit};
        return true;
    }
    *how = (drupe_partition){.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_NEXT};
    return (kinds & DRUPE_FLAG(DRUPE_SPLIT_AFFINITY)) && settle_domain(device, &how->domain) == DRUPE_OK;
}

drupe_status drupe_device_split(drupe_device *device, const drupe_partition *partition, drupe_device **subs,
                                size_t capacity, size_t *count)
{
    *count = 0;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_loss_check(device));
    size_t parts = 0;
    drupe_partition how = *partition;
    DRUPE_TRY(check_partition(device, &how, &parts));
    if (capacity == 0) {
        *count = parts;
        return DRUPE_OK;
    }
    if (capacity < parts) {
        return drupe_error_set(DRUPE_E_INVALID, "The list has room for %zu sub-devices, %zu would be made.",
                               capacity, parts);
    }
    memset(subs, 0, parts * sizeof(drupe_device *));
    drupe_status status = make_parts(device, &how, subs, parts);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        for (size_t i = 0; i < parts; i++) drupe_device_release(subs[i]);
        memset(subs, 0, parts * sizeof(drupe_device *));
        return drupe_error_restore(&kept);
    }
    *count = parts;
    return DRUPE_OK;
}
