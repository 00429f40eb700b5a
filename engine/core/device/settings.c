/* Variables of the environment that must be understood before a device is used: a table of names and parsers.
 *
 * A wrong value that is ignored looks like one that is obeyed, so it is an error where devices are listed or
 * chosen. The selector and amounts of memory, which name devices, are read by selector.c and limit.c; names
 * of files and programs are told by what opens them. */
#include "base/machine.h"
#include "core/device/device_room.h"
#include "driver/driver.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static _Atomic(bool) understood;

bool drupe_settings_pinned(void)
{
    const char *text = getenv("DRUPE_PINNED");
    return !text || strcmp(text, "0") != 0;
}

bool drupe_settings_shuffled(void)
{
    const char *seed = getenv("DRUPE_HOST_SHUFFLE");
    return seed && *seed;
}

static bool is_cache(const char *value)
{
    return strcasecmp(value, "on") == 0 || strcasecmp(value, "off") == 0;
}

static bool is_bytes(const char *value)
{
    uint64_t bytes;
    return drupe_amount_parse(value, NULL, &bytes);
}

static bool is_number(const char *value)
{
    return value[strspn(value, "0123456789")] == '\0' && strlen(value) < 20;
}

static bool is_library(const char *value)
{
    return strchr(value, '/') || strstr(value, ".so");
}

static bool is_seconds(const char *value)
{
    return is_number(value) && strlen(value) < 10;
}

static bool is_threads(const char *value)
{
    if (!is_number(value)) return false;
    const unsigned long threads = strtoul(value, NULL, 10);
    return threads >= 1 && threads <= DRUPE_HOST_THREADS_MOST;
}

static bool is_wipe(const char *value)
{
    uint32_t when;
    return drupe_settings_wipe(value, &when);
}

/* A value is one of the words, or one that the function accepts. */
static const struct setting {
    const char *name, *words[3];
    bool (*good)(const char *value);
    const char *allowed;
} settings[] = {
    {"DRUPE_BLAS", {"none"}, is_library, "\"none\", or the path of a library"},
    {"DRUPE_CACHE", {"0", "1"}, is_cache, "\"0\" or \"off\", or \"1\" or \"on\""},
    {"DRUPE_CACHE_SIZE", {NULL}, is_bytes, "a number of bytes such as \"256M\" or \"2G\""},
    {"DRUPE_COMPILER_MEMORY", {"0"}, is_bytes, "a number of bytes such as \"8G\", or \"0\" for no limit"},
    {"DRUPE_COMPILER_TIME", {"0"}, is_seconds, "a number of seconds, or \"0\" for no limit"},
    {"DRUPE_FORM", {"cpu", "gpu"}, NULL, "\"cpu\" or \"gpu\""},
    {"DRUPE_FUSE", {"0", "1", "steps"}, NULL, "\"0\", \"1\" or \"steps\""},
    {"DRUPE_FUSE_ABOVE", {NULL}, is_number, "a number of elements"},
    {"DRUPE_FUSE_MOST", {NULL}, is_number, "a number of operations"},
    {"DRUPE_HOST_COPIES", {"0", "1"}, NULL, "\"0\" or \"1\""},
    {"DRUPE_HOST_SHUFFLE", {NULL}, is_number, "a number"},
    {"DRUPE_HOST_THREADS", {NULL}, is_threads, "a number from 1 to 1024"},
    {"DRUPE_HOST_VARIANT", {"baseline", "avx2", "avx512"}, NULL, "\"baseline\", \"avx2\" or \"avx512\""},
    {"DRUPE_LAYERS", {"check"}, NULL, "\"check\""},
    {"DRUPE_MEMORY_WIPE", {NULL}, is_wipe, "\"alloc\", \"free\", \"alloc,free\", or \"0\" for never"},
    {"DRUPE_PINNED", {"0", "1"}, NULL, "\"0\" or \"1\""},
    {"DRUPE_PROFILE", {"0", "1"}, NULL, "\"0\" or \"1\""},
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

uint32_t drupe_settings_wipe_now(void)
{
    const uint32_t always = DRUPE_WIPE_ALLOC | DRUPE_WIPE_FREE;
    const char *value = getenv("DRUPE_MEMORY_WIPE");
    uint32_t when;
    if (!value || !*value) return drupe_machine_shared() ? always : 0;
    return drupe_settings_wipe(value, &when) ? when
                                             : always; /* the mistake is told where devices are chosen */
}

static bool understands(const struct setting *setting, const char *value)
{
    for (size_t i = 0; i < DRUPE_COUNT_OF(setting->words); i++)
        if (setting->words[i] && strcmp(setting->words[i], value) == 0) return true;
    return setting->good && setting->good(value);
}

/* What the variables say was understood. */
static void compilers_limit(void)
{
    const char *time = getenv("DRUPE_COMPILER_TIME"), *memory = getenv("DRUPE_COMPILER_MEMORY");
    uint64_t seconds, bytes;
    drupe_compiler_limits_get(&seconds, &bytes);
    if (time && *time) seconds = strtoull(time, NULL, 10);
    if (memory && *memory && !drupe_amount_parse(memory, NULL, &bytes)) return;
    drupe_compiler_limits(seconds, bytes);
}

drupe_status drupe_settings_check(void)
{
    DRUPE_TRY(drupe_selector_check());
    DRUPE_TRY(drupe_limit_check());
    if (atomic_load_explicit(&understood, memory_order_relaxed)) return DRUPE_OK;
    for (size_t i = 0; i < DRUPE_COUNT_OF(settings); i++) {
        const char *value = getenv(settings[i].name);
        if (!value || !*value || understands(&settings[i], value)) continue;
        return drupe_error_set(DRUPE_E_INVALID, "%s=%.80s cannot be understood. Write %s, or unset it.",
                               settings[i].name, value, settings[i].allowed);
    }
    compilers_limit();
    atomic_store_explicit(&understood, true, memory_order_relaxed);
    return DRUPE_OK;
}

void drupe_settings_forget(void)
{
    atomic_store_explicit(&understood, false, memory_order_relaxed);
}
