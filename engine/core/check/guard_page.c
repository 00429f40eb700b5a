/* Pages around the memory of checked mode that fault when device work touches them: that finds reads, which
 * leave no trace in a pattern, and finds writes while they happen.
 *
 * They are ordinary pages of the driver's block, made unreachable while the memory lives, so that drivers see
 * an allocation of theirs. Each side is a map of its own for the system, which has 65530 for a process. */
#include "core/check/check_room.h"
#include <sys/mman.h>

bool drupe_guard_page_possible(const drupe_pool *pool)
{
    return drupe_isolation_active() && pool->device->type == DRUPE_DEVICE_CPU &&
           drupe_device_number(pool->device, DRUPE_INFO_HAS_USM_SYSTEM, 0) != 0;
}

static bool protect(const drupe_memory *memory, int access)
{
    char *base = memory->base, *end = base + memory->room + memory->behind;
    return mprotect(base - memory->redzone, memory->guard_bytes, access) == 0 &&
           mprotect(end - memory->guard_bytes, memory->guard_bytes, access) == 0;
}

void drupe_guard_page_raise(drupe_memory *memory)
{
    if (!memory->guard_bytes || protect(memory, PROT_NONE)) return;
    /* One side may stand. What cannot be undone is found by whoever touches it. */
    if (protect(memory, PROT_READ | PROT_WRITE)) memory->guard_bytes = 0;
}

bool drupe_guard_page_lower(const drupe_memory *memory)
{
    return !memory->guard_bytes || protect(memory, PROT_READ | PROT_WRITE);
}
