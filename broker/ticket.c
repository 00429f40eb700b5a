/* Tickets: asks, from the moment they are made until they are granted, given up or refused. */
#include "broker/broker_state.h"
#include <stdlib.h>
#include <string.h>

bk_ticket *bk_ticket_new(bk_broker *broker, bk_client *client, bk_user *user, bk_holder *holder,
                         const bk_want *want, bk_lease *lease)
{
    bk_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket) return NULL;
    ticket->serial = ++broker->serial;
    snprintf(ticket->id, sizeof ticket->id, "%s-%llu", broker->tag, (unsigned long long)ticket->serial);
    if (drupe_map_put(&broker->tickets, ticket->id, strlen(ticket->id), ticket, NULL) != DRUPE_OK) {
        free(ticket);
        return NULL;
    }
    ticket->client = client;
    client->ntickets++;
    ticket->user = user;
    ticket->holder = holder;
    if (holder) holder->uses++;
    ticket->want = *want;
    ticket->lease = lease;
    if (lease) lease->ticket = ticket;
    ticket->asked = broker->now;
    ticket->prev = broker->last_ticket;
    *broker->last_ticket = ticket;
    broker->last_ticket = &ticket->next;
    user->ntickets++;
    return ticket;
}

void bk_ticket_drop(bk_broker *broker, bk_ticket *ticket)
{
    *ticket->prev = ticket->next;
    if (ticket->next)
        ticket->next->prev = ticket->prev;
    else
        broker->last_ticket = ticket->prev;
    if (ticket->lease) ticket->lease->ticket = NULL;
    if (ticket->waits) broker->changed = true;
    ticket->user->ntickets--;
    ticket->client->ntickets--;
    drupe_map_remove(&broker->tickets, ticket->id, strlen(ticket->id));
    bk_holder_release(broker, ticket->holder);
    if (ticket->first) broker->look_queue = true; /* what was reserved for it */
    free(ticket->profile);
    free(ticket->label);
    free(ticket->key);
    free(ticket);
}

void bk_ticket_end(bk_broker *broker, bk_ticket *ticket, const char *why)
{
    json_t *packet = json_pack("{ssssss}", "event", "ended", "ticket", ticket->id, "why", why);
    bk_client_send(broker, ticket->client, packet);
    bk_ticket_drop(broker, ticket);
}
