/* A ticket becomes a lease, and its client is told what it has. */
#include "broker/broker_state.h"

static json_t *parts_list(const bk_take *take)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < BK_PARTS_MOST && take->nparts; i++) {
        if (bk_has_part(&take->parts, i)) json_array_append_new(list, json_integer((json_int_t)i));
    }
    return list;
}

static json_t *devices_list(const bk_lease *lease)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < lease->holding.ntakes; i++) {
        const bk_take *take = &lease->holding.takes[i];
        const bk_device *device = take->device;
        json_t *one = json_pack("{sssssssosI}", "id", device->id, "kind", bk_kind_name(device->kind), "name",
                                device->name, "parts", parts_list(take), "memory", (json_int_t)take->memory);
        bk_set(one, "nodes", device->nodes ? json_incref(device->nodes) : json_array());
        json_array_append_new(list, one);
    }
    return list;
}

void bk_reply_lease(const bk_broker *broker, json_t *object, const bk_lease *lease)
{
    bk_set(object, "lease", json_string(lease->id));
    bk_set(object, "devices", devices_list(lease));
    bk_set(object, "env", bk_environment(broker, &lease->holding, lease->id));
    bk_set(object, "ends", lease->ends > 0 ? json_real(lease->ends) : json_null());
}

bool bk_grant(bk_broker *broker, bk_ticket *ticket, bk_holding *holding)
{
    bk_lease *lease = ticket->lease;
    if (lease) {
        bk_lease_unpark(broker, lease, holding);
    } else {
        lease = bk_lease_new(broker, NULL, ticket->user, ticket->holder, &ticket->want, ticket->profile,
                             ticket->label, holding);
        if (!lease) return false;
        lease->idle_after = ticket->idle_after;
        lease->key = ticket->key;
        ticket->key = NULL;
        if (ticket->seconds > 0) bk_lease_until(broker, lease, broker->now + ticket->seconds);
        bk_journal_put(broker, lease);
    }
    double waited = broker->now - ticket->asked;
    if (ticket->first) ticket->user->jumped_at = broker->now;
    broker->counts.granted++;
    broker->counts.waited += ticket->waits;
    broker->counts.waited_seconds += waited;
    if (waited > broker->counts.longest_wait) broker->counts.longest_wait = waited;
    bk_link_add(broker, ticket->client, lease);
    if (ticket->granted) {
        *ticket->granted = lease;
    } else {
        json_t *event = json_pack("{ssss}", "event", "granted", "ticket", ticket->id);
        bk_reply_lease(broker, event, lease);
        bk_client_send(broker, ticket->client, event);
    }
    bk_ticket_drop(broker, ticket);
    return true;
}
