/* A child process between two files in memory: no pipe can fill up, so nothing has to be read while it runs.
 */
#include "base/file.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_LIMIT   ((off_t)1 << 28)
#define MESSAGES_LIMIT ((off_t)1 << 16)

extern char **environ;

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

static int spawn(const char *const *argv, const streams *s, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    for (int i = 0; i < 3 && !error; i++) error = posix_spawn_file_actions_adddup2(&actions, s->fd[i], i);
    if (!error)
        error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                          POSIX_SPAWN_SETSIGDEF);
    if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
    /* posix_spawn() only reads them. */
    if (!error) error = posix_spawn(child, argv[0], &actions, &attributes, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
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

/* True when it ended by itself; a process that ignores its children (ECHILD) cannot know how. */
static bool await(pid_t child, uint64_t timeout_ns, int *result)
{
    uint64_t deadline = drupe_deadline(timeout_ns);
    struct timespec pause = {0, 500000};
    for (;;) {
        pid_t seen = waitpid(child, result, WNOHANG);
        if (seen == child) return true;
        if (seen < 0 && errno != EINTR) {
            *result = 0;
            return true;
        }
        if (stopped() || drupe_now_ns() >= deadline) break;
        nanosleep(&pause, NULL);
    }
    kill(-child, SIGKILL); /* its group: whom it has started would go on without it */
    while (waitpid(child, result, 0) < 0 && errno == EINTR) {}
    return false;
}

static drupe_status run(const char *const *argv, const streams *s, uint64_t timeout_ns, drupe_text *output)
{
    pid_t child = 0;
    int result = 0;
    int error = spawn(argv, s, &child);
    if (error) {
        return drupe_error_set(DRUPE_E_UNAVAILABLE, "Cannot start %s: %s.", argv[0], strerror(error));
    }
    bool ended = await(child, timeout_ns, &result);
    if (ended && WIFEXITED(result) && WEXITSTATUS(result) == 0) {
        stream_read(s->fd[1], OUTPUT_LIMIT, output);
        return drupe_text_check(output);
    }
    stream_read(s->fd[2], MESSAGES_LIMIT, output);
    if (!ended && stopped())
        return drupe_error_set(DRUPE_E_CANCELLED, "%s was stopped because the wait for it was cancelled.",
                               argv[0]);
    return drupe_error_set(ended ? DRUPE_E_INVALID : DRUPE_E_TIMEOUT, "%s %s%s%.800s", argv[0],
                           ended ? WIFSIGNALED(result) ? "crashed" : "failed"
                                 : "did not end in time and was stopped",
                           output->length ? ": " : ".", drupe_text_get(output));
}

drupe_status drupe_process_run(const char *const *argv, drupe_span input, uint64_t timeout_ns,
                               drupe_text *output)
{
    streams s;
    drupe_status status;
    if (streams_open(&s, input))
        status = run(argv, &s, timeout_ns, output);
    else
        status =
            drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for what %s reads: %s.", argv[0], strerror(errno));
    streams_close(&s);
    return status;
}
