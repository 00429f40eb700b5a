/* The roof: closing the library, room by room.
 *
 * Closing is best effort on purpose: a backend that still has objects stays loaded, so that what the caller
 * holds keeps working and its release finds everything it needs. */
#include "core/submit/submit_room.h"
#include <stdlib.h>

static void finish_queues(uint64_t deadline)
{
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        drupe_queue_finish(queue, deadline);
    }
}

/* What keeps this backend loaded; closes it if nothing does. */
static size_t slot_close(drupe_slot *slot)
{
    pthread_mutex_lock(&slot->lock);
    slot->failed = false;
    size_t leaks = 0;
    if (atomic_load(&slot->loaded)) {
        leaks = atomic_load(&slot->live);
        for (uint32_t i = 0; i < slot->ndevices; i++) {
            const drupe_device *device = slot->devices[i];
            do {
                leaks += atomic_load(&device->object.references) > device->due;
                device = device->parent;
            } while (device);
        }
        bool silent = false; /* then the driver may not be closed, nor a new start be made with it */
        for (uint32_t i = 0; i < slot->ndevices; i++)
            silent = silent || drupe_device_silent(slot->devices[i]);
        if (leaks == 0 && !silent) {
            atomic_store(&slot->loaded, 0);
            drupe_slot_unload(slot);
        }
    }
    pthread_mutex_unlock(&slot->lock);
    return leaks;
}

void drupe_library_settle(uint64_t timeout_ns)
{
    if (!atomic_load(&drupe_core_forked)) finish_queues(drupe_deadline(timeout_ns));
}

/* Memory of a CPU is the process's own, which the system clears. */
static bool to_be_scrubbed(const drupe_device *root)
{
    return root->type != DRUPE_DEVICE_CPU && atomic_load(&root->wipe) & DRUPE_WIPE_FREE &&
           !drupe_device_loss(root) && atomic_load(&root->use.peak) > 0;
}

static void memory_scrub(void)
{
    drupe_memory **held;
    const size_t count = drupe_registry_lent(&held);
    for (size_t i = 0; i < count; i++) {
        if (!held[i]->imported && to_be_scrubbed(held[i]->pool->root) && drupe_pool_wipe(held[i]) != DRUPE_OK)
            drupe_core_note("memory was not overwritten at the end: %s", drupe_error_last()->text);
        drupe_memory_release(held[i]);
    }
    free(held);
}

static void device_scrub(drupe_device *root)
{
    drupe_status (*scrub)(drupe_device *) = root->slot->backend->device_scrub;
    if (!scrub || !to_be_scrubbed(root)) return;
    drupe_status status = scrub(root);
    drupe_core_note("local memory of %s %s", root->filter,
                    status == DRUPE_OK ? "overwritten" : drupe_error_last()->text);
}

void drupe_library_scrub(void)
{
    if (atomic_load(&drupe_core_forked)) return;
    memory_scrub();
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        const drupe_slot *slot = drupe_slot_at(i);
        drupe_device *last = NULL; /* parts stand beside each other */
        for (uint32_t d = 0; atomic_load(&slot->loaded) && d < slot->ndevices; d++) {
            if (slot->devices[d]->root != last) device_scrub(slot->devices[d]->root);
            last = slot->devices[d]->root;
        }
    }
}

size_t drupe_library_close(uint64_t timeout_ns)
{
    if (atomic_load(&drupe_core_forked)) return 0;
    uint64_t deadline = drupe_deadline(timeout_ns);
    finish_queues(deadline);
    drupe_cache_stop();
    drupe_settings_forget();
    size_t nslots = drupe_slot_count();
    for (size_t i = 0; i < nslots; i++) {
        const drupe_slot *slot = drupe_slot_at(i);
        for (uint32_t d = 0; atomic_load(&slot->loaded) && d < slot->ndevices; d++) {
            for (drupe_device *device = slot->devices[d]; device; device = device->parent)
                drupe_device_forget(device);
        }
    }
    drupe_failure_poller_stop();
    drupe_prints_stop();
    drupe_deferred_stop(deadline);
    drupe_isolation_settle(); /* who is told of a fault looks at the devices, and may add a failure */
    drupe_failures_clear();
    size_t leaks = 0;
    for (size_t i = 0; i < nslots; i++) leaks += slot_close(drupe_slot_at(i));
    if (leaks == 0) drupe_isolation_stop();
    return leaks;
}
