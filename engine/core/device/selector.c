/* DRUPE_DEVICES and ONEAPI_DEVICE_SELECTOR: which devices the environment leaves.
 *
 * The text is short and read seldom, so nothing is kept of it: each question walks over its terms again. A
 * term is `backend:item,item`; an item names devices by type, by number, by UUID or all (`*`), and may go on
 * with parts (`0.1`, `*.*`). A UUID says the same whatever else is there; numbers change with it. */
#include "core/device/device_room.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UUID_SIZE 36u

/* One item of a term. */
struct item {
    bool discard;
    drupe_filter what; /* its number is that in the backend, its path ".1", ".*.0" */
    const char *uuid;  /* of UUID_SIZE characters, or NULL */
};

/* A walk over the items. */
struct walk {
    const char *rest;            /* the terms that are left, or NULL */
    const char *term, *at, *end; /* a term, and its items that are left; `at` NULL: none */
    struct item item;            /* the latest */
};

const char *drupe_device_selector(const char **text)
{
    static const char *const names[] = {"DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(names); i++) {
        const char *value = getenv(names[i]);
        if (!value || !value[strspn(value, " ")]) continue;
        if (text) *text = value;
        return names[i];
    }
    return NULL;
}

/* --- Reading -------------------------------------------------------------------------------------------- */

static drupe_status mistake(const char *part, size_t size, const char *what)
{
    const char *text = "", *name = drupe_device_selector(&text);
    return drupe_error_set(DRUPE_E_INVALID,
                           "%s=%s cannot be understood: '%.*s' %s. Write backend:devices, such as "
                           "\"host:*;opencl:cpu\", \"opencl:0,1\", \"opencl:0.1\" or \"!opencl:gpu\".",
                           name ? name : "The selector", text, size > 40 ? 40 : (int)size, part, what);
}

/* Backends of SYCL's runtimes that are not named in filters are known here: they have no devices for us. */
static bool read_backend(const char *word, size_t size, int *backend)
{
    static const char *const foreign[] = {"native_cpu", "offload", "esimd_emulator"};
    *backend = drupe_filter_backend(word, size);
    for (size_t i = 0; i < DRUPE_COUNT_OF(foreign); i++) {
        if (drupe_filter_is(word, size, foreign[i])) *backend = DRUPE_FILTER_ABSENT;
    }
    return *backend >= 0 || drupe_filter_is(word, size, "*");
}

/* ".1", ".*", ".1.*"; what begins with a point, or nothing */
static bool parts_valid(const char *parts, size_t size)
{
    while (size) {
        size_t length = 1;
        long number;
        while (length < size && parts[length] != '.') length++;
        if (!drupe_filter_is(parts + 1, length - 1, "*") &&
            !drupe_filter_number(parts + 1, length - 1, &number))
            return false;
        parts += length;
        size -= length;
    }
    return true;
}

static bool is_uuid(const char *word, size_t size)
{
    for (size_t i = 0; size == UUID_SIZE && i < size; i++) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? word[i] != '-' : !isxdigit((unsigned char)word[i])) return false;
    }
    return size == UUID_SIZE;
}

static bool read_item(const char *word, size_t size, struct item *item)
{
    drupe_filter *const what = &item->what;
    const char *dot = memchr(word, '.', size);
    size_t head = dot ? (size_t)(dot - word) : size;
    item->uuid = NULL;
    what->type = -1;
    what->path = word + head;
    what->path_size = size - head;
    if (!parts_valid(what->path, what->path_size)) return false;
    if (drupe_filter_number(word, head, &what->number)) return true;
    what->number = -1;
    if (is_uuid(word, head)) item->uuid = word;
    if (item->uuid || drupe_filter_is(word, head, "*")) return true;
    what->type =
        drupe_filter_is(word, head, "fpga") ? DRUPE_DEVICE_ACCELERATOR : drupe_filter_type(word, head);
    return what->type >= 0 && what->path_size == 0;
}

/* Go to the next term that is not empty, and read its backend. */
static drupe_status read_term(struct walk *walk)
{
    size_t size = 0;
    while (walk->rest && !size) {
        size = strcspn(walk->rest, ";");
        walk->term = walk->rest;
        walk->rest = walk->term[size] ? walk->term + size + 1 : NULL;
        drupe_filter_trim(&walk->term, &size);
    }
    if (!size) return DRUPE_OK;
    bool discard = *walk->term == '!';
    if (walk->item.discard && !discard)
        return mistake(walk->term, size, "follows a term with '!', and such terms must come last");
    const char *word = walk->term + discard;
    const char *colon = memchr(word, ':', size - discard);
    if (!colon) return mistake(walk->term, size, "has no ':' between a backend and its devices");
    size_t length = (size_t)(colon - word);
    drupe_filter_trim(&word, &length);
    walk->item.discard = discard;
    if (!read_backend(word, length, &walk->item.what.backend))
        return mistake(word, length, "is not a backend (*, host, opencl, level_zero, cuda, hip)");
    walk->end = walk->term + size;
    walk->at = colon + 1;
    return DRUPE_OK;
}

/* The next item, borrowed, or NULL at the end. */
static drupe_status read_next(struct walk *walk, const struct item **item)
{
    *item = NULL;
    if (!walk->at) DRUPE_TRY(read_term(walk));
    if (!walk->at) return DRUPE_OK;
    const char *word = walk->at, *comma = memchr(word, ',', (size_t)(walk->end - word));
    size_t length = (size_t)((comma ? comma : walk->end) - word);
    walk->at = comma ? comma + 1 : NULL;
    drupe_filter_trim(&word, &length);
    if (length == 0)
        return mistake(walk->term, (size_t)(walk->end - walk->term), "has a place without a device");
    if (!read_item(word, length, &walk->item))
        return mistake(word, length,
                       "is not a device (*, cpu, gpu, accelerator, custom, a number, a UUID, a part 0.1)");
    if (walk->item.discard && walk->item.what.path_size)
        return mistake(word, length, "takes away parts, which no term can");
    *item = &walk->item;
    return DRUPE_OK;
}

static struct walk walk_begin(void)
{
    struct walk walk = {0};
    (void)drupe_device_selector(&walk.rest);
    return walk;
}

/* The same in a text that drupe_selector_check() has read: it ends at a mistake. */
static const struct item *walk_next(struct walk *walk)
{
    const struct item *item;
    return read_next(walk, &item) == DRUPE_OK ? item : NULL;
}

drupe_status drupe_selector_check(void)
{
    struct walk walk = walk_begin();
    const struct item *item;
    do DRUPE_TRY(read_next(&walk, &item));
    while (item);
    return DRUPE_OK;
}

/* --- Choosing ------------------------------------------------------------------------------------------- */

/* Whether the variable says anything of this backend. */
static bool rules_over(const drupe_slot *slot)
{
    const char *name = drupe_device_selector(NULL);
    if (!name) return false;
    return strcmp(name, "DRUPE_DEVICES") == 0 || strcmp(slot->backend->name, "host") != 0;
}

bool drupe_selector_possible(size_t slot)
{
    struct walk walk = walk_begin();
    bool accepts = false;
    if (!rules_over(drupe_slot_at(slot))) return true;
    for (const struct item *item; (item = walk_next(&walk)) != NULL;) {
        if (item->discard) continue;
        if (item->what.backend < 0 || item->what.backend == (int)slot) return true;
        accepts = true;
    }
    return !accepts;
}

/* The parts below `device`; a number of parts that is not there chooses nothing. */
static drupe_status choose_parts(drupe_device_set *chosen, drupe_device *device, const char *parts,
                                 size_t size)
{
    if (size == 0) return drupe_device_set_add(chosen, drupe_device_retain(device));
    drupe_partition how;
    uint32_t unit;
    size_t length = 1, first = 0, last = 0;
    long number = 0;
    while (length < size && parts[length] != '.') length++;
    if (!drupe_split_plain(device, &how, &unit) ||
        drupe_device_split(device, &how, NULL, 0, &last) != DRUPE_OK)
        return DRUPE_OK;
    if (drupe_filter_number(parts + 1, length - 1, &number)) {
        first = (size_t)number;
        last = first < last ? first + 1 : first;
    }
    for (size_t i = first; i < last; i++) {
        char step[24];
        drupe_device *part;
        snprintf(step, sizeof step, ".%zu", i);
        DRUPE_TRY(drupe_path_walk(device, step, strlen(step), &part));
        drupe_status status = choose_parts(chosen, part, parts + length, size - length);
        drupe_device_release(part);
        DRUPE_TRY(status);
    }
    return DRUPE_OK;
}

static bool has_uuid(drupe_device *device, const char *uuid)
{
    char own[UUID_SIZE + 1];
    return drupe_device_info(device, DRUPE_INFO_UUID, own, sizeof own, NULL) == DRUPE_OK &&
           strncasecmp(own, uuid, UUID_SIZE) == 0;
}

/* Whether an item speaks of a root device, of this number in its backend. */
static bool concerns(const struct item *item, drupe_device *device, long number)
{
    if (item->what.number >= 0 && item->what.number != number) return false;
    if (item->uuid && !has_uuid(device, item->uuid)) return false;
    return drupe_filter_match(&item->what, device);
}

/* A root device of this number, and its parts. */
static drupe_status choose(drupe_device_set *chosen, drupe_device *device, long number)
{
    bool accepts = false, accepted = false;
    struct walk walk = walk_begin();
    for (const struct item *item; (item = walk_next(&walk)) != NULL;) {
        accepts |= !item->discard;
        if (!concerns(item, device, number)) continue;
        if (item->discard) return DRUPE_OK;
        accepted |= item->what.path_size == 0;
    }
    if (accepted || !accepts) DRUPE_TRY(drupe_device_set_add(chosen, drupe_device_retain(device)));
    walk = walk_begin();
    for (const struct item *item; (item = walk_next(&walk)) != NULL;) {
        if (item->what.path_size && concerns(item, device, number))
            DRUPE_TRY(choose_parts(chosen, device, item->what.path, item->what.path_size));
    }
    return DRUPE_OK;
}

/* --- Taking over ---------------------------------------------------------------------------------------- */

/* A part that stands in the list, or above one that does, belongs to the library. */
static void take_device(drupe_slot *slot, drupe_device *device)
{
    for (; device->parent; device = device->parent) {
        if (device->listed) continue;
        device->listed = true;
        device->parent->due++;
        drupe_device_conceal(device);
        atomic_fetch_sub(&slot->live, 1);
    }
}

drupe_status drupe_selector_apply(drupe_slot *slot)
{
    DRUPE_TRY(drupe_selector_check());
    if (!rules_over(slot)) return DRUPE_OK;
    drupe_device_set chosen = {0};
    drupe_status status = DRUPE_OK;
    for (uint32_t i = 0; status == DRUPE_OK && i < slot->ndevices; i++)
        status = choose(&chosen, slot->devices[i], (long)i);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        drupe_device_set_clear(&chosen);
        return drupe_error_restore(&kept);
    }
    for (size_t i = 0; i < chosen.count; i++) take_device(slot, chosen.devices[i]);
    for (uint32_t i = 0; i < slot->ndevices; i++) drupe_device_release(slot->devices[i]);
    free(slot->devices);
    slot->devices = chosen.devices;
    slot->ndevices = (uint32_t)chosen.count;
    return DRUPE_OK;
}
