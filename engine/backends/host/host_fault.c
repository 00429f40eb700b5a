/* A worker has faulted in a kernel, a copy or a host function.
 *
 * It held no lock of ours, since it was in the work itself. Its share counts as done, the rest of the task is
 * not begun. On the queue everything behind fails with the same error, which core turns into dependents of
 * the first.
 *
 * The kernels of the engine and copies hold nothing at all, so the worker jumps back into its loop. So does
 * one with a kernel in C that faults in its own code, unless that calls what nobody knows (imports.c).
 * Otherwise the thread is lost, and a new one takes its place under the same number. */
#include "backends/host/code.h"
#include "backends/host/groups.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define DEEP ((size_t)256 << 10) /* more of a stack is given back after a fault */

/* --- Getting out -----------------------------------------------------------------------------------------
 */

/* What the work may have set. */
static void reset_processor(void)
{
#if defined(__x86_64__)
    const uint32_t control = 0x1f80;
    __asm__ volatile("fninit\n\tldmxcsr %0" ::"m"(control));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
#endif
}

static void resume(void *user)
{
    drupe_recovery *recovery = user;
    drupe_host_worker *worker =
        (drupe_host_worker *)((char *)recovery - offsetof(drupe_host_worker, recovery));
    reset_processor();
    longjmp(worker->landing, 1);
}

/* Its own frame lies below those of its callers, and is free once it has returned. */
__attribute__((noinline)) void drupe_host_worker_receive(drupe_host_worker *worker)
{
    worker->recovery.resume = resume;
    worker->recovery.stack = (uintptr_t)__builtin_frame_address(0);
}

void drupe_host_worker_prepare(drupe_host_worker *worker, const drupe_host_task *task)
{
    drupe_recovery *recovery = &worker->recovery;
    recovery->way = task->kind == DRUPE_HOST_FUNCTION ? DRUPE_WAY_PARK : DRUPE_WAY_ON;
    if (task->kind != DRUPE_HOST_KERNEL || !task->code) return;
    recovery->way = task->code->recovery.way;
    recovery->code = task->code->recovery.code;
    recovery->code_size = task->code->recovery.code_size;
}

/* A recursion without end has touched all of the stack. */
static void shed_stack(const drupe_host_worker *worker)
{
    pthread_attr_t attributes;
    void *low;
    size_t size, guard, page = drupe_page_size();
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    bool known = pthread_attr_getstack(&attributes, &low, &size) == 0 &&
                 pthread_attr_getguardsize(&attributes, &guard) == 0;
    pthread_attr_destroy(&attributes);
    uintptr_t begin = (uintptr_t)low + page, end = (worker->recovery.stack - DEEP) & ~(page - 1);
    uintptr_t fault = worker->recovery.fault.address;
    bool overflow = known && fault - ((uintptr_t)low - guard) < size + guard;
    if (overflow && end > begin) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* --- What becomes of the work ----------------------------------------------------------------------------
 */

static drupe_error *describe(const drupe_host_worker *worker, const drupe_host_task *task,
                             const drupe_fault *fault)
{
    char what[512], where[96] = "";
    drupe_status status = drupe_core_fault_text(fault, what, sizeof what);
    static const char *const kinds[] = {"copy or fill", "kernel '", "host function"};
    const char *name = task->kind == DRUPE_HOST_KERNEL ? task->builtin->name : NULL;
    if (name) {
        snprintf(where, sizeof where, " in the work-%s %zu to %zu of %zu", task->groups ? "groups" : "items",
                 atomic_load(&worker->begin), atomic_load(&worker->end) - 1, task->items);
    }
    const bool full = name && task->groups && drupe_host_group_full((uintptr_t)fault->address);
    drupe_error_set_native(status, "host", fault->signal, NULL,
                           "%she %s%s%s faulted%s: %s%s. The host device works on. Check the sizes and "
                           "pointers that the work was "
                           "given; with drupe.checked(): finds whose memory it was.",
                           status == DRUPE_E_CHECK ? "Out of bounds: t" : "T", kinds[task->kind],
                           name ? name : "", name ? "'" : "", where, what,
                           full ? "; its variables do not fit on the stack of a work-item, 64 KiB" : "");
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
    pthread_mutex_lock(&queue->sched->lock);
    if (!task->event && !queue->error) {
        queue->error = copy;
        copy = NULL;
    }
    atomic_store(&queue->faulted, queue->error != NULL);
    pthread_mutex_unlock(&queue->sched->lock);
    free(copy);
    if (drupe_host_worker_leave(task)) drupe_host_task_finish(task);
}

void drupe_host_worker_recover(drupe_host_worker *worker)
{
    drupe_host_task *task = worker->task;
    shed_stack(worker);
    /* One of several that fault in one task says why. */
    bool first = !atomic_load(&task->error);
    drupe_error *error = first ? describe(worker, task, &worker->recovery.fault) : NULL;
    atomic_store_explicit(&worker->busy, 0, memory_order_release);
    fail(task, error);
}

drupe_status drupe_host_device_fault(drupe_device *device, const drupe_fault *fault)
{
    drupe_host_sched *sched = ((const drupe_host_device *)drupe_native(device))->sched;
    drupe_host_tpool *tpool = fault->owner == &sched->compute ? &sched->compute : &sched->functions;
    if (fault->owner != tpool) return DRUPE_E_NOT_FOUND;
    drupe_host_worker *worker = &tpool->workers[fault->index];
    drupe_host_task *task = worker->task;
    drupe_error *error = describe(worker, task, fault);
    if (!fault->ended) atomic_store(&task->stuck, true);
    /* The work's end comes last: whoever hears of it may close the device, which joins its threads. */
    drupe_host_worker_replace(worker, fault->ended);
    fail(task, error);
    return DRUPE_OK;
}
