/* One shell beside the main one: an inbox with an id and references. */
#include "jkernel/server/requests/requests_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* A UUID of version 4. */
static int id_make(char id[37])
{
    unsigned short part[8];
    if (getrandom(part, sizeof part, 0) != (ssize_t)sizeof part) return -1;
    snprintf(id, 37, "%04x%04x-%04x-4%03x-%04x-%04x%04x%04x", part[0], part[1], part[2], part[3] & 0xfff,
             (part[4] & 0x3fff) | 0x8000, part[5], part[6], part[7]);
    return 0;
}

jk_subshell *jk_subshell_create(jk_server *server)
{
    jk_subshell *subshell = calloc(1, sizeof *subshell);
    if (!subshell) return NULL;
    atomic_init(&subshell->references, 1);
    subshell->server = server;
    subshell->inbox.ready = -1;
    if (jk_inbox_open(&subshell->inbox) != 0 || id_make(subshell->id) != 0) {
        jk_subshell_release(subshell);
        return NULL;
    }
    return subshell;
}

jk_subshell *jk_subshell_retain(jk_subshell *subshell)
{
    if (subshell) atomic_fetch_add_explicit(&subshell->references, 1, memory_order_relaxed);
    return subshell;
}

void jk_subshell_release(jk_subshell *subshell)
{
    if (!subshell) return;
    if (atomic_fetch_sub_explicit(&subshell->references, 1, memory_order_acq_rel) != 1) return;
    jk_requests_release(jk_inbox_clear(&subshell->inbox));
    pthread_mutex_destroy(&subshell->inbox.lock);
    free(subshell);
}

const char *jk_subshell_id(const jk_subshell *subshell)
{
    return subshell->id;
}

unsigned jk_subshell_number(const jk_subshell *subshell)
{
    return subshell->number;
}

int jk_subshell_fd(const jk_subshell *subshell)
{
    return subshell->inbox.ready;
}

jk_request *jk_subshell_next(jk_subshell *subshell, bool *ended)
{
    jk_request *request = jk_inbox_next(subshell->server, &subshell->inbox);
    *ended = false;
    if (request) return request;
    *ended = jk_inbox_is_closed(&subshell->inbox) || !jk_server_alive(subshell->server);
    return NULL;
}
