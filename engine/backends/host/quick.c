/* The quick tier: a text with a table of its own becomes functions in memory, by the quick compiler of
 * drupe/quick.h. It is looked for once per process, and never closed. */
#include "drupe/quick.h"
#include "backends/host/code.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define BESIDE "drupe-quick.so"

static struct {
    pthread_mutex_t lock;
    bool asked;
    const drupe_quick_compiler *compiler;
    drupe_error why; /* there is none */
} quick = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- The compiler ----------------------------------------------------------------------------------------
 */

static drupe_status none(const char *why)
{
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "There is no quick compiler of C: %s.", why);
}

static drupe_status open_compiler(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return none(dlerror());
    void *symbol = dlsym(library, DRUPE_QUICK_ENTRY);
    drupe_quick_fn entry;
    memcpy(&entry, &symbol, sizeof entry);
    if (symbol) quick.compiler = entry();
    if (quick.compiler) return DRUPE_OK;
    char why[PATH_MAX + 64];
    snprintf(why, sizeof why, "%s has no " DRUPE_QUICK_ENTRY "()", path);
    dlclose(library);
    return none(why);
}

static drupe_status find_compiler(void)
{
    const char *chosen = getenv("DRUPE_QUICK");
    if (chosen && strcmp(chosen, "0") == 0) return none("DRUPE_QUICK is 0");
    if (chosen && *chosen) return open_compiler(chosen);
    char path[PATH_MAX];
    Dl_info here;
    const char *slash = NULL;
    if (dladdr(&quick, &here) && here.dli_fname) slash = strrchr(here.dli_fname, '/');
    const int folder = slash ? (int)(slash - here.dli_fname) : 1;
    snprintf(path, sizeof path, "%.*s/" BESIDE, folder, slash ? here.dli_fname : ".");
    if (access(path, F_OK) == 0) return open_compiler(path);
    return none("Drupe was built without one, for another processor than x86-64 or without libtcc-dev");
}

/* The compiler, or an error. */
static drupe_status ask(const drupe_quick_compiler **compiler)
{
    pthread_mutex_lock(&quick.lock);
    if (!quick.asked && find_compiler() != DRUPE_OK) quick.why = *drupe_error_last();
    quick.asked = true;
    pthread_mutex_unlock(&quick.lock);
    *compiler = quick.compiler;
    return quick.compiler ? DRUPE_OK : drupe_error_restore(&quick.why);
}

/* --- Programs --------------------------------------------------------------------------------------------
 */

static void hear(void *messages, const char *message)
{
    drupe_text_printf(messages, "%s\n", message);
}

/* What an option says about speed, warnings or debugging means nothing here. */
static bool is_idle(const char *word)
{
    static const char *const begins[] = {"-O", "-W", "-w", "-g", "-f", "-m", "-std=", "-pedantic"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(begins); i++)
        if (strncmp(word, begins[i], strlen(begins[i])) == 0) return true;
    return false;
}

static drupe_status read_defines(const drupe_host_options *options, const char **defines, size_t *count)
{
    *count = 0;
    const char *wrong = options->nlinked ? options->linked[0] : NULL;
    for (size_t i = 0; i < options->nfirst && !wrong; i++) {
        const char *word = options->first[i];
        if (strncmp(word, "-D", 2) == 0 && word[2])
            defines[(*count)++] = word + 2;
        else if (!is_idle(word))
            wrong = word;
    }
    if (!wrong) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID, "The quick compiler of C has no option '%s'.", wrong);
}

static drupe_status judge(drupe_quick_result result, const drupe_quick_compiler *compiler,
                          const drupe_text *messages)
{
    const char *told = drupe_text_get(messages);
    switch (result) {
    case DRUPE_QUICK_DONE: return DRUPE_OK;
    case DRUPE_QUICK_ERRORS:
        return drupe_error_set(DRUPE_E_BUILD_FAILED, "The quick compiler of C (%s) found errors:\n%.1200s",
                               compiler->name, told);
    case DRUPE_QUICK_UNABLE:
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "The quick compiler of C (%s) cannot take the program: %s", compiler->name,
                               told);
    case DRUPE_QUICK_NO_MEMORY: break;
    }
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the quick compiler of C.");
}

drupe_status drupe_host_quick_build(const drupe_host_options *options, const char *text, drupe_text *messages,
                                    drupe_host_code *code)
{
    const char *defines[DRUPE_HOST_OPTIONS];
    const drupe_quick_compiler *compiler;
    if (!options->table) {
        return drupe_error_set(DRUPE_E_INVALID,
                               "-drupe-quick takes texts with their own table of kernels only: "
                               "give -drupe-table, too.");
    }
    DRUPE_TRY(ask(&compiler));
    drupe_quick_text task = {
        .text = text, .defines = defines, .symbol = DRUPE_HOST_TABLE, .tell = hear, .user = messages};
    DRUPE_TRY(read_defines(options, defines, &task.ndefines));
    drupe_quick_code made = {.handle = NULL};
    DRUPE_TRY(judge(compiler->compile(&task, &made), compiler, messages));
    code->quick = compiler;
    code->library = made.handle;
    code->entries = made.object;
    code->recovery =
        (drupe_recovery){.way = DRUPE_WAY_ON_INSIDE, .code = made.code, .code_size = made.code_size};
    return DRUPE_OK;
}

void drupe_host_quick_release(drupe_host_code *code)
{
    code->quick->release(code->library);
}
