/* Programs: OpenCL C, and SPIR-V where the device takes it. SPIR-V is walked before a driver sees it, because
 * some compilers end the process on a damaged module. */
#include "opencl.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SPIRV_MAGIC        0x07230203u
#define SPIRV_HEADER_WORDS 5u

static const char arg_info_option[] = "-cl-kernel-arg-info";

/* --- SPIR-V --------------------------------------------------------------------------------------------- */

/* Whether the instructions fill the module exactly. */
static bool spirv_is_whole(const uint32_t *words, size_t count)
{
    size_t at = SPIRV_HEADER_WORDS;
    while (at < count) {
        size_t length = words[at] >> 16;
        if (length == 0 || length > count - at) return false;
        at += length;
    }
    return count > SPIRV_HEADER_WORDS;
}

static drupe_status check_spirv(const drupe_source *source)
{
    const char *fault = NULL;
    size_t count = source->size / sizeof(uint32_t);
    uint32_t *words = malloc(source->size + 1); /* the caller's bytes may lie at an odd address */
    if (!words) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu bytes of SPIR-V.", source->size);
    memcpy(words, source->bytes, source->size);
    if (source->size % sizeof(uint32_t) || count < SPIRV_HEADER_WORDS) {
        fault = "its length is wrong";
    } else if (words[0] != SPIRV_MAGIC) {
        fault = words[0] == __builtin_bswap32(SPIRV_MAGIC) ? "its byte order is the other one"
                                                           : "it does not begin with SPIR-V's magic number";
    } else if (!spirv_is_whole(words, count)) {
        fault = "it is cut off or damaged";
    }
    free(words);
    if (!fault) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_INVALID, "The program is no SPIR-V module (%zu bytes): %s.", source->size,
                           fault);
}

/* --- Making and building -------------------------------------------------------------------------------- */

static drupe_status create_native(drupe_cl_program *program, const drupe_cl_context *context,
                                  const drupe_source *source)
{
    const drupe_cl_caps *caps = &program->device->caps;
    cl_int code = CL_SUCCESS;
    if (source->language == DRUPE_LANG_OPENCL_C && caps->compiler) {
        const char *text = source->bytes;
        program->id = program->api->CreateProgramWithSource(context->id, 1, &text, &source->size, &code);
    } else if (source->language == DRUPE_LANG_SPIRV && caps->spirv) {
        DRUPE_TRY(check_spirv(source));
        program->id = program->api->CreateProgramWithIL(context->id, source->bytes, source->size, &code);
    } else {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "This OpenCL device builds programs from %s only.",
                               caps->spirv      ? "OpenCL C and SPIR-V"
                               : caps->compiler ? "OpenCL C"
                                                : "nothing: its driver has no compiler, so choose another");
    }
    if (code == CL_SUCCESS) return DRUPE_OK;
    program->id = NULL;
    return drupe_cl_fail(code, "Making a program");
}

/* The user's options and our own, malloc'ed; NULL without memory. */
static char *all_options(const char *options)
{
    drupe_text text = {0};
    if (options && *options) drupe_text_printf(&text, "%s ", options);
    if (!options || !strstr(options, arg_info_option)) drupe_text_printf(&text, "%s", arg_info_option);
    if (drupe_text_check(&text) != DRUPE_OK) {
        drupe_text_clear(&text);
        return NULL;
    }
    return drupe_text_take(&text);
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
    native->device = drupe_native(drupe_cl_context_member(context, drupe_program_device(program)));
    native->api = &native->device->library->api;
    DRUPE_TRY(create_native(native, drupe_native(context), source));
    char *options = all_options(source->options);
    if (!options) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the compiler's options.");
    drupe_signals_save();
    cl_int code = native->api->BuildProgram(native->id, 1, &native->device->id, options, NULL, NULL);
    drupe_signals_restore();
    char *messages = build_log(native);
    drupe_status status =
        code == CL_SUCCESS ? DRUPE_OK : build_failed(code, source->options ? source->options : "", messages);
    free(options);
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
