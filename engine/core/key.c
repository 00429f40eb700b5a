/* What decides a build, as text. It is stored with each entry and compared, so nothing rests on hashes alone.
 */
#include "core/cache.h"
#include <stdlib.h>
#include <string.h>

static void add_info(drupe_text *text, drupe_device *device, drupe_info key, const char *name)
{
    size_t needed = 0;
    char fixed[256], *value = fixed;
    if (drupe_device_info(device, key, NULL, 0, &needed) != DRUPE_OK) return;
    if (needed > sizeof fixed) value = malloc(needed);
    if (value && drupe_device_info(device, key, value, needed, NULL) == DRUPE_OK)
        drupe_text_printf(text, "%s %s\n", name, value);
    else
        text->failed = true; /* a key with a hole would match too much */
    if (value != fixed) free(value);
}

void drupe_key_where(drupe_text *text, drupe_device *device)
{
    drupe_text_printf(text, "drupe %s %zu\nbackend %s\n", drupe_version(), sizeof(drupe_arg_info),
                      device->slot->backend->name);
    add_info(text, device, DRUPE_INFO_PLATFORM, "platform");
    add_info(text, device, DRUPE_INFO_BACKEND_VERSION, "platform version");
    add_info(text, device, DRUPE_INFO_NAME, "device");
    add_info(text, device, DRUPE_INFO_VENDOR, "vendor");
    add_info(text, device, DRUPE_INFO_DRIVER_VERSION, "driver");
    add_info(text, device, DRUPE_INFO_VERSION, "version");
    add_info(text, device, DRUPE_INFO_EXTENSIONS, "extensions");
}

static void add_tools(drupe_text *text, drupe_device *device, drupe_language language)
{
    const drupe_backend *backend = device->slot->backend;
    char *tools = NULL;
    if (!backend->program_tools) return;
    if (backend->program_tools(device, language, &tools) != DRUPE_OK)
        text->failed = true;
    else if (tools)
        drupe_text_printf(text, "tools %zu %s\n", strlen(tools), tools);
    free(tools);
}

void drupe_key_source(drupe_text *text, drupe_device *device, const drupe_source *source)
{
    add_tools(text, device, source->language);
    drupe_text_printf(text, "language %d\noptions %s\n", (int)source->language,
                      source->options ? source->options : "");
    drupe_text_printf(text, "source %zu\n", source->size);
    drupe_text_append(text, source->bytes, source->size);
}

/* Whether `word` occurs, also when the ends of lines are escaped in the middle of it. */
static bool mentions(const char *text, size_t size, const char *word)
{
    const char *found;
    for (size_t i = 0; i < size && (found = memchr(text + i, word[0], size - i)); i++) {
        i = (size_t)(found - text);
        size_t at = i, matched = 0;
        while (at < size && word[matched]) {
            if (text[at] == '\\' && at + 1 < size && text[at + 1] == '\n') {
                at += 2;
                continue;
            }
            if (text[at] != word[matched]) break;
            at++, matched++;
        }
        if (!word[matched]) return true;
    }
    return false;
}

/* C text can hardly do without the headers of the C library, which change as seldom as the compiler. */
static bool includes_system_only(const drupe_source *source)
{
    const char *text = source->bytes, *end = text + source->size;
    static const char *const elsewhere[] = {"-i", "-I", "-B", "-L", "@", ".o", ".a"};
    for (size_t i = 0; source->options && i < DRUPE_COUNT_OF(elsewhere); i++)
        if (strstr(source->options, elsewhere[i])) return false;
    if (getenv("CPATH") || getenv("C_INCLUDE_PATH")) return false;
    while ((text = memmem(text, (size_t)(end - text), "include", 7)) != NULL) {
        for (text += 7; text < end && (*text == ' ' || *text == '\t'); text++) {}
        if (text == end || *text != '<') return false;
    }
    return true;
}

bool drupe_key_complete(const drupe_source *source)
{
    static const char *const words[] = {"include", "__DATE__", "__TIME", "?\?/", "\\\r"};
    if (source->language == DRUPE_LANG_SPIRV) return true;
    bool c = source->language == DRUPE_LANG_C;
    if (source->language != DRUPE_LANG_OPENCL_C && !c) return false;
    if (c && !includes_system_only(source)) return false;
    for (size_t i = c ? 1 : 0; i < DRUPE_COUNT_OF(words); i++) {
        if (mentions(source->bytes, source->size, words[i])) return false;
        if (source->options && mentions(source->options, strlen(source->options), words[i])) return false;
    }
    return true;
}
