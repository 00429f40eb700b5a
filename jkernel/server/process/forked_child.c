/* A forked child must not hold the kernel's sockets: the ports would stay taken for as long as it lives, and
 * clients would not see the kernel's end. libzmq tells nobody its descriptors; they are recognized by the
 * port they are bound to. */
#include "jkernel/server/process/process_room.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DESCRIPTORS_LOOKED 4096

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
