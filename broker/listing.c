/* What clients are shown: their leases in full, those of others as sums. */
#include "broker/broker_state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEASES_SHOWN  64
#define TICKETS_SHOWN 64

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *lease_shown(const bk_broker *broker, const bk_lease *lease)
{
    json_t *object = json_object();
    bk_reply_lease(broker, object, lease);
    bk_set(object, "user", json_string(lease->user->name));
    bk_set(object, "pid", json_integer(lease->holder->pid));
    bk_set(object, "label", text_or_null(lease->label));
    bk_set(object, "profile", text_or_null(lease->profile));
    bk_set(object, "begin", json_real(lease->begin));
    bk_set(object, "idle", lease->idle_since > 0 ? json_real(broker->now - lease->idle_since) : json_null());
    bk_set(object, "parked", json_boolean(lease->parked));
    return object;
}

static json_t *ticket_shown(bk_broker *broker, const bk_ticket *ticket)
{
    json_t *object = json_object();
    bk_set(object, "ticket", json_string(ticket->id));
    bk_set(object, "user", json_string(ticket->user->name));
    bk_set(object, "position", json_integer(bk_queue_position(broker, ticket)));
    bk_set(object, "label", text_or_null(ticket->label));
    bk_set(object, "profile", text_or_null(ticket->profile));
    bk_set(object, "lease", text_or_null(ticket->lease ? ticket->lease->id : NULL));
    bk_set(object, "waited", json_real(broker->now - ticket->asked));
    return object;
}

/* --- Devices -------------------------------------------------------------------------------------------- */

typedef struct sums {
    unsigned parts;
    uint64_t memory;
} sums;

/* What is in use of a device, by all. */
static sums used_of(const bk_device *device)
{
    if (device->nshares) return (sums){0, device->memory_used};
    uint64_t memory =
        device->nused == device->parts ? device->memory : device->memory / device->parts * device->nused;
    return (sums){device->nused, memory};
}

static void mine_add(const bk_broker *broker, const bk_user *user, sums *mine)
{
    for (const bk_lease *lease = user->leases; lease; lease = lease->unext) {
        for (unsigned i = 0; i < lease->holding.ntakes; i++) {
            const bk_take *take = &lease->holding.takes[i];
            sums *sum = &mine[take->device - broker->config.devices];
            const bk_device *device = take->device;
            sum->parts += take->nparts;
            sum->memory += take->nparts && take->nparts < device->parts
                               ? device->memory / device->parts * take->nparts
                           : take->nparts ? device->memory
                                          : take->memory;
        }
    }
}

static json_t *sums_shown(sums sum)
{
    return json_pack("{sisI}", "parts", (int)sum.parts, "memory", (json_int_t)sum.memory);
}

static json_t *device_shown(const bk_device *device, sums mine)
{
    sums used = used_of(device);
    sums others = {used.parts > mine.parts ? used.parts - mine.parts : 0,
                   used.memory > mine.memory ? used.memory - mine.memory : 0};
    unsigned free_parts = device->nshares ? 0 : device->parts - device->nused;
    return json_pack("{sssssssisIsisIsoso}", "id", device->id, "kind", bk_kind_name(device->kind), "name",
                     device->name, "parts", (int)device->parts, "memory", (json_int_t)device->memory,
                     "free_parts", (int)free_parts, "free_memory", (json_int_t)(device->memory - used.memory),
                     "mine", sums_shown(mine), "others", sums_shown(others));
}

/* --- The list ------------------------------------------------------------------------------------------- */

static const bk_lease *next_shown(const bk_lease *lease, bool all)
{
    return all ? lease->next : lease->unext;
}

static json_t *leases_shown(const bk_broker *broker, const bk_user *user, size_t skip, size_t *left)
{
    json_t *list = json_array();
    const bk_lease *lease = user->admin ? broker->first_lease : user->leases;
    *left = 0;
    for (; lease; lease = next_shown(lease, user->admin)) {
        if (skip) {
            skip--;
        } else if (json_array_size(list) >= LEASES_SHOWN) {
            ++*left;
        } else {
            json_array_append_new(list, lease_shown(broker, lease));
        }
    }
    return list;
}

json_t *bk_reply_list(bk_broker *broker, bk_client *client, size_t skip)
{
    json_t *devices = json_array(), *tickets = json_array();
    sums *mine = calloc(broker->config.ndevices + 1, sizeof *mine);
    if (mine) mine_add(broker, client->user, mine);
    for (size_t i = 0; mine && i < broker->config.ndevices; i++) {
        json_array_append_new(devices, device_shown(&broker->config.devices[i], mine[i]));
    }
    free(mine);
    for (const bk_ticket *ticket = broker->first_ticket; ticket; ticket = ticket->next) {
        if (json_array_size(tickets) >= TICKETS_SHOWN) break;
        if (ticket->user != client->user && !client->user->admin) continue;
        json_array_append_new(tickets, ticket_shown(broker, ticket));
    }
    size_t left;
    json_t *leases = leases_shown(broker, client->user, skip, &left);
    return json_pack("{sbsosososIsI}", "ok", 1, "devices", devices, "leases", leases, "waiting", tickets,
                     "queue", (json_int_t)broker->tickets.count, "left_out", (json_int_t)left);
}
