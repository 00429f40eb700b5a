/* The machine's C compiler: where it is, and which one it is.
 *
 * Its file tells that it was replaced, the version that it prints that what a wrapper such as ccache stands
 * for was. The version takes a process to ask, so it is asked once for each state of the file. */
#include "backends/host/code.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define VERSION_NS UINT64_C(20000000000)

/* What the compiler's file printed as its version; never freed. */
static struct {
    pthread_mutex_t lock;
    char *file, *text;
} version = {.lock = PTHREAD_MUTEX_INITIALIZER};

char *drupe_host_compiler_find(void)
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
        char *path = drupe_host_compiler_find();
        known = path ? 2 : 1;
        free(path);
    }
    return known == 2;
}

static drupe_status describe_file(const char *path, drupe_text *text)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return drupe_error_set(DRUPE_E_UNAVAILABLE, "The C compiler %s is gone.", path);
    drupe_text_printf(text, "%s %lld %lld.%09ld\n", path, (long long)about.st_size,
                      (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
    return drupe_text_check(text);
}

static drupe_status ask_version(const char *path, const char *file)
{
    if (version.file && strcmp(version.file, file) == 0) return DRUPE_OK;
    const char *const argv[] = {path, "--version", NULL};
    drupe_text output = {0}, name = {0};
    drupe_text_printf(&name, "%s", file);
    drupe_status status = drupe_text_check(&name);
    if (status == DRUPE_OK) status = drupe_process_run(argv, (drupe_span){"", 0}, VERSION_NS, &output);
    if (status == DRUPE_OK) {
        free(version.file);
        free(version.text);
        version.file = drupe_text_take(&name);
        version.text = drupe_text_take(&output);
    }
    drupe_text_clear(&name);
    drupe_text_clear(&output);
    return status;
}

static drupe_status describe(const char *path, drupe_text *text)
{
    DRUPE_TRY(describe_file(path, text));
    pthread_mutex_lock(&version.lock);
    drupe_status status = ask_version(path, drupe_text_get(text));
    if (status == DRUPE_OK) drupe_text_printf(text, "%s\n", version.text ? version.text : "");
    pthread_mutex_unlock(&version.lock);
    return status == DRUPE_OK ? drupe_text_check(text) : status;
}

drupe_status drupe_host_program_tools(drupe_device *device, drupe_language language, char **tools)
{
    (void)device;
    *tools = NULL;
    if (language != DRUPE_LANG_C) return DRUPE_OK;
    char *path = drupe_host_compiler_find();
    if (!path) return drupe_error_set(DRUPE_E_UNSUPPORTED, "The C compiler of this machine is gone.");
    drupe_text text = {0};
    drupe_status status = describe(path, &text);
    if (status == DRUPE_OK) *tools = drupe_text_take(&text);
    drupe_text_clear(&text);
    free(path);
    return status;
}
