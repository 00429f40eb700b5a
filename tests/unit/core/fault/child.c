#include "child.h"
#include "base/base.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

void child_fails(const char *condition, int line)
{
    fprintf(stderr, "line %d: %s\n", line, condition);
    leave(BAD);
}

void child_faults(void)
{
    static volatile int *volatile nowhere = (volatile int *)(uintptr_t)16; /* the compiler must not know */
    *nowhere = 1;
    child_fails("the fault came back", __LINE__);
}

/* As of waitpid(). */
static int end_of(void (*body)(void))
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
        for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++) signal(signals[i], SIG_DFL);
        alarm(60); /* a case that never ends has failed */
        body();
        leave(GOOD);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

void child_is_good(void (*body)(void))
{
    const int status = end_of(body);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), GOOD);
}

void child_is_killed(void (*body)(void))
{
    const int status = end_of(body);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}
