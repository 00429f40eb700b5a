/* Inside the room of ports: shell, control, stdin and heartbeat without encryption. */
#ifndef JK_ROUTER_H
#define JK_ROUTER_H

#include "jkernel/server/ports/peer.h"
#include "jkernel/server/ports/ports_room.h"

/* Bytes of all messages of a channel that have not come to their end, beyond which the one that has most
 * loses its connection. */
#define JK_UNFINISHED_MOST ((size_t)512 << 20)
#define JK_ECHO_MOST       ((size_t)64 << 10) /* bytes of a heartbeat's frame */
#define JK_ECHOES_MOST     ((size_t)1 << 20)  /* bytes of echoes that a peer does not take */
#define JK_ECHOES_COUNT    1024               /* of these echoes: an empty one costs memory, too */

typedef struct jk_arrived { /* a message that is whole */
    struct jk_arrived *next;
    jk_frames frames; /* the first is the identity of its sender */
} jk_arrived;

struct jk_router {
    jk_port port;
    size_t unfinished; /* bytes */
    jk_arrived *head, *tail;
};

/* Take `listener`. NULL with errno. `echoes`, for heartbeats: it echoes while it is served, and nothing
 * arrives. */
jk_router *jk_router_create(int listener, bool echoes);
/* Let the peers take what is queued for `linger` ns at most. NULL-safe. */
void jk_router_release(jk_router *router, int64_t linger);

#endif
