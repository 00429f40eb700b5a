/* The start of a child process.
 *
 * posix_spawn() cannot give a child limits, and limits that are set once it runs miss whom it has started by
 * then. So this does what posix_spawn() does, with limits: a child that shares the memory, while the calling
 * thread stands, until it becomes the program. A copy by fork() would cost as much as the process is large,
 * and call the handlers that libraries registered for forks. */
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES 65536
/* The child never returns from its functions, which would confuse what counts them. */
#define UNCOUNTED __attribute__((no_sanitize("thread", "address")))

extern char **environ;

typedef struct start {
    const char *const *argv;
    const int *fd;
    const drupe_process_limits *limits;
    int error; /* of the child, before it is the program */
} start;

UNCOUNTED static void limit(int what, uint64_t most, uint64_t grace)
{
    struct rlimit now;
    if (!most || getrlimit(what, &now) != 0) return;
    if (now.rlim_cur > most) now.rlim_cur = (rlim_t)most;
    if (now.rlim_max > most + grace) now.rlim_max = (rlim_t)(most + grace);
    (void)setrlimit(what, &now);
}

UNCOUNTED static void limits_set(const drupe_process_limits *limits)
{
    const struct rlimit none = {0, 0};
    limit(RLIMIT_CPU, limits->seconds, 5);
    limit(RLIMIT_AS, limits->memory, 0);
    limit(RLIMIT_FSIZE, limits->file, 0);
    if (limits->seconds || limits->memory || limits->file) (void)setrlimit(RLIMIT_CORE, &none);
}

/* The handlers are those of the process, in memory that is not the program's. */
UNCOUNTED static void signals_reset(void)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++) (void)sigaction(number, &plain, NULL);
}

UNCOUNTED static int streams_set(const int fd[3])
{
    for (int i = 0; i < 3; i++) {
        /* In its place already: only the mark that would close it has to go. */
        int result = fd[i] == i ? fcntl(i, F_SETFD, 0) : dup2(fd[i], i);
        if (result < 0) return -1;
    }
    return 0;
}

UNCOUNTED static int child(void *user)
{
    start *s = user;
    sigset_t none;
    sigemptyset(&none);
    signals_reset();
    if (setpgid(0, 0) == 0 && streams_set(s->fd) == 0) {
        limits_set(s->limits);
        if (sigprocmask(SIG_SETMASK, &none, NULL) == 0)
            execve(s->argv[0], (char *const *)s->argv, environ); /* which only reads them */
    }
    s->error = errno ? errno : ENOEXEC;
    _exit(127);
}

int drupe_process_start(const char *const *argv, const int fd[3], const drupe_process_limits *limits,
                        pid_t *process)
{
    _Alignas(16) char stack[STACK_BYTES];
    start s = {.argv = argv, .fd = fd, .limits = limits};
    sigset_t all, before;
    sigfillset(&all);
    /* No handler runs in the child, whose memory is ours. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *process = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &s);
    int error = *process < 0 ? errno : s.error;
    if (*process > 0 && error) (void)waitpid(*process, NULL, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
