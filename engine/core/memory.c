/* USM allocations over the pools of a context. */
#include "core/core.h"
#include <stdio.h>

const char *drupe_mem_kind_name(drupe_mem_kind kind)
{
    static const char *const names[] = {"device", "shared", "host"};
    return (unsigned)kind < DRUPE_COUNT_OF(names) ? names[kind] : "unknown";
}

static drupe_info support_key(drupe_mem_kind kind)
{
    if (kind == DRUPE_MEM_DEVICE) return DRUPE_INFO_USM_DEVICE;
    return kind == DRUPE_MEM_SHARED ? DRUPE_INFO_USM_SHARED : DRUPE_INFO_USM_HOST;
}

static drupe_status check_request(drupe_device *device, drupe_mem_kind kind, size_t bytes, size_t align)
{
    if ((unsigned)kind > DRUPE_MEM_HOST) {
        return drupe_error_set(DRUPE_E_INVALID, "There is no memory kind number %d.", (int)kind);
    }
    if (bytes == 0) return drupe_error_set(DRUPE_E_INVALID, "An allocation has at least 1 byte.");
    if (align & (align - 1) || align > 4096) {
        return drupe_error_set(DRUPE_E_INVALID, "The alignment %zu is not a power of two up to 4096.", align);
    }
    if (drupe_device_number(device, support_key(kind), DRUPE_USM_NONE) == DRUPE_USM_NONE) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The device %s has no memory of kind '%s'.%s",
                               device->filter, drupe_mem_kind_name(kind),
                               kind == DRUPE_MEM_DEVICE ? "" : " Use device memory and copy.");
    }
    return DRUPE_OK;
}

drupe_status drupe_memory_alloc(drupe_queue *queue, drupe_mem_kind kind, size_t bytes, size_t align,
                                drupe_memory **memory)
{
    *memory = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(check_request(queue->device, kind, bytes, align));
    long member = drupe_context_member(queue->context, queue->device);
    drupe_pool *pool = &queue->context->pools[member * 3 + (long)kind];
    drupe_memory *fresh =
        drupe_object_new(queue->slot, queue->slot->backend, DRUPE_OBJECT_MEMORY, sizeof *fresh, 0);
    if (!fresh) return DRUPE_E_NO_MEMORY;
    drupe_queue_inner_retain(queue);
    fresh->queue = queue;
    fresh->context = drupe_context_retain(queue->context);
    fresh->kind = kind;
    fresh->size = bytes;
    drupe_status status = drupe_pool_take(pool, bytes, align, &fresh->block);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        drupe_memory_release(fresh);
        return drupe_error_restore(&kept);
    }
    drupe_registry_lend(fresh->block, fresh);
    *memory = fresh;
    return DRUPE_OK;
}

drupe_memory *drupe_memory_retain(drupe_memory *memory)
{
    if (memory) drupe_object_retain(memory);
    return memory;
}

void drupe_memory_release(drupe_memory *memory)
{
    if (!memory || !drupe_object_release(memory)) return;
    if (memory->block) {
        drupe_registry_lend(memory->block, NULL);
        drupe_pool_give(memory->block);
    }
    drupe_slot *slot = memory->queue->slot;
    drupe_queue_inner_release(memory->queue);
    drupe_context_release(memory->context);
    drupe_object_free(slot, memory);
}

void *drupe_memory_pointer(const drupe_memory *memory)
{
    return memory->block->base;
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

bool drupe_memory_plain(const drupe_memory *memory)
{
    drupe_device *device = memory->block->pool->device;
    return memory->kind != DRUPE_MEM_DEVICE &&
           drupe_device_number(device, support_key(memory->kind), DRUPE_USM_NONE) == DRUPE_USM_NATIVE;
}

drupe_memory *drupe_memory_find(const void *pointer)
{
    drupe_memory *memory = NULL;
    if (drupe_core_check() != DRUPE_OK) return NULL;
    /* An address outside of everything is no error here. */
    if (drupe_registry_find(pointer, 0, "find", &memory) != DRUPE_OK) return NULL;
    return memory;
}

/* --- Figures -------------------------------------------------------------------------------------------- */

void drupe_pool_stats_of(drupe_device *device, drupe_pool_stats *stats)
{
    drupe_device *root = device->root;
    stats->used = atomic_load(&root->used);
    stats->reserved = atomic_load(&root->reserved);
    stats->peak = atomic_load(&root->peak);
    stats->count = atomic_load(&root->count);
}

static const drupe_info_entry *info_known(drupe_device *device, drupe_info key)
{
    const drupe_info_entry *entry = &device->info[key];
    return atomic_load_explicit(&entry->state, memory_order_acquire) == DRUPE_INFO_KNOWN ? entry : NULL;
}

static bool use_fill(const drupe_slot *slot, drupe_device *device, drupe_device_use *use)
{
    if (atomic_load(&device->peak) == 0 && atomic_load(&device->reserved) == 0) return false;
    const drupe_info_entry *name = info_known(device, DRUPE_INFO_NAME);
    const drupe_info_entry *total = info_known(device, DRUPE_INFO_GLOBAL_MEM_SIZE);
    snprintf(use->filter, sizeof use->filter, "%s", device->filter);
    snprintf(use->name, sizeof use->name, "%s", name && name->text ? name->text : device->filter);
    use->backend = slot->backend->name;
    use->used = atomic_load(&device->used);
    use->reserved = atomic_load(&device->reserved);
    use->total = total ? total->number[0] : 0;
    return true;
}

size_t drupe_device_uses(drupe_device_use *uses, size_t capacity)
{
    size_t count = 0;
    if (atomic_load(&drupe_core_forked)) return 0;
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        if (pthread_mutex_trylock(&slot->lock) != 0) continue;
        for (uint32_t d = 0; atomic_load(&slot->loaded) && d < slot->ndevices && count < capacity; d++) {
            if (use_fill(slot, slot->devices[d], &uses[count])) count++;
        }
        pthread_mutex_unlock(&slot->lock);
    }
    return count;
}

struct trimming {
    drupe_device *root;
    size_t freed;
};

static void trim_context(drupe_context *context, void *user)
{
    struct trimming *trimming = user;
    for (size_t i = 0; i < context->ndevices * 3; i++) {
        if (context->pools[i].device->root != trimming->root) continue;
        trimming->freed += drupe_pool_trim_one(&context->pools[i]);
    }
}

size_t drupe_pool_trim(drupe_device *device)
{
    if (drupe_core_check() != DRUPE_OK) return 0;
    struct trimming trimming = {.root = device->root};
    drupe_context_each(trim_context, &trimming);
    return trimming.freed;
}
