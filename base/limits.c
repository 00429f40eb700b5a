/* How much of the machine this process may use: affinity, and control groups. */
#include "base/machine.h"
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

unsigned drupe_cpus_by_affinity(void)
{
    for (int cpus = 1024; cpus <= 65536; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0) return (unsigned)count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned drupe_cpus_within(double quota)
{
    unsigned cpus = drupe_cpus_by_affinity();
    if (!(quota > 0) || quota >= cpus) return cpus;
    unsigned whole = (unsigned)quota + ((double)(unsigned)quota < quota);
    return whole < 1 ? 1 : whole;
}

unsigned drupe_machine_cpus(void)
{
    drupe_groups groups;
    drupe_groups_find(&groups);
    return drupe_cpus_within(drupe_group_cpus(&groups.cpu));
}

uint64_t drupe_machine_memory(void)
{
    drupe_groups groups;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 30;
    drupe_groups_find(&groups);
    uint64_t limit = drupe_group_memory_limit(&groups.memory, NULL);
    return limit && limit < memory ? limit : memory;
}

uint64_t drupe_machine_memory_free(void)
{
    drupe_groups groups;
    char text[8192];
    uint64_t free = UINT64_MAX;
    if (drupe_proc_read("meminfo", text, sizeof text) > 0) {
        uint64_t available = drupe_number_after(text, "MemAvailable:");
        if (available != DRUPE_NOT_KNOWN) free = available << 10;
    }
    drupe_groups_find(&groups);
    uint64_t room = drupe_group_memory_room(&groups.memory);
    return room < free ? room : free;
}

bool drupe_machine_shared(void)
{
    const char *hub = getenv("JUPYTERHUB_API_TOKEN"), *lease = getenv("DRUPE_LEASE");
    return (hub && *hub) || (lease && *lease);
}
