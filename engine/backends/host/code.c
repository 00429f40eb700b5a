/* Kernels in C, compiled: the library that the machine's compiler makes is opened from memory, so that a
 * program from the disk cache needs no file and no folder has to allow programs. */
#include "backends/host/code.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    if (code->quick)
        drupe_host_quick_release(code);
    else if (code->library)
        dlclose(code->library);
    free(code->builtins);
    free(code->bytes);
    free(code);
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
    int fd = new_file();
    if (fd < 0 || !drupe_write_all(fd, code->bytes, code->size)) {
        int why = errno;
        if (fd >= 0) close(fd);
        return drupe_error_set(why == EACCES ? DRUPE_E_BUILD_FAILED : DRUPE_E_NO_MEMORY,
                               "A program of %zu bytes cannot be put into memory: %s.", code->size,
                               strerror(why));
    }
    code->library = drupe_dl_descriptor(fd);
    close(fd);
    if (code->library) code->entries = dlsym(code->library, DRUPE_HOST_TABLE);
    if (code->entries) return check_machine(code);
    const char *why = code->library ? "it has no table of kernels of this version of Drupe" : dlerror();
    return drupe_error_set(DRUPE_E_BUILD_FAILED, "The compiled program cannot be opened: %s.", why);
}

/* Texts may bring the table themselves. */
static drupe_status check_entry(const drupe_host_entry *entry)
{
    if (entry->run && (entry->params || !entry->count) && entry->count <= DRUPE_HOST_PARAMS) return DRUPE_OK;
    return drupe_error_set(
        DRUPE_E_BUILD_FAILED,
        "program.c: the entry of '%.64s' in the table of kernels lacks its function or its "
        "parameters, or has more than %u.",
        entry->name, DRUPE_HOST_PARAMS);
}

static drupe_status list_kernels(drupe_host_code *code)
{
    while (code->entries[code->count].name) DRUPE_TRY(check_entry(&code->entries[code->count++]));
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

static drupe_host_code *code_new(void)
{
    drupe_host_code *fresh = calloc(1, sizeof *fresh);
    if (fresh) atomic_init(&fresh->references, 1);
    return fresh;
}

/* `fresh` is taken. */
static drupe_status hand_over(drupe_host_code *fresh, drupe_status status, drupe_host_code **code)
{
    if (status == DRUPE_OK) status = list_kernels(fresh);
    if (status == DRUPE_OK)
        *code = fresh;
    else
        drupe_host_code_release(fresh);
    return status;
}

/* `bytes` is malloc'ed and taken. */
static drupe_status load(void *bytes, size_t size, drupe_host_code **code)
{
    drupe_host_code *fresh = code_new();
    if (!fresh || !bytes) {
        free(bytes);
        free(fresh);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a program of %zu bytes.", size);
    }
    fresh->bytes = bytes;
    fresh->size = size;
    drupe_status status = open_library(fresh);
    if (status == DRUPE_OK) drupe_host_code_judge(fresh);
    return hand_over(fresh, status, code);
}

drupe_status drupe_host_code_load(const void *bytes, size_t size, drupe_host_code **code)
{
    void *copy = malloc(size + 1);
    if (copy) memcpy(copy, bytes, size);
    return load(copy, size, code);
}

/* --- Building --------------------------------------------------------------------------------------------
 */

static drupe_status build_quick(const drupe_host_options *options, const char *text, drupe_text *messages,
                                drupe_host_code **code)
{
    drupe_host_code *fresh = code_new();
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a program.");
    return hand_over(fresh, drupe_host_quick_build(options, text, messages, fresh), code);
}

static drupe_status build_library(const drupe_host_options *options, drupe_span text, drupe_text *messages,
                                  drupe_host_code **code)
{
    void *bytes;
    size_t size;
    DRUPE_TRY(drupe_host_cc(options, text, messages, &bytes, &size));
    return load(bytes, size, code);
}

static drupe_status build(const drupe_source *source, const drupe_host_options *options, drupe_text *messages,
                          drupe_host_code **code)
{
    drupe_text text = {0};
    const bool table = options->table || options->quick;
    drupe_status status = table ? drupe_host_code_table(source->bytes, source->size, options->quick, &text)
                                : drupe_host_code_text(source->bytes, source->size, options->block, &text);
    if (status == DRUPE_OK && options->quick)
        status = build_quick(options, drupe_text_get(&text), messages, code);
    else if (status == DRUPE_OK)
        status = build_library(options, (drupe_span){text.data, text.length}, messages, code);
    drupe_text_clear(&text);
    return status;
}

/* Whether the compiler misses what only kernels with groups have. */
static bool misses_groups(const drupe_host_options *options, const drupe_text *messages)
{
    static const char *const words[] = {"barrier",    "get_local_",        "get_group_id", "get_num_groups",
                                        "_MEM_FENCE", "\u2018local\u2019", "'local'"};
    bool found = false;
    for (size_t i = 0; messages->length && i < DRUPE_COUNT_OF(words); i++)
        found = found || strstr(drupe_text_get(messages), words[i]);
    return found && !options->block[0] && !options->table && !options->quick;
}

drupe_status drupe_host_code_build(const drupe_source *source, char **log, drupe_host_code **code)
{
    drupe_text messages = {0};
    drupe_host_options options;
    drupe_status status = drupe_host_options_read(source->options, &options);
    if (status == DRUPE_OK) status = build(source, &options, &messages, code);
    if (status == DRUPE_E_BUILD_FAILED) {
        if (!messages.length) drupe_text_printf(&messages, "%s", drupe_error_last()->text);
        if (misses_groups(&options, &messages))
            drupe_text_printf(&messages, "%s\n", DRUPE_HOST_GROUPS_ADVICE);
        *log = drupe_text_take(&messages);
    }
    drupe_text_clear(&messages);
    free(options.text);
    return status;
}
