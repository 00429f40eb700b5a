/* One saved set for the whole process: with a set per thread, of two overlapping builds the second would save
 * and later put back the handlers that the first build's driver had just installed.
 *
 * SIGINT is held back meanwhile: LLVM's handler removes the files of the build that it comes into, which then
 * fails for no reason that anybody could see.
 *
 * LLVM's handler of crashes puts the one before it back and sends the signal again, from a new LLVM on so
 * that the instruction that faulted is lost to whom it comes. A handler of SIGSEGV alone may serve page
 * faults of a device, and stays. */
#include "driver/driver.h"
#include <signal.h>

static const int kept_signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE};
static const int crash_signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL,  SIGFPE,
                                    SIGTRAP, SIGQUIT, SIGSYS, SIGXCPU, SIGXFSZ};

static struct {
    pthread_mutex_t lock;
    unsigned depth;
    struct sigaction saved[DRUPE_COUNT_OF(kept_signals)];
    bool valid[DRUPE_COUNT_OF(kept_signals)];
    struct sigaction crashes[DRUPE_COUNT_OF(crash_signals)];
    bool crashes_valid;
} before = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local unsigned own_depth;
static _Thread_local sigset_t own_mask; /* of the thread before its outermost save */

static sigset_t interrupt_set(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return set;
}

static void hold_interrupts(void)
{
    const sigset_t interrupts = interrupt_set();
    if (own_depth++ == 0) pthread_sigmask(SIG_BLOCK, &interrupts, &own_mask);
}

static void let_interrupts_come(void)
{
    if (own_depth == 0) return;
    if (--own_depth == 0) pthread_sigmask(SIG_SETMASK, &own_mask, NULL);
}

static void crashes_save(void)
{
    before.crashes_valid = true;
    for (size_t i = 0; i < DRUPE_COUNT_OF(crash_signals); i++)
        before.crashes_valid &= sigaction(crash_signals[i], NULL, &before.crashes[i]) == 0;
}

/* Only crashes are the affair of a handler that SIGABRT has, too. */
static void crashes_restore(void)
{
    struct sigaction abort, now;
    if (!before.crashes_valid || sigaction(SIGABRT, NULL, &abort) != 0 || abort.sa_handler == SIG_DFL ||
        abort.sa_handler == SIG_IGN || abort.sa_handler == before.crashes[0].sa_handler) {
        return;
    }
    for (size_t i = 0; i < DRUPE_COUNT_OF(crash_signals); i++) {
        if (sigaction(crash_signals[i], NULL, &now) == 0 && now.sa_handler == abort.sa_handler)
            sigaction(crash_signals[i], &before.crashes[i], NULL);
    }
}

void drupe_signals_save(void)
{
    hold_interrupts();
    pthread_mutex_lock(&before.lock);
    if (before.depth++ == 0) {
        for (size_t i = 0; i < DRUPE_COUNT_OF(kept_signals); i++) {
            before.valid[i] = sigaction(kept_signals[i], NULL, &before.saved[i]) == 0;
        }
        crashes_save();
    }
    pthread_mutex_unlock(&before.lock);
}

void drupe_signals_restore(void)
{
    pthread_mutex_lock(&before.lock);
    if (before.depth > 0) {
        before.depth--;
        for (size_t i = 0; i < DRUPE_COUNT_OF(kept_signals); i++) {
            if (before.valid[i]) sigaction(kept_signals[i], &before.saved[i], NULL);
        }
        crashes_restore();
    }
    pthread_mutex_unlock(&before.lock);
    let_interrupts_come();
}

/* --- Interrupts of who waits ---------------------------------------------------------------------------- */

void drupe_interrupts_hold(drupe_interrupts *held)
{
    const sigset_t interrupts = interrupt_set();
    pthread_sigmask(SIG_BLOCK, &interrupts, &held->mask);
    pthread_mutex_lock(&before.lock);
    sigaction(SIGINT, NULL, &held->action);
    if (before.depth > 0 && before.valid[0]) held->action = before.saved[0]; /* kept_signals begins with it */
    pthread_mutex_unlock(&before.lock);
}

void drupe_interrupts_look(const drupe_interrupts *held)
{
    const sigset_t interrupts = interrupt_set();
    struct sigaction now;
    sigset_t pending;
    if (sigismember(&held->mask, SIGINT) || sigpending(&pending) || !sigismember(&pending, SIGINT)) return;
    /* A build that ends meanwhile puts the handlers back after this. */
    pthread_mutex_lock(&before.lock);
    sigaction(SIGINT, &held->action, &now);
    pthread_sigmask(SIG_UNBLOCK, &interrupts, NULL); /* here it comes */
    pthread_sigmask(SIG_BLOCK, &interrupts, NULL);
    sigaction(SIGINT, &now, NULL);
    pthread_mutex_unlock(&before.lock);
}

void drupe_interrupts_let_go(const drupe_interrupts *held)
{
    drupe_interrupts_look(held);
    pthread_sigmask(SIG_SETMASK, &held->mask, NULL);
}
