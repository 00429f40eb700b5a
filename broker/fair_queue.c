/* Those who wait, and in which order they are served.
 *
 * The order: who holds least of the kind goes first; then who used least of it in the last hour; then who
 * waited longest; of one user's, what is to be resumed before what is new. Smaller asks may pass a large one
 * that does not fit yet, until that has waited for the configured patience: then it goes before all that was
 * asked later, and what it needs is kept for it. Of each user one ask has that right within the time of the
 * patience, so that many asks do not gain by it.
 *
 * A pass makes a heap of all tickets, serves from its top until something is granted, and begins anew,
 * because who was served holds more now. What found no devices in this pass finds none later in it. */
#include "broker/broker_state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- The order ------------------------------------------------------------------------------------------ */

/* The user's first ticket in this look. */
static void user_prepare(bk_broker *broker, bk_user *user, const bk_ticket *ticket, uint64_t look)
{
    user->look = look;
    user->jumped = false;
    user->oldest = ticket->serial;
    /* Less than a second of one device is no difference. */
    for (unsigned kind = 0; kind < BK_KINDS; kind++) {
        user->used[kind] = floor(bk_user_history(broker, user, (bk_kind)kind));
    }
}

/* Find who goes by patience, and what everybody has used: before a pass. */
static void order_prepare(bk_broker *broker)
{
    uint64_t look = ++broker->look;
    broker->queue_due = INFINITY;
    for (bk_ticket *ticket = broker->first_ticket; ticket; ticket = ticket->next) {
        bk_user *user = ticket->user;
        if (user->look != look) user_prepare(broker, user, ticket, look);
        double when = fmax(ticket->asked, user->jumped_at) + broker->config.patience;
        ticket->first = !user->jumped && broker->now >= when && ticket->waits;
        if (ticket->first) user->jumped = true;
        if (when > broker->now) broker->queue_due = fmin(broker->queue_due, when);
        ticket->used = user->used[ticket->want.kind];
        /* What is to be resumed has the place of its user's oldest ask, and comes before that. */
        ticket->rank = ticket->lease ? 2 * user->oldest - 1 : 2 * ticket->serial;
    }
}

static bool before(const bk_ticket *a, const bk_ticket *b)
{
    if (a->first != b->first) return a->first;
    if (a->first) return a->serial < b->serial;
    /* Of one user's, too: if these went by age alone, a heap of asks of several kinds would have no order. */
    uint64_t x = a->user->held[a->want.kind], y = b->user->held[b->want.kind];
    if (x != y) return x < y;
    if (a->used < b->used || a->used > b->used) return a->used < b->used;
    return a->rank != b->rank ? a->rank < b->rank : a->serial < b->serial;
}

unsigned bk_queue_position(bk_broker *broker, const bk_ticket *ticket)
{
    unsigned position = 1;
    order_prepare(broker);
    for (const bk_ticket *other = broker->first_ticket; other; other = other->next) {
        if (other != ticket && before(other, ticket)) position++;
    }
    return position;
}

static void heap_sink(bk_ticket **heap, size_t count, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && before(heap[child + 1], heap[child])) child++;
        if (!before(heap[child], heap[at])) return;
        bk_ticket *upper = heap[at];
        heap[at] = heap[child];
        heap[child] = upper;
        at = child;
    }
}

static bk_ticket *heap_pop(bk_ticket **heap, size_t *count)
{
    bk_ticket *top = heap[0];
    heap[0] = heap[--*count];
    heap_sink(heap, *count, 0);
    return top;
}

/* --- A pass --------------------------------------------------------------------------------------------- */

#define FAILED_MOST 16

/* One pass: what is found not to be free stays so until its end. */
typedef struct queue_pass {
    uint64_t number;
    bk_want failed[FAILED_MOST];
    unsigned nfailed;
} queue_pass;

static bool same(const bk_want *a, const bk_want *b)
{
    return a->kind == b->kind && a->devices == b->devices && a->parts == b->parts && a->memory == b->memory;
}

static bool hopeless(const queue_pass *pass, const bk_want *want)
{
    for (unsigned i = 0; i < pass->nfailed; i++) {
        if (same(&pass->failed[i], want)) return true;
    }
    return false;
}

/* Serve this ticket, if there is room and its user's quotas allow it. */
static bool serve(bk_broker *broker, bk_ticket *ticket, queue_pass *pass)
{
    bool ever;
    bk_holding holding;
    if (!ticket->first && hopeless(pass, &ticket->want)) return false;
    uint64_t amount = bk_want_amount(broker, &ticket->want);
    if (bk_user_over(broker, ticket->user, amount, true, &ever)) return false;
    const bk_parts *home = ticket->lease ? &ticket->lease->home : NULL;
    if (!bk_claim(broker, &ticket->want, home, pass->number, &holding)) {
        if (ticket->first) bk_reserve(broker, &ticket->want, pass->number);
        if (pass->nfailed < FAILED_MOST) pass->failed[pass->nfailed++] = ticket->want;
        return false;
    }
    if (holding.amount[BK_ANY] > amount &&
        bk_user_over(broker, ticket->user, holding.amount[BK_ANY], true, &ever)) {
        bk_give(broker, &holding);
        return false;
    }
    return bk_grant(broker, ticket, &holding);
}

/* Leave out all that want what is not there. */
static size_t heap_sift(bk_ticket **heap, size_t count, const queue_pass *pass)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bk_ticket *ticket = heap[i];
        if (ticket->first || !hopeless(pass, &ticket->want))
            heap[kept++] = ticket;
        else
            ticket->failed = pass->number;
    }
    for (size_t i = kept / 2; i-- > 0;) heap_sink(heap, kept, i);
    return kept;
}

/* Serve one ticket; false when none can be. */
static bool pass_one(bk_broker *broker, bk_ticket **heap, size_t most, queue_pass *pass)
{
    size_t count = 0;
    order_prepare(broker);
    for (bk_ticket *ticket = broker->first_ticket; ticket && count < most; ticket = ticket->next) {
        if (ticket->failed != pass->number) heap[count++] = ticket;
    }
    for (size_t i = count / 2; i-- > 0;) heap_sink(heap, count, i);
    while (count) {
        bk_ticket *ticket = heap_pop(heap, &count);
        unsigned known = pass->nfailed;
        if (serve(broker, ticket, pass)) return true;
        ticket->failed = pass->number;
        if (pass->nfailed > known) count = heap_sift(heap, count, pass);
    }
    return false;
}

void bk_queue_run(bk_broker *broker)
{
    broker->look_queue = false;
    broker->queue_due = INFINITY;
    if (!broker->first_ticket) return;
    size_t most = broker->tickets.count;
    bk_ticket **heap = calloc(most, sizeof *heap);
    if (!heap) {
        broker->queue_due = broker->now + 1;
        return;
    }
    queue_pass pass = {.number = ++broker->pass};
    while (broker->first_ticket && bk_anything_free(broker) && pass_one(broker, heap, most, &pass)) continue;
    free(heap);
    broker->look_park = broker->first_ticket != NULL;
}

bool bk_queue_wants(const bk_broker *broker, const bk_lease *lease)
{
    for (const bk_ticket *ticket = broker->first_ticket; ticket; ticket = ticket->next) {
        if (ticket->lease == lease) continue;
        if (ticket->want.kind == BK_ANY || lease->holding.amount[ticket->want.kind] > 0) return true;
    }
    return false;
}
