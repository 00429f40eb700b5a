/* Out-of-order queues of drivers, released once they are finished.
 *
 * A driver may keep such a queue's list of commands alive by the commands themselves: when the program gives
 * up the queue while the last of them ends on a worker of the driver, the worker destroys the list, and waits
 * there for its own command (Intel's runtime for CPUs does). That an event is over does not mean that its
 * command has left the list. So the queue is finished first, on a thread of its own: its owner may be
 * anybody, with the interpreter's lock, or the driver's thread itself. A queue need not keep its sub-device
 * (PoCL's does not), so that is kept here. */
#include "opencl.h"
#include <stdlib.h>

typedef struct retired {
    const drupe_cl_api *api; /* the library's, which waits for this list before it goes */
    cl_command_queue id;
    cl_device_id part; /* the sub-device that it is of, retained, or NULL */
    struct retired *next;
} retired;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static retired *first;
static bool running; /* the thread is there, and sees what is put into the list until it goes */

static void prepare(void)
{
    if (drupe_cond_init(&changed) != DRUPE_OK) (void)pthread_cond_init(&changed, NULL);
}

static void *retire_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (first) {
        retired *one = first;
        pthread_mutex_unlock(&lock);
        one->api->Finish(one->id);
        one->api->ReleaseCommandQueue(one->id);
        if (one->part) one->api->ReleaseDevice(one->part);
        pthread_mutex_lock(&lock);
        first = one->next;
        free(one);
    }
    running = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The lock is held. */
static bool start(void)
{
    pthread_t thread;
    if (drupe_thread_start(&thread, retire_main, NULL, "drupe-retire") != DRUPE_OK) return false;
    pthread_detach(thread);
    return true;
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
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
    while (*last) last = &(*last)->next;
    *last = one;
    if (!running) running = start(); /* without a thread it waits for the next one */
    pthread_mutex_unlock(&lock);
}

bool drupe_cl_retire_wait(uint64_t timeout_ns)
{
    uint64_t deadline = drupe_deadline(timeout_ns);
    bool in_time = true;
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
    if (first && !running) running = start(); /* there was no thread to be had */
    while (running && in_time) in_time = drupe_cond_wait_until(&changed, &lock, deadline);
    bool none = !first;
    pthread_mutex_unlock(&lock);
    return none;
}
