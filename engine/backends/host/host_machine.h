/* What this machine is, and what its CPUs share. */
#ifndef DRUPE_HOST_MACHINE_H
#define DRUPE_HOST_MACHINE_H

#include "backends/services.h"
#include "base/service.h"

#define DRUPE_HOST_MAX_WORKERS DRUPE_HOST_THREADS_MOST

typedef struct drupe_host_sched drupe_host_sched;
typedef struct drupe_host_task drupe_host_task;
typedef struct drupe_host_code drupe_host_code; /* code.h */
typedef struct drupe_host_tpool drupe_host_tpool;

/* --- machine.c, limits.c: what this machine is -----------------------------------------------------------
 */

typedef struct drupe_host_machine {
    char name[128], vendor[64];
    unsigned threads;     /* workers to start: CPUs this process may use, or DRUPE_HOST_THREADS */
    uint64_t memory;      /* bytes, the control group's limit respected */
    uint64_t cache, line; /* bytes of the last cache level and of a line; 0 if unknown */
    uint64_t clock_mhz;   /* 0 if unknown */
    bool corrects_errors; /* memory errors are counted, so they are corrected; false if unknown */
} drupe_host_machine;

void drupe_host_machine_probe(drupe_host_machine *machine);
/* What tells apart processors that run different code: 32 hexadecimal digits, static. Any thread. */
const char *drupe_host_features(void);

/* --- topology.c: what its CPUs share ---------------------------------------------------------------------
 */

typedef struct drupe_host_placement drupe_host_placement;

/* Zeroed = nothing is known. */
typedef struct drupe_host_topology {
    drupe_host_placement *placements; /* of each worker */
    unsigned count;
} drupe_host_topology;

typedef struct drupe_host_worker drupe_host_worker;

/* Of as many workers; DRUPE_TEST_SYS names a folder that stands for /sys, its CPUs are all allowed then. */
void drupe_host_topology_probe(drupe_host_topology *topology, unsigned threads);
void drupe_host_topology_clear(drupe_host_topology *topology);
/* How many of the workers from `first` on share the domain with it; 0 if that is unknown. */
unsigned drupe_host_topology_run(const drupe_host_topology *topology, drupe_domain domain, unsigned first,
                                 unsigned count);
/* Into how many parts the domain divides a range; 0 if that is unknown. */
unsigned drupe_host_topology_parts(const drupe_host_topology *topology, drupe_domain domain, unsigned first,
                                   unsigned count);
/* Have the workers of a range run on its CPUs only. */
void drupe_host_sched_settle(drupe_host_sched *sched, unsigned first, unsigned count);
/* Tie a worker that has just been started to its home, if it has one. Needs tpool->lock. */
void drupe_host_worker_bind(drupe_host_worker *worker);

#endif
