#include "test_script.h"
#include "base/base.h"
#include <stdlib.h>
#include <string.h>

struct test_script test_script;
static drupe_backend plain[2]; /* the tables as they were */

enum { UNFINISHED, COMPLETE, FAILED };

struct native_device {
    const struct test_device *of;
    uint64_t units;
};

struct native_event {
    _Atomic(int) state;
};

void test_script_reset(void)
{
    unsetenv("DRUPE_DEVICES");
    unsetenv("ONEAPI_DEVICE_SELECTOR");
    test_script = (struct test_script){.fault = DRUPE_E_NOT_FOUND};
    if (plain[0].name)
        memcpy(test_script_tables, plain, sizeof plain);
    else
        memcpy(plain, test_script_tables, sizeof plain);
    for (size_t i = 0; i < 2; i++) {
        test_script.backends[i].count = 1;
        test_script.backends[i].devices[0] =
            (struct test_device){.type = DRUPE_DEVICE_CPU, .units = 8, .memory = UINT64_C(1) << 30};
    }
}

static drupe_status answer(drupe_status status)
{
    return status == DRUPE_OK ? DRUPE_OK : drupe_error_set(status, "The script says no.");
}

/* --- Devices -------------------------------------------------------------------------------------------- */

static drupe_status load(size_t index, void **state)
{
    test_script.backends[index].loads++;
    *state = (void *)(index + 1);
    return answer(test_script.backends[index].load);
}

static drupe_status load_host(void **state)
{
    return load(0, state);
}

static drupe_status load_opencl(void **state)
{
    return load(1, state);
}

static void unload(void *state)
{
    (void)state;
}

static size_t index_of(const void *state)
{
    return (size_t)state - 1;
}

static drupe_status device_count(void *state, uint32_t *count)
{
    *count = test_script.backends[index_of(state)].count;
    return DRUPE_OK;
}

static drupe_status device_open(void *state, uint32_t index, drupe_device *device)
{
    struct native_device *native = drupe_native(device);
    native->of = &test_script.backends[index_of(state)].devices[index];
    native->units = native->of->units;
    return answer(native->of->open);
}

static void device_close(drupe_device *device)
{
    (void)device;
}

static drupe_device_type device_type(drupe_device *device)
{
    const struct native_device *native = drupe_native(device);
    return native->of->type;
}

static uint64_t kinds_of(const struct native_device *native)
{
    if (native->units < 2) return 0;
    if (native->of->kinds) return native->of->kinds;
    return DRUPE_FLAG(DRUPE_SPLIT_EQUALLY) | DRUPE_FLAG(DRUPE_SPLIT_COUNTS);
}

static uint64_t most_of(const struct native_device *native)
{
    return native->of->most_parts ? native->of->most_parts : native->units;
}

static uint64_t domains_of(const struct native_device *native)
{
    if (native->of->domains) return native->of->domains;
    return native->of->numa ? DRUPE_FLAG(DRUPE_DOMAIN_NUMA) : 0;
}

static bool number_of(const struct native_device *native, drupe_info key, uint64_t *value)
{
    switch (key) {
    case DRUPE_INFO_LANGUAGES: *value = DRUPE_LANG_OPENCL_C; return true;
    case DRUPE_INFO_MAX_COMPUTE_UNITS: *value = native->units; return true;
    case DRUPE_INFO_PARTITION_MAX: *value = native->units < 2 ? 0 : most_of(native); return true;
    case DRUPE_INFO_PARTITION_KINDS: *value = kinds_of(native); return true;
    case DRUPE_INFO_PARTITION_DOMAINS: *value = domains_of(native); return true;
    case DRUPE_INFO_GLOBAL_MEM_SIZE: *value = native->of->memory; return true;
    case DRUPE_INFO_MAX_MEM_ALLOC_SIZE: *value = native->of->most; return native->of->most != 0;
    case DRUPE_INFO_FREE_MEMORY: *value = native->of->free; return native->of->free != 0;
    case DRUPE_INFO_USM_DEVICE:
    case DRUPE_INFO_USM_SHARED:
    case DRUPE_INFO_USM_HOST: *value = DRUPE_USM_NATIVE; return true;
    default: return false;
    }
}

static drupe_status device_info(drupe_device *device, drupe_info key, uint64_t number[3], drupe_text *text)
{
    if (key == DRUPE_INFO_NAME)
        drupe_text_printf(text, "scripted device");
    else if (key == DRUPE_INFO_UUID && ((struct native_device *)drupe_native(device))->of->uuid)
        drupe_text_printf(text, "%s", ((struct native_device *)drupe_native(device))->of->uuid);
    else if (!number_of(drupe_native(device), key, number))
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The scripted device does not tell.");
    return DRUPE_OK;
}

static drupe_status device_split(drupe_device *device, const drupe_partition *partition,
                                 drupe_device *const *subs, size_t count)
{
    const struct native_device *whole = drupe_native(device);
    for (size_t i = 0; i < count; i++) {
        struct native_device *part = drupe_native(subs[i]);
        part->of = whole->of;
        part->units = whole->units / count;
        if (partition->kind == DRUPE_SPLIT_EQUALLY) part->units = partition->units[0];
        if (partition->kind == DRUPE_SPLIT_COUNTS) part->units = partition->units[i];
    }
    return answer(test_script.split);
}

static drupe_status device_parts(drupe_device *device, drupe_domain domain, size_t *count)
{
    const struct native_device *native = drupe_native(device);
    (void)domain;
    *count = native->of->numa;
    return answer(*count < 2 ? DRUPE_E_UNSUPPORTED : DRUPE_OK);
}

static drupe_status device_fault(drupe_device *device, const drupe_fault *fault)
{
    (void)device, (void)fault;
    return test_script.fault == DRUPE_OK ? DRUPE_OK
                                         : drupe_error_set(test_script.fault, "The script says no.");
}

/* --- Contexts, queues, events --------------------------------------------------------------------------- */

static drupe_status context_open(drupe_context *context)
{
    (void)context;
    return DRUPE_OK;
}

static void context_close(drupe_context *context)
{
    (void)context;
}

static drupe_status queue_open(drupe_queue *queue, uint32_t flags)
{
    (void)queue, (void)flags;
    return DRUPE_OK;
}

static void queue_close(drupe_queue *queue)
{
    (void)queue;
}

/* Only the test ends work, and it knows when it does. */
static drupe_status queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue, (void)timeout_ns;
    return atomic_load(&test_script.unfinished) ? answer(DRUPE_E_TIMEOUT) : DRUPE_OK;
}

static void event_close(drupe_event *event)
{
    (void)event;
}

static drupe_status event_state(drupe_event *event, drupe_event_state *state)
{
    struct native_event *native = drupe_native(event);
    switch (atomic_load(&native->state)) {
    case UNFINISHED: *state = DRUPE_EVENT_SUBMITTED; return DRUPE_OK;
    case COMPLETE: *state = DRUPE_EVENT_COMPLETE; return DRUPE_OK;
    default: *state = DRUPE_EVENT_FAILED; return answer(DRUPE_E_INTERNAL);
    }
}

static drupe_status event_wait(drupe_event *event, uint64_t timeout_ns)
{
    struct native_event *native = drupe_native(event);
    (void)timeout_ns;
    return atomic_load(&native->state) == UNFINISHED ? answer(DRUPE_E_TIMEOUT) : DRUPE_OK;
}

static drupe_status event_times(drupe_event *event, drupe_times *times)
{
    (void)event, (void)times;
    return answer(DRUPE_E_UNSUPPORTED);
}

static drupe_status event_notify(drupe_event *event)
{
    (void)event; /* test_script_finish() tells all */
    return DRUPE_OK;
}

void test_script_finish(drupe_event *event, bool good)
{
    struct native_event *native = drupe_native(event);
    int before = UNFINISHED;
    if (!atomic_compare_exchange_strong(&native->state, &before, good ? COMPLETE : FAILED)) return;
    atomic_fetch_sub(&test_script.unfinished, 1);
    drupe_core_notify(event);
}

/* --- Memory, programs, submissions ---------------------------------------------------------------------- */

static drupe_status mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind, size_t size,
                              size_t align, void **pointer)
{
    (void)context, (void)device, (void)kind;
    *pointer = aligned_alloc(align < 64 ? 64 : align, (size + 4095) & ~(size_t)4095);
    return *pointer ? DRUPE_OK : answer(DRUPE_E_NO_MEMORY);
}

static void mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer)
{
    (void)context, (void)device, (void)kind;
    free(pointer);
}

static drupe_status program_open(drupe_program *program, const drupe_source *source, char **log)
{
    (void)program, (void)source, (void)log;
    return DRUPE_OK;
}

static void program_close(drupe_program *program)
{
    (void)program;
}

static drupe_status kernel_open(drupe_kernel *kernel, const char *name)
{
    (void)kernel, (void)name;
    return DRUPE_OK;
}

static void kernel_close(drupe_kernel *kernel)
{
    (void)kernel;
}

static drupe_status kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    (void)kernel;
    *value = key == DRUPE_KERNEL_ARG_COUNT ? 0 : 64;
    return DRUPE_OK;
}

/* Work without an event is over at once. */
static drupe_status submit(const drupe_submit *s)
{
    if (s->event) atomic_fetch_add(&test_script.unfinished, 1);
    return DRUPE_OK;
}

static drupe_status submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                  const drupe_arg *args, size_t nargs)
{
    (void)kernel, (void)range, (void)args, (void)nargs;
    return submit(s);
}

static drupe_status submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    (void)dst, (void)src, (void)bytes;
    return submit(s);
}

static drupe_status submit_fill(const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size,
                                size_t bytes)
{
    (void)dst, (void)pattern, (void)pattern_size, (void)bytes;
    return submit(s);
}

static drupe_status submit_barrier(const drupe_submit *s)
{
    return submit(s);
}

#define ENTRIES                                                                                              \
    .size = {.device = sizeof(struct native_device), .event = sizeof(struct native_event)},                  \
    .unload = unload, .device_count = device_count, .device_open = device_open,                              \
    .device_close = device_close, .device_type = device_type, .device_info = device_info,                    \
    .device_split = device_split, .device_parts = device_parts, .device_fault = device_fault,                \
    .context_open = context_open, .context_close = context_close, .queue_open = queue_open,                  \
    .queue_close = queue_close, .queue_wait = queue_wait, .event_close = event_close,                        \
    .event_state = event_state, .event_wait = event_wait, .event_times = event_times,                        \
    .event_notify = event_notify, .mem_alloc = mem_alloc, .mem_free = mem_free,                              \
    .program_open = program_open, .program_close = program_close, .kernel_open = kernel_open,                \
    .kernel_close = kernel_close, .kernel_number = kernel_number, .submit_kernel = submit_kernel,            \
    .submit_copy = submit_copy, .submit_fill = submit_fill, .submit_barrier = submit_barrier

drupe_backend test_script_tables[2] = {{.name = "host", .load = load_host, ENTRIES},
                                       {.name = "opencl", .load = load_opencl, ENTRIES}};

const drupe_backend *const drupe_backends[] = {&test_script_tables[0], &test_script_tables[1], NULL};
const char *const drupe_backends_absent[] = {"cuda", NULL};

drupe_status drupe_layer_apply(const drupe_backend *base, size_t slot, const drupe_backend **table)
{
    (void)slot;
    *table = base;
    return answer(test_script.layer);
}
