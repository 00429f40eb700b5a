/* The layer `check`: checked mode from the first device on.
 *
 * It replaces nothing: what a program asked for, its waits above all, is known in core only, where
 * check_layer.c and redzone.c look at it. */
#include "backends/layers/layers_room.h"
#include "drupe/check.h"

extern const drupe_layer drupe_layer_check;

static _Atomic(bool) begun;

static void wrap(drupe_backend *table, const drupe_backend *below, size_t slot)
{
    (void)table;
    (void)below;
    (void)slot;
    if (!atomic_exchange(&begun, true)) drupe_check_begin();
}

const drupe_layer drupe_layer_check = {.name = "check", .wrap = wrap};
