/* SPIR-V for drivers that take LLVM's bitcode instead (PoCL before version 4): the translator that belongs to
 * the driver's LLVM runs as a process of its own, so that a module it cannot take costs nothing but an error.
 * Bitcode of another version than the driver's is not tried. */
#include "opencl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_NS UINT64_C(60000000000)

/* The number behind "LLVM " or "LLVM version ", or 0. */
static unsigned llvm_version(const char *text)
{
    const char *at = text ? strstr(text, "LLVM ") : NULL;
    while (at) {
        at += strlen("LLVM ");
        if (strncmp(at, "version ", 8) == 0) at += 8;
        if (*at >= '1' && *at <= '9') return (unsigned)strtoul(at, NULL, 10) % 1000;
        at = strstr(at, "LLVM ");
    }
    return 0;
}

unsigned drupe_cl_bitcode_version(const drupe_cl_api *api, cl_platform_id platform, const char *extensions)
{
    char text[512] = "";
    if (!strstr(extensions, "cl_khr_spir")) return 0;
    if (api->GetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text - 1, text, NULL) != CL_SUCCESS)
        return 0;
    return llvm_version(text);
}

/* Whether the program says that it belongs to this LLVM. */
static bool is_version(const char *path, unsigned llvm)
{
    const char *const argv[] = {path, "--version", NULL};
    drupe_text output = {0};
    drupe_error kept = *drupe_error_last();
    bool right = drupe_process_run(argv, (drupe_span){NULL, 0}, VERSION_NS, &output) == DRUPE_OK &&
                 llvm_version(drupe_text_get(&output)) == llvm;
    drupe_text_clear(&output);
    drupe_error_restore(&kept);
    return right;
}

char *drupe_cl_translator(unsigned llvm)
{
    const char *chosen = getenv("DRUPE_LLVM_SPIRV");
    char name[64];
    if (chosen && *chosen) return drupe_process_find(chosen);
    snprintf(name, sizeof name, "llvm-spirv-%u", llvm);
    char *path = drupe_process_find(name);
    if (path) return path;
    snprintf(name, sizeof name, "/usr/lib/llvm-%u/bin/llvm-spirv", llvm);
    path = drupe_process_find(name);
    if (path) return path;
    path = drupe_process_find("llvm-spirv");
    if (path && is_version(path, llvm)) return path;
    free(path);
    return NULL;
}

const char *drupe_cl_program_advice(drupe_device *device, drupe_language language)
{
    static const char *const packages[] = {
        [14] = "Install the package llvm-spirv-14, which this device's driver needs for SPIR-V.",
        [15] = "Install the package llvm-spirv-15, which this device's driver needs for SPIR-V."};
    const drupe_cl_device *native = drupe_native(device);
    if (language != DRUPE_LANG_SPIRV || native->caps.bitcode == 0) return NULL;
    if (native->caps.bitcode < DRUPE_COUNT_OF(packages) && packages[native->caps.bitcode])
        return packages[native->caps.bitcode];
    return "Its driver needs the program llvm-spirv (SPIRV-LLVM-Translator) of the driver's own LLVM version "
           "for "
           "SPIR-V; name it in DRUPE_LLVM_SPIRV.";
}

drupe_status drupe_cl_translate(const drupe_cl_device *device, const drupe_source *source,
                                drupe_text *bitcode)
{
    char *path = drupe_cl_translator(device->caps.bitcode);
    if (!path) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "This device needs llvm-spirv of LLVM %u for SPIR-V, which is gone.",
                               device->caps.bitcode);
    }
    const char *const argv[] = {path, "-r", "-o", "-", "/dev/stdin", NULL};
    drupe_span module = {source->bytes, source->size};
    drupe_status status = drupe_compiler_run(argv, module, bitcode);
    free(path);
    if (status == DRUPE_E_INVALID) {
        drupe_error error = *drupe_error_last();
        return drupe_error_set(DRUPE_E_BUILD_FAILED, "The SPIR-V module was not translated: %s", error.text);
    }
    if (status != DRUPE_OK) return status;
    if (bitcode->length >= 4 && memcmp(bitcode->data, "BC\xc0\xde", 4) == 0) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_BUILD_FAILED, "The SPIR-V translator gave no bitcode.");
}
