/* The word `far`: memory that the host cannot touch, as on a card of its own.
 *
 * What clSVMAlloc gives out is an address in a range without access; the calls that take SVM pointers put the
 * driver's own address in its place. A host that reads or writes device memory therefore faults. */
#include "shim.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MOST 65536

static struct {
    char *far, *near;
    size_t size;
} ranges[MOST];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *shim_far_alloc(void *near, size_t size)
{
    if (!near) return NULL;
    char *far = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_mutex_lock(&lock);
    if (far == MAP_FAILED || count == MOST) abort();
    ranges[count].far = far;
    ranges[count].near = near;
    ranges[count++].size = size;
    pthread_mutex_unlock(&lock);
    return far;
}

void *shim_far_near(const void *pointer)
{
    const char *at = pointer;
    void *near = (void *)(uintptr_t)pointer;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        if (at >= ranges[i].far && at < ranges[i].far + ranges[i].size)
            near = ranges[i].near + (at - ranges[i].far);
    }
    pthread_mutex_unlock(&lock);
    return near;
}

void *shim_far_free(void *far)
{
    void *near = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !near; i++) {
        if (ranges[i].far != far) continue;
        near = ranges[i].near;
        munmap(far, ranges[i].size);
        ranges[i] = ranges[--count];
    }
    pthread_mutex_unlock(&lock);
    if (!near) abort(); /* not a start that clSVMAlloc gave */
    return near;
}
