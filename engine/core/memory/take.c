/* Memory for a request: from the pool, from the driver, or after making room.
 *
 * A request that finds no room goes back to the pool after each step that may have made some, from the
 * cheapest on: drop what finished work keeps, empty the free lists, wait for what is in flight. */
#include "core/memory/memory_room.h"
#include <stdio.h>
#include <string.h>

#define PATIENCE_NS UINT64_C(2000000000)

/* --- Making room ---------------------------------------------------------------------------------------- */

static drupe_status make_room(drupe_device *root, unsigned step, bool *more)
{
    *more = step < 3;
    const drupe_memory_users *users = drupe_memory_users_of();
    if (step == 0) users->collect(root);
    if (step == 2) DRUPE_TRY(users->room(root, drupe_deadline(PATIENCE_NS)));
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

static drupe_status explain(drupe_device *root)
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

/* --- Taking --------------------------------------------------------------------------------------------- */

drupe_status drupe_pool_take(drupe_pool *pool, drupe_pool_request wanted, size_t align, uint32_t order,
                             drupe_memory **memory)
{
    /* Something may come back meanwhile. */
    DRUPE_TRY(drupe_memory_users_of()->pace(pool->root, wanted.bytes));
    bool more = true;
    for (unsigned step = 0;;) {
        *memory = drupe_pool_idle(pool, wanted.bytes, wanted.index, order);
        if (*memory) return DRUPE_OK;
        drupe_status status = drupe_pool_fresh(pool, wanted.bytes, align, wanted.index, memory);
        if (status == DRUPE_OK) break;
        if (status != DRUPE_E_NO_MEMORY) return status;
        drupe_error kept = *drupe_error_last();
        DRUPE_TRY(make_room(pool->root, step++, &more));
        if (more) continue;
        drupe_error_restore(&kept);
        return explain(pool->root);
    }
    drupe_pool_count(*memory);
    return DRUPE_OK;
}
