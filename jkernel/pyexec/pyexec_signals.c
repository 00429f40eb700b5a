/* Who owns SIGINT, and that it never gets lost.
 *
 * Python's C handler only notes the signal; the Python-level handler runs when the interpreter looks. A
 * signal that arrives just before a blocking call blocks is noted and then slept over. So our handler calls
 * Python's and sets a timer, and the timer's signal, which does nothing else, makes the blocking call return
 * until the Python-level handler has run.
 *
 * While a thread holds SIGINT back, one that is aimed at it has room, and others are dropped: an interrupt
 * behind that timer's signal, or behind the question of holding.c. So the kernel notes that it has sent one,
 * and whichever of them arrives brings it.
 *
 * Compilers inside device drivers install their own handler when they first run; ours must be back before the
 * next cell, or Ctrl-C ends the process. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "jkernel/pyexec/pyexec.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static struct sigaction python_action; /* what signal.signal() installed */
static int remembered;
static timer_t nudge_timer;
static int nudge_timer_made;
static atomic_int nudges_left;
static atomic_int again;  /* the next nudge is to run the Python-level handler once more */
static atomic_int causes; /* JK_SIGINT_ values since it ran */
static atomic_int sent;   /* an interrupt, which no handler has seen; its address marks the signal */

/* Nudges come 20 ms after the signal, then after 100 and 500 ms more. Async-signal-safe. */
static void nudge_arm(int left)
{
    static const long delays_ms[] = {0, 500, 100, 20};
    atomic_store(&nudges_left, left);
    struct itimerspec when = {.it_value = {.tv_nsec = delays_ms[left] * 1000000}};
    if (nudge_timer_made) timer_settime(nudge_timer, 0, &when, NULL);
}

/* Have the Python-level handler run, and nudge until it does. */
static void note(int number, int cause)
{
    atomic_fetch_or(&causes, cause);
    if (python_action.sa_handler != SIG_DFL && python_action.sa_handler != SIG_IGN) {
        python_action.sa_handler(number);
    }
    nudge_arm(3);
}

void jk_sigint_send(pthread_t thread)
{
    const union sigval mark = {.sival_ptr = &sent};
    atomic_store(&sent, 1);
    if (pthread_sigqueue(thread, SIGINT, mark) == 0) return;
    atomic_store(&sent, 0); /* the system has no room for marks: then without */
    pthread_kill(thread, SIGINT);
}

static void on_sigint(int number, siginfo_t *info, void *context)
{
    int saved = errno, cause = 0;
    int asked = jk_holding_asked(info, context), timed = info && info->si_code == SI_TIMER;
    int ours = info && info->si_code == SI_QUEUE && info->si_value.sival_ptr == &sent;
    /* One that came behind another of ours was seen with that. */
    int came = asked || timed || ours ? atomic_exchange(&sent, 0) : 1;
    if (came) cause = JK_SIGINT_CAME;
    if (timed && atomic_exchange(&again, 0)) cause |= JK_SIGINT_AGAIN;
    if (cause) {
        note(number, cause);
    } else if (timed) {
        int left = atomic_load(&nudges_left);
        if (left > 0) nudge_arm(left - 1);
    }
    if (came) jk_kernel_interrupted();
    errno = saved;
}

static void install(void)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_sigint;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    atomic_store(&sent, 0); /* whose handler was there before has seen it */
    sigaction(SIGINT, &ours, NULL);
}

void jk_sigint_ignore(void)
{
    struct sigaction ignore;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &ignore, NULL);
}

void jk_sigint_adopt(void)
{
    struct sigaction now;
    if (sigaction(SIGINT, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO)) return;
    python_action = now;
    if (!nudge_timer_made) {
        struct sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGINT;
        event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
        nudge_timer_made = timer_create(CLOCK_MONOTONIC, &event, &nudge_timer) == 0;
    }
    install();
    remembered = 1;
}

int jk_sigint_seen(void)
{
    if (atomic_load(&nudges_left) > 0) nudge_arm(0);
    return atomic_exchange(&causes, 0);
}

int jk_sigint_again(void)
{
    const struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    if (!nudge_timer_made) return 0;
    atomic_store(&again, 1);
    return timer_settime(nudge_timer, 0, &soon, NULL) == 0;
}

int jk_sigint_reassert(void)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    int taken = pthread_sigmask(SIG_UNBLOCK, &set, &before) == 0 && sigismember(&before, SIGINT) == 1;

    struct sigaction now;
    if (!remembered || sigaction(SIGINT, NULL, &now) != 0) return taken;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigint) return taken;
    install();
    return 1;
}
