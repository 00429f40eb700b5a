/* How the host device is divided. */
#include "backends/host/host.h"

/* --- Division ------------------------------------------------------------------------------------------- */

drupe_status drupe_host_device_split(drupe_device *device, const drupe_partition *partition,
                                     drupe_device *const *subs, size_t count)
{
    const drupe_host_device *parent = drupe_native(device);
    const drupe_host_topology *topology = &parent->sched->topology;
    bool along = partition->kind == DRUPE_SPLIT_AFFINITY;
    unsigned first = parent->first, end = parent->first + parent->count;
    for (size_t i = 0; i < count; i++) {
        drupe_host_device *sub = drupe_native(subs[i]);
        sub->sched = parent->sched;
        sub->first = first;
        sub->count = along ? drupe_host_topology_run(topology, partition->domain, first, end - first)
                           : partition->units[partition->kind == DRUPE_SPLIT_EQUALLY ? 0 : i];
        /* A part that shares a domain runs on that domain's CPUs only: else sharing would mean nothing. */
        if (along) drupe_host_sched_settle(sub->sched, sub->first, sub->count);
        first += sub->count;
    }
    return DRUPE_OK;
}

drupe_status drupe_host_device_parts(drupe_device *device, drupe_domain domain, size_t *count)
{
    const drupe_host_device *native = drupe_native(device);
    *count = drupe_host_topology_parts(&native->sched->topology, domain, native->first, native->count);
    if (*count > 1) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "The CPUs of this device are not known to lie in several "
                                                "domains of that kind.");
}
