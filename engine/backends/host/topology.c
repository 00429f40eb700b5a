/* Which CPUs share memory controllers and caches, from /sys.
 *
 * Workers stand for CPUs only when there are as many of them: with a quota or a wish for another number of
 * threads nothing is known. They are numbered so that neighbours share as much as possible; then every domain
 * is a range of workers, and so is a sub-device. */
#include "backends/host/host.h"
#include "base/machine.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN  UINT32_MAX
#define ALL_CPUS 65536

/* The domains of one CPU; ids are the lowest CPU or the node's number. */
typedef struct drupe_host_placement {
    unsigned cpu;
    uint32_t id[DRUPE_DOMAIN_NEXT];
} placement;

static const char *sys_folder(void)
{
    const char *test = getenv("DRUPE_TEST_SYS");
    return test && *test ? test : "/sys";
}

/* --- Lists of CPUs: "0-3,8,10-11" ----------------------------------------------------------------------- */

/* Call `take` for each; false at a mistake. */
static bool each_cpu(const char *list, void (*take)(unsigned cpu, void *user), void *user)
{
    const char *at = list;
    while (*at) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at) return false;
        if (*end == '-') {
            at = end + 1;
            last = strtoul(at, &end, 10);
            if (end == at) return false;
        }
        if (last >= ALL_CPUS || first > last || (*end && *end != ',')) return false;
        for (unsigned long cpu = first; cpu <= last; cpu++) take((unsigned)cpu, user);
        at = *end ? end + 1 : end;
    }
    return true;
}

struct cpu_list {
    unsigned *cpus;
    unsigned count, capacity;
};

static void append_cpu(unsigned cpu, void *user)
{
    struct cpu_list *list = user;
    if (list->count < list->capacity) list->cpus[list->count++] = cpu;
}

/* The CPUs this process may run on, at most `capacity`. */
static unsigned allowed_cpus(unsigned *cpus, unsigned capacity)
{
    struct cpu_list list = {cpus, 0, capacity};
    char path[512], line[4096];
    if (getenv("DRUPE_TEST_SYS")) {
        snprintf(path, sizeof path, "%s/devices/system/cpu/online", sys_folder());
        if (!drupe_read_line(path, line, sizeof line) || !each_cpu(line, append_cpu, &list)) return 0;
        return list.count;
    }
    cpu_set_t *set = CPU_ALLOC(ALL_CPUS);
    size_t size = CPU_ALLOC_SIZE(ALL_CPUS);
    if (set && sched_getaffinity(0, size, set) == 0) {
        for (unsigned cpu = 0; cpu < ALL_CPUS; cpu++) {
            if (CPU_ISSET_S(cpu, size, set)) append_cpu(cpu, &list);
        }
    }
    if (set) CPU_FREE(set);
    return list.count;
}

/* --- Domains -------------------------------------------------------------------------------------------- */

struct node {
    drupe_host_topology *topology;
    uint32_t id;
};

static void set_node(unsigned cpu, void *user)
{
    struct node *node = user;
    for (unsigned i = 0; i < node->topology->count; i++) {
        if (node->topology->placements[i].cpu == cpu)
            node->topology->placements[i].id[DRUPE_DOMAIN_NUMA] = node->id;
    }
}

static void probe_node(unsigned number, void *user)
{
    struct node node = {user, number};
    char path[512], line[4096];
    snprintf(path, sizeof path, "%s/devices/system/node/node%u/cpulist", sys_folder(), number);
    if (drupe_read_line(path, line, sizeof line)) each_cpu(line, set_node, &node);
}

static void probe_caches(placement *where)
{
    static const drupe_domain domains[] = {0, DRUPE_DOMAIN_L1, DRUPE_DOMAIN_L2, DRUPE_DOMAIN_L3,
                                           DRUPE_DOMAIN_L4};
    for (int i = 0; i < 16; i++) {
        char path[512], line[4096];
        int n = snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%u/cache/index%d/", sys_folder(),
                         where->cpu, i);
        snprintf(path + n, sizeof path - (size_t)n, "level");
        if (!drupe_read_line(path, line, sizeof line)) return;
        unsigned long level = strtoul(line, NULL, 10);
        snprintf(path + n, sizeof path - (size_t)n, "type");
        if (!drupe_read_line(path, line, sizeof line) || strcmp(line, "Instruction") == 0) continue;
        snprintf(path + n, sizeof path - (size_t)n, "shared_cpu_list");
        if (level < 1 || level > 4 || !drupe_read_line(path, line, sizeof line)) continue;
        where->id[domains[level]] = (uint32_t)strtoul(line, NULL, 10);
    }
}

static int compare_placements(const void *a, const void *b)
{
    const placement *x = a, *y = b;
    for (int domain = DRUPE_DOMAIN_NUMA; domain < DRUPE_DOMAIN_NEXT; domain++) {
        if (x->id[domain] != y->id[domain]) return x->id[domain] < y->id[domain] ? -1 : 1;
    }
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

void drupe_host_topology_probe(drupe_host_topology *topology, unsigned threads)
{
    unsigned *cpus = calloc((size_t)threads + 1, sizeof *cpus);
    placement *placements = calloc(threads, sizeof *placements);
    unsigned count = cpus && placements ? allowed_cpus(cpus, threads + 1) : 0;
    memset(topology, 0, sizeof *topology);
    if (count == threads) {
        topology->placements = placements;
        topology->count = count;
        placements = NULL;
        for (unsigned i = 0; i < count; i++) {
            topology->placements[i].cpu = cpus[i];
            for (int d = 0; d < DRUPE_DOMAIN_NEXT; d++) topology->placements[i].id[d] = UNKNOWN;
            probe_caches(&topology->placements[i]);
        }
        char path[512], line[4096];
        snprintf(path, sizeof path, "%s/devices/system/node/online", sys_folder());
        if (drupe_read_line(path, line, sizeof line)) each_cpu(line, probe_node, topology);
        qsort(topology->placements, count, sizeof *topology->placements, compare_placements);
    }
    free(placements);
    free(cpus);
}

void drupe_host_topology_clear(drupe_host_topology *topology)
{
    free(topology->placements);
    *topology = (drupe_host_topology){0};
}

/* --- Division ------------------------------------------------------------------------------------------- */

unsigned drupe_host_topology_run(const drupe_host_topology *topology, drupe_domain domain, unsigned first,
                                 unsigned count)
{
    if (!topology->placements || first + count > topology->count) return 0;
    const placement *at = topology->placements + first;
    unsigned run = 1;
    if (at->id[domain] == UNKNOWN) return 0;
    while (run < count && at[run].id[domain] == at->id[domain]) run++;
    return run;
}

unsigned drupe_host_topology_parts(const drupe_host_topology *topology, drupe_domain domain, unsigned first,
                                   unsigned count)
{
    unsigned parts = 0;
    while (count) {
        unsigned run = drupe_host_topology_run(topology, domain, first, count);
        if (run == 0) return 0;
        first += run;
        count -= run;
        parts++;
    }
    return parts;
}

/* --- Binding -------------------------------------------------------------------------------------------- */

void drupe_host_worker_bind(drupe_host_worker *worker)
{
    const drupe_host_topology *topology = &worker->tpool->sched->topology;
    if (!worker->started || worker->home_count == 0 || !topology->placements) return;
    cpu_set_t *set = CPU_ALLOC(ALL_CPUS);
    size_t size = CPU_ALLOC_SIZE(ALL_CPUS);
    if (!set) return;
    CPU_ZERO_S(size, set);
    for (unsigned i = 0; i < worker->home_count; i++) {
        CPU_SET_S(topology->placements[worker->home_first + i].cpu, size, set);
    }
    /* A wish: a machine that refuses it still computes the right thing. */
    pthread_setaffinity_np(worker->thread, size, set);
    CPU_FREE(set);
}

void drupe_host_sched_settle(drupe_host_sched *sched, unsigned first, unsigned count)
{
    drupe_host_tpool *tpool = &sched->compute;
    pthread_mutex_lock(&tpool->lock);
    for (unsigned i = first; i < first + count; i++) {
        tpool->workers[i].home_first = first;
        tpool->workers[i].home_count = count;
        drupe_host_worker_bind(&tpool->workers[i]);
    }
    pthread_mutex_unlock(&tpool->lock);
}
