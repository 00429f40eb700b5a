/* USM allocations over the pools of a context.
 *
 * A request that finds no room goes back to the pool after each step that may have made some, from the
 * cheapest on: drop what finished work keeps, empty the free lists, wait for what is in flight. */
#include "core/memory/memory_room.h"
#include <stdlib.h>

#define PATIENCE_NS UINT64_C(2000000000) /* for memory that work in flight uses */

static drupe_status check_request(drupe_mem_kind kind, size_t bytes, size_t align)
{
    if ((unsigned)kind > DRUPE_MEM_HOST) {
        return drupe_error_set(DRUPE_E_INVALID, "There is no memory kind number %d.", (int)kind);
    }
    if (bytes == 0) return drupe_error_set(DRUPE_E_INVALID, "An allocation has at least 1 byte.");
    if (align & (align - 1) || align > 4096) {
        return drupe_error_set(DRUPE_E_INVALID, "The alignment %zu is not a power of two up to 4096.", align);
    }
    return DRUPE_OK;
}

/* A piece that goes from one handle to the next, because work still uses it, has kept its queue. */
static void take_queue(drupe_memory *memory, drupe_queue *queue)
{
    drupe_queue *before = memory->queue;
    if (before == queue) return;
    drupe_queue_inner_retain(queue); /* and with it the context, and the backend */
    memory->queue = queue;
    memory->context = drupe_base(queue)->context;
    if (before) drupe_queue_inner_release(before);
}

/* Hand out a piece that has no references; the last step, after which lookups find it. */
static void lend(drupe_memory *memory, drupe_queue *queue, drupe_mem_kind kind, size_t bytes)
{
    take_queue(memory, queue);
    memory->kind = kind;
    drupe_mark_drop(memory); /* of an earlier handle */
    atomic_store_explicit(&memory->size, bytes, memory_order_relaxed);
    atomic_store_explicit(&memory->exposed, false, memory_order_relaxed);
    atomic_store_explicit(&memory->left, false, memory_order_relaxed);
    atomic_store_explicit(&memory->views, 0, memory_order_relaxed);
    memory->site = drupe_core_site();
    memory->cell = drupe_core_cell_here();
    atomic_store_explicit(&memory->born, drupe_inflight_latest(), memory_order_relaxed);
    atomic_store_explicit(&memory->object.references, 1, memory_order_release);
}

static drupe_status make_room(drupe_device *root, unsigned step)
{
    const drupe_memory_users *users = drupe_memory_users_get();
    if (step == 0) users->collect(root);
    if (step == 2) DRUPE_TRY(users->room(root, drupe_deadline(PATIENCE_NS)));
    if (step > 0) drupe_pool_trim(root);
    return DRUPE_OK;
}

static drupe_status take(drupe_pool *pool, drupe_pool_request *wanted, drupe_memory **memory)
{
    for (unsigned step = 0;; step++) {
        drupe_status status = drupe_pool_take(pool, wanted, memory);
        if (status != DRUPE_E_NO_MEMORY || !wanted->paced) return status;
        if (step == 3) return drupe_memory_explain(pool->root);
        DRUPE_TRY(make_room(pool->root, step));
    }
}

static drupe_status alloc(drupe_queue *queue, drupe_mem_kind kind, size_t bytes, size_t align, uint32_t order,
                          drupe_memory **memory)
{
    *memory = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(check_request(kind, bytes, align));
    DRUPE_TRY(drupe_loss_check(drupe_base(queue)->device));
    drupe_pool *pool = drupe_pool_of(queue, kind);
    DRUPE_TRY(drupe_gate_wake(pool->root));
    drupe_memory *fresh;
    bool wiped = atomic_load_explicit(&pool->root->wipe, memory_order_relaxed) & DRUPE_WIPE_ALLOC;
    drupe_pool_request wanted = {.bytes = bytes, .align = align, .order = wiped ? 0 : order};
    DRUPE_TRY(take(pool, &wanted, &fresh));
    drupe_status status = wiped ? drupe_pool_wipe(fresh) : DRUPE_OK;
    if (status != DRUPE_OK) {
        (void)drupe_pool_orphan(fresh); /* true: what is wiped is used by nothing */
        drupe_pool_give(fresh);
        return status;
    }
    lend(fresh, queue, kind, bytes);
    *memory = fresh;
    return DRUPE_OK;
}

drupe_status drupe_memory_alloc(drupe_queue *queue, drupe_mem_kind kind, size_t bytes, size_t align,
                                drupe_memory **memory)
{
    return alloc(queue, kind, bytes, align, 0, memory);
}

drupe_status drupe_memory_alloc_result(drupe_queue *queue, drupe_mem_kind kind, size_t bytes,
                                       drupe_memory **memory)
{
    return alloc(queue, kind, bytes, 0, drupe_base(queue)->number, memory);
}

void *drupe_memory_pointer(const drupe_memory *memory)
{
    if (drupe_gate_parked(memory) && !drupe_gate_serve(memory)) return NULL;
    return memory->base;
}

bool drupe_memory_parked(const drupe_memory *memory)
{
    return drupe_gate_parked(memory);
}

size_t drupe_memory_size(const drupe_memory *memory)
{
    return memory->size;
}

drupe_mem_kind drupe_memory_kind(const drupe_memory *memory)
{
    return memory->kind;
}

drupe_queue *drupe_memory_queue(const drupe_memory *memory)
{
    return memory->queue;
}

bool drupe_memory_host_accessible(const drupe_memory *memory)
{
    return memory->kind != DRUPE_MEM_DEVICE;
}

drupe_memory *drupe_memory_find(const void *pointer)
{
    drupe_memory *memory = NULL;
    if (drupe_core_check() != DRUPE_OK) return NULL;
    /* An address outside of everything is no error here. */
    if (drupe_registry_find(pointer, 0, "find", &memory) != DRUPE_OK) return NULL;
    return memory;
}

/* --- Between processes ---------------------------------------------------------------------------------- */

static drupe_status no_names(const drupe_device *device)
{
    return drupe_error_set(DRUPE_E_UNSUPPORTED,
                           "Memory of %s cannot be shared between processes. Copy it through host memory, or "
                           "use the device \"host\".",
                           device->filter);
}

drupe_status drupe_memory_export(drupe_memory *memory, unsigned char handle[DRUPE_IPC_BYTES])
{
    DRUPE_TRY(drupe_core_check());
    drupe_pool *pool = memory->pool;
    const drupe_backend *backend = pool->context->slot->backend;
    if (!backend->mem_export || memory->redzone) return no_names(pool->device);
    if (memory->imported) {
        return drupe_error_set(DRUPE_E_INVALID, "This memory belongs to %s.",
                               memory->lender.release ? "somebody else: copy it to memory of the engine first"
                                                      : "another process, which exports it");
    }
    DRUPE_TRY(drupe_gate_wake(pool->root));
    atomic_store_explicit(&memory->exposed, true, memory_order_relaxed);
    drupe_memory_users_get()->collect(NULL); /* what is over uses it no more */
    if (drupe_memory_in_use(memory)) {
        return drupe_error_set(DRUPE_E_BUSY,
                               "Work in flight uses this memory, whose pages change places when "
                               "it is shared. Wait for all queues that use it first.");
    }
    DRUPE_TRY(
        backend->mem_export(pool->context, pool->device, memory->kind, memory->base, memory->room, handle));
    /* Others may have it open for ever: it is never handed out again. */
    pthread_mutex_lock(&pool->lock);
    memory->index = DRUPE_POOL_NEVER;
    pthread_mutex_unlock(&pool->lock);
    return DRUPE_OK;
}

static drupe_status import_into(drupe_memory *memory, const unsigned char handle[DRUPE_IPC_BYTES],
                                size_t bytes, drupe_queue *queue)
{
    drupe_pool *pool = memory->pool;
    drupe_context *context = drupe_base(queue)->context;
    const drupe_backend *backend = context->slot->backend;
    drupe_mem_kind kind = DRUPE_MEM_DEVICE;
    DRUPE_TRY(backend->mem_import(context, pool->device, handle, &kind, &memory->base, &memory->room));
    memory->pool = drupe_pool_of(queue, kind);
    drupe_status status = DRUPE_OK;
    if (bytes > memory->room) {
        status = drupe_error_set(DRUPE_E_OUT_OF_RANGE,
                                 "%zu bytes were asked for, the memory behind the handle has %zu.", bytes,
                                 memory->room);
    } else {
        status = drupe_registry_add(memory);
    }
    if (status != DRUPE_OK) {
        backend->mem_detach(context, pool->device, memory->base, memory->room);
        return status;
    }
    lend(memory, queue, kind, bytes ? bytes : memory->room);
    return DRUPE_OK;
}

drupe_status drupe_memory_import(drupe_queue *queue, const unsigned char handle[DRUPE_IPC_BYTES],
                                 size_t bytes, drupe_memory **memory)
{
    *memory = NULL;
    DRUPE_TRY(drupe_core_check());
    if (!drupe_base(queue)->slot->backend->mem_import) return no_names(drupe_base(queue)->device);
    drupe_memory *fresh = drupe_memory_new(drupe_pool_of(queue, DRUPE_MEM_DEVICE));
    if (!fresh) return DRUPE_E_NO_MEMORY;
    fresh->imported = true;
    fresh->index = DRUPE_POOL_NEVER;
    drupe_status status = import_into(fresh, handle, bytes, queue);
    if (status != DRUPE_OK) {
        free(fresh);
        return status;
    }
    *memory = fresh;
    return DRUPE_OK;
}

/* --- Memory of others ----------------------------------------------------------------------------------- */

static drupe_status check_borrow(const drupe_context *context, const void *pointer, size_t bytes)
{
    if (!pointer || bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)pointer)
        return drupe_error_set(DRUPE_E_INVALID, "%zu bytes at %p are no memory.", bytes, pointer);
    for (size_t i = 0; i < context->ndevices; i++) {
        drupe_device *device = context->devices[i];
        if (drupe_device_number(device, DRUPE_INFO_HAS_USM_SYSTEM, 0)) continue;
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "%s cannot address memory that others allocated. Copy it to the device.",
                               device->filter);
    }
    return DRUPE_OK;
}

/* Memory of the context that has all of the bytes, retained, or NULL. */
static drupe_memory *borrowed_from(const drupe_context *context, const void *pointer, size_t bytes)
{
    drupe_memory *memory = NULL;
    if (drupe_registry_find(pointer, bytes, "borrow", &memory) != DRUPE_OK || !memory) return NULL;
    size_t offset = (size_t)((const char *)pointer - (const char *)memory->base);
    if (memory->context == context && offset % 16 == 0) return memory;
    drupe_memory_release(memory);
    return NULL;
}

drupe_status drupe_memory_borrow(drupe_queue *queue, void *pointer, size_t bytes, const drupe_keep *keep,
                                 drupe_memory **memory)
{
    *memory = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(drupe_loss_check(drupe_base(queue)->device));
    DRUPE_TRY(check_borrow(drupe_base(queue)->context, pointer, bytes));
    *memory = borrowed_from(drupe_base(queue)->context, pointer, bytes);
    if (*memory) {
        keep->release(keep->object);
        return DRUPE_OK;
    }
    drupe_memory *fresh = drupe_memory_new(drupe_pool_of(queue, DRUPE_MEM_HOST));
    if (!fresh) return DRUPE_E_NO_MEMORY;
    fresh->imported = true;
    fresh->index = DRUPE_POOL_NEVER;
    fresh->base = pointer;
    fresh->room = bytes;
    fresh->lender = *keep;
    drupe_status status = drupe_registry_add(fresh);
    if (status != DRUPE_OK) {
        free(fresh);
        return status;
    }
    lend(fresh, queue, DRUPE_MEM_HOST, bytes);
    *memory = fresh;
    return DRUPE_OK;
}
