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

/* Where the matches of one or more alternatives are gathered; a device is taken once. */
struct gathering {
    drupe_device **devices;
    size_t capacity, count;
    drupe_device **seen; /* all matches so far, retained */
    size_t nseen, seen_capacity;
};

/* Takes `device`. */
static drupe_status gather(struct gathering *into, drupe_device *device)
{
    for (size_t i = 0; i < into->nseen; i++) {
        if (into->seen[i] != device) continue;
        drupe_device_release(device);
        return DRUPE_OK;
    }
    if (into->nseen == into->seen_capacity) {
        size_t capacity = into->seen_capacity ? into->seen_capacity * 2 : 16;
        drupe_device **seen = realloc(into->seen, capacity * sizeof(drupe_device *));
        if (!seen) {
            drupe_device_release(device);
            return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of devices.");
        }
        into->seen = seen;
        into->seen_capacity = capacity;
    }
    into->seen[into->nseen++] = device;
    if (into->count < into->capacity) into->devices[into->count] = drupe_device_retain(device);
    into->count++;
    return DRUPE_OK;
}

/* A path that leads nowhere is no error of a listing. */
static drupe_status gather_part(const drupe_filter *filter, drupe_device *device, struct gathering *into)
{
    drupe_device *part;
    drupe_status status = drupe_path_walk(device, filter->path, filter->path_size, &part);
    if (status == DRUPE_OK) return gather(into, part);
    return status == DRUPE_E_NO_MEMORY ? status : DRUPE_OK;
}

static drupe_status list_alternative(const drupe_filter *filter, struct gathering *into)
{
    long number = 0;
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        /* A backend that cannot be loaded has no devices; that is no error of a listing. */
        if (!drupe_filter_possible(filter, i) || drupe_slot_load(slot) != DRUPE_OK) continue;
        for (uint32_t d = 0; d < slot->ndevices; d++) {
            if (!drupe_filter_match(filter, slot->devices[d])) continue;
            if (filter->number >= 0 && number++ != filter->number) continue;
            DRUPE_TRY(gather_part(filter, slot->devices[d], into));
        }
    }
    return DRUPE_OK;
}

drupe_status drupe_device_list(const char *filter, drupe_device **devices, size_t capacity, size_t *count)
{
    *count = 0;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_settings_check());
    struct gathering into = {.devices = devices, .capacity = devices ? capacity : 0};
    drupe_filter any = {.backend = -1, .type = -1, .number = -1};
    drupe_status status = DRUPE_OK;
    if (!filter || !*filter) {
        status = list_alternative(&any, &into);
    } else {
        /* All of it is parsed first, so that a mistake opens no vendor library. */
        drupe_filter one;
        for (const char *text = filter; *text;) DRUPE_TRY(drupe_filter_next(&text, &one));
        for (const char *text = filter; status == DRUPE_OK && *text;) {
            status = drupe_filter_next(&text, &one);
            if (status == DRUPE_OK) status = list_alternative(&one, &into);
        }
    }
    for (size_t i = 0; i < into.nseen; i++) drupe_device_release(into.seen[i]);
    free(into.seen);
    if (status != DRUPE_OK) {
        for (size_t i = 0; devices && i < into.count && i < into.capacity; i++)
            drupe_device_release(devices[i]);
        return status;
    }
    *count = into.count;
    return DRUPE_OK;
}

/* --- Selecting ------------------------------------------------------------------------------------------ */

/* The highest score that a device of this backend could have under the filter. */
static int best_possible(const drupe_filter *filter, size_t index)
{
    const drupe_slot *slot = drupe_slot_at(index);
    int best = 0;
    for (int type = 0; type <= DRUPE_DEVICE_CUSTOM; type++) {
        drupe_filter narrow = *filter;
        if (filter->type >= 0 && filter->type != type) continue;
        narrow.type = type;
        if (!drupe_filter_possible(&narrow, index)) continue;
        int score = score_of(slot, (drupe_device_type)type);
        if (score > best) best = score;
    }
    return best;
}

/* The device with this number, borrowed, or NULL: here the order decides. */
static drupe_device *select_number(const drupe_filter *filter)
{
    long number = 0;
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        if (!drupe_filter_possible(filter, i) || drupe_slot_load(slot) != DRUPE_OK) continue;
        for (uint32_t d = 0; d < slot->ndevices; d++) {
            if (drupe_filter_match(filter, slot->devices[d]) && number++ == filter->number)
                return slot->devices[d];
        }
    }
    return NULL;
}

/* The best match, borrowed, or NULL. */
static drupe_device *select_best(const drupe_filter *filter)
{
    drupe_device *best = NULL;
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        if (!drupe_filter_possible(filter, i)) continue;
        if (best && best_possible(filter, i) <= drupe_device_score(best)) continue;
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
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        if (!drupe_selector_possible(i) || drupe_slot_load(slot) != DRUPE_OK) continue;
        for (uint32_t d = 0; d < slot->ndevices; d++) {
            drupe_text_printf(&there, "%s%s", there.length ? ", " : "", slot->devices[d]->filter);
        }
    }
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
        DRUPE_TRY(drupe_filter_next(&text, &one));
        if (one.backend >= 0) backend = one.backend;
        drupe_device *found = one.number >= 0 ? select_number(&one) : select_best(&one);
        if (found && drupe_path_walk(found, one.path, one.path_size, device) != DRUPE_OK)
            drupe_text_printf(&why, " %s", drupe_error_last()->text);
    }
    if (!*device) return nothing_found(filter, backend, &why);
    drupe_text_clear(&why);
    return DRUPE_OK;
}
