/* Amounts of memory in the environment: "4G" for all devices, or parts such as "host=2G,opencl:gpu=50%". */
#include "core/device/device_room.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* "4G", "512M", "50%" of `total`, or plain bytes, at `text`; false when it is none of these. */
static bool parse_amount(const char *text, size_t length, uint64_t total, uint64_t *bytes)
{
    char copy[32], *end;
    if (length == 0 || length >= sizeof copy || !isdigit((unsigned char)*text)) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    double number = strtod(copy, &end);
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (*end == '%' && !end[1]) {
        number *= (double)total / 100;
    } else if (unit) {
        for (const char *at = units; at <= unit; at++) number *= 1024;
        end++;
        if (*end == 'i' || *end == 'I') end++;
        if (*end == 'b' || *end == 'B') end++;
        if (*end) return false;
    } else if (*end) {
        return false;
    }
    *bytes = number < 1e19 ? (uint64_t)number : UINT64_MAX;
    return true;
}

struct part {
    const char *name, *amount; /* neither ends with a NUL */
    size_t name_size, amount_size;
    bool named;
};

/* Walk through the comma-separated parts of a variable, "4G" or "opencl:gpu=4G". */
static bool part_next(const char **text, struct part *part)
{
    *text += strspn(*text, ", ");
    if (!**text) return false;
    size_t length = strcspn(*text, ",");
    const char *equals = memchr(*text, '=', length);
    part->name = *text;
    part->name_size = equals ? (size_t)(equals - *text) : 0;
    part->named = equals != NULL;
    part->amount = equals ? equals + 1 : *text;
    *text += length;
    part->amount_size = (size_t)(*text - part->amount);
    return true;
}

/* The devices that a part names: a filter of a backend, a type or both, with a number behind both; false when
 * it is none. */
static bool part_filter(const struct part *part, drupe_filter *filter)
{
    char name[64];
    const char *at = name;
    *filter = (drupe_filter){.backend = -1, .type = -1, .number = -1};
    if (!part->named) return true;
    if (part->name_size == 0 || part->name_size >= sizeof name) return false;
    memcpy(name, part->name, part->name_size);
    name[part->name_size] = '\0';
    if (drupe_filter_next(&at, filter) != DRUPE_OK || *at || filter->path_size) return false;
    return filter->number < 0 || (filter->backend >= 0 && filter->type >= 0);
}

static bool part_holds(const struct part *part, const drupe_device *root)
{
    drupe_filter filter;
    const char *number = strrchr(root->filter, ':');
    drupe_error kept = *drupe_error_last();
    const bool good = part_filter(part, &filter);
    drupe_error_restore(&kept);
    if (!good || !drupe_filter_match(&filter, root)) return false;
    return filter.number < 0 || (number && strtol(number + 1, NULL, 10) == filter.number);
}

/* What a variable says for a device: the last of its parts that holds for it, "4G" for all devices,
 * "opencl:gpu=4G" for those that the filter names. */
uint64_t drupe_amount_of(const char *variable, const drupe_device *root, uint64_t total, uint64_t fallback)
{
    const char *text = getenv(variable);
    uint64_t bytes = fallback, found;
    struct part part;
    while (text && part_next(&text, &part)) {
        if (!part_holds(&part, root)) continue;
        if (parse_amount(part.amount, part.amount_size, total, &found)) bytes = found;
    }
    return bytes;
}

static drupe_status check_amounts(const char *variable)
{
    const char *whole = getenv(variable), *text = whole;
    uint64_t found;
    struct part part;
    drupe_filter filter;
    while (text && part_next(&text, &part)) {
        if (!part_filter(&part, &filter))
            return drupe_error_set(
                DRUPE_E_INVALID,
                "%s=%.80s cannot be understood: '%.*s' names no devices. Write a backend, a type "
                "or both, as in \"host=2G\", \"gpu=4G\" or \"opencl:gpu:0=50%%\".",
                variable, whole, part.name_size < 60 ? (int)part.name_size : 60, part.name);
        if (parse_amount(part.amount, part.amount_size, 0, &found)) continue;
        return drupe_error_set(DRUPE_E_INVALID,
                               "%s=%s cannot be understood: '%.*s' is no amount of memory. Write \"4G\", "
                               "\"512M\" or \"50%%\", or parts such as \"host=2G,opencl:gpu=50%%\".",
                               variable, whole, (int)part.amount_size, part.amount);
    }
    return DRUPE_OK;
}

drupe_status drupe_limit_check(void)
{
    DRUPE_TRY(check_amounts("DRUPE_MEMORY_LIMIT"));
    return check_amounts("DRUPE_MEMORY_KEEP");
}
