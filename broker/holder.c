/* Processes that hold leases. Each is watched by a pidfd, which means this process and never a later one of
 * the same number. The start time tells it from such a one where only the number is known: in the journal. */
#include "base/machine.h"
#include "broker/broker_state.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define ANCESTORS_MOST 64

/* The number in field `field` (from 4 on) of /proc/PID/stat. The second field is the program's name in
 * brackets, which may contain anything. */
static bool stat_number(pid_t pid, unsigned field, uint64_t *number)
{
    char name[40], text[1024];
    snprintf(name, sizeof name, "%ld/stat", (long)pid);
    if (drupe_proc_read(name, text, sizeof text) <= 0) return false;
    const char *at = strrchr(text, ')');
    for (unsigned i = 2; at && i < field; i++) {
        at = strchr(at + 1, ' ');
    }
    if (!at) return false;
    *number = strtoull(at + 1, NULL, 10);
    return true;
}

bool bk_process_read(pid_t pid, uint64_t *start, uid_t *uid)
{
    char name[40], text[4096];
    if (pid <= 0 || !stat_number(pid, 22, start)) return false;
    snprintf(name, sizeof name, "%ld/status", (long)pid);
    if (drupe_proc_read(name, text, sizeof text) <= 0) return false;
    uint64_t real = drupe_number_after(text, "Uid:");
    *uid = (uid_t)real;
    return real != DRUPE_NOT_KNOWN;
}

bool bk_holder_above(const bk_holder *holder, pid_t pid)
{
    uint64_t parent = (uint64_t)pid;
    for (unsigned i = 0; i < ANCESTORS_MOST && parent > 0; i++) {
        if ((pid_t)parent == holder->pid) return true;
        if (!stat_number((pid_t)parent, 4, &parent)) return false;
    }
    return false;
}

int bk_peer_pidfd(int fd, pid_t pid)
{
    int pidfd = -1;
    socklen_t size = sizeof pidfd;
    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) return pidfd;
    /* Before Linux 6.5: the caller compares the start time with that at the connection. */
    if (fd < 0 || errno == ENOPROTOOPT) return (int)syscall(SYS_pidfd_open, pid, 0);
    return -1;
}

static bool exited(int pidfd)
{
    struct pollfd one = {.fd = pidfd, .events = POLLIN};
    return poll(&one, 1, 0) != 0;
}

static void holder_ready(bk_broker *broker, bk_source *source, uint32_t events)
{
    (void)events;
    bk_holder *holder = (bk_holder *)source;
    holder->uses++; /* its last lease must not take it away under us */
    while (holder->leases) bk_lease_end(broker, holder->leases, BK_EXITED, NULL);
    for (bk_ticket *ticket = broker->first_ticket, *next; ticket; ticket = next) {
        next = ticket->next;
        if (ticket->holder == holder) bk_ticket_end(broker, ticket, BK_EXITED);
    }
    if (holder->fd >= 0) {
        close(holder->fd); /* which takes it out of epoll, too */
        holder->fd = -1;
        drupe_map_remove(&broker->holders, &holder->pid, sizeof holder->pid);
    }
    bk_holder_release(broker, holder);
}

static bk_holder *holder_new(bk_broker *broker, pid_t pid, int pidfd, uint64_t start, uid_t uid)
{
    bk_holder *holder = calloc(1, sizeof *holder);
    if (!holder) return NULL;
    *holder =
        (bk_holder){.source = {holder_ready}, .pid = pid, .start = start, .uid = uid, .fd = pidfd, .uses = 1};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = holder};
    if (drupe_map_put(&broker->holders, &pid, sizeof pid, holder, NULL) == DRUPE_OK) {
        if (broker->epoll < 0 || epoll_ctl(broker->epoll, EPOLL_CTL_ADD, pidfd, &event) == 0) return holder;
        drupe_map_remove(&broker->holders, &pid, sizeof pid);
    }
    free(holder);
    return NULL;
}

bk_holder *bk_holder_get(bk_broker *broker, pid_t pid, uint64_t start, int pidfd, const char **why)
{
    bk_holder *holder = drupe_map_get(&broker->holders, &pid, sizeof pid);
    uid_t uid = 0;
    uint64_t found = 0;
    *why = NULL;
    if (holder && exited(holder->fd)) {
        holder_ready(broker, &holder->source, EPOLLIN);
        holder = NULL;
    }
    if (holder) {
        bool other = pidfd >= 0 && exited(pidfd); /* the number was that of somebody before */
        if (pidfd >= 0) close(pidfd);
        if (other || (start && holder->start != start)) {
            *why = "The process that was meant has ended; another one has its number.";
            return NULL;
        }
        holder->uses++;
        return holder;
    }
    if (pidfd < 0 && pid > 0) pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        bool full = errno == EMFILE || errno == ENFILE;
        *why = full ? "The broker has no more descriptors to watch processes with."
                    : "There is no such process.";
        return NULL;
    }
    /* What is read belongs to the process of the pidfd only if that is still there afterwards. */
    bool read = bk_process_read(pid, &found, &uid);
    if (!read || exited(pidfd) || (start && found != start)) {
        *why = "The process has ended, or /proc does not show it to the broker.";
    } else {
        holder = holder_new(broker, pid, pidfd, found, uid);
        if (!holder) *why = "The broker has no memory to watch another process.";
    }
    if (!holder) close(pidfd);
    return holder;
}

void bk_holder_release(bk_broker *broker, bk_holder *holder)
{
    if (!holder || --holder->uses) return;
    if (holder->fd >= 0) {
        close(holder->fd);
        drupe_map_remove(&broker->holders, &holder->pid, sizeof holder->pid);
        holder->fd = -1;
    }
    /* This turn's events may still name it. */
    holder->dead = broker->dead_holders;
    broker->dead_holders = holder;
    holder->source.ready = NULL;
}
