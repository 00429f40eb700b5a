/* Locks that know their owner, and eventfds. */
#include "jkernel/server/tools/tools_room.h"

#include <errno.h>
#include <unistd.h>

void jk_mutex_open(pthread_mutex_t *lock)
{
    *lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
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
