/* The vtable of `host`. There is one root device; it needs no library, so loading it cannot fail for want of
 * anything but memory. */
#include "backends/host/host.h"
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MOST 64u

extern const drupe_backend drupe_backend_host;

static bool likely(drupe_device_type type)
{
    return type == DRUPE_DEVICE_CPU;
}

static void read_shuffle(drupe_host_sched *sched)
{
    const char *seed = getenv("DRUPE_HOST_SHUFFLE");
    if (!seed || !*seed) return;
    sched->shuffle = true;
    sched->random = strtoull(seed, NULL, 10) * 2 + 88172645463325253u;
}

/* Functions get two workers even on one processor: they may wait for each other. */
static drupe_status open_tpools(drupe_host_sched *sched)
{
    DRUPE_TRY(drupe_cond_init(&sched->done));
    sched->has_done = true;
    DRUPE_TRY(drupe_host_tpool_open(&sched->compute, sched, drupe_host_worker_run, "drupe-host",
                                    sched->nworkers, sched->nworkers));
    unsigned count = sched->nworkers < 2                    ? 2
                     : sched->nworkers > FUNCTIONS_MOST / 2 ? FUNCTIONS_MOST / 2
                                                            : sched->nworkers;
    return drupe_host_tpool_open(&sched->functions, sched, drupe_host_worker_run, "drupe-fn", count,
                                 FUNCTIONS_MOST);
}

/* Nothing is in flight. */
static void unload(void *state)
{
    drupe_host_sched *sched = state;
    drupe_host_tpool_close(&sched->compute);
    drupe_host_tpool_close(&sched->functions);
    drupe_host_topology_clear(&sched->topology);
    if (sched->has_done) pthread_cond_destroy(&sched->done);
    pthread_mutex_destroy(&sched->lock);
    free(sched);
}

static drupe_status load(void **state)
{
    drupe_host_sched *sched = aligned_alloc(64, sizeof *sched);
    if (!sched) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the host device.");
    memset(sched, 0, sizeof *sched);
    pthread_mutex_init(&sched->lock, NULL);
    drupe_host_machine_probe(&sched->machine);
    sched->nworkers = sched->machine.threads;
    drupe_host_topology_probe(&sched->topology, sched->nworkers);
    read_shuffle(sched);
    drupe_status status = open_tpools(sched);
    if (status == DRUPE_OK)
        *state = sched;
    else
        unload(sched);
    return status;
}

static drupe_status device_count(void *state, uint32_t *count)
{
    (void)state;
    *count = 1;
    return DRUPE_OK;
}

static drupe_status device_open(void *state, uint32_t index, drupe_device *device)
{
    (void)index;
    drupe_host_device *native = drupe_native(device);
    native->sched = state;
    native->first = 0;
    native->count = native->sched->nworkers;
    return DRUPE_OK;
}

static drupe_device_type device_type(drupe_device *device)
{
    (void)device;
    return DRUPE_DEVICE_CPU;
}

const drupe_backend drupe_backend_host = {
    .name = "host",
    .size = {.device = sizeof(drupe_host_device),
             .context = 0,
             .queue = sizeof(drupe_host_queue),
             .event = sizeof(drupe_host_event),
             .program = sizeof(drupe_host_program),
             .kernel = sizeof(drupe_host_kernel)},
    .takes_predecessor = true,
    .tells_runs = true,
    .closes_failed = true,
    .likely = likely,
    .load = load,
    .unload = unload,
    .device_count = device_count,
    .device_open = device_open,
    .device_type = device_type,
    .device_info = drupe_host_device_info,
    .device_split = drupe_host_device_split,
    .device_fault = drupe_host_device_fault,
    .device_parts = drupe_host_device_parts,
    .queue_open = drupe_host_queue_open,
    .queue_close = drupe_host_queue_close,
    .queue_time = drupe_host_queue_time,
    .queue_wait = drupe_host_queue_wait,
    .queue_fault = drupe_host_queue_fault,
    .queue_cancel = drupe_host_queue_cancel,
    .event_close = drupe_host_event_close,
    .event_state = drupe_host_event_state,
    .event_wait = drupe_host_event_wait,
    .event_times = drupe_host_event_times,
    .event_notify = drupe_host_event_notify,
    .mem_alloc = drupe_host_mem_alloc,
    .mem_free = drupe_host_mem_free,
    .mem_wipe = drupe_host_mem_wipe,
    .mem_export = drupe_host_mem_export,
    .mem_import = drupe_host_mem_import,
    .mem_detach = drupe_host_mem_detach,
    .program_open = drupe_host_program_open,
    .program_close = drupe_host_program_close,
    .kernel_open = drupe_host_kernel_open,
    .kernel_number = drupe_host_kernel_number,
    .kernel_arg = drupe_host_kernel_arg,
    .program_names = drupe_host_program_names,
    .program_binary = drupe_host_program_binary,
    .program_advice = drupe_host_program_advice,
    .program_tools = drupe_host_program_tools,
    .program_traits = drupe_host_program_traits,
    .submit_kernel = drupe_host_submit_kernel,
    .submit_copy = drupe_host_submit_copy,
    .submit_fill = drupe_host_submit_fill,
    .submit_barrier = drupe_host_submit_barrier,
    .submit_host = drupe_host_submit_host,
};
