/* What the files of indexing share: see drupe/array_index.h. */
#ifndef DRUPE_INDEX_ROOM_H
#define DRUPE_INDEX_ROOM_H

#include "array/array_room.h"
#include "drupe/array_index.h"

/* Index arrays on their way to a function of the host: int64 and contiguous. Zeroed = empty. */
typedef struct index_pack {
    drupe_array array; /* owned */
    int64_t length;    /* of the axis that it indexes */
    ptrdiff_t step;
    int named;
} index_pack;

/* A view of all memory between the first and the last element of a non-empty array, as one dimension, and
 * where element [0, ..., 0] is in it. `span` must be empty. */
void drupe_index_span(const drupe_array *array, drupe_array *span, ptrdiff_t *base);
/* `src` as a contiguous array of `dtype` on the queue of `beside` that shares no memory with `beside`, so
 * that one may be read while the other one is written. `out` must be empty. */
drupe_status drupe_index_apart(const drupe_array *src, drupe_dtype dtype, const drupe_array *beside,
                               drupe_array *out);
/* The same of an operand: a scalar becomes an array without dimensions. */
drupe_status drupe_index_value(const drupe_operand *value, const drupe_array *beside, drupe_array *out);
/* Leave leading axes of length 1 out while there are more than `ndim`. */
void drupe_index_drop_leading(drupe_array *view, int ndim);

#endif
