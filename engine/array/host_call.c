/* Functions of the host over arrays, as work of their queue.
 *
 * Where the host can address the memory (the host device, CPUs behind OpenCL) the function gets the arrays'
 * own addresses, so nothing is copied. Elsewhere it works on copies, which the same queue fills before and
 * brings back after. That is slow, so the caller is to be told, once, and may forbid it. */
#include "array/array_room.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of all operands below which the submitting thread may do the work itself: it takes less time than to
 * wake another, even of what takes the cube of a length. */
#define BRIEF_BYTES 4096

/* One block, dropped by the last submission that uses it: parameters, then the copies. */
typedef struct call_block {
    _Atomic(size_t) references;
    drupe_call_fn fn;
    void *pointers[DRUPE_CALL_ARRAYS];
    _Alignas(64) char bytes[];
} call_block;

static struct {
    pthread_once_t once;
    _Atomic(bool) forbidden, told;
    _Atomic(const char *) label; /* of the first call that was staged and nobody was told of */
} staging = {.once = PTHREAD_ONCE_INIT};

static void staging_read(void)
{
    const char *wanted = getenv("DRUPE_HOST_COPIES");
    atomic_store(&staging.forbidden, wanted && strcmp(wanted, "0") == 0);
}

void drupe_array_staging_allow(bool allowed)
{
    pthread_once(&staging.once, staging_read);
    atomic_store(&staging.forbidden, !allowed);
}

bool drupe_array_staging_allowed(void)
{
    pthread_once(&staging.once, staging_read);
    return !atomic_load(&staging.forbidden);
}

const char *drupe_array_staged(void)
{
    if (!atomic_load_explicit(&staging.label, memory_order_relaxed)) return NULL;
    return atomic_exchange(&staging.label, NULL);
}

static void block_release(void *user)
{
    call_block *block = user;
    if (atomic_fetch_sub(&block->references, 1) == 1) free(block);
}

static drupe_keep block_keep(call_block *block)
{
    atomic_fetch_add(&block->references, 1);
    return (drupe_keep){block, block_release};
}

static drupe_status block_run(void *user)
{
    const call_block *block = user;
    return block->fn(block->pointers, block->bytes);
}

static size_t round64(size_t size)
{
    return (size + 63) & ~(size_t)63;
}

static size_t bytes_of(const drupe_array *array)
{
    return array->size * drupe_dtype_size(array->dtype);
}

/* A block with the parameters and, if `copies`, room for every array. One reference is the caller's. */
static call_block *block_new(const drupe_call *call, bool copies)
{
    size_t size = sizeof(call_block) + round64(call->params_size);
    for (size_t i = 0; copies && i < call->count; i++) size += round64(bytes_of(call->arrays[i]));
    call_block *block = aligned_alloc(64, round64(size));
    if (!block) return NULL;
    memset(block, 0, sizeof *block);
    atomic_store(&block->references, 1);
    block->fn = call->fn;
    if (call->params_size) memcpy(block->bytes, call->params, call->params_size);
    char *next = block->bytes + round64(call->params_size);
    for (size_t i = 0; i < call->count; i++) {
        block->pointers[i] = copies ? next : drupe_array_pointer(call->arrays[i]);
        if (copies) next += round64(bytes_of(call->arrays[i]));
    }
    return block;
}

/* --- On the memory itself ------------------------------------------------------------------------------- */

static drupe_status call_direct(const drupe_call *call, drupe_queue *queue, bool checked, call_block *block)
{
    drupe_keep keeps[DRUPE_CALL_ARRAYS + 1] = {block_keep(block)};
    drupe_access accesses[DRUPE_CALL_ARRAYS];
    drupe_effects effects = {0};
    size_t naccesses = 0, bytes = 0;
    for (size_t i = 0; i < call->count; i++) {
        const drupe_array *array = call->arrays[i];
        const bool reads = call->reads >> i & 1, writes = call->writes >> i & 1;
        keeps[i + 1] = drupe_memory_keep(array->memory, queue);
        bytes += bytes_of(array);
        if (reads) effects.reads |= UINT64_C(2) << i;
        if (writes) effects.writes |= UINT64_C(2) << i;
        if (writes && !reads && drupe_array_covers(array)) effects.replaces |= UINT64_C(2) << i;
        if (checked && array->size) accesses[naccesses++] = drupe_layout_access(array, writes);
    }
    const drupe_submission s = {.queue = queue,
                                .ordered = true,
                                .brief = !checked && bytes <= BRIEF_BYTES,
                                .checks_first = call->checks_first,
                                .keeps = keeps,
                                .nkeeps = call->count + 1,
                                .label = call->label,
                                .effects = &effects,
                                .accesses = accesses,
                                .naccesses = naccesses};
    return drupe_submit_host(&s, block_run, block, NULL);
}

/* --- On copies ------------------------------------------------------------------------------------------ */

static drupe_status copy_one(drupe_queue *queue, call_block *block, void *dst, const void *src, size_t bytes,
                             drupe_event *const *after)
{
    const drupe_keep keep = block_keep(block);
    const drupe_submission s = {.queue = queue,
                                .ordered = true,
                                .keeps = &keep,
                                .nkeeps = 1,
                                .waits = after,
                                .nwaits = after ? 1 : 0};
    return drupe_submit_copy(&s, dst, src, bytes, NULL);
}

static drupe_status copies_in(const drupe_call *call, drupe_queue *queue, call_block *block)
{
    for (size_t i = 0; i < call->count; i++) {
        const drupe_array *array = call->arrays[i];
        if (!(call->reads >> i & 1) || !array->size) continue;
        DRUPE_TRY(
            copy_one(queue, block, block->pointers[i], drupe_array_pointer(array), bytes_of(array), NULL));
    }
    return DRUPE_OK;
}

/* `done`: what they wait for by name, so that nothing is copied back of work that failed. */
static drupe_status copies_out(const drupe_call *call, drupe_queue *queue, call_block *block,
                               drupe_event *done)
{
    for (size_t i = 0; i < call->count; i++) {
        const drupe_array *array = call->arrays[i];
        if (!(call->writes >> i & 1) || !array->size) continue;
        DRUPE_TRY(
            copy_one(queue, block, drupe_array_pointer(array), block->pointers[i], bytes_of(array), &done));
    }
    return DRUPE_OK;
}

static drupe_status staging_tell(const drupe_call *call, const drupe_queue *queue)
{
    if (!drupe_array_staging_allowed())
        return drupe_error_set(
            DRUPE_E_UNSUPPORTED,
            "%s has no kernel for %s, and computing it on the host, with copies there and "
            "back, is forbidden: allow it with drupe.array.allow_host_copies(), or compute on a "
            "CPU device",
            call->label, drupe_device_filter(drupe_queue_device(queue)));
    if (!atomic_exchange(&staging.told, true)) atomic_store(&staging.label, call->label);
    return DRUPE_OK;
}

static drupe_status call_staged(const drupe_call *call, drupe_queue *queue, call_block *block)
{
    drupe_event *done = NULL;
    DRUPE_TRY(copies_in(call, queue, block));
    drupe_keep keeps[2] = {block_keep(block)};
    drupe_effects effects = {0};
    if (call->doubted) {
        keeps[1] = drupe_memory_keep(call->doubted->memory, queue);
        effects.reads = effects.writes = 2;
    }
    const drupe_submission s = {.queue = queue,
                                .ordered = true,
                                .keeps = keeps,
                                .nkeeps = call->doubted ? 2 : 1,
                                .label = call->label,
                                .effects = &effects};
    DRUPE_TRY(drupe_submit_host(&s, block_run, block, &done));
    drupe_status status = copies_out(call, queue, block, done);
    drupe_event_release(done);
    return status;
}

/* --- The whole ------------------------------------------------------------------------------------------ */

drupe_status drupe_array_call(const drupe_call *call)
{
    drupe_target *target;
    drupe_queue *queue = call->arrays[0]->queue;
    DRUPE_TRY(drupe_target_get(queue, &target));
    DRUPE_TRY(drupe_queue_pace(queue));
    const bool direct = !drupe_target_remote(target);
    if (!direct && !call->brief) DRUPE_TRY(staging_tell(call, queue));
    call_block *block = block_new(call, !direct);
    if (!block) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory on the host for %s.", call->label);
    drupe_status status =
        direct ? call_direct(call, queue, target->checked, block) : call_staged(call, queue, block);
    block_release(block);
    return status;
}
