/* Programs: OpenCL C, binaries, and SPIR-V, directly or by way of a translator. */
#include "opencl.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char arg_info_option[] = "-cl-kernel-arg-info";

/* --- Making and building -------------------------------------------------------------------------------- */

static cl_int create_binary(drupe_cl_program *program, const drupe_cl_context *context, const void *bytes,
                            size_t size)
{
    const unsigned char *binary = bytes;
    cl_int code = CL_SUCCESS, loaded = CL_SUCCESS;
    program->id = program->api->CreateProgramWithBinary(context->id, 1, &program->device->id, &size, &binary,
                                                        &loaded, &code);
    if (code == CL_SUCCESS && loaded != CL_SUCCESS) {
        program->api->ReleaseProgram(program->id);
        code = loaded;
    }
    return code;
}

static drupe_status create_bitcode(drupe_cl_program *program, const drupe_cl_context *context,
                                   const drupe_source *source, cl_int *code)
{
    drupe_text bitcode = {0};
    drupe_status status = drupe_cl_translate(program->device, source, &bitcode);
    if (status == DRUPE_OK) *code = create_binary(program, context, bitcode.data, bitcode.length);
    drupe_text_clear(&bitcode);
    return status;
}

static drupe_status create_native(drupe_cl_program *program, const drupe_cl_context *context,
                                  const drupe_source *source)
{
    const drupe_cl_caps *caps = &program->device->caps;
    cl_int code = CL_SUCCESS;
    if (source->language == DRUPE_LANG_OPENCL_C) {
        const char *text = source->bytes;
        program->id = program->api->CreateProgramWithSource(context->id, 1, &text, &source->size, &code);
    } else if (source->language == DRUPE_LANG_SPIRV && caps->spirv) {
        program->id = program->api->CreateProgramWithIL(context->id, source->bytes, source->size, &code);
    } else if (source->language == DRUPE_LANG_SPIRV) {
        DRUPE_TRY(create_bitcode(program, context, source, &code));
    } else {
        code = create_binary(program, context, source->bytes, source->size);
    }
    if (code == CL_SUCCESS) return DRUPE_OK;
    program->id = NULL;
    return drupe_cl_fail(code, "Making a program");
}

/* The compiler's messages, malloc'ed, or NULL if there are none. */
static char *build_log(const drupe_cl_program *program)
{
    size_t size = 0;
    cl_device_id device = program->device->id;
    cl_int code =
        program->api->GetProgramBuildInfo(program->id, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    if (code != CL_SUCCESS || size == 0) return NULL;
    char *log = calloc(1, size + 1);
    if (!log) return NULL;
    code = program->api->GetProgramBuildInfo(program->id, device, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    size_t length = strlen(log);
    while (length > 0 && isspace((unsigned char)log[length - 1])) log[--length] = '\0';
    if (code == CL_SUCCESS && length > 0) return log;
    free(log);
    return NULL;
}

static drupe_status build_failed(cl_int code, const char *options, const char *log)
{
    if (code == CL_INVALID_BUILD_OPTIONS) {
        return drupe_cl_fail_as(DRUPE_E_BUILD_FAILED, code,
                                "The OpenCL compiler refuses the options \"%s\"%s%s", options,
                                log ? ":\n" : ".", log ? log : "");
    }
    if (code == CL_BUILD_PROGRAM_FAILURE) {
        return drupe_cl_fail_as(DRUPE_E_BUILD_FAILED, code, "The OpenCL compiler refuses the program%s%s",
                                log ? ":\n" : " and gives no reason.", log ? log : "");
    }
    return drupe_cl_fail(code, "Building the program");
}

drupe_status drupe_cl_program_open(drupe_program *program, const drupe_source *source, char **log)
{
    drupe_cl_program *native = drupe_native(program);
    drupe_context *context = drupe_program_context(program);
    native->device = drupe_native(drupe_context_home(context, drupe_program_device(program)));
    native->api = &native->device->library->api;
    native->builtin = source->language == DRUPE_LANG_BUILTIN;
    native->inlines = native->builtin && source->options && strcmp(source->options, "inline") == 0;
    if (native->builtin) return DRUPE_OK;
    DRUPE_TRY(create_native(native, drupe_native(context), source));
    const char *given = source->options ? source->options : "";
    drupe_text options = {0};
    drupe_text_printf(&options, "%s %s", given, strstr(given, arg_info_option) ? "" : arg_info_option);
    drupe_status status = drupe_text_check(&options);
    if (status != DRUPE_OK) {
        drupe_text_clear(&options);
        return status;
    }
    drupe_signals_save();
    drupe_quiet_begin();
    cl_int code =
        native->api->BuildProgram(native->id, 1, &native->device->id, drupe_text_get(&options), NULL, NULL);
    drupe_quiet_end();
    drupe_signals_restore();
    char *messages = build_log(native);
    status = code == CL_SUCCESS ? DRUPE_OK : build_failed(code, given, messages);
    drupe_text_clear(&options);
    if (log) {
        *log = messages;
    } else {
        free(messages);
    }
    return status;
}

void drupe_cl_program_close(drupe_program *program)
{
    drupe_cl_program *native = drupe_native(program);
    if (native->id) native->api->ReleaseProgram(native->id);
    native->id = NULL;
}

drupe_status drupe_cl_program_names(drupe_program *program, char **names)
{
    const drupe_cl_program *native = drupe_native(program);
    size_t size = 0;
    *names = NULL;
    if (native->builtin) return DRUPE_OK;
    cl_int code = native->api->GetProgramInfo(native->id, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size);
    char *text = calloc(1, size + 1);
    if (!text) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the names of a program's kernels.");
    if (code == CL_SUCCESS && size > 0) {
        code = native->api->GetProgramInfo(native->id, CL_PROGRAM_KERNEL_NAMES, size, text, NULL);
    }
    if (code != CL_SUCCESS) {
        free(text);
        return drupe_cl_fail(code, "Asking for the names of a program's kernels");
    }
    *names = text;
    return DRUPE_OK;
}

/* --- Binaries ------------------------------------------------------------------------------------------- */

/* Where `device` stands among the program's devices; `*count` of them. */
static cl_int find_device(const drupe_cl_program *program, cl_uint *count, cl_uint *index)
{
    const drupe_cl_api *api = program->api;
    cl_int code = api->GetProgramInfo(program->id, CL_PROGRAM_NUM_DEVICES, sizeof *count, count, NULL);
    if (code != CL_SUCCESS) return code;
    cl_device_id *ids = calloc(*count ? *count : 1, sizeof(cl_device_id));
    if (!ids) return CL_OUT_OF_HOST_MEMORY;
    code = api->GetProgramInfo(program->id, CL_PROGRAM_DEVICES, *count * sizeof(cl_device_id), ids, NULL);
    for (*index = 0; *index < *count && ids[*index] != program->device->id;) ++*index;
    free(ids);
    return code == CL_SUCCESS && *index == *count ? CL_INVALID_DEVICE : code;
}

/* `sizes` and `parts` have room for `count` devices; only the one wanted is copied. */
static cl_int copy_binary(const drupe_cl_program *program, cl_uint count, cl_uint index, size_t *sizes,
                          unsigned char **parts)
{
    const drupe_cl_api *api = program->api;
    cl_int code =
        api->GetProgramInfo(program->id, CL_PROGRAM_BINARY_SIZES, count * sizeof *sizes, sizes, NULL);
    if (code != CL_SUCCESS) return code;
    if (sizes[index] == 0) return CL_INVALID_PROGRAM_EXECUTABLE;
    parts[index] = malloc(sizes[index]);
    if (!parts[index]) return CL_OUT_OF_HOST_MEMORY;
    return api->GetProgramInfo(program->id, CL_PROGRAM_BINARIES, count * sizeof *parts, parts, NULL);
}

drupe_status drupe_cl_program_binary(drupe_program *program, void **bytes, size_t *size)
{
    const drupe_cl_program *native = drupe_native(program);
    cl_uint count = 0, index = 0;
    if (native->builtin)
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The engine's built-in kernels have no binary.");
    cl_int code = find_device(native, &count, &index);
    size_t *sizes = calloc(count + 1, sizeof *sizes);
    unsigned char **parts = calloc(count + 1, sizeof *parts);
    if (!sizes || !parts) code = CL_OUT_OF_HOST_MEMORY;
    if (code == CL_SUCCESS) {
        drupe_signals_save();
        drupe_quiet_begin();
        code = copy_binary(native, count, index, sizes, parts);
        drupe_quiet_end();
        drupe_signals_restore();
    }
    if (code == CL_SUCCESS) {
        *bytes = parts[index];
        *size = sizes[index];
    } else if (parts) {
        free(parts[index]);
    }
    free(parts);
    free(sizes);
    return code == CL_SUCCESS ? DRUPE_OK : drupe_cl_fail(code, "Asking for a program's binary");
}
