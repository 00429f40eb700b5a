/* Programs of this backend have no text: their kernels are compiled into the engine. */
#include "backends/host/host.h"
#include <string.h>

drupe_status drupe_host_program_open(drupe_program *program, const drupe_source *source, char **log)
{
    drupe_host_program *native = drupe_native(program);
    (void)log;
    native->inlines = source->options && strcmp(source->options, "inline") == 0;
    if (source->language == DRUPE_LANG_BUILTIN) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNSUPPORTED,
                           "The host device runs built-in kernels only. Build OpenCL C for "
                           "drupe.Device(\"opencl:cpu\"), which uses the same processor.");
}

void drupe_host_program_close(drupe_program *program)
{
    (void)program;
}

drupe_status drupe_host_kernel_open(drupe_kernel *kernel, const char *name)
{
    drupe_host_kernel *native = drupe_native(kernel);
    native->inlines = ((const drupe_host_program *)drupe_native(drupe_kernel_program(kernel)))->inlines;
    native->builtin = drupe_builtin_find(name);
    if (native->builtin) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NOT_FOUND, "The host device has no built-in kernel '%s'.", name);
}

void drupe_host_kernel_close(drupe_kernel *kernel)
{
    (void)kernel;
}

drupe_status drupe_host_kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    const drupe_host_kernel *native = drupe_native(kernel);
    switch (key) {
    case DRUPE_KERNEL_ARG_COUNT: *value = native->builtin->nargs; return DRUPE_OK;
    case DRUPE_KERNEL_WORK_GROUP_SIZE:
    case DRUPE_KERNEL_PREFERRED_MULTIPLE:
    case DRUPE_KERNEL_MAX_NUM_SUB_GROUPS:
    case DRUPE_KERNEL_MAX_SUB_GROUP_SIZE: *value = 1; return DRUPE_OK;
    case DRUPE_KERNEL_COMPILE_NUM_SUB_GROUPS:
    case DRUPE_KERNEL_COMPILE_SUB_GROUP_SIZE:
    case DRUPE_KERNEL_PRIVATE_MEM_SIZE:
    case DRUPE_KERNEL_LOCAL_MEM_SIZE: *value = 0; return DRUPE_OK;
    case DRUPE_KERNEL_KEY_COUNT: break;
    }
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "There is no kernel property number %d.", (int)key);
}
