/* Locks that know their owner, and eventfds. */
#include "jkernel/server/tools/tools_room.h"

#include <errno.h>
#include <unistd.h>

int jk_mutex_open(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0) return -1;
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    int result = pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return result == 0 ? 0 : -1;
}

void jk_event_raise(int eventfd)
{
    uint64_t one = 1;
    int reason = errno;
    ssize_t ignored = write(eventfd, &one, sizeof one);
    (void)ignored;
    errno = reason;
}

void jk_event_clear(int eventfd)
{
    uint64_t count;
    ssize_t ignored = read(eventfd, &count, sizeof count);
    (void)ignored;
}
