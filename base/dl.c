/* Libraries that are opened at run time: those of vendors by name, when one of their devices is asked for,
 * and those that were made here. */
#include "base/base.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

drupe_status drupe_dl_open(const char *const *names, const char *advice, const drupe_dl_symbol *symbols,
                           size_t count, void *table, void **handle)
{
    *handle = NULL;
    void *library = NULL;
    const char *opened = NULL;
    drupe_text reasons = {0};
    for (size_t i = 0; names[i] && !library; i++) {
        opened = names[i];
        library = dlopen(opened, RTLD_NOW | RTLD_LOCAL);
        if (library) break;
        const char *reason = dlerror();
        drupe_text_printf(&reasons, "%s%s", i ? "; " : "", reason ? reason : opened);
    }
    if (!library) {
        drupe_error_set(DRUPE_E_UNAVAILABLE, "Cannot open the library %s (%s): %s.", names[0],
                        drupe_text_get(&reasons), advice);
        drupe_text_clear(&reasons);
        return DRUPE_E_UNAVAILABLE;
    }
    drupe_text_clear(&reasons);
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol && !symbols[i].optional) {
            drupe_error_set(DRUPE_E_UNAVAILABLE, "The library %s has no function %s, it is too old: %s.",
                            opened, symbols[i].name, advice);
            dlclose(library);
            return DRUPE_E_UNAVAILABLE;
        }
        /* ISO C has no conversion between object and function pointers; POSIX promises the same bits. */
        memcpy((char *)table + symbols[i].offset, &symbol, sizeof symbol);
    }
    *handle = library;
    return DRUPE_OK;
}

void *drupe_dl_descriptor(int fd)
{
    static _Atomic(uint32_t) counter;
    const uint32_t number = counter++;
    char path[160];
    size_t length = (size_t)snprintf(path, sizeof path, "/proc/self/fd");
    for (int bit = 0; bit < 32; bit++)
        length += (size_t)snprintf(path + length, sizeof path - length, number >> bit & 1 ? "/." : "/");
    snprintf(path + length, sizeof path - length, "/%d", fd);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}
