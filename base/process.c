/* A child process between two files in memory: no pipe can fill up, so nothing has to be read while it runs.
 */
#include "base/file.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_LIMIT   ((off_t)1 << 28)
#define MESSAGES_LIMIT ((off_t)1 << 16)

char *drupe_process_find(const char *name)
{
    if (strchr(name, '/')) return access(name, X_OK) == 0 ? strdup(name) : NULL;
    const char *path = getenv("PATH");
    for (const char *at = path; at && *at;) {
        size_t length = strcspn(at, ":");
        char full[PATH_MAX];
        int size = snprintf(full, sizeof full, "%.*s/%s", (int)length, at, name);
        struct stat about;
        /* Relative folders would make it a matter of the current one. */
        if (*at == '/' && size > 0 && (size_t)size < sizeof full && access(full, X_OK) == 0 &&
            stat(full, &about) == 0 && S_ISREG(about.st_mode))
            return strdup(full);
        at += length + (at[length] == ':');
    }
    return NULL;
}

/* The standard streams of a child: input, output, messages. */
typedef struct streams {
    int fd[3];
} streams;

static bool streams_open(streams *s, drupe_span input)
{
    for (int i = 0; i < 3; i++) s->fd[i] = memfd_create("drupe", MFD_CLOEXEC);
    if (s->fd[0] < 0 || s->fd[1] < 0 || s->fd[2] < 0) return false;
    if (!drupe_write_all(s->fd[0], input.bytes, input.size)) return false;
    return lseek(s->fd[0], 0, SEEK_SET) == 0;
}

static void streams_close(streams *s)
{
    for (int i = 0; i < 3; i++)
        if (s->fd[i] >= 0) close(s->fd[i]);
}

static void stream_read(int fd, off_t limit, drupe_text *text)
{
    char block[4096];
    off_t at = 0;
    ssize_t size;
    while (at < limit && (size = pread(fd, block, sizeof block, at)) > 0) {
        drupe_text_append(text, block, (size_t)size);
        at += size;
    }
}

static _Thread_local const _Atomic(bool) *stop_flag;

void drupe_process_stop_when(const _Atomic(bool) *stop)
{
    stop_flag = stop;
}

static bool stopped(void)
{
    return stop_flag && atomic_load(stop_flag);
}

/* How a process ended. */
typedef struct ending {
    bool by_itself;
    int status;       /* as of waitpid() */
    uint64_t used_ms; /* of processor time, with whom it waited for */
} ending;

static uint64_t milliseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_usec / 1000;
}

/* A process that ignores its children (ECHILD) cannot know how one ended. */
static ending await(pid_t child, uint64_t timeout_ns)
{
    uint64_t deadline = drupe_deadline(timeout_ns);
    ending end = {.by_itself = true};
    struct rusage used;
    struct timespec pause = {0, 500000};
    for (;;) {
        pid_t seen = wait4(child, &end.status, WNOHANG, &used);
        if (seen == child) {
            end.used_ms = milliseconds(used.ru_utime) + milliseconds(used.ru_stime);
            return end;
        }
        if (seen < 0 && errno != EINTR) return (ending){.by_itself = true};
        if (stopped() || drupe_now_ns() >= deadline) break;
        nanosleep(&pause, NULL);
    }
    kill(-child, SIGKILL); /* its group: whom it has started would go on without it */
    while (waitpid(child, &end.status, 0) < 0 && errno == EINTR) {}
    end.by_itself = false;
    return end;
}

/* What a program writes that ran into a limit of its memory is not agreed upon. */
static bool tells_no_memory(const char *messages)
{
    static const char *const words[] = {"out of memory", "memory exhausted", "cannot allocate memory",
                                        "bad_alloc", "failed to map segment"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(words); i++)
        if (strcasestr(messages, words[i])) return true;
    return false;
}

/* The process itself, or one that it waited for, which it tells by its code or its messages, or by the time. The
 * system looks at its clock ticks, which are not what it says was used. */
static bool out_of_time(const ending *end, const drupe_process_limits *limits, const char *messages)
{
    if (!end->by_itself || !limits->seconds) return false;
    if (WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGXCPU) return true;
    if (WIFEXITED(end->status) && WEXITSTATUS(end->status) == 128 + SIGXCPU) return true;
    return strcasestr(messages, "CPU time limit exceeded") || end->used_ms + 50 >= limits->seconds * 1000;
}

static drupe_status ended_badly(const char *program, const ending *end, const drupe_process_limits *limits,
                                const drupe_text *output)
{
    const bool crashed = end->by_itself && WIFSIGNALED(end->status);
    const char *messages = drupe_text_get(output);
    if (!end->by_itself && stopped())
        return drupe_error_set(DRUPE_E_CANCELLED, "%s was stopped because the wait for it was cancelled.",
                               program);
    if (out_of_time(end, limits, messages))
        return drupe_error_set(DRUPE_E_TIMEOUT, "%s took more than %llu s of processor time and was stopped.",
                               program, (unsigned long long)limits->seconds);
    if (end->by_itself && limits->memory && tells_no_memory(messages))
        return drupe_error_set(DRUPE_E_NO_MEMORY, "%s found no memory within the %s that it may use: %.800s",
                               program, drupe_unit_bytes(limits->memory).text, messages);
    return drupe_error_set(end->by_itself ? DRUPE_E_INVALID : DRUPE_E_TIMEOUT, "%s %s%s%.800s", program,
                           !end->by_itself ? "did not end in time and was stopped"
                           : crashed       ? "crashed"
                                           : "failed",
                           output->length ? ": " : ".", messages);
}

static drupe_status run(const char *const *argv, const streams *s, const drupe_process_limits *limits,
                        drupe_text *output)
{
    pid_t child = 0;
    int error = drupe_process_start(argv, s->fd, limits, &child);
    if (error) {
        return drupe_error_set(DRUPE_E_UNAVAILABLE, "Cannot start %s: %s.", argv[0], strerror(error));
    }
    const ending end = await(child, limits->timeout_ns);
    if (end.by_itself && WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0) {
        stream_read(s->fd[1], OUTPUT_LIMIT, output);
        return drupe_text_check(output);
    }
    stream_read(s->fd[2], MESSAGES_LIMIT, output);
    return ended_badly(argv[0], &end, limits, output);
}

drupe_status drupe_process_run_within(const char *const *argv, drupe_span input,
                                      const drupe_process_limits *limits, drupe_text *output)
{
    streams s;
    drupe_status status;
    if (streams_open(&s, input))
        status = run(argv, &s, limits, output);
    else
        status =
            drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for what %s reads: %s.", argv[0], strerror(errno));
    streams_close(&s);
    return status;
}

drupe_status drupe_process_run(const char *const *argv, drupe_span input, uint64_t timeout_ns,
                               drupe_text *output)
{
    const drupe_process_limits limits = {.timeout_ns = timeout_ns};
    return drupe_process_run_within(argv, input, &limits, output);
}
