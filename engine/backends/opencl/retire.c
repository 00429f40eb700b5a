/* Out-of-order queues of drivers, released once they are finished.
 *
 * A driver may keep such a queue's list of commands alive by the commands themselves: when the program gives
 * up the queue while the last of them ends on a worker of the driver, the worker destroys the list, and waits
 * there for its own command (Intel's runtime for CPUs does). That an event is over does not mean that its
 * command has left the list. So the queue is finished first, on a thread of its own: its owner may be
 * anybody, with the interpreter's lock, or the driver's thread itself. A queue need not keep its sub-device
 * (PoCL's does not), so that is kept here. */
#include "base/service.h"
#include "opencl.h"
#include <stdlib.h>

typedef struct retired {
    const drupe_cl_api *api; /* the library's, which waits for this list before it goes */
    cl_command_queue id;
    cl_device_id part; /* the sub-device that it is of, retained, or NULL */
    struct retired *next;
} retired;

static uint64_t finish_first(void *unused);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static drupe_service finisher = {
    .name = "drupe-retire", .lock = &lock, .step = finish_first, .finishes = true};
static retired *first;

static uint64_t finish_first(void *unused)
{
    (void)unused;
    retired *one = first;
    if (!one) return UINT64_MAX;
    first = one->next;
    pthread_mutex_unlock(&lock);
    one->api->Finish(one->id);
    one->api->ReleaseCommandQueue(one->id);
    if (one->part) one->api->ReleaseDevice(one->part);
    free(one);
    pthread_mutex_lock(&lock);
    return 0;
}

/* The lock is held. Without a thread the list waits for the next one. */
static void start(void)
{
    if (first && drupe_service_start(&finisher) == DRUPE_OK) drupe_service_wake(&finisher);
}

void drupe_cl_retire(const drupe_cl_queue *queue, cl_command_queue id)
{
    retired *one = malloc(sizeof *one), **last = &first;
    cl_device_id part = queue->device->sub ? queue->device->id : NULL;
    if (!one || (part && queue->api->RetainDevice(part) != CL_SUCCESS)) {
        free(one);
        return; /* better kept for good than released too early */
    }
    *one = (retired){queue->api, id, part, NULL};
    pthread_mutex_lock(&lock);
    while (*last) last = &(*last)->next;
    *last = one;
    start();
    pthread_mutex_unlock(&lock);
}

bool drupe_cl_retire_wait(uint64_t timeout_ns)
{
    pthread_mutex_lock(&lock);
    start();
    bool ended = drupe_service_end(&finisher, drupe_deadline(timeout_ns)) == DRUPE_OK;
    if (!ended) drupe_service_abandon(&finisher);
    bool none = ended && !first;
    pthread_mutex_unlock(&lock);
    return none;
}
