/* The process around the server: what it must have before libzmq starts, the signals that ask it to end, and
 * its forked children.
 *
 * libzmq ends the process with abort() when it cannot start a thread or make a descriptor. So both are tried
 * first, where a failure is still one clear line.
 *
 * A forked child must not hold the kernel's sockets: the ports would stay taken for as long as it lives, and
 * clients would not see the kernel's end. libzmq tells nobody its descriptors; they are recognized by the
 * port they are bound to. */
#include "jkernel/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define THREADS_NEEDED                                                                                       \
    8 /* four of libzmq's with encryption, three of ours, one to spare for the watchdog                      \
       */
#define DESCRIPTORS_NEEDED 40 /* of libzmq's sockets and ours; each connection takes one more */
#define DESCRIPTORS_LOOKED 4096

/* --- Before the start --------------------------------------------------------------------------------------
 */

/* A socket with the number of a standard descriptor would be written to by every printf(). */
static int standard_descriptors_fill(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        int opened = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
        if (opened < 0) return -1;
        if (opened != fd) close(opened);
    }
    return 0;
}

static int descriptors_try(void)
{
    int tried[DESCRIPTORS_NEEDED], count = 0;
    while (count < DESCRIPTORS_NEEDED && (tried[count] = eventfd(0, EFD_CLOEXEC)) >= 0) count++;
    int reason = errno, result = count == DESCRIPTORS_NEEDED ? 0 : -1;
    while (count > 0) close(tried[--count]);
    errno = reason;
    return result;
}

static void *thread_wait(void *barrier)
{
    pthread_mutex_lock(barrier);
    pthread_mutex_unlock(barrier);
    return NULL;
}

/* As many threads at once as there will be. */
static int threads_try(void)
{
    pthread_t tried[THREADS_NEEDED];
    pthread_mutex_t barrier = PTHREAD_MUTEX_INITIALIZER;
    int count = 0, reason = 0;
    pthread_mutex_lock(&barrier);
    while (count < THREADS_NEEDED && !reason) {
        reason = pthread_create(&tried[count], NULL, thread_wait, &barrier);
        if (!reason) count++;
    }
    pthread_mutex_unlock(&barrier);
    while (count > 0) pthread_join(tried[--count], NULL);
    errno = reason;
    return reason ? -1 : 0;
}

int jk_process_prepare(char *problem, size_t problem_size)
{
    if (standard_descriptors_fill() != 0 || descriptors_try() != 0) {
        snprintf(problem, problem_size,
                 "cannot open the %d descriptors that a kernel needs: %s; raise the limit (ulimit -n)",
                 DESCRIPTORS_NEEDED, strerror(errno));
        return -1;
    }
    if (threads_try() != 0) {
        snprintf(
            problem, problem_size,
            "cannot start the %d threads that a kernel needs: %s; raise the limit of processes (ulimit -u, "
            "pids of a container) or of memory",
            THREADS_NEEDED, strerror(errno));
        return -1;
    }
    return 0;
}

/* --- Signals that ask for the end --------------------------------------------------------------------------
 */

static const int ends[] = {SIGTERM, SIGHUP};
#define ENDS (sizeof ends / sizeof ends[0])

static struct {
    struct sigaction before[ENDS];
    bool taken[ENDS];
    atomic_int asked; /* the signal that came, or 0 */
    atomic_int wake;  /* eventfd of the control thread */
} ending = {.wake = -1};

static void on_end(int number)
{
    atomic_store(&ending.asked, number);
    int wake = atomic_load(&ending.wake);
    if (wake >= 0) jk_event_raise(wake);
}

void jk_ending_watch(int wake)
{
    struct sigaction ours = {.sa_handler = on_end, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    atomic_store(&ending.asked, 0);
    atomic_store(&ending.wake, wake);
    for (size_t i = 0; i < ENDS; i++) {
        struct sigaction *before = &ending.before[i];
        /* nohup has it ignored, and a host program may have a handler: theirs to decide. */
        ending.taken[i] = sigaction(ends[i], NULL, before) == 0 && !(before->sa_flags & SA_SIGINFO) &&
                          before->sa_handler == SIG_DFL && sigaction(ends[i], &ours, NULL) == 0;
    }
}

int jk_ending_asked(void)
{
    return atomic_exchange(&ending.asked, 0);
}

/* A signal for the child that arrives before it has given the handler back would be lost: it waits. */
static _Thread_local sigset_t before_fork;

void jk_ending_hold(void)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < ENDS; i++) sigaddset(&held, ends[i]);
    pthread_sigmask(SIG_BLOCK, &held, &before_fork);
}

void jk_ending_resume(void)
{
    pthread_sigmask(SIG_SETMASK, &before_fork, NULL);
}

/* A handler that came after ours stays. */
void jk_ending_forget(void)
{
    for (size_t i = 0; i < ENDS; i++) {
        struct sigaction now;
        if (!ending.taken[i]) continue;
        ending.taken[i] = false;
        if (sigaction(ends[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == on_end) {
            sigaction(ends[i], &ending.before[i], NULL);
        }
    }
    atomic_store(&ending.wake, -1);
}

/* --- The forked child --------------------------------------------------------------------------------------
 */

static struct {
    int ports[JK_CHANNELS];                  /* 0: none */
    char path[JK_CHANNELS][JK_IP_SIZE + 16]; /* of ipc; "": none */
} bound;

void jk_bound_remember(const jk_config *config)
{
    for (int i = 0; i < JK_CHANNELS; i++) {
        bound.ports[i] = config ? config->ports[i] : 0;
        bound.path[i][0] = '\0';
        if (config && config->ip[0] == '/') {
            snprintf(bound.path[i], sizeof bound.path[i], "%s-%d", config->ip, config->ports[i]);
        }
    }
}

static bool address_is_ours(const struct sockaddr_storage *address)
{
    int port = 0;
    if (address->ss_family == AF_INET) port = ntohs(((const struct sockaddr_in *)address)->sin_port);
    if (address->ss_family == AF_INET6) port = ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    for (int i = 0; i < JK_CHANNELS; i++) {
        if (port && port == bound.ports[i]) return true;
        if (address->ss_family == AF_UNIX && bound.path[i][0] &&
            strcmp(((const struct sockaddr_un *)address)->sun_path, bound.path[i]) == 0) {
            return true;
        }
    }
    return false;
}

void jk_bound_close(void)
{
    struct rlimit limit;
    int most = DESCRIPTORS_LOOKED;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)most) most = (int)limit.rlim_cur;
    if (bound.ports[0] == 0) return;
    for (int fd = 3; fd < most; fd++) {
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof address;
        if (getsockname(fd, (struct sockaddr *)&address, &size) == 0 && address_is_ours(&address)) close(fd);
    }
}
