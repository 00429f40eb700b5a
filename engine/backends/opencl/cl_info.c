/* Device properties: most are one OpenCL query each (the table), the rest are computed from what was probed.
 *
 * A row may need a version of OpenCL or an extension: a driver that is asked for a key it does not know may
 * answer nonsense. Keys of vendors' extensions that no header of ours has are written here as numbers. */
#include "base/machine.h"
#include "opencl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTEL_QUERY "cl_intel_device_attribute_query"
#define NV_QUERY    "cl_nv_device_attribute_query"
#define AMD_QUERY   "cl_amd_device_attribute_query"
#define IMAGES      "images" /* no extension: CL_DEVICE_IMAGE_SUPPORT */

enum {
    KEY_NV_CAPABILITY_MAJOR = 0x4000,
    KEY_NV_CAPABILITY_MINOR = 0x4001,
    KEY_NV_WARP_SIZE = 0x4003,
    KEY_NV_PCI_BUS = 0x4008,
    KEY_NV_PCI_SLOT = 0x4009,
    KEY_NV_PCI_DOMAIN = 0x400A,
    KEY_AMD_PCIE_ID = 0x4034,
    KEY_AMD_TOPOLOGY = 0x4037,
    KEY_AMD_FREE_MEMORY = 0x4039,
    KEY_AMD_SIMD_WIDTH = 0x4041,
    KEY_AMD_WAVEFRONT_WIDTH = 0x4043,
    KEY_UUID = 0x106A,
    KEY_SUB_GROUP_SIZES_INTEL = 0x4108,
    KEY_PCI_BUS_INFO = 0x410F,
    KEY_INTEL_ID = 0x4251,
    KEY_INTEL_SLICES = 0x4252,
    KEY_INTEL_SUBSLICES = 0x4253,
    KEY_INTEL_EUS = 0x4254,
    KEY_INTEL_THREADS = 0x4255,
    KEY_INTEL_SYSTEM_MEM = 0x4195
};

/* Drivers say 0 where they do not know. */
static bool is_unknown(drupe_info key, uint64_t number)
{
    return number == 0 &&
           (key == DRUPE_INFO_MAX_CLOCK_FREQUENCY || key == DRUPE_INFO_PROFILING_TIMER_RESOLUTION);
}

/* How OpenCL returns a value. */
typedef enum info_form { FORM_NONE, FORM_STRING, FORM_UINT, FORM_ULONG, FORM_SIZE } info_form;

typedef struct info_row {
    info_form form;
    cl_device_info key;
    unsigned version;                  /* the least one of the device, 0 = any */
    const char *extension;             /* needed, NULL = none */
    uint64_t (*change)(uint64_t bits); /* to our numbers, NULL = as it is */
} info_row;

/* --- From OpenCL's numbers to ours ---------------------------------------------------------------------- */

static uint64_t truth(uint64_t value)
{
    return value != 0;
}

/* The same order, but for the last two, and no bit for what OpenCL adds behind them. */
static uint64_t fp_config(uint64_t bits)
{
    uint64_t same = bits & 0x3f;
    if (bits & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) same |= DRUPE_FLAG(DRUPE_FP_CORRECTLY_ROUNDED);
    if (bits & CL_FP_SOFT_FLOAT) same |= DRUPE_FLAG(DRUPE_FP_SOFT_FLOAT);
    return same;
}

static uint64_t cache_type(uint64_t value)
{
    return value <= CL_READ_WRITE_CACHE ? value + DRUPE_CACHE_NONE : DRUPE_CACHE_INDETERMINATE;
}

static uint64_t local_type(uint64_t value)
{
    return value == CL_LOCAL    ? DRUPE_LOCAL_MEM_LOCAL
           : value == CL_GLOBAL ? DRUPE_LOCAL_MEM_GLOBAL
                                : DRUPE_LOCAL_MEM_NONE;
}

static uint64_t orders(uint64_t bits)
{
    uint64_t found = 0;
    if (bits & CL_DEVICE_ATOMIC_ORDER_RELAXED) found |= DRUPE_FLAG(DRUPE_ORDER_RELAXED);
    if (bits & CL_DEVICE_ATOMIC_ORDER_ACQ_REL) {
        found |= DRUPE_FLAG(DRUPE_ORDER_ACQUIRE) | DRUPE_FLAG(DRUPE_ORDER_RELEASE) |
                 DRUPE_FLAG(DRUPE_ORDER_ACQ_REL);
    }
    if (bits & CL_DEVICE_ATOMIC_ORDER_SEQ_CST) found |= DRUPE_FLAG(DRUPE_ORDER_SEQ_CST);
    return found;
}

/* OpenCL knows no sub-group here; what reaches the work-group reaches it too. */
static uint64_t scopes(uint64_t bits)
{
    uint64_t found = 0;
    if (bits & CL_DEVICE_ATOMIC_SCOPE_WORK_ITEM) found |= DRUPE_FLAG(DRUPE_SCOPE_WORK_ITEM);
    if (bits & CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP)
        found |= DRUPE_FLAG(DRUPE_SCOPE_WORK_GROUP) | DRUPE_FLAG(DRUPE_SCOPE_SUB_GROUP);
    if (bits & CL_DEVICE_ATOMIC_SCOPE_DEVICE) found |= DRUPE_FLAG(DRUPE_SCOPE_DEVICE);
    if (bits & CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES) found |= DRUPE_FLAG(DRUPE_SCOPE_SYSTEM);
    return found;
}

/* --- The table ------------------------------------------------------------------------------------------ */

#define VECTOR(NAME)                                                                                         \
    [DRUPE_INFO_PREFERRED_##NAME] = {FORM_UINT, CL_DEVICE_PREFERRED_VECTOR_WIDTH_##NAME, 0, NULL, NULL},     \
    [DRUPE_INFO_NATIVE_##NAME] = {FORM_UINT, CL_DEVICE_NATIVE_VECTOR_WIDTH_##NAME, 0, NULL, NULL}

static const info_row rows[DRUPE_INFO_COUNT] = {
    [DRUPE_INFO_NAME] = {FORM_STRING, CL_DEVICE_NAME, 0, NULL, NULL},
    [DRUPE_INFO_VENDOR] = {FORM_STRING, CL_DEVICE_VENDOR, 0, NULL, NULL},
    [DRUPE_INFO_VENDOR_ID] = {FORM_UINT, CL_DEVICE_VENDOR_ID, 0, NULL, NULL},
    [DRUPE_INFO_DRIVER_VERSION] = {FORM_STRING, CL_DRIVER_VERSION, 0, NULL, NULL},
    [DRUPE_INFO_VERSION] = {FORM_STRING, CL_DEVICE_VERSION, 0, NULL, NULL},
    [DRUPE_INFO_EXTENSIONS] = {FORM_STRING, CL_DEVICE_EXTENSIONS, 0, NULL, NULL},
    [DRUPE_INFO_AVAILABLE] = {FORM_UINT, CL_DEVICE_AVAILABLE, 0, NULL, truth},
    [DRUPE_INFO_MAX_COMPUTE_UNITS] = {FORM_UINT, CL_DEVICE_MAX_COMPUTE_UNITS, 0, NULL, NULL},
    [DRUPE_INFO_MAX_WORK_ITEM_DIMS] = {FORM_UINT, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 0, NULL, NULL},
    [DRUPE_INFO_MAX_WORK_GROUP_SIZE] = {FORM_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE, 0, NULL, NULL},
    [DRUPE_INFO_MAX_CLOCK_FREQUENCY] = {FORM_UINT, CL_DEVICE_MAX_CLOCK_FREQUENCY, 0, NULL, NULL},
    [DRUPE_INFO_PROFILING_TIMER_RESOLUTION] = {FORM_SIZE, CL_DEVICE_PROFILING_TIMER_RESOLUTION, 0, NULL,
                                               NULL},
    [DRUPE_INFO_ADDRESS_BITS] = {FORM_UINT, CL_DEVICE_ADDRESS_BITS, 0, NULL, NULL},
    [DRUPE_INFO_GLOBAL_MEM_SIZE] = {FORM_ULONG, CL_DEVICE_GLOBAL_MEM_SIZE, 0, NULL, NULL},
    [DRUPE_INFO_MAX_MEM_ALLOC_SIZE] = {FORM_ULONG, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0, NULL, NULL},
    [DRUPE_INFO_LOCAL_MEM_SIZE] = {FORM_ULONG, CL_DEVICE_LOCAL_MEM_SIZE, 0, NULL, NULL},
    [DRUPE_INFO_LOCAL_MEM_TYPE] = {FORM_UINT, CL_DEVICE_LOCAL_MEM_TYPE, 0, NULL, local_type},
    [DRUPE_INFO_GLOBAL_MEM_CACHE_TYPE] = {FORM_UINT, CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, 0, NULL, cache_type},
    [DRUPE_INFO_GLOBAL_MEM_CACHE_SIZE] = {FORM_ULONG, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 0, NULL, NULL},
    [DRUPE_INFO_GLOBAL_MEM_CACHE_LINE] = {FORM_UINT, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, 0, NULL, NULL},
    [DRUPE_INFO_MEM_BASE_ALIGN] = {FORM_UINT, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0, NULL, NULL},
    [DRUPE_INFO_MAX_PARAMETER_SIZE] = {FORM_SIZE, CL_DEVICE_MAX_PARAMETER_SIZE, 0, NULL, NULL},
    [DRUPE_INFO_ERROR_CORRECTION] = {FORM_UINT, CL_DEVICE_ERROR_CORRECTION_SUPPORT, 0, NULL, truth},
    [DRUPE_INFO_HAS_IMAGE] = {FORM_UINT, CL_DEVICE_IMAGE_SUPPORT, 0, NULL, truth},
    [DRUPE_INFO_HAS_ONLINE_COMPILER] = {FORM_UINT, CL_DEVICE_COMPILER_AVAILABLE, 0, NULL, truth},
    [DRUPE_INFO_HAS_ONLINE_LINKER] = {FORM_UINT, CL_DEVICE_LINKER_AVAILABLE, 12, NULL, truth},
    VECTOR(CHAR),
    VECTOR(SHORT),
    VECTOR(INT),
    VECTOR(LONG),
    VECTOR(FLOAT),
    VECTOR(DOUBLE),
    VECTOR(HALF),
    [DRUPE_INFO_IMAGE_2D_WIDTH] = {FORM_SIZE, CL_DEVICE_IMAGE2D_MAX_WIDTH, 0, IMAGES, NULL},
    [DRUPE_INFO_IMAGE_2D_HEIGHT] = {FORM_SIZE, CL_DEVICE_IMAGE2D_MAX_HEIGHT, 0, IMAGES, NULL},
    [DRUPE_INFO_IMAGE_3D_WIDTH] = {FORM_SIZE, CL_DEVICE_IMAGE3D_MAX_WIDTH, 0, IMAGES, NULL},
    [DRUPE_INFO_IMAGE_3D_HEIGHT] = {FORM_SIZE, CL_DEVICE_IMAGE3D_MAX_HEIGHT, 0, IMAGES, NULL},
    [DRUPE_INFO_IMAGE_3D_DEPTH] = {FORM_SIZE, CL_DEVICE_IMAGE3D_MAX_DEPTH, 0, IMAGES, NULL},
    [DRUPE_INFO_IMAGE_BUFFER_SIZE] = {FORM_SIZE, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, 12, IMAGES, NULL},
    [DRUPE_INFO_MAX_READ_IMAGE_ARGS] = {FORM_UINT, CL_DEVICE_MAX_READ_IMAGE_ARGS, 0, IMAGES, NULL},
    [DRUPE_INFO_MAX_WRITE_IMAGE_ARGS] = {FORM_UINT, CL_DEVICE_MAX_WRITE_IMAGE_ARGS, 0, IMAGES, NULL},
    [DRUPE_INFO_MAX_SAMPLERS] = {FORM_UINT, CL_DEVICE_MAX_SAMPLERS, 0, IMAGES, NULL},
    [DRUPE_INFO_SINGLE_FP_CONFIG] = {FORM_ULONG, CL_DEVICE_SINGLE_FP_CONFIG, 0, NULL, fp_config},
    [DRUPE_INFO_DOUBLE_FP_CONFIG] = {FORM_ULONG, CL_DEVICE_DOUBLE_FP_CONFIG, 0, NULL, fp_config},
    [DRUPE_INFO_ATOMIC_ORDERS] = {FORM_ULONG, CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, 30, NULL, orders},
    [DRUPE_INFO_FENCE_ORDERS] = {FORM_ULONG, CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, 30, NULL, orders},
    [DRUPE_INFO_ATOMIC_SCOPES] = {FORM_ULONG, CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, 30, NULL, scopes},
    [DRUPE_INFO_FENCE_SCOPES] = {FORM_ULONG, CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, 30, NULL, scopes},
    [DRUPE_INFO_GPU_SLICES] = {FORM_UINT, KEY_INTEL_SLICES, 0, INTEL_QUERY, NULL},
    [DRUPE_INFO_GPU_SUBSLICES] = {FORM_UINT, KEY_INTEL_SUBSLICES, 0, INTEL_QUERY, NULL},
    [DRUPE_INFO_GPU_EUS_PER_SUBSLICE] = {FORM_UINT, KEY_INTEL_EUS, 0, INTEL_QUERY, NULL},
    [DRUPE_INFO_GPU_THREADS_PER_EU] = {FORM_UINT, KEY_INTEL_THREADS, 0, INTEL_QUERY, NULL},
    [DRUPE_INFO_GPU_SIMD_WIDTH] = {FORM_UINT, KEY_AMD_SIMD_WIDTH, 0, AMD_QUERY, NULL},
};

/* --- Asking --------------------------------------------------------------------------------------------- */

static drupe_status meaningless(drupe_info key)
{
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "The OpenCL driver does not report the property %s.",
                           drupe_info_name(key));
}

/* Drivers pad names with blanks: they are cut off. */
static void append_trimmed(drupe_text *text, const char *found)
{
    const char *start = found + strspn(found, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ') length--;
    drupe_text_append(text, start, length);
}

/* Takes `found`. */
static drupe_status give_string(drupe_info key, char *found, drupe_text *text)
{
    if (!found) return meaningless(key);
    append_trimmed(text, found);
    free(found);
    return DRUPE_OK;
}

/* A lack of memory passes, so it is not the answer that the device has no such property. */
static drupe_status give_device_string(const drupe_cl_device *device, drupe_info key, cl_device_info what,
                                       drupe_text *text)
{
    const drupe_cl_api *api = &device->library->api;
    size_t size = 0;
    char *found = NULL;
    cl_int code = api->GetDeviceInfo(device->id, what, 0, NULL, &size);
    if (code == CL_SUCCESS && !(found = calloc(1, size + 1))) code = CL_OUT_OF_HOST_MEMORY;
    if (code == CL_SUCCESS && size > 0) code = api->GetDeviceInfo(device->id, what, size, found, NULL);
    if (code == CL_SUCCESS) return give_string(key, found, text);
    free(found);
    if (code != CL_OUT_OF_HOST_MEMORY && code != CL_OUT_OF_RESOURCES) return meaningless(key);
    return drupe_cl_fail(code, "Asking for the property %s", drupe_info_name(key));
}

static bool fetch(const drupe_cl_device *device, cl_device_info key, void *value, size_t size)
{
    return device->library->api.GetDeviceInfo(device->id, key, size, value, NULL) == CL_SUCCESS;
}

static bool has_extension(const drupe_cl_device *device, const char *name)
{
    if (strcmp(name, IMAGES) == 0) {
        cl_bool images = CL_FALSE;
        return fetch(device, CL_DEVICE_IMAGE_SUPPORT, &images, sizeof images) && images;
    }
    char *list = drupe_cl_device_string(device, CL_DEVICE_EXTENSIONS);
    bool found = drupe_cl_has_word(list, name);
    free(list);
    return found;
}

static drupe_status ask_row(const drupe_cl_device *device, drupe_info key, uint64_t *number, drupe_text *text)
{
    const info_row *row = &rows[key];
    if (row->version > device->caps.version || (row->extension && !has_extension(device, row->extension)))
        return meaningless(key);
    if (row->form == FORM_STRING) return give_device_string(device, key, row->key, text);
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
    *number = row->form == FORM_ULONG ? answer.wide : row->form == FORM_SIZE ? answer.size : answer.narrow;
    if (is_unknown(key, *number)) return meaningless(key);
    if (row->change) *number = row->change(*number);
    return DRUPE_OK;
}

static drupe_status give_platform_string(const drupe_cl_device *device, drupe_info key, cl_platform_info what,
                                         drupe_text *text)
{
    char found[512] = "";
    const drupe_cl_api *api = &device->library->api;
    cl_int code = api->GetPlatformInfo(device->platform, what, sizeof found - 1, found, NULL);
    if (code != CL_SUCCESS) return meaningless(key);
    append_trimmed(text, found);
    return DRUPE_OK;
}

/* Among the platforms that have devices. */
static uint64_t platform_index(const drupe_cl_device *device)
{
    const drupe_cl_library *library = device->library;
    uint64_t index = 0;
    for (uint32_t i = 0; i < library->count && library->roots[i].platform != device->platform; i++) {
        index += i + 1 == library->count || library->roots[i + 1].platform != library->roots[i].platform;
    }
    return index;
}

static char *il_version(const drupe_cl_device *device)
{
    char *text = device->caps.version >= 21 ? drupe_cl_device_string(device, CL_DEVICE_IL_VERSION) : NULL;
    return text ? text : calloc(1, 1); /* none accepted */
}

/* --- What vendors tell in their own ways ---------------------------------------------------------------- */

static char *print4(const char *format, unsigned a, unsigned b, unsigned c, unsigned d)
{
    char text[64];
    snprintf(text, sizeof text, format, a, b, c, d);
    return strdup(text);
}

static char *pci_address(const drupe_cl_device *device)
{
    static const char form[] = "%04x:%02x:%02x.%x";
    cl_uint info[4] = {0}, slot = 0; /* domain, bus, device, function */
    if (has_extension(device, "cl_khr_pci_bus_info") && fetch(device, KEY_PCI_BUS_INFO, info, sizeof info))
        return print4(form, info[0], info[1], info[2], info[3]);
    if (has_extension(device, NV_QUERY) && fetch(device, KEY_NV_PCI_BUS, &info[1], sizeof info[1]) &&
        fetch(device, KEY_NV_PCI_SLOT, &slot, sizeof slot)) {
        fetch(device, KEY_NV_PCI_DOMAIN, &info[0], sizeof info[0]);
        return print4(form, info[0], info[1], slot >> 3, slot & 7);
    }
    unsigned char topology[24] = {0}; /* type 1 (PCIe), then bus, device, function at the end */
    if (has_extension(device, AMD_QUERY) && fetch(device, KEY_AMD_TOPOLOGY, topology, sizeof topology) &&
        topology[0] == 1)
        return print4(form, 0, topology[21], topology[22], topology[23]);
    return NULL;
}

static char *uuid(const drupe_cl_device *device)
{
    unsigned char bytes[16];
    if (!has_extension(device, "cl_khr_device_uuid") || !fetch(device, KEY_UUID, bytes, sizeof bytes))
        return NULL;
    drupe_text text = {0};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bool group = i == 4 || i == 6 || i == 8 || i == 10;
        drupe_text_printf(&text, "%s%02x", group ? "-" : "", bytes[i]);
    }
    return drupe_text_take(&text);
}

static char *compute_capability(const drupe_cl_device *device)
{
    cl_uint major = 0, minor = 0;
    if (!has_extension(device, NV_QUERY) || !fetch(device, KEY_NV_CAPABILITY_MAJOR, &major, sizeof major) ||
        !fetch(device, KEY_NV_CAPABILITY_MINOR, &minor, sizeof minor))
        return NULL;
    return print4("%u.%u", major, minor, 0, 0);
}

static bool product_number(const drupe_cl_device *device, uint64_t *number)
{
    cl_uint value = 0;
    bool known = (has_extension(device, INTEL_QUERY) && fetch(device, KEY_INTEL_ID, &value, sizeof value)) ||
                 (has_extension(device, AMD_QUERY) && fetch(device, KEY_AMD_PCIE_ID, &value, sizeof value));
    *number = value;
    return known;
}

static bool free_memory(const drupe_cl_device *device, uint64_t *bytes)
{
    size_t kib[2] = {0, 0}; /* in all, and the largest piece */
    if (device->caps.cpu) {
        *bytes = drupe_machine_memory_free();
        return true;
    }
    if (!has_extension(device, AMD_QUERY) || !fetch(device, KEY_AMD_FREE_MEMORY, kib, sizeof kib))
        return false;
    *bytes = (uint64_t)kib[0] << 10;
    return true;
}

static bool execution_units(const drupe_cl_device *device, uint64_t *units)
{
    cl_uint slices, parts, each;
    if (!has_extension(device, INTEL_QUERY) || !fetch(device, KEY_INTEL_SLICES, &slices, sizeof slices) ||
        !fetch(device, KEY_INTEL_SUBSLICES, &parts, sizeof parts) ||
        !fetch(device, KEY_INTEL_EUS, &each, sizeof each))
        return false;
    *units = (uint64_t)slices * parts * each;
    return true;
}

static drupe_status sub_group_sizes(const drupe_cl_device *device, drupe_text *text)
{
    size_t sizes[64], bytes = 0;
    cl_uint lanes = 0;
    if (has_extension(device, "cl_intel_required_subgroup_size") &&
        device->library->api.GetDeviceInfo(device->id, KEY_SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes,
                                           &bytes) == CL_SUCCESS) {
        drupe_text_append(text, (const char *)sizes, bytes);
        return DRUPE_OK;
    }
    if (!(has_extension(device, NV_QUERY) && fetch(device, KEY_NV_WARP_SIZE, &lanes, sizeof lanes)) &&
        !(has_extension(device, AMD_QUERY) && fetch(device, KEY_AMD_WAVEFRONT_WIDTH, &lanes, sizeof lanes)))
        return meaningless(DRUPE_INFO_SUB_GROUP_SIZES);
    const uint64_t one = lanes;
    drupe_text_append(text, (const char *)&one, sizeof one);
    return DRUPE_OK;
}
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "a driver's list of sizes is one of ours");

/* --- Computed ------------------------------------------------------------------------------------------- */

/* Whether this memory takes part in atomic operations of device and host. */
static bool shares_atomics(const drupe_cl_device *device, drupe_mem_kind kind)
{
    cl_bitfield bits = 0;
    if (device->caps.intel_kinds[kind]) {
        cl_device_info key = kind == DRUPE_MEM_HOST ? CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL
                                                    : CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL;
        return fetch(device, key, &bits, sizeof bits) &&
               (bits & CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL);
    }
    return (device->caps.tiers & DRUPE_CL_TIER_FINE) &&
           fetch(device, CL_DEVICE_SVM_CAPABILITIES, &bits, sizeof bits) && (bits & CL_DEVICE_SVM_ATOMICS);
}

static bool shares_system(const drupe_cl_device *device)
{
    cl_bitfield bits = 0;
    if ((device->caps.tiers & DRUPE_CL_TIER_INTEL) &&
        fetch(device, KEY_INTEL_SYSTEM_MEM, &bits, sizeof bits) &&
        (bits & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL))
        return true;
    return (device->caps.tiers & DRUPE_CL_TIER_FINE) &&
           fetch(device, CL_DEVICE_SVM_CAPABILITIES, &bits, sizeof bits) &&
           (bits & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM);
}

static uint64_t partition_max(const drupe_cl_device *device)
{
    cl_uint most = 0;
    if (device->caps.partition_kinds) fetch(device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, &most, sizeof most);
    return most;
}

static uint64_t languages(const drupe_cl_caps *caps)
{
    char *translator = caps->bitcode ? drupe_cl_translator(caps->bitcode) : NULL;
    bool spirv = caps->spirv || translator;
    free(translator);
    return (caps->compiler ? DRUPE_LANG_OPENCL_C | DRUPE_LANG_BINARY : 0u) | (spirv ? DRUPE_LANG_SPIRV : 0u) |
           (caps->builtin ? DRUPE_LANG_BUILTIN : 0u);
}

/* Empty where the device has no half-precision arithmetic; a driver need not know the key then. */
static bool half_config(const drupe_cl_device *device, uint64_t *bits)
{
    cl_device_fp_config config = 0;
    if (device->caps.fp16 && !fetch(device, CL_DEVICE_HALF_FP_CONFIG, &config, sizeof config)) return false;
    *bits = fp_config(config);
    return true;
}

static bool sub_groups(const drupe_cl_device *device, uint64_t *most)
{
    cl_uint value = 0;
    if (device->caps.version < 21 || !fetch(device, CL_DEVICE_MAX_NUM_SUB_GROUPS, &value, sizeof value))
        return false;
    *most = value;
    return value != 0; /* 0: there are no sub-groups */
}

/* Means something only where there are sub-groups. */
static bool sub_groups_advance(const drupe_cl_device *device, uint64_t *advance)
{
    uint64_t most;
    cl_bool value = CL_FALSE;
    if (!sub_groups(device, &most) ||
        !fetch(device, CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, &value, sizeof value))
        return false;
    *advance = value != CL_FALSE;
    return true;
}

/* False where the device does not tell. */
static bool compute(const drupe_cl_device *device, drupe_info key, uint64_t *number)
{
    const drupe_cl_caps *caps = &device->caps;
    switch (key) {
    case DRUPE_INFO_PLATFORM_INDEX: *number = platform_index(device); return true;
    case DRUPE_INFO_LANGUAGES: *number = languages(caps); return true;
    case DRUPE_INFO_SUB_GROUP_SIZE: *number = caps->group_multiple; return caps->group_multiple != 0;
    case DRUPE_INFO_MAX_NUM_SUB_GROUPS: return sub_groups(device, number);
    case DRUPE_INFO_SUB_GROUP_PROGRESS: return sub_groups_advance(device, number);
    case DRUPE_INFO_HAS_FP16: *number = caps->fp16; return true;
    case DRUPE_INFO_HAS_FP64: *number = caps->fp64; return true;
    case DRUPE_INFO_HAS_ATOMIC64: *number = caps->atomic64; return true;
    case DRUPE_INFO_HAS_PROFILING: *number = caps->profiling; return true;
    case DRUPE_INFO_HAS_USM_SYSTEM: *number = shares_system(device); return true;
    case DRUPE_INFO_HAS_USM_ATOMIC_HOST: *number = shares_atomics(device, DRUPE_MEM_HOST); return true;
    case DRUPE_INFO_HAS_USM_ATOMIC_SHARED: *number = shares_atomics(device, DRUPE_MEM_SHARED); return true;
    case DRUPE_INFO_HAS_COMPONENT:
    case DRUPE_INFO_HAS_COMPOSITE: /* OpenCL has no such devices */ *number = 0; return true;
    case DRUPE_INFO_USM_DEVICE: *number = drupe_cl_usm_support(caps, DRUPE_MEM_DEVICE); return true;
    case DRUPE_INFO_USM_HOST: *number = drupe_cl_usm_support(caps, DRUPE_MEM_HOST); return true;
    case DRUPE_INFO_USM_SHARED: *number = drupe_cl_usm_support(caps, DRUPE_MEM_SHARED); return true;
    case DRUPE_INFO_HALF_FP_CONFIG: return half_config(device, number);
    case DRUPE_INFO_PARTITION_MAX: *number = partition_max(device); return true;
    case DRUPE_INFO_PARTITION_KINDS: *number = caps->partition_kinds; return true;
    case DRUPE_INFO_PARTITION_DOMAINS: *number = caps->partition_domains; return true;
    case DRUPE_INFO_DEVICE_ID: return product_number(device, number);
    case DRUPE_INFO_FREE_MEMORY: return free_memory(device, number);
    case DRUPE_INFO_GPU_EUS: return execution_units(device, number);
    default: return false;
    }
}

static drupe_status ask_computed(const drupe_cl_device *device, drupe_info key, uint64_t *number,
                                 drupe_text *text)
{
    switch (key) {
    case DRUPE_INFO_PLATFORM: return give_platform_string(device, key, CL_PLATFORM_NAME, text);
    case DRUPE_INFO_PLATFORM_VENDOR: return give_platform_string(device, key, CL_PLATFORM_VENDOR, text);
    case DRUPE_INFO_BACKEND_VERSION: return give_platform_string(device, key, CL_PLATFORM_VERSION, text);
    case DRUPE_INFO_IL_VERSION: return give_string(key, il_version(device), text);
    case DRUPE_INFO_UUID: return give_string(key, uuid(device), text);
    case DRUPE_INFO_PCI_ADDRESS: return give_string(key, pci_address(device), text);
    case DRUPE_INFO_COMPUTE_CAPABILITY: return give_string(key, compute_capability(device), text);
    case DRUPE_INFO_SUB_GROUP_SIZES: return sub_group_sizes(device, text);
    case DRUPE_INFO_MAX_WORK_ITEM_SIZES:
        for (int i = 0; i < 3; i++) number[i] = device->caps.max_items[i];
        return DRUPE_OK;
    default: return compute(device, key, number) ? DRUPE_OK : meaningless(key);
    }
}

drupe_status drupe_cl_device_info(drupe_device *device, drupe_info key, uint64_t number[3], drupe_text *text)
{
    const drupe_cl_device *native = drupe_native(device);
    if (rows[key].form != FORM_NONE) return ask_row(native, key, number, text);
    return ask_computed(native, key, number, text);
}
