/* What a layer is, and how it reaches the backend below it.
 *
 * A layered backend is a copy of the table below in which the layer has replaced the entries that it wants.
 * An entry that is NULL below stays NULL, since core decides by it what to emulate. All objects of a loaded
 * backend were made through the same tables. A layer may enlarge table->size.x for state of its own, which
 * then begins DRUPE_LAYER_BEHIND(below->size.x) bytes behind drupe_native(object). */
#ifndef DRUPE_LAYERS_LAYERS_H
#define DRUPE_LAYERS_LAYERS_H

#include "backends/layers/entries.h"

#define DRUPE_LAYER_SLOTS  8 /* backends of one library */
#define DRUPE_EACH_SLOT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

#define DRUPE_LAYER_BEHIND(size) (((size) + 15) & ~(size_t)15)

typedef struct drupe_layer {
    const char *name;
    /* Replace entries of `table`, a copy of `below`. `slot` is the backend's number, for the entries that are
     * called without an object. */
    void (*wrap)(drupe_backend *table, const drupe_backend *below, size_t slot);
} drupe_layer;

/* The layers built into this library; ends with NULL. */
extern const drupe_layer *const drupe_layers[];

/* The table below this layer, for a call that came with an object whose table is `top`
 * (DRUPE_LAYER_OBJECT()). */
const drupe_backend *drupe_layer_below(const drupe_backend *top, const drupe_layer *layer);
/* The same for an entry without an object: in the tables that backend `slot` was loaded with last. */
const drupe_backend *drupe_layer_below_slot(size_t slot, const drupe_layer *layer);

#endif
