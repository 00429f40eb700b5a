/* Unions of stretches of time, in bounded memory. */
#include "view/room.h"
#include <string.h>

static bool settle_first(drupe_union *all, drupe_stretch *settled)
{
    *settled = all->list[0];
    all->settled_ns += settled->to - settled->from;
    all->settled_to = settled->to;
    all->count--;
    memmove(all->list, all->list + 1, all->count * sizeof *all->list);
    return true;
}

static void insert(drupe_union *all, uint32_t at, drupe_stretch fresh)
{
    memmove(&all->list[at + 1], &all->list[at], (all->count - at) * sizeof *all->list);
    all->list[at] = fresh;
    all->count++;
}

/* Stretch number `at` has grown: it swallows the earlier ones that it reaches. */
static void swallow(drupe_union *all, uint32_t at)
{
    uint32_t first = at;
    while (first > 0 && all->list[first - 1].to >= all->list[at].from) first--;
    if (first == at) return;
    if (all->list[first].from < all->list[at].from) all->list[at].from = all->list[first].from;
    memmove(&all->list[first], &all->list[at], (all->count - at) * sizeof *all->list);
    all->count -= at - first;
}

bool drupe_union_add(drupe_union *all, uint64_t from, uint64_t to, drupe_stretch *settled)
{
    bool left = false;
    if (from < all->settled_to) from = all->settled_to;
    if (from >= to) return false;
    uint32_t at = all->count;
    while (at > 0 && all->list[at - 1].from > to) at--;
    /* The one before `at` begins before the end of the new one. */
    if (at > 0 && all->list[at - 1].to >= from) {
        drupe_stretch *last = &all->list[at - 1];
        if (to > last->to) last->to = to;
        if (from < last->from) last->from = from;
        swallow(all, at - 1);
        return false;
    }
    if (all->count == DRUPE_STRETCHES && at == 0) {
        /* Older than all that is left, and after all that is summed up. */
        *settled = (drupe_stretch){from, to};
        all->settled_ns += to - from;
        all->settled_to = to;
        return true;
    }
    if (all->count == DRUPE_STRETCHES) {
        left = settle_first(all, settled);
        at--;
    }
    insert(all, at, (drupe_stretch){from, to});
    return left;
}

uint64_t drupe_union_sum(const drupe_union *all)
{
    uint64_t sum = all->settled_ns;
    for (uint32_t i = 0; i < all->count; i++) sum += all->list[i].to - all->list[i].from;
    return sum;
}

/* --- Load ----------------------------------------------------------------------------------------------- */

static void keep(drupe_load *load, uint64_t from, uint64_t to)
{
    if (to - from > DRUPE_LOAD_SLOTS * DRUPE_LOAD_SLOT_NS) from = to - DRUPE_LOAD_SLOTS * DRUPE_LOAD_SLOT_NS;
    while (from < to) {
        uint64_t number = from / DRUPE_LOAD_SLOT_NS, end = (number + 1) * DRUPE_LOAD_SLOT_NS;
        size_t slot = number % DRUPE_LOAD_SLOTS;
        if (load->slot_at[slot] != number) load->slots[slot] = 0;
        load->slot_at[slot] = number;
        load->slots[slot] += (to < end ? to : end) - from;
        from = end;
    }
}

void drupe_load_add(drupe_load *load, uint64_t from, uint64_t to)
{
    drupe_stretch settled;
    if (drupe_union_add(&load->all, from, to, &settled)) keep(load, settled.from, settled.to);
}

double drupe_load_share(const drupe_load *load, uint64_t now)
{
    uint64_t since = now > DRUPE_LOAD_NS ? now - DRUPE_LOAD_NS : 0, sum = 0;
    for (size_t i = 0; i < DRUPE_LOAD_SLOTS; i++) {
        uint64_t end = (load->slot_at[i] + 1) * DRUPE_LOAD_SLOT_NS;
        if (end > since + DRUPE_LOAD_SLOT_NS / 2) sum += load->slots[i];
    }
    for (uint32_t i = 0; i < load->all.count; i++) {
        const drupe_stretch *one = &load->all.list[i];
        if (one->to > since) sum += one->to - (one->from > since ? one->from : since);
    }
    return sum >= DRUPE_LOAD_NS ? 1.0 : (double)sum / (double)DRUPE_LOAD_NS;
}
