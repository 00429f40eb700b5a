/* Arrays in order: running sums, places of extremes, sorts, searches, sets.
 *
 * Work is queued as by drupe/array.h, and results are C-contiguous arrays on the operand's queue with memory
 * of its kind. `axis` is 0 to ndim - 1. Results ("out") must be empty, and stay so on failure. Errors that
 * all share: DRUPE_E_OUT_OF_RANGE for an axis that is not there, DRUPE_E_NO_MEMORY, DRUPE_E_UNSUPPORTED where
 * the host cannot address the device's memory and copies are forbidden (drupe_array_staging_allow()). Threads
 * as in array.h. */
#ifndef DRUPE_ARRAY_ORDER_H
#define DRUPE_ARRAY_ORDER_H

#include "drupe/array.h"

/* Running sums or products along an axis; `initial`: with 0 or 1 in front, so that the axis is longer by one.
 * dtype NONE = that of a sum. DRUPE_E_INVALID for dtype bool. */
DRUPE_API drupe_status drupe_array_cumulate(const drupe_array *in, int axis, drupe_dtype dtype, bool product,
                                            bool initial, drupe_array *out) DRUPE_MUST_CHECK;

/* Where the largest (`least`: the least) element is along an axis, the first of equals, as int64. NaN comes
 * before everything, as in NumPy. axis -1: of all elements in C order. DRUPE_E_INVALID when there are none.
 */
DRUPE_API drupe_status drupe_array_argreduce(const drupe_array *in, int axis, bool keepdims, bool least,
                                             drupe_array *out) DRUPE_MUST_CHECK;

/* Sort along an axis: `values` receives the elements in order, `indices` their places as int64; one of the
 * two may be NULL. Equal elements keep their order, also when `descending`; NaNs come last, always. */
DRUPE_API drupe_status drupe_array_sort(const drupe_array *in, int axis, bool descending, drupe_array *values,
                                        drupe_array *indices) DRUPE_MUST_CHECK;

/* Where each of `values` belongs in the one-dimensional ascending `sorted`, as int64 of the shape of
 * `values`: in front of equal elements, or `right` of them. `sorter`, which may be NULL: places of int64 by
 * which `sorted` is ascending; the work fails with DRUPE_E_OUT_OF_RANGE for one that is none. Compared in the
 * common type. */
DRUPE_API drupe_status drupe_array_search(const drupe_array *sorted, const drupe_array *values, bool right,
                                          const drupe_array *sorter, drupe_array *out) DRUPE_MUST_CHECK;

/* Whether each of `values` is (`invert`: is not) an element of `set`, as bool of the shape of `values`. */
DRUPE_API drupe_status drupe_array_isin(const drupe_array *values, const drupe_array *set, bool invert,
                                        drupe_array *out) DRUPE_MUST_CHECK;

/* The distinct elements of an array, ascending. How many there are is known when the work is done: the
 * results have one dimension and room for `in`'s size, of which the first `count` elements are written. Those
 * that are not wanted are NULL. `equal_nan`: all NaNs are one element, else each is one. */
typedef struct drupe_distinct {
    drupe_array *count;  /* one int64 without dimensions; always wanted */
    drupe_array *values; /* of in's type */
    drupe_array *firsts, *inverse,
        *counts; /* int64: first places in C order; of each of `in` its number among the
                    distinct ones (written whole); how often each is there */
} drupe_distinct;
DRUPE_API drupe_status drupe_array_unique(const drupe_array *in, bool equal_nan,
                                          const drupe_distinct *out) DRUPE_MUST_CHECK;

/* How often each number from 0 to bins - 1 is in `numbers` (int64, any shape), as int64; or the sums of their
 * `weights` (of numbers' shape, NULL for none), as float64. Other numbers are passed by. */
DRUPE_API drupe_status drupe_array_bincount(const drupe_array *numbers, const drupe_array *weights,
                                            size_t bins, drupe_array *out) DRUPE_MUST_CHECK;

/* What lies at each x on the lines through the points (xp, fp), one-dimensional and as many of both, xp
 * ascending; `left` and `right` outside of them. float64. DRUPE_E_INVALID without points. */
DRUPE_API drupe_status drupe_array_interp(const drupe_array *x, const drupe_array *xp, const drupe_array *fp,
                                          double left, double right, drupe_array *out) DRUPE_MUST_CHECK;

#endif
