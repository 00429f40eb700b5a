/* Kernels in C: the machine's compiler makes a library, which is opened from memory, so that a program from
 * the disk cache needs no file and no folder has to allow programs. */
#include "backends/host/code.h"
#include "base/file.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COMPILE_NS   UINT64_C(120000000000)
#define MOST_OPTIONS 32u
#define MOST_BYTES   ((size_t)1 << 28)
/* Older compilers know one of the two on each. */
#if defined(__aarch64__)
#define THIS_PROCESSOR "-mcpu=native"
#else
#define THIS_PROCESSOR "-march=native"
#endif

/* --- The compiler ----------------------------------------------------------------------------------------
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

typedef struct words {
    const char *first[MOST_OPTIONS], *linked[MOST_OPTIONS];
    size_t nfirst, nlinked;
} words;

/* Words of `options`, which is cut up; false if there are too many. */
static bool split_options(char *options, words *w)
{
    char *rest = NULL;
    for (char *word = strtok_r(options, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
        if (w->nfirst + w->nlinked >= MOST_OPTIONS) return false;
        if (is_linked(word))
            w->linked[w->nlinked++] = word;
        else
            w->first[w->nfirst++] = word;
    }
    return true;
}

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

static drupe_status run_compiler(const char *compiler, char *options, const char *path, drupe_span text,
                                 drupe_text *messages)
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
    const char *argv[MOST_OPTIONS + 24] = {compiler};
    size_t count = 1;
    words w = {.nfirst = 0};
    if (!split_options(options, &w))
        return drupe_error_set(DRUPE_E_INVALID, "There are too many options for the C compiler.");
    for (size_t i = 0; i < DRUPE_COUNT_OF(begin); i++) argv[count++] = begin[i];
    for (size_t i = 0; i < w.nfirst; i++) argv[count++] = w.first[i];
    const char *const end[] = {"-Wl,-z,defs", "-o", path, "-", "-x", "none"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(end); i++) argv[count++] = end[i];
    for (size_t i = 0; i < w.nlinked; i++) argv[count++] = w.linked[i];
    argv[count] = "-lm";
    drupe_status status = drupe_process_run(argv, text, COMPILE_NS, messages);
    if (status != DRUPE_E_INVALID) return status;
    DRUPE_TRY(leave_ours_out(messages));
    return drupe_error_set(DRUPE_E_BUILD_FAILED, "The C compiler found errors:\n%.1200s",
                           drupe_text_get(messages));
}

/* --- Libraries -------------------------------------------------------------------------------------------
 */

drupe_host_code *drupe_host_code_retain(drupe_host_code *code)
{
    atomic_fetch_add_explicit(&code->references, 1, memory_order_relaxed);
    return code;
}

void drupe_host_code_release(drupe_host_code *code)
{
    if (!code || atomic_fetch_sub_explicit(&code->references, 1, memory_order_acq_rel) != 1) return;
    if (code->library) dlclose(code->library);
    free(code->builtins);
    free(code->bytes);
    free(code);
}

/* The linker takes a library that is open under the same path for the same one: each path is a new one. */
static void new_path(int fd, char *path, size_t size)
{
    static _Atomic(uint32_t) counter;
    uint32_t number = counter++;
    size_t length = (size_t)snprintf(path, size, "/proc/self/fd");
    for (int bit = 0; bit < 32; bit++)
        length += (size_t)snprintf(path + length, size - length, number >> bit & 1 ? "/." : "/");
    snprintf(path + length, size - length, "/%d", fd);
}

static int new_file(void)
{
#ifdef MFD_EXEC /* systems that have it may want it said */
    int fd = memfd_create("drupe-program", MFD_CLOEXEC | MFD_EXEC);
    if (fd >= 0 || errno != EINVAL) return fd;
#endif
    return memfd_create("drupe-program", MFD_CLOEXEC);
}

/* It may use instructions that only the machine has which compiled it. */
static drupe_status check_machine(const drupe_host_code *code)
{
    const char *made_for = dlsym(code->library, DRUPE_HOST_MADE_FOR);
    if (made_for && strcmp(made_for, drupe_host_features()) == 0) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_BUILD_FAILED,
                           "The program was compiled for a processor with other features. Build it from its "
                           "text.");
}

static drupe_status open_library(drupe_host_code *code)
{
    char path[160];
    int fd = new_file();
    if (fd < 0 || !drupe_write_all(fd, code->bytes, code->size)) {
        int why = errno;
        if (fd >= 0) close(fd);
        return drupe_error_set(why == EACCES ? DRUPE_E_BUILD_FAILED : DRUPE_E_NO_MEMORY,
                               "A program of %zu bytes cannot be put into memory: %s.", code->size,
                               strerror(why));
    }
    new_path(fd, path, sizeof path);
    code->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(fd);
    if (code->library) code->entries = dlsym(code->library, DRUPE_HOST_TABLE);
    if (code->entries) return check_machine(code);
    const char *why = code->library ? "it was not compiled by this version of Drupe" : dlerror();
    return drupe_error_set(DRUPE_E_BUILD_FAILED, "The compiled program cannot be opened: %s.", why);
}

static drupe_status list_kernels(drupe_host_code *code)
{
    while (code->entries[code->count].name) code->count++;
    if (code->count == 0)
        return drupe_error_set(DRUPE_E_BUILD_FAILED, "program.c: no #if leaves a kernel in the program.");
    code->builtins = calloc(code->count + 1, sizeof *code->builtins);
    if (!code->builtins) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a program's kernels.");
    for (size_t i = 0; i < code->count; i++) {
        const drupe_host_entry *entry = &code->entries[i];
        code->builtins[i] = (drupe_builtin){entry->name, (uint32_t)entry->count, entry->run};
    }
    return DRUPE_OK;
}

/* `bytes` is malloc'ed and taken. */
static drupe_status load(void *bytes, size_t size, drupe_host_code **code)
{
    drupe_host_code *fresh = calloc(1, sizeof *fresh);
    if (!fresh || !bytes) {
        free(bytes);
        free(fresh);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a program of %zu bytes.", size);
    }
    atomic_init(&fresh->references, 1);
    fresh->bytes = bytes;
    fresh->size = size;
    drupe_status status = open_library(fresh);
    if (status == DRUPE_OK) status = list_kernels(fresh);
    if (status == DRUPE_OK) drupe_host_code_judge(fresh);
    if (status == DRUPE_OK)
        *code = fresh;
    else
        drupe_host_code_release(fresh);
    return status;
}

drupe_status drupe_host_code_load(const void *bytes, size_t size, drupe_host_code **code)
{
    void *copy = malloc(size + 1);
    if (copy) memcpy(copy, bytes, size);
    return load(copy, size, code);
}

/* --- Building --------------------------------------------------------------------------------------------
 */

static drupe_status read_library(const char *path, drupe_host_code **code)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (end <= 0 || (size_t)end > MOST_BYTES) {
        if (fd >= 0) close(fd);
        return drupe_error_set(DRUPE_E_BUILD_FAILED, "The C compiler left no program behind.");
    }
    void *bytes = malloc((size_t)end);
    bool whole = bytes && pread(fd, bytes, (size_t)end, 0) == (ssize_t)end;
    close(fd);
    if (whole) return load(bytes, (size_t)end, code);
    free(bytes);
    return drupe_error_set(DRUPE_E_NO_MEMORY, "A program of %zu bytes cannot be read.", (size_t)end);
}

static drupe_status compile(const char *compiler, char *options, drupe_span text, drupe_text *messages,
                            drupe_host_code **code)
{
    const char *base = getenv("TMPDIR");
    char folder[PATH_MAX - 16], path[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s/drupe-XXXXXX", base && *base == '/' ? base : "/tmp");
    if (length < 0 || (size_t)length >= sizeof folder || !mkdtemp(folder)) {
        return drupe_error_set(DRUPE_E_BUILD_FAILED,
                               "There is no folder to compile in: set TMPDIR to one that can be written to.");
    }
    snprintf(path, sizeof path, "%s/program.so", folder);
    drupe_status status = run_compiler(compiler, options, path, text, messages);
    if (status == DRUPE_OK) status = read_library(path, code);
    drupe_error kept = *drupe_error_last();
    unlink(path);
    rmdir(folder);
    return status == DRUPE_OK ? status : drupe_error_restore(&kept);
}

static drupe_status build(const drupe_source *source, drupe_text *text, drupe_text *messages,
                          drupe_host_code **code)
{
    DRUPE_TRY(drupe_host_code_text(source->bytes, source->size, text));
    char *compiler = drupe_host_compiler_find(), *options = strdup(source->options ? source->options : "");
    drupe_status status;
    if (!compiler)
        status = drupe_error_set(DRUPE_E_UNSUPPORTED, "The C compiler of this machine is gone.");
    else if (!options)
        status = drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the C compiler's options.");
    else
        status = compile(compiler, options, (drupe_span){text->data, text->length}, messages, code);
    free(options);
    free(compiler);
    return status;
}

drupe_status drupe_host_code_build(const drupe_source *source, char **log, drupe_host_code **code)
{
    drupe_text text = {0}, messages = {0};
    drupe_status status = build(source, &text, &messages, code);
    if (status == DRUPE_E_BUILD_FAILED) {
        if (!messages.length) drupe_text_printf(&messages, "%s", drupe_error_last()->text);
        *log = drupe_text_take(&messages);
    }
    drupe_text_clear(&messages);
    drupe_text_clear(&text);
    return status;
}
