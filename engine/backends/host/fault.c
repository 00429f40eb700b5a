/* A worker has faulted in a kernel or a host function, and is parked.
 *
 * It held no lock of ours, since it was in the work itself. Its share counts as done, the rest of the task is
 * not begun, and a new thread takes its place under the same number. On the queue everything behind fails
 * with the same error, which core turns into dependents of the first. */
#include "backends/host/host.h"
#include <stdio.h>
#include <stdlib.h>

drupe_error *drupe_host_error_copy(const drupe_error *error)
{
    drupe_error *copy = malloc(sizeof *copy);
    if (copy) *copy = *error;
    return copy;
}

static drupe_error *describe(const drupe_host_worker *worker, const drupe_host_task *task,
                             const drupe_fault *fault)
{
    char what[512], where[96] = "";
    drupe_status status = drupe_core_fault_text(fault, what, sizeof what);
    static const char *const kinds[] = {"copy or fill", "kernel '", "host function"};
    const char *name = task->kind == DRUPE_HOST_KERNEL ? task->builtin->name : NULL;
    if (name) {
        snprintf(where, sizeof where, " in the work-items %zu to %zu of %zu", atomic_load(&worker->begin),
                 atomic_load(&worker->end) - 1, task->items);
    }
    drupe_error_set_native(
        status, "host", fault->signal, NULL,
        "%she %s%s%s faulted%s: %s. The worker that ran it is given up and another one started; "
        "the host device works on. Check the sizes and pointers that the work was given.",
        status == DRUPE_E_CHECK ? "Out of bounds: t" : "T", kinds[task->kind], name ? name : "",
        name ? "'" : "", where, what);
    return drupe_host_error_copy(drupe_error_last());
}

/* Several workers may fault in one task; the first says why. Takes `error`. */
static void fail(drupe_host_task *task, drupe_error *error)
{
    drupe_host_queue *queue = task->queue;
    drupe_error *none = NULL, *copy = error ? drupe_host_error_copy(error) : NULL;
    atomic_store(&task->cursor, task->items);
    if (!atomic_compare_exchange_strong(&task->error, &none, error)) free(error);
    atomic_store(&task->failed, true);
    atomic_store(&task->faulted, true);
    /* An event tells of it by itself, and says who. */
    pthread_mutex_lock(&queue->pool->lock);
    if (!task->event && !queue->error) {
        queue->error = copy;
        copy = NULL;
    }
    atomic_store(&queue->faulted, queue->error != NULL);
    pthread_mutex_unlock(&queue->pool->lock);
    free(copy);
    drupe_host_worker_leave(task);
}

drupe_status drupe_host_device_fault(drupe_device *device, const drupe_fault *fault)
{
    drupe_host_pool *pool = ((const drupe_host_device *)drupe_native(device))->pool;
    drupe_host_crew *crew = fault->owner == &pool->compute ? &pool->compute : &pool->functions;
    if (fault->owner != crew) return DRUPE_E_NOT_FOUND;
    drupe_host_worker *worker = &crew->workers[fault->index];
    drupe_host_task *task = worker->task;
    drupe_error *error = describe(worker, task, fault);
    /* The work's end comes last: whoever hears of it may close the device, which joins its threads. */
    drupe_host_worker_replace(worker);
    fail(task, error);
    return DRUPE_OK;
}
