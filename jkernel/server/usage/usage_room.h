/* The room of usage: what the kernel uses and what it may use: answers to usage_request, and the memory
 * cgroup for the record of a killed kernel. Everything is read from /proc and from the cgroup file systems;
 * nothing waits for the language. Sizes in bytes, times in seconds.
 *
 * Owns: jk_usage, the samples that percentages are taken against. Locks: jk_usage's own, taken alone.
 * Threads: any. */
#ifndef JK_USAGE_ROOM_H
#define JK_USAGE_ROOM_H

#include "base/machine.h"
#include "jkernel/server/tools/tools_room.h"
#include "jkernel/wire/wire.h"

/* --- cgroup.c ------------------------------------------------------------------------------------------ */

/* Where memory stands, of the host or of the cgroup that limits it. */
typedef struct jk_memory {
    uint64_t total, available, used, free, active, inactive, cached, shared, wired;
} jk_memory;

/* Out-of-memory kills counted so far: of the group, else of the machine. */
uint64_t jk_cgroup_kills(const drupe_group *memory);
/* CPU time that the group has used; negative: not known. */
double jk_cgroup_cpu_time(const drupe_groups *group);
/* Fill `memory` from the host, then narrow it to the group's limit if one is smaller. */
void jk_memory_read(const drupe_group *group, jk_memory *memory);

/* --- procfs.c ------------------------------------------------------------------------------------------ */

/* What a process and its descendants use. */
typedef struct jk_tree {
    double cpu;      /* time since their start, with that of children they have waited for */
    uint64_t memory; /* proportional set size; resident size where that would take long */
    int processes;
} jk_tree;

void jk_tree_read(jk_tree *tree);

#define JK_PROCESSES_MOST 2048
typedef struct jk_processes {
    int count;
    long ids[JK_PROCESSES_MOST];
} jk_processes;
/* Append the children of `process`, as far as there is room. */
void jk_children_add(long process, jk_processes *found);

/* --- usage_reply.c ------------------------------------------------------------------------------------- */

/* The samples that percentages are taken against. Zeroed to begin with; used under its own lock. */
typedef struct jk_usage {
    pthread_mutex_t lock;
    drupe_groups group;
    bool found;
    int64_t taken;          /* when the samples were; 0: none yet */
    double busy, whole;     /* of the machine or group: time used, time there was */
    double own_percent;     /* of one CPU */
    double machine_percent; /* of all that may be used */
    jk_tree tree;
} jk_usage;

/* The content of usage_reply, for free(); NULL: no memory. `devices` is a JSON array, or empty for none. */
char *jk_usage_reply(jk_usage *usage, const char *devices, size_t size);

#endif
