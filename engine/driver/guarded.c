/* See guarded.h. What describes a block lies elsewhere: nothing that a kernel can reach is believed. */
#include "driver/guarded.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SHARED_BYTES ((size_t)1 << 20) /* of a block of small pieces, and its alignment */
#define SMALLEST     ((size_t)64)
_Static_assert(SHARED_BYTES / SMALLEST <= UINT16_MAX, "the number of a piece fits");

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

struct drupe_guarded_block {
    char *memory, *start; /* as taken, and behind the first guard */
    size_t taken, size;
    size_t slot;               /* bytes of a piece; 0: it is one */
    drupe_guarded_block *next; /* of the same slot size */
    size_t nfree;              /* pieces that nobody has */
    uint16_t free[];           /* their numbers */
};

static char *round_up(const char *address, size_t align)
{
    return (char *)(((uintptr_t)address + align - 1) & ~(uintptr_t)(align - 1));
}

/* --- Blocks; the lock is held ----------------------------------------------------------------------------
 */

static bool protect(const drupe_guarded_block *block, int access)
{
    size_t page = drupe_page_size();
    char *low = round_up(block->memory, page), *behind = block->start + block->size;
    char *end = (char *)((uintptr_t)(block->memory + block->taken) & ~(uintptr_t)(page - 1));
    return mprotect(low, (size_t)(block->start - low), access) == 0 &&
           mprotect(behind, (size_t)(end - behind), access) == 0;
}

/* What cannot be made ordinary again is kept for good. */
static void block_give(const drupe_guarded *guarded, drupe_guarded_block *block)
{
    if (protect(block, PROT_READ | PROT_WRITE)) guarded->give(guarded->user, block->memory, block->taken);
    free(block);
}

static drupe_guarded_block *block_take(drupe_guarded *guarded, size_t size, size_t align, size_t slot)
{
    size_t page = drupe_page_size(), around = DRUPE_GUARD_BEFORE + DRUPE_GUARD_BEHIND + 2 * page;
    if (align < page) align = page;
    if (size > SIZE_MAX / 4 || align > SIZE_MAX / 4) return NULL;
    size = (size + page - 1) & ~(page - 1);
    size_t slots = slot ? size / slot : 0;
    drupe_guarded_block *block = calloc(1, sizeof *block + slots * sizeof block->free[0]);
    if (!block) return NULL;
    for (; block->nfree < slots; block->nfree++)
        block->free[block->nfree] = (uint16_t)(slots - block->nfree - 1);
    block->size = size;
    block->slot = slot;
    block->taken = size + align + around;
    block->memory = guarded->take(guarded->user, block->taken);
    if (!block->memory) {
        free(block);
        return NULL;
    }
    block->start = round_up(block->memory + DRUPE_GUARD_BEFORE, align);
    if (protect(block, PROT_NONE) &&
        drupe_map_put(&guarded->blocks, &block->start, sizeof block->start, block, NULL) == DRUPE_OK)
        return block;
    block_give(guarded, block);
    return NULL;
}

/* --- Small pieces ----------------------------------------------------------------------------------------
 */

static unsigned class_of(size_t slot)
{
    return (unsigned)__builtin_ctzll(slot / SMALLEST);
}

static size_t slot_of(size_t size, size_t align)
{
    size_t slot = SMALLEST;
    while (slot < size || slot < align) slot *= 2;
    return slot;
}

static void *small_take(drupe_guarded *guarded, size_t slot)
{
    drupe_guarded_block **list = &guarded->open[class_of(slot)];
    drupe_guarded_block *block = *list;
    while (block && !block->nfree) block = block->next;
    if (!block) {
        block = block_take(guarded, SHARED_BYTES, SHARED_BYTES, slot);
        if (!block) return NULL;
        block->next = *list;
        *list = block;
    }
    return block->start + block->free[--block->nfree] * slot;
}

/* One of each size may stay empty. */
static void small_give(drupe_guarded *guarded, drupe_guarded_block *block, const char *piece)
{
    block->free[block->nfree++] = (uint16_t)((size_t)(piece - block->start) / block->slot);
    drupe_guarded_block **link = &guarded->open[class_of(block->slot)];
    if (block->nfree < SHARED_BYTES / block->slot || (*link == block && !block->next)) return;
    while (*link != block) link = &(*link)->next;
    *link = block->next;
    (void)drupe_map_remove(&guarded->blocks, &block->start, sizeof block->start);
    block_give(guarded, block);
}

/* --- From outside ----------------------------------------------------------------------------------------
 */

void *drupe_guarded_alloc(drupe_guarded *guarded, size_t size, size_t align)
{
    void *pointer = NULL;
    if (SANITIZED) return NULL;
    pthread_mutex_lock(&guarded->lock);
    if (size < DRUPE_GUARDED_SINGLE && align <= DRUPE_GUARDED_SINGLE) {
        pointer = small_take(guarded, slot_of(size, align));
    } else {
        const drupe_guarded_block *block = block_take(guarded, size, align, 0);
        if (block) pointer = block->start;
    }
    pthread_mutex_unlock(&guarded->lock);
    return pointer;
}

bool drupe_guarded_free(drupe_guarded *guarded, void *pointer)
{
    char *shared = (char *)((uintptr_t)pointer & ~(uintptr_t)(SHARED_BYTES - 1));
    if (SANITIZED) return false;
    pthread_mutex_lock(&guarded->lock);
    drupe_guarded_block *block = drupe_map_get(&guarded->blocks, &pointer, sizeof pointer);
    if (!block || block->slot) block = drupe_map_get(&guarded->blocks, &shared, sizeof shared);
    bool found = block && (block->slot || block->start == pointer);
    if (found && block->slot) {
        small_give(guarded, block, pointer);
    } else if (found) {
        (void)drupe_map_remove(&guarded->blocks, &pointer, sizeof pointer);
        block_give(guarded, block);
    }
    pthread_mutex_unlock(&guarded->lock);
    return found;
}

void drupe_guarded_clear(drupe_guarded *guarded)
{
    size_t cursor = 0;
    pthread_mutex_lock(&guarded->lock);
    for (drupe_guarded_block *block; (block = drupe_map_next(&guarded->blocks, &cursor, NULL, NULL)) != NULL;)
        block_give(guarded, block);
    drupe_map_clear(&guarded->blocks);
    memset(guarded->open, 0, sizeof guarded->open);
    pthread_mutex_unlock(&guarded->lock);
}
