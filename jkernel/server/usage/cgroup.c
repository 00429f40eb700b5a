/* What this process's control groups tell beside their limits (base/group.c): kills, time, where memory
 * stands. */
#include "jkernel/server/usage/usage_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_SIZE 4096u

uint64_t jk_cgroup_kills(const drupe_group *memory)
{
    char text[SMALL_SIZE];
    if (memory->path[0]) {
        const char *name = memory->unified ? "memory.events" : "memory.oom_control";
        uint64_t kills = DRUPE_NOT_KNOWN;
        if (drupe_group_read(memory, name, text, sizeof text) > 0)
            kills = drupe_number_after(text, "oom_kill ");
        if (kills != DRUPE_NOT_KNOWN) return kills;
    }
    char *all = malloc(64u << 10);
    uint64_t kills = DRUPE_NOT_KNOWN;
    if (all && drupe_proc_read("vmstat", all, 64u << 10) > 0) kills = drupe_number_after(all, "oom_kill ");
    free(all);
    return kills;
}

double jk_cgroup_cpu_time(const drupe_groups *group)
{
    char text[SMALL_SIZE];
    if (group->cpu.path[0] && group->cpu.unified) {
        if (drupe_group_read(&group->cpu, "cpu.stat", text, sizeof text) <= 0) return -1;
        uint64_t used = drupe_number_after(text, "usage_usec ");
        return used == DRUPE_NOT_KNOWN ? -1 : (double)used / 1e6;
    }
    if (!group->cpuacct.path[0]) return -1;
    uint64_t used = drupe_group_number(&group->cpuacct, "cpuacct.usage");
    return used == DRUPE_NOT_KNOWN ? -1 : (double)used / 1e9;
}

/* --- Memory
 * -------------------------------------------------------------------------------------------------
 */

static uint64_t known(uint64_t number)
{
    return number == DRUPE_NOT_KNOWN ? 0 : number;
}

static uint64_t kib(const char *text, const char *key)
{
    return known(drupe_number_after(text, key)) * 1024;
}

static uint64_t minus(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static void host_read(jk_memory *memory)
{
    char text[8192];
    memset(memory, 0, sizeof *memory);
    if (drupe_proc_read("meminfo", text, sizeof text) <= 0) return;
    memory->total = kib(text, "MemTotal:");
    memory->free = kib(text, "MemFree:");
    memory->available = kib(text, "MemAvailable:");
    memory->active = kib(text, "Active:");
    memory->inactive = kib(text, "Inactive:");
    memory->cached = kib(text, "Cached:") + kib(text, "SReclaimable:");
    memory->shared = kib(text, "Shmem:");
    memory->wired = kib(text, "Mlocked:");
    memory->used = minus(memory->total, memory->available);
}

void jk_memory_read(const drupe_group *group, jk_memory *memory)
{
    drupe_group at;
    char text[8192];
    host_read(memory);
    uint64_t limit = drupe_group_memory_limit(group, &at);
    if (limit == 0 || (memory->total && limit >= memory->total)) return;
    uint64_t current = drupe_group_number(&at, at.unified ? "memory.current" : "memory.usage_in_bytes");
    if (current == DRUPE_NOT_KNOWN || drupe_group_read(&at, "memory.stat", text, sizeof text) <= 0) return;

    const char *const *key;
    static const char *const old[] = {
        "total_active_anon ", "total_active_file ", "total_inactive_anon ", "total_inactive_file ",
        "total_cache ",       "total_shmem ",       "total_unevictable ",
    };
    static const char *const unified[] = {
        "active_anon ", "active_file ", "inactive_anon ", "inactive_file ", "file ", "shmem ", "unevictable ",
    };
    key = at.unified ? unified : old;
    uint64_t reclaimable = known(drupe_number_after(text, key[3]));
    uint64_t host_available = memory->available;
    memory->total = limit;
    memory->used = minus(current, reclaimable);
    memory->free = minus(limit, current);
    memory->available = minus(limit, memory->used);
    if (host_available && host_available < memory->available) memory->available = host_available;
    memory->active = known(drupe_number_after(text, key[0])) + known(drupe_number_after(text, key[1]));
    memory->inactive = known(drupe_number_after(text, key[2])) + reclaimable;
    memory->cached = known(drupe_number_after(text, key[4]));
    memory->shared = known(drupe_number_after(text, key[5]));
    memory->wired = known(drupe_number_after(text, key[6]));
}
