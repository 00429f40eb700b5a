/* Submissions: inline when they are small, else as tasks.
 *
 * Inline needs an idle queue and waits that are over, which no other thread can undo: core serialises the
 * calls on one queue, and events do not run backwards. So the inline way takes no lock at all. A kernel
 * counts as small when it has one work-item, since each item is a whole share of the work, and only kernels
 * whose arguments the engine itself has made run inline: a fault of another would be one of the submitting
 * thread. */
#include "backends/host/code.h"
#include "backends/host/groups.h"
#include <stdlib.h>
#include <string.h>

#define INLINE_BYTES  (128u << 10) /* in the time that it takes to hand it over, */
#define INLINE_ASLEEP (4u << 20)   /* and to wake the other one, who comes when most of it could be done, */
#define INLINE_MANY   (512u << 10) /* or several */
#define INLINE_DOUBT  (32u << 10)  /* where a fault would be one of the submitting thread */
#define COPY_SHARE    (256u << 10)
#define COPY_WORTH    8u /* shares that are worth one more thread */
#define INLINE_ARGS   32u

/* --- Inline --------------------------------------------------------------------------------------------- */

static bool can_inline(const drupe_submit *s)
{
    drupe_host_queue *queue = drupe_native(s->queue);
    if (!queue->inlines || drupe_host_queue_backlog(queue)) return false;
    if (s->predecessor && !drupe_host_event_complete(drupe_native(s->predecessor))) return false;
    for (size_t i = 0; i < s->nwaits; i++) {
        if (!drupe_host_event_complete(drupe_native(s->waits[i]))) return false;
    }
    return true;
}

/* Whether the work may be done here; then it begins. */
static bool begin_inline(const drupe_submit *s)
{
    if (!can_inline(s)) return false;
    if (!s->event || !drupe_host_profiling(drupe_native(s->queue))) return true;
    drupe_host_event *event = drupe_native(s->event);
    event->queued = event->submitted = drupe_now_ns();
    atomic_init(&event->started, event->queued);
    return true;
}

/* The same for a copy or fill. */
static bool begin_move(const drupe_submit *s, size_t bytes)
{
    drupe_host_queue *queue = drupe_native(s->queue);
    size_t most = s->sound ? INLINE_BYTES : INLINE_DOUBT;
    drupe_host_tpool *pool = &queue->sched->compute;
    if (s->sound && bytes > most && drupe_host_tpool_asleep(pool))
        most = atomic_load_explicit(&pool->count, memory_order_relaxed) > 2 ? INLINE_MANY : INLINE_ASLEEP;
    return bytes <= most && begin_inline(s);
}

static drupe_status end_inline(const drupe_submit *s)
{
    if (s->done) *s->done = true;
    if (!s->event) return DRUPE_OK;
    drupe_host_event *event = drupe_native(s->event);
    if (drupe_host_profiling(drupe_native(s->queue))) event->ended = drupe_now_ns();
    drupe_host_event_close_complete(event);
    return DRUPE_OK;
}

/* --- Built-in kernels
 * -------------------------------------------------------------------------------------------- */

static void kernel_body(drupe_host_task *task, size_t begin, size_t end)
{
    task->builtin->fn(begin, end, task->items, task->args);
}

static drupe_status check_kernel(const drupe_range *range)
{
    if (range->dims == 1 && !range->offset[0]) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "Kernels of the host device take one-dimensional ranges "
                                                "without an offset.");
}

static size_t value_size(const drupe_arg *arg)
{
    return arg->kind == DRUPE_ARG_POINTER ? sizeof(void *)
           : arg->kind == DRUPE_ARG_LOCAL ? sizeof arg->size
                                          : arg->size;
}

/* Behind `first`, which may be absent. */
static drupe_status copy_args(drupe_host_task *task, const drupe_arg *first, const drupe_arg *args,
                              size_t nargs)
{
    size_t bytes = first ? drupe_round16(first->size) : 0, at = 0;
    for (size_t i = 0; i < nargs; i++) bytes += drupe_round16(value_size(&args[i]));
    unsigned char *values;
    DRUPE_TRY(drupe_host_task_room(task, nargs + (first ? 1 : 0), bytes, &values));
    for (size_t i = 0; i < nargs + (first ? 1 : 0); i++) {
        const drupe_arg *arg = first && i == 0 ? first : &args[at++];
        if (arg->kind == DRUPE_ARG_LOCAL && !first)
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "Built-in kernels have no local memory.");
        memcpy(values, arg->kind == DRUPE_ARG_LOCAL ? &arg->size : arg->value, value_size(arg));
        task->args[i] = values;
        values += drupe_round16(value_size(arg));
    }
    return DRUPE_OK;
}

/* The kernel over `items` as a task; `first` as in copy_args(). */
static drupe_status queue_kernel(const drupe_submit *s, const drupe_host_kernel *kernel,
                                 const drupe_arg *first, const drupe_arg *args, size_t nargs, size_t items)
{
    drupe_host_task *task;
    DRUPE_TRY(drupe_host_task_new(s, &task));
    drupe_status status = copy_args(task, first, args, nargs);
    if (status != DRUPE_OK) {
        drupe_host_task_free(task);
        return status;
    }
    task->kind = DRUPE_HOST_KERNEL;
    task->body = kernel_body;
    task->builtin = kernel->builtin;
    task->code = kernel->code ? drupe_host_code_retain(kernel->code) : NULL;
    task->groups = kernel->code && kernel->code->entries[kernel->entry].block[0];
    task->items = items;
    task->grain = items / ((size_t)task->count * 8);
    if (task->grain == 0) task->grain = 1;
    task->worth = task->grain;
    return drupe_host_task_queue(s, task);
}

/* --- Kernels of the user ---------------------------------------------------------------------------------
 */

/* Sizes that the declared types do not tell core: those of structures. */
static drupe_status check_sizes(const drupe_host_kernel *kernel, const drupe_arg *args, size_t nargs)
{
    const drupe_host_param *params = kernel->code->entries[kernel->entry].params;
    for (size_t i = 0; i < nargs; i++) {
        if (value_size(&args[i]) == params[i].bytes || args[i].kind == DRUPE_ARG_LOCAL) continue;
        return drupe_error_set(DRUPE_E_INVALID, "Argument %zu of '%s' (%s %s) takes %u bytes, not %zu.", i,
                               kernel->builtin->name, params[i].type, params[i].name, params[i].bytes,
                               value_size(&args[i]));
    }
    return DRUPE_OK;
}

static drupe_status submit_code(const drupe_submit *s, const drupe_host_kernel *kernel,
                                const drupe_range *range, const drupe_arg *args, size_t nargs)
{
    drupe_host_range whole = {{1, 1, 1}, {0, 0, 0}, drupe_host_group_run, drupe_host_group_barrier};
    const size_t *block = kernel->code->entries[kernel->entry].block;
    size_t items = 1;
    DRUPE_TRY(check_sizes(kernel, args, nargs));
    for (uint32_t d = 0; d < 3; d++) {
        if (d < range->dims) {
            whole.size[d] = range->global[d];
            whole.offset[d] = range->offset[d];
        }
        const size_t by = block[d] ? block[d] : 1;
        if (whole.size[d] % by)
            return drupe_error_set(DRUPE_E_INVALID, "'%s': the size %zu is no multiple of the groups' %zu.",
                                   kernel->builtin->name, whole.size[d], by);
        if (__builtin_mul_overflow(items, whole.size[d] / by, &items))
            return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "'%s': there are too many work-items.",
                                   kernel->builtin->name);
    }
    const drupe_arg first = {DRUPE_ARG_VALUE, sizeof whole, &whole};
    return queue_kernel(s, kernel, &first, args, nargs, items);
}

drupe_status drupe_host_submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                      const drupe_arg *args, size_t nargs)
{
    const drupe_host_kernel *native = drupe_native(kernel);
    if (native->code) return submit_code(s, native, range, args, nargs);
    DRUPE_TRY(check_kernel(range));
    if (native->inlines && range->global[0] == 1 && nargs <= INLINE_ARGS && begin_inline(s)) {
        const void *values[INLINE_ARGS];
        for (size_t i = 0; i < nargs; i++) values[i] = args[i].value;
        native->builtin->fn(0, 1, 1, values);
        return end_inline(s);
    }
    return queue_kernel(s, native, NULL, args, nargs, range->global[0]);
}

/* --- Copy and fill -------------------------------------------------------------------------------------- */

static void share_of(const drupe_host_task *task, size_t begin, size_t end, size_t *offset, size_t *bytes)
{
    *offset = begin * COPY_SHARE;
    *bytes = (end == task->items ? task->bytes : end * COPY_SHARE) - *offset;
}

static void copy_body(drupe_host_task *task, size_t begin, size_t end)
{
    size_t offset, bytes;
    share_of(task, begin, end, &offset, &bytes);
    drupe_copy_bytes((char *)task->dst + offset, (const char *)task->src + offset, bytes);
}

/* Doubles what is already filled, so that all but the first bytes move in large pieces. */
static void fill(char *dst, const void *pattern, size_t pattern_size, size_t bytes)
{
    if (pattern_size == 1) {
        memset(dst, *(const unsigned char *)pattern, bytes);
        return;
    }
    memcpy(dst, pattern, pattern_size);
    for (size_t done = pattern_size; done < bytes;) {
        size_t piece = done < bytes - done ? done : bytes - done;
        if (piece > 16384) piece = 16384;
        memcpy(dst + done, dst, piece);
        done += piece;
    }
}

static void fill_body(drupe_host_task *task, size_t begin, size_t end)
{
    size_t offset, bytes;
    share_of(task, begin, end, &offset, &bytes);
    fill((char *)task->dst + offset, task->values, task->pattern_size, bytes);
}

/* The whole of a copy or fill as a task, in shares. */
static drupe_status queue_move(const drupe_submit *s, drupe_host_task *task, size_t bytes)
{
    task->bytes = bytes;
    task->items = (bytes + COPY_SHARE - 1) / COPY_SHARE;
    task->grain = 1;
    task->worth = COPY_WORTH;
    return drupe_host_task_queue(s, task);
}

drupe_status drupe_host_submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    if (begin_move(s, bytes)) {
        drupe_copy_bytes(dst, src, bytes);
        return end_inline(s);
    }
    drupe_host_task *task;
    DRUPE_TRY(drupe_host_task_new(s, &task));
    task->body = copy_body;
    task->dst = dst;
    task->src = src;
    return queue_move(s, task, bytes);
}

drupe_status drupe_host_submit_fill(const drupe_submit *s, void *dst, const void *pattern,
                                    size_t pattern_size, size_t bytes)
{
    if (begin_move(s, bytes)) {
        fill(dst, pattern, pattern_size, bytes);
        return end_inline(s);
    }
    drupe_host_task *task;
    DRUPE_TRY(drupe_host_task_new(s, &task));
    task->body = fill_body;
    task->dst = dst;
    memcpy(task->values, pattern, pattern_size);
    task->pattern_size = pattern_size;
    return queue_move(s, task, bytes);
}

/* --- Barrier and host function -------------------------------------------------------------------------- */

drupe_status drupe_host_submit_barrier(const drupe_submit *s)
{
    if (begin_inline(s)) return end_inline(s);
    drupe_host_task *task;
    DRUPE_TRY(drupe_host_task_new(s, &task));
    task->items = 0;
    return drupe_host_task_queue(s, task);
}

static void host_body(drupe_host_task *task, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    drupe_status status = task->fn(task->user);
    if (status == DRUPE_OK) return;
    if (drupe_error_last()->status != status) {
        drupe_error_set(status, "The host function answered %s without a reason.", drupe_status_name(status));
    }
    atomic_store(&task->error, drupe_host_error_copy(drupe_error_last()));
    atomic_store(&task->failed, true);
}

/* The function has run on the submitting thread, and failed: the failure arrives like that of any other. */
static void failed_body(drupe_host_task *task, size_t begin, size_t end)
{
    (void)begin;
    (void)end;
    atomic_store(&task->failed, true);
}

static drupe_status queue_failure(const drupe_submit *s, drupe_status status)
{
    drupe_host_task *task;
    if (drupe_error_last()->status != status)
        drupe_error_set(status, "The host function answered %s without a reason.", drupe_status_name(status));
    drupe_error *error = drupe_host_error_copy(drupe_error_last());
    status = drupe_host_task_new(s, &task);
    if (status != DRUPE_OK) {
        free(error);
        return status;
    }
    task->kind = DRUPE_HOST_FUNCTION;
    task->body = failed_body;
    task->fn = NULL;
    task->user = NULL;
    atomic_store(&task->error, error);
    return drupe_host_task_queue(s, task);
}

static drupe_status copy_user(drupe_host_task *task, const void *bytes, size_t size)
{
    unsigned char *copy;
    DRUPE_TRY(drupe_host_task_room(task, 0, size, &copy));
    memcpy(copy, bytes, size);
    task->user = copy;
    return DRUPE_OK;
}

drupe_status drupe_host_submit_host(const drupe_submit *s, drupe_host_fn fn, void *user)
{
    drupe_host_task *task;
    if (s->brief && begin_inline(s)) {
        drupe_status status = fn(user);
        return status == DRUPE_OK ? end_inline(s) : queue_failure(s, status);
    }
    DRUPE_TRY(drupe_host_task_new(s, &task));
    task->kind = DRUPE_HOST_FUNCTION;
    task->body = host_body;
    task->fn = fn;
    task->user = user;
    if (s->copied) {
        drupe_status status = copy_user(task, user, s->copied);
        if (status != DRUPE_OK) {
            drupe_host_task_free(task);
            return status;
        }
    }
    task->tpool = &task->queue->sched->functions;
    task->first = 0;
    task->count = task->tpool->most;
    return drupe_host_task_queue(s, task);
}
