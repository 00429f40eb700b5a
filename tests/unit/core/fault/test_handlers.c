/* Handlers for programs that have none: who decides about a signal, and who has the last word. Each case is a
 * process of its own. */
#include "calls.h"
#include "child.h"
#include "core/fault/fault_room.h"
#include "drupe/fault.h"
#include "test_script.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

static int verdict;
static volatile sig_atomic_t asked;
static sigjmp_buf behind;

static int decide(int signal, void *siginfo, void *ucontext)
{
    (void)signal, (void)siginfo, (void)ucontext;
    asked++;
    return verdict;
}

static void plain(int signal)
{
    leave(asked == 1 && signal == SIGSEGV ? GOOD : BAD);
}

static void with_info(int signal, siginfo_t *info, void *context)
{
    leave(asked == 1 && signal == SIGSEGV && info->si_signo == SIGSEGV && context ? GOOD : BAD);
}

static void jump(int signal)
{
    (void)signal;
    siglongjmp(behind, 1);
}

static void set_handler(void (*handler)(int))
{
    struct sigaction action = {.sa_flags = SA_NODEFER};
    action.sa_handler = handler;
    sigaction(SIGSEGV, &action, NULL);
}

static void install(void)
{
    MUST(drupe_fault_install(decide) == DRUPE_OK && drupe_fault_install(NULL) == DRUPE_OK);
}

static void to_plain(void)
{
    set_handler(plain);
    install();
    child_faults();
}

static void to_with_info(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = with_info;
    sigaction(SIGSEGV, &action, NULL);
    install();
    child_faults();
}

static void count(int signal)
{
    MUST(signal == SIGILL);
    asked++;
}

/* A signal that somebody sends leads back to where the thread was, when its handler returns. */
static void to_one_that_returns(void)
{
    signal(SIGILL, count);
    install();
    raise(SIGILL);
    MUST(asked == 2);
}

static void earlier_handlers_have_the_last_word(void **state)
{
    (void)state;
    verdict = DRUPE_FAULT_NOT_OURS;
    child_is_good(to_plain);
    child_is_good(to_with_info);
    child_is_good(to_one_that_returns);
}

static void to_default(void)
{
    install();
    child_faults();
}

static void to_ignored(void)
{
    set_handler(SIG_IGN);
    install();
    child_faults();
}

static void sent(void)
{
    install();
    kill(getpid(), SIGSEGV);
    for (;;) pause();
}

/* A signal that waits because it is blocked, and is handed on to this. */
static void hand_on(void (*handler)(int), int code, bool comes_again)
{
    const struct sigaction to = {.sa_handler = handler};
    siginfo_t info = {.si_code = code};
    struct sigaction now;
    sigset_t waiting;
    signal(SIGUSR1, SIG_IGN); /* drops what waits */
    signal(SIGUSR1, count);
    drupe_signal_pass_on(&to, SIGUSR1, &info, NULL);
    sigaction(SIGUSR1, NULL, &now);
    sigpending(&waiting);
    MUST(now.sa_handler == handler && asked == 0);
    MUST(sigismember(&waiting, SIGUSR1) == comes_again);
}

/* Who faulted faults again; a signal that was sent must be sent again. */
static void by_code(void)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    hand_on(SIG_DFL, SEGV_MAPERR, false);
    hand_on(SIG_IGN, SEGV_MAPERR, false);
    hand_on(SIG_IGN, SI_USER, true);
    hand_on(SIG_DFL, SI_TKILL, true);
}

static void without_one_the_process_ends_by_the_signal(void **state)
{
    (void)state;
    verdict = DRUPE_FAULT_NOT_OURS;
    child_is_killed(to_default);
    child_is_killed(to_ignored); /* a fault cannot be ignored */
    child_is_killed(sent);
    child_is_good(by_code);
}

/* A handler that has returned leads back to the fault, so this one makes the address good. */
static int mend(int signal, void *siginfo, void *ucontext)
{
    (void)signal, (void)siginfo, (void)ucontext;
    set_handler(jump);
    return DRUPE_FAULT_RETURN;
}

static void returns(void)
{
    MUST(drupe_fault_install(mend) == DRUPE_OK);
    if (sigsetjmp(behind, 1) == 0) child_faults();
}

static void a_claimed_fault_returns(void **state)
{
    (void)state;
    child_is_good(returns);
}

static int park(int signal, void *siginfo, void *ucontext)
{
    (void)signal, (void)siginfo, (void)ucontext;
    asked++;
    return DRUPE_FAULT_PARK;
}

static _Atomic(int) parked;

static void *faulty(void *unused)
{
    (void)unused;
    atomic_store(&parked, (int)syscall(SYS_gettid));
    child_faults();
}

/* Whether a thread blocks the signal. */
static bool blocks(int thread, int signal)
{
    char path[64], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "SigBlk: %llx", &blocked);
    if (file) fclose(file);
    return (blocked >> (signal - 1)) & 1;
}

static void ends_there(int signal)
{
    (void)signal;
    leave(BAD);
}

static void parks(void)
{
    pthread_t thread;
    signal(SIGTERM, ends_there);
    MUST(drupe_fault_install(park) == DRUPE_OK && pthread_create(&thread, NULL, faulty, NULL) == 0);
    while (!asked || !blocks(atomic_load(&parked), SIGTERM)) sched_yield();
    /* It is blocked, and must not come. NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread) */
    pthread_kill(thread, SIGTERM);
}

static void a_parked_thread_stays(void **state)
{
    (void)state;
    child_is_good(parks);
}

static unsigned failing;

static void refused(void)
{
    call_fail(CALL_sigaction, failing);
    MUST(drupe_fault_install(decide) == DRUPE_E_INTERNAL);
    MUST(strstr(drupe_error_last()->text, "signal 7 cannot be set"));
}

/* The second one's, SIGBUS, when it is read and when it is set. */
static void a_handler_that_is_refused_is_told(void **state)
{
    (void)state;
    for (failing = 3; failing <= 4; failing++) child_is_good(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(earlier_handlers_have_the_last_word),
        cmocka_unit_test(without_one_the_process_ends_by_the_signal),
        cmocka_unit_test(a_claimed_fault_returns),
        cmocka_unit_test(a_parked_thread_stays),
        cmocka_unit_test(a_handler_that_is_refused_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
