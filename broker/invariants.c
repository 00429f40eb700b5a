/* What always holds, for tests: the sums are those of the leases, and nothing is given twice. */
#include "broker/broker_state.h"
#include <stdlib.h>
#include <string.h>

typedef struct totals {
    bk_parts used;
    unsigned nused, nshares;
    uint64_t memory;
} totals;

static const char *lease_count(const bk_broker *broker, const bk_lease *lease, totals *sums)
{
    if (lease->parked && lease->holding.ntakes) return "a parked lease has devices";
    if (lease->holder->fd < 0) return "a lease has a holder that has ended";
    for (unsigned i = 0; i < lease->holding.ntakes; i++) {
        const bk_take *take = &lease->holding.takes[i];
        totals *sum = &sums[take->device - broker->config.devices];
        sum->nused += take->nparts;
        sum->nshares += take->nparts == 0;
        sum->memory += take->nparts == 0 ? take->memory : 0;
        for (size_t w = 0; w < DRUPE_COUNT_OF(sum->used.words); w++) {
            if (sum->used.words[w] & take->parts.words[w]) return "a part has two leases";
            sum->used.words[w] |= take->parts.words[w];
        }
    }
    return NULL;
}

static const char *devices_broken(const bk_broker *broker, const totals *sums)
{
    for (size_t i = 0; i < broker->config.ndevices; i++) {
        const bk_device *device = &broker->config.devices[i];
        if (sums[i].nused != device->nused ||
            memcmp(&sums[i].used, &device->used, sizeof device->used) != 0) {
            return "a device's parts are not those of its leases";
        }
        if (sums[i].nshares != device->nshares || sums[i].memory != device->memory_used) {
            return "a device's shares are not those of its leases";
        }
        if (device->nused > device->parts || device->memory_used > device->memory)
            return "a device is given twice";
        if (device->nused && device->nshares) return "a device is used in two ways";
    }
    return NULL;
}

static const char *users_broken(const bk_broker *broker)
{
    size_t cursor = 0;
    const bk_user *user;
    while ((user = drupe_map_next(&broker->users, &cursor, NULL, NULL))) {
        uint64_t held = 0;
        unsigned leases = 0, tickets = 0;
        for (const bk_lease *lease = user->leases; lease; lease = lease->unext, leases++) {
            held += lease->holding.amount[BK_ANY];
        }
        for (const bk_ticket *ticket = broker->first_ticket; ticket; ticket = ticket->next) {
            tickets += ticket->user == user;
        }
        if (held != user->held[BK_ANY]) return "a user does not hold what the leases say";
        if (leases != user->nleases || tickets != user->ntickets) return "a user's counts are wrong";
    }
    return NULL;
}

const char *bk_broken(const bk_broker *broker)
{
    totals *sums = calloc(broker->config.ndevices + 1, sizeof *sums);
    const char *broken = NULL;
    size_t count = 0;
    for (const bk_lease *lease = broker->first_lease; lease && !broken; lease = lease->next, count++) {
        broken = lease_count(broker, lease, sums);
    }
    if (!broken) broken = devices_broken(broker, sums);
    if (!broken) broken = users_broken(broker);
    if (!broken && count != broker->leases.count) broken = "a lease is not in the map";
    free(sums);
    return broken;
}
