/* Pools: one per (context, member device, kind), of blocks in size classes.
 *
 * Classes step by a quarter of a power of two, so at most a fifth of a block is unused. Blocks of a page and
 * more are aligned to a page, smaller ones to 64 bytes: alignment needs no classes of its own. The free lists
 * of one pool keep at most a fixed share of the device's memory; what exceeds it goes back to the driver. */
#include "core/core.h"
#include <stdlib.h>

#define SMALLEST      64u
#define PAGE          4096u
#define IDLE_AT_LEAST (256u << 20)

/* Class 4k + q holds blocks of (4 + q) * 16 * 2^k bytes, q from 0 to 3: 64, 80, 96, 112, 128, 160 ... */
static size_t class_size(size_t index)
{
    return (size_t)(4 + index % 4) << (4 + index / 4);
}

/* The smallest class that holds `bytes`, or DRUPE_POOL_CLASSES when there is none. Sizes below a page that
 * are no multiple of 64 would break the alignment of nothing: every block has an allocation of its own. */
static size_t class_of(size_t bytes)
{
    if (bytes <= SMALLEST) return 0;
    size_t power = 63 - (size_t)__builtin_clzll((unsigned long long)bytes - 1);
    size_t index = (power - 6) * 4;
    while (index < DRUPE_POOL_CLASSES && class_size(index) < bytes) index++;
    return index;
}

void drupe_pool_open(drupe_pool *pool, drupe_context *context, drupe_device *device, drupe_mem_kind kind)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->context = context;
    pool->device = device;
    pool->kind = kind;
}

static void block_free(drupe_block *block)
{
    drupe_pool *pool = block->pool;
    drupe_registry_remove(block);
    pool->context->slot->backend->mem_free(pool->context, pool->device, pool->kind, block->base);
    atomic_fetch_sub(&pool->device->root->reserved, block->size);
    free(block);
}

size_t drupe_pool_trim_one(drupe_pool *pool)
{
    drupe_block *list = NULL;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < DRUPE_POOL_CLASSES; i++) {
        while (pool->free[i]) {
            drupe_block *block = pool->free[i];
            pool->free[i] = block->next;
            block->next = list;
            list = block;
        }
    }
    pool->idle = 0;
    pthread_mutex_unlock(&pool->lock);
    size_t freed = 0;
    while (list) {
        drupe_block *next = list->next;
        freed += list->size;
        block_free(list);
        list = next;
    }
    return freed;
}

void drupe_pool_close(drupe_pool *pool)
{
    drupe_pool_trim_one(pool);
    pthread_mutex_destroy(&pool->lock);
}

/* --- Limits --------------------------------------------------------------------------------------------- */

static void account_take(drupe_device *root, size_t size)
{
    uint64_t used = atomic_fetch_add(&root->used, size) + size;
    uint64_t peak = atomic_load(&root->peak);
    while (used > peak && !atomic_compare_exchange_weak(&root->peak, &peak, used)) {}
    atomic_fetch_add(&root->count, 1);
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

static drupe_status check_single(drupe_device *device, size_t bytes)
{
    uint64_t most = drupe_device_number(device, DRUPE_INFO_MAX_MEM_ALLOC_SIZE, UINT64_MAX);
    if (bytes <= most) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY,
                           "%zu bytes (%.1f MiB) were asked for; one allocation on %s may have at most %llu "
                           "bytes (%.1f MiB).",
                           bytes, mib(bytes), device->filter, (unsigned long long)most, mib(most));
}

static drupe_status total_exceeded(drupe_device *root, size_t bytes, uint64_t total)
{
    uint64_t used = atomic_load(&root->used);
    return drupe_error_set(
        DRUPE_E_NO_MEMORY,
        "%zu bytes (%.1f MiB) were asked for, but %.1f of the %.1f MiB of %s are in use. Delete "
        "arrays that are not needed, or wait for work that still uses them.",
        bytes, mib(bytes), mib(used), mib(total), root->filter);
}

static void trim_context(drupe_context *context, void *user)
{
    for (size_t i = 0; i < context->ndevices * 3; i++) {
        if (context->pools[i].device->root == user) drupe_pool_trim_one(&context->pools[i]);
    }
}

/* Reserve `size` bytes of the device's total; gives idle blocks of all pools back when that is needed. */
static drupe_status reserve(drupe_device *root, size_t size, size_t asked)
{
    uint64_t total = drupe_device_number(root, DRUPE_INFO_GLOBAL_MEM_SIZE, UINT64_MAX);
    for (int attempt = 0; attempt < 2; attempt++) {
        uint64_t before = atomic_fetch_add(&root->reserved, size);
        if (size <= total && before <= total - size) return DRUPE_OK;
        atomic_fetch_sub(&root->reserved, size);
        if (attempt == 0) drupe_context_each(trim_context, root);
    }
    return total_exceeded(root, asked, total);
}

/* --- Taking and giving ---------------------------------------------------------------------------------- */

static drupe_block *take_idle(drupe_pool *pool, size_t index)
{
    if (index >= DRUPE_POOL_CLASSES) return NULL;
    pthread_mutex_lock(&pool->lock);
    drupe_block *block = pool->free[index];
    if (block) {
        pool->free[index] = block->next;
        pool->idle -= block->size;
    }
    pthread_mutex_unlock(&pool->lock);
    return block;
}

static drupe_status ask_driver(drupe_pool *pool, drupe_block *block)
{
    const drupe_backend *backend = pool->context->slot->backend;
    size_t align = block->size >= PAGE ? PAGE : SMALLEST;
    drupe_status status =
        backend->mem_alloc(pool->context, pool->device, pool->kind, block->size, align, &block->base);
    if (status != DRUPE_E_NO_MEMORY) return status;
    drupe_context_each(trim_context, pool->device->root);
    return backend->mem_alloc(pool->context, pool->device, pool->kind, block->size, align, &block->base);
}

static drupe_status take_fresh(drupe_pool *pool, size_t bytes, size_t index, drupe_block **result)
{
    drupe_device *root = pool->device->root;
    uint64_t most = drupe_device_number(pool->device, DRUPE_INFO_MAX_MEM_ALLOC_SIZE, UINT64_MAX);
    size_t size = index < DRUPE_POOL_CLASSES ? class_size(index) : bytes;
    if (size > most) {
        size = bytes;
        index = DRUPE_POOL_CLASSES;
    }
    DRUPE_TRY(reserve(root, size, bytes));
    drupe_block *block = calloc(1, sizeof *block);
    drupe_status status = DRUPE_OK;
    if (!block) status = drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to describe an allocation.");
    if (status == DRUPE_OK) {
        *block = (drupe_block){.size = size, .index = index, .pool = pool};
        status = ask_driver(pool, block);
    }
    if (status == DRUPE_OK) {
        status = drupe_registry_add(block);
        if (status != DRUPE_OK) {
            pool->context->slot->backend->mem_free(pool->context, pool->device, pool->kind, block->base);
        }
    }
    if (status != DRUPE_OK) {
        atomic_fetch_sub(&root->reserved, size);
        free(block);
        return status;
    }
    *result = block;
    return DRUPE_OK;
}

drupe_status drupe_pool_take(drupe_pool *pool, size_t bytes, size_t align, drupe_block **block)
{
    DRUPE_TRY(check_single(pool->device, bytes));
    if (align > SMALLEST && bytes < PAGE) bytes = PAGE;
    size_t index = class_of(bytes);
    *block = take_idle(pool, index);
    if (!*block) DRUPE_TRY(take_fresh(pool, bytes, index, block));
    account_take(pool->device->root, (*block)->size);
    return DRUPE_OK;
}

void drupe_pool_give(drupe_block *block)
{
    drupe_pool *pool = block->pool;
    drupe_device *root = pool->device->root;
    atomic_fetch_sub(&root->used, block->size);
    atomic_fetch_sub(&root->count, 1);
    uint64_t keep = drupe_device_number(root, DRUPE_INFO_GLOBAL_MEM_SIZE, 0) / 8;
    if (keep < IDLE_AT_LEAST) keep = IDLE_AT_LEAST;
    pthread_mutex_lock(&pool->lock);
    bool kept = block->index < DRUPE_POOL_CLASSES && pool->idle + block->size <= keep;
    if (kept) {
        block->next = pool->free[block->index];
        pool->free[block->index] = block;
        pool->idle += block->size;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!kept) block_free(block);
}
