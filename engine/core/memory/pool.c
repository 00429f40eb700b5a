/* Pools: one per (context, member device, kind), of pieces in size classes.
 *
 * Classes step by a quarter of a power of two, so at most a fifth of a piece is unused; what is too large for
 * a class has its size rounded to pages and is found again for requests that use seven eighths of it. Pieces
 * of a page and more are aligned to a page, smaller ones to 64 bytes: alignment needs no classes of its own.
 * The free lists of one pool keep at most a fixed share of the device's memory; what exceeds it goes back to
 * the driver.
 */
#include "core/memory/memory_room.h"
#include <stdlib.h>

#define SMALLEST 64u
#define PAGE     4096u

/* Class 4k + q holds pieces of (4 + q) * 16 * 2^k bytes, q from 0 to 3: 64, 80, 96, 112, 128, 160 ... */
static size_t class_size(size_t index)
{
    return (size_t)(4 + index % 4) << (4 + index / 4);
}

/* The smallest class that holds `bytes`, or DRUPE_POOL_LARGE when there is none. Sizes below a page that are
 * no multiple of 64 break the alignment of nothing: every piece has an allocation of its own. */
static size_t class_of(size_t bytes)
{
    if (bytes <= SMALLEST) return 0;
    size_t power = 63 - (size_t)__builtin_clzll((unsigned long long)bytes - 1);
    size_t index = (power - 6) * 4;
    while (index < DRUPE_POOL_CLASSES && class_size(index) < bytes) index++;
    return index < DRUPE_POOL_CLASSES ? index : DRUPE_POOL_LARGE;
}

void drupe_pool_open(drupe_pool *pool, drupe_context *context, drupe_device *device, drupe_mem_kind kind)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->context = context;
    pool->device = device;
    pool->root = device->root;
    pool->kind = kind;
    pool->served = drupe_pool_support(device, kind) != DRUPE_USM_NONE;
    pool->most = drupe_device_number(device, DRUPE_INFO_MAX_MEM_ALLOC_SIZE, UINT64_MAX);
    pool->keep = drupe_limit_keep(device->root);
}

drupe_memory *drupe_memory_new(drupe_pool *pool)
{
    drupe_memory *memory = calloc(1, sizeof *memory);
    if (!memory) {
        drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to describe an allocation.");
        return NULL;
    }
    memory->object.backend = pool->context->slot->backend;
    memory->pool = pool;
    return memory;
}

/* --- Giving back to the driver -------------------------------------------------------------------------- */

/* Memory that is no other's goes back to the driver. */
static void give_back(const drupe_memory *memory)
{
    drupe_pool *pool = memory->pool;
    const drupe_backend *backend = pool->context->slot->backend;
    const drupe_redzone_ops *ops = memory->guard_bytes ? drupe_redzone_ops_get() : NULL;
    if (!drupe_device_silent(pool->device) && (!ops || ops->lower(memory)))
        backend->mem_free(pool->context, pool->device, pool->kind, (char *)memory->base - memory->redzone);
    drupe_limit_return(pool, memory->room);
}

void drupe_pool_discard(drupe_memory *memory)
{
    drupe_pool *pool = memory->pool;
    drupe_registry_remove(memory);
    drupe_mark_drop(memory);
    const drupe_backend *backend = pool->context->slot->backend;
    const drupe_keep lender = memory->lender;
    if (!memory->imported)
        give_back(memory);
    else if (!lender.release)
        backend->mem_detach(pool->context, pool->device, memory->base, memory->room);
    free(memory);
    if (lender.release) lender.release(lender.object);
}

void drupe_pool_drain(drupe_memory *memory)
{
    const drupe_redzone_ops *ops = drupe_redzone_ops_get();
    if (memory->redzone)
        ops->leave(memory);
    else if (ops)
        ops->forget(memory->base, memory->room);
    drupe_registry_remove(memory);
    give_back(memory);
    memory->base = NULL;
}

size_t drupe_pool_trim_one(drupe_pool *pool)
{
    const drupe_redzone_ops *ops = drupe_redzone_ops_get();
    if (ops) ops->flush(pool);
    drupe_memory *list = NULL;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i <= DRUPE_POOL_LARGE; i++) {
        while (pool->free[i]) {
            drupe_memory *memory = pool->free[i];
            pool->free[i] = memory->next;
            memory->next = list;
            list = memory;
        }
    }
    pool->idle = 0;
    pthread_mutex_unlock(&pool->lock);
    size_t freed = 0;
    while (list) {
        drupe_memory *next = list->next;
        freed += list->room;
        drupe_pool_discard(list);
        list = next;
    }
    return freed;
}

void drupe_pool_close(drupe_pool *pool)
{
    drupe_pool_trim_one(pool);
    pthread_mutex_destroy(&pool->lock);
}

/* --- Taking --------------------------------------------------------------------------------------------- */

drupe_usm_support drupe_pool_support(drupe_device *device, drupe_mem_kind kind)
{
    static const drupe_info keys[] = {[DRUPE_MEM_DEVICE] = DRUPE_INFO_USM_DEVICE,
                                      [DRUPE_MEM_SHARED] = DRUPE_INFO_USM_SHARED,
                                      [DRUPE_MEM_HOST] = DRUPE_INFO_USM_HOST};
    return (drupe_usm_support)drupe_device_number(device, keys[kind], DRUPE_USM_NONE);
}

static drupe_status check_pool(const drupe_pool *pool, size_t bytes)
{
    if (!pool->served) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The device %s has no memory of kind '%s'.%s",
                               pool->device->filter, drupe_mem_kind_name(pool->kind),
                               pool->kind == DRUPE_MEM_DEVICE ? "" : " Use device memory and copy.");
    }
    if (bytes <= pool->most) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY,
                           "%s (%zu bytes) were asked for; one allocation on %s may have at most %s "
                           "(%llu bytes).",
                           drupe_unit_bytes(bytes).text, bytes, pool->device->filter,
                           drupe_unit_bytes(pool->most).text, (unsigned long long)pool->most);
}

/* Large enough and not much too large. */
static bool suits(const drupe_memory *memory, size_t bytes)
{
    return memory->room >= bytes && memory->room - bytes <= memory->room / 8;
}

/* The smallest that suits. */
static drupe_memory **find_large(drupe_pool *pool, size_t bytes)
{
    drupe_memory **best = NULL;
    for (drupe_memory **link = &pool->free[DRUPE_POOL_LARGE]; *link; link = &(*link)->next) {
        if (!suits(*link, bytes)) continue;
        if (!best || (*link)->room < (*best)->room) best = link;
    }
    return best;
}

/* --- Counting ------------------------------------------------------------------------------------------- */

/* Of all devices together; its peak is that of drupe_memory_high(). */
static drupe_use everything;

static void raise_peak(drupe_use *use, uint64_t used)
{
    uint64_t peak = atomic_load_explicit(&use->peak, memory_order_relaxed);
    while (used > peak && !atomic_compare_exchange_weak(&use->peak, &peak, used)) {}
}

static void count_peak(drupe_use *use, size_t size)
{
    raise_peak(use, atomic_fetch_add_explicit(&use->used, size, memory_order_relaxed) + size);
}

uint64_t drupe_memory_high(bool restart, uint64_t *used)
{
    *used = atomic_load(&everything.used);
    uint64_t high = restart ? atomic_exchange(&everything.peak, *used) : atomic_load(&everything.peak);
    /* It may have grown since. */
    raise_peak(&everything, atomic_load(&everything.used));
    return high > *used ? high : *used;
}

/* --- What work still uses ------------------------------------------------------------------------------- */

static void count_flying(const drupe_memory *memory, bool more)
{
    drupe_device *root = memory->pool->root;
    uint64_t bytes = more ? memory->room : 0 - (uint64_t)memory->room;
    atomic_fetch_add_explicit(&root->use.flying, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&root->kinds[memory->pool->kind].flying, bytes, memory_order_relaxed);
}

static void unlink_ordered(drupe_memory *memory)
{
    *memory->link = memory->next;
    if (memory->next) memory->next->link = memory->link;
    memory->next = NULL;
    memory->link = NULL;
}

static void link_ordered(drupe_memory *memory)
{
    drupe_memory **list = &memory->pool->ordered[memory->index];
    memory->link = list;
    memory->next = *list;
    if (*list) (*list)->link = &memory->next;
    *list = memory;
}

/* Whether work of one queue, whose order is known, may go on with it: not where it has to be wiped first, or
 * others have it. */
static bool stays_in_order(const drupe_memory *memory, uint64_t uses)
{
    if (memory->redzone || memory->index > DRUPE_POOL_LARGE) return false;
    if (uses >> DRUPE_USES_SHIFT == DRUPE_USES_SEVERAL) return false;
    return !atomic_load_explicit(&memory->pool->root->wipe, memory_order_relaxed);
}

bool drupe_pool_orphan(drupe_memory *memory)
{
    drupe_pool *pool = memory->pool;
    drupe_use *all = &pool->root->use, *kind = &pool->root->kinds[pool->kind];
    if (!memory->imported) {
        atomic_fetch_sub_explicit(&everything.used, memory->room, memory_order_relaxed);
        atomic_fetch_sub_explicit(&all->used, memory->room, memory_order_relaxed);
        atomic_fetch_sub_explicit(&kind->used, memory->room, memory_order_relaxed);
        atomic_fetch_sub_explicit(&kind->count, 1, memory_order_relaxed);
    }
    /* Without uses there is nobody to be told apart from. */
    if (!(atomic_load_explicit(&memory->uses, memory_order_acquire) & DRUPE_USES_COUNT)) return true;
    pthread_mutex_lock(&pool->lock);
    uint64_t uses = atomic_fetch_or_explicit(&memory->uses, DRUPE_USES_ORPHAN, memory_order_acq_rel);
    bool last = !(uses & DRUPE_USES_COUNT);
    if (last)
        atomic_store_explicit(&memory->uses, 0, memory_order_relaxed);
    else if (stays_in_order(memory, uses))
        link_ordered(memory);
    if (!last && !memory->imported) count_flying(memory, true);
    pthread_mutex_unlock(&pool->lock);
    return last;
}

bool drupe_pool_unuse(drupe_memory *memory)
{
    drupe_pool *pool = memory->pool;
    pthread_mutex_lock(&pool->lock);
    uint64_t uses = atomic_fetch_sub_explicit(&memory->uses, 1, memory_order_acq_rel) - 1;
    bool last = uses & DRUPE_USES_ORPHAN && !(uses & DRUPE_USES_COUNT);
    if (last) {
        if (memory->link) unlink_ordered(memory);
        if (!memory->imported) count_flying(memory, false);
        atomic_store_explicit(&memory->uses, 0, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pool->lock);
    return last;
}

/* Lists are short: what is in them is what one queue has in flight, or a few. */
#define LOOK_MOST 64

static drupe_memory *take_ordered(drupe_pool *pool, const drupe_pool_request *wanted)
{
    size_t looked = 0;
    drupe_memory *memory = pool->ordered[wanted->index];
    for (; memory && looked < LOOK_MOST; memory = memory->next, looked++) {
        uint64_t uses = atomic_load_explicit(&memory->uses, memory_order_relaxed);
        bool fits = wanted->index != DRUPE_POOL_LARGE || suits(memory, wanted->bytes);
        if (fits && uses >> DRUPE_USES_SHIFT == wanted->order) break;
    }
    if (!memory || looked == LOOK_MOST) return NULL;
    unlink_ordered(memory);
    count_flying(memory, false);
    atomic_fetch_and_explicit(&memory->uses, ~DRUPE_USES_ORPHAN, memory_order_acq_rel);
    atomic_store_explicit(&memory->order, wanted->order, memory_order_relaxed);
    return memory;
}

static drupe_memory *take_free(drupe_pool *pool, const drupe_pool_request *wanted)
{
    bool large = wanted->index == DRUPE_POOL_LARGE;
    drupe_memory **link = large ? find_large(pool, wanted->bytes) : &pool->free[wanted->index];
    drupe_memory *memory = link ? *link : NULL;
    if (!memory) return NULL;
    *link = memory->next;
    memory->next = NULL;
    pool->idle -= memory->room;
    return memory;
}

static drupe_memory *take_idle(drupe_pool *pool, const drupe_pool_request *wanted)
{
    if (drupe_check_on()) return NULL;
    pthread_mutex_lock(&pool->lock);
    drupe_memory *memory = wanted->order ? take_ordered(pool, wanted) : NULL;
    if (!memory) memory = take_free(pool, wanted);
    pthread_mutex_unlock(&pool->lock);
    return memory;
}

/* --- From the driver ------------------------------------------------------------------------------------ */

static size_t room_for(const drupe_pool *pool, size_t bytes, size_t *index)
{
    if (*index != DRUPE_POOL_LARGE && class_size(*index) <= pool->most) return class_size(*index);
    *index = DRUPE_POOL_LARGE;
    size_t whole = bytes <= SIZE_MAX - PAGE ? (bytes + PAGE - 1) & ~(size_t)(PAGE - 1) : bytes;
    return whole <= pool->most ? whole : bytes;
}

static drupe_status ask_driver(drupe_memory *memory)
{
    drupe_pool *pool = memory->pool;
    const drupe_backend *backend = pool->context->slot->backend;
    size_t align = memory->redzone ? drupe_page_size() : memory->room >= PAGE ? PAGE : SMALLEST;
    void *start;
    DRUPE_TRY(backend->mem_alloc(pool->context, pool->device, pool->kind,
                                 memory->redzone + memory->room + memory->behind, align, &start));
    memory->base = (char *)start + memory->redzone;
    drupe_status status = drupe_registry_add(memory);
    if (status != DRUPE_OK) backend->mem_free(pool->context, pool->device, pool->kind, start);
    if (status == DRUPE_OK && memory->redzone) drupe_redzone_ops_get()->open(memory);
    return status;
}

static drupe_status take_fresh(drupe_pool *pool, const drupe_pool_request *wanted, drupe_memory **result)
{
    /* Guarded memory has no byte to spare. */
    const drupe_redzone_ops *ops = drupe_check_on() ? drupe_redzone_ops_get() : NULL;
    drupe_memory *memory = drupe_memory_new(pool);
    if (!memory) return DRUPE_E_NO_MEMORY;
    memory->index = wanted->index;
    memory->room = ops ? wanted->bytes : room_for(pool, wanted->bytes, &memory->index);
    if (ops) ops->plan(memory, wanted->align);
    drupe_status status = drupe_limit_reserve(pool, memory->room, wanted->bytes);
    if (status == DRUPE_OK) {
        status = ask_driver(memory);
        if (status != DRUPE_OK) drupe_limit_return(pool, memory->room);
    }
    if (status == DRUPE_OK)
        *result = memory;
    else
        free(memory);
    return status;
}

drupe_status drupe_pool_refill(drupe_memory *memory)
{
    drupe_pool *pool = memory->pool;
    DRUPE_TRY(drupe_limit_reserve(pool, memory->room, memory->room));
    drupe_status status = ask_driver(memory);
    if (status == DRUPE_OK) return DRUPE_OK;
    drupe_limit_return(pool, memory->room);
    memory->base = NULL;
    return status;
}

/* The size class, once it is known that there can be such memory. */
static drupe_status begin(const drupe_pool *pool, drupe_pool_request *wanted)
{
    DRUPE_TRY(check_pool(pool, wanted->bytes));
    if (wanted->align > SMALLEST && wanted->bytes < PAGE && !drupe_check_on()) wanted->bytes = PAGE;
    wanted->index = class_of(wanted->bytes);
    return DRUPE_OK;
}

static void count_lent(const drupe_memory *memory)
{
    const drupe_pool *pool = memory->pool;
    count_peak(&everything, memory->room);
    count_peak(&pool->root->use, memory->room);
    count_peak(&pool->root->kinds[pool->kind], memory->room);
    atomic_fetch_add_explicit(&pool->root->kinds[pool->kind].count, 1, memory_order_relaxed);
}

drupe_status drupe_pool_take(drupe_pool *pool, drupe_pool_request *wanted, drupe_memory **memory)
{
    bool first = !wanted->paced;
    if (first) DRUPE_TRY(begin(pool, wanted));
    *memory = take_idle(pool, wanted);
    if (!*memory && first) {
        wanted->paced = true;
        DRUPE_TRY(drupe_memory_users_get()->pace(pool->root, wanted->bytes));
        *memory = take_idle(pool, wanted); /* something may have come back */
    }
    if (!*memory) DRUPE_TRY(take_fresh(pool, wanted, memory));
    count_lent(*memory);
    return DRUPE_OK;
}

void drupe_pool_give(drupe_memory *memory)
{
    drupe_pool *pool = memory->pool;
    if (memory->redzone) {
        drupe_redzone_ops_get()->give(memory);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    bool kept = memory->index <= DRUPE_POOL_LARGE && pool->idle + memory->room <= pool->keep;
    if (kept) {
        memory->next = pool->free[memory->index];
        pool->free[memory->index] = memory;
        pool->idle += memory->room;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!kept) drupe_pool_discard(memory);
}

drupe_status drupe_pool_wipe(drupe_memory *memory)
{
    drupe_pool *pool = memory->pool;
    const drupe_backend *backend = pool->context->slot->backend;
    if (!backend->mem_wipe) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The backend '%s' cannot overwrite memory.",
                               backend->name);
    }
    return backend->mem_wipe(pool->context, pool->device, pool->kind, memory->base, memory->room);
}
