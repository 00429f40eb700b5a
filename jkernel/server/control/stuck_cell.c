/* Ctrl-C that does not end a cell. A function of C may hold the language's lock, and a program may catch
 * every exception there is: whoever has interrupted twice is told so, in the cell, with the one thing that
 * helps. */
#include "jkernel/server/control/control_room.h"

#include <stdio.h>

#define SOON  (2 * JK_SECOND)        /* two interrupts that belong together */
#define GRACE (300 * JK_MILLISECOND) /* for the second one to do its work */

void jk_server_interrupted(jk_server *server)
{
    atomic_fetch_add(&server->control->stuck_cell.came, 1);
    jk_replies_wake(server);
}

void jk_server_interrupt_taken(jk_server *server)
{
    atomic_store(&server->control->stuck_cell.told_by_executor,
                 atomic_load(&server->control->stuck_cell.came));
}

static void tell(jk_server *server, jk_parent *cell)
{
    char where[400], line[600];
    const jk_executor *executor = server->executor;
    size_t size = executor->holding ? executor->holding(executor->self, where, sizeof where - 1) : 0;
    if (!jk_server_cell_runs(server, cell)) return;
    where[size] = '\0'; /* a program may have taken faulthandler's handler away: the place is unknown then */
    int length =
        snprintf(line, sizeof line,
                 "Interrupted twice, and the cell goes on%s%s. Kernel > Restart ends it; its variables "
                 "are lost then.\n",
                 size ? ": it is at " : "", where);
    bool entered = jk_stdio_enter(server);
    jk_outbox_stream(server, cell, JK_STDERR, line, (size_t)length);
    jk_stdio_leave(server, entered);
    jk_parent_release(server->control->stuck_cell.told);
    server->control->stuck_cell.told = jk_parent_retain(cell);
}

/* One or more have come since the last look. */
static void stuck_cell_text(jk_server *server, unsigned came)
{
    jk_stuck_cell *stuck_cell = &server->control->stuck_cell;
    int64_t now = jk_clock();
    jk_parent *cell = jk_server_current_cell(server);
    bool second = came - stuck_cell->seen > 1 ||
                  (stuck_cell->last && now - stuck_cell->last < SOON && cell == stuck_cell->cell);
    if (second && cell && cell != stuck_cell->told) stuck_cell->look = now + GRACE;
    jk_parent_release(stuck_cell->cell);
    stuck_cell->cell = cell;
    stuck_cell->last = now;
    stuck_cell->seen = came;
}

int jk_stuck_cell_look(jk_server *server)
{
    jk_stuck_cell *stuck_cell = &server->control->stuck_cell;
    unsigned came = atomic_load(&stuck_cell->came);
    if (came != stuck_cell->seen) stuck_cell_text(server, came);
    if (!stuck_cell->look) return -1;
    int64_t rest = stuck_cell->look - jk_clock();
    if (rest > 0) return (int)(rest / JK_MILLISECOND) + 1;
    stuck_cell->look = 0;
    if (atomic_load(&stuck_cell->told_by_executor) == came) return -1;
    if (stuck_cell->cell && jk_server_cell_runs(server, stuck_cell->cell)) tell(server, stuck_cell->cell);
    return -1;
}

void jk_stuck_cell_clear(jk_stuck_cell *stuck_cell)
{
    jk_parent_release(stuck_cell->cell);
    jk_parent_release(stuck_cell->told);
    stuck_cell->cell = stuck_cell->told = NULL;
}
