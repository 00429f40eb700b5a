/* Handlers for programs that have none: who decides about a signal, and who has the last word. Each case is a
 * process of its own. */
#include "base/base.h"
#include "drupe/fault.h"
#include "leave.h"
#include "test_script.h"
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { GOOD = 40, BAD }; /* exit statuses */

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
    if (drupe_fault_install(decide) != DRUPE_OK || drupe_fault_install(NULL) != DRUPE_OK) leave(BAD);
}

static void fault(void)
{
    static volatile int *volatile nowhere = (volatile int *)(uintptr_t)16; /* the compiler must not know */
    *nowhere = 1;
}

/* How a process ends that runs `body`, as of waitpid(). */
static int end_of(void (*body)(void))
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
        for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++) signal(signals[i], SIG_DFL);
        body();
        leave(BAD);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void expect_good(void (*body)(void))
{
    const int status = end_of(body);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), GOOD);
}

static void expect_killed(void (*body)(void))
{
    const int status = end_of(body);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void to_plain(void)
{
    set_handler(plain);
    install();
    fault();
}

static void to_with_info(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = with_info;
    sigaction(SIGSEGV, &action, NULL);
    install();
    fault();
}

static void earlier_handlers_have_the_last_word(void **state)
{
    (void)state;
    verdict = DRUPE_FAULT_NOT_OURS;
    expect_good(to_plain);
    expect_good(to_with_info);
}

static void to_default(void)
{
    install();
    fault();
}

static void to_ignored(void)
{
    set_handler(SIG_IGN);
    install();
    fault();
}

static void sent(void)
{
    install();
    kill(getpid(), SIGSEGV);
    for (;;) pause();
}

static void without_one_the_process_ends_by_the_signal(void **state)
{
    (void)state;
    verdict = DRUPE_FAULT_NOT_OURS;
    expect_killed(to_default);
    expect_killed(to_ignored); /* a fault cannot be ignored */
    expect_killed(sent);
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
    if (drupe_fault_install(mend) != DRUPE_OK) leave(BAD);
    if (sigsetjmp(behind, 1) == 0) fault();
    leave(GOOD);
}

static void a_claimed_fault_returns(void **state)
{
    (void)state;
    expect_good(returns);
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
    fault();
    leave(BAD); /* it came back */
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
    if (drupe_fault_install(park) != DRUPE_OK || pthread_create(&thread, NULL, faulty, NULL) != 0) leave(BAD);
    while (!asked || !blocks(atomic_load(&parked), SIGTERM)) sched_yield();
    /* It is blocked, and must not come. NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread) */
    pthread_kill(thread, SIGTERM);
    leave(GOOD);
}

static void a_parked_thread_stays(void **state)
{
    (void)state;
    expect_good(parks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(earlier_handlers_have_the_last_word),
        cmocka_unit_test(without_one_the_process_ends_by_the_signal),
        cmocka_unit_test(a_claimed_fault_returns),
        cmocka_unit_test(a_parked_thread_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
