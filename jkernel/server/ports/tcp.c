/* TCP sockets that listen. */
#include "jkernel/server/ports/peer.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 100

static bool address_find(const char *ip, struct sockaddr_storage *address, socklen_t *size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST}, *found;
    memset(address, 0, sizeof *address);
    if (getaddrinfo(strcmp(ip, "*") == 0 ? "0.0.0.0" : ip, NULL, &hints, &found) != 0) {
        errno = EADDRNOTAVAIL;
        return false;
    }
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

/* Where both IPv4 and IPv6 addresses keep their port. */
static in_port_t *port_of(struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6) return &((struct sockaddr_in6 *)address)->sin6_port;
    return &((struct sockaddr_in *)address)->sin_port;
}

int jk_tcp_listen(const char *ip, int *port)
{
    struct sockaddr_storage address;
    socklen_t size;
    int on = 1, off = 0;
    if (!address_find(ip, &address, &size)) return -1;
    *port_of(&address) = htons((uint16_t)*port);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    /* What the port had before may still be on its way. */
    int result = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (result == 0) result = bind(fd, (struct sockaddr *)&address, size);
    if (result == 0) result = listen(fd, BACKLOG);
    if (result == 0) result = getsockname(fd, (struct sockaddr *)&address, &size);
    if (result == 0) {
        *port = ntohs(*port_of(&address));
        return fd;
    }
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}
