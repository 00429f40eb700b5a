/* What is allocated: figures of a device, and who holds the memory. */
#include "core/memory/memory_room.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENTER_NS UINT64_C(2000000000) /* a reader may have crashed */

/* --- Figures -------------------------------------------------------------------------------------------- */

static void read_use(drupe_use *use, drupe_pool_use *result)
{
    result->used = atomic_load(&use->used);
    result->flying = atomic_load(&use->flying);
    result->reserved = atomic_load(&use->reserved);
    result->peak = atomic_load(&use->peak);
    result->count = atomic_load(&use->count);
}

void drupe_pool_stats_of(drupe_device *device, drupe_pool_stats *stats)
{
    drupe_device *root = device->root;
    memset(stats, 0, sizeof *stats);
    for (size_t kind = 0; kind < 3; kind++) {
        read_use(&root->kinds[kind], &stats->kinds[kind]);
        stats->count += stats->kinds[kind].count;
    }
    stats->used = atomic_load(&root->use.used);
    stats->flying = atomic_load(&root->use.flying);
    stats->reserved = atomic_load(&root->use.reserved);
    stats->peak = atomic_load(&root->use.peak);
    stats->limit = drupe_limit_get(root);
    stats->wipe = atomic_load(&root->wipe);
}

void drupe_pool_reset_peak(drupe_device *device)
{
    drupe_device *root = device->root;
    atomic_store(&root->use.peak, atomic_load(&root->use.used));
    for (size_t kind = 0; kind < 3; kind++)
        atomic_store(&root->kinds[kind].peak, atomic_load(&root->kinds[kind].used));
}

static void figures_fill(drupe_device *device, drupe_device_figures *figures)
{
    const char *name = device->filter;
    if (drupe_info_ready(device, DRUPE_INFO_NAME)) name = device->info[DRUPE_INFO_NAME].text;
    const uint64_t *total = drupe_info_ready(device, DRUPE_INFO_GLOBAL_MEM_SIZE);
    drupe_device_use *use = &figures->use;
    *figures = (drupe_device_figures){.allocations = 0};
    snprintf(use->filter, sizeof use->filter, "%s", device->filter);
    snprintf(use->name, sizeof use->name, "%s", name);
    use->backend = device->slot->backend->name;
    use->used = atomic_load(&device->use.used);
    use->flying = atomic_load(&device->use.flying);
    use->reserved = atomic_load(&device->use.reserved);
    use->total = total ? *total : 0;
    for (size_t kind = 0; kind < 3; kind++) {
        figures->kinds[kind] = atomic_load(&device->kinds[kind].used);
        figures->allocations += atomic_load(&device->kinds[kind].count);
    }
    figures->peak = atomic_load(&device->use.peak);
    figures->limit = atomic_load(&device->limit);
    figures->used = figures->peak || use->reserved;
    figures->lost = drupe_device_loss(device) != NULL;
}

/* Keep the devices of an open backend where they are. False: it is closed, or being opened or closed, which
 * may take long; others who read have it for a moment only. */
static bool slot_enter(drupe_slot *slot)
{
    const struct timespec pause = {.tv_nsec = 20000};
    uint64_t deadline = 0;
    while (atomic_load(&slot->loaded)) {
        if (pthread_mutex_trylock(&slot->lock) == 0) {
            if (atomic_load(&slot->loaded)) return true;
            pthread_mutex_unlock(&slot->lock);
            break;
        }
        if (!deadline) deadline = drupe_deadline(ENTER_NS);
        if (drupe_now_ns() > deadline) break;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* The devices of open backends: retained, where `devices` is a list, or as figures. */
static size_t look_at_devices(drupe_device **devices, drupe_device_figures *figures, size_t capacity)
{
    size_t count = 0;
    if (atomic_load(&drupe_core_forked)) return 0;
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        if (!slot_enter(slot)) continue;
        for (uint32_t d = 0; d < slot->ndevices && count < capacity; d++, count++) {
            if (devices) devices[count] = drupe_device_retain(slot->devices[d]);
            if (figures) figures_fill(slot->devices[d], &figures[count]);
        }
        pthread_mutex_unlock(&slot->lock);
    }
    return count;
}

size_t drupe_device_known(drupe_device **devices, size_t capacity)
{
    return look_at_devices(devices, NULL, capacity);
}

size_t drupe_device_figures_of(drupe_device_figures *figures, size_t capacity)
{
    return look_at_devices(NULL, figures, capacity);
}

/* --- Holders -------------------------------------------------------------------------------------------- */

static void describe(const drupe_memory *memory, drupe_holder *holder)
{
    *holder = (drupe_holder){
        .kind = memory->kind, .site = memory->site, .cell = memory->cell, .bytes = memory->size, .count = 1};
    snprintf(holder->filter, sizeof holder->filter, "%s", drupe_base(memory->queue)->device->filter);
}

/* A malloc'ed list of everything that is lent of a root device (NULL: of all). */
static drupe_holder *gather(const drupe_device *root, drupe_memory_choice *chosen, size_t *count)
{
    drupe_memory **lent;
    size_t found = drupe_registry_lent(&lent);
    drupe_holder *list = found ? malloc(found * sizeof *list) : NULL;
    *count = 0;
    for (size_t i = 0; i < found; i++) {
        bool wanted = list && chosen(lent[i]) && (!root || lent[i]->pool->root == root);
        if (wanted) describe(lent[i], &list[(*count)++]);
        drupe_memory_release(lent[i]);
    }
    free(lent);
    return list;
}

static int by_location(const void *left, const void *right)
{
    const drupe_holder *a = left, *b = right;
    int order = strcmp(a->filter, b->filter);
    if (order == 0) order = (a->site > b->site) - (a->site < b->site);
    if (order == 0) order = (a->cell > b->cell) - (a->cell < b->cell);
    return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

static int by_bytes(const void *left, const void *right)
{
    const drupe_holder *a = left, *b = right;
    int order = (a->bytes < b->bytes) - (a->bytes > b->bytes);
    return order ? order : by_location(a, b);
}

static size_t merge_same(drupe_holder *list, size_t count)
{
    size_t last = 0;
    qsort(list, count, sizeof *list, by_location);
    for (size_t i = 1; i < count; i++) {
        if (by_location(&list[last], &list[i]) == 0) {
            list[last].bytes += list[i].bytes;
            list[last].count += list[i].count;
        } else {
            list[++last] = list[i];
        }
    }
    return last + 1;
}

static bool is_own(const drupe_memory *memory)
{
    return !memory->imported;
}

size_t drupe_memory_holders(drupe_device *device, bool merge, drupe_holder *holders, size_t capacity)
{
    return drupe_memory_holders_of(device, is_own, merge, holders, capacity);
}

size_t drupe_memory_holders_of(drupe_device *device, drupe_memory_choice *chosen, bool merge,
                               drupe_holder *holders, size_t capacity)
{
    if (drupe_core_check() != DRUPE_OK) return 0;
    size_t count;
    drupe_holder *list = gather(device ? device->root : NULL, chosen, &count);
    if (count && merge) count = merge_same(list, count);
    if (count) qsort(list, count, sizeof *list, by_bytes);
    if (count && capacity) memcpy(holders, list, (count < capacity ? count : capacity) * sizeof *holders);
    free(list);
    return count;
}

/* --- When there is no more ------------------------------------------------------------------------------ */

static void write_holder(drupe_text *text, const drupe_holder *holder)
{
    char place[64];
    drupe_trace_place(holder->site, holder->cell, place, sizeof place);
    drupe_text_printf(text, "%s", drupe_unit_bytes(holder->bytes).text);
    if (holder->count != 1)
        drupe_text_printf(text, " in %llu allocations", (unsigned long long)holder->count);
    drupe_text_printf(text, " (%s%s%s)", drupe_mem_kind_name(holder->kind), place[0] ? ", " : "", place);
}

drupe_status drupe_memory_explain(drupe_device *root)
{
    drupe_error error = *drupe_error_last();
    drupe_holder largest[3];
    size_t count = drupe_memory_holders(root, true, largest, DRUPE_COUNT_OF(largest));
    drupe_pool_stats stats;
    drupe_pool_stats_of(root, &stats);
    drupe_text text = {0};
    for (size_t i = 0; i < count && i < DRUPE_COUNT_OF(largest); i++) {
        drupe_text_printf(&text, "%s", i ? ", " : " The largest holders: ");
        write_holder(&text, &largest[i]);
    }
    size_t used = strlen(error.text);
    snprintf(error.text + used, sizeof error.text - used,
             " %s are in use by %llu allocation%s, %s are reserved, and the limit is %s.%s%s "
             "Delete what is not needed.",
             drupe_unit_bytes(stats.used).text, (unsigned long long)stats.count, stats.count == 1 ? "" : "s",
             drupe_unit_bytes(stats.reserved).text, drupe_unit_bytes(stats.limit).text, drupe_text_get(&text),
             text.length ? "." : "");
    drupe_text_clear(&text);
    return drupe_error_restore(&error);
}
