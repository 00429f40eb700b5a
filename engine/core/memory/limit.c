/* How much memory of a device may be taken. What happens when there is no more: memory.c.
 *
 * Bytes count from the moment they are asked of a driver until they are given back, so free lists count too.
 */
#include "core/memory/memory_room.h"

#define IDLE_AT_LEAST (256u << 20)
#define ASKED_FOR     (64u << 20) /* bytes of one allocation from which on it is asked what is free */

uint64_t drupe_limit_keep(drupe_device *root)
{
    uint64_t total = drupe_device_number(root, DRUPE_INFO_GLOBAL_MEM_SIZE, 0);
    uint64_t share = total / 8 > IDLE_AT_LEAST ? total / 8 : IDLE_AT_LEAST;
    return drupe_amount_of("DRUPE_MEMORY_KEEP", root, total, share);
}

drupe_status drupe_pool_set_wipe(drupe_device *device, uint32_t when)
{
    DRUPE_TRY(drupe_core_check());
    if (when & ~(uint32_t)(DRUPE_WIPE_ALLOC | DRUPE_WIPE_FREE))
        return drupe_error_set(DRUPE_E_INVALID, "There is no time to wipe number 0x%x.", when);
    if (when && !device->slot->backend->mem_wipe) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The backend '%s' cannot overwrite memory.",
                               device->slot->backend->name);
    }
    atomic_store(&device->root->wipe, when);
    return DRUPE_OK;
}

/* --- Limits --------------------------------------------------------------------------------------------- */

uint64_t drupe_limit_get(drupe_device *root)
{
    uint64_t limit = atomic_load_explicit(&root->limit, memory_order_relaxed);
    if (limit) return limit;
    uint64_t total = drupe_device_number(root, DRUPE_INFO_GLOBAL_MEM_SIZE, UINT64_MAX);
    uint64_t said = drupe_amount_of("DRUPE_MEMORY_LIMIT", root, total, total);
    if (said == 0) said = 1;
    if (said > total) said = total;
    return atomic_compare_exchange_strong(&root->limit, &limit, said) ? said : limit;
}

void drupe_pool_set_limit(drupe_device *device, uint64_t bytes)
{
    atomic_store(&device->root->limit, bytes);
}

uint64_t drupe_limit_free(drupe_device *root)
{
    uint64_t limit = drupe_limit_get(root), reserved = atomic_load(&root->use.reserved);
    uint64_t left = limit > reserved ? limit - reserved : 0;
    uint64_t told = drupe_device_number(root, DRUPE_INFO_FREE_MEMORY, UINT64_MAX);
    return told < left ? told : left;
}

/* A system promises memory that it does not have, and ends the process when that is touched: the device, or
 * the machine whose memory it uses, is asked first. */
static drupe_status check_free(const drupe_pool *pool, size_t size, size_t asked)
{
    uint64_t left = UINT64_MAX;
    if (size >= ASKED_FOR) left = drupe_device_number(pool->root, DRUPE_INFO_FREE_MEMORY, UINT64_MAX);
    if (size <= left) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY,
                           "%s (%zu bytes) of %s memory were asked for, and %s has %s that are free now.",
                           drupe_unit_bytes(asked).text, asked, drupe_mem_kind_name(pool->kind),
                           pool->root->filter, drupe_unit_bytes(left).text);
}

drupe_status drupe_limit_reserve(drupe_pool *pool, size_t size, size_t asked)
{
    drupe_device *root = pool->root;
    uint64_t limit = drupe_limit_get(root);
    DRUPE_TRY(check_free(pool, size, asked));
    uint64_t before = atomic_fetch_add(&root->use.reserved, size);
    if (size <= limit && before <= limit - size) {
        atomic_fetch_add(&root->kinds[pool->kind].reserved, size);
        return DRUPE_OK;
    }
    atomic_fetch_sub(&root->use.reserved, size);
    return drupe_error_set(
        DRUPE_E_NO_MEMORY, "%s (%zu bytes) of %s memory were asked for, and %s has no room for them.",
        drupe_unit_bytes(asked).text, asked, drupe_mem_kind_name(pool->kind), root->filter);
}

void drupe_limit_return(drupe_pool *pool, size_t size)
{
    atomic_fetch_sub(&pool->root->use.reserved, size);
    atomic_fetch_sub(&pool->root->kinds[pool->kind].reserved, size);
}
