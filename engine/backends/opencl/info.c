/* Device properties: most are one OpenCL query each (the table), the rest are computed from what was probed.
 */
#include "opencl.h"
#include <stdlib.h>
#include <string.h>

typedef enum info_form { FORM_NONE, FORM_STRING, FORM_UINT, FORM_ULONG, FORM_SIZE, FORM_BITS } info_form;

typedef struct info_row {
    info_form form; /* how OpenCL returns it; FORM_BITS = a cl_uint of bits, given in bytes */
    cl_device_info key;
} info_row;

static const info_row rows[DRUPE_INFO_COUNT] = {
    [DRUPE_INFO_NAME] = {FORM_STRING, CL_DEVICE_NAME},
    [DRUPE_INFO_VENDOR] = {FORM_STRING, CL_DEVICE_VENDOR},
    [DRUPE_INFO_DRIVER_VERSION] = {FORM_STRING, CL_DRIVER_VERSION},
    [DRUPE_INFO_VERSION] = {FORM_STRING, CL_DEVICE_VERSION},
    [DRUPE_INFO_EXTENSIONS] = {FORM_STRING, CL_DEVICE_EXTENSIONS},
    [DRUPE_INFO_MAX_COMPUTE_UNITS] = {FORM_UINT, CL_DEVICE_MAX_COMPUTE_UNITS},
    [DRUPE_INFO_MAX_WORK_ITEM_DIMS] = {FORM_UINT, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS},
    [DRUPE_INFO_MAX_WORK_GROUP_SIZE] = {FORM_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE},
    [DRUPE_INFO_MAX_CLOCK_FREQUENCY] = {FORM_UINT, CL_DEVICE_MAX_CLOCK_FREQUENCY},
    [DRUPE_INFO_ADDRESS_BITS] = {FORM_UINT, CL_DEVICE_ADDRESS_BITS},
    [DRUPE_INFO_GLOBAL_MEM_SIZE] = {FORM_ULONG, CL_DEVICE_GLOBAL_MEM_SIZE},
    [DRUPE_INFO_MAX_MEM_ALLOC_SIZE] = {FORM_ULONG, CL_DEVICE_MAX_MEM_ALLOC_SIZE},
    [DRUPE_INFO_LOCAL_MEM_SIZE] = {FORM_ULONG, CL_DEVICE_LOCAL_MEM_SIZE},
    [DRUPE_INFO_GLOBAL_MEM_CACHE_SIZE] = {FORM_ULONG, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE},
    [DRUPE_INFO_GLOBAL_MEM_CACHE_LINE] = {FORM_UINT, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE},
    [DRUPE_INFO_MEM_BASE_ALIGN] = {FORM_BITS, CL_DEVICE_MEM_BASE_ADDR_ALIGN},
    [DRUPE_INFO_MAX_PARAMETER_SIZE] = {FORM_SIZE, CL_DEVICE_MAX_PARAMETER_SIZE},
    [DRUPE_INFO_PROFILING_TIMER_RESOLUTION] = {FORM_SIZE, CL_DEVICE_PROFILING_TIMER_RESOLUTION},
};

/* --- Giving an answer ----------------------------------------------------------------------------------- */

static drupe_status give(const void *data, size_t length, void *value, size_t size, size_t *needed)
{
    if (needed) *needed = length;
    if (value && size > 0) memcpy(value, data, length < size ? length : size);
    return DRUPE_OK;
}

static drupe_status give_number(uint64_t number, void *value, size_t size, size_t *needed)
{
    return give(&number, sizeof number, value, size, needed);
}

/* Takes `text`. Drivers pad names with blanks: they are cut off. */
static drupe_status give_string(char *text, void *value, size_t size, size_t *needed)
{
    if (!text) return drupe_error_set(DRUPE_E_UNSUPPORTED, "The OpenCL driver does not tell this property.");
    const char *start = text + strspn(text, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ') length--;
    text[(size_t)(start - text) + length] = '\0';
    give(start, length + 1, value, size, needed);
    if (value && size > 0) ((char *)value)[size - 1 < length ? size - 1 : length] = '\0';
    free(text);
    return DRUPE_OK;
}

static drupe_status meaningless(drupe_info key)
{
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "The property %s means nothing on this OpenCL device.",
                           drupe_info_name(key));
}

/* --- Asking --------------------------------------------------------------------------------------------- */

static drupe_status ask_row(const drupe_cl_device *device, drupe_info key, void *value, size_t size,
                            size_t *needed)
{
    const info_row *row = &rows[key];
    if (row->form == FORM_STRING) {
        return give_string(drupe_cl_device_string(device, row->key), value, size, needed);
    }
    union {
        cl_uint narrow;
        cl_ulong wide;
        size_t size;
    } answer = {0};
    size_t length = row->form == FORM_ULONG  ? sizeof answer.wide
                    : row->form == FORM_SIZE ? sizeof answer.size
                                             : sizeof answer.narrow;
    cl_int code = device->library->api.GetDeviceInfo(device->id, row->key, length, &answer, NULL);
    if (code == CL_INVALID_VALUE) return meaningless(key);
    if (code != CL_SUCCESS) return drupe_cl_fail(code, "Asking for the property %s", drupe_info_name(key));
    uint64_t number = row->form == FORM_ULONG  ? answer.wide
                      : row->form == FORM_SIZE ? answer.size
                      : row->form == FORM_BITS ? answer.narrow / 8
                                               : answer.narrow;
    return give_number(number, value, size, needed);
}

static char *platform_name(const drupe_cl_device *device)
{
    const drupe_cl_api *api = &device->library->api;
    size_t size = 0;
    if (api->GetPlatformInfo(device->platform, CL_PLATFORM_NAME, 0, NULL, &size) != CL_SUCCESS) return NULL;
    char *text = calloc(1, size + 1);
    if (text) api->GetPlatformInfo(device->platform, CL_PLATFORM_NAME, size, text, NULL);
    return text;
}

static char *il_version(const drupe_cl_device *device)
{
    char *text = device->caps.version >= 21 ? drupe_cl_device_string(device, CL_DEVICE_IL_VERSION) : NULL;
    return text ? text : calloc(1, 1); /* none accepted */
}

static uint64_t partition_max(const drupe_cl_device *device)
{
    cl_uint most = 0;
    if (!device->caps.partition_kinds) return 0;
    device->library->api.GetDeviceInfo(device->id, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most,
                                       NULL);
    return most;
}

static drupe_status ask_computed(const drupe_cl_device *device, drupe_info key, void *value, size_t size,
                                 size_t *needed)
{
    const drupe_cl_caps *caps = &device->caps;
    switch (key) {
    case DRUPE_INFO_PLATFORM: return give_string(platform_name(device), value, size, needed);
    case DRUPE_INFO_IL_VERSION: return give_string(il_version(device), value, size, needed);
    case DRUPE_INFO_LANGUAGES:
        return give_number((caps->compiler ? DRUPE_LANG_OPENCL_C : 0u) |
                               (caps->spirv ? DRUPE_LANG_SPIRV : 0u),
                           value, size, needed);
    case DRUPE_INFO_MAX_WORK_ITEM_SIZES: {
        uint64_t sizes[3] = {caps->max_items[0], caps->max_items[1], caps->max_items[2]};
        return give(sizes, sizeof sizes, value, size, needed);
    }
    case DRUPE_INFO_SUB_GROUP_SIZE:
        if (caps->group_multiple == 0) return meaningless(key);
        return give_number(caps->group_multiple, value, size, needed);
    case DRUPE_INFO_HAS_FP16: return give_number(caps->fp16, value, size, needed);
    case DRUPE_INFO_HAS_FP64: return give_number(caps->fp64, value, size, needed);
    case DRUPE_INFO_HAS_ATOMIC64: return give_number(caps->atomic64, value, size, needed);
    case DRUPE_INFO_HAS_PROFILING: return give_number(caps->profiling, value, size, needed);
    case DRUPE_INFO_USM_DEVICE:
        return give_number(drupe_cl_usm_support(caps, DRUPE_MEM_DEVICE), value, size, needed);
    case DRUPE_INFO_USM_HOST:
        return give_number(drupe_cl_usm_support(caps, DRUPE_MEM_HOST), value, size, needed);
    case DRUPE_INFO_USM_SHARED:
        return give_number(drupe_cl_usm_support(caps, DRUPE_MEM_SHARED), value, size, needed);
    case DRUPE_INFO_PARTITION_MAX: return give_number(partition_max(device), value, size, needed);
    case DRUPE_INFO_PARTITION_KINDS: return give_number(caps->partition_kinds, value, size, needed);
    default: return meaningless(key);
    }
}

drupe_status drupe_cl_device_info(drupe_device *device, drupe_info key, void *value, size_t size,
                                  size_t *needed)
{
    const drupe_cl_device *native = drupe_native(device);
    if (rows[key].form != FORM_NONE) return ask_row(native, key, value, size, needed);
    return ask_computed(native, key, value, size, needed);
}
