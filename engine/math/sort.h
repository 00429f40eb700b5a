/* Stable sorts of rows.
 *
 * Threads: from any; the work is shared as parallel.h says. */
#ifndef DRUPE_MATH_SORT_H
#define DRUPE_MATH_SORT_H

#include "drupe/status.h"
#include "math/element.h"
#include <stdbool.h>

typedef struct drupe_sort {
    const void *in;   /* [rows][n] */
    void *out;        /* [rows][n] in order, or NULL; does not overlap `in` */
    int64_t *indices; /* [rows][n]: the place in its row of each element of `out`, or NULL */
    size_t rows, n;
    drupe_element type;
    bool descending;
} drupe_sort;

/* Equal elements keep their order, also when descending. NaNs come last, always; in `out` those of real types
 * are quiet NaNs. -0.0 and 0.0 are equal. Complex numbers are ordered by their real parts, and equal ones by
 * their imaginary parts; of those with a NaN, as NumPy orders them: imaginary NaN, real NaN, both.
 * DRUPE_E_NO_MEMORY. */
drupe_status drupe_sort_run(const drupe_sort *sort) DRUPE_MUST_CHECK;

#endif
