/* Who owns SIGINT. Compilers inside device drivers install their own handler when they first run; the
 * kernel's must be back before the next cell, or Ctrl-C ends the process. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "jkernel/pyexec/pyexec.h"

static struct sigaction ours;
static int remembered;

void jk_sigint_ignore(void)
{
    struct sigaction ignore;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &ignore, NULL);
}

void jk_sigint_remember(void)
{
    remembered = sigaction(SIGINT, NULL, &ours) == 0;
}

int jk_sigint_reassert(void)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    int taken = pthread_sigmask(SIG_UNBLOCK, &set, &before) == 0 && sigismember(&before, SIGINT) == 1;

    struct sigaction now;
    if (!remembered || sigaction(SIGINT, NULL, &now) != 0) return taken;
    if (now.sa_handler == ours.sa_handler && (now.sa_flags & SA_SIGINFO) == (ours.sa_flags & SA_SIGINFO)) {
        return taken;
    }
    sigaction(SIGINT, &ours, NULL);
    return 1;
}
