/* Arrays in order: running sums, places of extremes, sorts, searches, sets.
 *
 * Work is queued as by drupe/array.h, and results are C-contiguous arrays on the operand's queue with memory of
 * its kind. `axis` is 0 to ndim - 1. Results ("out") must be empty, and stay so on failure. Errors that all share:
 * DRUPE_E_OUT_OF_RANGE for an axis that is not there, DRUPE_E_NO_MEMORY, DRUPE_E_UNSUPPORTED where the host cannot
 * address the device's memory and copies are forbidden (drupe_array_staging_allow()). Threads as in array.h. */
#ifndef DRUPE_ARRAY_ORDER_H
#define DRUPE_ARRAY_ORDER_H

#include "drupe/array.h"

/* Running sums or products along an axis; `initial`: with 0 or 1 in front, so that the axis is longer by one.
 * dtype NONE = that of a sum. DRUPE_E_INVALID for dtype bool. */
DRUPE_API drupe_status drupe_array_cumulate(const drupe_array *in, int axis, drupe_dtype dtype, bool product,
                                            bool initial, drupe_array *out) DRUPE_MUST_CHECK;

/* Where the largest (`least`: the least) element is along an axis, the first of equals, as int64. NaN comes
 * before everything, as in NumPy. axis -1: of all elements in C order. DRUPE_E_INVALID when there are none. */
DRUPE_API drupe_status drupe_array_argreduce(const drupe_array *in, int axis, bool keepdims, bool least,
                                             drupe_array *out) DRUPE_MUST_CHECK;

/* Sort along an axis: `values` receives the elements in order, `indices` their places as int64; one of the two
 * may be NULL. Equal elements keep their order, also when `descending`; NaNs come last, always. */
DRUPE_API drupe_status drupe_array_sort(const drupe_array *in, int axis, bool descending, drupe_array *values,
                                        drupe_array *indices) DRUPE_MUST_CHECK;

#endif
