/* A worker has faulted in a kernel or a host function, and is parked.
 *
 * It held no lock of ours, since it was in the work itself. Its share counts as done, the rest of the task is
 * not begun, and a new thread takes its place under the same number. On the queue everything behind fails
 * with the same error, which core turns into dependents of the first. */
#include "backends/host/host.h"
#include <stdio.h>
#include <stdlib.h>

static drupe_error *copy_of(const drupe_error *error)
{
    drupe_error *copy = malloc(sizeof *copy);
    if (copy) *copy = *error;
    return copy;
}

static drupe_error *describe(const drupe_host_worker *worker, const drupe_host_task *task,
                             const drupe_fault *fault)
{
    char what[256], where[96] = "";
    drupe_core_fault_text(fault, what, sizeof what);
    const char *kind = task->builtin ? "kernel '" : task->fn ? "host function" : "copy or fill";
    if (task->builtin) {
        snprintf(where, sizeof where, " in the work-items %zu to %zu of %zu", atomic_load(&worker->begin),
                 atomic_load(&worker->end) - 1, task->items);
    }
    drupe_error_set_native(
        DRUPE_E_DEVICE_LOST, "host", fault->signal, NULL,
        "The %s%s%s faulted%s: %s. The worker that ran it is given up and another one started; "
        "the host device works on. Check the sizes and pointers that the work was given.",
        kind, task->builtin ? task->builtin->name : "", task->builtin ? "'" : "", where, what);
    return copy_of(drupe_error_last());
}

/* Before the task gives its error to its event. */
void drupe_host_fault_spread(const drupe_host_task *task, drupe_host_task *behind)
{
    behind->failed = behind->faulted = true;
    if (!behind->error && task->error) behind->error = copy_of(task->error);
}

static void fail(drupe_host_worker *worker, const drupe_fault *fault)
{
    drupe_host_task *task = worker->task;
    drupe_host_queue *queue = task->queue;
    atomic_store(&task->cursor, task->items);
    task->failed = task->faulted = true;
    if (!task->error) task->error = describe(worker, task, fault);
    if (!queue->error && task->error) queue->error = copy_of(task->error);
    atomic_store(&queue->faulted, queue->error != NULL);
    drupe_host_pool_leave(worker, task);
}

drupe_status drupe_host_device_fault(drupe_device *device, const drupe_fault *fault)
{
    drupe_host_pool *pool = ((const drupe_host_device *)drupe_native(device))->pool;
    if (fault->owner != pool) return DRUPE_E_NOT_FOUND;
    drupe_host_worker *worker = &pool->workers[fault->index];
    pthread_mutex_lock(&pool->lock);
    fail(worker, fault);
    pthread_detach(worker->thread);
    worker->started = false;
    atomic_store(&worker->busy, 0);
    /* Without memory for a thread the next task tries again. */
    drupe_status status = drupe_host_pool_start(pool, fault->index, 1);
    pthread_mutex_unlock(&pool->lock);
    (void)status;
    return DRUPE_OK;
}
