/* Requests that wait for one shell, in the order of their arrival. */
#include "jkernel/server/requests/requests_room.h"

#include <sys/eventfd.h>
#include <unistd.h>

int jk_inbox_open(jk_inbox *inbox)
{
    inbox->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    jk_mutex_open(&inbox->lock);
    return inbox->ready < 0 ? -1 : 0;
}

jk_request *jk_inbox_clear(jk_inbox *inbox)
{
    jk_request *request = jk_inbox_close(inbox);
    if (inbox->ready >= 0) close(inbox->ready);
    inbox->ready = -1;
    return request;
}

static void lane_push(jk_lane *lane, jk_request *request)
{
    if (lane->tail) {
        lane->tail->queued.next = request;
    } else {
        lane->head = request;
    }
    lane->tail = request;
}

static jk_request *lane_pop(jk_lane *lane)
{
    jk_request *request = lane->head;
    lane->head = request->queued.next;
    if (!lane->head) lane->tail = NULL;
    request->queued.next = NULL;
    return request;
}

/* The lane with the earlier head; NULL when both are empty. */
static jk_lane *lane_earlier(jk_lane *one, jk_lane *other)
{
    if (!one->head) return other->head ? other : NULL;
    if (!other->head) return one;
    return one->head->queued.arrival < other->head->queued.arrival ? one : other;
}

jk_request *jk_inbox_close(jk_inbox *inbox)
{
    jk_lane all = {0}, *lane;
    pthread_mutex_lock(&inbox->lock);
    inbox->closed = true;
    while ((lane = lane_earlier(&inbox->cells, &inbox->others))) lane_push(&all, lane_pop(lane));
    pthread_mutex_unlock(&inbox->lock);
    return all.head;
}

void jk_inbox_signal(jk_inbox *inbox)
{
    if (!atomic_exchange(&inbox->signalled, true)) jk_event_raise(inbox->ready);
}

bool jk_inbox_push(jk_inbox *inbox, jk_request *request)
{
    pthread_mutex_lock(&inbox->lock);
    bool closed = inbox->closed;
    if (!closed) {
        request->queued.arrival = ++inbox->arrivals;
        lane_push(request->is_execute ? &inbox->cells : &inbox->others, request);
    }
    pthread_mutex_unlock(&inbox->lock);
    if (!closed) jk_inbox_signal(inbox);
    return !closed;
}

/* Where the first request that may start is; NULL: nowhere. */
static jk_lane *lane_ready(jk_inbox *inbox)
{
    bool cell_may = !inbox->executing && inbox->aborting == 0;
    if (!cell_may) return inbox->others.head ? &inbox->others : NULL;
    return lane_earlier(&inbox->cells, &inbox->others);
}

/* The first request that may start, or NULL; `*more` tells whether another one may start beside it. */
static jk_request *take_locked(jk_inbox *inbox, bool *more)
{
    jk_lane *lane = lane_ready(inbox);
    *more = false;
    if (!lane) return NULL;
    jk_request *request = lane_pop(lane);
    request->queued.sequence = ++inbox->last_sequence;
    if (request->is_execute) inbox->executing = request->queued.sequence;
    *more = lane_ready(inbox) != NULL;
    return request;
}

jk_request *jk_inbox_take(jk_inbox *inbox)
{
    /* The descriptor is cleared first, so that a request which is signalled in between is found in the queue.
     */
    jk_event_clear(inbox->ready);
    atomic_store(&inbox->signalled, false);

    bool more;
    pthread_mutex_lock(&inbox->lock);
    inbox->dispatched = true;
    jk_request *request = take_locked(inbox, &more);
    pthread_mutex_unlock(&inbox->lock);
    if (more) jk_inbox_signal(inbox);
    return request;
}

bool jk_inbox_is_closed(jk_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    bool closed = inbox->closed;
    pthread_mutex_unlock(&inbox->lock);
    return closed;
}

bool jk_inbox_announce(jk_inbox *inbox, const jk_request *request)
{
    pthread_mutex_lock(&inbox->lock);
    bool first = request->is_execute && !inbox->dispatched && !inbox->announced;
    if (first) inbox->announced = true;
    pthread_mutex_unlock(&inbox->lock);
    return first;
}

void jk_inbox_end(jk_inbox *inbox, uint64_t sequence)
{
    pthread_mutex_lock(&inbox->lock);
    if (inbox->executing == sequence) inbox->executing = 0;
    bool waiting = inbox->cells.head || inbox->others.head;
    pthread_mutex_unlock(&inbox->lock);
    if (waiting) jk_inbox_signal(inbox);
}

void jk_inbox_abort(jk_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->aborting++;
    pthread_mutex_unlock(&inbox->lock);
}

jk_request *jk_inbox_take_cells(jk_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    jk_request *first = inbox->cells.head;
    inbox->cells = (jk_lane){0};
    inbox->aborting--;
    pthread_mutex_unlock(&inbox->lock);
    return first;
}
