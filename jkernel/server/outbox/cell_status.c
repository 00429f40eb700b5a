/* Which cells execute, and the statuses around requests.
 *
 * Work of devices can outlast its cell. Servers and hubs that end idle kernels know only the statuses, and
 * when the last message came. So while such a policy is on, `busy` without a parent is said a moment after
 * the cell's idle, again after every idle of another request, and once a period as long as a cell or such
 * work lasts: a busy that was said long ago does not count as activity. */
#include "jkernel/server/outbox/outbox_room.h"

#include <stdlib.h>
#include <string.h>

#define WORK_AFTER  (1 * JK_SECOND) /* most work is over by then, and its cell stays idle */
#define WORK_PERIOD 60              /* seconds; hubs ask for activity every few minutes */
#define MILLISECOND (JK_SECOND / 1000)

#define ANSWERED_SIZE 4096 /* bytes of a header that is kept beyond its request */

/* `only`: as in jk_entry. */
static jk_entry *status_entry(jk_parent *parent, const char *state, uint64_t only)
{
    jk_entry *entry = jk_entry_create(JK_ENTRY_PUBLISH, "status", parent);
    if (!entry) return NULL;
    entry->only = only;
    jk_buffer_append_text(&entry->content, "{\"execution_state\":\"");
    jk_buffer_append_text(&entry->content, state);
    jk_buffer_append_text(&entry->content, "\"}");
    return entry;
}

void jk_server_started(jk_server *server)
{
    if (jk_server_alive(server) && !atomic_exchange(&server->output->cells.started, true)) {
        jk_outbox_push(server, status_entry(NULL, "starting", 0));
    }
}

static bool cell_runs_locked(const jk_cells *cells, const jk_parent *parent)
{
    const jk_parent *cell = cells->cell;
    while (cell && cell != parent) cell = cell->below;
    return cell != NULL;
}

static void status_busy_locked(jk_server *server, jk_parent *parent, bool cell)
{
    jk_cells *cells = &server->output->cells;
    if (cell && cell_runs_locked(cells, parent)) return; /* announced */
    jk_entry *busy = status_entry(parent, "busy", 0);
    if (busy) busy->patient = true;
    jk_outbox_push_locked(&server->output->outbox, busy);
    cells->serving++;
    if (cell) {
        jk_record_cell(server, true);
        cells->work.again = jk_clock() + cells->work.period;
        jk_parent_release(cells->last_cell);
        cells->last_cell = jk_parent_retain(parent);
        parent->below = cells->cell;
        cells->cell = jk_parent_retain(parent);
    }
}

void jk_status_busy(jk_server *server, jk_parent *parent, bool cell)
{
    jk_outbox *outbox = &server->output->outbox;
    pthread_mutex_lock(&outbox->lock);
    status_busy_locked(server, parent, cell);
    jk_outbox_unlock(outbox);
}

static void cell_end_locked(jk_cells *cells, jk_parent *parent)
{
    jk_parent **link = &cells->cell;
    while (*link && *link != parent) link = &(*link)->below;
    if (!*link) return;
    *link = parent->below;
    cells->work.since = jk_clock();
    parent->below = NULL;
    jk_parent_release(parent);
}

/* Clients take any idle for the kernel's: while a cell runs, its busy is said again in the same step. */
static void status_idle_locked(jk_server *server, jk_parent *parent, jk_entry *reply)
{
    jk_outbox *outbox = &server->output->outbox;
    jk_cells *cells = &server->output->cells;
    if (reply) jk_outbox_push_locked(outbox, reply);
    if (cells->serving > 0) cells->serving--;
    cell_end_locked(cells, parent);
    jk_record_cell(server, cells->cell != NULL);
    jk_outbox_push_locked(outbox, status_entry(parent, "idle", 0));
    if (cells->cell || cells->work.said) jk_outbox_push_locked(outbox, status_entry(cells->cell, "busy", 0));
}

void jk_status_idle(jk_server *server, jk_parent *parent, jk_entry *reply)
{
    jk_outbox *outbox = &server->output->outbox;
    pthread_mutex_lock(&outbox->lock);
    status_idle_locked(server, parent, reply);
    jk_outbox_unlock(outbox);
}

/* --- Work without a cell ---------------------------------------------------------------------------------- */

void jk_work_open(jk_work *work)
{
    const char *policy = getenv("DRUPE_BUSY_DEVICE"), *period = getenv("DRUPE_BUSY_PERIOD");
    const char *hub = getenv("JUPYTERHUB_API_TOKEN"), *lease = getenv("DRUPE_LEASE");
    work->wanted = (hub && *hub) || (lease && *lease);
    if (policy && strcmp(policy, "0") == 0) work->wanted = false;
    if (policy && strcmp(policy, "1") == 0) work->wanted = true;
    long seconds = period ? strtol(period, NULL, 10) : 0;
    work->period = (seconds > 0 && seconds < 86400 ? seconds : WORK_PERIOD) * JK_SECOND;
}

bool jk_server_work(jk_server *server, bool goes_on)
{
    if (!jk_server_alive(server)) return false;
    jk_outbox *outbox = &server->output->outbox;
    jk_cells *cells = &server->output->cells;
    jk_work *work = &cells->work;
    if (!work->wanted) return false; /* never changes */
    pthread_mutex_lock(&outbox->lock);
    if (goes_on && !work->goes_on) {
        work->since = jk_clock();
        jk_outbox_wake_locked(outbox); /* to look in a moment */
    }
    work->goes_on = goes_on;
    if (!goes_on && work->said) {
        work->said = false;
        if (!cells->cell) jk_outbox_push_locked(outbox, status_entry(NULL, "idle", 0));
    }
    jk_outbox_unlock(outbox);
    return true;
}

static int ms_until(int64_t when, int64_t now)
{
    int64_t left = (when - now + MILLISECOND - 1) / MILLISECOND;
    return left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

int jk_status_due(jk_server *server)
{
    jk_outbox *outbox = &server->output->outbox;
    jk_cells *cells = &server->output->cells;
    jk_work *work = &cells->work;
    int delay = -1;
    if (!work->wanted || !jk_server_alive(server) || jk_memory_frozen()) return -1;
    pthread_mutex_lock(&outbox->lock);
    int64_t now = jk_clock();
    bool busy = cells->cell || work->said;
    int64_t due = busy ? work->again : work->since + WORK_AFTER;
    if (busy || work->goes_on) {
        if (now >= due) {
            jk_outbox_push_locked(outbox, status_entry(cells->cell, "busy", 0));
            work->said |= !cells->cell;
            due = work->again = now + work->period;
        }
        delay = ms_until(due, now);
    }
    jk_outbox_unlock(outbox);
    return delay;
}

/* --- Said again ------------------------------------------------------------------------------------------- */

/* In one step: a client takes a cell that is busy for one that runs, and one that is given up never does. */
void jk_status_around(jk_server *server, jk_parent *parent, jk_entry *reply)
{
    jk_outbox *outbox = &server->output->outbox;
    pthread_mutex_lock(&outbox->lock);
    status_busy_locked(server, parent, false);
    status_idle_locked(server, parent, reply);
    jk_outbox_unlock(outbox);
}

void jk_status_answered(jk_server *server, jk_parent *parent)
{
    jk_cells *cells = &server->output->cells;
    if (parent->size > ANSWERED_SIZE) return;
    jk_answered *place = &cells->answered[cells->answers++ % JK_ANSWERED_MOST];
    jk_parent_release(place->parent);
    *place = (jk_answered){jk_parent_retain(parent), jk_clock()};
}

/* Returns whether there was one. */
static bool answered_again_locked(jk_outbox *outbox, const jk_cells *cells, uint64_t only)
{
    bool any = false;
    int64_t since = jk_clock() - JK_ANSWERED_FOR;
    for (unsigned i = 0; i < JK_ANSWERED_MOST; i++) {
        const jk_answered *answered = &cells->answered[(cells->answers + i) % JK_ANSWERED_MOST];
        if (!answered->parent || answered->at < since) continue;
        jk_outbox_push_locked(outbox, status_entry(answered->parent, "idle", only));
        any = true;
    }
    return any;
}

/* With encryption all hear what is said: that a cell runs is no news to them, and who has just come asks. */
void jk_status_again(jk_server *server, bool present, uint64_t only, bool told)
{
    jk_outbox *outbox = &server->output->outbox;
    jk_cells *cells = &server->output->cells;
    if (!jk_server_alive(server) || jk_memory_frozen()) return;
    pthread_mutex_lock(&outbox->lock);
    told |= outbox->statuses > 0; /* it will get those */
    bool busy = cells->cell || cells->serving > 0 || cells->work.said;
    bool behind = answered_again_locked(outbox, cells, only);
    if (present && (behind || (!told && (only || !busy))))
        jk_outbox_push_locked(outbox, status_entry(cells->cell, busy ? "busy" : "idle", only));
    jk_outbox_unlock(outbox);
}

jk_parent *jk_server_current_cell(jk_server *server)
{
    if (!jk_server_alive(server)) return NULL;
    pthread_mutex_lock(&server->output->outbox.lock);
    jk_parent *cell = jk_parent_retain(server->output->cells.cell);
    pthread_mutex_unlock(&server->output->outbox.lock);
    return cell;
}

bool jk_server_cell_runs(jk_server *server, const jk_parent *cell)
{
    if (!jk_server_alive(server)) return false;
    pthread_mutex_lock(&server->output->outbox.lock);
    bool runs = cell_runs_locked(&server->output->cells, cell);
    pthread_mutex_unlock(&server->output->outbox.lock);
    return runs;
}

jk_parent *jk_cells_latest(jk_server *server, bool *running)
{
    const jk_cells *cells = &server->output->cells;
    pthread_mutex_lock(&server->output->outbox.lock);
    *running = cells->cell != NULL;
    jk_parent *latest = *running ? cells->cell : cells->last_cell;
    pthread_mutex_unlock(&server->output->outbox.lock);
    return latest;
}

void jk_cells_clear_locked(jk_cells *cells)
{
    while (cells->cell) {
        jk_parent *cell = cells->cell;
        cells->cell = cell->below;
        jk_parent_release(cell);
    }
    jk_parent_release(cells->last_cell);
    cells->last_cell = NULL;
    for (int i = 0; i < JK_ANSWERED_MOST; i++) {
        jk_parent_release(cells->answered[i].parent);
        cells->answered[i].parent = NULL;
    }
}
