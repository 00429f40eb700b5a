/* The limits that a container or a batch system has set, in cgroup v1 and v2.
 *
 * A limit counts wherever it stands on the way from our group up to the mount point: the smallest one binds.
 * In a container the path in /proc/self/cgroup may begin with what the mount already stands for, or may not
 * exist at all in our view; then the mount point itself is our group. */
#include "jkernel/server/usage/usage_room.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTS_SIZE (256u << 10)
#define SMALL_SIZE  4096u
#define UNLIMITED   ((uint64_t)1 << 62) /* what v1 says for "no limit" is a little above this */

/* Whether `name` is an element of the comma-separated `list`. */
static bool list_has(const char *list, size_t size, const char *name)
{
    size_t length = strlen(name);
    while (size >= length) {
        const char *comma = memchr(list, ',', size);
        size_t part = comma ? (size_t)(comma - list) : size;
        if (part == length && memcmp(list, name, length) == 0) return true;
        if (!comma) return false;
        size -= part + 1;
        list = comma + 1;
    }
    return false;
}

/* Our path in the hierarchy of `controller` ("" for the unified one), from the lines of /proc/self/cgroup. */
static bool path_find(const char *lines, const char *controller, char *path, size_t size)
{
    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n");
        const char *first = memchr(line, ':', length);
        const char *second = first ? memchr(first + 1, ':', length - (size_t)(first + 1 - line)) : NULL;
        if (second) {
            size_t names = (size_t)(second - first - 1);
            bool match = *controller ? list_has(first + 1, names, controller) : names == 0;
            size_t rest = length - (size_t)(second + 1 - line);
            if (match && rest < size) {
                memcpy(path, second + 1, rest);
                path[rest] = '\0';
                return true;
            }
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

typedef struct mount {
    char root[JK_PATH], point[JK_PATH], kind[32], options[256];
} mount;

/* "36 35 98:0 /root /point rw,noatime master:1 - cgroup2 cgroup2 rw,memory" */
static bool mount_parse(const char *line, size_t length, mount *found)
{
    char text[2 * JK_PATH];
    if (length >= sizeof text) return false;
    memcpy(text, line, length);
    text[length] = '\0';
    char *rest = strstr(text, " - ");
    return rest && sscanf(text, "%*s %*s %*s %511s %511s", found->root, found->point) == 2 &&
           sscanf(rest + 3, "%31s %*s %255s", found->kind, found->options) == 2;
}

static void group_place(const mount *at, const char *path, bool unified, jk_group *group)
{
    size_t root = strlen(at->root);
    const char *inside = path;
    if (strcmp(at->root, "/") != 0) {
        bool under = strncmp(path, at->root, root) == 0 && (path[root] == '/' || path[root] == '\0');
        inside = under ? path + root : "";
    }
    if (strcmp(inside, "/") == 0 || strstr(inside, "/..")) inside = "";
    group->mount = strlen(at->point);
    group->unified = unified;
    int size = snprintf(group->path, sizeof group->path, "%s%s", at->point, inside);
    if (size < 0 || (size_t)size >= sizeof group->path || access(group->path, X_OK) != 0) {
        snprintf(group->path, sizeof group->path, "%s", at->point);
    }
}

/* A controller is either in a v1 hierarchy, or in the unified one. */
static void group_find(const char *mounts, const char *lines, const char *controller, jk_group *group)
{
    char path[JK_PATH];
    memset(group, 0, sizeof *group);
    bool old = path_find(lines, controller, path, sizeof path);
    if (!old && !path_find(lines, "", path, sizeof path)) return;
    for (const char *line = mounts; *line && !group->path[0];) {
        size_t length = strcspn(line, "\n");
        mount at;
        if (mount_parse(line, length, &at)) {
            bool match =
                old ? strcmp(at.kind, "cgroup") == 0 && list_has(at.options, strlen(at.options), controller)
                    : strcmp(at.kind, "cgroup2") == 0;
            if (match) group_place(&at, path, !old, group);
        }
        line += length + (line[length] == '\n');
    }
}

void jk_cgroup_find(jk_cgroup *group)
{
    char lines[SMALL_SIZE];
    memset(group, 0, sizeof *group);
    char *mounts = malloc(MOUNTS_SIZE);
    if (mounts && jk_proc_read("self/mountinfo", mounts, MOUNTS_SIZE) > 0 &&
        jk_proc_read("self/cgroup", lines, sizeof lines) > 0) {
        group_find(mounts, lines, "memory", &group->memory);
        group_find(mounts, lines, "cpu", &group->cpu);
        group_find(mounts, lines, "cpuacct", &group->cpuacct);
    }
    free(mounts);
}

/* --- Reading
 * ------------------------------------------------------------------------------------------------
 */

static long group_read(const char *path, const char *name, char *text, size_t size)
{
    char file[JK_PATH + 64];
    snprintf(file, sizeof file, "%s/%s", path, name);
    return jk_file_read(file, text, size);
}

/* The number in a file of its own; JK_NOT_KNOWN for "max" and for what is not there. */
static uint64_t group_number(const char *path, const char *name)
{
    char text[64];
    if (group_read(path, name, text, sizeof text) <= 0) return JK_NOT_KNOWN;
    return jk_text_number(text, "");
}

/* Step to the group above, down to the mount point. */
static bool group_up(jk_group *group)
{
    char *slash = strrchr(group->path, '/');
    if (!slash || strlen(group->path) <= group->mount || (size_t)(slash - group->path) < group->mount)
        return false;
    *slash = '\0';
    return true;
}

uint64_t jk_cgroup_memory_limit(const jk_group *memory, jk_group *at)
{
    jk_group group = *memory;
    uint64_t least = UNLIMITED;
    if (at) *at = group;
    if (!group.path[0]) return 0;
    do {
        const char *const names[2][2] = {{"memory.limit_in_bytes", NULL}, {"memory.max", "memory.high"}};
        for (int i = 0; i < 2 && names[group.unified][i]; i++) {
            uint64_t limit = group_number(group.path, names[group.unified][i]);
            if (limit >= least) continue;
            least = limit;
            if (at) *at = group;
        }
    } while (group_up(&group));
    return least >= UNLIMITED ? 0 : least;
}

uint64_t jk_cgroup_kills(const jk_group *memory, bool *machine)
{
    char text[SMALL_SIZE];
    *machine = false;
    if (memory->path[0]) {
        const char *name = memory->unified ? "memory.events" : "memory.oom_control";
        uint64_t kills = JK_NOT_KNOWN;
        if (group_read(memory->path, name, text, sizeof text) > 0) kills = jk_text_number(text, "oom_kill ");
        if (kills != JK_NOT_KNOWN) return kills;
    }
    *machine = true;
    char *all = malloc(64u << 10);
    uint64_t kills = JK_NOT_KNOWN;
    if (all && jk_proc_read("vmstat", all, 64u << 10) > 0) kills = jk_text_number(all, "oom_kill ");
    free(all);
    return kills;
}

static double quota_of(const jk_group *cpu)
{
    char text[64];
    double quota = 0, period = 0;
    if (cpu->unified) {
        if (group_read(cpu->path, "cpu.max", text, sizeof text) <= 0) return 0;
        if (sscanf(text, "%lf %lf", &quota, &period) != 2) return 0;
    } else {
        uint64_t most = group_number(cpu->path, "cpu.cfs_quota_us");
        uint64_t every = group_number(cpu->path, "cpu.cfs_period_us");
        if (most == JK_NOT_KNOWN || every == JK_NOT_KNOWN) return 0;
        quota = (double)most;
        period = (double)every;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

double jk_cgroup_cpus(const jk_group *cpu)
{
    jk_group group = *cpu;
    double least = 0;
    if (!group.path[0]) return 0;
    do {
        double cpus = quota_of(&group);
        if (cpus > 0 && (least <= 0 || cpus < least)) least = cpus;
    } while (group_up(&group));
    return least;
}

double jk_cgroup_cpu_time(const jk_cgroup *group)
{
    char text[SMALL_SIZE];
    if (group->cpu.path[0] && group->cpu.unified) {
        if (group_read(group->cpu.path, "cpu.stat", text, sizeof text) <= 0) return -1;
        uint64_t used = jk_text_number(text, "usage_usec ");
        return used == JK_NOT_KNOWN ? -1 : (double)used / 1e6;
    }
    if (!group->cpuacct.path[0]) return -1;
    uint64_t used = group_number(group->cpuacct.path, "cpuacct.usage");
    return used == JK_NOT_KNOWN ? -1 : (double)used / 1e9;
}

/* --- Memory
 * -------------------------------------------------------------------------------------------------
 */

static uint64_t known(uint64_t number)
{
    return number == JK_NOT_KNOWN ? 0 : number;
}

static uint64_t kib(const char *text, const char *key)
{
    return known(jk_text_number(text, key)) * 1024;
}

static uint64_t minus(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static void host_read(jk_memory *memory)
{
    char text[8192];
    memset(memory, 0, sizeof *memory);
    if (jk_proc_read("meminfo", text, sizeof text) <= 0) return;
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

void jk_memory_read(const jk_group *group, jk_memory *memory)
{
    jk_group at;
    char text[8192];
    host_read(memory);
    uint64_t limit = jk_cgroup_memory_limit(group, &at);
    if (limit == 0 || (memory->total && limit >= memory->total)) return;
    uint64_t current = group_number(at.path, at.unified ? "memory.current" : "memory.usage_in_bytes");
    if (current == JK_NOT_KNOWN || group_read(at.path, "memory.stat", text, sizeof text) <= 0) return;

    const char *const *key;
    static const char *const old[] = {
        "total_active_anon ", "total_active_file ", "total_inactive_anon ", "total_inactive_file ",
        "total_cache ",       "total_shmem ",       "total_unevictable ",
    };
    static const char *const unified[] = {
        "active_anon ", "active_file ", "inactive_anon ", "inactive_file ", "file ", "shmem ", "unevictable ",
    };
    key = at.unified ? unified : old;
    uint64_t reclaimable = known(jk_text_number(text, key[3]));
    uint64_t host_available = memory->available;
    memory->total = limit;
    memory->used = minus(current, reclaimable);
    memory->free = minus(limit, current);
    memory->available = minus(limit, memory->used);
    if (host_available && host_available < memory->available) memory->available = host_available;
    memory->active = known(jk_text_number(text, key[0])) + known(jk_text_number(text, key[1]));
    memory->inactive = known(jk_text_number(text, key[2])) + reclaimable;
    memory->cached = known(jk_text_number(text, key[4]));
    memory->shared = known(jk_text_number(text, key[5]));
    memory->wired = known(jk_text_number(text, key[6]));
}
