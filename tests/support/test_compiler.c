#include "test_compiler.h"
#include "base/base.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COMPILED "compiled "

struct test_compiler test_compiler = {.driver = "1.0", .build_us = 2000, .type = DRUPE_DEVICE_GPU};

struct native {
    char *binary;
    size_t size;
};

static drupe_status load(void **state)
{
    *state = &test_compiler;
    return DRUPE_OK;
}

static void unload(void *state)
{
    (void)state;
}

static drupe_status device_count(void *state, uint32_t *count)
{
    (void)state;
    *count = 1;
    return DRUPE_OK;
}

static drupe_status device_open(void *state, uint32_t index, drupe_device *device)
{
    (void)state, (void)index, (void)device;
    return DRUPE_OK;
}

static void device_close(drupe_device *device)
{
    (void)device;
}

static drupe_device_type device_type(drupe_device *device)
{
    (void)device;
    return test_compiler.type;
}

static drupe_status device_info(drupe_device *device, drupe_info key, uint64_t number[3], drupe_text *text)
{
    (void)device;
    if (key == DRUPE_INFO_LANGUAGES)
        number[0] = DRUPE_LANG_OPENCL_C | DRUPE_LANG_SPIRV | DRUPE_LANG_BINARY | DRUPE_LANG_C;
    else if (key == DRUPE_INFO_DRIVER_VERSION || key == DRUPE_INFO_NAME)
        drupe_text_printf(text, "%s", key == DRUPE_INFO_NAME ? "test compiler" : test_compiler.driver);
    else
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The test device does not tell.");
    return DRUPE_OK;
}

static drupe_status context_open(drupe_context *context)
{
    (void)context;
    return DRUPE_OK;
}

static void context_close(drupe_context *context)
{
    (void)context;
}

static drupe_status keep(struct native *native, const char *prefix, const void *bytes, size_t size)
{
    native->size = strlen(prefix) + size;
    native->binary = malloc(native->size + 1);
    if (!native->binary) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory.");
    memcpy(native->binary, prefix, strlen(prefix));
    memcpy(native->binary + strlen(prefix), bytes, size);
    return DRUPE_OK;
}

static drupe_status program_open(drupe_program *program, const drupe_source *source, char **log)
{
    struct native *native = drupe_native(program);
    if (native->binary) abort(); /* left by another try */
    if (source->language == DRUPE_LANG_BINARY) {
        test_compiler.loads++;
        /* A driver that is given another's binary, or a damaged one, would crash. */
        if (source->size < strlen(COMPILED) || memcmp(source->bytes, COMPILED, strlen(COMPILED)) != 0)
            abort();
        if (test_compiler.refuse && test_compiler.refused) test_compiler.refused();
        if (test_compiler.refuse) native->binary = strdup("a part"); /* until it is closed */
        if (test_compiler.refuse) return drupe_error_set(DRUPE_E_INVALID, "The test compiler refuses.");
        return keep(native, "", source->bytes, source->size);
    }
    test_compiler.builds++;
    struct timespec pause = {0, (long)test_compiler.build_us * 1000};
    nanosleep(&pause, NULL);
    if (!test_compiler.quiet) *log = strdup("a warning");
    if (!test_compiler.quiet && !*log) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a message.");
    if (memmem(source->bytes, source->size, "wrong", 5))
        return drupe_error_set(DRUPE_E_BUILD_FAILED, "The test compiler finds it wrong.");
    return keep(native, COMPILED, source->bytes, source->size);
}

static void program_close(drupe_program *program)
{
    struct native *native = drupe_native(program);
    free(native->binary);
    if (test_compiler.closed) test_compiler.closed();
}

static drupe_status answer(drupe_status status)
{
    return status == DRUPE_OK ? status : drupe_error_set(status, "The test compiler says no.");
}

static drupe_status program_names(drupe_program *program, char **names)
{
    (void)program;
    if (!test_compiler.names) return answer(DRUPE_E_UNSUPPORTED);
    *names = strdup(test_compiler.names);
    return *names ? DRUPE_OK : answer(DRUPE_E_NO_MEMORY);
}

static drupe_status kernel_open(drupe_kernel *kernel, const char *name)
{
    (void)kernel, (void)name;
    return answer(test_compiler.kernel);
}

static drupe_status kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    (void)kernel;
    *value = 1;
    return answer(key == DRUPE_KERNEL_ARG_COUNT ? DRUPE_OK : DRUPE_E_UNSUPPORTED);
}

/* As drivers that tell it of programs compiled from text only. */
static drupe_status kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info)
{
    (void)kernel, (void)index, (void)info;
    return answer(DRUPE_E_UNSUPPORTED);
}

static drupe_status program_binary(drupe_program *program, void **bytes, size_t *size)
{
    const struct native *native = drupe_native(program);
    test_compiler.binaries++;
    if (test_compiler.asked) test_compiler.asked();
    DRUPE_TRY(answer(test_compiler.binary));
    *bytes = malloc(native->size);
    if (!*bytes) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory.");
    memcpy(*bytes, native->binary, native->size);
    *size = native->size;
    return DRUPE_OK;
}

static drupe_status program_tools(drupe_device *device, drupe_language language, char **tools)
{
    (void)device;
    if (test_compiler.hide) return drupe_error_set(DRUPE_E_UNAVAILABLE, "The test compiler hides.");
    bool some = test_compiler.tools && language == DRUPE_LANG_C;
    *tools = some ? strdup(test_compiler.tools) : NULL;
    return DRUPE_OK;
}

static const drupe_backend backend = {
    .name = "host",
    .size = {.program = sizeof(struct native)},
    .load = load,
    .unload = unload,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_type = device_type,
    .device_info = device_info,
    .context_open = context_open,
    .context_close = context_close,
    .program_open = program_open,
    .program_close = program_close,
    .program_names = program_names,
    .kernel_open = kernel_open,
    .kernel_number = kernel_number,
    .kernel_arg = kernel_arg,
    .program_binary = program_binary,
    .program_tools = program_tools,
};

const drupe_backend *const drupe_backends[] = {&backend, NULL};
const char *const drupe_backends_absent[] = {NULL};

drupe_status drupe_layer_apply(const drupe_backend *base, size_t slot, const drupe_backend **table)
{
    (void)slot;
    *table = base;
    return DRUPE_OK;
}
