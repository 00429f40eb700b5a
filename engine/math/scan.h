/* Running sums and products along an axis of a contiguous block.
 *
 * Threads: from any; the work is shared as parallel.h says. */
#ifndef DRUPE_MATH_SCAN_H
#define DRUPE_MATH_SCAN_H

#include "math/element.h"
#include <stdbool.h>

typedef struct drupe_scan {
    const void *in; /* [outer][n][inner] */
    void *out;      /* [outer][n][inner], or [outer][n + 1][inner] with `initial`; does not overlap `in` */
    size_t outer, n, inner;
    drupe_element type; /* of both; not BOOL */
    bool product;       /* else the sum */
    bool initial;       /* begin with 0 or 1 */
} drupe_scan;

/* Integers wrap. float16 is added in float32 and rounded for each element of `out`. A long row is cut into
 * parts, whose sums are added first: no element has more roundings than from left to right. */
void drupe_scan_run(const drupe_scan *scan);

#endif
