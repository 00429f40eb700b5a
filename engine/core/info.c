/* Device properties, asked of the backend once per device. */
#include "core/core.h"
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    drupe_info_type type;
} keys[DRUPE_INFO_COUNT] = {
#define DRUPE_INFO(key, type, name, doc) [DRUPE_INFO_##key] = {#name, DRUPE_INFO_##type},
#include "drupe/device_info.def"
#undef DRUPE_INFO
};

drupe_info_type drupe_info_type_of(drupe_info key)
{
    return (unsigned)key < DRUPE_INFO_COUNT ? keys[key].type : DRUPE_INFO_U64;
}

const char *drupe_info_name(drupe_info key)
{
    return (unsigned)key < DRUPE_INFO_COUNT ? keys[key].name : "unknown";
}

static drupe_status ask_text(drupe_device *device, drupe_info key, drupe_info_entry *entry)
{
    char shorter[256] = "";
    size_t needed = 0;
    drupe_status status = device->slot->backend->device_info(device, key, shorter, sizeof shorter, &needed);
    if (status != DRUPE_OK) return status;
    if (needed < strlen(shorter) + 1) needed = strlen(shorter) + 1;
    entry->text = calloc(1, needed);
    if (!entry->text) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu bytes of text.", needed);
    if (needed <= sizeof shorter) {
        memcpy(entry->text, shorter, needed);
    } else {
        status = device->slot->backend->device_info(device, key, entry->text, needed, NULL);
    }
    if (status != DRUPE_OK) {
        free(entry->text);
        entry->text = NULL;
    }
    return status;
}

/* Only a definite answer is cached; a passing failure may be asked again. */
static drupe_status ask(drupe_device *device, drupe_info key, drupe_info_entry *entry)
{
    drupe_status status;
    if (keys[key].type == DRUPE_INFO_STRING) {
        status = ask_text(device, key, entry);
    } else {
        size_t size = keys[key].type == DRUPE_INFO_U64 ? sizeof(uint64_t) : 3 * sizeof(uint64_t);
        status = device->slot->backend->device_info(device, key, entry->number, size, NULL);
    }
    if (status == DRUPE_OK) entry->state = DRUPE_INFO_KNOWN;
    if (status == DRUPE_E_UNSUPPORTED) entry->state = DRUPE_INFO_MEANINGLESS;
    return status;
}

static void copy_text(const char *text, char *value, size_t size)
{
    size_t length = strlen(text);
    if (length >= size) length = size - 1;
    memcpy(value, text, length);
    value[length] = '\0';
}

static drupe_status answer(const drupe_info_entry *entry, drupe_info key, void *value, size_t size,
                           size_t *needed)
{
    const void *from = entry->number;
    size_t full = keys[key].type == DRUPE_INFO_U64 ? sizeof(uint64_t) : 3 * sizeof(uint64_t);
    if (keys[key].type == DRUPE_INFO_STRING) {
        full = strlen(entry->text) + 1;
        if (value && size) copy_text(entry->text, value, size);
    } else if (value && size) {
        memcpy(value, from, size < full ? size : full);
    }
    if (needed) *needed = full;
    return DRUPE_OK;
}

drupe_status drupe_device_info(drupe_device *device, drupe_info key, void *value, size_t size, size_t *needed)
{
    DRUPE_TRY(drupe_core_check());
    if ((unsigned)key >= DRUPE_INFO_COUNT) {
        return drupe_error_set(DRUPE_E_INVALID, "There is no device property number %d.", (int)key);
    }
    drupe_info_entry *entry = &device->info[key];
    if (atomic_load_explicit(&entry->state, memory_order_acquire) == DRUPE_INFO_UNASKED) {
        drupe_status status = DRUPE_OK;
        pthread_mutex_lock(&device->info_lock);
        if (entry->state == DRUPE_INFO_UNASKED) status = ask(device, key, entry);
        pthread_mutex_unlock(&device->info_lock);
        if (status != DRUPE_OK && entry->state == DRUPE_INFO_UNASKED) return status;
    }
    if (entry->state == DRUPE_INFO_KNOWN) return answer(entry, key, value, size, needed);
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "The device %s has no property '%s'.", device->filter,
                           keys[key].name);
}

uint64_t drupe_device_number(drupe_device *device, drupe_info key, uint64_t fallback)
{
    uint64_t value[3] = {fallback};
    if (drupe_info_type_of(key) != DRUPE_INFO_U64) return fallback;
    return drupe_device_info(device, key, value, sizeof value[0], NULL) == DRUPE_OK ? value[0] : fallback;
}

void drupe_info_clear(drupe_device *device)
{
    for (size_t i = 0; i < DRUPE_INFO_COUNT; i++) free(device->info[i].text);
}
