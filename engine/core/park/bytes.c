/* The bytes of a piece, between the device and host memory.
 *
 * Threads of core copy what a CPU device has in the process's own memory. Elsewhere the driver copies, over a
 * queue of its own, past core: nobody else has that queue, and the pieces are nobody's meanwhile.
 * DRUPE_PINNED=0 leaves all to the driver, as it does for other copies. */
#include "base/parallel.h"
#include "core/park/park_room.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRAIN ((size_t)4 << 20) /* bytes for one more thread */
#define PIECE ((size_t)1 << 30) /* of one copy by a driver: some get larger ones wrong */

typedef struct span {
    char *dst;
    const char *src;
    size_t size, parts;
} span;

static void copy_part(size_t i, void *user)
{
    const span *b = user;
    const size_t begin = drupe_parallel_begin(b->size, i, b->parts);
    memcpy(b->dst + begin, b->src + begin, drupe_parallel_begin(b->size, i + 1, b->parts) - begin);
}

static bool is_own(const drupe_memory *memory)
{
    drupe_device *device = memory->pool->device;
    return device->type == DRUPE_DEVICE_CPU && drupe_settings_pinned() &&
           drupe_pool_support(device, DRUPE_MEM_SHARED) == DRUPE_USM_NATIVE;
}

void drupe_park_untouched(void *memory, size_t bytes)
{
    const uintptr_t page = drupe_page_size(), begin = ((uintptr_t)memory + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)memory + bytes) & ~(page - 1);
    /* A wish, which the system may not know. */
    if (bytes >= 4 * DRUPE_PARK_HUGE && madvise((void *)begin, end - begin, MADV_HUGEPAGE) != 0) return;
}

static drupe_status copier_open(park_copier *copier, const drupe_pool *pool)
{
    const drupe_queue *queue = copier->queue;
    if (queue && queue->base.context == pool->context && queue->base.device == pool->device) return DRUPE_OK;
    drupe_park_copier_close(copier);
    return drupe_queue_open(pool->context, pool->device, DRUPE_QUEUE_DEFAULT, &copier->queue);
}

void drupe_park_copier_close(park_copier *copier)
{
    drupe_queue_release_inside(copier->queue);
    copier->queue = NULL;
}

/* Until the driver has copied it, or the device is lost. */
static drupe_status send(drupe_queue *queue, const span *b)
{
    const drupe_backend *backend = queue->base.slot->backend;
    const drupe_submit submit = {.queue = queue};
    pthread_mutex_lock(&queue->lock);
    drupe_status status = backend->submit_copy(&submit, b->dst, b->src, b->size);
    pthread_mutex_unlock(&queue->lock);
    if (status != DRUPE_OK) return status;
    do {
        DRUPE_TRY(drupe_loss_check(queue->base.device));
        pthread_mutex_lock(&queue->lock);
        status = backend->queue_wait(queue, DRUPE_SLICE_NS);
        pthread_mutex_unlock(&queue->lock);
    } while (status == DRUPE_E_TIMEOUT);
    return status;
}

static drupe_status copy(park_copier *copier, const drupe_memory *memory, char *dst, const char *src)
{
    span all = {dst, src, memory->room, drupe_parallel_parts(memory->room, GRAIN)};
    DRUPE_TRY(drupe_loss_check(memory->pool->device));
    if (is_own(memory)) {
        drupe_parallel(all.parts, copy_part, &all);
        return DRUPE_OK;
    }
    DRUPE_TRY(copier_open(copier, memory->pool));
    for (size_t at = 0; at < all.size; at += PIECE) {
        const span one = {dst + at, src + at, all.size - at < PIECE ? all.size - at : PIECE, 1};
        DRUPE_TRY(send(copier->queue, &one));
    }
    return DRUPE_OK;
}

drupe_status drupe_park_save(park_copier *copier, const drupe_memory *memory, void *host)
{
    return copy(copier, memory, host, memory->base);
}

drupe_status drupe_park_restore(park_copier *copier, const drupe_memory *memory, const void *host)
{
    if (is_own(memory)) drupe_park_untouched(memory->base, memory->room);
    return copy(copier, memory, memory->base, host);
}
