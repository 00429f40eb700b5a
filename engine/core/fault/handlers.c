/* Handlers of fatal signals, for programs without any. */
#include "core/fault/fault_room.h"
#include "drupe/fault.h"
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct {
    pthread_mutex_t lock;
    struct sigaction before[DRUPE_COUNT_OF(signals)];
    int (*claim)(int signal, void *siginfo, void *ucontext); /* NULL: they are not installed */
} handlers = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Noreturn static void park(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (;;) sigsuspend(&all);
}

void drupe_signal_pass_on(const struct sigaction *to, int signal, siginfo_t *info, void *context)
{
    if (to->sa_flags & SA_SIGINFO) {
        to->sa_sigaction(signal, info, context);
    } else if (to->sa_handler == SIG_DFL || to->sa_handler == SIG_IGN) {
        sigaction(signal, to, NULL);
        if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), drupe_thread_id(), signal);
    } else {
        to->sa_handler(signal);
    }
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    int verdict = handlers.claim(signal, info, context);
    if (verdict == DRUPE_FAULT_RETURN) return;
    if (verdict == DRUPE_FAULT_PARK) park();
    /* Who was there before has the last word. */
    for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++)
        if (signals[i] == signal) drupe_signal_pass_on(&handlers.before[i], signal, info, context);
}

drupe_status drupe_fault_install(int (*decide)(int signal, void *siginfo, void *ucontext))
{
    drupe_status status = DRUPE_OK;
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    pthread_mutex_lock(&handlers.lock);
    bool installed = handlers.claim != NULL;
    if (!installed) handlers.claim = decide ? decide : drupe_fault_claim;
    for (size_t i = 0; !installed && i < DRUPE_COUNT_OF(signals); i++) {
        if (sigaction(signals[i], NULL, &handlers.before[i]) != 0 || sigaction(signals[i], &ours, NULL) != 0)
            status = drupe_error_set(DRUPE_E_INTERNAL, "The handler of signal %d cannot be set.", signals[i]);
    }
    pthread_mutex_unlock(&handlers.lock);
    drupe_fault_contain();
    return status;
}
