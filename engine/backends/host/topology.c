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

/* --- Sets of CPUs --------------------------------------------------------------------------------------- */

/* Room for ALL_CPUS. */
typedef struct cpus {
    cpu_set_t sets[ALL_CPUS / CPU_SETSIZE];
} cpus;

static bool has_cpu(const cpus *set, unsigned cpu)
{
    return CPU_ISSET_S(cpu, sizeof *set, set->sets);
}

/* "0-3,8,10-11" in a file below /sys/devices/system; false at a mistake. */
static bool read_cpus(const char *file, cpus *set)
{
    char path[512], line[4096];
    memset(set, 0, sizeof *set);
    snprintf(path, sizeof path, "%s/devices/system/%s", sys_folder(), file);
    if (!drupe_read_line(path, line, sizeof line)) return false;
    for (char *at = line, *end; *at; at = *end ? end + 1 : end) {
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at) return false;
        if (*end == '-') {
            at = end + 1;
            last = strtoul(at, &end, 10);
            if (end == at) return false;
        }
        if (last >= ALL_CPUS || first > last || (*end && *end != ',')) return false;
        for (; first <= last; first++) CPU_SET_S(first, sizeof *set, set->sets);
    }
    return true;
}

/* The CPUs this process may run on. */
static bool allowed_cpus(cpus *set)
{
    memset(set, 0, sizeof *set);
    if (getenv("DRUPE_TEST_SYS")) return read_cpus("cpu/online", set);
    return sched_getaffinity(0, sizeof *set, set->sets) == 0;
}

/* --- Domains -------------------------------------------------------------------------------------------- */

static void probe_nodes(drupe_host_topology *topology)
{
    cpus nodes, members;
    char file[64];
    if (!read_cpus("node/online", &nodes)) return;
    for (unsigned number = 0; number < ALL_CPUS; number++) {
        snprintf(file, sizeof file, "node/node%u/cpulist", number);
        if (!has_cpu(&nodes, number) || !read_cpus(file, &members)) continue;
        for (unsigned i = 0; i < topology->count; i++) {
            if (has_cpu(&members, topology->placements[i].cpu))
                topology->placements[i].id[DRUPE_DOMAIN_NUMA] = number;
        }
    }
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
    cpus allowed;
    memset(topology, 0, sizeof *topology);
    if (!allowed_cpus(&allowed) || (unsigned)CPU_COUNT_S(sizeof allowed, allowed.sets) != threads) return;
    topology->placements = calloc(threads, sizeof *topology->placements);
    if (!topology->placements) return;
    for (unsigned cpu = 0; cpu < ALL_CPUS; cpu++) {
        if (!has_cpu(&allowed, cpu)) continue;
        placement *where = &topology->placements[topology->count++];
        where->cpu = cpu;
        for (int d = 0; d < DRUPE_DOMAIN_NEXT; d++) where->id[d] = UNKNOWN;
        probe_caches(where);
    }
    probe_nodes(topology);
    qsort(topology->placements, topology->count, sizeof *topology->placements, compare_placements);
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
    cpus set;
    memset(&set, 0, sizeof set);
    for (unsigned i = 0; i < worker->home_count; i++)
        CPU_SET_S(topology->placements[worker->home_first + i].cpu, sizeof set, set.sets);
    /* A wish: a machine that refuses it still computes the right thing. */
    pthread_setaffinity_np(worker->thread, sizeof set, set.sets);
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
