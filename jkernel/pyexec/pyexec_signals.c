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

static struct {
    struct sigaction python; /* what signal.signal() installed */
    int remembered;
    timer_t timer;
    int timer_made;
    atomic_int nudges_left;
    atomic_int again;  /* the next nudge is to run the Python-level handler once more */
    atomic_int causes; /* JK_SIGINT_ values since it ran */
    atomic_int sent;   /* an interrupt, which no handler has seen; its address marks the signal */
} sigint;

/* Nudges come 20 ms after the signal, then after 100 and 500 ms more. Async-signal-safe. */
static void nudge_arm(int left)
{
    static const long delays_ms[] = {0, 500, 100, 20};
    atomic_store(&sigint.nudges_left, left);
    struct itimerspec when = {.it_value = {.tv_nsec = delays_ms[left] * 1000000}};
    if (sigint.timer_made) timer_settime(sigint.timer, 0, &when, NULL);
}

/* Have the Python-level handler run, and nudge until it does. */
static void note(int number, int cause)
{
    atomic_fetch_or(&sigint.causes, cause);
    if (sigint.python.sa_handler != SIG_DFL && sigint.python.sa_handler != SIG_IGN) {
        sigint.python.sa_handler(number);
    }
    nudge_arm(3);
}

void jk_sigint_send(void *self)
{
    const pthread_t thread = jk_kernel_main_thread();
    const union sigval mark = {.sival_ptr = &sigint.sent};
    (void)self;
    atomic_store(&sigint.sent, 1);
    if (pthread_sigqueue(thread, SIGINT, mark) == 0) return;
    atomic_store(&sigint.sent, 0); /* the system has no room for marks: then without */
    pthread_kill(thread, SIGINT);
}

static void tell_server(void)
{
    jk_server *server = jk_kernel_enter();
    if (!server) return;
    jk_server_interrupted(server);
    jk_kernel_leave();
}

static void on_sigint(int number, siginfo_t *info, void *context)
{
    int saved = errno, cause = 0;
    int asked = jk_holding_asked(info, context), timed = info && info->si_code == SI_TIMER;
    int ours = info && info->si_code == SI_QUEUE && info->si_value.sival_ptr == &sigint.sent;
    /* One that came behind another of ours was seen with that. */
    int came = asked || timed || ours ? atomic_exchange(&sigint.sent, 0) : 1;
    if (came) cause = JK_SIGINT_CAME;
    if (timed && atomic_exchange(&sigint.again, 0)) cause |= JK_SIGINT_AGAIN;
    if (cause) {
        note(number, cause);
    } else if (timed) {
        int left = atomic_load(&sigint.nudges_left);
        if (left > 0) nudge_arm(left - 1);
    }
    if (came) tell_server();
    errno = saved;
}

static void install(void)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_sigint;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    atomic_store(&sigint.sent, 0); /* whose handler was there before has seen it */
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

PyObject *jk_sigint_adopt(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    struct sigaction now;
    if (sigaction(SIGINT, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO)) Py_RETURN_NONE;
    sigint.python = now;
    if (!sigint.timer_made) {
        struct sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGINT;
        event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
        sigint.timer_made = timer_create(CLOCK_MONOTONIC, &event, &sigint.timer) == 0;
    }
    install();
    sigint.remembered = 1;
    Py_RETURN_NONE;
}

PyObject *jk_sigint_seen(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (atomic_load(&sigint.nudges_left) > 0) nudge_arm(0);
    return PyLong_FromLong(atomic_exchange(&sigint.causes, 0));
}

PyObject *jk_sigint_again(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    const struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    if (!sigint.timer_made) Py_RETURN_FALSE;
    atomic_store(&sigint.again, 1);
    return PyBool_FromLong(timer_settime(sigint.timer, 0, &soon, NULL) == 0);
}

/* Whether something had taken it. */
static bool sigint_reassert(void)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    bool taken = pthread_sigmask(SIG_UNBLOCK, &set, &before) == 0 && sigismember(&before, SIGINT) == 1;

    struct sigaction now;
    if (!sigint.remembered || sigaction(SIGINT, NULL, &now) != 0) return taken;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigint) return taken;
    install();
    return true;
}

PyObject *jk_sigint_reassert(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(sigint_reassert());
}
