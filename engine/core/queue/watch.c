/* Watches: lists of events of which the finished ones can be taken.
 *
 * The waiter (waiter.c) looks at what is watched, since drivers tell late or never. An entry goes from
 * `pending` to `done` in the order of its end as the waiter sees it. While it looks, the entries are nobody
 * else's: `serving` is held then, and closing a watch waits for that. The eventfd is written when `done` gets
 * its first entry and read when it loses its last, both under the watch's lock. */
#include "core/queue/launch.h"
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

typedef struct watched {
    TAILQ_ENTRY(watched) link;
    drupe_event *event; /* retained */
    void *user;
    bool turn; /* its turn is enough */
} watched;

typedef TAILQ_HEAD(watched_list, watched) watched_list;

struct drupe_watch {
    pthread_mutex_t lock;
    int fd;
    void (*wake)(void *user);
    void *user;
    watched_list pending, done;
    LIST_ENTRY(drupe_watch) link; /* all watches */
};

static struct watches {
    pthread_mutex_t serving; /* taken before a queue's lock, and after slot->lock and the library's */
    pthread_mutex_t lock;    /* guards `all`; a leaf */
    LIST_HEAD(, drupe_watch) all;
} watches = {.serving = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

/* --- Opening and closing -------------------------------------------------------------------------------- */

drupe_status drupe_watch_open(void (*wake)(void *user), void *user, drupe_watch **watch)
{
    *watch = NULL;
    DRUPE_TRY(drupe_core_check());
    drupe_watch *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for watching events.");
    fresh->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fresh->fd < 0) {
        free(fresh);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No file descriptor is left for watching events.");
    }
    pthread_mutex_init(&fresh->lock, NULL);
    TAILQ_INIT(&fresh->pending);
    TAILQ_INIT(&fresh->done);
    fresh->wake = wake;
    fresh->user = user;
    pthread_mutex_lock(&watches.lock);
    LIST_INSERT_HEAD(&watches.all, fresh, link);
    pthread_mutex_unlock(&watches.lock);
    *watch = fresh;
    return DRUPE_OK;
}

static void leave_all(drupe_watch *watch)
{
    pthread_mutex_lock(&watches.serving);
    pthread_mutex_lock(&watches.lock);
    LIST_REMOVE(watch, link);
    pthread_mutex_unlock(&watches.lock);
    pthread_mutex_unlock(&watches.serving);
}

static void drop_all(watched_list *list, void (*release)(void *user))
{
    for (watched *entry; (entry = TAILQ_FIRST(list));) {
        TAILQ_REMOVE(list, entry, link);
        drupe_event_release(entry->event);
        if (release) release(entry->user);
        free(entry);
    }
}

void drupe_watch_close(drupe_watch *watch, void (*release)(void *user))
{
    if (!watch || drupe_core_check() != DRUPE_OK) return;
    leave_all(watch);
    size_t pending = 0;
    for (const watched *at = TAILQ_FIRST(&watch->pending); at; at = TAILQ_NEXT(at, link)) pending++;
    drupe_deferred_dismiss(pending);
    drop_all(&watch->pending, release);
    drop_all(&watch->done, release);
    close(watch->fd);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

int drupe_watch_fd(const drupe_watch *watch)
{
    return watch->fd;
}

/* --- Adding and taking ---------------------------------------------------------------------------------- */

static bool serve_watched(bool *poll);

static drupe_status add(drupe_watch *watch, drupe_event *event, void *user, bool turn)
{
    DRUPE_TRY(drupe_core_check());
    if (!event) return drupe_error_set(DRUPE_E_INVALID, "There is no event to watch.");
    watched *fresh = malloc(sizeof *fresh);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for watching an event.");
    drupe_waiter_others(serve_watched);
    drupe_status status = drupe_deferred_attend();
    if (status != DRUPE_OK) {
        free(fresh);
        return status;
    }
    *fresh = (watched){.event = drupe_event_retain(event), .user = user, .turn = turn};
    if (drupe_event_poll(event) == DRUPE_PHASE_NATIVE) drupe_queue_flush(event->queue);
    pthread_mutex_lock(&watch->lock);
    TAILQ_INSERT_TAIL(&watch->pending, fresh, link);
    pthread_mutex_unlock(&watch->lock);
    drupe_deferred_kick();
    return DRUPE_OK;
}

drupe_status drupe_watch_add(drupe_watch *watch, drupe_event *event, void *user)
{
    return add(watch, event, user, false);
}

drupe_status drupe_watch_turn(drupe_watch *watch, drupe_event *event, void *user)
{
    return add(watch, event, user, true);
}

bool drupe_watch_take(drupe_watch *watch, drupe_event **event, void **user)
{
    *event = NULL;
    *user = NULL;
    if (drupe_core_check() != DRUPE_OK) return false;
    uint64_t told;
    pthread_mutex_lock(&watch->lock);
    watched *entry = TAILQ_FIRST(&watch->done);
    if (entry) TAILQ_REMOVE(&watch->done, entry, link);
    if (entry && TAILQ_EMPTY(&watch->done) && read(watch->fd, &told, sizeof told) < 0)
        told = 0; /* it was read by somebody else */
    pthread_mutex_unlock(&watch->lock);
    if (!entry) return false;
    *event = entry->event;
    *user = entry->user;
    /* The caller does the work from here on. */
    if (entry->turn) drupe_core_began(entry->event->number);
    const drupe_checker *checker = drupe_checking();
    if (checker && drupe_phase_over(drupe_event_phase(*event))) checker->event(*event);
    free(entry);
    return true;
}

/* --- The waiter's step ---------------------------------------------------------------------------------- */

static bool is_due(const watched *entry, bool *poll)
{
    drupe_phase phase = drupe_event_poll(entry->event);
    if (phase == DRUPE_PHASE_RUNNING && entry->turn) return true;
    if (phase == DRUPE_PHASE_NATIVE) drupe_event_ask_notify(entry->event);
    if (phase == DRUPE_PHASE_NATIVE || phase == DRUPE_PHASE_SETTLING) *poll = true;
    return drupe_phase_over(phase);
}

/* Sort what is pending; `over` gets what is not any more. The last ones are looked at first: an event may end
 * meanwhile, and who watched it first is told first. */
static size_t look(drupe_watch *watch, watched_list *over, bool *poll)
{
    size_t count = 0;
    watched_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
    pthread_mutex_lock(&watch->lock);
    TAILQ_CONCAT(&waiting, &watch->pending, link);
    pthread_mutex_unlock(&watch->lock);
    for (watched *entry = TAILQ_LAST(&waiting, watched_list), *before; entry; entry = before) {
        before = TAILQ_PREV(entry, watched_list, link);
        if (!is_due(entry, poll)) continue;
        TAILQ_REMOVE(&waiting, entry, link);
        TAILQ_INSERT_HEAD(over, entry, link);
        count++;
    }
    /* In front of those that were added meanwhile. */
    pthread_mutex_lock(&watch->lock);
    TAILQ_CONCAT(&waiting, &watch->pending, link);
    TAILQ_CONCAT(&watch->pending, &waiting, link);
    pthread_mutex_unlock(&watch->lock);
    return count;
}

static void hand_over(drupe_watch *watch, watched_list *over)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&watch->lock);
    bool first = TAILQ_EMPTY(&watch->done);
    TAILQ_CONCAT(&watch->done, over, link);
    if (first && write(watch->fd, &one, sizeof one) < 0) first = true; /* it is readable already */
    pthread_mutex_unlock(&watch->lock);
    if (first && watch->wake) watch->wake(watch->user);
}

/* The waiter's step: move what is over to where it is taken from. `*poll` is set when a driver has some of
 * the rest.
 */
static bool serve_watched(bool *poll)
{
    bool moved = false;
    pthread_mutex_lock(&watches.serving);
    pthread_mutex_lock(&watches.lock);
    drupe_watch *watch = LIST_FIRST(&watches.all);
    pthread_mutex_unlock(&watches.lock);
    while (watch) {
        watched_list over = TAILQ_HEAD_INITIALIZER(over);
        size_t count = look(watch, &over, poll);
        if (count) {
            moved = true;
            hand_over(watch, &over);
            drupe_deferred_dismiss(count);
        }
        pthread_mutex_lock(&watches.lock);
        watch = LIST_NEXT(watch, link);
        pthread_mutex_unlock(&watches.lock);
    }
    pthread_mutex_unlock(&watches.serving);
    return moved;
}
