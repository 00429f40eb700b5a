/* Kernels that print: whose text it is that a driver writes.
 *
 * A driver writes what its kernels print to descriptor 1 of the process, as PoCL does when the kernel is at
 * its end, and nothing in the text says who printed it. So work of programs that print is watched, and as
 * long as some of it is not over the observer is told to give such text to the cell of the oldest. Work of
 * another cell on the same queue starts only when that has been changed. It may be wrong where two queues
 * print at once, or where a program of another cell writes to the descriptor meanwhile.
 *
 * The list and what the observer was told change together, under one lock, which is taken before those of the
 * observer. Cells are shared as in failure_poller.c, so that this thread may release them. */
#include "base/service.h"
#include "core/services/services_room.h"
#include <stdlib.h>

typedef struct printing {
    struct printing *next;
    void *cell;
    uint32_t queue;
    drupe_event *predecessor; /* retained: what behind it waits for it; NULL: nothing does */
} printing;

static uint64_t take_what_is_over(void *unused);
static struct {
    pthread_mutex_t lock;
    printing *first, **end; /* in the order of submission */
    void *told;             /* compared, never followed */
    pthread_mutex_t life;   /* guards the rest */
    drupe_service taker;
    drupe_watch *watch;
} prints = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .end = &prints.first,
    .life = PTHREAD_MUTEX_INITIALIZER,
    .taker = {.name = "drupe-prints", .lock = &prints.life, .step = take_what_is_over},
};

/* --- What is not over ----------------------------------------------------------------------------------- */

/* The lock is held. */
static void tell(void)
{
    void *cell = prints.first ? prints.first->cell : NULL;
    if (cell == prints.told) return;
    prints.told = cell;
    drupe_core_printing(cell);
}

/* Only one that is over already cannot be finished. */
static void finish(drupe_event *predecessor)
{
    drupe_status status = predecessor ? drupe_event_finish(predecessor, NULL) : DRUPE_OK;
    (void)status;
}

static void remove_one(printing *over)
{
    pthread_mutex_lock(&prints.lock);
    printing **link = &prints.first;
    while (*link != over) link = &(*link)->next;
    *link = over->next;
    if (!over->next) prints.end = link;
    tell();
    pthread_mutex_unlock(&prints.lock);
    finish(over->predecessor);
    drupe_event_release(over->predecessor);
    drupe_core_cell_release(over->cell);
    free(over);
}

static void take_all(void)
{
    drupe_event *event;
    void *over;
    while (drupe_watch_take(prints.watch, &event, &over)) {
        drupe_event_release(event);
        remove_one(over);
    }
}

/* On the waiter's thread. */
static void wake_up(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&prints.life);
    drupe_service_wake(&prints.taker);
    pthread_mutex_unlock(&prints.life);
}

static uint64_t take_what_is_over(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&prints.life);
    take_all();
    pthread_mutex_lock(&prints.life);
    return UINT64_MAX;
}

static drupe_status start_locked(void)
{
    if (!prints.watch) DRUPE_TRY(drupe_watch_open(wake_up, NULL, &prints.watch));
    return drupe_service_start(&prints.taker);
}

/* In the list before it is watched: it may be over at once. */
static drupe_status begin(drupe_event *event, void *cell, uint32_t queue)
{
    pthread_mutex_lock(&prints.life);
    drupe_status status = start_locked();
    pthread_mutex_unlock(&prints.life);
    if (status != DRUPE_OK) return status;
    printing *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to watch a kernel that prints.");
    fresh->cell = drupe_core_cell_share(cell);
    fresh->queue = queue;
    pthread_mutex_lock(&prints.lock);
    *prints.end = fresh;
    prints.end = &fresh->next;
    tell();
    pthread_mutex_unlock(&prints.lock);
    status = drupe_watch_add(prints.watch, event, fresh);
    if (status != DRUPE_OK) remove_one(fresh);
    return status;
}

void drupe_prints_begin(drupe_event *event)
{
    if (!drupe_core_prints()) return;
    drupe_error kept = *drupe_error_last();
    void *cell = drupe_core_cell();
    /* Without it the text goes to the cell that runs: no reason to fail. */
    if (cell && begin(event, cell, event->queue->base.number) != DRUPE_OK) drupe_error_restore(&kept);
    drupe_core_cell_release(cell);
}

/* The latest on this queue, if it is another cell's. The lock is held. */
static printing *stranger_on(uint32_t queue, const void *cell)
{
    printing *found = NULL;
    for (printing *at = prints.first; at; at = at->next)
        if (at->queue == queue) found = at;
    return found && found->cell != cell ? found : NULL;
}

drupe_event *drupe_prints_predecessor(const drupe_queue *queue)
{
    if (!drupe_core_prints() || drupe_queue_unordered(queue)) return NULL;
    drupe_error kept = *drupe_error_last();
    drupe_event *fresh = NULL, *predecessor = NULL;
    void *cell = drupe_core_cell();
    pthread_mutex_lock(&prints.lock);
    bool needed = stranger_on(queue->base.number, cell) != NULL;
    pthread_mutex_unlock(&prints.lock);
    if (needed && drupe_event_open("text", 0, &fresh) != DRUPE_OK) drupe_error_restore(&kept);
    pthread_mutex_lock(&prints.lock);
    printing *before = fresh ? stranger_on(queue->base.number, cell) : NULL;
    if (before && !before->predecessor) before->predecessor = drupe_event_retain(fresh);
    if (before) predecessor = drupe_event_retain(before->predecessor);
    pthread_mutex_unlock(&prints.lock);
    if (predecessor != fresh) finish(fresh);
    drupe_event_release(fresh);
    drupe_core_cell_release(cell);
    return predecessor;
}

void drupe_prints_stop(void)
{
    pthread_mutex_lock(&prints.life);
    drupe_service_stop(&prints.taker);
    pthread_mutex_unlock(&prints.life);
    if (!prints.watch) return;
    take_all();
    drupe_watch_close(prints.watch, NULL);
    prints.watch = NULL;
    while (prints.first) remove_one(prints.first);
}
