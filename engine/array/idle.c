/* The thread "drupe-settle": what is pending is submitted by itself once its queue has nothing to do.
 *
 * A program that has asked for something and goes on with other things would find it undone otherwise. The
 * thread looks at the lists at intervals while there are any, and sleeps for good after a while without. */
#include "array/node.h"
#include "base/service.h"
#include <stdatomic.h>

#define LOOK_NS    UINT64_C(1000000)
#define IDLE_NS    UINT64_C(2000000)  /* without a new node, where the queue has nothing to do */
#define BUSY_NS    UINT64_C(20000000) /* the same where it has */
#define LOOKS_MORE 200                /* without finding anything, before it sleeps for good */

static uint64_t step(void *user);

static struct {
    drupe_service service;
    _Atomic(bool) looking; /* it comes by itself */
    unsigned looks;        /* without anything pending */
} idle = {.service = {.name = "drupe-settle", .step = step}};

/* A queue, retained, whose work nobody has added to for some time. Needs the lock. */
static drupe_queue *find_idle(uint64_t now)
{
    for (pending_list *list = drupe_pending_lists(); list; list = list->next) {
        if (!list->first || list->settling || list->refused || now < list->touched + IDLE_NS) continue;
        if (now >= list->touched + BUSY_NS || drupe_queue_pending(list->queue) == 0)
            return drupe_queue_retain(list->queue);
    }
    return NULL;
}

/* With the lock of nodes and lists, as the service has it. */
static uint64_t step(void *user)
{
    (void)user;
    drupe_queue *queue;
    const uint64_t now = drupe_now_ns();
    while (!idle.service.stopping && (queue = find_idle(now))) {
        drupe_pending_unlock();
        const drupe_status status = drupe_pending_settle(queue, NULL);
        drupe_pending_lock();
        pending_list *list = drupe_pending_list(queue);
        if (list && status != DRUPE_OK) list->refused = true; /* whoever needs the values is told */
        drupe_pending_unlock();
        drupe_queue_release(queue);
        drupe_pending_lock();
    }
    idle.looks = drupe_pending_lists() ? 0 : idle.looks + 1;
    if (idle.looks < LOOKS_MORE) return now + LOOK_NS;
    atomic_store(&idle.looking, false);
    return UINT64_MAX;
}

void drupe_idle_tell(pending_list *list)
{
    list->touched = drupe_now_ns();
    list->refused = false;
    if (atomic_load_explicit(&idle.looking, memory_order_relaxed)) return;
    idle.looks = 0;
    idle.service.lock = drupe_pending_mutex();
    if (drupe_service_start(&idle.service) != DRUPE_OK) return; /* then the next that needs them settles */
    atomic_store(&idle.looking, true);
    drupe_service_wake(&idle.service);
}

void drupe_idle_stop(void)
{
    drupe_pending_lock();
    idle.service.lock = drupe_pending_mutex();
    drupe_service_stop(&idle.service);
    atomic_store(&idle.looking, false);
    drupe_pending_unlock();
}
