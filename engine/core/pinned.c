/* Large copies between plain host memory and a device, by the host device's threads.
 *
 * Where a device copies faster from pinned memory, the bytes go in pieces through a ring of pinned buffers:
 * the device copies one piece while the host device's threads copy others, since a single thread is slower
 * than the bus. The memory of a CPU device is memory like any other, and its driver copies with one thread:
 * there the host device makes the whole copy. All steps are ordinary submissions, tied together by events:
 *
 *     to the device:    mark on q -> host: buffer <- src -> q: dst <- buffer -> (next use of the buffer) ...
 *     from the device:  mark on q -> q: buffer <- src -> host: dst <- buffer -> (next use of the buffer) ...
 *     a CPU device's:   mark on q -> host: dst <- src
 *
 * and a mark on q after them all. Each step on q keeps the ring and the memory, so that nothing is lost when
 * a step fails and the last mark with it; letting go of the host queue waits for the steps there. */
#include "core/check.h"
#include "core/core.h"
#include "core/steps.h"
#include <stdlib.h>
#include <string.h>

#define RING    ((size_t)32 << 20)
#define LEAST   RING               /* below, the ring does not get going */
#define BUFFERS 16u                /* at most */
#define DIRECT  ((size_t)16 << 20) /* below, the way through the host device's queue is felt */
/* Nothing overlaps with the first piece's way in and the last one's way out: so a copy has 32 pieces, as long
 * as they are neither too small to be worth a submission nor too large for four to be in the ring. */
#define PIECES      32u
#define PIECE_LEAST (RING / 32)
#define PIECE_MOST  (RING / 4)
#define PAGE        ((size_t)4096)

struct drupe_ring {
    _Atomic(uint32_t) references;
    drupe_context *context; /* retained while it is in use */
    char *buffers;
    drupe_ring *next;
};

struct drupe_passage {
    const drupe_ticket *ticket; /* while the steps are submitted */
    drupe_queue *host;
    drupe_ring *ring;     /* NULL: the host device makes the copy alone */
    drupe_memory *memory; /* borrowed: the end on the device */
    bool to_device;
    size_t piece, nbuffers;     /* of that many bytes */
    drupe_event *begin;         /* everything before the copy */
    drupe_event *last[BUFFERS]; /* of each buffer */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- Rings: each context keeps one for the next copy ---------------------------------------------------- */

/* A driver that does not answer any more is not asked. */
static void ring_free(drupe_context *context, drupe_ring *ring)
{
    bool silent = false;
    for (size_t i = 0; i < context->ndevices; i++)
        silent = silent || drupe_device_silent(context->devices[i]);
    if (!silent) context->slot->backend->mem_unpin(context, ring->buffers);
    free(ring);
}

void drupe_pinned_close(drupe_context *context)
{
    pthread_mutex_lock(&lock);
    drupe_ring *ring = context->ring;
    context->ring = NULL;
    pthread_mutex_unlock(&lock);
    if (ring) ring_free(context, ring);
}

static void ring_release(void *object)
{
    drupe_ring *ring = object;
    if (!ring || atomic_fetch_sub(&ring->references, 1) != 1) return;
    drupe_context *context = ring->context;
    pthread_mutex_lock(&lock);
    bool kept = context->ring == NULL;
    if (kept) context->ring = ring;
    pthread_mutex_unlock(&lock);
    if (!kept) ring_free(context, ring);
    drupe_context_release(context);
}

static drupe_ring *ring_retain(drupe_ring *ring)
{
    atomic_fetch_add(&ring->references, 1);
    return ring;
}

static drupe_status ring_open(drupe_context *context, drupe_ring **result)
{
    pthread_mutex_lock(&lock);
    drupe_ring *ring = context->ring;
    context->ring = NULL;
    pthread_mutex_unlock(&lock);
    if (!ring) {
        void *buffers;
        DRUPE_TRY(context->slot->backend->mem_pin(context, RING, &buffers));
        ring = calloc(1, sizeof *ring);
        if (!ring) {
            context->slot->backend->mem_unpin(context, buffers);
            return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to describe pinned memory.");
        }
        ring->buffers = buffers;
    }
    atomic_store(&ring->references, 1);
    ring->context = drupe_context_retain(context);
    *result = ring;
    return DRUPE_OK;
}

/* --- Steps ---------------------------------------------------------------------------------------------- */

static drupe_status submit(const drupe_passage *passage, drupe_queue *queue, const drupe_work *work,
                           drupe_event *const *waits, size_t nwaits, drupe_refs *refs, drupe_event **event)
{
    drupe_ticket ticket = *passage->ticket;
    bool whole = work->kind != DRUPE_WORK_COPY; /* the marks stand for all that the copy touches */
    ticket.queue = queue;
    ticket.waits = waits;
    ticket.nwaits = nwaits;
    ticket.refs = refs ? refs->list : NULL;
    ticket.nrefs = refs ? refs->count : 0;
    ticket.bytes = refs ? refs->bytes : 0;
    ticket.kept = true;
    if (!whole) {
        ticket.accesses = NULL;
        ticket.naccesses = 0;
    }
    if (refs) refs->count = 0;
    return drupe_queue_submit(&ticket, work, event);
}

/* One piece's copy on the user's queue or the host's; `*event` is replaced by its own. */
static drupe_status piece(const drupe_passage *passage, drupe_queue *queue, void *dst, const void *src,
                          size_t bytes, drupe_event **event)
{
    drupe_refs refs;
    drupe_refs_init(&refs);
    drupe_work work = {.kind = DRUPE_WORK_COPY, .dst = dst, .src = src, .bytes = bytes};
    drupe_event *wait = *event ? *event : passage->begin, *fresh;
    drupe_status status = DRUPE_OK;
    if (passage->ring) status = drupe_refs_add(&refs, ring_retain(passage->ring), ring_release);
    if (status == DRUPE_OK && (queue != passage->host || !passage->ring))
        status = drupe_refs_add(&refs, drupe_memory_retain(passage->memory), drupe_memory_unref);
    if (status == DRUPE_OK) status = submit(passage, queue, &work, &wait, 1, &refs, &fresh);
    drupe_refs_drop(&refs);
    if (status != DRUPE_OK) return status;
    drupe_event_release(*event);
    *event = fresh;
    return DRUPE_OK;
}

static size_t piece_size(size_t bytes)
{
    size_t size = (bytes / PIECES + PAGE - 1) / PAGE * PAGE;
    if (size < PIECE_LEAST) return PIECE_LEAST;
    return size < PIECE_MOST ? size : PIECE_MOST;
}

static drupe_status pieces(drupe_passage *passage, char *dst, const char *src, size_t bytes)
{
    bool to_device = passage->to_device;
    drupe_queue *queue = passage->ticket->queue, *host = passage->host;
    size_t size = passage->piece;
    if (!passage->ring) return piece(passage, host, dst, src, bytes, &passage->last[0]);
    for (size_t done = 0, i = 0; done < bytes; done += size, i++) {
        size_t part = bytes - done < size ? bytes - done : size, slot = i % passage->nbuffers;
        char *buffer = passage->ring->buffers + slot * size;
        drupe_event **last = &passage->last[slot];
        DRUPE_TRY(piece(passage, to_device ? host : queue, buffer, src + done, part, last));
        DRUPE_TRY(piece(passage, to_device ? queue : host, dst + done, buffer, part, last));
    }
    return DRUPE_OK;
}

static void release_queue(void *object)
{
    drupe_queue_release_inside(object);
}

/* The mark at the end has what the user gave. The host's queue comes first: letting go of it waits for its
 * steps, which use the rest. */
static drupe_status finish(drupe_passage *passage, drupe_event **event)
{
    const drupe_ticket *ticket = passage->ticket;
    drupe_refs refs;
    drupe_refs_init(&refs);
    drupe_work mark = {.kind = DRUPE_WORK_MARK};
    drupe_queue *host = passage->host;
    passage->host = NULL;
    drupe_status status = drupe_refs_add(&refs, host, release_queue);
    for (size_t i = 0; status == DRUPE_OK && i < ticket->nrefs; i++) {
        status = drupe_refs_add(&refs, ticket->refs[i].object, ticket->refs[i].release);
        ticket->refs[i].release = NULL;
    }
    refs.bytes = ticket->bytes;
    if (status == DRUPE_OK)
        status = submit(passage, ticket->queue, &mark, passage->last, passage->nbuffers, &refs, event);
    drupe_refs_drop(&refs);
    return status;
}

/* --- The copy ------------------------------------------------------------------------------------------- */

/* DRUPE_PINNED=0 leaves every copy to the driver. */
static bool allowed(void)
{
    const char *text = getenv("DRUPE_PINNED");
    return !text || strcmp(text, "0") != 0;
}

typedef enum way { WAY_DRIVER, WAY_RING, WAY_DIRECT } way;

static way way_of(const drupe_queue *queue, const drupe_place *dst, const drupe_place *src, size_t bytes)
{
    bool cpu = queue->device->type == DRUPE_DEVICE_CPU;
    if (bytes < (cpu ? DIRECT : LEAST) || !queue->slot->backend->mem_pin) return WAY_DRIVER;
    /* The times of a copy in steps would be those of its last step. */
    if (queue->flags & DRUPE_QUEUE_PROFILING) return WAY_DRIVER;
    if (!dst->memory == !src->memory || dst->foreign || src->foreign || !allowed()) return WAY_DRIVER;
    const drupe_memory *memory = dst->memory ? dst->memory : src->memory;
    drupe_device *device = memory->pool->device;
    /* Where memory is shared without being mapped, what is the device's can be used so as well. */
    if (cpu && drupe_pool_support(device, DRUPE_MEM_SHARED) == DRUPE_USM_NATIVE) return WAY_DIRECT;
    return memory->kind == DRUPE_MEM_DEVICE && !cpu ? WAY_RING : WAY_DRIVER;
}

/* DRUPE_E_UNSUPPORTED when it has fewer than `threads`. */
static drupe_status open_host(unsigned threads, drupe_queue **queue)
{
    drupe_device *device;
    drupe_context *context = NULL;
    DRUPE_TRY(drupe_device_select("host", &device));
    drupe_status status = drupe_device_context(device, &context);
    if (drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1) < threads)
        status = drupe_error_set(DRUPE_E_UNSUPPORTED, "The host device has too few threads.");
    if (status == DRUPE_OK) status = drupe_queue_open(context, device, DRUPE_QUEUE_DEFAULT, queue);
    drupe_context_release(context);
    drupe_device_release(device);
    return status;
}

static void close_passage(drupe_passage *passage)
{
    for (size_t i = 0; i < BUFFERS; i++) drupe_event_release(passage->last[i]);
    drupe_event_release(passage->begin);
    drupe_queue_release_inside(passage->host);
    ring_release(passage->ring);
    free(passage);
}

drupe_passage *drupe_pinned_open(const drupe_queue *queue, const drupe_place *dst, const drupe_place *src,
                                 size_t bytes)
{
    way chosen = way_of(queue, dst, src, bytes);
    drupe_passage *passage = chosen == WAY_DRIVER ? NULL : calloc(1, sizeof *passage);
    if (!passage) return NULL;
    passage->to_device = dst->memory != NULL;
    passage->piece = piece_size(bytes);
    passage->nbuffers = RING / passage->piece < BUFFERS ? RING / passage->piece : BUFFERS;
    passage->memory = dst->memory ? dst->memory : src->memory;
    drupe_error kept = *drupe_error_last();
    drupe_status status = DRUPE_OK;
    if (chosen == WAY_RING) status = ring_open(queue->context, &passage->ring);
    if (status == DRUPE_OK) status = open_host(chosen == WAY_RING ? 1 : 2, &passage->host);
    if (status == DRUPE_OK) return passage;
    close_passage(passage);
    drupe_error_restore(&kept);
    return NULL;
}

/* What was submitted is waited for: it uses what is now given back. */
static void give_up(drupe_passage *passage)
{
    for (size_t i = 0; i < BUFFERS; i++) {
        drupe_event *last = passage->last[i];
        if (!last || drupe_event_await(last, UINT64_MAX) != DRUPE_OK) continue;
        if (drupe_check_on()) drupe_check_event(last);
    }
}

drupe_status drupe_pinned_copy(drupe_passage *passage, const drupe_ticket *ticket, void *dst, const void *src,
                               size_t bytes, drupe_event **event)
{
    drupe_work mark = {.kind = DRUPE_WORK_MARK};
    drupe_event *end = NULL;
    passage->ticket = ticket;
    drupe_status status =
        submit(passage, ticket->queue, &mark, ticket->waits, ticket->nwaits, NULL, &passage->begin);
    if (status == DRUPE_OK) status = pieces(passage, dst, src, bytes);
    if (status == DRUPE_OK) status = finish(passage, &end);
    drupe_error kept = *drupe_error_last();
    if (status != DRUPE_OK) give_up(passage);
    close_passage(passage);
    if (status != DRUPE_OK) {
        drupe_keeps_drop(ticket->refs, ticket->nrefs);
        return drupe_error_restore(&kept);
    }
    if (event)
        *event = end;
    else
        drupe_event_release(end);
    return DRUPE_OK;
}
