/* What the host device tells about itself. What the machine does not tell is unknown, never 0. */
#include "backends/host/groups.h"
#include "backends/host/host.h"
#include "base/machine.h"
#include <string.h>
#include <time.h>

#define ALL_BELOW(count) (DRUPE_FLAG(count) - 1)

static drupe_status meaningless(drupe_info key)
{
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "'%s' means nothing on the host device.",
                           drupe_info_name(key));
}

static drupe_status text_info(const drupe_host_device *device, drupe_info key, drupe_text *text)
{
    const drupe_host_machine *machine = &device->sched->machine;
    switch (key) {
    case DRUPE_INFO_NAME: drupe_text_printf(text, "%s", machine->name); break;
    case DRUPE_INFO_VENDOR: drupe_text_printf(text, "%s", machine->vendor); break;
    case DRUPE_INFO_BACKEND_VERSION:
    case DRUPE_INFO_DRIVER_VERSION: drupe_text_printf(text, "%s", drupe_version()); break;
    case DRUPE_INFO_PLATFORM: drupe_text_printf(text, "Drupe host"); break;
    case DRUPE_INFO_PLATFORM_VENDOR: drupe_text_printf(text, "Drupe"); break;
    case DRUPE_INFO_IL_VERSION:
    case DRUPE_INFO_EXTENSIONS: break; /* none */
    case DRUPE_INFO_VERSION:
        drupe_text_printf(text, "Drupe host %s (%s)", drupe_version(), drupe_builtin_variant());
        break;
    default: return meaningless(key);
    }
    return DRUPE_OK;
}

static uint64_t clock_step(void)
{
    struct timespec step;
    return clock_getres(CLOCK_MONOTONIC, &step) == 0 ? (uint64_t)step.tv_nsec : 1;
}

/* Bytes of a vector of the kernels in use, and whether they multiply and add in one step; 0 where the width
 * is the machine's secret. */
static uint64_t vector_bytes(bool *fma)
{
    static const struct {
        const char *variant;
        uint64_t bytes;
    } widths[] = {{"avx2", 32}, {"avx512", 64}, {"baseline", 16}};
    const char *variant = drupe_builtin_variant();
#if defined(__aarch64__)
    *fma = true;
#else
    *fma = strcmp(variant, "baseline") != 0;
#endif
    for (size_t i = 0; i < DRUPE_COUNT_OF(widths); i++) {
        if (strcmp(variant, widths[i].variant) == 0) return widths[i].bytes;
    }
    return 0;
}

/* Of vectors, preferred and native alike: the bytes of an element, 0 = another key. */
static uint64_t element_size(drupe_info key)
{
    switch (key) {
    case DRUPE_INFO_PREFERRED_CHAR:
    case DRUPE_INFO_NATIVE_CHAR: return 1;
    case DRUPE_INFO_PREFERRED_SHORT:
    case DRUPE_INFO_NATIVE_SHORT: return 2;
    case DRUPE_INFO_PREFERRED_INT:
    case DRUPE_INFO_NATIVE_INT:
    case DRUPE_INFO_PREFERRED_FLOAT:
    case DRUPE_INFO_NATIVE_FLOAT: return 4;
    case DRUPE_INFO_PREFERRED_LONG:
    case DRUPE_INFO_NATIVE_LONG:
    case DRUPE_INFO_PREFERRED_DOUBLE:
    case DRUPE_INFO_NATIVE_DOUBLE: return 8;
    default: return 0;
    }
}

static uint64_t fp_config(void)
{
    bool fma;
    vector_bytes(&fma);
    return ALL_BELOW(DRUPE_FP_SOFT_FLOAT) & ~(fma ? 0 : DRUPE_FLAG(DRUPE_FP_FMA));
}

/* The number that the PCI consortium gave the vendor of the processor; 0 for others. */
static uint64_t vendor_id(const drupe_host_machine *machine)
{
    if (strcmp(machine->vendor, "GenuineIntel") == 0) return 0x8086;
    return strcmp(machine->vendor, "AuthenticAMD") == 0 ? 0x1022 : 0;
}

/* 0 where the machine does not tell. */
static uint64_t machine_number(const drupe_host_machine *machine, drupe_info key)
{
    bool fma;
    if (element_size(key)) return vector_bytes(&fma) / element_size(key);
    switch (key) {
    case DRUPE_INFO_VENDOR_ID: return vendor_id(machine);
    case DRUPE_INFO_MAX_CLOCK_FREQUENCY: return machine->clock_mhz;
    case DRUPE_INFO_GLOBAL_MEM_SIZE:
    case DRUPE_INFO_MAX_MEM_ALLOC_SIZE: return machine->memory;
    case DRUPE_INFO_FREE_MEMORY: return drupe_machine_memory_free();
    case DRUPE_INFO_GLOBAL_MEM_CACHE_TYPE: return machine->cache ? DRUPE_CACHE_READ_WRITE : 0;
    case DRUPE_INFO_GLOBAL_MEM_CACHE_SIZE: return machine->cache;
    case DRUPE_INFO_GLOBAL_MEM_CACHE_LINE: return machine->line;
    case DRUPE_INFO_ERROR_CORRECTION: return machine->corrects_errors;
    default: return 0;
    }
}

static uint64_t domains(const drupe_host_device *device)
{
    uint64_t found = 0;
    for (int domain = DRUPE_DOMAIN_NUMA; domain < DRUPE_DOMAIN_NEXT; domain++) {
        if (drupe_host_topology_parts(&device->sched->topology, (drupe_domain)domain, device->first,
                                      device->count) > 1)
            found |= DRUPE_FLAG(domain);
    }
    return found ? found | DRUPE_FLAG(DRUPE_DOMAIN_NEXT) : 0;
}

static uint64_t partition_kinds(const drupe_host_device *device)
{
    if (device->count < 2) return 0;
    return DRUPE_FLAG(DRUPE_SPLIT_EQUALLY) | DRUPE_FLAG(DRUPE_SPLIT_COUNTS) |
           (domains(device) ? DRUPE_FLAG(DRUPE_SPLIT_AFFINITY) : 0);
}

static drupe_status number_info(const drupe_host_device *device, drupe_info key, uint64_t *value)
{
    switch (key) {
    case DRUPE_INFO_LANGUAGES:
        *value = DRUPE_LANG_BUILTIN | (drupe_host_code_possible() ? DRUPE_LANG_C | DRUPE_LANG_BINARY : 0u);
        return DRUPE_OK;
    case DRUPE_INFO_HAS_ONLINE_COMPILER: *value = drupe_host_code_possible(); return DRUPE_OK;
    case DRUPE_INFO_MAX_COMPUTE_UNITS: *value = device->count; return DRUPE_OK;
    case DRUPE_INFO_MAX_WORK_ITEM_DIMS:
    case DRUPE_INFO_MAX_WORK_GROUP_SIZE:
    case DRUPE_INFO_SUB_GROUP_SIZE: *value = 1; return DRUPE_OK;
    case DRUPE_INFO_ADDRESS_BITS: *value = sizeof(void *) * 8; return DRUPE_OK;
    case DRUPE_INFO_MEM_BASE_ALIGN: *value = 64 * 8; return DRUPE_OK;
    case DRUPE_INFO_LOCAL_MEM_TYPE: *value = DRUPE_LOCAL_MEM_GLOBAL; return DRUPE_OK;
    case DRUPE_INFO_LOCAL_MEM_SIZE: *value = DRUPE_HOST_LOCAL_MOST; return DRUPE_OK;
    case DRUPE_INFO_MAX_PARAMETER_SIZE: *value = 16384; return DRUPE_OK;
    case DRUPE_INFO_PROFILING_TIMER_RESOLUTION: *value = clock_step(); return DRUPE_OK;
    case DRUPE_INFO_AVAILABLE:
    case DRUPE_INFO_HAS_FP64:
    case DRUPE_INFO_HAS_ATOMIC64:
    case DRUPE_INFO_HAS_PROFILING:
    case DRUPE_INFO_HAS_USM_SYSTEM:
    case DRUPE_INFO_HAS_USM_ATOMIC_HOST:
    case DRUPE_INFO_HAS_USM_ATOMIC_SHARED:
    case DRUPE_INFO_HAS_HOST_DEBUGGABLE: *value = 1; return DRUPE_OK;
    case DRUPE_INFO_PLATFORM_INDEX:
    case DRUPE_INFO_HAS_FP16:
    case DRUPE_INFO_HALF_FP_CONFIG:
    case DRUPE_INFO_HAS_IMAGE:
    case DRUPE_INFO_HAS_ONLINE_LINKER:
    case DRUPE_INFO_HAS_EMULATED:
    case DRUPE_INFO_HAS_COMPONENT:
    case DRUPE_INFO_HAS_COMPOSITE: *value = 0; return DRUPE_OK;
    case DRUPE_INFO_USM_DEVICE:
    case DRUPE_INFO_USM_HOST:
    case DRUPE_INFO_USM_SHARED: *value = DRUPE_USM_NATIVE; return DRUPE_OK;
    case DRUPE_INFO_SINGLE_FP_CONFIG:
    case DRUPE_INFO_DOUBLE_FP_CONFIG: *value = fp_config(); return DRUPE_OK;
    case DRUPE_INFO_ATOMIC_ORDERS:
    case DRUPE_INFO_FENCE_ORDERS: *value = ALL_BELOW(DRUPE_memory_order_COUNT); return DRUPE_OK;
    case DRUPE_INFO_ATOMIC_SCOPES:
    case DRUPE_INFO_FENCE_SCOPES: *value = ALL_BELOW(DRUPE_memory_scope_COUNT); return DRUPE_OK;
    case DRUPE_INFO_PARTITION_MAX: *value = device->count > 1 ? device->count : 0; return DRUPE_OK;
    case DRUPE_INFO_PARTITION_KINDS: *value = partition_kinds(device); return DRUPE_OK;
    case DRUPE_INFO_PARTITION_DOMAINS: *value = domains(device); return DRUPE_OK;
    default: break;
    }
    *value = machine_number(&device->sched->machine, key);
    return *value ? DRUPE_OK : meaningless(key);
}

drupe_status drupe_host_device_info(drupe_device *device, drupe_info key, uint64_t number[3],
                                    drupe_text *text)
{
    const drupe_host_device *native = drupe_native(device);
    switch (drupe_info_type_of(key)) {
    case DRUPE_INFO_STRING: return text_info(native, key, text);
    case DRUPE_INFO_LIST: return meaningless(key);
    case DRUPE_INFO_U64X3: number[0] = number[1] = number[2] = 1; return DRUPE_OK;
    default: return number_info(native, key, number);
    }
}
