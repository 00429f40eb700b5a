/* Listing and selecting devices.
 *
 * Opening a vendor library is dear (62 MiB and signal handlers for OpenCL), so selecting walks the backends
 * in order of preference and opens the next one only while it could still offer a better device. */
#include "core/device/device_room.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int score_of(const drupe_slot *slot, drupe_device_type type)
{
    static const int scores[] = {
        [DRUPE_DEVICE_CPU] = 500,
        [DRUPE_DEVICE_GPU] = 1000,
        [DRUPE_DEVICE_ACCELERATOR] = 800,
        [DRUPE_DEVICE_CUSTOM] = 100,
    };
    return scores[type] + (strcmp(slot->backend->name, "host") == 0 ? 50 : 0);
}

int drupe_device_score(const drupe_device *device)
{
    return score_of(device->slot, device->type);
}

/* --- Listing -------------------------------------------------------------------------------------------- */

/* A walk over the devices that match a filter, its path apart. */
struct matches {
    drupe_filter filter;
    long seen; /* matches but for the number */
    size_t slot;
    uint32_t device;
};

/* The next one, borrowed, or NULL. A backend that cannot be loaded has no devices. */
static drupe_device *match_next(struct matches *at)
{
    for (; at->slot < drupe_slot_count(); at->slot++, at->device = 0) {
        drupe_slot *slot = drupe_slot_at(at->slot);
        if (!drupe_filter_possible(&at->filter, at->slot) || drupe_slot_load(slot) != DRUPE_OK) continue;
        while (at->device < slot->ndevices) {
            drupe_device *device = slot->devices[at->device++];
            if (!drupe_filter_match(&at->filter, device)) continue;
            if (at->filter.number < 0 || at->seen++ == at->filter.number) return device;
        }
    }
    return NULL;
}

static drupe_status list_alternative(const drupe_filter *filter, drupe_device_set *set)
{
    struct matches at = {.filter = *filter};
    for (drupe_device *device; (device = match_next(&at)) != NULL;) {
        drupe_device *part;
        drupe_status status = drupe_path_walk(device, filter->path, filter->path_size, &part);
        if (status == DRUPE_OK) status = drupe_device_set_add(set, part);
        /* A path that leads nowhere is no error of a listing. */
        if (status == DRUPE_E_NO_MEMORY) return status;
    }
    return DRUPE_OK;
}

static const drupe_filter any_device = {.backend = -1, .type = -1, .number = -1};

static drupe_status list_all(const char *filter, drupe_device_set *set)
{
    drupe_filter one;
    if (!filter || !*filter) return list_alternative(&any_device, set);
    /* All of it is parsed first, so that a mistake opens no vendor library. */
    for (const char *text = filter; *text;) DRUPE_TRY(drupe_filter_next(&text, &one));
    for (const char *text = filter; *text;) {
        (void)!drupe_filter_next(&text, &one);
        DRUPE_TRY(list_alternative(&one, set));
    }
    return DRUPE_OK;
}

drupe_status drupe_device_list(const char *filter, drupe_device **devices, size_t capacity, size_t *count)
{
    *count = 0;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_settings_check());
    drupe_device_set set = {0};
    drupe_status status = list_all(filter, &set);
    if (status == DRUPE_OK) {
        *count = set.count;
        for (size_t i = 0; devices && i < set.count && i < capacity; i++)
            devices[i] = drupe_device_retain(set.devices[i]);
    }
    drupe_device_set_clear(&set);
    return status;
}

/* --- Selecting ------------------------------------------------------------------------------------------ */

/* The best match, borrowed, or NULL; of matches with a number there is one. */
static drupe_device *select_best(const drupe_filter *filter)
{
    drupe_device *best = NULL;
    struct matches numbered = {.filter = *filter};
    if (filter->number >= 0) return match_next(&numbered);
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        if (filter->backend >= 0 && (size_t)filter->backend != i) continue;
        /* After the first backend only a filter without one goes on: it has a type. Asked before what is
         * possible, which looks into the file system. */
        if (best && score_of(slot, (drupe_device_type)filter->type) <= drupe_device_score(best)) continue;
        if (!drupe_filter_possible(filter, i)) continue;
        if (drupe_slot_load(slot) != DRUPE_OK) continue;
        for (uint32_t d = 0; d < slot->ndevices; d++) {
            drupe_device *device = slot->devices[d];
            if (drupe_filter_match(filter, device) &&
                (!best || drupe_device_score(device) > drupe_device_score(best)))
                best = device;
        }
    }
    return best;
}

static void say_backend(drupe_text *why, int backend)
{
    if (backend == DRUPE_FILTER_ABSENT) {
        drupe_text_printf(why, " That backend is not part of this build.");
    } else if (backend >= 0 && drupe_slot_load(drupe_slot_at((size_t)backend)) != DRUPE_OK) {
        drupe_text_printf(why, " %s", drupe_error_last()->text);
    }
}

/* What there is, from the backends that are loaded, and why a named one, or without any device the first, is
 * not. `filter` may be NULL; `why` is cleared. */
static drupe_status nothing_found(const char *filter, int backend, drupe_text *why)
{
    drupe_text there = {0};
    int broken = -1;
    const char *limits, *variable = drupe_device_selector(&limits);
    for (size_t i = drupe_slot_count(); i-- > 0;) {
        if (drupe_selector_possible(i) && drupe_slot_load(drupe_slot_at(i)) != DRUPE_OK) broken = (int)i;
    }
    struct matches all = {.filter = any_device};
    for (drupe_device *device; (device = match_next(&all)) != NULL;)
        drupe_text_printf(&there, "%s%s", there.length ? ", " : "", device->filter);
    say_backend(why, backend != -1 || there.length ? backend : broken);
    if (variable) drupe_text_printf(why, " %s=%s limits the devices.", variable, limits);
    if (filter) {
        drupe_error_set(DRUPE_E_NOT_FOUND, "No device matches '%s'. There are: %s.%s", filter,
                        there.length ? drupe_text_get(&there) : "none", drupe_text_get(why));
    } else {
        drupe_error_set(DRUPE_E_NOT_FOUND, "There is no device.%s", drupe_text_get(why));
    }
    drupe_text_clear(why);
    drupe_text_clear(&there);
    return DRUPE_E_NOT_FOUND;
}

drupe_status drupe_device_select(const char *filter, drupe_device **device)
{
    *device = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_settings_check());
    drupe_filter one;
    if (filter && !*filter) filter = NULL;
    const char *wanted = filter ? filter : "gpu,cpu,accelerator,custom";
    for (const char *text = wanted; *text;) DRUPE_TRY(drupe_filter_next(&text, &one));
    int backend = -1;
    drupe_text why = {0};
    for (const char *text = wanted; *text && !*device;) {
        (void)!drupe_filter_next(&text, &one); /* it was parsed before */
        if (one.backend >= 0) backend = one.backend;
        drupe_device *found = select_best(&one);
        if (found && drupe_path_walk(found, one.path, one.path_size, device) != DRUPE_OK)
            drupe_text_printf(&why, " %s", drupe_error_last()->text);
    }
    if (!*device) return nothing_found(filter, backend, &why);
    drupe_text_clear(&why);
    return DRUPE_OK;
}
