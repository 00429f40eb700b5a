/* The recorder: one thread that reads the trace ring before it comes round again.
 *
 * It sleeps until something is submitted. Then it looks again, ten times a second or less, and earlier when a
 * quarter of the ring is full: then it wakes by itself if it can tell when that will be, and submitters wake
 * it if not. While submissions are unfinished it also has the queues looked at, which is how their ends are
 * known when nobody waits for them.
 *
 * The beginnings and ends of cells are told by threads that must not wait: they put a note into a small ring
 * with a lock of its own. Everything else is done under one lock, by the thread or by whoever takes a view.
 */
#include "base/service.h"
#include "view/history.h"
#include <stdatomic.h>
#include <time.h>

#define WAKE_EVERY    (DRUPE_TRACE_RECORDS / 4)
#define LOOK_FIRST_NS UINT64_C(1000000)
#define LOOK_NS       UINT64_C(100000000)
#define COST_LEAST    400u /* looks, and waking for them, take at most one part of so many of the time */
#define QUIET_PART    8u
#define EDGES         64u
#define TELL_NS       UINT64_C(250000000)
#define REST_NS       UINT64_C(500000000) /* after which work is over, and not about to go on */

/* A cell begins or ends, or the recorder looks. The memory's peak belongs to what ran before. */
typedef struct edge {
    uint64_t ns, high, used;
    uint32_t cell;
    enum { CELL_BEGAN, CELL_ENDED, LOOKED } what;
} edge;

/* What the thread keeps from round to round. */
typedef struct rounds {
    uint64_t changed_ns; /* when something was last found to have changed */
    uint64_t serial;
    uint64_t own_ns;  /* processor time of the thread, then */
    uint64_t cost_ns; /* of the last round, with its sleep */
    uint64_t told_ns; /* when the listener was called */
    uint64_t looked_ns, read_ns;
    uint64_t after, until; /* records read; the submission that would have woken it */
    bool untold;
    uint64_t worked_ns; /* when work was last seen */
} rounds;

static uint64_t record(void *unused);
static void rouse(void *unused);

/* Over 20 members with those of the rounds and the service: there is one recorder, and this is all of it. */
static struct {
    pthread_mutex_t lock;
    pthread_mutex_t life; /* the service's; taken first */
    bool running;
    drupe_history *history;
    uint64_t edge_used; /* in use when the last cell whose edge was read began or ended */
    _Atomic(bool) forked, on;
    drupe_view_listener *_Atomic listener;
    drupe_view_work_listener *_Atomic work_listener;
    _Atomic(bool) works;
    rounds round; /* the thread's own */
    drupe_service service;
    /* Held for a moment only, whatever else goes on. */
    pthread_mutex_t edge_lock;
    edge edges[EDGES];
    uint64_t edges_put, edges_read;
} recorder = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .life = PTHREAD_MUTEX_INITIALIZER,
    .service = {.name = "drupe-recorder", .lock = &recorder.life, .step = record, .rouse = rouse},
    .edge_lock = PTHREAD_MUTEX_INITIALIZER,
};

/* --- Cells ---------------------------------------------------------------------------------------------- */

static void put_edge(uint32_t cell, int what)
{
    pthread_mutex_lock(&recorder.edge_lock);
    edge *fresh = &recorder.edges[recorder.edges_put++ % EDGES];
    fresh->ns = drupe_now_ns();
    fresh->high = drupe_memory_high(true, &fresh->used);
    fresh->cell = cell;
    fresh->what = what;
    if (recorder.edges_put - recorder.edges_read > EDGES) recorder.edges_read = recorder.edges_put - EDGES;
    pthread_mutex_unlock(&recorder.edge_lock);
}

static void tell_edge(uint32_t cell, int what)
{
    if (!atomic_load(&recorder.on) || atomic_load(&recorder.forked)) return;
    put_edge(cell, what);
    drupe_trace_wake();
}

void drupe_view_cell_began(uint32_t number)
{
    tell_edge(number, CELL_BEGAN);
}

void drupe_view_cell_ended(uint32_t number)
{
    tell_edge(number, CELL_ENDED);
}

static bool next_edge(edge *next)
{
    pthread_mutex_lock(&recorder.edge_lock);
    bool more = recorder.edges_read < recorder.edges_put;
    if (more) *next = recorder.edges[recorder.edges_read++ % EDGES];
    pthread_mutex_unlock(&recorder.edge_lock);
    return more;
}

static bool edges_wait(void)
{
    pthread_mutex_lock(&recorder.edge_lock);
    bool wait = recorder.edges_read < recorder.edges_put;
    pthread_mutex_unlock(&recorder.edge_lock);
    return wait;
}

/* `*cell`: the last that changed what is in use, since several may have ended since the last look. `*any`:
 * there was an edge of a cell, now or before. */
static void read_edges(drupe_history *history, uint32_t *cell, bool *any)
{
    edge next;
    put_edge(0, LOOKED);
    while (next_edge(&next)) {
        drupe_account_memory(history, next.high);
        if (next.what == LOOKED) continue;
        if (next.what == CELL_BEGAN)
            drupe_account_began(history, next.cell, next.ns, next.used);
        else
            drupe_account_finished(history, next.cell, next.ns, next.used);
        if (!*any || (next.what == CELL_ENDED && next.used != recorder.edge_used)) *cell = next.cell;
        recorder.edge_used = next.used;
        history->serial++;
        *any = true;
    }
}

/* What changed since the last edge was the running cell's. So the edges are looked at again once the figures
 * are taken: else a cell's memory could be noted for the cell before it. */
static void read_memory(drupe_history *history)
{
    drupe_figures figures;
    uint32_t cell = history->reading_cell;
    bool any = false;
    for (unsigned turn = 0; turn == 0 || (turn < EDGES && edges_wait()); turn++) {
        read_edges(history, &cell, &any);
        drupe_figures_look(&figures);
    }
    uint32_t running = drupe_account_running(history);
    if (running && (!any || figures.used != recorder.edge_used)) cell = running;
    drupe_samples_take(history, &figures, drupe_now_ns(), cell, any);
}

/* --- The thread ----------------------------------------------------------------------------------------- */

static void read_all(drupe_history *history)
{
    drupe_history_read(history, drupe_now_ns());
    read_memory(history);
}

static uint64_t pause_of(const rounds *round, uint64_t now)
{
    uint64_t pause = (now - round->changed_ns) / QUIET_PART;
    if (pause > LOOK_NS) pause = LOOK_NS;
    if (pause < LOOK_FIRST_NS) pause = LOOK_FIRST_NS;
    return pause > round->cost_ns * COST_LEAST ? pause : round->cost_ns * COST_LEAST;
}

void drupe_view_listen(drupe_view_listener *listener)
{
    atomic_store(&recorder.listener, listener);
}

void drupe_view_listen_work(drupe_view_work_listener *listener)
{
    atomic_store(&recorder.work_listener, listener);
}

bool drupe_view_works(void)
{
    return atomic_load(&recorder.works);
}

/* `works`: something is not over, or was submitted since the last look. Returns how long until the rest is.
 */
static uint64_t tell_work(rounds *round, bool works, uint64_t now)
{
    drupe_view_work_listener *listener = atomic_load(&recorder.work_listener);
    bool before = atomic_load(&recorder.works);
    if (works) round->worked_ns = now;
    bool goes_on = works || (before && now - round->worked_ns < REST_NS);
    if (goes_on == before) return goes_on ? round->worked_ns + REST_NS - now : DRUPE_FOREVER;
    atomic_store(&recorder.works, goes_on);
    if (listener) listener(goes_on);
    return goes_on ? REST_NS : DRUPE_FOREVER;
}

/* The first news at once, what follows together. Returns how long the rest can wait. */
static uint64_t tell(rounds *round, uint64_t now)
{
    drupe_view_listener *listener = atomic_load(&recorder.listener);
    if (!round->untold) return DRUPE_FOREVER;
    if (now - round->told_ns < TELL_NS) return round->told_ns + TELL_NS - now;
    if (listener) listener();
    round->untold = false;
    round->told_ns = now;
    return DRUPE_FOREVER;
}

/* While the ring fills, submitters look at their queues all the time. */
static bool time_to_look(rounds *round)
{
    uint64_t now = drupe_now_ns();
    bool fills = drupe_trace_latest() - round->after >= WAKE_EVERY / 2;
    if (fills && now - round->looked_ns < LOOK_NS) return false;
    round->looked_ns = now;
    return true;
}

/* What only the queues know. Takes their locks, which a driver may hold up, so not under ours. */
static void ask_queues(rounds *round)
{
    uint32_t stale[DRUPE_QUEUES_MOST];
    pthread_mutex_lock(&recorder.lock);
    bool unfinished = recorder.history->npending > 0;
    size_t count = drupe_history_stale_queues(recorder.history, stale);
    pthread_mutex_unlock(&recorder.lock);
    if (unfinished && time_to_look(round)) drupe_trace_look();
    for (size_t i = 0; i < count; i++) {
        uint64_t latest = drupe_trace_latest(), oldest = drupe_trace_oldest(stale[i]);
        pthread_mutex_lock(&recorder.lock);
        drupe_history_resolve(recorder.history, stale[i], oldest, latest, drupe_now_ns());
        pthread_mutex_unlock(&recorder.lock);
    }
}

/* How long it takes, as things went on lately, until the submission that is to wake it is nearly made: a
 * thread that wakes by itself costs submitters nothing. */
static uint64_t fill_time(rounds *round, uint64_t now, uint64_t after)
{
    uint64_t count = after - round->after, passed = now - round->read_ns;
    round->after = after;
    round->read_ns = now;
    if (count < WAKE_EVERY / 2) return DRUPE_FOREVER;
    return passed * (WAKE_EVERY - WAKE_EVERY / 8) / count;
}

/* Returns how long to sleep, at most until the submission `round->until`. */
static uint64_t work(rounds *round)
{
    ask_queues(round);
    pthread_mutex_lock(&recorder.lock);
    drupe_history *history = recorder.history;
    read_all(history);
    uint64_t now = drupe_now_ns(), after = history->after;
    bool changed = history->serial != round->serial;
    bool unfinished = history->npending > 0, quiet = !changed && !unfinished && history->nholes == 0;
    round->serial = history->serial;
    pthread_mutex_unlock(&recorder.lock);
    if (changed) round->changed_ns = now;
    round->untold = round->untold || changed || unfinished; /* how long it goes on is news */
    uint64_t rest = tell(round, now), calm = tell_work(round, unfinished || after != round->after, now);
    if (calm < rest) rest = calm;
    uint64_t own = drupe_thread_cpu_ns();
    round->cost_ns = own - round->own_ns;
    round->own_ns = own;
    round->until = quiet ? after + 1 : after + WAKE_EVERY;
    uint64_t fill = fill_time(round, now, after), pause = pause_of(round, now);
    return quiet ? rest : fill < pause ? fill : pause;
}

static uint64_t record(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&recorder.life);
    uint64_t span = work(&recorder.round);
    drupe_trace_await(recorder.round.until, span);
    pthread_mutex_lock(&recorder.life);
    return 0;
}

/* It sleeps where submissions ring. */
static void rouse(void *unused)
{
    (void)unused;
    drupe_trace_wake();
}

/* --- Life ----------------------------------------------------------------------------------------------- */

static void on_fork_child(void)
{
    atomic_store(&recorder.forked, true);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, on_fork_child);
}

static drupe_status check_process(void)
{
    if (!atomic_load(&recorder.forked)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNAVAILABLE,
                           "This process was forked from one that records what its devices do, and has no "
                           "records of its own. Start worker processes with the 'spawn' method instead.");
}

static drupe_status start_locked(void)
{
    if (recorder.running) return DRUPE_OK;
    drupe_history *history = drupe_history_new();
    if (!history) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory to record what devices do.");
    uint64_t latest = drupe_trace_latest();
    history->after = latest > DRUPE_TRACE_RECORDS ? latest - DRUPE_TRACE_RECORDS : 0;
    drupe_status status = drupe_service_start(&recorder.service);
    if (status != DRUPE_OK) {
        drupe_history_free(history);
        return status;
    }
    /* The first step waits for `life`. */
    recorder.round = (rounds){.changed_ns = drupe_now_ns(), .after = history->after};
    recorder.history = history;
    recorder.edge_used = 0;
    atomic_store(&recorder.works, false);
    recorder.running = true;
    atomic_store(&recorder.on, true);
    return DRUPE_OK;
}

drupe_status drupe_view_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    DRUPE_TRY(check_process());
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&recorder.life);
    pthread_mutex_lock(&recorder.lock);
    drupe_status status = start_locked();
    pthread_mutex_unlock(&recorder.lock);
    pthread_mutex_unlock(&recorder.life);
    return status;
}

static void stop(void)
{
    pthread_mutex_lock(&recorder.lock);
    bool running = recorder.running;
    recorder.running = false;
    atomic_store(&recorder.on, false);
    pthread_mutex_unlock(&recorder.lock);
    drupe_service_stop(&recorder.service);
    if (!running) return; /* whoever came first sees to the rest */
    drupe_history_free(recorder.history);
    recorder.history = NULL;
    /* Nobody looks whether it goes on: what was said last would hold for ever. */
    drupe_view_work_listener *listener = atomic_load(&recorder.work_listener);
    if (atomic_exchange(&recorder.works, false) && listener) listener(false);
}

void drupe_view_stop(void)
{
    if (atomic_load(&recorder.forked)) return;
    pthread_mutex_lock(&recorder.life);
    stop();
    pthread_mutex_unlock(&recorder.life);
}

drupe_status drupe_view_take(const drupe_view_wish *wish, drupe_view **view)
{
    static const drupe_view_wish everything;
    *view = NULL;
    DRUPE_TRY(check_process());
    pthread_mutex_lock(&recorder.lock);
    drupe_status status = DRUPE_E_UNSUPPORTED;
    if (recorder.running) {
        read_all(recorder.history);
        status = drupe_view_make(recorder.history, wish ? wish : &everything, drupe_now_ns(), view);
    } else {
        drupe_error_set(DRUPE_E_UNSUPPORTED,
                        "Nothing records what the devices do: start the recorder first.");
    }
    pthread_mutex_unlock(&recorder.lock);
    return status;
}
