/* What the host device tells about itself, and how it is divided. */
#include "backends/host/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- Information ---------------------------------------------------------------------------------------- */

static drupe_status meaningless(drupe_info key)
{
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "'%s' means nothing on the host device.",
                           drupe_info_name(key));
}

static drupe_status text_info(const drupe_host_device *device, drupe_info key, char *value, size_t size,
                              size_t *needed)
{
    const drupe_host_machine *machine = &device->pool->machine;
    char version[64];
    const char *text;
    switch (key) {
    case DRUPE_INFO_NAME: text = machine->name; break;
    case DRUPE_INFO_VENDOR: text = machine->vendor; break;
    case DRUPE_INFO_DRIVER_VERSION: text = drupe_version(); break;
    case DRUPE_INFO_PLATFORM: text = "Drupe host"; break;
    case DRUPE_INFO_EXTENSIONS: text = ""; break;
    case DRUPE_INFO_VERSION:
        snprintf(version, sizeof version, "Drupe host %s (%s)", drupe_version(), drupe_builtin_variant());
        text = version;
        break;
    default: return meaningless(key);
    }
    snprintf(value, size, "%s", text);
    if (needed) *needed = strlen(text) + 1;
    return DRUPE_OK;
}

static uint64_t clock_step(void)
{
    struct timespec step;
    return clock_getres(CLOCK_MONOTONIC, &step) == 0 ? (uint64_t)step.tv_nsec : 1;
}

/* 0 where the machine does not tell. */
static uint64_t machine_number(const drupe_host_machine *machine, drupe_info key)
{
    switch (key) {
    case DRUPE_INFO_MAX_CLOCK_FREQUENCY: return machine->clock_mhz;
    case DRUPE_INFO_GLOBAL_MEM_SIZE:
    case DRUPE_INFO_MAX_MEM_ALLOC_SIZE: return machine->memory;
    case DRUPE_INFO_GLOBAL_MEM_CACHE_SIZE: return machine->cache;
    case DRUPE_INFO_GLOBAL_MEM_CACHE_LINE: return machine->line;
    default: return 0;
    }
}

static drupe_status number_info(const drupe_host_device *device, drupe_info key, uint64_t *value)
{
    switch (key) {
    case DRUPE_INFO_LANGUAGES: *value = DRUPE_LANG_BUILTIN; return DRUPE_OK;
    case DRUPE_INFO_MAX_COMPUTE_UNITS: *value = device->count; return DRUPE_OK;
    case DRUPE_INFO_MAX_WORK_ITEM_DIMS:
    case DRUPE_INFO_MAX_WORK_GROUP_SIZE:
    case DRUPE_INFO_SUB_GROUP_SIZE: *value = 1; return DRUPE_OK;
    case DRUPE_INFO_ADDRESS_BITS: *value = sizeof(void *) * 8; return DRUPE_OK;
    case DRUPE_INFO_LOCAL_MEM_SIZE:
    case DRUPE_INFO_HAS_FP16: *value = 0; return DRUPE_OK;
    case DRUPE_INFO_MEM_BASE_ALIGN: *value = 64; return DRUPE_OK;
    case DRUPE_INFO_MAX_PARAMETER_SIZE: *value = 16384; return DRUPE_OK;
    case DRUPE_INFO_PROFILING_TIMER_RESOLUTION: *value = clock_step(); return DRUPE_OK;
    case DRUPE_INFO_HAS_FP64:
    case DRUPE_INFO_HAS_ATOMIC64:
    case DRUPE_INFO_HAS_PROFILING: *value = 1; return DRUPE_OK;
    case DRUPE_INFO_USM_DEVICE:
    case DRUPE_INFO_USM_HOST:
    case DRUPE_INFO_USM_SHARED: *value = DRUPE_USM_NATIVE; return DRUPE_OK;
    case DRUPE_INFO_PARTITION_MAX: *value = device->count > 1 ? device->count : 0; return DRUPE_OK;
    case DRUPE_INFO_PARTITION_KINDS: *value = DRUPE_SPLIT_EQUALLY | DRUPE_SPLIT_COUNTS; return DRUPE_OK;
    default: break;
    }
    *value = machine_number(&device->pool->machine, key);
    return *value ? DRUPE_OK : meaningless(key);
}

drupe_status drupe_host_device_info(drupe_device *device, drupe_info key, void *value, size_t size,
                                    size_t *needed)
{
    const drupe_host_device *native = drupe_native(device);
    uint64_t numbers[3] = {1, 1, 1};
    size_t full = sizeof numbers[0];
    switch (drupe_info_type_of(key)) {
    case DRUPE_INFO_STRING: return text_info(native, key, value, size, needed);
    case DRUPE_INFO_U64: DRUPE_TRY(number_info(native, key, numbers)); break;
    case DRUPE_INFO_U64X3: full = sizeof numbers; break;
    }
    memcpy(value, numbers, size < full ? size : full);
    if (needed) *needed = full;
    return DRUPE_OK;
}

/* --- Division ------------------------------------------------------------------------------------------- */

drupe_status drupe_host_device_split(drupe_device *device, const drupe_partition *partition,
                                     drupe_device *const *subs, size_t count)
{
    const drupe_host_device *parent = drupe_native(device);
    unsigned first = parent->first;
    for (size_t i = 0; i < count; i++) {
        drupe_host_device *sub = drupe_native(subs[i]);
        sub->pool = parent->pool;
        sub->first = first;
        sub->count = partition->units[partition->kind == DRUPE_SPLIT_EQUALLY ? 0 : i];
        first += sub->count;
    }
    return DRUPE_OK;
}
