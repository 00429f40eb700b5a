/* Displays that change while the caller's interpreter may be stuck.
 *
 * A display belongs to whoever shows it at the moment (`showing`), without the lock, since showing may take
 * as long as a message that a slow client does not read. Closing one that somebody else shows leaves a mark,
 * and that somebody closes it. */
#include "drupe/live.h"
#include "base/service.h"
#include "view/view_room.h"
#include <stdlib.h>

#define BUDGET_NS   UINT64_C(100000000) /* between two that are shown, on average */
#define BURST_NS    UINT64_C(400000000) /* so much of it may be saved */
#define PATIENCE_NS UINT64_C(1000000000)
/* Showing takes at most one part of so many of the time: the smaller one where two seconds are enough. */
#define COST_LEAST 100u
#define COST_USUAL 200u
#define WAIT_USUAL UINT64_C(2000000000)

typedef struct display {
    struct display *next;
    drupe_live_source source;
    uint64_t id, period_ns, due_ns;
    bool showing, closing;
} display;

static uint64_t show_next(void *unused);

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    pthread_cond_t changed;
    drupe_status changed_status;
    display *displays; /* oldest first */
    uint64_t latest, budget_ns;
    drupe_service shower;
} live = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .once = PTHREAD_ONCE_INIT,
    .shower = {.name = "drupe-live", .lock = &live.lock, .step = show_next},
};

static void changed_init(void)
{
    live.changed_status = drupe_cond_init(&live.changed);
}

static display *display_find(uint64_t id)
{
    for (display *one = live.displays; one != NULL; one = one->next)
        if (one->id == id) return one;
    return NULL;
}

static void display_unlink(display *gone)
{
    display **link = &live.displays;
    while (*link != gone) link = &(*link)->next;
    *link = gone->next;
}

static size_t display_count(void)
{
    size_t count = 0;
    for (display *one = live.displays; one != NULL; one = one->next) count++;
    return count;
}

static uint64_t wait_of(uint64_t cost_ns)
{
    uint64_t least = COST_LEAST * cost_ns, usual = COST_USUAL * cost_ns;
    if (usual > WAIT_USUAL) usual = WAIT_USUAL;
    return usual > least ? usual : least;
}

/* Show a display that the caller has claimed by `showing`. Called with the lock, which is given up meanwhile;
 * the display may be gone afterwards. */
static drupe_live_answer display_show(display *one, drupe_live_reason reason)
{
    uint64_t start = drupe_thread_cpu_ns();
    pthread_mutex_unlock(&live.lock);
    drupe_live_answer answer = one->source.show(one->source.user, reason);
    pthread_mutex_lock(&live.lock);
    /* Somebody gave up waiting for this one. */
    if (reason != DRUPE_LIVE_LAST && one->closing && answer != DRUPE_LIVE_OVER) {
        pthread_mutex_unlock(&live.lock);
        (void)one->source.show(one->source.user, DRUPE_LIVE_LAST);
        pthread_mutex_lock(&live.lock);
    }
    uint64_t wait = wait_of(drupe_thread_cpu_ns() - start) * display_count();
    one->due_ns = drupe_now_ns() + (wait > one->period_ns ? wait : one->period_ns);
    one->showing = false;
    bool over = one->closing || reason == DRUPE_LIVE_LAST || answer == DRUPE_LIVE_OVER;
    if (over) display_unlink(one);
    pthread_cond_broadcast(&live.changed);
    drupe_service_wake(&live.shower);
    if (!over) return answer;
    pthread_mutex_unlock(&live.lock);
    if (one->source.release != NULL) one->source.release(one->source.user);
    free(one);
    pthread_mutex_lock(&live.lock);
    return answer;
}

/* The one whose turn is next, or NULL; `*when` is its time. */
static display *display_next(uint64_t *when)
{
    display *best = NULL;
    for (display *one = live.displays; one != NULL; one = one->next)
        if (!one->showing && (best == NULL || one->due_ns < best->due_ns)) best = one;
    *when = best == NULL ? UINT64_MAX : best->due_ns > live.budget_ns ? best->due_ns : live.budget_ns;
    return best;
}

static uint64_t show_next(void *unused)
{
    (void)unused;
    uint64_t when = 0, now = drupe_now_ns();
    display *one = display_next(&when);
    if (one == NULL || when > now) return when;
    one->showing = true;
    if (display_show(one, DRUPE_LIVE_TIME) == DRUPE_LIVE_SAME) return 0;
    uint64_t floor = now > BURST_NS ? now - BURST_NS : 0;
    live.budget_ns = (live.budget_ns > floor ? live.budget_ns : floor) + BUDGET_NS;
    return 0;
}

static drupe_status live_start(void)
{
    pthread_once(&live.once, changed_init);
    if (live.changed_status != DRUPE_OK)
        return drupe_error_set(live.changed_status, "No condition variable could be made.");
    return drupe_service_start(&live.shower);
}

drupe_status drupe_live_open(const drupe_live_source *source, uint64_t period_ns, uint64_t *id)
{
    display *one = calloc(1, sizeof *one);
    drupe_status status = DRUPE_OK;
    if (one == NULL) status = drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a display.");
    pthread_mutex_lock(&live.lock);
    if (status == DRUPE_OK) status = live_start();
    if (status == DRUPE_OK) {
        *one = (display){.source = *source, .id = ++live.latest, .period_ns = period_ns};
        one->due_ns = drupe_now_ns() + period_ns;
        *id = one->id;
        display **link = &live.displays;
        while (*link != NULL) link = &(*link)->next;
        *link = one;
        drupe_service_wake(&live.shower);
        one = NULL;
    }
    pthread_mutex_unlock(&live.lock);
    free(one);
    if (status != DRUPE_OK && source->release != NULL) source->release(source->user);
    return status;
}

/* The display with this number, claimed; NULL when there is none, or it is shown for longer than anybody
 * waits. */
static display *display_claim(uint64_t id)
{
    uint64_t deadline = drupe_deadline(PATIENCE_NS);
    display *one = display_find(id);
    while (one != NULL && one->showing) {
        if (!drupe_cond_wait_until(&live.changed, &live.lock, deadline)) break;
        one = display_find(id);
    }
    if (one == NULL || one->showing) return NULL;
    one->showing = true;
    return one;
}

static uint64_t next_after(uint64_t id)
{
    for (display *one = live.displays; one != NULL; one = one->next)
        if (one->id > id) return one->id;
    return 0;
}

static void live_each(uint64_t id, drupe_live_reason reason)
{
    uint64_t one = id != 0 ? id : next_after(0);
    while (one != 0) {
        display *claimed = display_claim(one), *left = NULL;
        if (claimed != NULL)
            (void)display_show(claimed, reason);
        else if (reason == DRUPE_LIVE_LAST && (left = display_find(one)) != NULL)
            left->closing = true;
        one = id != 0 ? 0 : next_after(one);
    }
}

void drupe_live_show(uint64_t id)
{
    pthread_mutex_lock(&live.lock);
    live_each(id, DRUPE_LIVE_ASKED);
    pthread_mutex_unlock(&live.lock);
}

void drupe_live_close(uint64_t id)
{
    pthread_mutex_lock(&live.lock);
    live_each(id, DRUPE_LIVE_LAST);
    pthread_mutex_unlock(&live.lock);
}

void drupe_live_stop(void)
{
    pthread_mutex_lock(&live.lock);
    live_each(0, DRUPE_LIVE_LAST);
    drupe_service_stop(&live.shower);
    pthread_mutex_unlock(&live.lock);
}

size_t drupe_live_list(uint64_t *ids, size_t capacity)
{
    size_t count = 0;
    pthread_mutex_lock(&live.lock);
    for (display *one = live.displays; one != NULL; one = one->next, count++)
        if (count < capacity) ids[count] = one->id;
    pthread_mutex_unlock(&live.lock);
    return count;
}
