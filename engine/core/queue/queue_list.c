/* The list of all queues. */
#include "core/queue/launch.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, drupe_queue) all;
_Atomic(const drupe_checker *) drupe_checker_now;

/* From now on others may find it. */
void drupe_queue_join(drupe_queue *queue)
{
    pthread_mutex_lock(&all_lock);
    LIST_INSERT_HEAD(&all, queue, link);
    pthread_mutex_unlock(&all_lock);
}

void drupe_queue_leave(drupe_queue *queue)
{
    pthread_mutex_lock(&all_lock);
    if (queue->link.le_prev) LIST_REMOVE(queue, link); /* else it could not be opened */
    pthread_mutex_unlock(&all_lock);
}

drupe_queue *drupe_queue_walk(drupe_queue *queue)
{
    pthread_mutex_lock(&all_lock);
    drupe_queue *next = queue ? LIST_NEXT(queue, link) : LIST_FIRST(&all);
    for (; next; next = LIST_NEXT(next, link)) {
        uint32_t seen = atomic_load(&next->base.inner);
        while (seen && !atomic_compare_exchange_weak(&next->base.inner, &seen, seen + 1)) {}
        if (seen) break;
    }
    pthread_mutex_unlock(&all_lock);
    if (queue) drupe_queue_inner_release(queue);
    return next;
}

size_t drupe_queue_list(drupe_queue **queues, size_t capacity)
{
    size_t count = 0;
    if (atomic_load(&drupe_core_forked)) return 0;
    pthread_mutex_lock(&all_lock);
    for (drupe_queue *queue = LIST_FIRST(&all); queue && count < capacity; queue = LIST_NEXT(queue, link)) {
        if (drupe_object_try_retain(queue)) queues[count++] = queue;
    }
    pthread_mutex_unlock(&all_lock);
    return count;
}
