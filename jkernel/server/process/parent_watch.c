/* The watch over the process that started us. JPY_PARENT_PID names it; a process descriptor tells of its end
 * at once. Where there is none, getppid() is compared with what it was at the start, because the new parent
 * of an orphan need not be process 1; a parent that is process 1 from the start (a container) says nothing.
 */
#include "jkernel/server/process/process_room.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void jk_parent_watch_open(jk_parent_watch *watch)
{
    const char *text = getenv("JPY_PARENT_PID");
    const char *near = getenv("DRUPE_LOCAL_PARENT"); /* who started us says that it is of our namespace */
    *watch = (jk_parent_watch){.pidfd = -1, .original = (long)getppid()};
    watch->named = text ? strtol(text, NULL, 10) : 0;
    if (watch->named <= 1) {
        watch->named = 0;
        return;
    }
#ifdef SYS_pidfd_open
    watch->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)watch->named, 0);
    watch->lost = watch->pidfd < 0 && errno == ESRCH && near && strtol(near, NULL, 10) == watch->named;
#endif
    /* Without that, a parent that was gone before this cannot be told from one in another process namespace.
     */
    if (watch->pidfd < 0 && !watch->lost)
        jk_log("no process descriptor for the parent %ld; asking each second", watch->named);
}

void jk_parent_watch_clear(jk_parent_watch *watch)
{
    if (watch->pidfd >= 0) close(watch->pidfd);
    watch->pidfd = -1;
}

bool jk_parent_watch_gone(jk_parent_watch *watch)
{
    if (watch->named == 0) return false;
    bool gone = watch->lost || (watch->original != 1 && (long)getppid() != watch->original);
    if (watch->pidfd >= 0) {
        struct pollfd item = {.fd = watch->pidfd, .events = POLLIN};
        gone = poll(&item, 1, 0) > 0;
    }
    if (!gone) return false;
    jk_log("the parent process %ld has ended", watch->named);
    watch->named = 0;
    return true;
}
