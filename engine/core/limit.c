/* How much memory of a device may be taken, and what happens when there is no more.
 *
 * Bytes count from the moment they are asked of a driver until they are given back, so free lists count too.
 * A request that finds no room goes back to the pool after each step that may have made some, from the
 * cheapest on: drop what finished work keeps, empty the free lists, wait for what is in flight. */
#include "core/core.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_AT_LEAST (256u << 20)
#define ASKED_FOR     (64u << 20) /* bytes of one allocation from which on it is asked what is free */
#define PATIENCE_NS   UINT64_C(2000000000)

/* --- The environment ------------------------------------------------------------------------------------ */

/* "4G", "512M", "50%" of `total`, or plain bytes, at `text`; false when it is none of these. */
static bool parse_amount(const char *text, size_t length, uint64_t total, uint64_t *bytes)
{
    char copy[32], *end;
    if (length == 0 || length >= sizeof copy || !isdigit((unsigned char)*text)) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    double number = strtod(copy, &end);
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (*end == '%' && !end[1]) {
        number *= (double)total / 100;
    } else if (unit) {
        for (const char *at = units; at <= unit; at++) number *= 1024;
        end++;
        if (*end == 'i' || *end == 'I') end++;
        if (*end == 'b' || *end == 'B') end++;
        if (*end) return false;
    } else if (*end) {
        return false;
    }
    *bytes = number < 1e19 ? (uint64_t)number : UINT64_MAX;
    return true;
}

struct part {
    const char *name, *amount; /* neither ends with a NUL */
    size_t name_size, amount_size;
    bool named;
};

/* Walk through the comma-separated parts of a variable, "4G" or "opencl:gpu=4G". */
static bool part_next(const char **text, struct part *part)
{
    *text += strspn(*text, ", ");
    if (!**text) return false;
    size_t length = strcspn(*text, ",");
    const char *equals = memchr(*text, '=', length);
    part->name = *text;
    part->name_size = equals ? (size_t)(equals - *text) : 0;
    part->named = equals != NULL;
    part->amount = equals ? equals + 1 : *text;
    *text += length;
    part->amount_size = (size_t)(*text - part->amount);
    return true;
}

/* The devices that a part names: a filter of a backend, a type or both, with a number behind both; false when
 * it is none. */
static bool part_filter(const struct part *part, drupe_filter *filter)
{
    char name[64];
    const char *at = name;
    *filter = (drupe_filter){.backend = -1, .type = -1, .number = -1};
    if (!part->named) return true;
    if (part->name_size == 0 || part->name_size >= sizeof name) return false;
    memcpy(name, part->name, part->name_size);
    name[part->name_size] = '\0';
    if (drupe_filter_next(&at, filter) != DRUPE_OK || *at || filter->path_size) return false;
    return filter->number < 0 || (filter->backend >= 0 && filter->type >= 0);
}

static bool part_holds(const struct part *part, const drupe_device *root)
{
    drupe_filter filter;
    const char *number = strrchr(root->filter, ':');
    drupe_error kept = *drupe_error_last();
    const bool good = part_filter(part, &filter);
    drupe_error_restore(&kept);
    if (!good || !drupe_filter_match(&filter, root)) return false;
    return filter.number < 0 || (number && strtol(number + 1, NULL, 10) == filter.number);
}

/* What a variable says for a device: the last of its parts that holds for it, "4G" for all devices,
 * "opencl:gpu=4G" for those that the filter names. */
static uint64_t amount_of(const char *variable, const drupe_device *root, uint64_t total, uint64_t fallback)
{
    const char *text = getenv(variable);
    uint64_t bytes = fallback, found;
    struct part part;
    while (text && part_next(&text, &part)) {
        if (!part_holds(&part, root)) continue;
        if (parse_amount(part.amount, part.amount_size, total, &found)) bytes = found;
    }
    return bytes;
}

static drupe_status check_amounts(const char *variable)
{
    const char *whole = getenv(variable), *text = whole;
    uint64_t found;
    struct part part;
    drupe_filter filter;
    while (text && part_next(&text, &part)) {
        if (!part_filter(&part, &filter))
            return drupe_error_set(
                DRUPE_E_INVALID,
                "%s=%.80s cannot be understood: '%.*s' names no devices. Write a backend, a type "
                "or both, as in \"host=2G\", \"gpu=4G\" or \"opencl:gpu:0=50%%\".",
                variable, whole, part.name_size < 60 ? (int)part.name_size : 60, part.name);
        if (parse_amount(part.amount, part.amount_size, 0, &found)) continue;
        return drupe_error_set(DRUPE_E_INVALID,
                               "%s=%s cannot be understood: '%.*s' is no amount of memory. Write \"4G\", "
                               "\"512M\" or \"50%%\", or parts such as \"host=2G,opencl:gpu=50%%\".",
                               variable, whole, (int)part.amount_size, part.amount);
    }
    return DRUPE_OK;
}

drupe_status drupe_limit_check(void)
{
    DRUPE_TRY(check_amounts("DRUPE_MEMORY_LIMIT"));
    return check_amounts("DRUPE_MEMORY_KEEP");
}

uint64_t drupe_limit_keep(drupe_device *root)
{
    uint64_t total = drupe_device_number(root, DRUPE_INFO_GLOBAL_MEM_SIZE, 0);
    uint64_t share = total / 8 > IDLE_AT_LEAST ? total / 8 : IDLE_AT_LEAST;
    return amount_of("DRUPE_MEMORY_KEEP", root, total, share);
}

uint32_t drupe_limit_wipe(drupe_device *root)
{
    uint32_t wipe = atomic_load_explicit(&root->wipe, memory_order_relaxed);
    if (wipe & DRUPE_WIPE_ASKED) return wipe;
    const char *text = getenv("DRUPE_MEMORY_WIPE");
    uint32_t asked = 0;
    if (text && !drupe_settings_wipe(text, &asked)) asked = 0; /* told where devices are chosen */
    asked |= DRUPE_WIPE_ASKED;
    return atomic_compare_exchange_strong(&root->wipe, &wipe, asked) ? asked : wipe;
}

drupe_status drupe_pool_set_wipe(drupe_device *device, uint32_t when)
{
    DRUPE_TRY(drupe_core_check());
    if (when & ~(uint32_t)(DRUPE_WIPE_ALLOC | DRUPE_WIPE_FREE))
        return drupe_error_set(DRUPE_E_INVALID, "There is no time to wipe number 0x%x.", when);
    if (when && !device->slot->backend->mem_wipe) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "The backend '%s' cannot overwrite memory.",
                               device->slot->backend->name);
    }
    atomic_store(&device->root->wipe, when | DRUPE_WIPE_ASKED);
    return DRUPE_OK;
}

/* --- Limits --------------------------------------------------------------------------------------------- */

static uint64_t limit_of(drupe_device *root)
{
    uint64_t limit = atomic_load_explicit(&root->limit, memory_order_relaxed);
    if (limit) return limit;
    uint64_t total = drupe_device_number(root, DRUPE_INFO_GLOBAL_MEM_SIZE, UINT64_MAX);
    uint64_t said = amount_of("DRUPE_MEMORY_LIMIT", root, total, total);
    if (said == 0) said = 1;
    if (said > total) said = total;
    return atomic_compare_exchange_strong(&root->limit, &limit, said) ? said : limit;
}

void drupe_pool_set_limit(drupe_device *device, uint64_t bytes)
{
    atomic_store(&device->root->limit, bytes);
}

uint64_t drupe_limit_get(drupe_device *root)
{
    return limit_of(root);
}

/* A system promises memory that it does not have, and ends the process when that is touched: the device, or
 * the machine whose memory it uses, is asked first. */
static drupe_status check_free(const drupe_pool *pool, size_t size, size_t asked)
{
    uint64_t left = UINT64_MAX;
    if (size >= ASKED_FOR) left = drupe_device_number(pool->root, DRUPE_INFO_FREE_MEMORY, UINT64_MAX);
    if (size <= left) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY,
                           "%s (%zu bytes) of %s memory were asked for, and %s has %s that are free now.",
                           drupe_unit_bytes(asked).text, asked, drupe_mem_kind_name(pool->kind),
                           pool->root->filter, drupe_unit_bytes(left).text);
}

drupe_status drupe_limit_reserve(drupe_pool *pool, size_t size, size_t asked)
{
    drupe_device *root = pool->root;
    uint64_t limit = limit_of(root);
    DRUPE_TRY(check_free(pool, size, asked));
    uint64_t before = atomic_fetch_add(&root->use.reserved, size);
    if (size <= limit && before <= limit - size) {
        atomic_fetch_add(&root->kinds[pool->kind].reserved, size);
        return DRUPE_OK;
    }
    atomic_fetch_sub(&root->use.reserved, size);
    return drupe_error_set(
        DRUPE_E_NO_MEMORY, "%s (%zu bytes) of %s memory were asked for, and %s has no room for them.",
        drupe_unit_bytes(asked).text, asked, drupe_mem_kind_name(pool->kind), root->filter);
}

void drupe_limit_return(drupe_pool *pool, size_t size)
{
    atomic_fetch_sub(&pool->root->use.reserved, size);
    atomic_fetch_sub(&pool->root->kinds[pool->kind].reserved, size);
}

/* --- Making room ---------------------------------------------------------------------------------------- */

static void collect_queues(const drupe_device *root)
{
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (queue->device->root == root) drupe_queue_collect(queue);
    }
}

drupe_status drupe_limit_make_room(drupe_device *root, unsigned step, bool *more)
{
    *more = step < 3;
    if (step == 0) collect_queues(root);
    if (step == 2) DRUPE_TRY(drupe_pace_room(root, drupe_deadline(PATIENCE_NS)));
    if (step == 1 || step == 2) drupe_pool_trim(root);
    return DRUPE_OK;
}

/* --- Explaining ----------------------------------------------------------------------------------------- */

static void describe(const drupe_holder *holder, char *text, size_t size)
{
    const char *kind = drupe_mem_kind_name(holder->kind);
    drupe_unit bytes = drupe_unit_bytes(holder->bytes);
    char place[64];
    drupe_core_site_text(holder->site, holder->cell, place, sizeof place);
    const char *comma = place[0] ? ", " : "";
    if (holder->count == 1)
        snprintf(text, size, "%s (%s%s%s)", bytes.text, kind, comma, place);
    else
        snprintf(text, size, "%s in %llu allocations (%s%s%s)", bytes.text, (unsigned long long)holder->count,
                 kind, comma, place);
}

drupe_status drupe_limit_explain(drupe_device *root)
{
    drupe_error error = *drupe_error_last();
    drupe_holder largest[3];
    size_t count = drupe_memory_holders(root, true, largest, DRUPE_COUNT_OF(largest));
    drupe_pool_stats stats;
    drupe_pool_stats_of(root, &stats);
    char text[DRUPE_COUNT_OF(largest) * 128 + 32] = "";
    for (size_t i = 0; i < count && i < DRUPE_COUNT_OF(largest); i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s", i ? ", " : " The largest holders: ");
        used += strlen(text + used);
        describe(&largest[i], text + used, sizeof text - used);
    }
    size_t used = strlen(error.text);
    snprintf(error.text + used, sizeof error.text - used,
             " %s are in use by %llu allocation%s, %s are reserved, and the limit is %s.%s%s "
             "Delete what is not needed.",
             drupe_unit_bytes(stats.used).text, (unsigned long long)stats.count, stats.count == 1 ? "" : "s",
             drupe_unit_bytes(stats.reserved).text, drupe_unit_bytes(stats.limit).text, text,
             *text ? "." : "");
    return drupe_error_restore(&error);
}
