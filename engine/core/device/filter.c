/* Device filters: "backend:type:number" alternatives, separated by commas; path.c goes on behind the number.
 */
#include "core/device/device_room.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const type_names[] = {"cpu", "gpu", "accelerator", "custom"};

const char *drupe_device_type_name(drupe_device_type type)
{
    return (unsigned)type < DRUPE_COUNT_OF(type_names) ? type_names[type] : "unknown";
}

void drupe_filter_trim(const char **word, size_t *length)
{
    while (*length && isspace((unsigned char)**word)) (*word)++, (*length)--;
    while (*length && isspace((unsigned char)(*word)[*length - 1])) (*length)--;
}

bool drupe_filter_is(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(word, name, length) == 0;
}

int drupe_filter_backend(const char *word, size_t length)
{
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        if (drupe_filter_is(word, length, drupe_slot_at(i)->backend->name)) return (int)i;
    }
    /* One that this library knows of and was built without: well-formed, and matches nothing. */
    for (size_t i = 0; drupe_backends_absent[i]; i++) {
        if (drupe_filter_is(word, length, drupe_backends_absent[i])) return DRUPE_FILTER_ABSENT;
    }
    return -1;
}

int drupe_filter_type(const char *word, size_t length)
{
    for (size_t i = 0; i < DRUPE_COUNT_OF(type_names); i++) {
        if (drupe_filter_is(word, length, type_names[i])) return (int)i;
    }
    return -1;
}

bool drupe_filter_number(const char *word, size_t length, long *number)
{
    *number = 0;
    if (length == 0 || length > 6) return false;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)word[i])) return false;
        *number = *number * 10 + (word[i] - '0');
    }
    return true;
}

static drupe_status filter_error(const char *word, size_t length)
{
    drupe_text names = {0};
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_text_printf(&names, "%s%s", i ? ", " : "", drupe_slot_at(i)->backend->name);
    }
    drupe_error_set(DRUPE_E_INVALID,
                    "'%.*s' in a device filter is neither a backend (%s), nor a type (cpu, gpu, accelerator, "
                    "custom), nor a number. A filter looks like \"opencl:cpu:0\", \"gpu\", \"gpu,cpu\", or "
                    "\"host:cpu:0.1\" for part 1 of a device.",
                    length > 60 ? 60 : (int)length, word, drupe_text_get(&names));
    drupe_text_clear(&names);
    return DRUPE_E_INVALID;
}

/* "0", or with a path "0.1". */
static bool number_part(drupe_filter *filter, const char *word, size_t length)
{
    size_t digits = 0;
    while (digits < length && isdigit((unsigned char)word[digits])) digits++;
    if (!drupe_filter_number(word, digits, &filter->number)) {
        filter->number = -1;
        return false;
    }
    filter->path = word + digits;
    filter->path_size = length - digits;
    return drupe_path_valid(filter->path, filter->path_size);
}

/* Parts come in the order backend, type, number; each at most once. */
static drupe_status filter_part(drupe_filter *filter, const char *word, size_t length)
{
    drupe_filter_trim(&word, &length);
    bool nothing_yet = filter->backend < 0 && filter->type < 0 && filter->number < 0;
    int found = drupe_filter_backend(word, length);
    if (found >= 0 && nothing_yet) {
        filter->backend = found;
        return DRUPE_OK;
    }
    found = drupe_filter_type(word, length);
    if (found >= 0 && filter->type < 0 && filter->number < 0) {
        filter->type = found;
        return DRUPE_OK;
    }
    if (filter->number < 0 && number_part(filter, word, length)) return DRUPE_OK;
    return filter_error(word, length);
}

drupe_status drupe_filter_next(const char **text, drupe_filter *filter)
{
    *filter = (drupe_filter){.backend = -1, .type = -1, .number = -1, .path = ""};
    const char *word = *text;
    for (;;) {
        size_t length = strcspn(word, ":,");
        DRUPE_TRY(filter_part(filter, word, length));
        word += length;
        if (*word != ':') break;
        word++;
    }
    if (*word == ',') {
        word++;
        if (!*word) return filter_error(word, 0);
    }
    *text = word;
    return DRUPE_OK;
}

bool drupe_filter_match(const drupe_filter *filter, const drupe_device *device)
{
    if (filter->backend == DRUPE_FILTER_ABSENT) return false;
    if (filter->backend >= 0 && drupe_slot_at((size_t)filter->backend) != device->slot) return false;
    return filter->type < 0 || filter->type == (int)device->type;
}

bool drupe_filter_possible(const drupe_filter *filter, size_t slot)
{
    if (filter->backend >= 0 && (size_t)filter->backend != slot) return false;
    if (!drupe_selector_possible(slot)) return false;
    const drupe_backend *backend = drupe_slot_at(slot)->backend;
    /* What is loaded is known: only devices that would have to be looked for may be unlikely. */
    if (filter->type < 0 || !backend->likely || atomic_load(&drupe_slot_at(slot)->loaded)) return true;
    return backend->likely((drupe_device_type)filter->type);
}
