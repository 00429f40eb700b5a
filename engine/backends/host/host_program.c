/* Programs of this backend: kernels that are compiled into the engine, and such as are written in C. */
#include "backends/host/code.h"
#include <stdlib.h>
#include <string.h>

drupe_status drupe_host_program_open(drupe_program *program, const drupe_source *source, char **log)
{
    drupe_host_program *native = drupe_native(program);
    if (source->language == DRUPE_LANG_C) return drupe_host_code_build(source, log, &native->code);
    if (source->language == DRUPE_LANG_BINARY)
        return drupe_host_code_load(source->bytes, source->size, &native->code);
    native->inlines = source->options && strcmp(source->options, "inline") == 0;
    return DRUPE_OK;
}

void drupe_host_program_close(drupe_program *program)
{
    drupe_host_program *native = drupe_native(program);
    drupe_host_code_release(native->code);
    native->code = NULL;
}

drupe_status drupe_host_program_names(drupe_program *program, char **names)
{
    const drupe_host_program *native = drupe_native(program);
    drupe_text text = {0};
    *names = NULL;
    if (!native->code) return DRUPE_OK;
    for (size_t i = 0; i < native->code->count; i++)
        drupe_text_printf(&text, "%s%s", i ? ";" : "", native->code->entries[i].name);
    drupe_status status = drupe_text_check(&text);
    if (status == DRUPE_OK) *names = drupe_text_take(&text);
    drupe_text_clear(&text);
    return status;
}

drupe_status drupe_host_program_binary(drupe_program *program, void **bytes, size_t *size)
{
    const drupe_host_code *code = ((const drupe_host_program *)drupe_native(program))->code;
    if (!code) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "The built-in kernels of the host device have no binary.");
    }
    if (!code->bytes)
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "A program of the quick compiler has no binary.");
    *bytes = malloc(code->size + 1);
    if (!*bytes)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a binary of %zu bytes.", code->size);
    memcpy(*bytes, code->bytes, code->size);
    *size = code->size;
    return DRUPE_OK;
}

uint32_t drupe_host_program_traits(drupe_device *device, const drupe_source *source)
{
    (void)device;
    const bool quick = source->language == DRUPE_LANG_C && drupe_host_options_quick(source->options);
    return quick ? DRUPE_BUILD_TAKEN | DRUPE_BUILD_QUICK : 0;
}

const char *drupe_host_program_advice(drupe_device *device, drupe_language language)
{
    (void)device;
    if (language == DRUPE_LANG_C)
        return "Install a C compiler (on Debian and Ubuntu: apt install gcc libc6-dev), or name one in "
               "DRUPE_CC.";
    if (language == DRUPE_LANG_OPENCL_C && drupe_host_code_possible())
        return "It takes C, with language=\"c\".";
    return NULL;
}

/* --- Kernels ---------------------------------------------------------------------------------------------
 */

static drupe_status find_entry(drupe_host_kernel *native, const char *name)
{
    const drupe_host_code *code = native->code;
    for (native->entry = 0; native->entry < code->count; native->entry++) {
        if (strcmp(code->entries[native->entry].name, name) != 0) continue;
        native->builtin = &code->builtins[native->entry];
        return DRUPE_OK;
    }
    return drupe_error_set(DRUPE_E_NOT_FOUND, "The program has no kernel '%s'.", name);
}

drupe_status drupe_host_kernel_open(drupe_kernel *kernel, const char *name)
{
    drupe_host_kernel *native = drupe_native(kernel);
    const drupe_host_program *program = drupe_native(drupe_kernel_program(kernel));
    native->inlines = program->inlines;
    native->code = program->code;
    if (native->code) return find_entry(native, name);
    native->builtin = drupe_builtin_find(name);
    if (native->builtin) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NOT_FOUND, "The host device has no built-in kernel '%s'.", name);
}

drupe_status drupe_host_kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info)
{
    const drupe_host_kernel *native = drupe_native(kernel);
    *info = (drupe_arg_info){.lanes = 1};
    if (!native->code)
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Built-in kernels do not report their arguments.");
    const drupe_host_param *param = &native->code->entries[native->entry].params[index];
    static const drupe_arg_kind kinds[] = {DRUPE_ARG_VALUE, DRUPE_ARG_POINTER, DRUPE_ARG_LOCAL};
    info->kind = kinds[param->pointer <= 2 ? param->pointer : 0];
    info->scalar = (drupe_scalar_type)param->scalar;
    info->reads_only = param->pointer && param->reads;
    snprintf(info->name, sizeof info->name, "%s", param->name);
    snprintf(info->type_name, sizeof info->type_name, "%s", param->type);
    return DRUPE_OK;
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
