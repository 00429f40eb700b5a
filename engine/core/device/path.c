/* The path into a device behind its number: steps of ".index", each after an optional "{division}".
 *
 * A part that lives is found by its name; else the device is divided and the other parts are given back, so
 * that two filters never make two devices of one name while somebody holds the first. */
#include "core/device/device_room.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COUNTS 256

struct step {
    const char *how; /* between the braces; borrowed */
    size_t how_size;
    long index;
    size_t size; /* of the step's text */
};

/* The step that `path`, which is not empty, begins with. */
static bool read_step(const char *path, size_t size, struct step *step)
{
    size_t at = 0;
    *step = (struct step){.how = path};
    if (*path == '{') {
        const char *end = memchr(path, '}', size);
        if (!end || end == path + 1) return false;
        step->how = path + 1;
        step->how_size = (size_t)(end - path) - 1;
        at = step->how_size + 2;
    }
    if (at >= size || path[at] != '.') return false;
    size_t digits = ++at;
    while (digits < size && isdigit((unsigned char)path[digits])) digits++;
    step->size = digits;
    return drupe_filter_number(path + at, digits - at, &step->index);
}

/* "2", "2+1", "3+" (a list of one), or a domain's name. `units` has room for MAX_COUNTS. */
static bool read_division(const struct step *step, drupe_partition *how, uint32_t *units)
{
    char word[24];
    if (step->how_size < sizeof word) {
        memcpy(word, step->how, step->how_size);
        word[step->how_size] = '\0';
        int domain = drupe_info_find_word(DRUPE_INFO_PARTITION_DOMAINS, word);
        *how = (drupe_partition){.kind = DRUPE_SPLIT_AFFINITY, .domain = (drupe_domain)domain};
        if (domain > DRUPE_DOMAIN_NONE) return true;
    }
    const char *at = step->how, *end = step->how + step->how_size;
    size_t count = 0;
    while (at < end && count < MAX_COUNTS) {
        const char *plus = memchr(at, '+', (size_t)(end - at));
        long number;
        if (!drupe_filter_number(at, (size_t)((plus ? plus : end) - at), &number)) return false;
        units[count++] = (uint32_t)number;
        at = plus ? plus + 1 : end;
    }
    bool list = memchr(step->how, '+', step->how_size) != NULL;
    *how = (drupe_partition){.kind = list ? DRUPE_SPLIT_COUNTS : DRUPE_SPLIT_EQUALLY, count, units, 0};
    return at == end && count > 0;
}

bool drupe_path_valid(const char *path, size_t size)
{
    struct step step;
    drupe_partition how;
    uint32_t units[MAX_COUNTS];
    while (size) {
        if (!read_step(path, size, &step) || (step.how_size && !read_division(&step, &how, units)))
            return false;
        path += step.size;
        size -= step.size;
    }
    return true;
}

static drupe_status divide(drupe_device *device, const drupe_partition *how, long index, drupe_device **part)
{
    size_t count = 0;
    DRUPE_TRY(drupe_device_split(device, how, NULL, 0, &count));
    if ((size_t)index >= count) {
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                               "The device %s has %zu such parts, and part %ld was asked for.",
                               device->filter, count, index);
    }
    drupe_device **subs = calloc(count, sizeof(drupe_device *));
    if (!subs) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu sub-devices.", count);
    drupe_status status = drupe_device_split(device, how, subs, count, &count);
    for (size_t i = 0; status == DRUPE_OK && i < count; i++) {
        if (i == (size_t)index)
            *part = subs[i];
        else
            drupe_device_release(subs[i]);
    }
    free(subs);
    return status;
}

static drupe_status walk_step(drupe_device *device, const struct step *step, drupe_device **part)
{
    drupe_partition how;
    uint32_t units[MAX_COUNTS];
    if (step->how_size) {
        if (!read_division(step, &how, units)) return drupe_error_set(DRUPE_E_INVALID, "A bad division.");
    } else if (!drupe_split_plain(device, &how, units)) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The device %s cannot be divided.", device->filter);
    }
    drupe_text name = {0};
    drupe_split_name(device, &how, (size_t)step->index, &name);
    DRUPE_TRY(drupe_text_check(&name));
    *part = drupe_device_living(drupe_text_get(&name));
    drupe_text_clear(&name);
    return *part ? DRUPE_OK : divide(device, &how, step->index, part);
}

drupe_status drupe_path_walk(drupe_device *device, const char *path, size_t size, drupe_device **found)
{
    *found = NULL;
    drupe_device *at = drupe_device_retain(device);
    drupe_status status = DRUPE_OK;
    while (size && status == DRUPE_OK) {
        struct step step;
        drupe_device *part = NULL;
        status = read_step(path, size, &step) ? walk_step(at, &step, &part)
                                              : drupe_error_set(DRUPE_E_INVALID, "A bad path into a device.");
        if (status == DRUPE_OK) {
            drupe_device_release(at);
            at = part;
            path += step.size;
            size -= step.size;
        }
    }
    if (status == DRUPE_OK) {
        *found = at;
        return DRUPE_OK;
    }
    drupe_error kept = *drupe_error_last();
    drupe_device_release(at);
    return drupe_error_restore(&kept);
}
