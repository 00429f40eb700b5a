/* Ctrl-C that does not end a cell. A function of C may hold the language's lock, and a program may catch
 * every exception there is: whoever has interrupted twice is told so, in the cell, with the one thing that
 * helps. */
#include "jkernel/server/server.h"

#include <stdio.h>

#define SOON  (2 * JK_SECOND)        /* two interrupts that belong together */
#define GRACE (300 * JK_MILLISECOND) /* for the second one to do its work */

void jk_server_interrupted(jk_server *server)
{
    atomic_fetch_add(&server->insist.came, 1);
    jk_event_raise(server->replies.wake);
}

void jk_server_interrupt_taken(jk_server *server)
{
    atomic_store(&server->insist.told_by_executor, atomic_load(&server->insist.came));
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
    jk_parent_release(server->insist.told);
    server->insist.told = jk_parent_retain(cell);
}

/* One or more have come since the last look. */
static void insist_note(jk_server *server, unsigned came)
{
    jk_insist *insist = &server->insist;
    int64_t now = jk_clock();
    jk_parent *cell = jk_server_current_cell(server);
    bool second =
        came - insist->seen > 1 || (insist->last && now - insist->last < SOON && cell == insist->cell);
    if (second && cell && cell != insist->told) insist->look = now + GRACE;
    jk_parent_release(insist->cell);
    insist->cell = cell;
    insist->last = now;
    insist->seen = came;
}

int jk_insist_look(jk_server *server)
{
    jk_insist *insist = &server->insist;
    unsigned came = atomic_load(&insist->came);
    if (came != insist->seen) insist_note(server, came);
    if (!insist->look) return -1;
    int64_t rest = insist->look - jk_clock();
    if (rest > 0) return (int)(rest / JK_MILLISECOND) + 1;
    insist->look = 0;
    if (atomic_load(&insist->told_by_executor) == came) return -1;
    if (insist->cell && jk_server_cell_runs(server, insist->cell)) tell(server, insist->cell);
    return -1;
}

void jk_insist_clear(jk_insist *insist)
{
    jk_parent_release(insist->cell);
    jk_parent_release(insist->told);
    insist->cell = insist->told = NULL;
}
