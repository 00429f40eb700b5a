/* Amounts of memory in the environment: "4G", for all devices, or parts such as "host=2G,opencl:gpu=50%". */
#include "core/device/device_room.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool drupe_amount_parse(const char *text, const uint64_t *total, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    if (!isdigit((unsigned char)*text) || tolower((unsigned char)text[1]) == 'x') return false;
    double number = strtod(text, &end);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (*end == '%' && total) {
        number *= (double)*total / 100;
        end++;
    } else if (unit) {
        for (const char *at = units; at <= unit; at++) number *= 1024;
        end++;
        if (*end == 'i' || *end == 'I') end++;
        if (*end == 'b' || *end == 'B') end++;
    }
    if (*end || (number > 0x1p64 && !total)) return false;
    *bytes = number < 0x1p64 ? (uint64_t)number : UINT64_MAX;
    return true;
}

/* A part of a variable, "4G" or "opencl:gpu=4G". */
struct part {
    char text[200];            /* cut where no name and no amount of that length could be understood */
    const char *name, *amount; /* `name` NULL: all devices */
};

static bool part_next(const char **text, struct part *part)
{
    *text += strspn(*text, ", ");
    int length = (int)strcspn(*text, ",");
    if (length == 0) return false;
    snprintf(part->text, sizeof part->text, "%.*s", length, *text);
    *text += length;
    char *equals = strchr(part->text, '=');
    if (equals) *equals = '\0';
    part->name = equals ? part->text : NULL;
    part->amount = equals ? equals + 1 : part->text;
    return true;
}

/* The devices that a part names: a filter of a backend, a type or both, with a number behind both; false when
 * it is none. */
static bool part_filter(const struct part *part, drupe_filter *filter)
{
    const char *at = part->name;
    *filter = (drupe_filter){.backend = -1, .type = -1, .number = -1};
    if (!at) return true;
    if (drupe_filter_next(&at, filter) != DRUPE_OK || filter->path_size) return false;
    return filter->number < 0 || (filter->backend >= 0 && filter->type >= 0);
}

static bool part_holds(const struct part *part, const drupe_device *root)
{
    drupe_filter filter;
    drupe_error kept = *drupe_error_last();
    const bool good = part_filter(part, &filter);
    drupe_error_restore(&kept);
    if (!good || !drupe_filter_match(&filter, root)) return false;
    /* A root device's filter ends with its number, or with words behind that. */
    return filter.number < 0 || strtol(strrchr(root->filter, ':') + 1, NULL, 10) == filter.number;
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
        if (drupe_amount_parse(part.amount, &total, &found)) bytes = found;
    }
    return bytes;
}

static drupe_status check_amounts(const char *variable)
{
    const char *whole = getenv(variable), *text = whole;
    uint64_t any = 0, found;
    struct part part;
    drupe_filter filter;
    while (text && part_next(&text, &part)) {
        if (!part_filter(&part, &filter))
            return drupe_error_set(
                DRUPE_E_INVALID,
                "%s=%.80s cannot be understood: '%.60s' names no devices. Write a backend, a type "
                "or both, as in \"host=2G\", \"gpu=4G\" or \"opencl:gpu:0=50%%\".",
                variable, whole, part.name);
        if (drupe_amount_parse(part.amount, &any, &found)) continue;
        return drupe_error_set(DRUPE_E_INVALID,
                               "%s=%s cannot be understood: '%s' is no amount of memory. Write \"4G\", "
                               "\"512M\" or \"50%%\", or parts such as \"host=2G,opencl:gpu=50%%\".",
                               variable, whole, part.amount);
    }
    return DRUPE_OK;
}

drupe_status drupe_limit_check(void)
{
    DRUPE_TRY(check_amounts("DRUPE_MEMORY_LIMIT"));
    return check_amounts("DRUPE_MEMORY_KEEP");
}
