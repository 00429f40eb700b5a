/* Device properties, asked of the backend once per device. */
#include "core/device/device_room.h"
#include <stdlib.h>
#include <string.h>

/* --- The tables ----------------------------------------------------------------------------------------- */

#define WORD_TEXT(constant, word)      #word,
#define WORD_TABLE(name, python, list) static const char *const words_##name[] = {list(WORD_TEXT) NULL};
DRUPE_ENUMERATIONS(WORD_TABLE)

typedef enum enumeration {
    ENUMERATION_none,
#define WORD_INDEX(name, python, list) ENUMERATION_##name,
    DRUPE_ENUMERATIONS(WORD_INDEX)
} enumeration;

static const struct {
    const char *name;
    const char *const *words;
} enumerations[] = {[ENUMERATION_none] = {NULL, NULL},
#define WORD_ENTRY(name, python, list) [ENUMERATION_##name] = {#python, words_##name},
                    DRUPE_ENUMERATIONS(WORD_ENTRY)};

static const struct {
    const char *name;
    drupe_info_type type;
    enumeration words;
} keys[DRUPE_INFO_COUNT] = {
#define DRUPE_INFO(key, type, enumeration, name, doc)                                                        \
    [DRUPE_INFO_##key] = {#name, DRUPE_INFO_##type, ENUMERATION_##enumeration},
#include "drupe/device_info.def"
#undef DRUPE_INFO
};

static bool known(drupe_info key)
{
    return (unsigned)key < DRUPE_INFO_COUNT;
}

drupe_info_type drupe_info_type_of(drupe_info key)
{
    return known(key) ? keys[key].type : DRUPE_INFO_U64;
}

const char *drupe_info_name(drupe_info key)
{
    return known(key) ? keys[key].name : "unknown";
}

const char *drupe_info_enumeration(drupe_info key)
{
    return known(key) ? enumerations[keys[key].words].name : NULL;
}

const char *drupe_info_word(drupe_info key, unsigned number)
{
    const char *const *words = known(key) ? enumerations[keys[key].words].words : NULL;
    for (unsigned i = 0; words && words[i]; i++) {
        if (i == number) return words[i];
    }
    return NULL;
}

int drupe_info_find_word(drupe_info key, const char *word)
{
    const char *one;
    for (unsigned i = 0; (one = drupe_info_word(key, i)); i++) {
        if (strcmp(one, word) == 0) return (int)i;
    }
    return -1;
}

static bool changes(drupe_info key)
{
    return key == DRUPE_INFO_FREE_MEMORY || key == DRUPE_INFO_AVAILABLE;
}

/* --- Asking --------------------------------------------------------------------------------------------- */

/* A driver that may not be called is not asked. */
static drupe_status may_ask(const drupe_device *device)
{
    return drupe_device_silent(device) ? drupe_loss_check(device) : DRUPE_OK;
}

static bool is_bytes(drupe_info key)
{
    return keys[key].type == DRUPE_INFO_STRING || keys[key].type == DRUPE_INFO_LIST;
}

static size_t size_of_type(drupe_info_type type)
{
    return type == DRUPE_INFO_U64X3 ? 3 * sizeof(uint64_t) : sizeof(uint64_t);
}

/* What core knows better than a backend. */
static bool known_here(const drupe_device *device, drupe_info key, uint64_t *number)
{
    switch (key) {
    case DRUPE_INFO_PARTITION_TYPE: *number = device->made; return true;
    case DRUPE_INFO_PARTITION_TYPE_DOMAIN: *number = device->made_along; return true;
    case DRUPE_INFO_HAS_IPC: *number = device->slot->backend->mem_export != NULL; return true;
    default: return false;
    }
}

/* Only a definite answer is cached; a passing failure may be asked again. Of a STRING or LIST number[0] is
 * how many bytes there are. */
static drupe_status ask(drupe_device *device, drupe_info key, drupe_info_entry *entry)
{
    drupe_status status = DRUPE_OK;
    drupe_text text = {0};
    DRUPE_TRY(may_ask(device));
    if (!known_here(device, key, entry->number))
        status = device->slot->backend->device_info(device, key, entry->number, &text);
    if (status == DRUPE_OK && is_bytes(key)) {
        drupe_text_append(&text, "", 1);
        entry->number[0] = text.length - (keys[key].type == DRUPE_INFO_LIST);
        status = drupe_text_check(&text);
        entry->text = drupe_text_take(&text);
    }
    drupe_text_clear(&text);
    if (status == DRUPE_OK) entry->state = DRUPE_INFO_KNOWN;
    if (status == DRUPE_E_UNSUPPORTED) entry->state = DRUPE_INFO_MEANINGLESS;
    return status;
}

/* --- Answering ------------------------------------------------------------------------------------------ */

static drupe_status give(const void *from, size_t full, void *value, size_t size, size_t *needed)
{
    if (value && size) memcpy(value, from, size < full ? size : full);
    if (needed) *needed = full;
    return DRUPE_OK;
}

static drupe_status answer(const drupe_info_entry *entry, drupe_info key, void *value, size_t size,
                           size_t *needed)
{
    if (!entry->text) return give(entry->number, size_of_type(keys[key].type), value, size, needed);
    bool cut = value && size && size < entry->number[0];
    give(entry->text, (size_t)entry->number[0], value, size, needed);
    if (cut && keys[key].type == DRUPE_INFO_STRING) ((char *)value)[size - 1] = '\0';
    return DRUPE_OK;
}

static drupe_status meaningless(const drupe_device *device, drupe_info key)
{
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "The device %s has no property '%s'.", device->filter,
                           keys[key].name);
}

/* A number that is not kept. */
static drupe_status ask_again(drupe_device *device, drupe_info key, void *value, size_t size, size_t *needed)
{
    uint64_t number[3] = {0};
    drupe_status status = DRUPE_OK;
    bool lost = key == DRUPE_INFO_AVAILABLE && drupe_device_loss(device);
    if (!lost) DRUPE_TRY(may_ask(device));
    if (!lost) status = device->slot->backend->device_info(device, key, number, NULL);
    if (status == DRUPE_E_UNSUPPORTED) return meaningless(device, key);
    return status == DRUPE_OK ? give(number, sizeof number[0], value, size, needed) : status;
}

drupe_status drupe_device_info(drupe_device *device, drupe_info key, void *value, size_t size, size_t *needed)
{
    DRUPE_TRY(drupe_core_check());
    if (!known(key)) {
        return drupe_error_set(DRUPE_E_INVALID, "There is no device property number %d.", (int)key);
    }
    if (changes(key)) return ask_again(device, key, value, size, needed);
    drupe_info_entry *entry = &device->info[key];
    if (atomic_load_explicit(&entry->state, memory_order_acquire) == DRUPE_INFO_UNASKED) {
        drupe_status status = DRUPE_OK;
        pthread_mutex_lock(&device->info_lock);
        if (entry->state == DRUPE_INFO_UNASKED) status = ask(device, key, entry);
        pthread_mutex_unlock(&device->info_lock);
        if (status != DRUPE_OK && entry->state == DRUPE_INFO_UNASKED) return status;
    }
    if (entry->state == DRUPE_INFO_KNOWN) return answer(entry, key, value, size, needed);
    return meaningless(device, key);
}

uint64_t drupe_device_number(drupe_device *device, drupe_info key, uint64_t fallback)
{
    uint64_t value = fallback;
    drupe_info_type type = drupe_info_type_of(key);
    if (type == DRUPE_INFO_STRING || type == DRUPE_INFO_LIST || type == DRUPE_INFO_U64X3) return fallback;
    return drupe_device_info(device, key, &value, sizeof value, NULL) == DRUPE_OK ? value : fallback;
}

void drupe_info_clear(drupe_device *device)
{
    for (size_t i = 0; i < DRUPE_INFO_COUNT; i++) free(device->info[i].text);
}
