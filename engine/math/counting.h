/* How often each number is there, and lines through points.
 *
 * Threads: from any; the work is shared as parallel.h says. */
#ifndef DRUPE_MATH_COUNTING_H
#define DRUPE_MATH_COUNTING_H

#include "drupe/status.h"
#include <stddef.h>
#include <stdint.h>

typedef struct drupe_counting {
    const int64_t *numbers; /* n of them; those that are not 0 to bins - 1 are passed by */
    const double *weights;  /* n of them, or NULL */
    size_t n, bins;
    int64_t *counts; /* [bins] without weights */
    double *sums;    /* [bins] with weights */
} drupe_counting;

/* Weights are added in the order of the numbers, by each thread for its share, and then the shares.
 * DRUPE_E_NO_MEMORY. */
drupe_status drupe_counting_run(const drupe_counting *counting) DRUPE_MUST_CHECK;

typedef struct drupe_interp {
    const double *x;       /* m of them */
    const double *xp, *fp; /* n points, at least 1; xp ascending */
    size_t m, n;
    double left, right; /* in front of the first point and behind the last one */
    double *out;        /* [m] */
} drupe_interp;

/* What lies at each x on the lines from point to point. NaN at NaN. */
void drupe_interp_run(const drupe_interp *interp);

#endif
