/* Descriptors 1 and 2: pipes into the running cell.
 *
 * Text from C and from child processes sits in a pipe until somebody takes it. Every producer of other output
 * takes it first, under the lock that also covers its own enqueueing; the io thread takes it when nobody else
 * writes. So a descriptor and the prints around it keep their order. */
#include "base/base.h"
#include "jkernel/server/outbox/outbox_room.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIPE_SIZE (1 << 20)
#define CHUNK     65536
#define LOCK_MS   100 /* that a report waits for stdio.lock */
#define STDIO_MS  20  /* and for C's lock of stdout */

void jk_stdio_open(jk_stdio *stdio)
{
    for (int i = 0; i < 2; i++) stdio->pipes[i].saved = stdio->pipes[i].read_end = -1;
    jk_mutex_open(&stdio->lock);
}

/* `fd` is open, as jk_process_prepare() sees to: so no end of the pipe is a standard descriptor. */
static int pipe_capture(jk_pipe *captured, int fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    /* Only our end: a program that inherits the other one expects its writes to block. */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE);
    captured->saved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (captured->saved < 0 || dup2(ends[1], fd) < 0) {
        int reason = errno;
        if (captured->saved >= 0) close(captured->saved);
        captured->saved = -1;
        close(ends[0]);
        close(ends[1]);
        errno = reason;
        return -1;
    }
    close(ends[1]);
    captured->read_end = ends[0];
    return 0;
}

static void pipe_restore(jk_pipe *captured, int fd)
{
    if (captured->read_end < 0) return;
    dup2(captured->saved, fd);
    close(captured->saved);
    captured->saved = -1;
}

int jk_server_capture_stdio(jk_server *server)
{
    jk_stdio *stdio = &server->output->stdio;
    if (!jk_server_alive(server) || atomic_load(&stdio->active)) {
        errno = EINVAL;
        return -1;
    }
    fflush(stdout);
    fflush(stderr);
    if (pipe_capture(&stdio->pipes[JK_STDOUT], STDOUT_FILENO) != 0) return -1;
    if (pipe_capture(&stdio->pipes[JK_STDERR], STDERR_FILENO) != 0) {
        int reason = errno;
        pipe_restore(&stdio->pipes[JK_STDOUT], STDOUT_FILENO);
        jk_stdio_clear(stdio);
        errno = reason;
        return -1;
    }
    /* With a buffer of its own: glibc keeps the old one's bounds otherwise, and ends of lines go unnoticed.
     */
    static char lines[BUFSIZ];
    setvbuf(stdout, lines, _IOLBF, sizeof lines);
    atomic_store(&stdio->active, true);
    jk_outbox_wake(&server->output->outbox);
    return 0;
}

/* The bytes at the end of `text` that begin a UTF-8 sequence without ending it. */
static size_t text_unfinished(const char *text, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        unsigned char byte = (unsigned char)text[size - back];
        if (byte < 0x80) return 0;
        if (byte >= 0xc0) return drupe_utf8_next(text + size - back, back) == 0 ? back : 0;
    }
    return 0;
}

static void pipe_drain(jk_server *server, jk_stream stream)
{
    jk_pipe *captured = &server->output->stdio.pipes[stream];
    char text[sizeof captured->carry + CHUNK];
    /* Bounded, or a process that writes without end would keep the lock. */
    for (int turns = 0; turns < 2 * PIPE_SIZE / CHUNK; turns++) {
        memcpy(text, captured->carry, captured->carried);
        ssize_t got = read(captured->read_end, text + captured->carried, CHUNK);
        if (got == 0) atomic_store(&captured->ended, true);
        if (got <= 0) return;
        size_t size = captured->carried + (size_t)got;
        captured->carried = text_unfinished(text, size);
        size -= captured->carried;
        memcpy(captured->carry, text + size, captured->carried);
        jk_parent *owner = stream == JK_STDOUT ? server->output->stdio.owner : NULL;
        jk_outbox_stream(server, owner, stream, text, size);
        if (got < CHUNK) return;
    }
}

static void drain_locked(jk_server *server)
{
    struct pollfd ready[2];
    for (int i = 0; i < 2; i++) {
        const jk_pipe *captured = &server->output->stdio.pipes[i];
        ready[i] =
            (struct pollfd){.fd = atomic_load(&captured->ended) ? -1 : captured->read_end, .events = POLLIN};
    }
    if (poll(ready, 2, 0) <= 0) return;
    for (int i = 0; i < 2; i++) {
        if (ready[i].revents) pipe_drain(server, (jk_stream)i);
    }
}

void jk_stdio_flush(jk_server *server)
{
    /* Whoever has stdout's lock may be waiting, in a full pipe, for the io thread to read. */
    if (atomic_load(&server->output->stdio.active) && !jk_server_own_thread(server)) fflush(stdout);
}

bool jk_stdio_enter(jk_server *server)
{
    jk_stdio *stdio = &server->output->stdio;
    if (!atomic_load(&stdio->active)) return false;
    pthread_mutex_lock(&stdio->lock);
    if (atomic_load(&stdio->active)) drain_locked(server);
    return true;
}

void jk_stdio_leave(jk_server *server, bool entered)
{
    if (entered) pthread_mutex_unlock(&server->output->stdio.lock);
}

void jk_server_give_text(jk_server *server, jk_parent *owner)
{
    jk_stdio *stdio = &server->output->stdio;
    if (!atomic_load(&stdio->active)) return;
    jk_stdio_flush(server);
    pthread_mutex_lock(&stdio->lock);
    if (atomic_load(&stdio->active)) drain_locked(server);
    jk_parent *old = stdio->owner;
    stdio->owner = jk_parent_retain(owner);
    pthread_mutex_unlock(&stdio->lock);
    jk_parent_release(old);
}

void jk_stdio_restore(jk_server *server)
{
    jk_stdio *stdio = &server->output->stdio;
    if (!atomic_load(&stdio->active)) return;
    fflush(stdout);
    fflush(stderr);
    pthread_mutex_lock(&stdio->lock);
    pipe_restore(&stdio->pipes[JK_STDOUT], STDOUT_FILENO);
    pipe_restore(&stdio->pipes[JK_STDERR], STDERR_FILENO);
    drain_locked(server);
    atomic_store(&stdio->active, false);
    pthread_mutex_unlock(&stdio->lock);
}

void jk_stdio_clear(jk_stdio *stdio)
{
    jk_parent_release(stdio->owner);
    stdio->owner = NULL;
    for (int i = 0; i < 2; i++) {
        if (stdio->pipes[i].read_end >= 0) close(stdio->pipes[i].read_end);
        stdio->pipes[i].read_end = -1;
        stdio->pipes[i].carried = 0;
        atomic_store(&stdio->pipes[i].ended, false);
    }
}

void jk_stdio_take(jk_server *server)
{
    jk_stdio *stdio = &server->output->stdio;
    if (!atomic_load(&stdio->active)) return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOCK_MS * JK_MILLISECOND;
    until.tv_sec += until.tv_nsec / JK_SECOND;
    until.tv_nsec %= JK_SECOND;
    bool locked = pthread_mutex_timedlock(&stdio->lock, &until) == 0;
    drain_locked(server);
    /* What C's stdout holds. A printf() of wrong arguments crashes with its lock taken, and is not going on.
     */
    const struct timespec pause = {.tv_nsec = JK_MILLISECOND};
    bool own = ftrylockfile(stdout) == 0;
    for (int i = 0; i < STDIO_MS && !own; i++) {
        nanosleep(&pause, NULL);
        own = ftrylockfile(stdout) == 0;
    }
    fflush_unlocked(stdout);
    if (own) funlockfile(stdout);
    drain_locked(server);
    if (locked) pthread_mutex_unlock(&stdio->lock);
}
