/* Programs and kernels. What a submission needs to check its arguments is asked once, when the kernel opens.
 */
#include "core/program/program_room.h"
#include <stdlib.h>
#include <string.h>

/* --- Programs ------------------------------------------------------------------------------------------- */

drupe_program *drupe_program_retain(drupe_program *program)
{
    if (program) drupe_object_retain(program);
    return program;
}

void drupe_program_release(drupe_program *program)
{
    if (!program || !drupe_object_release(program)) return;
    if (program->opened && !drupe_device_silent(program->device))
        program->object.backend->program_close(program);
    drupe_slot *slot = program->context->slot;
    drupe_device_release(program->device);
    drupe_context_release(program->context);
    free(program->names);
    free(program->args);
    drupe_object_free(&slot->live, program);
}

drupe_context *drupe_program_context(const drupe_program *program)
{
    return program->context;
}

drupe_device *drupe_program_device(const drupe_program *program)
{
    return program->device;
}

const char *drupe_program_kernel_names(const drupe_program *program)
{
    return program->names ? program->names : "";
}

/* --- Kernels -------------------------------------------------------------------------------------------- */

static drupe_status no_room(const drupe_kernel *kernel)
{
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the arguments of the kernel '%s'.",
                           kernel->name);
}

/* Argument information is all or nothing: a partial table would check some arguments and not others. What is
 * missing for lack of memory would be missing for as long as the kernel lives. */
static drupe_status kernel_learn_args(drupe_kernel *kernel)
{
    const drupe_backend *backend = kernel->object.backend;
    if (!backend->kernel_arg || kernel->nargs == 0) return DRUPE_OK;
    kernel->args = calloc(kernel->nargs, sizeof *kernel->args);
    if (!kernel->args) return no_room(kernel);
    for (uint32_t i = 0; i < kernel->nargs; i++) {
        drupe_status status = backend->kernel_arg(kernel, i, &kernel->args[i]);
        if (status == DRUPE_OK) continue;
        drupe_span packed = {kernel->program->args, kernel->program->args_size};
        if (drupe_args_find(packed, kernel->name, kernel->nargs, kernel->args)) return DRUPE_OK;
        free(kernel->args);
        kernel->args = NULL;
        return status == DRUPE_E_NO_MEMORY ? status : DRUPE_OK;
    }
    return DRUPE_OK;
}

static drupe_status kernel_learn_forms(drupe_kernel *kernel)
{
    const drupe_arg_info *args = kernel->args;
    if (!args) return DRUPE_OK;
    kernel->forms = calloc(kernel->nargs, sizeof *kernel->forms);
    if (!kernel->forms) return no_room(kernel);
    for (uint32_t i = 0; i < kernel->nargs; i++) {
        const drupe_arg_info *info = &args[i];
        size_t size = info->kind == DRUPE_ARG_VALUE ? drupe_args_element(info) : 0;
        kernel->forms[i] = (drupe_form){(uint32_t)info->kind, (uint32_t)size};
        bool word = info->kind == DRUPE_ARG_POINTER || (size > 0 && size <= sizeof(uint64_t));
        kernel->worded = word && (i == 0 || kernel->worded);
    }
    kernel->worded = kernel->worded && kernel->nargs <= DRUPE_ARG_SUMMARY_MOST;
    return DRUPE_OK;
}

static drupe_status kernel_fill(drupe_kernel *kernel, const char *name)
{
    const drupe_backend *backend = kernel->object.backend;
    kernel->name = strdup(name);
    if (!kernel->name) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the kernel '%s'.", name);
    kernel->trace_name = drupe_trace_name(name);
    kernel->opened = true;
    DRUPE_TRY(backend->kernel_open(kernel, name));
    uint64_t nargs = 0;
    DRUPE_TRY(backend->kernel_number(kernel, DRUPE_KERNEL_ARG_COUNT, &nargs));
    kernel->nargs = (uint32_t)nargs;
    /* Limits that a backend does not know are not checked. */
    if (backend->kernel_number(kernel, DRUPE_KERNEL_WORK_GROUP_SIZE, &kernel->group_size))
        kernel->group_size = 0;
    if (backend->kernel_number(kernel, DRUPE_KERNEL_LOCAL_MEM_SIZE, &kernel->local_size))
        kernel->local_size = 0;
    DRUPE_TRY(kernel_learn_args(kernel));
    DRUPE_TRY(kernel_learn_forms(kernel));
    kernel->writes = UINT64_MAX;
    for (uint32_t i = 0; kernel->args && i < kernel->nargs && i < 64; i++)
        if (kernel->args[i].reads_only) kernel->writes &= ~(UINT64_C(1) << i);
    return DRUPE_OK;
}

drupe_status drupe_kernel_open(drupe_program *program, const char *name, drupe_kernel **kernel)
{
    *kernel = NULL;
    DRUPE_TRY(drupe_core_check());
    if (!name || !*name) return drupe_error_set(DRUPE_E_INVALID, "The name of the kernel is empty.");
    DRUPE_TRY(drupe_loss_check(program->device));
    drupe_slot *slot = program->context->slot;
    drupe_kernel *fresh =
        drupe_object_new(&slot->live, slot->backend, sizeof *fresh, slot->backend->size.kernel);
    if (!fresh) return DRUPE_E_NO_MEMORY;
    fresh->program = drupe_program_retain(program);
    fresh->prints = program->prints;
    pthread_mutex_init(&fresh->lock, NULL);
    drupe_status status = kernel_fill(fresh, name);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        drupe_kernel_release(fresh);
        if (status == DRUPE_E_NOT_FOUND && program->names) {
            return drupe_error_set_native(status, kept.backend, kept.native, kept.native_name,
                                          "The program has no kernel '%s'. It has: %s.", name,
                                          program->names);
        }
        return drupe_error_restore(&kept);
    }
    *kernel = fresh;
    return DRUPE_OK;
}

drupe_kernel *drupe_kernel_retain(drupe_kernel *kernel)
{
    if (kernel) drupe_object_retain(kernel);
    return kernel;
}

void drupe_kernel_release(drupe_kernel *kernel)
{
    if (!kernel || !drupe_object_release(kernel)) return;
    void (*close)(drupe_kernel *) = kernel->object.backend->kernel_close;
    if (close && kernel->opened && !drupe_device_silent(kernel->program->device)) close(kernel);
    drupe_slot *slot = kernel->program->context->slot;
    drupe_program *program = kernel->program;
    pthread_mutex_destroy(&kernel->lock);
    free(kernel->args);
    free(kernel->forms);
    free(kernel->name);
    drupe_object_free(&slot->live, kernel);
    drupe_program_release(program);
}

void drupe_kernel_drop(void *kernel)
{
    drupe_kernel_release(kernel);
}

bool drupe_kernel_words(const drupe_kernel *kernel)
{
    return kernel->worded;
}

const char *drupe_kernel_name(const drupe_kernel *kernel)
{
    return kernel->name;
}

drupe_program *drupe_kernel_program(const drupe_kernel *kernel)
{
    return kernel->program;
}

drupe_status drupe_kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    DRUPE_TRY(drupe_core_check());
    if ((unsigned)key >= DRUPE_KERNEL_KEY_COUNT) {
        return drupe_error_set(DRUPE_E_INVALID, "There is no kernel property number %d.", (int)key);
    }
    pthread_mutex_lock(&kernel->lock);
    drupe_status status = kernel->object.backend->kernel_number(kernel, key, value);
    pthread_mutex_unlock(&kernel->lock);
    return status;
}

drupe_status drupe_kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info)
{
    DRUPE_TRY(drupe_core_check());
    if (index >= kernel->nargs) {
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                               "The kernel '%s' has %u arguments, there is no number %zu.", kernel->name,
                               kernel->nargs, index);
    }
    if (!kernel->args) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The compiler does not report the arguments of '%s'.",
                               kernel->name);
    }
    *info = kernel->args[index];
    return DRUPE_OK;
}
