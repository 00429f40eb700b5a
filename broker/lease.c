/* Leases: who holds what until when, and who is told of it.
 *
 * Times are looked at once the earliest of them has come (bk_broker.due); a look walks over all leases and
 * finds the next. So a lease costs nothing for the time that it has, and a look is rare. */
#include "broker/broker_state.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PARK_MOST  16   /* asks of each kind for which leases are parked at a time */
#define PARK_AGAIN 10.0 /* seconds until another lease is asked when one that was asked does not park */

/* --- Subscriptions -------------------------------------------------------------------------------------- */

bool bk_link_add(bk_broker *broker, bk_client *client, bk_lease *lease)
{
    for (bk_link *link = lease->links; link; link = link->lnext) {
        if (link->client == client) return true;
    }
    bk_link *link = client->nlinks < broker->limits.subscriptions ? calloc(1, sizeof *link) : NULL;
    if (!link) return false;
    *link = (bk_link){client, lease, lease->links, &lease->links, client->links, &client->links};
    if (link->lnext) link->lnext->lprev = &link->lnext;
    if (link->cnext) link->cnext->cprev = &link->cnext;
    lease->links = client->links = link;
    client->nlinks++;
    return true;
}

void bk_link_drop(bk_link *link)
{
    *link->lprev = link->lnext;
    if (link->lnext) link->lnext->lprev = link->lprev;
    *link->cprev = link->cnext;
    if (link->cnext) link->cnext->cprev = link->cprev;
    link->client->nlinks--;
    free(link);
}

/* Tell all that listen but one. */
static void tell(bk_broker *broker, bk_lease *lease, const char *event, const char *key, json_t *value,
                 bk_client *but)
{
    for (bk_link *link = lease->links; link; link = link->lnext) {
        if (link->client == but) continue;
        json_t *packet = json_pack("{ssss}", "event", event, "lease", lease->id);
        if (key) bk_set(packet, key, json_incref(value));
        bk_client_send(broker, link->client, packet);
    }
    json_decref(value);
}

/* --- Begin and end -------------------------------------------------------------------------------------- */

void bk_lease_due(bk_broker *broker, double when)
{
    if (when < broker->due) broker->due = when;
}

static void lease_due(bk_broker *broker, const bk_lease *lease)
{
    double idle = lease->idle_since + lease->idle_after, again = lease->asked_at + PARK_AGAIN;
    if (lease->ends > 0) bk_lease_due(broker, lease->warned ? lease->ends : lease->warn_at);
    if (lease->idle_since > 0 && lease->idle_after > 0 && !lease->parked && idle > broker->now) {
        bk_lease_due(broker, idle);
    }
    if (lease->asked_at > 0 && again > broker->now) bk_lease_due(broker, again);
}

void bk_lease_until(bk_broker *broker, bk_lease *lease, double ends)
{
    lease->ends = ends;
    if (ends <= 0) return;
    /* Who has less than twice the warning is warned in the middle, not at the beginning. */
    lease->warn_at = ends - fmin(broker->config.warning, fmax(0, ends - broker->now) / 2);
    lease->warned = false;
    lease_due(broker, lease);
}

static void holds(bk_broker *broker, bk_lease *lease, bool take)
{
    if (take) lease->since = broker->now;
    if (!take)
        lease->spent += fmax(0, broker->now - lease->since) * (double)lease->holding.amount[BK_ANY] / BK_UNIT;
    if (take) lease->groups = lease->user->groups;
    bk_user_hold(broker, lease->user, &lease->holding, lease->groups, take);
    broker->changed = true;
    if (!take) broker->look_queue = true;
}

static void holder_unlink(bk_lease *lease)
{
    *lease->hprev = lease->hnext;
    if (lease->hnext) lease->hnext->hprev = lease->hprev;
}

static void holder_link(bk_lease *lease, bk_holder *holder)
{
    lease->holder = holder;
    lease->hprev = &holder->leases;
    lease->hnext = holder->leases;
    if (lease->hnext) lease->hnext->hprev = &lease->hnext;
    holder->leases = lease;
}

static void lists_enter(bk_broker *broker, bk_lease *lease)
{
    lease->prev = &broker->first_lease;
    lease->next = broker->first_lease;
    if (lease->next) lease->next->prev = &lease->next;
    broker->first_lease = lease;
    lease->uprev = &lease->user->leases;
    lease->unext = lease->user->leases;
    if (lease->unext) lease->unext->uprev = &lease->unext;
    lease->user->leases = lease;
    lease->user->nleases++;
}

static void lists_leave(bk_lease *lease)
{
    *lease->prev = lease->next;
    if (lease->next) lease->next->prev = lease->prev;
    *lease->uprev = lease->unext;
    if (lease->unext) lease->unext->uprev = lease->uprev;
    lease->user->nleases--;
}

static char *copy_of(const char *text)
{
    return text ? strdup(text) : NULL;
}

bk_lease *bk_lease_new(bk_broker *broker, const char *id, bk_user *user, bk_holder *holder,
                       const bk_want *want, const char *profile, const char *label, bk_holding *holding)
{
    bk_lease *lease = calloc(1, sizeof *lease);
    if (lease && id) snprintf(lease->id, sizeof lease->id, "%s", id);
    if (lease && !id) {
        snprintf(lease->id, sizeof lease->id, "%s-%llu", broker->tag, (unsigned long long)++broker->serial);
    }
    if (!lease || drupe_map_put(&broker->leases, lease->id, strlen(lease->id), lease, NULL) != DRUPE_OK) {
        free(lease);
        bk_give(broker, holding);
        return NULL;
    }
    lease->user = user;
    lease->want = *want;
    lease->profile = copy_of(profile);
    lease->label = copy_of(label);
    lease->begin = broker->now;
    lease->holding = *holding;
    *holding = (bk_holding){0};
    holder->uses++;
    holder_link(lease, holder);
    lists_enter(broker, lease);
    bk_user_look(broker, user);
    holds(broker, lease, true);
    return lease;
}

const char *const bk_ends[BK_ENDS] = {BK_RETURNED, BK_EXITED, BK_TIME, "other"};

static unsigned end_of(const char *why)
{
    unsigned i = 0;
    while (i + 1 < BK_ENDS && strcmp(bk_ends[i], why) != 0) i++;
    return i;
}

void bk_lease_end(bk_broker *broker, bk_lease *lease, const char *why, bk_client *but)
{
    tell(broker, lease, "ended", "why", json_string(why), but);
    if (lease->ticket) bk_ticket_end(broker, lease->ticket, why);
    for (bk_link *link = lease->links, *next; link; link = next) {
        next = link->lnext;
        bk_link_drop(link);
    }
    holds(broker, lease, false);
    if (lease->idle_since > 0) broker->nidle--;
    bk_journal_account(broker, lease, why);
    bk_journal_end(broker, lease);
    bk_give(broker, &lease->holding);
    lists_leave(lease);
    holder_unlink(lease);
    bk_holder_release(broker, lease->holder);
    drupe_map_remove(&broker->leases, lease->id, strlen(lease->id));
    broker->counts.ended[end_of(why)]++;
    free(lease->profile);
    free(lease->label);
    free(lease->key);
    free(lease);
}

void bk_lease_hold(bk_broker *broker, bk_lease *lease, bk_holder *holder)
{
    bk_holder *before = lease->holder;
    holder_unlink(lease);
    holder->uses++;
    holder_link(lease, holder);
    if (lease->ticket) { /* its wait does not end with who held it before */
        holder->uses++;
        bk_holder_release(broker, lease->ticket->holder);
        lease->ticket->holder = holder;
    }
    bk_holder_release(broker, before);
    broker->changed = true;
    bk_journal_put(broker, lease);
}

/* --- Parking -------------------------------------------------------------------------------------------- */

void bk_lease_park(bk_broker *broker, bk_lease *lease, bool unused)
{
    if (!unused) lease->home = (bk_parts){{0}};
    for (unsigned i = 0; i < lease->holding.ntakes && !unused; i++) {
        ptrdiff_t index = lease->holding.takes[i].device - broker->config.devices;
        bk_set_part(&lease->home, (unsigned)index, true);
    }
    holds(broker, lease, false);
    bk_give(broker, &lease->holding);
    lease->parked = true;
    lease->parked_at = broker->now;
    broker->counts.parked++;
    bk_journal_put(broker, lease);
}

void bk_lease_unpark(bk_broker *broker, bk_lease *lease, bk_holding *holding)
{
    lease->holding = *holding;
    *holding = (bk_holding){0};
    lease->parked = false;
    bk_lease_idle(broker, lease, false);
    broker->counts.resumed++;
    bk_user_look(broker, lease->user);
    holds(broker, lease, true);
    bk_journal_put(broker, lease);
}

void bk_lease_idle(bk_broker *broker, bk_lease *lease, bool idle)
{
    if (idle && lease->idle_since == 0) {
        lease->idle_since = broker->now;
        broker->nidle++;
        lease_due(broker, lease);
    } else if (idle) {
        lease->asked_at = 0; /* its kernel listens anew, and may not have heard */
    } else if (lease->idle_since > 0) {
        lease->idle_since = 0;
        lease->asked_at = 0;
        broker->nidle--;
    }
}

/* Whether it may be asked to park. */
static bool parkable(const bk_broker *broker, const bk_lease *lease)
{
    return lease->idle_since > 0 && lease->idle_after > 0 && !lease->parked &&
           broker->now >= lease->idle_since + lease->idle_after;
}

static bool serves(const bk_lease *lease, const bk_ticket *ticket)
{
    return lease != ticket->lease &&
           (ticket->want.kind == BK_ANY || lease->holding.amount[ticket->want.kind] > 0);
}

/* Of the leases that could make room for this ticket ask the one that is idle longest; none while one that
 * was asked has time to answer. */
static void park_for(bk_broker *broker, const bk_ticket *ticket)
{
    bk_lease *longest = NULL;
    for (bk_lease *lease = broker->first_lease; lease; lease = lease->next) {
        if (!parkable(broker, lease) || !serves(lease, ticket)) continue;
        if (lease->asked_at > 0) {
            if (lease->asked_for == ticket->serial && broker->now < lease->asked_at + PARK_AGAIN) return;
            continue;
        }
        if (!longest || lease->idle_since < longest->idle_since) longest = lease;
    }
    if (!longest) return;
    longest->asked_at = broker->now;
    longest->asked_for = ticket->serial;
    bk_lease_due(broker, broker->now + PARK_AGAIN);
    tell(broker, longest, "park", NULL, NULL, NULL);
}

/* For those who wait longest; more are looked at when these are served. */
void bk_park_look(bk_broker *broker)
{
    unsigned counts[BK_KINDS] = {0};
    bool any = false, ever;
    if (broker->nidle == 0 || !broker->first_ticket) return;
    for (const bk_lease *lease = broker->first_lease; lease && !any; lease = lease->next) {
        any = parkable(broker, lease);
    }
    for (const bk_ticket *ticket = broker->first_ticket; any && ticket; ticket = ticket->next) {
        if (counts[ticket->want.kind] == PARK_MOST) continue;
        /* A quota keeps it waiting: that somebody parks would not help. */
        uint64_t amount = bk_want_amount(broker, &ticket->want);
        if (bk_user_over(broker, ticket->user, amount, true, &ever)) continue;
        park_for(broker, ticket);
        counts[ticket->want.kind]++;
    }
}

/* --- Time ----------------------------------------------------------------------------------------------- */

void bk_leases_look(bk_broker *broker)
{
    if (broker->now < broker->due) return;
    broker->due = INFINITY;
    for (bk_lease *lease = broker->first_lease, *next; lease; lease = next) {
        next = lease->next;
        if (lease->ends > 0 && broker->now >= lease->ends) {
            bk_lease_end(broker, lease, BK_TIME, NULL);
            continue;
        }
        if (lease->ends > 0 && !lease->warned && broker->now >= lease->warn_at) {
            lease->warned = true;
            tell(broker, lease, "warning", "seconds", json_real(ceil(lease->ends - broker->now)), NULL);
        }
        lease_due(broker, lease);
    }
    broker->look_park = true;
}
