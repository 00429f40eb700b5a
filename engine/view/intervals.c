/* Unions of intervals of time, in bounded memory. The list moves on in twice the room that it needs. */
#include "view/history.h"
#include <string.h>

static inline bool settle_first(drupe_union *all, drupe_interval *settled)
{
    *settled = all->list[all->first++];
    all->settled_ns += settled->to - settled->from;
    all->settled_to = settled->to;
    all->count--;
    return true;
}

/* There is room behind the last. */
static inline void make_room(drupe_union *all)
{
    if (all->first + all->count < DRUPE_COUNT_OF(all->list)) return;
    memmove(all->list, all->list + all->first, all->count * sizeof *all->list);
    all->first = 0;
}

static void insert(drupe_union *all, uint32_t at, drupe_interval fresh)
{
    make_room(all);
    drupe_interval *list = &all->list[all->first];
    memmove(&list[at + 1], &list[at], (all->count - at) * sizeof *list);
    list[at] = fresh;
    all->count++;
}

/* Stretch number `at` has grown: it swallows the earlier ones that it reaches. */
static void swallow(drupe_union *all, uint32_t at)
{
    drupe_interval *list = &all->list[all->first];
    uint32_t first = at;
    while (first > 0 && list[first - 1].to >= list[at].from) first--;
    if (first == at) return;
    if (list[first].from < list[at].from) list[at].from = list[first].from;
    memmove(&list[first], &list[at], (all->count - at) * sizeof *list);
    all->count -= at - first;
}

/* Where it does not belong to the end. */
static bool add_within(drupe_union *all, uint64_t from, uint64_t to, drupe_interval *settled)
{
    bool left = false;
    drupe_interval *list = &all->list[all->first];
    uint32_t at = all->count;
    while (at > 0 && list[at - 1].from > to) at--;
    /* The one before `at` begins before the end of the new one. */
    if (at > 0 && list[at - 1].to >= from) {
        drupe_interval *last = &list[at - 1];
        if (to > last->to) last->to = to;
        if (from < last->from) last->from = from;
        swallow(all, at - 1);
        return false;
    }
    if (all->count == DRUPE_INTERVALS && at == 0) {
        /* Older than all that is left, and after all that is summed up. */
        *settled = (drupe_interval){from, to};
        all->settled_ns += to - from;
        all->settled_to = to;
        return true;
    }
    if (all->count == DRUPE_INTERVALS) {
        left = settle_first(all, settled);
        at--;
    }
    insert(all, at, (drupe_interval){from, to});
    return left;
}

bool drupe_union_add_anywhere(drupe_union *all, uint64_t from, uint64_t to, drupe_interval *settled)
{
    bool left = false;
    if (from < all->settled_to) from = all->settled_to;
    if (from >= to) return false;
    drupe_interval *last = all->count > 0 ? &all->list[all->first + all->count - 1] : NULL;
    if (last && from < last->from) return add_within(all, from, to, settled);
    if (last && from <= last->to) {
        if (to > last->to) last->to = to;
        return false;
    }
    if (all->count == DRUPE_INTERVALS) left = settle_first(all, settled);
    make_room(all);
    all->list[all->first + all->count++] = (drupe_interval){from, to};
    return left;
}

uint64_t drupe_union_sum(const drupe_union *all)
{
    uint64_t sum = all->settled_ns;
    const drupe_interval *list = &all->list[all->first];
    for (uint32_t i = 0; i < all->count; i++) sum += list[i].to - list[i].from;
    return sum;
}

/* --- Load ----------------------------------------------------------------------------------------------- */

static void keep(drupe_load *load, uint64_t from, uint64_t to)
{
    if (from >= load->slot_from && to <= load->slot_from + DRUPE_LOAD_SLOT_NS) {
        load->slots[load->slot] += to - from;
        return;
    }
    if (to - from > DRUPE_LOAD_SLOTS * DRUPE_LOAD_SLOT_NS) from = to - DRUPE_LOAD_SLOTS * DRUPE_LOAD_SLOT_NS;
    while (from < to) {
        uint64_t number = from / DRUPE_LOAD_SLOT_NS, end = (number + 1) * DRUPE_LOAD_SLOT_NS;
        size_t slot = number % DRUPE_LOAD_SLOTS;
        if (load->slot_at[slot] != number) load->slots[slot] = 0;
        load->slot_at[slot] = number;
        load->slots[slot] += (to < end ? to : end) - from;
        load->slot = slot;
        load->slot_from = number * DRUPE_LOAD_SLOT_NS;
        from = end;
    }
}

void drupe_load_add(drupe_load *load, uint64_t from, uint64_t to)
{
    drupe_interval settled;
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
        const drupe_interval *one = &load->all.list[load->all.first + i];
        if (one->to > since) sum += one->to - (one->from > since ? one->from : since);
    }
    return sum >= DRUPE_LOAD_NS ? 1.0 : (double)sum / (double)DRUPE_LOAD_NS;
}
