/* The signals that ask the process to end. */
#include "jkernel/server/process/process_room.h"

#include <stdatomic.h>
#include <stddef.h>

static const int ends[] = {SIGTERM, SIGHUP};
#define ENDS (sizeof ends / sizeof ends[0])

static struct {
    struct sigaction before[ENDS];
    bool taken[ENDS];
    atomic_int asked; /* the signal that came, or 0 */
    atomic_int wake;  /* eventfd of the control thread */
} ending = {.wake = -1};

static void on_end(int number)
{
    atomic_store(&ending.asked, number);
    int wake = atomic_load(&ending.wake);
    if (wake >= 0) jk_event_raise(wake);
}

void jk_ending_watch(int wake)
{
    struct sigaction ours = {.sa_handler = on_end, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    atomic_store(&ending.asked, 0);
    atomic_store(&ending.wake, wake);
    for (size_t i = 0; i < ENDS; i++) {
        struct sigaction *before = &ending.before[i];
        /* nohup has it ignored, and a host program may have a handler: theirs to decide. */
        ending.taken[i] = sigaction(ends[i], NULL, before) == 0 && !(before->sa_flags & SA_SIGINFO) &&
                          before->sa_handler == SIG_DFL && sigaction(ends[i], &ours, NULL) == 0;
    }
}

int jk_ending_asked(void)
{
    return atomic_exchange(&ending.asked, 0);
}

/* A signal for the child that arrives before it has given the handler back would be lost: it waits. */
static _Thread_local sigset_t before_fork;

void jk_ending_hold(void)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < ENDS; i++) sigaddset(&held, ends[i]);
    pthread_sigmask(SIG_BLOCK, &held, &before_fork);
}

void jk_ending_resume(void)
{
    pthread_sigmask(SIG_SETMASK, &before_fork, NULL);
}

/* A handler that came after ours stays. */
void jk_ending_forget(void)
{
    for (size_t i = 0; i < ENDS; i++) {
        struct sigaction now;
        if (!ending.taken[i]) continue;
        ending.taken[i] = false;
        if (sigaction(ends[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == on_end) {
            sigaction(ends[i], &ending.before[i], NULL);
        }
    }
    atomic_store(&ending.wake, -1);
}
