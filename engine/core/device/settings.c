/* Variables of the environment that must be understood before a device is used: a table of names and parsers.
 *
 * A wrong value that is ignored looks like one that is obeyed, so it is an error where devices are listed or
 * chosen. The selector and amounts of memory, which name devices, are read by selector.c and limit.c; names
 * of files and programs are told by what opens them. */
#include "core/device/device_room.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef bool (*setting_fn)(const char *value);

static _Atomic(bool) understood;

bool drupe_settings_bytes(const char *text, uint64_t *bytes)
{
    char *end = NULL;
    if (!isdigit((unsigned char)*text)) return false;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : 0;
    if (*end == 'G' || *end == 'g') shift = 30;
    if (errno || end[shift ? 1 : 0] || number > UINT64_MAX >> shift) return false;
    *bytes = (uint64_t)number << shift;
    return true;
}

static bool is_switch(const char *value)
{
    return strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
}

static bool is_cache(const char *value)
{
    return is_switch(value) || strcasecmp(value, "on") == 0 || strcasecmp(value, "off") == 0;
}

static bool is_cache_size(const char *value)
{
    uint64_t bytes;
    return drupe_settings_bytes(value, &bytes);
}

static bool is_number(const char *value)
{
    return value[strspn(value, "0123456789")] == '\0' && strlen(value) < 20;
}

static bool is_threads(const char *value)
{
    if (!is_number(value)) return false;
    const unsigned long threads = strtoul(value, NULL, 10);
    return threads >= 1 && threads <= DRUPE_HOST_THREADS_MOST;
}

static bool is_variant(const char *value)
{
    return strcmp(value, "baseline") == 0 || strcmp(value, "avx2") == 0 || strcmp(value, "avx512") == 0;
}

static bool is_form(const char *value)
{
    return strcmp(value, "cpu") == 0 || strcmp(value, "gpu") == 0;
}

static bool is_none(const char *value)
{
    return strcmp(value, "none") == 0;
}

static bool is_check(const char *value)
{
    return strcmp(value, "check") == 0;
}

static bool is_wipe(const char *value)
{
    uint32_t when;
    return drupe_settings_wipe(value, &when);
}

static const struct setting {
    const char *name;
    setting_fn good;
    const char *allowed;
} settings[] = {
    {"DRUPE_BLAS", is_none, "\"none\""},
    {"DRUPE_CACHE", is_cache, "\"0\" or \"off\", or \"1\" or \"on\""},
    {"DRUPE_CACHE_SIZE", is_cache_size, "a number of bytes such as \"256M\" or \"2G\""},
    {"DRUPE_FORM", is_form, "\"cpu\" or \"gpu\""},
    {"DRUPE_HOST_SHUFFLE", is_number, "a number"},
    {"DRUPE_HOST_THREADS", is_threads, "a number from 1 to 1024"},
    {"DRUPE_HOST_VARIANT", is_variant, "\"baseline\", \"avx2\" or \"avx512\""},
    {"DRUPE_LAYERS", is_check, "\"check\""},
    {"DRUPE_MEMORY_WIPE", is_wipe, "\"alloc\", \"free\", \"alloc,free\", or \"0\" for never"},
    {"DRUPE_PINNED", is_switch, "\"0\" or \"1\""},
    {"DRUPE_PROFILE", is_switch, "\"0\" or \"1\""},
};
_Static_assert(DRUPE_HOST_THREADS_MOST == 1024u, "what the table allows");

bool drupe_settings_wipe(const char *value, uint32_t *when)
{
    *when = 0;
    if (!*value || strcmp(value, "0") == 0) return true;
    for (;;) {
        value += strspn(value, " ");
        const size_t length = strcspn(value, ", ");
        if (length == 5 && strncmp(value, "alloc", 5) == 0)
            *when |= DRUPE_WIPE_ALLOC;
        else if (length == 4 && strncmp(value, "free", 4) == 0)
            *when |= DRUPE_WIPE_FREE;
        else
            return false;
        value += length;
        value += strspn(value, " ");
        if (!*value) return true;
        if (*value++ != ',') return false;
    }
}

drupe_status drupe_settings_check(void)
{
    DRUPE_TRY(drupe_selector_check());
    DRUPE_TRY(drupe_limit_check());
    if (atomic_load_explicit(&understood, memory_order_relaxed)) return DRUPE_OK;
    for (size_t i = 0; i < DRUPE_COUNT_OF(settings); i++) {
        const char *value = getenv(settings[i].name);
        if (!value || !*value || settings[i].good(value)) continue;
        return drupe_error_set(DRUPE_E_INVALID, "%s=%.80s cannot be understood. Write %s, or unset it.",
                               settings[i].name, value, settings[i].allowed);
    }
    atomic_store_explicit(&understood, true, memory_order_relaxed);
    return DRUPE_OK;
}

void drupe_settings_forget(void)
{
    atomic_store_explicit(&understood, false, memory_order_relaxed);
}
