/* Interrupt and end. Nothing here waits for the language. */
#include "jkernel/server/control/control_room.h"

#include <signal.h>
#include <time.h>

#define SHUTDOWN_PATIENCE (2 * JK_SECOND)
#define ORPHAN_PATIENCE   (3 * JK_SECOND / 2) /* with the second of a poll still close to two */
#define CHILDREN_PATIENCE (JK_SECOND)         /* for descendants to clean up */
#define ASK_PATIENCE      (JK_SECOND)         /* for the client that was told of exit() */

void jk_interrupt(jk_server *server)
{
    /* Those that are there now: the interrupt may end the cell before they are told, and what the next cell
     * starts is not meant. */
    jk_processes children;
    jk_descendants(&children);
    server->executor->interrupt(server->executor->self);
    /* As a terminal does: processes that left our group asked to be left alone. */
    jk_processes_signal(&children, SIGINT, true);
}

void jk_shutdown(jk_server *server, bool restart, int exit_code)
{
    if (!jk_life_shut_down(server)) return;
    jk_record_ending(server);
    jk_children_adopt();
    atomic_store(&server->control->children_until, jk_clock() + CHILDREN_PATIENCE);
    jk_watchdog_start(&server->control->watchdog, exit_code ? ORPHAN_PATIENCE : SHUTDOWN_PATIENCE, exit_code);
    jk_input_close(&server->requests->input);
    jk_subshells_close(server);
    server->executor->shutdown(server->executor->self, restart);
    atomic_store(&server->control->told, true);
    jk_children_signal(SIGTERM, false);
}

/* jupyter console reads a reply only while the kernel's process lives. It asks for the shutdown when it has
 * read the one that tells of exit(); other clients do not. */
void jk_server_leave(jk_server *server, bool client_told)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int64_t until = client_told ? jk_clock() + ASK_PATIENCE : 0;
    while (jk_server_alive(server) && !atomic_load(&server->control->told)) {
        if (jk_clock() < until)
            nanosleep(&pause, NULL);
        else
            jk_shutdown(server, false, 0);
    }
}

void jk_shutdown_children(jk_server *server)
{
    jk_children_signal(SIGTERM, false);
    jk_children_end(atomic_load(&server->control->children_until));
}

void jk_control_open(jk_server *server)
{
    jk_parent_watch_open(&server->control->parent);
    jk_watchdog_open(&server->control->watchdog);
}

void jk_control_clear(jk_server *server)
{
    jk_parent_watch_clear(&server->control->parent);
    jk_stuck_cell_clear(&server->control->stuck_cell);
}
