/* Guarded memory: redzones around allocations, and freed memory that is kept back.
 *
 * Memory that is allocated in checked mode comes straight from the driver and goes back there. Its redzones
 * hold a pattern that is looked at in waits. Where a fault does not end the process they are thin, and behind
 * them stand guard pages, which fault: its end lies at those pages then, as near as its
 * alignment lets it, since more indices run over the end than over the beginning. Freed memory is filled with
 * another one and kept back, so that late writes are seen and its addresses are not used again soon.
 *
 * Guard pages find reads, which leave no trace in a pattern, and writes while they happen. They are ordinary
 * pages of the driver's block, made unreachable while the memory lives, so that drivers see an allocation of
 * theirs. Each side is a map of its own for the system, which has 65530 for a process. */
#include "core/check/check_room.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REDZONE          4096u
#define GUARD_PAGES      (64u << 10) /* bytes on each side: more than a stray index usually strays */
#define REDZONE_BYTE     0xA5
#define FREED_BYTE       0xDD
#define QUARANTINE_MOST  (64u << 20) /* bytes */
#define QUARANTINE_COUNT 1024u
/* Of memory that ends at a guard page; more only when it was asked for. */
#define LEAST_ALIGN 16u
#define MOST_ALIGN  64u

/* Lists by redzone_next. */
static struct {
    pthread_mutex_t lock;
    drupe_memory *guarded;                      /* in use */
    drupe_memory *quarantine, **quarantine_end; /* freed, oldest first */
    size_t bytes, count;                        /* in quarantine */
} zones = {.lock = PTHREAD_MUTEX_INITIALIZER, .quarantine_end = &zones.quarantine};

/* Whether the host reaches this memory, whatever its kind promises. */
static bool reachable(const drupe_memory *memory)
{
    return memory->pool->device->type == DRUPE_DEVICE_CPU || memory->pool->kind == DRUPE_MEM_HOST;
}

/* The first byte that differs, or `size`. */
static size_t first_other(const unsigned char *bytes, int expected, size_t size)
{
    size_t i = 0;
    if (size && bytes[0] == expected && memcmp(bytes, bytes + 1, size - 1) == 0) return size;
    while (i < size && bytes[i] == expected) i++;
    return i;
}

/* Of the bytes on one side of the memory: those with a pattern, next to it. */
static size_t painted(const drupe_memory *memory, size_t side)
{
    size_t size = side - memory->guard_bytes;
    return size < REDZONE ? size : REDZONE;
}

static void paint(drupe_memory *memory)
{
    size_t before = painted(memory, memory->redzone);
    memset((char *)memory->base - before, REDZONE_BYTE, before);
    memset((char *)memory->base + memory->room, REDZONE_BYTE, painted(memory, memory->behind));
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

/* --- Guard pages ---------------------------------------------------------------------------------------- */

/* Whether memory of this pool can have them: faults are isolated, and the device works in host memory. */
static bool guard_possible(const drupe_pool *pool)
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

/* When the system has no more maps they become a part of the redzones. */
static void guard_raise(drupe_memory *memory)
{
    if (!memory->guard_bytes || protect(memory, PROT_NONE)) return;
    /* One side may stand. What cannot be undone is found by whoever touches it. */
    if (protect(memory, PROT_READ | PROT_WRITE)) memory->guard_bytes = 0;
}

/* Of memory that has some. */
static bool guard_lower(const drupe_memory *memory)
{
    return protect(memory, PROT_READ | PROT_WRITE);
}

/* --- In a block of the driver --------------------------------------------------------------------------- */

/* How `memory->room` bytes, aligned to `align`, are to lie in a block from the driver: `redzone` bytes of it
 * come before and `behind` behind them, and `guard_bytes` of each, at the outside, are pages that nobody may
 * touch. What no system has gets none of that, as the sum would be small: the driver refuses it.
 */
static void redzone_plan(drupe_memory *memory, size_t align)
{
    if (memory->room > SIZE_MAX / 2) return;
    memory->redzone = memory->behind = REDZONE;
    if (!guard_possible(memory->pool)) return;
    /* Elements of whatever type fill the memory: what their size may be is what they are aligned to. */
    size_t least = memory->room & -memory->room;
    least = least < LEAST_ALIGN ? LEAST_ALIGN : least > MOST_ALIGN ? MOST_ALIGN : least;
    size_t padded = round_up(memory->room, align > least ? align : least);
    memory->guard_bytes = round_up(GUARD_PAGES, drupe_page_size());
    memory->redzone = memory->guard_bytes + round_up(padded, drupe_page_size()) - padded;
    memory->behind = memory->guard_bytes + padded - memory->room;
}

static void redzone_open(drupe_memory *memory)
{
    if (!reachable(memory)) return;
    guard_raise(memory);
    paint(memory);
    pthread_mutex_lock(&zones.lock);
    memory->redzone_next = zones.guarded;
    zones.guarded = memory;
    pthread_mutex_unlock(&zones.lock);
}

/* --- Looking -------------------------------------------------------------------------------------------- */

static drupe_check_place place_of(const drupe_memory *memory)
{
    return (drupe_check_place){.label = "allocation", .site = memory->site, .cell = memory->cell};
}

static drupe_status overrun(const drupe_memory *memory, const char *where, size_t distance)
{
    drupe_check_place writer = {0}, there = place_of(memory);
    drupe_check_writer(memory->base, memory->room, &writer);
    const char *label = writer.label;
    return drupe_check_found(
        false, &writer, &there,
        "Out of bounds: something wrote %zu bytes %s the %s memory of %zu bytes at %p on %s. %s%s%s",
        distance, where, drupe_mem_kind_name(memory->pool->kind), memory->room, memory->base,
        memory->pool->device->filter, label[0] ? "The latest work that wrote to it is '" : "", label,
        label[0] ? "'." : "No work that wrote to it is known.");
}

/* What was found is painted over, so that it is told once. */
static drupe_status look(drupe_memory *memory)
{
    const unsigned char *base = memory->base, *end = base + memory->room;
    size_t most = painted(memory, memory->behind), behind = first_other(end, REDZONE_BYTE, most);
    size_t before = painted(memory, memory->redzone);
    while (before > 0 && base[-(ptrdiff_t)before] == REDZONE_BYTE) before--;
    if (behind == most && before == 0) return DRUPE_OK;
    paint(memory);
    return behind < most ? overrun(memory, "behind", behind) : overrun(memory, "before", before);
}

drupe_status drupe_redzone_check(void)
{
    drupe_status status = DRUPE_OK;
    pthread_mutex_lock(&zones.lock);
    for (drupe_memory *memory = zones.guarded; memory && status == DRUPE_OK; memory = memory->redzone_next)
        status = look(memory);
    pthread_mutex_unlock(&zones.lock);
    return status;
}

/* Who has it in its block. */
static drupe_memory *find_block(drupe_memory *list, const char *address)
{
    for (drupe_memory *memory = list; memory; memory = memory->redzone_next) {
        const char *base = memory->base;
        if (address >= base - memory->redzone && address < base + memory->room + memory->behind)
            return memory;
    }
    return NULL;
}

/* Needs the lock. */
static bool describe_fault(const drupe_fault *fault, char *text, size_t size)
{
    const char *address = (const char *)fault->address, *freed = "";
    static const char *const verbs[] = {"touched", "read", "wrote"};
    drupe_memory *memory = find_block(zones.guarded, address);
    if (!memory && (memory = find_block(zones.quarantine, address)) != NULL) freed = ", which was freed";
    if (!memory || !memory->guard_bytes) return false;
    const char *base = memory->base, *end = base + memory->room;
    bool before = address < base - painted(memory, memory->redzone);
    if (!before && address < end + painted(memory, memory->behind)) return false;
    size_t distance = (size_t)(before ? base - address : address - end);
    char where[100];
    drupe_trace_place(memory->site, memory->cell, where, sizeof where);
    const char *by[] = {where[0] ? " that " : "", where, where[0] ? " allocated" : ""};
    snprintf(text, size, ": it %s %zu bytes %s the %zu bytes of %s memory%s%s%s%s", verbs[fault->access],
             distance, before ? "before the start of" : "behind the end of", memory->room,
             drupe_mem_kind_name(memory->pool->kind), by[0], by[1], by[2], freed);
    return true;
}

bool drupe_redzone_fault(const drupe_fault *fault, char *text, size_t size)
{
    pthread_mutex_lock(&zones.lock);
    bool found = describe_fault(fault, text, size);
    pthread_mutex_unlock(&zones.lock);
    if (found) drupe_check_count();
    return found;
}

static drupe_status redzone_freed(const drupe_memory *memory, const char *what, const void *address)
{
    drupe_check_place there = place_of(memory);
    return drupe_check_found(false, NULL, &there,
                             "Use after free: %s: %p points into %zu bytes of %s memory that were freed.",
                             what, address, memory->room, drupe_mem_kind_name(memory->pool->kind));
}

/* --- Freed memory --------------------------------------------------------------------------------------- */

/* Nobody is there to be told: it becomes a failure that the next look for failures finds. */
static void report_later(void)
{
    drupe_cause_release(drupe_cause_new(drupe_error_last(), NULL, NULL, 0));
}

static drupe_status look_freed(drupe_memory *memory)
{
    size_t at = first_other(memory->base, FREED_BYTE, memory->room);
    if (at == memory->room) return DRUPE_OK;
    memset(memory->base, FREED_BYTE, memory->room);
    drupe_check_place there = place_of(memory);
    return drupe_check_found(
        false, NULL, &there,
        "Use after free: something wrote to byte %zu of %zu bytes of %s memory on %s that "
        "had been freed.",
        at, memory->room, drupe_mem_kind_name(memory->pool->kind), memory->pool->device->filter);
}

drupe_status drupe_check_memory(void)
{
    DRUPE_TRY(drupe_redzone_check());
    drupe_status status = DRUPE_OK;
    pthread_mutex_lock(&zones.lock);
    for (drupe_memory *memory = zones.quarantine; memory && status == DRUPE_OK; memory = memory->redzone_next)
        status = look_freed(memory);
    pthread_mutex_unlock(&zones.lock);
    return status;
}

static bool unlink_guarded(drupe_memory *memory)
{
    drupe_memory **link = &zones.guarded;
    while (*link && *link != memory) link = &(*link)->redzone_next;
    if (!*link) return false;
    *link = memory->redzone_next;
    return true;
}

/* Take memory of `pool` (NULL: any) out of what is kept back, until that is at most so much. */
static drupe_memory *take_quarantined(const drupe_pool *pool, size_t most, size_t count)
{
    drupe_memory *taken = NULL, **link = &zones.quarantine;
    while (*link && (zones.bytes > most || zones.count > count)) {
        drupe_memory *memory = *link;
        if (pool && memory->pool != pool) {
            link = &memory->redzone_next;
            continue;
        }
        *link = memory->redzone_next;
        zones.bytes -= memory->room;
        zones.count--;
        memory->redzone_next = taken;
        taken = memory;
    }
    if (!*link) zones.quarantine_end = link;
    return taken;
}

static void discard_list(drupe_memory *list)
{
    while (list) {
        drupe_memory *next = list->redzone_next;
        if (look_freed(list) != DRUPE_OK) report_later();
        drupe_pool_discard(list);
        list = next;
    }
}

static void redzone_give(drupe_memory *memory)
{
    pthread_mutex_lock(&zones.lock);
    bool known = unlink_guarded(memory);
    bool wrong = known && look(memory) != DRUPE_OK;
    pthread_mutex_unlock(&zones.lock);
    if (wrong) report_later();
    drupe_check_forget(memory->base, memory->room);
    if (!known || memory->room > QUARANTINE_MOST) {
        drupe_pool_discard(memory);
        return;
    }
    memset(memory->base, FREED_BYTE, memory->room);
    pthread_mutex_lock(&zones.lock);
    memory->redzone_next = NULL;
    *zones.quarantine_end = memory;
    zones.quarantine_end = &memory->redzone_next;
    zones.bytes += memory->room;
    zones.count++;
    drupe_memory *list = take_quarantined(NULL, QUARANTINE_MOST, QUARANTINE_COUNT);
    pthread_mutex_unlock(&zones.lock);
    discard_list(list);
}

static void redzone_leave(drupe_memory *memory)
{
    pthread_mutex_lock(&zones.lock);
    bool wrong = unlink_guarded(memory) && look(memory) != DRUPE_OK;
    pthread_mutex_unlock(&zones.lock);
    if (wrong) report_later();
    drupe_check_forget(memory->base, memory->room);
}

void drupe_redzone_release(const drupe_pool *pool)
{
    pthread_mutex_lock(&zones.lock);
    drupe_memory *list = take_quarantined(pool, 0, 0);
    pthread_mutex_unlock(&zones.lock);
    discard_list(list);
}

const drupe_redzone_ops drupe_redzones = {.plan = redzone_plan,
                                          .open = redzone_open,
                                          .give = redzone_give,
                                          .leave = redzone_leave,
                                          .flush = drupe_redzone_release,
                                          .lower = guard_lower,
                                          .freed = redzone_freed,
                                          .forget = drupe_check_forget};
