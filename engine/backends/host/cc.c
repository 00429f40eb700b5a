/* The machine's C compiler at work: from a text to the bytes of a library. */
#include "backends/host/code.h"
#include "driver/driver.h"
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES ((size_t)1 << 28)
/* Older compilers know one of the two on each. */
#if defined(__aarch64__)
#define THIS_PROCESSOR "-mcpu=native"
#else
#define THIS_PROCESSOR "-march=native"
#endif

/* --- Options ---------------------------------------------------------------------------------------------
 */

static bool ends_in(const char *word, const char *end)
{
    size_t length = strlen(word), wanted = strlen(end);
    return length > wanted && strcmp(word + length - wanted, end) == 0;
}

/* Libraries and objects stand behind the text that uses them. */
static bool is_linked(const char *word)
{
    return strncmp(word, "-l", 2) == 0 || ends_in(word, ".o") || ends_in(word, ".a") || ends_in(word, ".so");
}

#define QUICK "-drupe-quick"

/* False: the word is for the compiler. */
static bool take_ours(drupe_host_options *options, const char *word)
{
    const bool table = strcmp(word, "-drupe-table") == 0, quick = strcmp(word, QUICK) == 0;
    size_t *block = options->block;
    const int given = sscanf(word, "-drupe-groups=%zu,%zu,%zu", &block[0], &block[1], &block[2]);
    const bool groups = given >= 1;
    for (int d = given; groups && d < 3; d++) block[d] = 1;
    options->table |= table;
    options->quick |= quick;
    return table || quick || groups;
}

bool drupe_host_options_quick(const char *text)
{
    static const char blanks[] = " \t\n";
    for (const char *at = text; at && (at = strstr(at, QUICK)); at++) {
        const char end = at[strlen(QUICK)];
        if ((at == text || strchr(blanks, at[-1])) && strchr(blanks, end)) return true;
    }
    return false;
}

drupe_status drupe_host_options_read(const char *text, drupe_host_options *options)
{
    char *rest = NULL;
    *options = (drupe_host_options){.text = strdup(text ? text : "")};
    if (!options->text) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the C compiler's options.");
    for (char *word = strtok_r(options->text, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
        if (take_ours(options, word)) continue;
        if (options->nfirst + options->nlinked >= DRUPE_HOST_OPTIONS)
            return drupe_error_set(DRUPE_E_INVALID, "There are too many options for the C compiler.");
        if (is_linked(word))
            options->linked[options->nlinked++] = word;
        else
            options->first[options->nfirst++] = word;
    }
    return DRUPE_OK;
}

/* --- Messages --------------------------------------------------------------------------------------------
 */

/* Messages about what was inserted follow from those about the text; they stay where no other is an
 * error. */
static drupe_status leave_ours_out(drupe_text *messages)
{
    drupe_text kept = {0};
    const char *line = drupe_text_get(messages);
    bool ours = false;
    while (*line) {
        size_t length = strcspn(line, "\n");
        length += line[length] == '\n';
        bool of_macro = strncmp(line, "drupe.h:", 8) == 0; /* belongs to the message before it */
        if (*line != ' ' && !of_macro) ours = strncmp(line, "drupe:", 6) == 0;
        if (!ours) drupe_text_append(&kept, line, length);
        line += length;
    }
    drupe_status status = drupe_text_check(&kept);
    if (status != DRUPE_OK || !strstr(drupe_text_get(&kept), "error")) {
        drupe_text_clear(&kept);
        return status;
    }
    drupe_text_clear(messages);
    *messages = kept;
    return DRUPE_OK;
}

/* --- The process -----------------------------------------------------------------------------------------
 */

/* Functions of the C library whose last bit is the library's affair: compilers know better ones for constants
 * and for some powers. */
#define ONE(name)  "-fno-builtin-" name
#define BOTH(name) ONE(name), ONE(name "f")

/* What makes a text with a table of its own give the same bits, and errors, by every compiler. Nobody looks
 * at the flags of the processor, and without them a select becomes vector code. */
static const char *const table[] = {"-ffp-contract=off",  "-Werror=implicit-function-declaration",
                                    "-fno-trapping-math", BOTH("acos"),
                                    BOTH("acosh"),        BOTH("asin"),
                                    BOTH("asinh"),        BOTH("atan"),
                                    BOTH("atan2"),        BOTH("atanh"),
                                    BOTH("cbrt"),         BOTH("cos"),
                                    BOTH("cosh"),         BOTH("erf"),
                                    BOTH("erfc"),         BOTH("exp"),
                                    BOTH("exp2"),         BOTH("expm1"),
                                    BOTH("hypot"),        BOTH("lgamma"),
                                    BOTH("log"),          BOTH("log10"),
                                    BOTH("log1p"),        BOTH("log2"),
                                    BOTH("pow"),          BOTH("sin"),
                                    BOTH("sincos"),       BOTH("sinh"),
                                    BOTH("tan"),          BOTH("tanh"),
                                    BOTH("tgamma")};

static drupe_status run(const char *compiler, const drupe_host_options *options, const char *path,
                        drupe_span text, drupe_text *messages)
{
    static const char *const begin[] = {"-x",
                                        "c",
                                        "-std=gnu11",
                                        "-O3",
                                        "-fPIC",
                                        "-shared",
                                        THIS_PROCESSOR,
                                        "-fsigned-char", /* DRUPE_SCALAR_I8 on every processor */
                                        "-fno-math-errno",
                                        "-fstack-clash-protection", /* a full stack is a fault */
                                        "-fvisibility=hidden"};
    const char *argv[DRUPE_HOST_OPTIONS + 96] = {compiler};
    size_t count = 1;
    for (size_t i = 0; i < DRUPE_COUNT_OF(begin); i++) argv[count++] = begin[i];
    for (size_t i = 0; options->table && i < DRUPE_COUNT_OF(table); i++) argv[count++] = table[i];
    for (size_t i = 0; i < options->nfirst; i++) argv[count++] = options->first[i];
    const char *const end[] = {"-Wl,-z,defs", "-o", path, "-", "-x", "none"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(end); i++) argv[count++] = end[i];
    for (size_t i = 0; i < options->nlinked; i++) argv[count++] = options->linked[i];
    argv[count] = "-lm";
    drupe_status status = drupe_compiler_run(argv, text, messages);
    if (status != DRUPE_E_INVALID) return status;
    DRUPE_TRY(leave_ours_out(messages));
    return drupe_error_set(DRUPE_E_BUILD_FAILED, "The C compiler found errors:\n%.1200s",
                           drupe_text_get(messages));
}

static drupe_status read_library(const char *path, void **bytes, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (end <= 0 || (size_t)end > MOST_BYTES) {
        if (fd >= 0) close(fd);
        return drupe_error_set(DRUPE_E_BUILD_FAILED, "The C compiler left no program behind.");
    }
    *bytes = malloc((size_t)end);
    *size = (size_t)end;
    bool whole = *bytes && pread(fd, *bytes, (size_t)end, 0) == (ssize_t)end;
    close(fd);
    if (whole) return DRUPE_OK;
    free(*bytes);
    return drupe_error_set(DRUPE_E_NO_MEMORY, "A program of %zu bytes cannot be read.", (size_t)end);
}

static drupe_status compile(const char *compiler, const drupe_host_options *options, drupe_span text,
                            drupe_text *messages, void **bytes, size_t *size)
{
    const char *base = getenv("TMPDIR");
    char folder[PATH_MAX - 16], path[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s/drupe-XXXXXX", base && *base == '/' ? base : "/tmp");
    if (length < 0 || (size_t)length >= sizeof folder || !mkdtemp(folder)) {
        return drupe_error_set(DRUPE_E_BUILD_FAILED,
                               "There is no folder to compile in: set TMPDIR to one that can be written to.");
    }
    snprintf(path, sizeof path, "%s/program.so", folder);
    drupe_status status = run(compiler, options, path, text, messages);
    if (status == DRUPE_OK) status = read_library(path, bytes, size);
    drupe_error kept = *drupe_error_last();
    unlink(path);
    rmdir(folder);
    return status == DRUPE_OK ? status : drupe_error_restore(&kept);
}

drupe_status drupe_host_cc(const drupe_host_options *options, drupe_span text, drupe_text *messages,
                           void **bytes, size_t *size)
{
    char *compiler = drupe_host_compiler_find();
    if (!compiler) return drupe_error_set(DRUPE_E_UNSUPPORTED, "The C compiler of this machine is gone.");
    drupe_status status = compile(compiler, options, text, messages, bytes, size);
    free(compiler);
    return status;
}
