/* Indexing arrays by arrays: integers that pick elements, and masks.
 *
 * Everything is work of the arrays' queue and nothing waits, except that the shape of what a mask picks is
 * known only when its elements were counted, which the caller waits for. All arrays of a call are on one
 * queue, else DRUPE_E_PLACEMENT. Output arrays (`out`, `counts`) must be empty and are the caller's.
 *
 * An index outside of its axis is found by the work, which then fails with DRUPE_E_OUT_OF_RANGE: no memory
 * outside of the array is touched, and an array that was to be written keeps its elements.
 *
 * Threads: as in drupe/array.h. */
#ifndef DRUPE_ARRAY_INDEX_H
#define DRUPE_ARRAY_INDEX_H

#include "drupe/array.h"

/* What becomes of an index outside of its axis. */
typedef enum drupe_index_mode {
    DRUPE_INDEX_RAISE, /* an error; negative ones count from the end */
    DRUPE_INDEX_WRAP,  /* modulo the axis' length */
    DRUPE_INDEX_CLIP   /* the nearest end */
} drupe_index_mode;

/* An array of integers (borrowed) that picks along one axis of another array. */
typedef struct drupe_index {
    const drupe_array *array;
    int axis;
    int named; /* the number of the axis in errors */
} drupe_index;

/* Index arrays for `count` different axes, 1 at least. They are broadcast together, and the axes of their
 * common shape come into the result in front of those of the array's other axes from the `place`th on. */
typedef struct drupe_selection {
    const drupe_index *indices;
    size_t count;
    int place;
    drupe_index_mode mode;
} drupe_selection;

/* out = x[selection]. DRUPE_E_OUT_OF_RANGE at once where index arrays do not broadcast together, or where an
 * index wraps or is clipped along an axis without elements. */
DRUPE_API drupe_status drupe_array_gather(const drupe_array *x, const drupe_selection *selection,
                                          drupe_array *out) DRUPE_MUST_CHECK;
/* x[selection] = value, broadcast and cast to x's type (any type to any type); where several indices are the
 * same, the last one in C order wins. */
DRUPE_API drupe_status drupe_array_scatter(const drupe_array *x, const drupe_selection *selection,
                                           const drupe_operand *value) DRUPE_MUST_CHECK;

/* out[..., j, ...] = x[..., indices[..., j, ...], ...] along `axis`: `indices` has as many dimensions as x,
 * and the other axes are broadcast together. */
DRUPE_API drupe_status drupe_array_gather_along(const drupe_array *x, const drupe_array *indices, int axis,
                                                drupe_index_mode mode, drupe_array *out) DRUPE_MUST_CHECK;
DRUPE_API drupe_status drupe_array_scatter_along(const drupe_array *x, const drupe_array *indices, int axis,
                                                 const drupe_operand *value) DRUPE_MUST_CHECK;

/* How many elements of a mask, an array of bools, are true, in each stretch of it: the last element of
 * `counts`, which has one dimension, is the number of all. Wait for that, and give both to what follows. */
DRUPE_API drupe_status drupe_array_mask_count(const drupe_array *mask, drupe_array *counts) DRUPE_MUST_CHECK;
/* out = x[mask], where the mask's shape is that of x's first axes. `count`: as counted. */
DRUPE_API drupe_status drupe_array_mask_pick(const drupe_array *x, const drupe_array *mask,
                                             const drupe_array *counts, size_t count,
                                             drupe_array *out) DRUPE_MUST_CHECK;
/* Where the mask is true: an int64 array of the shape (mask.ndim, count), a row for each axis. */
DRUPE_API drupe_status drupe_array_mask_positions(const drupe_array *mask, const drupe_array *counts,
                                                  size_t count, drupe_array *out) DRUPE_MUST_CHECK;
/* x[mask] = value, of any type. A value that is the same for all elements of the mask is broadcast; any other
 * has one row for each true element, else the work fails with DRUPE_E_INVALID. Waits for nothing. */
DRUPE_API drupe_status drupe_array_mask_assign(const drupe_array *x, const drupe_array *mask,
                                               const drupe_operand *value) DRUPE_MUST_CHECK;

/* total = the sum of `repeats`, integers in one dimension, as an int64 array without dimensions; the work
 * fails with DRUPE_E_INVALID when one of them is negative. */
DRUPE_API drupe_status drupe_array_repeat_count(const drupe_array *repeats,
                                                drupe_array *total) DRUPE_MUST_CHECK;
/* Each number i from 0 on repeats[i] times in a row: `count` of them, as counted. */
DRUPE_API drupe_status drupe_array_repeat_positions(const drupe_array *repeats, size_t count,
                                                    drupe_array *out) DRUPE_MUST_CHECK;

#endif
