/* The limits that a container or a batch system has set, in control groups of both versions.
 *
 * A limit counts wherever it stands on the way from our group up to the mount point: the smallest one binds.
 * In a container the path in /proc/self/cgroup may begin with what the mount already stands for, or may not
 * exist at all in our view; then the mount point itself is our group. */
#include "base/machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTS_SIZE (256u << 10)
#define SMALL_SIZE  4096u
#define UNLIMITED   ((uint64_t)1 << 62) /* what v1 says for "no limit" is a little above this */

/* Whether `name` is an element of the comma-separated `list`. */
static bool list_has(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length])) return true;
    }
    return false;
}

/* The line after `line`, or NULL. */
static const char *line_next(const char *line)
{
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

/* Our path in the hierarchy of `controller` ("" for the unified one), from the lines of /proc/self/cgroup:
 * "0::/path", "4:cpu,cpuacct:/path". `path` has room for DRUPE_GROUP_PATH. */
static bool path_find(const char *lines, const char *controller, char *path)
{
    char names[256];
    for (const char *line = lines; line; line = line_next(line)) {
        if (!*controller && sscanf(line, "%*u::%511[^\n]", path) == 1) return true;
        if (*controller && sscanf(line, "%*u:%255[^:\n]:%511[^\n]", names, path) == 2 &&
            list_has(names, controller))
            return true;
    }
    return false;
}

typedef struct mount {
    char root[DRUPE_GROUP_PATH], point[DRUPE_GROUP_PATH], kind[32], options[256];
} mount;

/* "36 35 98:0 /root /point rw,noatime master:1 - cgroup2 cgroup2 rw,memory" */
static bool mount_parse(const char *line, mount *found)
{
    char text[2 * DRUPE_GROUP_PATH];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    const char *rest = strstr(text, " - ");
    return rest && sscanf(text, "%*s %*s %*s %511s %511s", found->root, found->point) == 2 &&
           sscanf(rest + 3, "%31s %*s %255s", found->kind, found->options) == 2;
}

static void group_place(const mount *at, const char *path, bool unified, drupe_group *group)
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
static void group_find(const char *mounts, const char *lines, const char *controller, drupe_group *group)
{
    char path[DRUPE_GROUP_PATH];
    memset(group, 0, sizeof *group);
    bool old = path_find(lines, controller, path);
    if (!old && !path_find(lines, "", path)) return;
    for (const char *line = mounts; line && !group->path[0]; line = line_next(line)) {
        mount at;
        if (!mount_parse(line, &at)) continue;
        bool match = old ? strcmp(at.kind, "cgroup") == 0 && list_has(at.options, controller)
                         : strcmp(at.kind, "cgroup2") == 0;
        if (match) group_place(&at, path, !old, group);
    }
}

void drupe_groups_find(drupe_groups *groups)
{
    char lines[SMALL_SIZE];
    memset(groups, 0, sizeof *groups);
    char *mounts = malloc(MOUNTS_SIZE);
    if (mounts && drupe_proc_read("self/mountinfo", mounts, MOUNTS_SIZE) > 0 &&
        drupe_proc_read("self/cgroup", lines, sizeof lines) > 0) {
        group_find(mounts, lines, "memory", &groups->memory);
        group_find(mounts, lines, "cpu", &groups->cpu);
        group_find(mounts, lines, "cpuacct", &groups->cpuacct);
    }
    free(mounts);
}

/* --- Reading -------------------------------------------------------------------------------------------- */

long drupe_group_read(const drupe_group *group, const char *name, char *text, size_t size)
{
    char file[DRUPE_GROUP_PATH + 64];
    snprintf(file, sizeof file, "%s/%s", group->path, name);
    return drupe_small_read(file, text, size);
}

uint64_t drupe_group_number(const drupe_group *group, const char *name)
{
    char text[64];
    if (drupe_group_read(group, name, text, sizeof text) <= 0) return DRUPE_NOT_KNOWN;
    return drupe_number_after(text, "");
}

/* Step to the group above, up to the mount point; false: it was that. */
static bool group_up(drupe_group *group)
{
    char *slash = strrchr(group->path, '/');
    if (!slash || strlen(group->path) <= group->mount || (size_t)(slash - group->path) < group->mount)
        return false;
    *slash = '\0';
    return true;
}

/* The limit that stands in this very group; UNLIMITED or more: none. */
static uint64_t limit_of(const drupe_group *memory)
{
    uint64_t limit = drupe_group_number(memory, memory->unified ? "memory.max" : "memory.limit_in_bytes");
    /* Above it a group is slowed down until hardly anything runs. */
    uint64_t high = memory->unified ? drupe_group_number(memory, "memory.high") : DRUPE_NOT_KNOWN;
    return high < limit ? high : limit;
}

uint64_t drupe_group_memory_limit(const drupe_group *memory, drupe_group *at)
{
    drupe_group group = *memory;
    uint64_t least = UNLIMITED;
    if (at) *at = group;
    if (!group.path[0]) return 0;
    do {
        uint64_t limit = limit_of(&group);
        if (limit >= least) continue;
        least = limit;
        if (at) *at = group;
    } while (group_up(&group));
    return least >= UNLIMITED ? 0 : least;
}

static double quota_of(const drupe_group *cpu)
{
    char text[64];
    double quota = 0, period = 0;
    if (cpu->unified) {
        if (drupe_group_read(cpu, "cpu.max", text, sizeof text) <= 0) return 0;
        if (sscanf(text, "%lf %lf", &quota, &period) != 2) return 0;
    } else {
        uint64_t most = drupe_group_number(cpu, "cpu.cfs_quota_us");
        uint64_t every = drupe_group_number(cpu, "cpu.cfs_period_us");
        if (most == DRUPE_NOT_KNOWN || every == DRUPE_NOT_KNOWN) return 0;
        quota = (double)most;
        period = (double)every;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

double drupe_group_cpus(const drupe_group *cpu)
{
    drupe_group group = *cpu;
    double least = 0;
    if (!group.path[0]) return 0;
    do {
        double cpus = quota_of(&group);
        if (cpus > 0 && (least <= 0 || cpus < least)) least = cpus;
    } while (group_up(&group));
    return least;
}

/* Bytes of file pages, which the system gives up when memory is short. */
static uint64_t file_pages(const drupe_group *memory)
{
    char text[2 * SMALL_SIZE];
    static const char *const keys[2][2] = {{"total_inactive_file ", "total_active_file "},
                                           {"inactive_file ", "active_file "}};
    uint64_t sum = 0;
    if (drupe_group_read(memory, "memory.stat", text, sizeof text) <= 0) return 0;
    for (int i = 0; i < 2; i++) {
        uint64_t bytes = drupe_number_after(text, keys[memory->unified][i]);
        if (bytes != DRUPE_NOT_KNOWN) sum += bytes;
    }
    return sum;
}

uint64_t drupe_group_memory_room(const drupe_group *memory)
{
    drupe_group group = *memory;
    uint64_t least = UINT64_MAX;
    if (!group.path[0]) return least;
    do {
        uint64_t limit = limit_of(&group);
        uint64_t used =
            drupe_group_number(&group, group.unified ? "memory.current" : "memory.usage_in_bytes");
        if (limit >= UNLIMITED || used == DRUPE_NOT_KNOWN) continue;
        uint64_t files = file_pages(&group);
        used -= files < used ? files : used;
        uint64_t room = limit > used ? limit - used : 0;
        if (room < least) least = room;
    } while (group_up(&group));
    return least;
}
