/* Where the largest or least element is, along an axis of a contiguous block.
 *
 * Threads: from any; the work is shared as parallel.h says. */
#ifndef DRUPE_MATH_ARGREDUCE_H
#define DRUPE_MATH_ARGREDUCE_H

#include "drupe/status.h"
#include "math/element.h"
#include <stdbool.h>

typedef struct drupe_argreduce {
    const void *in; /* [outer][n][inner], n at least 1 */
    int64_t *out;   /* [outer][inner]: places along the axis */
    size_t outer, n, inner;
    drupe_element type;
    bool least; /* else the largest */
} drupe_argreduce;

/* The first of equal elements. The first NaN comes before everything. Complex numbers are compared by their
 * real parts, and equal ones by their imaginary parts. DRUPE_E_NO_MEMORY. */
drupe_status drupe_argreduce_run(const drupe_argreduce *work) DRUPE_MUST_CHECK;

#endif
