/* Descriptor 2 is one for the process, so it is not closed but led through a pipe, whose other end a thread
 * reads and passes on at once. Who inherited the pipe meanwhile (a child process) may keep it: the thread and
 * the pipe stay, and pass on to where descriptor 2 led last. */
#include "driver/driver.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_LIMIT  512
#define STALL_MS    10000 /* for a reader that does not read */
#define SLICE_MS    5
#define SLICES_MOST 40 /* how long the beginning of a line waits for its rest while a compiler runs */

static struct {
    pthread_mutex_t lock;
    unsigned depth;
    int ends[2];         /* of the pipe */
    bool broken;         /* no pipe or no thread: leave everything alone */
    _Atomic(int) beyond; /* where descriptor 2 led */
    _Atomic(bool) busy;  /* the thread holds bytes that it has read */
    _Atomic(bool) over;  /* no compiler runs: nothing is waited for */
} quiet = {.lock = PTHREAD_MUTEX_INITIALIZER, .ends = {-1, -1}, .beyond = -1};

/* A line is held back only while it may still become noise. */
static bool may_be_noise(const char *line, size_t size)
{
    return size > 0 && size < 96 && isdigit((unsigned char)line[0]);
}

/* "1 warning and 2 errors generated." */
static bool is_noise(const char *line, size_t size)
{
    static const char form[] = "^[0-9]+ (error|warning)s?( and [0-9]+ (error|warning)s?)? generated\\.\n$";
    char text[96];
    regex_t noise;
    if (!may_be_noise(line, size)) return false;
    snprintf(text, sizeof text, "%.*s", (int)size, line);
    if (regcomp(&noise, form, REG_EXTENDED | REG_NOSUB) != 0) return false;
    bool found = regexec(&noise, text, 0, NULL, 0) == 0;
    regfree(&noise);
    return found;
}

static void pass_on(const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(atomic_load(&quiet.beyond), bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {atomic_load(&quiet.beyond), POLLOUT, 0};
            if (poll(&wait, 1, STALL_MS) > 0) continue;
        }
        if (written <= 0) return;
        bytes += written;
        size -= (size_t)written;
    }
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
        struct pollfd wait = {quiet.ends[0], POLLIN, 0};
        int ready = poll(&wait, 1, have ? SLICE_MS : -1);
        atomic_store(&quiet.busy, true); /* before the bytes leave the pipe: see drain() */
        if (ready == 0) {
            if (++slices < SLICES_MOST && !atomic_load(&quiet.over)) continue;
            pass_on(held, have);
            have = 0;
        } else if (ready > 0) {
            slices = 0;
            ssize_t size = read(quiet.ends[0], held + have, sizeof held - have);
            if (size == 0 || (size < 0 && errno != EINTR)) return NULL;
            if (size > 0) have = filter(held, have + (size_t)size);
        }
        atomic_store(&quiet.busy, have > 0);
    }
}

static bool start(void)
{
    pthread_t thread;
    if (quiet.ends[0] >= 0) return true;
    if (quiet.broken || pipe2(quiet.ends, O_CLOEXEC) != 0) {
        quiet.broken = true;
        return false;
    }
    if (drupe_thread_start(&thread, pump, NULL, "drupe-quiet") == DRUPE_OK) {
        pthread_detach(thread);
        return true;
    }
    close(quiet.ends[0]);
    close(quiet.ends[1]);
    quiet.ends[0] = quiet.ends[1] = -1;
    quiet.broken = true;
    return false;
}

static bool same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void drupe_quiet_begin(void)
{
    pthread_mutex_lock(&quiet.lock);
    atomic_store(&quiet.over, false);
    if (quiet.depth++ == 0 && start() && !same_file(2, quiet.ends[1])) {
        int kept = fcntl(2, F_DUPFD_CLOEXEC, 3);
        int old = kept >= 0 ? atomic_exchange(&quiet.beyond, kept) : -1;
        if (old >= 0) close(old);
        if (kept >= 0) (void)dup2(quiet.ends[1], 2);
    }
    pthread_mutex_unlock(&quiet.lock);
}

/* What was written so far has gone where it belongs. */
static void drain(void)
{
    struct timespec pause = {0, 50000};
    int waiting = 0;
    for (int i = 0; i < 400; i++) {
        if (ioctl(quiet.ends[0], FIONREAD, &waiting) != 0 || (waiting == 0 && !atomic_load(&quiet.busy)))
            return;
        nanosleep(&pause, NULL);
    }
}

void drupe_quiet_end(void)
{
    pthread_mutex_lock(&quiet.lock);
    if (--quiet.depth == 0 && quiet.ends[0] >= 0 && same_file(2, quiet.ends[1])) {
        (void)dup2(atomic_load(&quiet.beyond), 2);
        atomic_store(&quiet.over, true);
        drain();
    }
    pthread_mutex_unlock(&quiet.lock);
}
