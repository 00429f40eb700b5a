/* How much of the machine this process may use: affinity, and control groups of both versions.
 *
 * A group's limit also binds the groups below it, so all ancestors are asked. Inside a container the path in
 * /proc/self/cgroup may name a folder that is not visible; the walk up then ends at the visible root. */
#include "base/base.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS "/sys/fs/cgroup"

bool drupe_read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool read = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (read) line[strcspn(line, "\n")] = '\0';
    return read;
}

/* This process's group under one controller ("" is version 2), as an absolute folder. */
static bool find_group(const char *controller, char *folder, size_t size)
{
    char line[4096];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        names++;
        if (!*controller)
            found = !*names;
        else
            found = strstr(names, controller) != NULL;
        if (found) snprintf(folder, size, "%s%s%.2000s", GROUPS "/", *controller ? controller : "", path);
    }
    if (file) fclose(file);
    return found;
}

/* Call `read` for the group's folder and all above it. */
static void each_ancestor(const char *controller, void (*read)(const char *folder, void *user), void *user)
{
    char folder[4096];
    if (!find_group(controller, folder, sizeof folder)) return;
    for (;;) {
        read(folder, user);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < strlen(GROUPS)) break;
        *slash = '\0';
    }
}

static bool read_in(const char *folder, const char *name, char *line, size_t size)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return drupe_read_line(path, line, size);
}

/* --- Processors ----------------------------------------------------------------------------------------- */

static void less_cpus(double quota, double period, void *user)
{
    unsigned *cpus = user;
    if (quota <= 0 || period <= 0) return;
    double share = quota / period;
    unsigned whole = (unsigned)share + ((double)(unsigned)share < share);
    if (whole < 1) whole = 1;
    if (whole < *cpus) *cpus = whole;
}

static void read_cpu_max(const char *folder, void *user)
{
    char line[128], *end;
    if (!read_in(folder, "cpu.max", line, sizeof line) || strncmp(line, "max", 3) == 0) return;
    double quota = strtod(line, &end);
    less_cpus(quota, strtod(end, NULL), user);
}

static void read_cfs_quota(const char *folder, void *user)
{
    char quota[64], period[64];
    if (!read_in(folder, "cpu.cfs_quota_us", quota, sizeof quota)) return;
    if (!read_in(folder, "cpu.cfs_period_us", period, sizeof period)) return;
    less_cpus(strtod(quota, NULL), strtod(period, NULL), user);
}

static unsigned affinity_count(void)
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

unsigned drupe_machine_cpus(void)
{
    unsigned cpus = affinity_count();
    each_ancestor("", read_cpu_max, &cpus);
    each_ancestor("cpu", read_cfs_quota, &cpus);
    return cpus;
}

/* --- Memory --------------------------------------------------------------------------------------------- */

static void less_memory(const char *folder, const char *name, uint64_t *memory)
{
    char line[64];
    if (!read_in(folder, name, line, sizeof line) || strncmp(line, "max", 3) == 0) return;
    uint64_t limit = strtoull(line, NULL, 10);
    if (limit && limit < *memory) *memory = limit;
}

static void read_memory_max(const char *folder, void *user)
{
    less_memory(folder, "memory.max", user);
}

static void read_limit_in_bytes(const char *folder, void *user)
{
    less_memory(folder, "memory.limit_in_bytes", user);
}

uint64_t drupe_machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 30;
    each_ancestor("", read_memory_max, &memory);
    each_ancestor("memory", read_limit_in_bytes, &memory);
    return memory;
}

/* Bytes of file pages, which the system gives up when memory is short. */
static uint64_t file_pages(const char *folder)
{
    char path[4200], line[128];
    unsigned long long bytes;
    uint64_t sum = 0;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "inactive_file %llu", &bytes) == 1 ||
            sscanf(line, "active_file %llu", &bytes) == 1) {
            sum += bytes;
        }
    }
    if (file) fclose(file);
    return sum;
}

static void room_left(const char *folder, const char *limit, const char *used, uint64_t *room)
{
    char line[64];
    uint64_t most = UINT64_MAX;
    less_memory(folder, limit, &most);
    if (most == UINT64_MAX || !read_in(folder, used, line, sizeof line)) return;
    uint64_t now = strtoull(line, NULL, 10), files = file_pages(folder);
    now -= files < now ? files : now;
    uint64_t left = most > now ? most - now : 0;
    if (left < *room) *room = left;
}

static void read_room(const char *folder, void *user)
{
    room_left(folder, "memory.max", "memory.current", user);
}

static void read_room_v1(const char *folder, void *user)
{
    room_left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", user);
}

uint64_t drupe_machine_memory_free(void)
{
    uint64_t room = UINT64_MAX;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "MemAvailable:", 13) == 0) room = strtoull(line + 13, NULL, 10) << 10;
    }
    if (file) fclose(file);
    each_ancestor("", read_room, &room);
    each_ancestor("memory", read_room_v1, &room);
    return room;
}
