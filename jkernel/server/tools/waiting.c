/* The clock, locks that know their owner, conditions on that clock, and eventfds. */
#include "jkernel/server/tools/tools_room.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

int64_t jk_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * JK_SECOND + now.tv_nsec;
}

int jk_mutex_open(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0) return -1;
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    int result = pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return result == 0 ? 0 : -1;
}

int jk_condition_open(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return -1;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int result = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return result == 0 ? 0 : -1;
}

bool jk_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline)
{
    struct timespec until = {.tv_sec = deadline / JK_SECOND, .tv_nsec = deadline % JK_SECOND};
    return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
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
