/* A large copy between plain host memory and a device, by threads of core.
 *
 * The bytes cross in pieces through a ring of pinned buffers: the device copies some while several threads
 * (the threads) copy others, since a single thread is slower than the bus.
 *
 *     to the device:    threads: buffer <- src -> device: dst <- buffer
 *     from the device:  device: buffer <- src -> threads: dst <- buffer
 *
 * Such a copy is one submission, which core runs itself, as it does a host function on a device that has
 * none: it has its turn when all before it is over, and what stands behind it is deferred until then. So
 * nobody else uses the queue meanwhile, and the device's pieces go to the backend past core: they need no
 * place, no cause and no record of their own. The thread that runs the submission talks to the device and
 * opens pieces for the threads; it touches no memory of the caller's, so that a fault there costs a thread,
 * and the copy still ends in order. All of them keep watching while the copy lasts: being woken for each
 * piece would take longer than the piece.
 *
 * Without a ring (the memory of a CPU device) there is one piece, and the threads copy it from end to end.
 * Where no fault is to be feared (`sound`) the thread that runs the submission is one of them, and sees the
 * end at once; so is a thread that waits for it, which begins before any other has been woken. Then no more
 * are called than the copy is worth, and the last of them only when no thread waits. */
#include "core/transfer/transfer_room.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIECE_MOST ((size_t)4 << 20) /* a submission and a gap cost as much as 256 KiB */
#define BUFFERS    (DRUPE_RING / PIECE_MOST)
/* Nothing overlaps with the first piece's way in and the last one's way out. */
#define PIECE_LEAST ((size_t)256 << 10)
#define CHUNK       ((size_t)128 << 10) /* that a thread takes at a time */
#define PAGE        ((size_t)4096)
#define STREAM_MOST ((size_t)16 << 20) /* beyond, memory is what threads and the device compete for */
#define WATCH       1000u              /* looks without anything to do, until a thread sleeps between them; */
#define SLEEP_NS    50000
#define LONG_NS     2000000           /* and after as many again: the device is busy elsewhere, or hangs */
#define ALONE_NS    10000000          /* no thread has come by then: there may be none to be had */
#define WORTH       ((size_t)2 << 20) /* bytes that are worth waking a thread for */
#define BRIEF_NS    100000u           /* in which others end their chunks */

/* A piece on its way, in the buffer of the same place. */
struct piece {
    size_t offset, bytes;
    _Atomic(size_t) left; /* bytes that threads have not copied yet */
    drupe_event *event;   /* the device's half, or NULL */
};

struct thread {
    drupe_job job;
    drupe_staged_copy *copy; /* retained */
};

/* How far the threads are. The lock is that of the copy. */
struct threads {
    _Atomic(size_t) at;      /* the piece that they are at, and */
    size_t taken;            /* its bytes that were given out; both change under the lock */
    _Atomic(size_t) copying; /* chunks under way */
    unsigned begun;          /* so many came; lock */
    unsigned helping;        /* of those who wait; lock */
    _Atomic(bool) failed;    /* one of them faulted, with `error` */
    drupe_error error;
};

struct drupe_staged_copy {
    drupe_pieces calls;
    _Atomic(uint32_t) references;
    drupe_queue *queue;     /* borrowed: of the submission */
    drupe_context *context; /* retained while there is a ring */
    char *ring;             /* its; NULL: threads alone */
    bool to_device, sound;
    char *dst;
    const char *src;
    size_t bytes;
    pthread_mutex_t lock;
    struct piece pieces[BUFFERS];
    _Atomic(size_t) opened; /* pieces that threads may copy, so far */
    _Atomic(bool) ended;    /* threads are to leave */
    bool alone;             /* no thread came, and none is to; lock */
    struct threads by;
    unsigned nthreads;
    struct thread threads[DRUPE_STAGED_COPY_THREADS];
};

static void hurry(drupe_pieces *pieces);
static bool help(drupe_pieces *pieces, uint64_t deadline);
static void hold(drupe_pieces *pieces);

/* One piece, with the caller's memory at both ends, and whoever runs or awaits the copy may touch it. */
static bool is_open(const drupe_staged_copy *c)
{
    return !c->ring && c->sound;
}

drupe_staged_copy *drupe_staged_copy_new(char *ring, unsigned nthreads, drupe_queue *queue, bool to_device,
                                         const drupe_work *work)
{
    drupe_staged_copy *c = calloc(1, sizeof *c);
    if (!c) {
        drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for a copy in pieces.");
        return NULL;
    }
    atomic_init(&c->references, 1);
    pthread_mutex_init(&c->lock, NULL);
    c->ring = ring;
    c->nthreads = nthreads;
    c->calls = (drupe_pieces){.hurry = hurry, .spins = ring && nthreads > 2};
    c->queue = queue;
    c->context = ring ? drupe_context_retain(queue->base.context) : NULL;
    c->to_device = to_device;
    c->sound = work->sound;
    c->dst = work->dst;
    c->src = work->src;
    c->bytes = work->bytes;
    if (!is_open(c)) return c;
    const size_t worth = (c->bytes + WORTH - 1) / WORTH;
    if (worth < c->nthreads) c->nthreads = (unsigned)worth;
    c->calls.help = help;
    c->calls.hold = hold;
    c->calls.let_go = drupe_staged_copy_release;
    c->pieces[0].bytes = c->bytes;
    atomic_init(&c->pieces[0].left, c->bytes);
    atomic_init(&c->opened, 1);
    return c;
}

/* After a failure: the buffers are in use until the device is done with them. */
static void give_up_device(drupe_staged_copy *c)
{
    for (size_t i = 0; i < BUFFERS; i++) {
        drupe_event *event = c->pieces[i].event;
        while (event && !drupe_device_loss(event->queue->base.device)) {
            if (event->object.backend->event_wait(event, DRUPE_SLICE_NS) != DRUPE_E_TIMEOUT) break;
        }
        drupe_event_release(event);
        c->pieces[i].event = NULL;
    }
}

static void give_ring_back(drupe_staged_copy *c)
{
    if (!c->ring) return;
    drupe_ring_give_back(c->context, c->ring);
    drupe_context_release(c->context); /* not the last reference: the queue of the copy lives */
    c->ring = NULL;
}

void drupe_staged_copy_release(void *object)
{
    drupe_staged_copy *c = object;
    if (atomic_fetch_sub(&c->references, 1) != 1) return;
    if (!atomic_load(&c->ended)) give_up_device(c); /* it has never run, or faulted where it was alone */
    give_ring_back(c);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void rest(unsigned *idle)
{
    const struct timespec pause = {.tv_nsec = *idle < 2 * WATCH ? SLEEP_NS : LONG_NS};
    if (*idle < 2 * WATCH) ++*idle;
    if (*idle < WATCH)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* --- The threads ---------------------------------------------------------------------------------------- */

struct chunk {
    struct piece *of;
    char *dst;
    const char *src;
    size_t bytes;
};

static char *buffer_of(const drupe_staged_copy *c, size_t index)
{
    return c->ring ? c->ring + index % BUFFERS * PIECE_MOST : NULL;
}

/* False: there is none just now. It counts as under way. */
static bool take_chunk(drupe_staged_copy *c, struct chunk *chunk)
{
    bool found = false;
    if (atomic_load(&c->by.at) >= atomic_load(&c->opened)) return false;
    pthread_mutex_lock(&c->lock);
    size_t at = atomic_load(&c->by.at);
    if (at < atomic_load(&c->opened) && !atomic_load(&c->ended)) {
        struct piece *piece = &c->pieces[at % BUFFERS];
        char *buffer = buffer_of(c, at);
        size_t left = piece->bytes - c->by.taken;
        chunk->of = piece;
        chunk->bytes = left < CHUNK ? left : CHUNK;
        chunk->src = c->src + piece->offset + c->by.taken;
        chunk->dst = c->dst + piece->offset + c->by.taken;
        if (buffer && c->to_device) chunk->dst = buffer + c->by.taken;
        if (buffer && !c->to_device) chunk->src = buffer + c->by.taken;
        c->by.taken += chunk->bytes;
        if (c->by.taken == piece->bytes) {
            c->by.taken = 0;
            atomic_store(&c->by.at, at + 1);
        }
        atomic_fetch_add(&c->by.copying, 1);
        found = true;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void copy_chunk(drupe_staged_copy *c, const struct chunk *chunk)
{
    /* What is in a processor's cache reaches the device at two thirds of the bus's rate. */
    if (c->ring && c->to_device && c->bytes <= STREAM_MOST)
        drupe_copy_past_caches(chunk->dst, chunk->src, chunk->bytes);
    else
        drupe_copy_bytes(chunk->dst, chunk->src, chunk->bytes);
    atomic_fetch_sub(&chunk->of->left, chunk->bytes);
    atomic_fetch_sub(&c->by.copying, 1);
}

static bool begin_thread(drupe_staged_copy *c)
{
    pthread_mutex_lock(&c->lock);
    bool wanted = !c->alone;
    c->by.begun += wanted;
    pthread_mutex_unlock(&c->lock);
    return wanted;
}

static void run_thread(drupe_job *job)
{
    drupe_staged_copy *c = ((struct thread *)(void *)((char *)job - offsetof(struct thread, job)))->copy;
    unsigned idle = 0;
    struct chunk chunk;
    bool wanted = begin_thread(c);
    while (wanted && !atomic_load(&c->ended)) {
        if (!take_chunk(c, &chunk)) {
            rest(&idle);
            continue;
        }
        idle = 0;
        atomic_store(job->busy, 1);
        copy_chunk(c, &chunk);
        atomic_store(job->busy, 0);
    }
    drupe_staged_copy_release(c);
}

/* It faulted in copy_chunk(), with the thread's error. */
static void fail_thread(drupe_job *job)
{
    drupe_staged_copy *c = ((struct thread *)(void *)((char *)job - offsetof(struct thread, job)))->copy;
    pthread_mutex_lock(&c->lock);
    if (!atomic_load(&c->by.failed)) c->by.error = *drupe_error_last();
    atomic_store(&c->by.failed, true);
    pthread_mutex_unlock(&c->lock);
    atomic_fetch_sub(&c->by.copying, 1);
    drupe_staged_copy_release(c);
}

static drupe_staged_copy *copy_of(drupe_pieces *pieces)
{
    return (drupe_staged_copy *)(void *)pieces;
}

static void call_thread(drupe_staged_copy *c, unsigned index)
{
    struct thread *thread = &c->threads[index];
    atomic_fetch_add(&c->references, 1);
    thread->copy = c;
    drupe_worker_post(&thread->job, run_thread, fail_thread, "copy");
}

/* Have the threads come while the thread that runs the copy is still being woken; it runs, or will at once.
 * Of an open copy it is the first of them, and who waits may be the second.
 */
static void hurry(drupe_pieces *pieces)
{
    drupe_staged_copy *c = copy_of(pieces);
    for (unsigned i = is_open(c) ? 2 : 0; i < c->nthreads; i++) call_thread(c, i);
}

/* --- Who waits ------------------------------------------------------------------------------------------ */

static void hold(drupe_pieces *pieces)
{
    atomic_fetch_add(&copy_of(pieces)->references, 1);
}

static unsigned helping(drupe_staged_copy *c, int more)
{
    pthread_mutex_lock(&c->lock);
    const unsigned now = c->by.helping += (unsigned)more;
    pthread_mutex_unlock(&c->lock);
    return now;
}

static bool help(drupe_pieces *pieces, uint64_t deadline)
{
    drupe_staged_copy *c = copy_of(pieces);
    struct chunk chunk;
    bool left = true;
    helping(c, 1);
    while (left && drupe_now_ns() < deadline) {
        left = take_chunk(c, &chunk);
        if (left) copy_chunk(c, &chunk);
    }
    helping(c, -1);
    uint64_t until = drupe_deadline(BRIEF_NS);
    if (until > deadline) until = deadline;
    while (atomic_load(&c->pieces[0].left) && drupe_now_ns() < until) sched_yield();
    return atomic_load(&c->pieces[0].left) == 0;
}

/* Every worker may be busy with something that waits for this copy. A fault here is that of the submission.
 */
static void copy_along(drupe_staged_copy *c, uint64_t started)
{
    struct chunk chunk;
    if (!c->alone && drupe_now_ns() - started < ALONE_NS) return;
    pthread_mutex_lock(&c->lock);
    c->alone = c->alone || c->by.begun == 0;
    pthread_mutex_unlock(&c->lock);
    if (c->alone && take_chunk(c, &chunk)) copy_chunk(c, &chunk);
}

/* --- The device ----------------------------------------------------------------------------------------- */

/* Straight to the backend. */
static drupe_status send(drupe_staged_copy *c, size_t index)
{
    struct piece *piece = &c->pieces[index % BUFFERS];
    drupe_queue *queue = c->queue;
    const drupe_backend *backend = queue->base.slot->backend;
    char *buffer = buffer_of(c, index);
    void *dst = c->to_device ? c->dst + piece->offset : buffer;
    const void *src = c->to_device ? buffer : c->src + piece->offset;
    DRUPE_TRY(drupe_loss_check(queue->base.device));
    pthread_mutex_lock(&queue->lock);
    drupe_status status = drupe_event_next(queue, 0, NULL, &piece->event);
    if (status != DRUPE_OK) {
        pthread_mutex_unlock(&queue->lock);
        return status;
    }
    drupe_submit submit = {.queue = queue, .event = piece->event};
    drupe_event_hand_over(piece->event);
    status = backend->submit_copy(&submit, dst, src, piece->bytes);
    drupe_error kept = *drupe_error_last();
    /* A queue that cannot be flushed shows it in its events. */
    bool flush = status == DRUPE_OK && backend->queue_flush;
    if (flush && backend->queue_flush(queue) != DRUPE_OK) drupe_error_restore(&kept);
    pthread_mutex_unlock(&queue->lock);
    if (status == DRUPE_OK) return DRUPE_OK;
    drupe_event_release(piece->event);
    piece->event = NULL;
    return drupe_error_restore(&kept);
}

/* Whether the device's half is over; a failure if it failed. */
static drupe_status look(struct piece *piece, bool *over)
{
    drupe_event_state state = DRUPE_EVENT_COMPLETE;
    const drupe_device *device = piece->event->queue->base.device;
    *over = false;
    if (drupe_device_silent(device)) return drupe_loss_check(device);
    DRUPE_TRY(piece->event->object.backend->event_state(piece->event, &state));
    if (state == DRUPE_EVENT_FAILED) return drupe_error_last()->status;
    *over = state == DRUPE_EVENT_COMPLETE;
    if (!*over) return drupe_loss_check(device); /* what a lost device has begun may have no end */
    drupe_event_release(piece->event);
    piece->event = NULL;
    return DRUPE_OK;
}

/* --- The copy ------------------------------------------------------------------------------------------- */

/* How far it is. Pieces pass in order; each has two halves, and between them it is in its buffer. */
typedef struct progress {
    size_t planned; /* bytes in pieces so far */
    size_t pieces;  /* so many of these */
    size_t copied;  /* by threads */
    size_t sent;    /* to the device, */
    size_t landed;  /* which has copied so many */
} progress;

/* Pieces grow from the beginning of a copy to the device, and shrink towards the end of one from it. */
static size_t piece_size(const drupe_staged_copy *c, size_t done)
{
    size_t left = c->bytes - done, size = c->to_device ? done : left / 2;
    if (!c->ring) return left;
    size = (size + PAGE - 1) / PAGE * PAGE;
    if (size < PIECE_LEAST) size = PIECE_LEAST;
    if (size > PIECE_MOST) size = PIECE_MOST;
    return size < left ? size : left;
}

/* The next piece, when there is a buffer for it. */
static bool plan(drupe_staged_copy *c, progress *p)
{
    size_t out = c->to_device && c->ring ? p->landed : p->copied;
    if (p->planned == c->bytes || p->pieces - out == BUFFERS) return false;
    struct piece *piece = &c->pieces[p->pieces++ % BUFFERS];
    piece->offset = p->planned;
    piece->bytes = piece_size(c, p->planned);
    atomic_store(&piece->left, piece->bytes);
    p->planned += piece->bytes;
    return true;
}

/* One round; `*moved` when something happened. */
static drupe_status advance(drupe_staged_copy *c, progress *p, bool *moved)
{
    size_t opened = atomic_load(&c->opened);
    bool up = c->to_device || !c->ring; /* threads come first */
    *moved = plan(c, p);
    if (p->copied < opened && atomic_load(&c->pieces[p->copied % BUFFERS].left) == 0) {
        p->copied++;
        *moved = true;
    }
    if (c->ring && p->sent < (up ? p->copied : p->pieces)) {
        DRUPE_TRY(send(c, p->sent++));
        *moved = true;
    } else if (p->landed < p->sent) {
        bool over;
        DRUPE_TRY(look(&c->pieces[p->landed % BUFFERS], &over));
        p->landed += over;
        *moved = *moved || over;
    }
    atomic_store(&c->opened, up ? p->pieces : p->landed);
    return DRUPE_OK;
}

static drupe_status cross(drupe_staged_copy *c)
{
    progress p = {0};
    unsigned idle = c->ring ? 0 : WATCH; /* threads alone: they need the processors */
    uint64_t started = drupe_now_ns();
    while (p.planned < c->bytes || p.copied < p.pieces || (c->ring && p.landed < p.pieces)) {
        bool moved;
        if (atomic_load(&c->by.failed)) return drupe_error_restore(&c->by.error);
        DRUPE_TRY(advance(c, &p, &moved));
        if (moved) {
            idle = c->ring ? 0 : WATCH;
            continue;
        }
        copy_along(c, started);
        if (!c->alone) rest(&idle);
    }
    return DRUPE_OK;
}

/* One piece, of which this thread takes its share. Who waits for it is there when the first chunk is copied;
 * else another thread is called. */
static drupe_status copy_through(drupe_staged_copy *c)
{
    struct chunk chunk;
    unsigned idle = 0;
    for (bool first = true; take_chunk(c, &chunk); first = false) {
        copy_chunk(c, &chunk);
        if (first && c->nthreads > 1 && helping(c, 0) == 0) call_thread(c, 1);
    }
    while (atomic_load(&c->pieces[0].left) && !atomic_load(&c->by.failed)) rest(&idle);
    return atomic_load(&c->by.failed) ? drupe_error_restore(&c->by.error) : DRUPE_OK;
}

drupe_status drupe_staged_copy_run(void *user)
{
    drupe_staged_copy *c = user;
    unsigned idle = 0;
    drupe_status status = is_open(c) ? copy_through(c) : cross(c);
    drupe_error kept = *drupe_error_last();
    pthread_mutex_lock(&c->lock); /* nothing is taken afterwards */
    atomic_store(&c->ended, true);
    pthread_mutex_unlock(&c->lock);
    while (atomic_load(&c->by.copying)) rest(&idle);
    if (status != DRUPE_OK) give_up_device(c);
    give_ring_back(c);
    return status == DRUPE_OK ? status : drupe_error_restore(&kept);
}
