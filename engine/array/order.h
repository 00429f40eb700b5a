/* What the files of array_order.h share. */
#ifndef DRUPE_ARRAY_ORDER_ROOM_H
#define DRUPE_ARRAY_ORDER_ROOM_H

#include "array/array_room.h"
#include "drupe/array_order.h"
#include "math/element.h"

/* A data type as the loops know it: both count the types in the same order. */
_Static_assert((int)DRUPE_INT64 == DRUPE_ELEMENT_I64 && (int)DRUPE_FLOAT16 == DRUPE_ELEMENT_F16 &&
                   (int)DRUPE_DTYPE_COUNT == DRUPE_ELEMENT_COUNT,
               "element.h counts the element types as array.h does");
static inline drupe_element drupe_array_element(drupe_dtype dtype)
{
    return (drupe_element)dtype;
}

/* The sizes in front of an axis, along it and behind it. */
typedef struct drupe_axis_block {
    size_t outer, n, inner;
} drupe_axis_block;
drupe_status drupe_array_axis(const drupe_array *in, int axis, drupe_axis_block *block);

#endif
