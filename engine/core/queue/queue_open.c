/* Opening queues, and what the room registers with the rooms below: before the first queue nobody needs it.
 */
#include "core/queue/launch.h"
#include <stdlib.h>
#include <string.h>

/* Threads come 30 to 50 us after they are called. By then two of them have little to gain from 4 MiB; many
 * have, since one alone does not get the machine's bandwidth. `host` is quicker to call, and shares what is
 * larger than a piece. */
#define NEAR      ((size_t)4 << 20)
#define NEAR_MANY ((size_t)1 << 20)
#define NEAR_HOST ((size_t)256 << 10)
#define FEW       2

static _Atomic(uint32_t) last_number;
static _Atomic(bool) profile_all;
static pthread_once_t profile_once = PTHREAD_ONCE_INIT;

static void collect_all(const drupe_device *root)
{
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (!root || queue->base.device->root == root) drupe_queue_collect(queue);
    }
}

static const drupe_memory_users users = {drupe_queue_destroy, collect_all, drupe_throttle,
                                         drupe_throttle_room};

static void profile_ask(void)
{
    const char *wanted = getenv("DRUPE_PROFILE");
    if (wanted && *wanted && strcmp(wanted, "0") != 0) atomic_store(&profile_all, true);
}

static drupe_status check_open(const drupe_context *context, const drupe_device *device, uint32_t flags)
{
    const uint32_t priorities = DRUPE_QUEUE_PRIORITY_LOW | DRUPE_QUEUE_PRIORITY_HIGH;
    const uint32_t known = DRUPE_QUEUE_PROFILING | DRUPE_QUEUE_OUT_OF_ORDER | priorities;
    if (flags & ~known) return drupe_error_set(DRUPE_E_INVALID, "Unknown queue flags 0x%x.", flags);
    if ((flags & priorities) == priorities) {
        return drupe_error_set(DRUPE_E_INVALID, "A queue has a low or a high priority, not both.");
    }
    if (drupe_context_member(context, device) < 0) {
        return drupe_error_set(DRUPE_E_INVALID, "The device %s does not belong to this context.",
                               device->filter);
    }
    return DRUPE_OK;
}

/* Whether a complete kernel of this queue proves those before it. */
static bool infers(const drupe_queue *queue)
{
    const drupe_backend *backend = queue->base.slot->backend;
    /* Layers may fail what they like, and times are asked of each event as it ends. */
    bool plain = backend == queue->base.slot->base && !(queue->base.flags & DRUPE_QUEUE_PROFILING);
    return plain && backend->gpu_faults_last && queue->base.device->type == DRUPE_DEVICE_GPU &&
           !drupe_queue_unordered(queue);
}

/* Up to how many bytes the submitting thread copies: none where memory is not the host's, or a layer wants to
 * see it. */
static size_t near_bytes(const drupe_queue *queue)
{
    drupe_device *device = queue->base.device;
    const drupe_backend *backend = queue->base.slot->backend;
    bool own = backend == queue->base.slot->base && device->type == DRUPE_DEVICE_CPU &&
               drupe_pool_support(device, DRUPE_MEM_SHARED) == DRUPE_USM_NATIVE;
    if (!own || !drupe_settings_pinned() || drupe_settings_shuffled()) return 0;
    if (!backend->mem_pin) return NEAR_HOST;
    return drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1) > FEW ? NEAR_MANY : NEAR;
}

drupe_status drupe_queue_open(drupe_context *context, drupe_device *device, uint32_t flags,
                              drupe_queue **queue)
{
    *queue = NULL;
    DRUPE_TRY(drupe_core_check());
    DRUPE_TRY(check_open(context, device, flags));
    atomic_store(&drupe_memory_users_now, &users);
    drupe_isolation_tell(drupe_fault_deliver);
    drupe_waiter_queues(drupe_deferred_serve);
    pthread_once(&profile_once, profile_ask);
    if (atomic_load(&profile_all)) flags |= DRUPE_QUEUE_PROFILING;
    DRUPE_TRY(drupe_loss_check(device));
    drupe_slot *slot = context->slot;
    drupe_queue *fresh =
        drupe_object_new(&slot->live, slot->backend, sizeof *fresh, slot->backend->size.queue);
    if (!fresh) return DRUPE_E_NO_MEMORY;
    atomic_init(&fresh->base.inner, 1);
    fresh->base.slot = slot;
    fresh->base.context = drupe_context_retain(context);
    fresh->base.device = drupe_device_retain(device);
    fresh->base.flags = flags;
    fresh->base.number = atomic_fetch_add(&last_number, 1) + 1;
    fresh->traced = (drupe_trace_queue){fresh->base.number, drupe_trace_device(device->filter),
                                        drupe_queue_unordered(fresh)};
    pthread_mutex_init(&fresh->lock, NULL);
    drupe_status status = slot->backend->queue_open(fresh, flags);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        drupe_queue_inner_release(fresh);
        return drupe_error_restore(&kept);
    }
    bool timed = false;
    if (slot->backend->queue_times && slot->backend->queue_times(fresh, &timed) == DRUPE_OK && timed)
        fresh->base.flags |= DRUPE_QUEUE_TIMED;
    fresh->infers = infers(fresh);
    fresh->near = near_bytes(fresh);
    drupe_queue_join(fresh);
    *queue = fresh;
    return DRUPE_OK;
}

/* --- Times ---------------------------------------------------------------------------------------------- */

/* What others have the native queue of stays as it is, and so does what a driver cannot change. */
static void profile_one(drupe_queue *queue)
{
    const drupe_backend *backend = queue->base.slot->backend;
    pthread_mutex_lock(&queue->lock);
    bool possible = !queue->shared && backend->queue_time && !drupe_device_loss(queue->base.device);
    if (possible && !(queue->base.flags & DRUPE_QUEUE_PROFILING) && backend->queue_time(queue) == DRUPE_OK) {
        queue->timed_from = drupe_inflight_latest() + 1;
        queue->base.flags |= DRUPE_QUEUE_PROFILING;
        queue->infers = infers(queue);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool drupe_queue_profile(bool all_queues)
{
    pthread_once(&profile_once, profile_ask);
    bool before = atomic_exchange(&profile_all, all_queues);
    if (!all_queues || drupe_core_check() != DRUPE_OK) return before;
    drupe_error kept = *drupe_error_last();
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue))
        profile_one(queue);
    drupe_error_restore(&kept);
    return before;
}
