/* Unix sockets. libzmq would remove whatever is at the path when it binds, also the socket of another kernel
 * that is alive; so the socket is bound here and handed over, which is atomic and gives it its mode at once.
 */
#include "jkernel/server/ports/ports_room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG    100
#define LOCK_TRIES 200
#define LOCK_PAUSE 5 /* ms */

static int unix_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Remove the socket of a process that has ended. Returns 0, or -1 with errno when it is not that. */
static int stale_remove(const struct sockaddr_un *address)
{
    struct stat about;
    if (lstat(address->sun_path, &about) != 0) return errno == ENOENT ? 0 : -1;
    if (!S_ISSOCK(about.st_mode)) {
        errno = EEXIST;
        return -1;
    }
    int probe = unix_socket();
    if (probe < 0) return -1;
    int refused = connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 &&
                  (errno == ECONNREFUSED || errno == ENOENT);
    close(probe);
    if (!refused) {
        errno = EADDRINUSE;
        return -1;
    }
    return unlink(address->sun_path) == 0 || errno == ENOENT ? 0 : -1;
}

/* A socket looks stale between its bind() and its listen(), and another one may take the place of a stale one
 * between the look at it and its removal: kernels claim in turns. Returns a descriptor that holds the lock;
 * -1 where a folder cannot be locked, or somebody keeps it locked. */
static int folder_lock(const char *path)
{
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE * JK_MILLISECOND};
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int turn = 0; fd >= 0 && turn < LOCK_TRIES; turn++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
        if (errno != EWOULDBLOCK) break;
        nanosleep(&pause, NULL);
    }
    if (fd >= 0) close(fd);
    return -1;
}

static int socket_claim(const struct sockaddr_un *address, bool replace)
{
    int fd = unix_socket();
    if (fd < 0) return -1;
    int result = fchmod(fd, S_IRUSR | S_IWUSR); /* the mode that bind() gives the file */
    for (int turn = 0; result == 0 && turn < 2; turn++) {
        result = bind(fd, (const struct sockaddr *)address, sizeof *address);
        if (result == 0 || errno != EADDRINUSE || !replace || turn) break;
        result = stale_remove(address);
    }
    if (result == 0 && listen(fd, BACKLOG) != 0) {
        unlink(address->sun_path);
        result = -1;
    }
    if (result == 0) return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

int jk_ipc_claim(const char *path, bool replace)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int lock = folder_lock(path), fd = socket_claim(&address, replace);
    int reason = errno;
    if (lock >= 0) close(lock);
    errno = reason;
    return fd;
}
