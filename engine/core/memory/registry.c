/* The table of all driver memory, ordered by address.
 *
 * Pieces that wait in a pool stay in it without references, so an allocation from a warm pool leaves the
 * table alone: it changes only when a driver is asked. Lookups, several per kernel, share the lock. A piece
 * is lent to whoever raises its references from zero; what is written in it then is read after a reference is
 * had.
 *
 * Ranges lie beside each other, but for those of borrowed memory, which may overlap: of each entry is known
 * how far it and those before it reach, so that a search knows when to end. */
#include "core/memory/memory_room.h"
#include <stdlib.h>
#include <string.h>

/* Bases and ends lie beside the pointers, so that a search touches no block. */
struct entry {
    uintptr_t base, end;
    uintptr_t reach; /* the largest end from the first entry to this one */
    drupe_memory *memory;
};
static struct {
    pthread_rwlock_t lock;
    struct entry *entries;
    size_t count, capacity;
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* The number of entries that begin at or before `address`. */
static size_t entries_up_to(uintptr_t address)
{
    size_t low = 0, high = table.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table.entries[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static drupe_status grow(void)
{
    if (table.count < table.capacity) return DRUPE_OK;
    size_t larger = table.capacity ? table.capacity * 2 : 64;
    struct entry *fresh = realloc(table.entries, larger * sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory to register %zu allocations.", larger);
    table.entries = fresh;
    table.capacity = larger;
    return DRUPE_OK;
}

/* What changed at this place and behind it. */
static void note_reach(size_t at)
{
    uintptr_t reach = at ? table.entries[at - 1].reach : 0;
    for (size_t i = at; i < table.count; i++) {
        struct entry *entry = &table.entries[i];
        if (entry->end > reach) reach = entry->end;
        if (i > at && entry->reach == reach) return;
        entry->reach = reach;
    }
}

/* Whether nobody has any of the bytes, but for the same context that borrowed them too. */
static bool can_borrow(const drupe_memory *memory)
{
    uintptr_t base = (uintptr_t)memory->base;
    for (size_t i = entries_up_to(base + memory->room - 1); i > 0 && table.entries[i - 1].reach > base; i--) {
        const drupe_memory *other = table.entries[i - 1].memory;
        if (table.entries[i - 1].end <= base) continue;
        if (!other->lender.release || other->pool->context != memory->pool->context) return false;
    }
    return true;
}

static drupe_status add_locked(drupe_memory *memory)
{
    if (memory->lender.release && !can_borrow(memory))
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "%zu bytes at %p cannot be borrowed: another context, or other memory of the "
                               "engine, has some of them. Copy them.",
                               memory->room, memory->base);
    DRUPE_TRY(grow());
    uintptr_t base = (uintptr_t)memory->base;
    size_t at = entries_up_to(base);
    memmove(&table.entries[at + 1], &table.entries[at], (table.count - at) * sizeof *table.entries);
    table.entries[at] = (struct entry){.base = base, .end = base + memory->room, .memory = memory};
    table.count++;
    note_reach(at);
    return DRUPE_OK;
}

drupe_status drupe_registry_add(drupe_memory *memory)
{
    pthread_rwlock_wrlock(&table.lock);
    drupe_status status = add_locked(memory);
    pthread_rwlock_unlock(&table.lock);
    return status;
}

void drupe_registry_remove(drupe_memory *memory)
{
    pthread_rwlock_wrlock(&table.lock);
    size_t at = entries_up_to((uintptr_t)memory->base);
    /* Drivers may give an address twice, as for a handle that is imported again. */
    while (table.entries[at - 1].memory != memory) at--;
    memmove(&table.entries[at - 1], &table.entries[at], (table.count - at) * sizeof *table.entries);
    table.count--;
    note_reach(at - 1);
    pthread_rwlock_unlock(&table.lock);
}

static bool lent(const drupe_memory *memory)
{
    return atomic_load_explicit(&((drupe_memory *)memory)->object.references, memory_order_acquire) != 0;
}

size_t drupe_registry_lent(drupe_memory ***list)
{
    size_t found = 0;
    pthread_rwlock_rdlock(&table.lock);
    *list = table.count ? malloc(table.count * sizeof **list) : NULL;
    for (size_t i = 0; *list && i < table.count; i++) {
        if (drupe_object_try_retain(table.entries[i].memory)) (*list)[found++] = table.entries[i].memory;
    }
    pthread_rwlock_unlock(&table.lock);
    return found;
}

/* A range that begins outside of all memory that is lent. */
static drupe_status check_outside(const char *what, uintptr_t address, size_t bytes, size_t following)
{
    for (size_t i = following; i < table.count && bytes && table.entries[i].base - address < bytes; i++) {
        if (table.entries[i].memory->lender.release || !lent(table.entries[i].memory)) continue;
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                               "%s: %zu bytes of host memory run into an allocation of the engine.", what,
                               bytes);
    }
    return DRUPE_OK;
}

static drupe_status not_allocated(uintptr_t address, const char *what)
{
    return drupe_error_set(DRUPE_E_INVALID, "%s: %p points into device memory that is not allocated.", what,
                           (void *)address);
}

static drupe_status find_locked(uintptr_t address, size_t bytes, const char *what, drupe_memory **memory)
{
    size_t at = entries_up_to(address);
    drupe_memory *owner = NULL; /* the last to begin; others that have all of the range are better */
    for (size_t i = at; i > 0 && table.entries[i - 1].reach > address; i--) {
        const struct entry *entry = &table.entries[i - 1];
        if (address >= entry->end) continue;
        if (!owner) owner = entry->memory;
        if (bytes > entry->end - address || !drupe_object_try_retain(entry->memory)) continue;
        *memory = entry->memory;
        return DRUPE_OK;
    }
    if (!owner) return check_outside(what, address, bytes, at);
    /* Given back, or the last release is under way on another thread. */
    if (!drupe_object_try_retain(owner))
        return owner->redzone ? drupe_redzone_ops_get()->freed(owner, what, (void *)address)
                              : not_allocated(address, what);
    *memory = owner;
    return DRUPE_OK;
}

static drupe_status check_inside(uintptr_t address, size_t bytes, const char *what,
                                 const drupe_memory *memory)
{
    size_t offset = address - (uintptr_t)memory->base;
    if (offset >= memory->size) return not_allocated(address, what);
    if (bytes <= memory->size - offset) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                           "%s: %zu bytes from offset %zu run past the end of an allocation of %zu bytes.",
                           what, bytes, offset, memory->size);
}

drupe_status drupe_registry_find(const void *pointer, size_t bytes, const char *what, drupe_memory **memory)
{
    *memory = NULL;
    pthread_rwlock_rdlock(&table.lock);
    drupe_status status = find_locked((uintptr_t)pointer, bytes, what, memory);
    pthread_rwlock_unlock(&table.lock);
    if (!*memory) return status;
    status = check_inside((uintptr_t)pointer, bytes, what, *memory);
    if (status == DRUPE_OK) return DRUPE_OK;
    drupe_error kept = *drupe_error_last();
    drupe_memory_release(*memory);
    *memory = NULL;
    return drupe_error_restore(&kept);
}
