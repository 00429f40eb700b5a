/* DRUPE_DEVICES and ONEAPI_DEVICE_SELECTOR: which devices the environment leaves.
 *
 * The text is short and read seldom, so nothing is kept of it: each question walks over its terms again. A
 * term is `backend:item,item`; an item names devices by type, by number or all (`*`), and may go on with
 * parts
 * (`0.1`, `*.*`). */
#include "core/device/device_room.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ANY (-1)

/* One item of a term. */
struct item {
    bool discard;
    int backend;       /* slot, ANY or DRUPE_FILTER_ABSENT */
    int type;          /* drupe_device_type, or ANY */
    long number;       /* in its backend, or ANY */
    const char *parts; /* ".1", ".*.0"; borrowed */
    size_t parts_size; /* 0: the device itself */
};

typedef drupe_status (*item_fn)(const struct item *item, void *user);

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

static void trim(const char **word, size_t *size)
{
    while (*size && isspace((unsigned char)**word)) (*word)++, (*size)--;
    while (*size && isspace((unsigned char)(*word)[*size - 1])) (*size)--;
}

static bool is_word(const char *word, size_t size, const char *name)
{
    return strlen(name) == size && strncasecmp(word, name, size) == 0;
}

/* Backends of SYCL's runtimes that are not named in filters are known here: they have no devices for us. */
static bool read_backend(const char *word, size_t size, int *backend)
{
    static const char *const foreign[] = {"native_cpu", "offload", "esimd_emulator"};
    *backend = is_word(word, size, "*") ? ANY : drupe_filter_backend(word, size);
    for (size_t i = 0; i < DRUPE_COUNT_OF(foreign); i++) {
        if (is_word(word, size, foreign[i])) *backend = DRUPE_FILTER_ABSENT;
    }
    return *backend >= 0 || is_word(word, size, "*");
}

/* ".1", ".*", ".1.*" */
static bool parts_valid(const char *parts, size_t size)
{
    while (size) {
        size_t length = 1;
        long number;
        while (length < size && parts[length] != '.') length++;
        if (*parts != '.' ||
            !(is_word(parts + 1, length - 1, "*") || drupe_filter_number(parts + 1, length - 1, &number)))
            return false;
        parts += length;
        size -= length;
    }
    return true;
}

static bool read_item(const char *word, size_t size, struct item *item)
{
    const char *dot = memchr(word, '.', size);
    size_t head = dot ? (size_t)(dot - word) : size;
    item->type = item->number = ANY;
    item->parts = word + head;
    item->parts_size = size - head;
    if (!parts_valid(item->parts, item->parts_size)) return false;
    if (is_word(word, head, "*") || drupe_filter_number(word, head, &item->number)) return true;
    item->number = ANY;
    item->type = is_word(word, head, "fpga") ? DRUPE_DEVICE_ACCELERATOR : drupe_filter_type(word, head);
    return item->type >= 0 && item->parts_size == 0;
}

static drupe_status each_in_term(const char *term, size_t size, item_fn fn, void *user)
{
    struct item item = {.discard = *term == '!'};
    const char *word = term + item.discard, *end = term + size;
    const char *colon = memchr(word, ':', (size_t)(end - word));
    if (!colon) return mistake(term, size, "has no ':' between a backend and its devices");
    size_t length = (size_t)(colon - word);
    trim(&word, &length);
    if (!read_backend(word, length, &item.backend)) {
        return mistake(word, length, "is not a backend (*, host, opencl, level_zero, cuda, hip)");
    }
    for (const char *at = colon + 1;; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        word = at;
        length = (size_t)((comma ? comma : end) - at);
        trim(&word, &length);
        if (!read_item(word, length, &item)) {
            return mistake(length ? word : term, length ? length : size,
                           length ? "is not a device (*, cpu, gpu, accelerator, custom, a number, a part 0.1)"
                                  : "has a place without a device");
        }
        if (item.discard && item.parts_size)
            return mistake(word, length, "takes away parts, which no term can");
        if (fn) DRUPE_TRY(fn(&item, user));
        if (!comma) return DRUPE_OK;
        at = comma;
    }
}

/* Call fn, which may be NULL, for every item; the whole text is read first by drupe_selector_check(). */
static drupe_status each_item(item_fn fn, void *user)
{
    const char *text = "";
    bool discards = false;
    if (!drupe_device_selector(&text)) return DRUPE_OK;
    for (;;) {
        const char *term = text;
        size_t size = strcspn(text, ";"), length = size;
        trim(&term, &length);
        if (length) {
            if (discards && *term != '!') {
                return mistake(term, length, "follows a term with '!', and such terms must come last");
            }
            discards = *term == '!';
            DRUPE_TRY(each_in_term(term, length, fn, user));
        }
        if (!text[size]) return DRUPE_OK;
        text += size + 1;
    }
}

drupe_status drupe_selector_check(void)
{
    return each_item(NULL, NULL);
}

/* --- Choosing ------------------------------------------------------------------------------------------- */

/* Whether the variable says anything of this backend. */
static bool rules_over(size_t slot)
{
    const char *name = drupe_device_selector(NULL);
    if (!name) return false;
    return strcmp(name, "DRUPE_DEVICES") == 0 || strcmp(drupe_slot_at(slot)->backend->name, "host") != 0;
}

struct question {
    int slot;
    bool accepts, matched; /* there is a term that accepts; one of them matches */
};

static drupe_status ask_possible(const struct item *item, void *user)
{
    struct question *question = user;
    if (item->discard) return DRUPE_OK;
    question->accepts = true;
    question->matched |= item->backend == ANY || item->backend == question->slot;
    return DRUPE_OK;
}

bool drupe_selector_possible(size_t slot)
{
    struct question question = {.slot = (int)slot};
    if (!rules_over(slot) || each_item(ask_possible, &question) != DRUPE_OK) return true;
    return !question.accepts || question.matched;
}

/* What is chosen of one backend. */
struct choice {
    drupe_slot *slot;
    int index;            /* of the slot */
    drupe_device *device; /* the root in question, number `number` of the backend */
    long number;
    bool accepts, accepted, discarded;
    drupe_device **devices; /* chosen so far, retained */
    uint32_t count, capacity;
};

/* Takes `device`. */
static drupe_status choose(struct choice *choice, drupe_device *device)
{
    for (uint32_t i = 0; i < choice->count; i++) {
        if (choice->devices[i] != device) continue;
        drupe_device_release(device);
        return DRUPE_OK;
    }
    if (choice->count == choice->capacity) {
        uint32_t capacity = choice->capacity ? choice->capacity * 2 : 16;
        drupe_device **devices = realloc(choice->devices, capacity * sizeof(drupe_device *));
        if (!devices) {
            drupe_device_release(device);
            return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of devices.");
        }
        choice->devices = devices;
        choice->capacity = capacity;
    }
    choice->devices[choice->count++] = device;
    return DRUPE_OK;
}

/* The parts below `device`; a number of parts that is not there chooses nothing. */
static drupe_status choose_parts(struct choice *choice, drupe_device *device, const char *parts, size_t size)
{
    if (size == 0) return choose(choice, drupe_device_retain(device));
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
        drupe_status status = choose_parts(choice, part, parts + length, size - length);
        drupe_device_release(part);
        DRUPE_TRY(status);
    }
    return DRUPE_OK;
}

static drupe_status judge(const struct item *item, void *user)
{
    struct choice *choice = user;
    if (!item->discard) choice->accepts = true;
    if (item->backend != ANY && item->backend != choice->index) return DRUPE_OK;
    if (item->type != ANY && item->type != (int)choice->device->type) return DRUPE_OK;
    if (item->number != ANY && item->number != choice->number) return DRUPE_OK;
    if (item->discard)
        choice->discarded = true;
    else if (item->parts_size == 0)
        choice->accepted = true;
    return DRUPE_OK;
}

static drupe_status add_parts(const struct item *item, void *user)
{
    struct choice *choice = user;
    if (item->parts_size == 0 || (item->backend != ANY && item->backend != choice->index)) return DRUPE_OK;
    if (item->number != ANY && item->number != choice->number) return DRUPE_OK;
    return choose_parts(choice, choice->device, item->parts, item->parts_size);
}

static drupe_status choose_all(struct choice *choice)
{
    for (uint32_t i = 0; i < choice->slot->ndevices; i++) {
        choice->device = choice->slot->devices[i];
        choice->number = (long)i;
        choice->accepts = choice->accepted = choice->discarded = false;
        DRUPE_TRY(each_item(judge, choice));
        if (choice->discarded) continue;
        if (choice->accepted || !choice->accepts)
            DRUPE_TRY(choose(choice, drupe_device_retain(choice->device)));
        DRUPE_TRY(each_item(add_parts, choice));
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
        drupe_device_conceal(device);
        atomic_fetch_sub(&slot->live, 1);
    }
}

drupe_status drupe_selector_apply(drupe_slot *slot)
{
    size_t index = 0;
    while (drupe_slot_at(index) != slot) index++;
    DRUPE_TRY(drupe_selector_check());
    if (!rules_over(index)) return DRUPE_OK;
    struct choice choice = {.slot = slot, .index = (int)index};
    drupe_status status = choose_all(&choice);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        for (uint32_t i = 0; i < choice.count; i++) drupe_device_release(choice.devices[i]);
        free(choice.devices);
        return drupe_error_restore(&kept);
    }
    for (uint32_t i = 0; i < choice.count; i++) take_device(slot, choice.devices[i]);
    for (uint32_t i = 0; i < slot->ndevices; i++) drupe_device_release(slot->devices[i]);
    free(slot->devices);
    slot->devices = choice.devices;
    slot->ndevices = choice.count;
    return DRUPE_OK;
}
