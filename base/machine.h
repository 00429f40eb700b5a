/* How much of the machine this process may use: processors, memory, and the control groups that limit them.
 * Everything is read from /proc and from the file systems of control groups. Any thread. Sizes in bytes. */
#ifndef DRUPE_BASE_MACHINE_H
#define DRUPE_BASE_MACHINE_H

#include "base/base.h"

#define DRUPE_NOT_KNOWN UINT64_MAX

/* --- limits.c ------------------------------------------------------------------------------------------- */

/* CPUs by affinity, at least 1. */
unsigned drupe_cpus_by_affinity(void);
/* The same within a quota (as of drupe_group_cpus(); 0: none), rounded up. */
unsigned drupe_cpus_within(double quota);
/* CPUs by affinity and quota, at least 1. */
unsigned drupe_machine_cpus(void);
/* Physical memory or the control group's limit, whichever is less. */
uint64_t drupe_machine_memory(void);
/* What could be allocated now without pushing the machine, or the control group, out of memory. */
uint64_t drupe_machine_memory_free(void);

/* Whether other people use this machine: a hub (JUPYTERHUB_API_TOKEN) or a broker (DRUPE_LEASE) started this
 * process. What is safer and costs time is then the default. */
bool drupe_machine_shared(void);

/* --- group.c: control groups, versions 1 and 2 ---------------------------------------------------------- */

#define DRUPE_GROUP_PATH 512

/* One controller of this process: its folder, and how much of the path is the mount point, above which
 * nothing is looked at. An empty path: there is none. */
typedef struct drupe_group {
    char path[DRUPE_GROUP_PATH];
    size_t mount;
    bool unified; /* version 2 */
} drupe_group;

typedef struct drupe_groups {
    drupe_group memory, cpu, cpuacct;
} drupe_groups;

/* Find this process's groups. Never fails: what is not found stays empty. */
void drupe_groups_find(drupe_groups *groups);
/* The smallest memory limit on the way up; 0: none. `*at`, which may be NULL, receives the group that has it
 * (`path` of the same length or shorter). */
uint64_t drupe_group_memory_limit(const drupe_group *memory, drupe_group *at);
/* What may be allocated below the limits, the least on the way up; UINT64_MAX: there are none. */
uint64_t drupe_group_memory_room(const drupe_group *memory);
/* The CPUs that the quotas allow, the smallest on the way up; 0: no quota. */
double drupe_group_cpus(const drupe_group *cpu);

/* A file of the group, as by drupe_small_read(). */
long drupe_group_read(const drupe_group *group, const char *name, char *text, size_t size);
/* The number in a file of its own; DRUPE_NOT_KNOWN for "max" and for what is not there. */
uint64_t drupe_group_number(const drupe_group *group, const char *name);

/* --- proc.c: small files of the system ------------------------------------------------------------------ */

/* Read a whole small file into `text`, NUL-ended and cut to `size`. Returns its length, or -1. */
long drupe_small_read(const char *path, char *text, size_t size);
/* The first line of a file, without its newline; false if it cannot be read. */
bool drupe_read_line(const char *path, char *line, size_t size);
/* A folder that stands for /proc, as tests have one; NULL: /proc itself. Before there are other threads. */
void drupe_proc_choose(const char *folder);
/* The same as drupe_small_read() for a file under that folder. */
long drupe_proc_read(const char *name, char *text, size_t size);
/* The number that follows `key` at the start of a line; DRUPE_NOT_KNOWN when there is none. */
uint64_t drupe_number_after(const char *text, const char *key);

#endif
