/* Work-groups of kernels in C, for barriers and local memory: groups.c. */
#ifndef DRUPE_HOST_GROUPS_H
#define DRUPE_HOST_GROUPS_H

#include "backends/host/host.h"
#include <string.h>

#define DRUPE_HOST_GROUP_MOST 1024u /* work-items of a group */
#define DRUPE_HOST_LOCAL_MOST                                                                                \
    ((size_t)256 << 10) /* bytes of local memory that parameters of a kernel may have */

/* Work-item `i` of a group. */
typedef void (*drupe_host_item_fn)(void *user, size_t i);

/* Whether this processor's stacks are known. */
bool drupe_host_groups_possible(void);
/* Run the work-items [0, count) of a group on the calling thread. They may call the second. False: no memory,
 * and nothing has run. */
bool drupe_host_group_run(drupe_host_item_fn item, void *user, size_t count);
/* Wait until all others of the group have come to a barrier, or have ended. */
void drupe_host_group_barrier(void);
/* After a fault of the calling thread at this address in a group: whether a work-item's stack was full. */
bool drupe_host_group_full(uintptr_t address);

#endif
