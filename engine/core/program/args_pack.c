/* The arguments of all kernels of a program, to be kept with its binary. */
#include "core/program/program_room.h"
#include <stdlib.h>
#include <string.h>

drupe_status drupe_args_pack(drupe_program *program, drupe_text *text)
{
    const char *at = drupe_program_kernel_names(program);
    while (*at) {
        size_t length = strcspn(at, ";");
        char *name = strndup(at, length);
        drupe_kernel *kernel = NULL;
        if (!name) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a kernel's name.");
        drupe_status status = drupe_kernel_open(program, name, &kernel);
        free(name);
        DRUPE_TRY(status);
        if (kernel->args) drupe_args_add(text, kernel->name, kernel->args, kernel->nargs);
        drupe_kernel_release(kernel);
        at += length + (at[length] == ';');
    }
    return drupe_text_check(text);
}
