/* Descriptor 2 is one for the process, so it is not closed but led through a pipe, whose other end a thread
 * reads and passes on at once. Who inherited the pipe meanwhile (a child process) may keep it: the thread and
 * the pipe stay, and pass on to where descriptor 2 led last. */
#include "driver/driver.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_LIMIT  512
#define STALL_MS    10000 /* for a reader that does not read */
#define SLICE_MS    5
#define SLICES_MOST 40 /* how long the beginning of a line waits for its rest while a compiler runs */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned depth;
static int ends[2] = {-1, -1};
static bool broken;              /* no pipe or no thread: leave everything alone */
static _Atomic(int) beyond = -1; /* where descriptor 2 led */
static _Atomic(bool) busy;       /* the thread holds bytes that it has read */
static _Atomic(bool) over;       /* no compiler runs: nothing is waited for */

/* "1 warning and 2 errors generated." */
static bool is_noise(const char *line, size_t size)
{
    char text[96];
    if (size < 2 || size >= sizeof text || line[size - 1] != '\n') return false;
    memcpy(text, line, size - 1);
    text[size - 1] = '\0';
    const char *at = text;
    for (bool first = true;; first = false) {
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || at[digits] != ' ') return false;
        at += digits + 1;
        size_t word = strncmp(at, "error", 5) == 0 ? 5 : strncmp(at, "warning", 7) == 0 ? 7 : 0;
        if (word == 0) return false;
        at += word;
        if (*at == 's') at++;
        if (strcmp(at, " generated.") == 0) return true;
        if (!first || strncmp(at, " and ", 5) != 0) return false;
        at += 5;
    }
}

static void pass_on(const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(atomic_load(&beyond), bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {atomic_load(&beyond), POLLOUT, 0};
            if (poll(&wait, 1, STALL_MS) > 0) continue;
        }
        if (written <= 0) return;
        bytes += written;
        size -= (size_t)written;
    }
}

/* A line is held back only while it may still become noise. */
static bool may_be_noise(const char *line, size_t size)
{
    return size > 0 && size < 96 && isdigit((unsigned char)line[0]);
}

static size_t filter(char *held, size_t size)
{
    size_t start = 0;
    for (size_t i = 0; i < size; i++) {
        if (held[i] != '\n') continue;
        if (!is_noise(held + start, i + 1 - start)) pass_on(held + start, i + 1 - start);
        start = i + 1;
    }
    if (may_be_noise(held + start, size - start)) {
        memmove(held, held + start, size - start);
        return size - start;
    }
    pass_on(held + start, size - start);
    return 0;
}

static void *pump(void *unused)
{
    char held[LINE_LIMIT];
    size_t have = 0;
    unsigned slices = 0;
    (void)unused;
    for (;;) {
        struct pollfd wait = {ends[0], POLLIN, 0};
        int ready = poll(&wait, 1, have ? SLICE_MS : -1);
        atomic_store(&busy, true); /* before the bytes leave the pipe: see drain() */
        if (ready == 0) {
            if (++slices < SLICES_MOST && !atomic_load(&over)) continue;
            pass_on(held, have);
            have = 0;
        } else if (ready > 0) {
            slices = 0;
            ssize_t size = read(ends[0], held + have, sizeof held - have);
            if (size == 0 || (size < 0 && errno != EINTR)) return NULL;
            if (size > 0) have = filter(held, have + (size_t)size);
        }
        atomic_store(&busy, have > 0);
    }
}

static bool start(void)
{
    pthread_t thread;
    if (ends[0] >= 0) return true;
    if (broken || pipe2(ends, O_CLOEXEC) != 0) {
        broken = true;
        return false;
    }
    if (drupe_thread_start(&thread, pump, NULL, "drupe-quiet") == DRUPE_OK) {
        pthread_detach(thread);
        return true;
    }
    close(ends[0]);
    close(ends[1]);
    ends[0] = ends[1] = -1;
    broken = true;
    return false;
}

static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void drupe_quiet_begin(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&over, false);
    if (depth++ == 0 && start() && !same_file(2, ends[1])) {
        int kept = fcntl(2, F_DUPFD_CLOEXEC, 3);
        int old = kept >= 0 ? atomic_exchange(&beyond, kept) : -1;
        if (old >= 0) close(old);
        if (kept >= 0) (void)dup2(ends[1], 2);
    }
    pthread_mutex_unlock(&lock);
}

/* What was written so far has gone where it belongs. */
static void drain(void)
{
    struct timespec pause = {0, 50000};
    int waiting = 0;
    for (int i = 0; i < 400; i++) {
        if (ioctl(ends[0], FIONREAD, &waiting) != 0 || (waiting == 0 && !atomic_load(&busy))) return;
        nanosleep(&pause, NULL);
    }
}

void drupe_quiet_end(void)
{
    pthread_mutex_lock(&lock);
    if (--depth == 0 && ends[0] >= 0 && same_file(2, ends[1])) {
        (void)dup2(atomic_load(&beyond), 2);
        atomic_store(&over, true);
        drain();
    }
    pthread_mutex_unlock(&lock);
}
