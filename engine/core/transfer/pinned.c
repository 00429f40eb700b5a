/* Which copies are made in pieces, and the pinned memory for that. How they are made is staged_copy.c's.
 *
 * A device that copies faster from pinned memory gets large copies of plain host memory through a ring of
 * pinned buffers. The memory of a CPU device is memory like any other, and its driver copies with one thread:
 * there threads of core make the whole copy, without a ring. */
#include "core/transfer/transfer_room.h"
#include <stdlib.h>
#include <string.h>

#define RING_LEAST ((size_t)4 << 20)  /* below, the ring does not get going */
#define DIRECT     ((size_t)16 << 20) /* below, the way through core's threads is felt */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- Rings: each context keeps one for the next copy ---------------------------------------------------- */

/* A driver that does not answer any more is not asked. */
static void ring_free(drupe_context *context, char *ring)
{
    bool silent = false;
    for (size_t i = 0; i < context->ndevices; i++)
        silent = silent || drupe_device_silent(context->devices[i]);
    if (!silent) context->slot->backend->mem_unpin(context, ring);
}

static void ring_close(drupe_context *context);

/* The context has another one from now on; NULL: none. What it had. */
static char *exchange(drupe_context *context, char *ring)
{
    pthread_mutex_lock(&lock);
    char *before = context->ring;
    context->ring = ring;
    context->ring_close = ring_close;
    pthread_mutex_unlock(&lock);
    return before;
}

static void ring_close(drupe_context *context)
{
    char *ring = exchange(context, NULL);
    if (ring) ring_free(context, ring);
}

void drupe_ring_give_back(drupe_context *context, char *ring)
{
    char *before = exchange(context, ring);
    if (before) ring_free(context, before);
}

static drupe_status ring_take(drupe_context *context, char **ring)
{
    void *fresh = NULL;
    *ring = exchange(context, NULL);
    if (*ring) return DRUPE_OK;
    DRUPE_TRY(context->slot->backend->mem_pin(context, DRUPE_RING, &fresh));
    *ring = fresh;
    return DRUPE_OK;
}

/* --- The choice ----------------------------------------------------------------------------------------- */

typedef enum way { WAY_DRIVER, WAY_RING, WAY_DIRECT } way;

static way way_of(const drupe_queue *queue, const drupe_copy_end *dst, const drupe_copy_end *src,
                  const drupe_work *work)
{
    bool cpu = queue->base.device->type == DRUPE_DEVICE_CPU;
    /* Less so where the thread that waits takes part: then what the submitting one leaves is enough. */
    const bool helped = work->sound && queue->near;
    const size_t least = !cpu ? RING_LEAST : helped ? queue->near + 1 : DIRECT;
    if (work->bytes < least || !queue->base.slot->backend->mem_pin) return WAY_DRIVER;
    /* The times of a copy in steps would be those of its last step. */
    if (queue->base.flags & DRUPE_QUEUE_PROFILING) return WAY_DRIVER;
    if (!dst->memory == !src->memory || !drupe_settings_pinned()) return WAY_DRIVER;
    const drupe_memory *memory = dst->memory ? dst->memory : src->memory;
    drupe_device *device = memory->pool->device;
    /* Where memory is shared without being mapped, what is the device's can be used so as well. */
    if (cpu && drupe_pool_support(device, DRUPE_MEM_SHARED) == DRUPE_USM_NATIVE) return WAY_DIRECT;
    return memory->kind == DRUPE_MEM_DEVICE && !cpu ? WAY_RING : WAY_DRIVER;
}

/* How many threads shall copy: those that the host device may use, as far as the bus gains by them. */
static unsigned thread_count(void)
{
    drupe_device *device;
    if (drupe_device_select("host", &device) != DRUPE_OK) return 1;
    uint64_t count = drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1);
    drupe_device_release(device);
    return count < DRUPE_STAGED_COPY_THREADS ? (unsigned)count : DRUPE_STAGED_COPY_THREADS;
}

static drupe_status open_staged_copy(drupe_queue *queue, way chosen, bool to_device, const drupe_work *work,
                                     drupe_staged_copy **copy)
{
    char *ring = NULL;
    unsigned count = thread_count();
    if (chosen == WAY_DIRECT && count < 2)
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "A copy needs two threads.");
    if (chosen == WAY_RING) DRUPE_TRY(ring_take(queue->base.context, &ring));
    *copy = drupe_staged_copy_new(ring, count, queue, to_device, work);
    if (*copy) return DRUPE_OK;
    if (ring) drupe_ring_give_back(queue->base.context, ring);
    return DRUPE_E_NO_MEMORY;
}

drupe_status drupe_pinned_plan(drupe_queue *queue, const drupe_copy_end *dst, const drupe_copy_end *src,
                               drupe_work *work, drupe_refs *refs)
{
    way chosen = way_of(queue, dst, src, work);
    if (chosen == WAY_DRIVER) return DRUPE_OK;
    drupe_staged_copy *copy = NULL;
    drupe_error kept = *drupe_error_last();
    if (open_staged_copy(queue, chosen, dst->memory != NULL, work, &copy) != DRUPE_OK) {
        drupe_error_restore(&kept); /* then the driver makes it, as well as it can */
        return DRUPE_OK;
    }
    DRUPE_TRY(drupe_refs_add(refs, copy, drupe_staged_copy_release));
    work->fn = drupe_staged_copy_run;
    work->user = copy;
    return DRUPE_OK;
}
