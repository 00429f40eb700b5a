/* Devices and sub-devices: capabilities are probed here, once, and never guessed from a vendor or version,
 * but for the functions that the device's OpenCL version rules out. */
#include "opencl.h"
#include <stdlib.h>
#include <string.h>

char *drupe_cl_device_string(const drupe_cl_device *device, cl_device_info key)
{
    const drupe_cl_api *api = &device->library->api;
    size_t size = 0;
    if (api->GetDeviceInfo(device->id, key, 0, NULL, &size) != CL_SUCCESS) return NULL;
    char *text = calloc(1, size + 1);
    if (text && size > 0 && api->GetDeviceInfo(device->id, key, size, text, NULL) != CL_SUCCESS) {
        free(text);
        return NULL;
    }
    return text;
}

/* A property of fixed size, or zeros where the device does not know it. */
static void ask(const drupe_cl_device *device, cl_device_info key, void *value, size_t size)
{
    memset(value, 0, size);
    if (device->library->api.GetDeviceInfo(device->id, key, size, value, NULL) != CL_SUCCESS) {
        memset(value, 0, size);
    }
}

bool drupe_cl_has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; list && (at = strstr(at, word)); at += length) {
        bool starts = at == list || at[-1] == ' ';
        if (starts && (at[length] == ' ' || at[length] == '\0')) return true;
    }
    return false;
}

/* --- Probing -------------------------------------------------------------------------------------------- */

static void *extension_function(const drupe_cl_device *device, const char *name)
{
    return device->library->api.GetExtensionFunctionAddressForPlatform(device->platform, name);
}

static void probe_intel(drupe_cl_device *device)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
        {"clHostMemAllocINTEL", offsetof(drupe_cl_intel, alloc_host)},
        {"clDeviceMemAllocINTEL", offsetof(drupe_cl_intel, alloc_device)},
        {"clSharedMemAllocINTEL", offsetof(drupe_cl_intel, alloc_shared)},
        {"clMemFreeINTEL", offsetof(drupe_cl_intel, mem_free)},
        {"clSetKernelArgMemPointerINTEL", offsetof(drupe_cl_intel, set_arg)},
        {"clEnqueueMemcpyINTEL", offsetof(drupe_cl_intel, copy)},
        {"clEnqueueMemFillINTEL", offsetof(drupe_cl_intel, fill)},
    };
    drupe_cl_caps *caps = &device->caps;
    drupe_cl_intel found = {0};
    for (size_t i = 0; i < DRUPE_COUNT_OF(functions); i++) {
        void *address = extension_function(device, functions[i].name);
        if (!address) return;
        memcpy((char *)&found + functions[i].offset, &address, sizeof address);
    }
    static const struct {
        drupe_mem_kind kind;
        cl_device_info key;
    } kinds[] = {
        {DRUPE_MEM_DEVICE, CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL},
        {DRUPE_MEM_SHARED, CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL},
        {DRUPE_MEM_HOST, CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(kinds); i++) {
        cl_bitfield access = 0;
        ask(device, kinds[i].key, &access, sizeof access);
        caps->intel_kinds[kinds[i].kind] = access & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL;
    }
    if (!caps->intel_kinds[DRUPE_MEM_DEVICE]) return;
    found.migrate =
        (clEnqueueMigrateMemINTEL_fn)(uintptr_t)extension_function(device, "clEnqueueMigrateMemINTEL");
    found.advise =
        (clEnqueueMemAdviseINTEL_fn)(uintptr_t)extension_function(device, "clEnqueueMemAdviseINTEL");
    caps->intel = found;
    caps->tiers |= DRUPE_CL_TIER_INTEL;
}

static void probe_memory(drupe_cl_device *device, const char *extensions)
{
    drupe_cl_caps *caps = &device->caps;
    const drupe_cl_api *api = &device->library->api;
    cl_device_svm_capabilities svm = 0;
    bool callable = caps->version >= 20 && api->SVMAlloc && api->SVMFree && api->EnqueueSVMMemcpy &&
                    api->EnqueueSVMMemFill && api->SetKernelArgSVMPointer;
    if (callable) ask(device, CL_DEVICE_SVM_CAPABILITIES, &svm, sizeof svm);
    if (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) caps->tiers |= DRUPE_CL_TIER_FINE;
    if (svm & (CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER)) {
        caps->tiers |= DRUPE_CL_TIER_COARSE;
    }
    if (drupe_cl_has_word(extensions, "cl_intel_unified_shared_memory")) probe_intel(device);
    ask(device, CL_DEVICE_LOCAL_MEM_SIZE, &caps->local_bytes, sizeof caps->local_bytes);
    ask(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &caps->max_alloc, sizeof caps->max_alloc);
    ask(device, CL_DEVICE_GLOBAL_MEM_SIZE, &caps->global_bytes, sizeof caps->global_bytes);
}

static void probe_partition(drupe_cl_device *device)
{
    cl_device_partition_property kinds[16];
    cl_device_affinity_domain domains = 0;
    cl_uint most = 0;
    drupe_cl_caps *caps = &device->caps;
    ask(device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, &most, sizeof most);
    ask(device, CL_DEVICE_PARTITION_AFFINITY_DOMAIN, &domains, sizeof domains);
    memset(kinds, 0, sizeof kinds);
    size_t size = 0;
    cl_int code = device->library->api.GetDeviceInfo(device->id, CL_DEVICE_PARTITION_PROPERTIES, sizeof kinds,
                                                     kinds, &size);
    size_t count = code == CL_SUCCESS && most > 1 ? size / sizeof kinds[0] : 0;
    for (size_t i = 0; i < count && i < DRUPE_COUNT_OF(kinds); i++) {
        if (kinds[i] == CL_DEVICE_PARTITION_EQUALLY) caps->partition_kinds |= DRUPE_FLAG(DRUPE_SPLIT_EQUALLY);
        if (kinds[i] == CL_DEVICE_PARTITION_BY_COUNTS)
            caps->partition_kinds |= DRUPE_FLAG(DRUPE_SPLIT_COUNTS);
        if (kinds[i] == CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN && domains) {
            caps->partition_kinds |= DRUPE_FLAG(DRUPE_SPLIT_AFFINITY);
            /* The same order, without a bit for "none". */
            caps->partition_domains = (uint64_t)domains << 1;
        }
    }
}

/* Measured: see docs/internals/decisions.md. It notes times for whoever waits for an event anyway. */
static bool is_pocl(const drupe_cl_device *device)
{
    char name[64] = "";
    const drupe_cl_api *api = &device->library->api;
    cl_int code = api->GetPlatformInfo(device->platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    return code == CL_SUCCESS && strncmp(name, "Portable Computing Language", sizeof name) == 0;
}

static void probe_code(drupe_cl_device *device, const char *extensions)
{
    drupe_cl_caps *caps = &device->caps;
    cl_bool compiler = CL_FALSE;
    cl_device_fp_config doubles = 0;
    cl_command_queue_properties properties = 0;
    size_t resolution = 0;
    ask(device, CL_DEVICE_COMPILER_AVAILABLE, &compiler, sizeof compiler);
    ask(device, CL_DEVICE_DOUBLE_FP_CONFIG, &doubles, sizeof doubles);
    ask(device, CL_DEVICE_QUEUE_PROPERTIES, &properties, sizeof properties);
    ask(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION, &resolution, sizeof resolution);
    caps->compiler = compiler;
    caps->fp16 = drupe_cl_has_word(extensions, "cl_khr_fp16");
    caps->fp64 = doubles != 0 || drupe_cl_has_word(extensions, "cl_khr_fp64");
    caps->atomic64 = drupe_cl_has_word(extensions, "cl_khr_int64_base_atomics") &&
                     drupe_cl_has_word(extensions, "cl_khr_int64_extended_atomics");
    caps->profiling = (properties & CL_QUEUE_PROFILING_ENABLE) && resolution > 0;
    caps->times_free = caps->profiling && is_pocl(device);
    caps->unordered = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    caps->priorities = drupe_cl_has_word(extensions, "cl_khr_priority_hints");
    if (caps->version >= 21 && device->library->api.CreateProgramWithIL) {
        char *languages = drupe_cl_device_string(device, CL_DEVICE_IL_VERSION);
        caps->spirv = compiler && languages && strstr(languages, "SPIR-V");
        free(languages);
    }
    if (compiler && !caps->spirv)
        caps->bitcode = drupe_cl_bitcode_version(&device->library->api, device->platform, extensions);
}

/* Whether the driver calls functions of this process, whose memory must be the device's. */
static void probe_builtin(drupe_cl_device *device)
{
    drupe_cl_caps *caps = &device->caps;
    cl_device_exec_capabilities runs = 0;
    ask(device, CL_DEVICE_EXECUTION_CAPABILITIES, &runs, sizeof runs);
    caps->builtin = caps->cpu && caps->tiers && (runs & CL_EXEC_NATIVE_KERNEL) &&
                    device->library->api.EnqueueNativeKernel;
}

static drupe_status probe(drupe_cl_device *device)
{
    drupe_cl_caps *caps = &device->caps;
    cl_device_type type = 0;
    char *extensions = drupe_cl_device_string(device, CL_DEVICE_EXTENSIONS);
    if (!extensions) {
        return drupe_error_set(DRUPE_E_INTERNAL, "The OpenCL driver does not report a device's extensions.");
    }
    caps->version = drupe_cl_version_of(&device->library->api, device->id);
    ask(device, CL_DEVICE_TYPE, &type, sizeof type);
    caps->cpu = type & CL_DEVICE_TYPE_CPU;
    ask(device, CL_DEVICE_MAX_COMPUTE_UNITS, &caps->units, sizeof caps->units);
    ask(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, &caps->max_group, sizeof caps->max_group);
    size_t items[16]; /* a device may have more than three dimensions */
    ask(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, items, sizeof items);
    for (int i = 0; i < 3; i++) caps->max_items[i] = items[i] ? items[i] : caps->max_group;
    if (caps->version >= 30) {
        ask(device, CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, &caps->group_multiple,
            sizeof caps->group_multiple);
    }
    probe_memory(device, extensions);
    probe_builtin(device);
    probe_partition(device);
    probe_code(device, extensions);
    free(extensions);
    return DRUPE_OK;
}

/* --- Entries -------------------------------------------------------------------------------------------- */

drupe_status drupe_cl_device_open(void *state, uint32_t index, drupe_device *device)
{
    drupe_cl_library *library = state;
    drupe_cl_device *native = drupe_native(device);
    native->library = library;
    native->platform = library->roots[index].platform;
    native->id = library->roots[index].id;
    return probe(native);
}

void drupe_cl_device_close(drupe_device *device)
{
    drupe_cl_device *native = drupe_native(device);
    if (native->sub && native->id) native->library->api.ReleaseDevice(native->id);
    native->id = NULL;
}

/* What a driver's thread held when it faulted is unknown, so nothing is asked of the driver again. The
 * devices of a platform share its threads. */
drupe_status drupe_cl_device_fault(drupe_device *device, const drupe_fault *fault)
{
    const drupe_cl_device *native = drupe_native(device);
    /* A thread that is there since the platforms were counted is of one of them, nobody knows of which. */
    bool any = fault->owner == native->library && native->caps.cpu;
    return any || fault->owner == native->platform ? DRUPE_E_DEVICE_LOST : DRUPE_E_NOT_FOUND;
}

drupe_device_type drupe_cl_device_type(drupe_device *device)
{
    const drupe_cl_device *native = drupe_native(device);
    cl_device_type type = 0;
    ask(native, CL_DEVICE_TYPE, &type, sizeof type);
    if (type & CL_DEVICE_TYPE_GPU) return DRUPE_DEVICE_GPU;
    if (type & CL_DEVICE_TYPE_CPU) return DRUPE_DEVICE_CPU;
    if (type & CL_DEVICE_TYPE_ACCELERATOR) return DRUPE_DEVICE_ACCELERATOR;
    return DRUPE_DEVICE_CUSTOM;
}

/* --- Dividing ------------------------------------------------------------------------------------------- */

static drupe_status split_failed(const drupe_partition *partition, cl_int code)
{
    static const char *const ways[] = {"", "into equal parts", "by counts", "by affinity domain"};
    const char *how = ways[partition->kind];
    if (code == CL_DEVICE_PARTITION_FAILED || partition->kind == DRUPE_SPLIT_AFFINITY)
        return drupe_cl_fail_as(DRUPE_E_UNSUPPORTED, code, "The driver cannot divide this device %s.", how);
    return drupe_cl_fail(code, "Dividing the device %s", how);
}

static drupe_status adopt_subs(const drupe_cl_device *parent, const cl_device_id *ids,
                               drupe_device *const *subs, size_t count)
{
    drupe_status status = DRUPE_OK;
    for (size_t i = 0; i < count; i++) {
        drupe_cl_device *native = drupe_native(subs[i]);
        native->library = parent->library;
        native->platform = parent->platform;
        native->id = ids[i];
        native->sub = true;
    }
    for (size_t i = 0; i < count && status == DRUPE_OK; i++) status = probe(drupe_native(subs[i]));
    return status;
}

/* `wish` has room for the kind, the units, and two zeros: the end of a list of counts, and the end. */
static void write_wish(const drupe_partition *partition, cl_device_partition_property *wish)
{
    if (partition->kind == DRUPE_SPLIT_AFFINITY) {
        wish[0] = CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN;
        wish[1] = (cl_device_partition_property)1 << (partition->domain - DRUPE_DOMAIN_NUMA);
        return;
    }
    bool equally = partition->kind == DRUPE_SPLIT_EQUALLY;
    wish[0] = equally ? CL_DEVICE_PARTITION_EQUALLY : CL_DEVICE_PARTITION_BY_COUNTS;
    for (size_t i = 0; i < (equally ? 1 : partition->count); i++)
        wish[i + 1] = (cl_device_partition_property)partition->units[i];
}

static drupe_status split_native(const drupe_cl_device *device, const drupe_partition *partition,
                                 const cl_device_partition_property *wish, cl_device_id *ids,
                                 drupe_device *const *subs, size_t count)
{
    cl_uint made = 0;
    cl_int code = device->library->api.CreateSubDevices(device->id, wish, (cl_uint)count, ids, &made);
    if (code != CL_SUCCESS) return split_failed(partition, code);
    if (made == count) return adopt_subs(device, ids, subs, count);
    for (cl_uint i = 0; i < made && i < count; i++) device->library->api.ReleaseDevice(ids[i]);
    return drupe_error_set(DRUPE_E_INTERNAL, "The driver made %u sub-devices instead of %zu.", made, count);
}

drupe_status drupe_cl_device_split(drupe_device *device, const drupe_partition *partition,
                                   drupe_device *const *subs, size_t count)
{
    const drupe_cl_device *native = drupe_native(device);
    cl_device_partition_property *wish = calloc(partition->count + 4, sizeof *wish);
    cl_device_id *ids = calloc(count + 1, sizeof(cl_device_id));
    drupe_status status;
    if (wish && ids) {
        write_wish(partition, wish);
        status = split_native(native, partition, wish, ids, subs, count);
    } else {
        status = drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for %zu sub-devices.", count);
    }
    free(wish);
    free(ids);
    return status;
}

drupe_status drupe_cl_device_parts(drupe_device *device, drupe_domain domain, size_t *count)
{
    const drupe_cl_device *native = drupe_native(device);
    drupe_partition partition = {.kind = DRUPE_SPLIT_AFFINITY, .domain = domain};
    cl_device_partition_property wish[4] = {0};
    cl_uint made = 0;
    write_wish(&partition, wish);
    cl_int code = native->library->api.CreateSubDevices(native->id, wish, 0, NULL, &made);
    *count = code == CL_SUCCESS ? made : 0;
    return *count > 1 ? DRUPE_OK : split_failed(&partition, code);
}
