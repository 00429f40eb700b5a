/* Kernels in C: the machine's compiler makes a library, which is opened from memory, so that a program from
 * the disk cache needs no file and no folder has to allow programs. */
#include "backends/host/code.h"
#include "base/file.h"
#include <dlfcn.h>
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

/* Its path, malloc'ed, *taken* by the caller; NULL: there is none. */
static char *find_compiler(void)
{
    const char *chosen = getenv("DRUPE_CC");
    if (chosen && *chosen) return drupe_process_find(chosen);
    static const char *const names[] = {"cc", "gcc", "clang"};
    char *path = NULL;
    for (size_t i = 0; i < DRUPE_COUNT_OF(names) && !path; i++) path = drupe_process_find(names[i]);
    return path;
}

bool drupe_host_code_possible(void)
{
    static _Atomic(int) known; /* 1: no, 2: yes */
    if (!known) {
        char *path = find_compiler();
        known = path ? 2 : 1;
        free(path);
    }
    return known == 2;
}

/* Words of `options`, which is cut up; false if there are too many. */
static bool add_options(char *options, const char **argv, size_t *count)
{
    char *rest = NULL;
    for (char *word = strtok_r(options, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
        if (*count >= MOST_OPTIONS) return false;
        argv[(*count)++] = word;
    }
    return true;
}

static drupe_status run_compiler(const char *compiler, char *options, const char *path, drupe_span text,
                                 drupe_text *messages)
{
    const char *argv[MOST_OPTIONS + 16] = {compiler,
                                           "-x",
                                           "c",
                                           "-std=gnu11",
                                           "-O3",
                                           "-fPIC",
                                           "-shared",
                                           THIS_PROCESSOR,
                                           "-fno-math-errno",
                                           "-fvisibility=hidden"};
    size_t count = 10;
    if (!add_options(options, argv, &count))
        return drupe_error_set(DRUPE_E_INVALID, "There are too many options for the C compiler.");
    static const char *const last[] = {"-Wl,-z,defs", "-o"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(last); i++) argv[count++] = last[i];
    argv[count++] = path;
    argv[count++] = "-";
    argv[count++] = "-lm";
    drupe_status status = drupe_process_run(argv, text, COMPILE_NS, messages);
    if (status != DRUPE_E_INVALID) return status;
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

static drupe_status open_library(drupe_host_code *code)
{
    char path[160];
    int fd = memfd_create("drupe-program", MFD_CLOEXEC);
    if (fd < 0 || !drupe_write_all(fd, code->bytes, code->size)) {
        if (fd >= 0) close(fd);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a program of %zu bytes.", code->size);
    }
    new_path(fd, path, sizeof path);
    code->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(fd);
    if (code->library) code->entries = dlsym(code->library, DRUPE_HOST_TABLE);
    if (code->entries) return DRUPE_OK;
    const char *why = code->library ? "it is none of this version of Drupe" : dlerror();
    return drupe_error_set(DRUPE_E_BUILD_FAILED, "The compiled program cannot be opened: %s.", why);
}

static drupe_status list_kernels(drupe_host_code *code)
{
    while (code->entries[code->count].name) code->count++;
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
    char *compiler = find_compiler(), *options = strdup(source->options ? source->options : "");
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
