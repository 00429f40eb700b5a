/* What is free, and who gets which of it.
 *
 * A device is used in one way at a time, by parts or by shares of its memory: a share runs on the whole
 * device, and would run on parts that somebody has for himself. What is asked for goes where least remains
 * behind it, so that whole devices stay free for those who want whole ones. */
#include "broker/broker_state.h"
#include <stdlib.h>
#include <string.h>

/* What a share counts at least. One of a few bytes keeps the device from all who want it whole or in parts:
 * if it counted nothing, no quota would bound how many devices somebody keeps so. */
#define LEAST_SHARE (BK_UNIT / 64)

bool bk_has_part(const bk_parts *parts, unsigned index)
{
    return parts->words[index / 64] >> (index % 64) & 1;
}

void bk_set_part(bk_parts *parts, unsigned index, bool on)
{
    uint64_t bit = (uint64_t)1 << (index % 64);
    if (on)
        parts->words[index / 64] |= bit;
    else
        parts->words[index / 64] &= ~bit;
}

static bool by_share(const bk_want *want)
{
    return want->parts == 0 && want->memory > 0;
}

static unsigned parts_wanted(const bk_device *device, const bk_want *want)
{
    return want->parts ? want->parts : device->parts;
}

/* Whether the device, idle, could serve this. */
static bool could(const bk_device *device, const bk_want *want)
{
    if (want->kind != BK_ANY && want->kind != device->kind) return false;
    if (by_share(want)) return device->memory >= want->memory;
    if (want->parts > device->parts) return false;
    /* The limit lies within the parts' equal share. */
    return want->memory == 0 || want->memory <= device->memory / device->parts * want->parts;
}

static bool can_now(const bk_device *device, const bk_want *want)
{
    if (!could(device, want)) return false;
    if (by_share(want)) return device->nused == 0 && device->memory - device->memory_used >= want->memory;
    return device->nshares == 0 && device->parts - device->nused >= parts_wanted(device, want);
}

static uint64_t amount_of(const bk_device *device, unsigned nparts, uint64_t memory)
{
    if (nparts == device->parts) return BK_UNIT;
    if (nparts) return (uint64_t)BK_UNIT * nparts / (device->parts ? device->parts : 1);
    if (device->memory == 0) return 0;
    uint64_t share = (uint64_t)((double)BK_UNIT * (double)memory / (double)device->memory);
    return share > LEAST_SHARE ? share : LEAST_SHARE;
}

const char *bk_want_never(const bk_broker *broker, const bk_want *want)
{
    static char sentence[200];
    const char *kind = want->kind == BK_ANY ? "any kind" : bk_kind_name(want->kind);
    unsigned of_kind = 0, able = 0;
    for (size_t i = 0; i < broker->config.ndevices; i++) {
        const bk_device *device = &broker->config.devices[i];
        if (want->kind == BK_ANY || want->kind == device->kind) of_kind++;
        if (could(device, want)) able++;
    }
    if (able >= want->devices) return NULL;
    if (of_kind < want->devices) {
        snprintf(sentence, sizeof sentence, "There are %u devices of kind %s here; %u are asked for.",
                 of_kind, kind, want->devices);
    } else if (by_share(want)) {
        snprintf(sentence, sizeof sentence,
                 "%u devices of kind %s have %llu bytes to share; %u are asked for.", able, kind,
                 (unsigned long long)want->memory, want->devices);
    } else {
        snprintf(sentence, sizeof sentence, "%u devices of kind %s have %u parts%s; %u are asked for.", able,
                 kind, want->parts, want->memory ? " with so much memory" : "", want->devices);
    }
    return sentence;
}

uint64_t bk_want_amount(const bk_broker *broker, const bk_want *want)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < broker->config.ndevices; i++) {
        const bk_device *device = &broker->config.devices[i];
        if (!could(device, want)) continue;
        uint64_t amount = amount_of(device, by_share(want) ? 0 : parts_wanted(device, want), want->memory);
        if (amount < least) least = amount;
    }
    return least == UINT64_MAX ? 0 : least * want->devices;
}

bool bk_anything_free(const bk_broker *broker)
{
    for (size_t i = 0; i < broker->config.ndevices; i++) {
        const bk_device *device = &broker->config.devices[i];
        if (device->nused < device->parts && (device->nshares == 0 || device->memory_used < device->memory)) {
            return true;
        }
    }
    return false;
}

/* --- Taking --------------------------------------------------------------------------------------------- */

/* Take `count` free parts: the shortest run of neighbours that is long enough, else the lowest ones.
 * Neighbours share caches, memory and links. */
static void parts_take(bk_device *device, unsigned count, bk_parts *taken)
{
    unsigned best = 0, best_length = BK_PARTS_MOST + 1;
    for (unsigned at = 0; at < device->parts;) {
        unsigned length = 0;
        while (at + length < device->parts && !bk_has_part(&device->used, at + length)) length++;
        if (length >= count && length < best_length) {
            best = at;
            best_length = length;
        }
        at += length + 1;
    }
    *taken = (bk_parts){{0}};
    unsigned got = 0;
    for (unsigned at = best_length <= BK_PARTS_MOST ? best : 0; got < count && at < device->parts; at++) {
        if (bk_has_part(&device->used, at)) continue;
        bk_set_part(taken, at, true);
        bk_set_part(&device->used, at, true);
        got++;
    }
    device->nused += count;
}

static void device_take(bk_device *device, const bk_want *want, bk_take *take)
{
    *take = (bk_take){.device = device};
    if (by_share(want)) {
        take->memory = want->memory;
        device->memory_used += want->memory;
        device->nshares++;
        return;
    }
    take->nparts = parts_wanted(device, want);
    take->memory =
        take->nparts == device->parts ? device->memory : device->memory / device->parts * take->nparts;
    if (want->memory) take->memory = want->memory;
    parts_take(device, take->nparts, &take->parts);
}

static void device_give(bk_take *take)
{
    bk_device *device = take->device;
    if (take->nparts == 0) {
        device->memory_used -= take->memory;
        device->nshares--;
        return;
    }
    for (size_t i = 0; i < DRUPE_COUNT_OF(take->parts.words); i++)
        device->used.words[i] &= ~take->parts.words[i];
    device->nused -= take->nparts;
}

/* How much of the device would remain free: 0 to 1. */
static double remains(const bk_device *device, const bk_want *want)
{
    if (by_share(want)) {
        return (double)(device->memory - device->memory_used - want->memory) / (double)device->memory;
    }
    return (double)(device->parts - device->nused - parts_wanted(device, want)) / device->parts;
}

static bool taken_already(const bk_holding *holding, const bk_device *device)
{
    for (unsigned i = 0; i < holding->ntakes; i++) {
        if (holding->takes[i].device == device) return true;
    }
    return false;
}

static void holding_count(bk_holding *holding)
{
    memset(holding->amount, 0, sizeof holding->amount);
    for (unsigned i = 0; i < holding->ntakes; i++) {
        const bk_take *take = &holding->takes[i];
        uint64_t amount = amount_of(take->device, take->nparts, take->memory);
        holding->amount[take->device->kind] += amount;
        holding->amount[BK_ANY] += amount;
    }
}

bool bk_claim(bk_broker *broker, const bk_want *want, const bk_parts *home, uint64_t pass,
              bk_holding *holding)
{
    *holding = (bk_holding){.limited = want->memory > 0, .limit = want->memory};
    bk_device *found[BK_TAKES_MOST];
    unsigned count = 0;
    while (count < want->devices) {
        bk_device *best = NULL;
        double least = 2;
        for (size_t i = 0; i < broker->config.ndevices; i++) {
            bk_device *device = &broker->config.devices[i];
            if (!can_now(device, want) || (pass && device->reserved == pass)) continue;
            bool again = false;
            for (unsigned k = 0; k < count && !again; k++) again = found[k] == device;
            double rest = again ? 2 : remains(device, want);
            if (!again && home && bk_has_part(home, (unsigned)i)) rest -= 2;
            if (rest < least) {
                least = rest;
                best = device;
            }
        }
        if (!best) return false;
        found[count++] = best;
    }
    holding->takes = calloc(count ? count : 1, sizeof *holding->takes);
    if (!holding->takes) return false;
    for (unsigned i = 0; i < count; i++) device_take(found[i], want, &holding->takes[holding->ntakes++]);
    holding_count(holding);
    return true;
}

/* Whether the device has this free; `take` is told, and its count of parts set. */
static bool take_fits(const bk_take *take)
{
    const bk_device *device = take->device;
    if (take->nparts == 0) {
        return device->nused == 0 && take->memory && take->memory <= device->memory - device->memory_used;
    }
    if (device->nshares || take->nparts > device->parts) return false;
    for (unsigned i = 0; i < BK_PARTS_MOST; i++) {
        if (!bk_has_part(&take->parts, i)) continue;
        if (i >= device->parts || bk_has_part(&device->used, i)) return false;
    }
    return true;
}

bool bk_claim_again(bk_broker *broker, bk_holding *holding)
{
    (void)broker;
    bk_holding done = {.takes = holding->takes};
    for (; done.ntakes < holding->ntakes; done.ntakes++) {
        bk_take *take = &holding->takes[done.ntakes];
        if (taken_already(&done, take->device) || !take_fits(take)) break;
        if (take->nparts == 0) {
            take->device->memory_used += take->memory;
            take->device->nshares++;
            continue;
        }
        for (size_t i = 0; i < DRUPE_COUNT_OF(take->parts.words); i++) {
            take->device->used.words[i] |= take->parts.words[i];
        }
        take->device->nused += take->nparts;
    }
    holding_count(holding);
    if (done.ntakes == holding->ntakes) return true;
    for (unsigned i = 0; i < done.ntakes; i++) device_give(&done.takes[i]);
    return false;
}

void bk_give(bk_broker *broker, bk_holding *holding)
{
    (void)broker;
    for (unsigned i = 0; i < holding->ntakes; i++) device_give(&holding->takes[i]);
    free(holding->takes);
    *holding = (bk_holding){0};
}

/* --- Reserving ------------------------------------------------------------------------------------------ */

/* How much of the device must be given back before it serves this: 0 to 1. */
static double lacks(const bk_device *device, const bk_want *want)
{
    double shared = device->memory ? (double)device->memory_used / (double)device->memory : 0;
    double parted = (double)device->nused / device->parts;
    if (by_share(want)) {
        if (device->nused) return parted;
        uint64_t room = device->memory - device->memory_used;
        return room >= want->memory ? 0 : (double)(want->memory - room) / (double)device->memory;
    }
    if (device->nshares) return shared;
    unsigned room = device->parts - device->nused, wanted = parts_wanted(device, want);
    return room >= wanted ? 0 : (double)(wanted - room) / device->parts;
}

void bk_reserve(bk_broker *broker, const bk_want *want, uint64_t pass)
{
    /* A device that is reserved only empties. Another one is chosen instead only if it lacks less, so the
     * wait ends although the choice is made anew each time. */
    for (unsigned count = 0; count < want->devices; count++) {
        bk_device *best = NULL;
        for (size_t i = 0; i < broker->config.ndevices; i++) {
            bk_device *device = &broker->config.devices[i];
            if (!could(device, want) || device->reserved == pass) continue;
            if (!best || lacks(device, want) < lacks(best, want)) best = device;
        }
        if (!best) return;
        best->reserved = pass;
    }
}
