/* The table of all driver memory, ordered by address.
 *
 * Blocks that wait in a pool stay in it, so that an allocation from a warm pool changes one pointer and the
 * table's order changes only when a driver is asked. Lookups, several per kernel, share the lock. */
#include "core/core.h"
#include <stdlib.h>
#include <string.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
/* Bases and ends lie beside the pointers, so that a search touches no block. */
static struct entry {
    uintptr_t base, end;
    drupe_block *block;
} * entries;
static size_t count, capacity;

/* The number of entries that begin at or before `address`. */
static size_t entries_up_to(uintptr_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entries[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static drupe_status grow(void)
{
    if (count < capacity) return DRUPE_OK;
    size_t larger = capacity ? capacity * 2 : 64;
    struct entry *fresh = realloc(entries, larger * sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory to register %zu allocations.", larger);
    entries = fresh;
    capacity = larger;
    return DRUPE_OK;
}

drupe_status drupe_registry_add(drupe_block *block)
{
    pthread_rwlock_wrlock(&lock);
    drupe_status status = grow();
    if (status == DRUPE_OK) {
        uintptr_t base = (uintptr_t)block->base;
        size_t at = entries_up_to(base);
        memmove(&entries[at + 1], &entries[at], (count - at) * sizeof *entries);
        entries[at] = (struct entry){.base = base, .end = base + block->size, .block = block};
        count++;
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

void drupe_registry_remove(drupe_block *block)
{
    pthread_rwlock_wrlock(&lock);
    size_t at = entries_up_to((uintptr_t)block->base);
    if (at > 0 && entries[at - 1].block == block) {
        memmove(&entries[at - 1], &entries[at], (count - at) * sizeof *entries);
        count--;
    }
    pthread_rwlock_unlock(&lock);
}

void drupe_registry_lend(drupe_block *block, drupe_memory *memory)
{
    pthread_rwlock_wrlock(&lock);
    block->memory = memory;
    pthread_rwlock_unlock(&lock);
}

void drupe_registry_clear(void)
{
    pthread_rwlock_wrlock(&lock);
    if (count == 0) {
        free(entries);
        entries = NULL;
        capacity = 0;
    }
    pthread_rwlock_unlock(&lock);
}

static drupe_status crosses_end(const char *what, const drupe_memory *memory, size_t offset, size_t bytes)
{
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                           "%s: %zu bytes from offset %zu run past the end of an allocation of %zu bytes.",
                           what, bytes, offset, memory->size);
}

/* A range that begins outside of all memory that is lent. */
static drupe_status check_outside(const char *what, uintptr_t address, size_t bytes, size_t following)
{
    for (size_t i = following; i < count && bytes && entries[i].base - address < bytes; i++) {
        if (!entries[i].block->memory) continue;
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                               "%s: %zu bytes of host memory run into an allocation of the engine.", what,
                               bytes);
    }
    return DRUPE_OK;
}

static drupe_status find_locked(uintptr_t address, size_t bytes, const char *what, drupe_memory **memory)
{
    size_t at = entries_up_to(address);
    if (at == 0 || address >= entries[at - 1].end) return check_outside(what, address, bytes, at);
    drupe_memory *owner = entries[at - 1].block->memory;
    size_t offset = address - entries[at - 1].base;
    if (owner && offset < owner->size && bytes > owner->size - offset) {
        return crosses_end(what, owner, offset, bytes);
    }
    /* Beyond what was asked for, or given back: the last release may be under way on another thread. */
    if (!owner || offset >= owner->size || !drupe_object_try_retain(owner)) {
        return drupe_error_set(DRUPE_E_INVALID, "%s: %p points into device memory that is not allocated.",
                               what, (void *)address);
    }
    *memory = owner;
    return DRUPE_OK;
}

drupe_status drupe_registry_find(const void *pointer, size_t bytes, const char *what, drupe_memory **memory)
{
    *memory = NULL;
    pthread_rwlock_rdlock(&lock);
    drupe_status status = find_locked((uintptr_t)pointer, bytes, what, memory);
    pthread_rwlock_unlock(&lock);
    return status;
}
