/* What a process tree uses.
 *
 * A process's proportional set size costs a walk over its pages with its memory map locked, so it is asked
 * for only while processes are small and time is left; the resident size stands in for it. */
#include "jkernel/server/usage/usage_room.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WALKED_MOST ((uint64_t)1 << 30)
#define WALK_TIME   (40 * JK_MILLISECOND)

/* --- The tree
 * -----------------------------------------------------------------------------------------------
 */

void jk_children_add(long process, jk_processes *found)
{
    char path[96], text[4096];
    snprintf(path, sizeof path, "/proc/%ld/task", process);
    DIR *threads = opendir(path);
    if (!threads) return;
    struct dirent *thread;
    while ((thread = readdir(threads))) {
        long id = strtol(thread->d_name, NULL, 10);
        if (id <= 0) continue;
        snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", process, id);
        if (drupe_small_read(path, text, sizeof text) <= 0) continue;
        for (char *at = text, *end; found->count < JK_PROCESSES_MOST; at = end) {
            long child = strtol(at, &end, 10);
            if (end == at || child <= 0) break;
            found->ids[found->count++] = child;
        }
    }
    closedir(threads);
}

/* Fields 14 to 17 of stat: user and system time, its own and that of children it has waited for. */
static double cpu_read(long process)
{
    char path[64], text[1024];
    unsigned long user, system;
    long user_children, system_children;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    if (drupe_small_read(path, text, sizeof text) <= 0) return 0;
    const char *rest = strrchr(text, ')'); /* the name before it may hold anything */
    if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &user,
                        &system, &user_children, &system_children) != 4) {
        return 0;
    }
    return ((double)user + (double)system + (double)user_children + (double)system_children) /
           (double)sysconf(_SC_CLK_TCK);
}

static uint64_t memory_read(long process, int64_t deadline)
{
    char path[64], text[2048];
    unsigned long long resident = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", process);
    if (drupe_small_read(path, text, sizeof text) > 0) sscanf(text, "%*u %llu", &resident);
    resident *= (unsigned long long)sysconf(_SC_PAGESIZE);
    if (resident > WALKED_MOST || jk_clock() > deadline) return resident;
    snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", process);
    if (drupe_small_read(path, text, sizeof text) <= 0) return resident;
    uint64_t share = drupe_number_after(text, "Pss:");
    return share == DRUPE_NOT_KNOWN ? resident : share * 1024;
}

void jk_tree_read(jk_tree *tree)
{
    jk_processes found;
    found.ids[0] = (long)getpid();
    found.count = 1;
    int64_t deadline = jk_clock() + WALK_TIME;
    memset(tree, 0, sizeof *tree);
    for (int i = 0; i < found.count; i++) {
        tree->cpu += cpu_read(found.ids[i]);
        tree->memory += memory_read(found.ids[i], deadline);
        if (jk_clock() < deadline) jk_children_add(found.ids[i], &found);
    }
    tree->processes = found.count;
}
