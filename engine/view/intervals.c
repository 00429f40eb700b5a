/* Unions of intervals of time, in bounded memory. The list moves on in twice the room that it needs. */
#include "view/history.h"
#include <string.h>

bool drupe_union_add(drupe_union *all, uint64_t from, uint64_t to, drupe_interval *settled)
{
    drupe_interval *list = &all->list[all->first];
    uint32_t end = all->count;
    bool full = all->count == DRUPE_INTERVALS;
    if (from < all->settled_to) from = all->settled_to;
    if (from >= to) return false;
    while (end > 0 && list[end - 1].from > to) end--;
    uint32_t at = end;
    while (at > 0 && list[at - 1].to >= from) at--;
    if (at < end) { /* those from `at` to `end` become one with it */
        if (list[at].from < from) from = list[at].from;
        if (list[end - 1].to > to) to = list[end - 1].to;
        list[at] = (drupe_interval){from, to};
        memmove(&list[at + 1], &list[end], (all->count - end) * sizeof *list);
        all->count -= end - at - 1;
        return false;
    }
    if (full) {
        *settled = at == 0 ? (drupe_interval){from, to} : *list;
        all->settled_ns += settled->to - settled->from;
        all->settled_to = settled->to;
        if (at == 0) return true;
        all->first++;
        all->count--;
        list++;
        at--;
    }
    if (all->first + all->count == DRUPE_COUNT_OF(all->list)) {
        memmove(all->list, list, all->count * sizeof *list);
        all->first = 0;
        list = all->list;
    }
    if (at < all->count) memmove(&list[at + 1], &list[at], (all->count - at) * sizeof *list);
    list[at] = (drupe_interval){from, to};
    all->count++;
    return full;
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
