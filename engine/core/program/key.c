/* What decides a build, as text. It is stored with each entry and compared, so nothing rests on hashes alone.
 */
#include "core/program/program_room.h"
#include <stdlib.h>
#include <string.h>

static void add_info(drupe_text *text, drupe_device *device, drupe_info key, const char *name)
{
    size_t needed = 0;
    char fixed[256], *value = fixed;
    drupe_status status = drupe_device_info(device, key, NULL, 0, &needed);
    if (status == DRUPE_E_UNSUPPORTED) return; /* as ever: it has no such property */
    if (needed > sizeof fixed) value = malloc(needed);
    if (status == DRUPE_OK && value && drupe_device_info(device, key, value, needed, NULL) == DRUPE_OK)
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

/* --- What brings in more than the text -------------------------------------------------------------------
 */

/* These searches do not parse: a word in a comment counts too, which costs a build, where one that is
 * overlooked would bring back a program of a file that has changed since. */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Behind an escaped end of line at `at`, or 0; compilers allow blanks before the end. */
static size_t behind_splice(const char *text, size_t size, size_t at)
{
    if (text[at] != '\\') return 0;
    for (at++; at < size && is_blank(text[at]); at++) {}
    return at < size && text[at] == '\n' ? at + 1 : 0;
}

/* The text as one line per line, *taken* by the caller; its size does not grow. */
static char *unspliced(const char *text, size_t size, size_t *length)
{
    char *plain = malloc(size + 1);
    *length = 0;
    for (size_t at = 0; plain && at < size;) {
        const size_t behind = behind_splice(text, size, at);
        if (behind)
            at = behind;
        else
            plain[(*length)++] = text[at++];
    }
    if (plain) plain[*length] = '\0';
    return plain;
}

static const char *find(const char *from, const char *end, const char *word)
{
    return memmem(from, (size_t)(end - from), word, strlen(word));
}

static bool has_word(const char *text, const char *end, const char *word)
{
    for (const char *at = text; (at = find(at, end, word)); at++) {
        const char *behind = at + strlen(word);
        if ((at == text || !in_word(at[-1])) && (behind == end || !in_word(*behind))) return true;
    }
    return false;
}

/* Pieces of words that bring in a file or the time, or that could make such a word unseen. */
static bool brings_in(const char *text, size_t size, bool c)
{
    static const char *const pieces[] = {"__DATE__", "__TIME",         "__FILE", "__BASE_FILE", "__has_embed",
                                         "incbin",   "pch_preprocess", "?\?/",   "?\?="};
    static const char *const words[] = {"asm", "__asm", "__asm__", "import", "embed", "dependency"};
    static const char *const hidden[] = {"##", "%:%:", "\\u", "\\U"}; /* kernels in OpenCL C do paste */
    const char *end = text + size;
    for (size_t i = 0; i < DRUPE_COUNT_OF(pieces); i++)
        if (find(text, end, pieces[i])) return true;
    for (size_t i = 0; i < DRUPE_COUNT_OF(words); i++)
        if (has_word(text, end, words[i])) return true;
    for (size_t i = 0; c && i < DRUPE_COUNT_OF(hidden); i++)
        if (find(text, end, hidden[i])) return true;
    /* A carriage return alone ends a line for some compilers. */
    for (const char *at = text; (at = memchr(at, '\r', (size_t)(end - at))); at++)
        if (at + 1 == end || at[1] != '\n') return true;
    return false;
}

/* C text can hardly do without the headers of the C library, which change as seldom as the compiler. Every
 * "include" has to be followed by a header in angle brackets that stays in the compiler's folders. */
static bool includes_system_only(const char *text, size_t size)
{
    const char *end = text + size;
    while ((text = find(text, end, "include"))) {
        for (text += 7; text < end && (*text == ' ' || *text == '\t'); text++) {}
        if (text == end || *text++ != '<') return false;
        const char *stop = memchr(text, '>', (size_t)(end - text));
        if (!stop || *text == '/' || memchr(text, '\n', (size_t)(stop - text)) || find(text, stop, ".."))
            return false;
    }
    return true;
}

static bool options_complete(const char *options, bool c)
{
    static const char *const elsewhere[] = {"-i",
                                            "-I",
                                            "-B",
                                            "-L",
                                            "@",
                                            ".o",
                                            ".a",
                                            "-specs",
                                            "-fplugin",
                                            "-fprofile",
                                            "-fauto-profile",
                                            "sysroot",
                                            "-Wl",
                                            "-Wp",
                                            "-Wa",
                                            "-X",
                                            "-T",
                                            "-wrapper"};
    if (!options) return true;
    for (size_t i = 0; c && i < DRUPE_COUNT_OF(elsewhere); i++)
        if (strstr(options, elsewhere[i])) return false;
    return !brings_in(options, strlen(options), c) && !strstr(options, "include");
}

bool drupe_key_complete(const drupe_source *source)
{
    static const char *const variables[] = {"CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"};
    if (source->language == DRUPE_LANG_SPIRV) return true;
    const bool c = source->language == DRUPE_LANG_C;
    if (source->language != DRUPE_LANG_OPENCL_C && !c) return false;
    for (size_t i = 0; c && i < DRUPE_COUNT_OF(variables); i++)
        if (getenv(variables[i])) return false;
    if (!options_complete(source->options, c)) return false;
    size_t length;
    char *plain = unspliced(source->bytes, source->size, &length);
    bool complete = plain && !brings_in(plain, length, c);
    if (complete && c) complete = includes_system_only(plain, length);
    if (complete && !c) complete = !find(plain, plain + length, "include");
    free(plain);
    return complete;
}
