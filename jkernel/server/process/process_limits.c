/* What a process must have before libzmq starts: it ends the process with abort() when it cannot start a
 * thread or make a descriptor. So both are tried first, where a failure is still one clear line. */
#include "jkernel/server/process/process_room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define THREADS_NEEDED                                                                                       \
    8 /* four of libzmq's with encryption, three of ours, one to spare for the watchdog                      \
       */
#define DESCRIPTORS_NEEDED 40 /* of libzmq's sockets and ours; each connection takes one more */

/* A socket with the number of a standard descriptor would be written to by every printf(). */
static int standard_descriptors_fill(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        int opened = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
        if (opened < 0) return -1;
        if (opened != fd) close(opened);
    }
    return 0;
}

static int descriptors_try(void)
{
    int tried[DESCRIPTORS_NEEDED], count = 0;
    while (count < DESCRIPTORS_NEEDED && (tried[count] = eventfd(0, EFD_CLOEXEC)) >= 0) count++;
    int reason = errno, result = count == DESCRIPTORS_NEEDED ? 0 : -1;
    while (count > 0) close(tried[--count]);
    errno = reason;
    return result;
}

static void *thread_wait(void *barrier)
{
    pthread_mutex_lock(barrier);
    pthread_mutex_unlock(barrier);
    return NULL;
}

/* As many threads at once as there will be. */
static int threads_try(void)
{
    pthread_t tried[THREADS_NEEDED];
    pthread_mutex_t barrier = PTHREAD_MUTEX_INITIALIZER;
    int count = 0, reason = 0;
    pthread_mutex_lock(&barrier);
    while (count < THREADS_NEEDED && !reason) {
        reason = pthread_create(&tried[count], NULL, thread_wait, &barrier);
        if (!reason) count++;
    }
    pthread_mutex_unlock(&barrier);
    while (count > 0) pthread_join(tried[--count], NULL);
    errno = reason;
    return reason ? -1 : 0;
}

int jk_process_prepare(void)
{
    if (standard_descriptors_fill() != 0 || descriptors_try() != 0)
        return jk_fail("cannot open the %d descriptors that a kernel needs: %s; raise the limit (ulimit -n)",
                       DESCRIPTORS_NEEDED, strerror(errno));
    if (threads_try() != 0)
        return jk_fail(
            "cannot start the %d threads that a kernel needs: %s; raise the limit of processes (ulimit -u, "
            "pids of a container) or of memory",
            THREADS_NEEDED, strerror(errno));
    return 0;
}
